// Where the flat index keeps things: slots of one size, and hash tables without tombstones. All stay within a constant
// factor of what they hold, whatever was added and removed before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
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
            // The next one is somewhere else, and may lie in two lines.
            if (!free_.empty() && free_.back() < end_) {
                fetch_line_to_write(at(free_.back()));
                fetch_line_to_write(at(free_.back()) + std::min(slot_bytes_, kLine) - 1);
            }
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
    static constexpr std::size_t kLine = 64;

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

// A hash table of slots, each with a key. Linear probing; a removal moves up what the hole would hide.
template <typename Slot>
class ProbedTable {
  public:
    using Key = decltype(Slot::key);

    // nullptr if it is not there.
    const Slot* find(const Key& key) const {
        if (used_ == 0) return nullptr;
        const Slot& slot = slots_[place_of(key)];
        return slot.is_empty() ? nullptr : &slot;
    }
    Slot* find(const Key& key) { return const_cast<Slot*>(std::as_const(*this).find(key)); }

    // The key's slot. One that is empty is to be filled.
    Slot& take(const Key& key) {
        if ((used_ + 1) * 3 > slots_.size() * 2) resize(std::max(kFewest, slots_.size() * 2));
        Slot& slot = slots_[place_of(key)];
        if (slot.is_empty()) {
            slot.key = key;
            ++used_;
        }
        return slot;
    }

    void erase(const Slot* slot) {
        auto hole = static_cast<std::size_t>(slot - slots_.data());
        for (std::size_t at = (hole + 1) & mask(); !slots_[at].is_empty(); at = (at + 1) & mask()) {
            const std::size_t home = slots_[at].key.hash() & mask();
            if (((at - home) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole] = Slot();
        --used_;
        if (slots_.size() > kFewest && used_ * 8 < slots_.size()) resize(slots_.size() / 2);
    }

    void prefetch(const Key& key) const {
        if (used_ == 0) return;
        // What follows, too: a slot may lie in two lines, and a search may go on.
        const Slot* slot = &slots_[key.hash() & mask()];
        fetch_line(slot);
        fetch_line(reinterpret_cast<const std::byte*>(slot) + kAhead);
    }

    std::size_t used() const { return used_; }
    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

    template <typename Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_) {
            if (!slot.is_empty()) visit(slot);
        }
    }

  private:
    using Slots = std::vector<Slot, HugePages<Slot>>;
    static constexpr std::size_t kFewest = 4;
    static constexpr std::size_t kAhead = 40;

    std::size_t mask() const { return slots_.size() - 1; }

    std::size_t place_of(const Key& key) const {
        std::size_t at = key.hash() & mask();
        while (!slots_[at].is_empty() && !(slots_[at].key == key)) at = (at + 1) & mask();
        return at;
    }

    void resize(std::size_t size) {
        Slots old(size);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (!slot.is_empty()) slots_[place_of(slot.key)] = slot;
        }
    }

    Slots slots_;
    std::size_t used_ = 0;
};

// From a dimension's value to the number of its list.
class ValueTable {
  public:
#pragma pack(push, 4)
    // Packed, so that a slot has 16 bytes.
    struct Key {
        std::uint64_t value = 0;
        std::uint32_t dimension = 0;
        std::uint64_t hash() const { return mixed(value ^ (std::uint64_t{dimension} * 0x9e3779b97f4a7c15U)); }
        bool operator==(const Key& other) const { return value == other.value && dimension == other.dimension; }
    };
#pragma pack(pop)

    std::uint32_t find(const Key& key) const {
        const Slot* slot = table_.find(key);
        return slot == nullptr ? kNone : slot->list;
    }
    void insert(const Key& key, std::uint32_t list) { table_.take(key).list = list; }
    void erase(const Key& key) { table_.erase(table_.find(key)); }
    void prefetch(const Key& key) const { table_.prefetch(key); }
    std::size_t bytes() const { return table_.bytes(); }

  private:
    struct Slot {
        Key key;
        std::uint32_t list = kNone;
        bool is_empty() const { return list == kNone; }
    };
    static_assert(sizeof(Slot) == 16);

    ProbedTable<Slot> table_;
};

// From a subscription's id to its handle. Ids mostly follow each other, so eight of them share a slot.
class HandleTable {
  public:
    std::uint32_t size() const { return size_; }
    std::size_t bytes() const { return table_.bytes(); }
    void prefetch(std::int64_t id) const { table_.prefetch(Key::of(id)); }

    std::uint32_t find(std::int64_t id) const {
        const Slot* slot = table_.find(Key::of(id));
        return slot == nullptr ? kNone : slot->handles[place_of(id)];
    }

    // False if the id is there.
    bool insert_if_absent(std::int64_t id, std::uint32_t handle) {
        std::uint32_t& found = table_.take(Key::of(id)).handles[place_of(id)];
        if (found != kNone) return false;
        found = handle;
        ++size_;
        return true;
    }

    // Of one that is there.
    void replace(std::int64_t id, std::uint32_t handle) { table_.find(Key::of(id))->handles[place_of(id)] = handle; }

    void erase(std::int64_t id) {
        Slot* slot = table_.find(Key::of(id));
        slot->handles[place_of(id)] = kNone;
        --size_;
        if (slot->handles == Slot().handles) table_.erase(slot);
    }

    // Ids and handles.
    template <typename Visit>
    void each(Visit visit) const {
        table_.each([&](const Slot& slot) {
            for (std::size_t place = 0; place < kTogether; ++place) {
                const auto id = static_cast<std::int64_t>(slot.key.group * kTogether + place);
                if (slot.handles[place] != kNone) visit(id, slot.handles[place]);
            }
        });
    }

  private:
    static constexpr std::size_t kTogether = 8;
    static constexpr std::uint64_t kNoGroup = ~std::uint64_t{0};

    struct Key {
        std::uint64_t group = kNoGroup;
        static Key of(std::int64_t id) { return {static_cast<std::uint64_t>(id) / kTogether}; }
        std::uint64_t hash() const { return mixed(group); }
        bool operator==(const Key& other) const = default;
    };

    struct Slot {
        Key key;
        std::array<std::uint32_t, kTogether> handles = [] {
            std::array<std::uint32_t, kTogether> none;
            none.fill(kNone);
            return none;
        }();
        bool is_empty() const { return key.group == kNoGroup; }
    };

    static std::size_t place_of(std::int64_t id) { return static_cast<std::uint64_t>(id) % kTogether; }

    ProbedTable<Slot> table_;
    std::uint32_t size_ = 0;
};

}  // namespace mercast
