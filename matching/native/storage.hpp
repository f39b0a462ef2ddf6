// Where the flat index keeps things: slots of one size, and hash tables without tombstones. All stay within a constant
// factor of what they hold, whatever was added and removed before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "chunk_store.hpp"
#include "fetch_line.hpp"
#include "huge_pages.hpp"
#include "values.hpp"

namespace mercast {

inline constexpr std::uint32_t kNone = 0xffffffffU;

// Slots of one size, in chunks that never move. Slots that were freed are used again, the last chunk is given back.
class SlotPool {
  public:
    // A chunk has two to the power of `chunk_bits` slots.
    SlotPool(std::size_t slot_bytes, unsigned chunk_bits, ChunkStore& store)
        : slot_bytes_(slot_bytes), chunk_bits_(chunk_bits), store_(&store) {}
    SlotPool(const SlotPool&) = delete;
    SlotPool& operator=(const SlotPool&) = delete;
    SlotPool(SlotPool&& other) noexcept = default;
    ~SlotPool() {
        for (std::byte* chunk : chunks_) store_->release(chunk, chunk_bytes());
    }

    std::byte* at(std::uint32_t slot) const {
        return chunks_[slot >> chunk_bits_] + (slot & (chunk_slots() - 1)) * slot_bytes_;
    }

    std::uint32_t allocate() {
        while (!free_.empty()) {
            const std::uint32_t slot = free_.back();
            free_.pop_back();
            if (slot >= end_ || is_live_[slot]) continue;
            // The next one is somewhere else.
            if (!free_.empty() && free_.back() < end_) fetch_line_to_write(at(free_.back()));
            return use(slot);
        }
        if (end_ == chunks_.size() << chunk_bits_) chunks_.push_back(store_->acquire(chunk_bytes()));
        is_live_.push_back(false);
        return use(end_++);
    }

    void free(std::uint32_t slot) {
        is_live_[slot] = false;
        --live_;
        free_.push_back(slot);
        while (end_ != 0 && !is_live_[end_ - 1]) {
            is_live_.pop_back();
            --end_;
        }
        // An empty chunk goes late, or a single subscription that comes and goes would cost an allocation each time.
        while (chunks_.size() << chunk_bits_ >= end_ + chunk_slots() + chunk_slots() / 4) {
            store_->release(chunks_.back(), chunk_bytes());
            chunks_.pop_back();
        }
        if (free_.size() > 2 * (end_ - live_) + chunk_slots()) forget_stale();
    }

    // A live slot that is to move so that memory follows what is stored, or kNone while little is wasted.
    std::uint32_t to_compact() const {
        return end_ - live_ > live_ + chunk_slots() / 4 ? end_ - 1 : kNone;
    }

    std::size_t slot_bytes() const { return slot_bytes_; }

    std::size_t bytes() const {
        return chunks_.size() * chunk_bytes() + chunks_.capacity() * sizeof(std::byte*) +
               free_.capacity() * sizeof(std::uint32_t) + is_live_.capacity() / 8;
    }

  private:
    std::uint32_t chunk_slots() const { return 1U << chunk_bits_; }

    void forget_stale() {
        std::erase_if(free_, [this](std::uint32_t slot) { return slot >= end_ || is_live_[slot]; });
        free_.shrink_to_fit();
    }

    std::size_t chunk_bytes() const { return slot_bytes_ << chunk_bits_; }

    std::uint32_t use(std::uint32_t slot) {
        is_live_[slot] = true;
        ++live_;
        return slot;
    }

    std::size_t slot_bytes_;
    unsigned chunk_bits_;
    ChunkStore* store_;
    std::vector<std::byte*> chunks_;
    std::vector<std::uint32_t> free_;  // may name slots that are no longer free or no longer there
    std::vector<bool> is_live_;
    std::uint32_t end_ = 0;
    std::uint32_t live_ = 0;
};

// Slots of several sizes, multiples of a unit. A handle says which pool and which slot.
template <std::size_t Unit, std::size_t Classes>
class SizedSlots {
  public:
    static constexpr std::size_t kLargest = Unit * Classes;

    explicit SizedSlots(ChunkStore& store) {
        pools_.reserve(Classes);
        for (std::size_t i = 1; i <= Classes; ++i) pools_.emplace_back(i * Unit, kChunkBits, store);
    }

