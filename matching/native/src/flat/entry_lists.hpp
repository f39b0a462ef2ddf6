// Lists of entries. A list of one entry is in its head, without conditions: there are as many such lists as rare
// values. Up to 256 entries are in one block, more in several, of which the last may be smaller. Blocks have a few
// sizes, so that little is unused, and the unused part of a list does not grow with the list.
//
// Within a block the words come first. A scan reads only words, and reads a tail only if its word passes.
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

    // The owner of a list: a value of a dimension, or a bucket of a grid.
    struct Owner {
        std::uint64_t key = 0;
        std::uint32_t number = 0;
        bool is_bucket = false;
    };

    struct Head {
        std::uint32_t size = 0;
        std::uint32_t last = kNone;     // the handle of the last block; in a list of one entry, its subscription
        std::uint32_t* full = nullptr;  // the handles of the blocks before the last
    };

    explicit EntryLists(ChunkStore& store);
    EntryLists(const EntryLists&) = delete;
    EntryLists& operator=(const EntryLists&) = delete;
    ~EntryLists();

    std::uint32_t create(Owner owner);
    void destroy(std::uint32_t list);  // an empty list

    const Owner& owner(std::uint32_t list) const { return owners_[list]; }
    const Head& head(std::uint32_t list) const { return heads_[list]; }
    std::uint32_t size(std::uint32_t list) const { return heads_[list].size; }

    // Visits the entries of a list of several, in order.
    template <typename Visit>
    void each_run(const Head& head, Visit visit) const {
        const std::uint32_t blocks = full_blocks(head);
        for (std::uint32_t i = 0; i < blocks; ++i) each_run_of(head.full[i], kBlockEntries, visit);
        each_run_of(head.last, head.size - blocks * kBlockEntries, visit);
    }

    // Prefetches the lines that an append writes.
    void prefetch_end(std::uint32_t list) const;
    // Prefetches the lines that a removal at about this position reads and writes.
    void prefetch_removal(std::uint32_t list, std::uint32_t position) const;
    // Appends the subscription's entry and returns its position. The handle is passed apart from the entry: copying an
    // entry that was just written stalls until its stores have left the store buffer.
    std::uint32_t append(std::uint32_t list, const Entry& entry, std::uint32_t subscription);
    // Removes an entry by moving the last one into its place. Returns the subscription of the moved entry, or kNone.
    std::uint32_t remove(std::uint32_t list, std::uint32_t position);

    Entry entry(std::uint32_t list, std::uint32_t position) const;
    // Replaces an entry in a list of several.
    void replace(std::uint32_t list, std::uint32_t position, const Entry& entry);
    std::uint32_t subscription(std::uint32_t list, std::uint32_t position) const;
    std::uint32_t last_subscription(std::uint32_t list) const { return subscription(list, size(list) - 1); }
    void set_subscription(std::uint32_t list, std::uint32_t position, std::uint32_t subscription);

    // Compaction: `to_compact` returns a block that should move, or kNone. `subscription_in` returns a subscription
    // with an entry there, whose places name the list for `compact`.
    std::uint32_t to_compact() const;
    std::uint32_t subscription_in(std::uint32_t block) const { return tails(block)->subscription; }
    // Moves the block. Returns false if the list does not have it.
    bool compact(std::uint32_t list, std::uint32_t block);

    std::uint32_t count() const { return static_cast<std::uint32_t>(heads_.size() - free_.size()); }
    std::size_t bytes() const;

  private:
    // A handle contains the size class of a block and its slot.
    static constexpr std::array<std::uint16_t, 15> kCapacities{2,  3,  4,  6,  8,   12,  16, 24,
                                                               32, 48, 64, 96, 128, 192, 256};
    static constexpr std::uint32_t kSizes = kCapacities.size();
    static constexpr std::uint32_t kLargest = kSizes - 1;
    static constexpr std::uint32_t kFirstOfOthers = 6;
    static constexpr std::uint32_t kSlotBits = 28;
    static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
    static_assert(kCapacities[kLargest] == kBlockEntries && kSizes < 16, "kNone must be no handle");

    static std::uint32_t size_of(std::uint32_t block) { return block >> kSlotBits; }
    static std::uint32_t capacity(std::uint32_t block) { return kCapacities[size_of(block)]; }
    // A tail never crosses a cache line.
    static std::size_t word_bytes(std::uint32_t size) { return kWordBytes[size]; }
    static constexpr std::array<std::uint16_t, kSizes> kWordBytes = [] {
        std::array<std::uint16_t, kSizes> bytes{};
        for (std::size_t size = 0; size < kSizes; ++size) {
            const std::size_t tails =
                (kCapacities[size] * sizeof(FilterWord) + sizeof(EntryTail) - 1) / sizeof(EntryTail);
            bytes[size] = static_cast<std::uint16_t>(tails * sizeof(EntryTail));
        }
        return bytes;
    }();
    static std::size_t block_bytes(std::uint32_t size) {
        return word_bytes(size) + kCapacities[size] * sizeof(EntryTail);
    }

    std::byte* at(std::uint32_t block) const { return pools_[size_of(block)].at(block & kSlotMask); }
    FilterWord* words(std::uint32_t block) const { return reinterpret_cast<FilterWord*>(at(block)); }
    EntryTail* tails(std::uint32_t block) const {
        return reinterpret_cast<EntryTail*>(at(block) + word_bytes(size_of(block)));
    }
    // The words and the tails of a block.
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
    // The block with a position, of a list of several.
    static std::uint32_t block_with(const Head& head, std::uint32_t position) {
        const std::uint32_t number = position / kBlockEntries;
        return number == full_blocks(head) ? head.last : head.full[number];
    }

    // The place where the list stores the block's handle, or nullptr.
    static std::uint32_t* reference_to(Head& head, std::uint32_t block);
    void make_room(Head& head);
    void add_block(Head& head);
    void shrink_last_block(Head& head);
    void remove_last_block(Head& head);
    // Moves a block's entries to a block of another size. Returns its handle.
    std::uint32_t move_block(std::uint32_t block, std::uint32_t entries, std::uint32_t size);

    std::vector<Head> heads_;
    std::vector<Owner> owners_;
    std::vector<std::uint32_t> free_;
    std::vector<SlotPool> pools_;
};

}  // namespace mercast
