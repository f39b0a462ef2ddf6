// Lists of entries. A list of one entry lies in its head, without any conditions: there are as many of these lists as
// there are rare values. Up to 256 entries lie in a block, more in several, of which the last may be smaller.
// Blocks are of a few sizes, so that little of them is empty, and what a list wastes does not grow with it.
//
// Within a block the words come first, so that a scan reads words alone and touches a tail only where the word lets it
// pass.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "flat/entry.hpp"
#include "memory/slot_pool.hpp"

namespace mercast {

class EntryLists {
  public:
    static constexpr std::uint32_t kBlockEntries = 256;

    // What a list hangs on: a value of a dimension, or a bucket of a grid.
    struct Owner {
        std::uint64_t key = 0;
        std::uint32_t number = 0;
        bool is_bucket = false;
    };

    struct Head {
        std::uint32_t size = 0;
        std::uint32_t last = kNone;     // the handle of the last block or, in a list of one entry, its subscription
        std::uint32_t* full = nullptr;  // the handles of the blocks before the last
    };

    explicit EntryLists(ChunkStore& store);
    EntryLists(const EntryLists&) = delete;
    EntryLists& operator=(const EntryLists&) = delete;
    ~EntryLists();

    std::uint32_t create(Owner owner);
    void destroy(std::uint32_t list);  // which is empty

    const Owner& owner(std::uint32_t list) const { return owners_[list]; }
    const Head& head(std::uint32_t list) const { return heads_[list]; }
    std::uint32_t size(std::uint32_t list) const { return heads_[list].size; }

    // Of a list of several: its entries, in order.
    template <typename Visit>
    void each_run(const Head& head, Visit visit) const {
        const std::uint32_t blocks = full_blocks(head);
        for (std::uint32_t i = 0; i < blocks; ++i) each_run_of(head.full[i], kBlockEntries, visit);
        each_run_of(head.last, head.size - blocks * kBlockEntries, visit);
    }

    // Before an append.
    void prefetch_end(std::uint32_t list) const;
    // Before a removal from about this position.
    void prefetch_removal(std::uint32_t list, std::uint32_t position) const;
    // The subscription's entry. Returns its position. What the entry says of its subscription does not count: written just
    // before, it would make copying wait.
    std::uint32_t append(std::uint32_t list, const Entry& entry, std::uint32_t subscription);
    // Puts the last entry into the place of the one that goes. Returns the subscription of the one that moved, or kNone.
    std::uint32_t remove(std::uint32_t list, std::uint32_t position);

    Entry entry(std::uint32_t list, std::uint32_t position) const;
    // Of a list of several.
    void replace(std::uint32_t list, std::uint32_t position, const Entry& entry);
    std::uint32_t subscription(std::uint32_t list, std::uint32_t position) const;
    std::uint32_t last_subscription(std::uint32_t list) const { return subscription(list, size(list) - 1); }
    void set_subscription(std::uint32_t list, std::uint32_t position, std::uint32_t subscription);

    // A block that is to move so that memory follows what is stored, or kNone; a subscription that has an entry there; and
    // the move, when the subscription has told which list that is.
    std::uint32_t to_compact() const;
    std::uint32_t subscription_in(std::uint32_t block) const { return tails(block)->subscription; }
    // False if the list does not have the block.
    bool compact(std::uint32_t list, std::uint32_t block);

    std::uint32_t count() const { return static_cast<std::uint32_t>(heads_.size() - free_.size()); }
    std::size_t bytes() const;

  private:
    // A handle says which size a block has, and which slot.
    static constexpr std::array<std::uint16_t, 15> kCapacities{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    static constexpr std::uint32_t kSizes = kCapacities.size();
    static constexpr std::uint32_t kLargest = kSizes - 1;
    static constexpr std::uint32_t kFirstOfOthers = 6;
    static constexpr std::uint32_t kSlotBits = 28;
    static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
    static_assert(kCapacities[kLargest] == kBlockEntries && kSizes < 16, "kNone must be no handle");

    static std::uint32_t size_of(std::uint32_t block) { return block >> kSlotBits; }
    static std::uint32_t capacity(std::uint32_t block) { return kCapacities[size_of(block)]; }
    // A tail never lies across two cache lines.
    static std::size_t word_bytes(std::uint32_t size) { return kWordBytes[size]; }
    static constexpr std::array<std::uint16_t, kSizes> kWordBytes = [] {
        std::array<std::uint16_t, kSizes> bytes{};
        for (std::size_t size = 0; size < kSizes; ++size) {
            const std::size_t tails = (kCapacities[size] * sizeof(FilterWord) + sizeof(EntryTail) - 1) / sizeof(EntryTail);
            bytes[size] = static_cast<std::uint16_t>(tails * sizeof(EntryTail));
        }
        return bytes;
    }();
    static std::size_t block_bytes(std::uint32_t size) { return word_bytes(size) + kCapacities[size] * sizeof(EntryTail); }

    std::byte* at(std::uint32_t block) const { return pools_[size_of(block)].at(block & kSlotMask); }
    FilterWord* words(std::uint32_t block) const { return reinterpret_cast<FilterWord*>(at(block)); }
    EntryTail* tails(std::uint32_t block) const {
        return reinterpret_cast<EntryTail*>(at(block) + word_bytes(size_of(block)));
    }
    // Both parts of a block.
    struct Parts {
        FilterWord* words;
        EntryTail* tails;
    };
    Parts parts(std::uint32_t block) const {
        std::byte* start = at(block);
        return {reinterpret_cast<FilterWord*>(start), reinterpret_cast<EntryTail*>(start + word_bytes(size_of(block)))};
    }
    template <typename Visit>
    void each_run_of(std::uint32_t block, std::uint32_t count, Visit& visit) const {
        const Parts found = parts(block);
        for (std::uint32_t first = 0; first < count; first += EntryRun::kMost) {
            visit(EntryRun{found.words + first, found.tails + first, std::min(count - first, EntryRun::kMost)});
        }
    }

    std::uint32_t allocate(std::uint32_t size) { return size << kSlotBits | pools_[size].allocate(); }
    void release(std::uint32_t block) { pools_[size_of(block)].free(block & kSlotMask); }

    static std::uint32_t full_blocks(const Head& head) { return (head.size - 1) / kBlockEntries; }
    // The block with a position of a list of several.
    static std::uint32_t block_with(const Head& head, std::uint32_t position) {
        const std::uint32_t number = position / kBlockEntries;
        return number == full_blocks(head) ? head.last : head.full[number];
    }

    // Where the list keeps the block's handle, or nullptr.
    static std::uint32_t* reference_to(Head& head, std::uint32_t block);
    void make_room(Head& head);
    void add_block(Head& head);
    void shrink_last_block(Head& head);
    void remove_last_block(Head& head);
    // Returns the new handle of the block with so many entries.
    std::uint32_t move_block(std::uint32_t block, std::uint32_t entries, std::uint32_t size);

    std::vector<Head> heads_;
    std::vector<Owner> owners_;
    std::vector<std::uint32_t> free_;
    std::vector<SlotPool> pools_;
};

}  // namespace mercast