    std::uint32_t allocate(std::size_t bytes) {
        const auto pool = static_cast<std::uint32_t>((bytes - 1) / Unit);
        return pool << kSlotBits | pools_[pool].allocate();
    }

    void free(std::uint32_t handle) { pool_of(handle).free(handle & kSlotMask); }
    std::byte* at(std::uint32_t handle) const { return pools_[handle >> kSlotBits].at(handle & kSlotMask); }
    std::size_t slot_bytes(std::uint32_t handle) const { return pools_[handle >> kSlotBits].slot_bytes(); }

    // After a free: the handle of something that is to move to a slot of the same size, or kNone.
    std::uint32_t to_compact(std::uint32_t handle) const {
        const std::uint32_t slot = pools_[handle >> kSlotBits].to_compact();
        return slot == kNone ? kNone : (handle & ~kSlotMask) | slot;
    }

    std::size_t bytes() const {
        std::size_t total = 0;
        for (const SlotPool& pool : pools_) total += pool.bytes();
        return total;
    }

  private:
    static constexpr unsigned kChunkBits = 8;
    static constexpr std::uint32_t kSlotBits = 27;
    static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
    static_assert(Classes <= 31, "kNone must be no handle");

    SlotPool& pool_of(std::uint32_t handle) { return pools_[handle >> kSlotBits]; }

    std::vector<SlotPool> pools_;
};

// A hash table from a key to a 32-bit number. Linear probing; a removal moves up what the hole would hide.
template <typename Key>
class NumberTable {
  public:
    std::uint32_t find(const Key& key) const {
        if (used_ == 0) return kNone;
        const std::size_t at = place_of(key);
        return slots_[at].number;
    }

    void prefetch(const Key& key) const {
        if (used_ == 0) return;
        // The next few, too: a search goes on in another line one time in four.
        const Slot* slot = &slots_[key.hash() & mask()];
        fetch_line(slot);
        fetch_line(slot + 3);
    }

    // The key must not be there.
    void insert(const Key& key, std::uint32_t number) { insert_if_absent(key, number); }

    // False if the key is there.
    bool insert_if_absent(const Key& key, std::uint32_t number) {
        if ((used_ + 1) * 3 > slots_.size() * 2) resize(slots_.empty() ? 16 : slots_.size() * 2);
        Slot& slot = slots_[place_of(key)];
        if (slot.number != kNone) return false;
        slot = Slot{key, number};
        ++used_;
        return true;
    }

    void replace(const Key& key, std::uint32_t number) { slots_[place_of(key)].number = number; }

    void erase(const Key& key) {
        std::size_t hole = place_of(key);
        for (std::size_t at = (hole + 1) & mask(); slots_[at].number != kNone; at = (at + 1) & mask()) {
            const std::size_t home = slots_[at].key.hash() & mask();
            if (((at - home) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole].number = kNone;
        --used_;
        if (slots_.size() > 16 && used_ * 8 < slots_.size()) resize(slots_.size() / 2);
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(used_); }
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

    template <typename Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_) {
            if (slot.number != kNone) visit(slot.key, slot.number);
        }
    }

  private:
    struct Slot {
        Key key{};
        std::uint32_t number = kNone;
    };

    using Slots = std::vector<Slot, HugePages<Slot>>;

    std::size_t mask() const { return slots_.size() - 1; }

    std::size_t place_of(const Key& key) const {
        std::size_t at = key.hash() & mask();
        while (slots_[at].number != kNone && !(slots_[at].key == key)) at = (at + 1) & mask();
        return at;
    }

    void resize(std::size_t size) {
        Slots old(size);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.number != kNone) slots_[place_of(slot.key)] = slot;
        }
    }

    Slots slots_;
    std::size_t used_ = 0;
};

#pragma pack(push, 4)
// Packed, so that a slot of the tables is 12 and 16 bytes.
struct IdKey {
    std::int64_t id = 0;
    std::uint64_t hash() const { return mixed(static_cast<std::uint64_t>(id)); }
    bool operator==(const IdKey& other) const { return id == other.id; }
};

struct ValueKey {
    std::uint64_t key = 0;
    std::uint32_t dimension = 0;
    std::uint64_t hash() const { return mixed(key ^ (std::uint64_t{dimension} * 0x9e3779b97f4a7c15U)); }
    bool operator==(const ValueKey& other) const { return key == other.key && dimension == other.dimension; }
};
#pragma pack(pop)

}  // namespace mercast
