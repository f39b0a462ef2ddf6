// Slots of fixed sizes. Their memory stays within a constant factor of the slots in use, whatever was added and removed
// before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/chunk_store.hpp"
#include "memory/fetch_line.hpp"
#include "memory/none.hpp"

namespace mercast {

// Slots of one size, in chunks that never move. Freed slots are reused, and an empty chunk at the end is released.
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
            // Prefetches the slot of the next call, which is elsewhere in memory and may cross a line.
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
        // An empty chunk is released late. Otherwise a single subscription, added and removed in turn, would cost an
        // allocation each time.
        while (chunks_.size() << chunk_bits_ >= end_ + chunk_slots() + chunk_slots() / 4) {
            store_->release(chunks_.back(), chunk_bytes());
            chunks_.pop_back();
        }
        if (free_.size() > 2 * (end_ - live_) + chunk_slots()) drop_stale();
    }

    // A live slot that should move so that memory is proportional to what is stored. kNone while little is unused.
    std::uint32_t to_compact() const { return end_ - live_ > live_ + chunk_slots() / 4 ? end_ - 1 : kNone; }

    std::size_t slot_bytes() const { return slot_bytes_; }

    std::size_t bytes() const {
        return chunks_.size() * chunk_bytes() + chunks_.capacity() * sizeof(std::byte*) +
               free_.capacity() * sizeof(std::uint32_t) + is_live_.capacity() / 8;
    }

  private:
    static constexpr std::size_t kLine = 64;

    std::uint32_t chunk_slots() const { return 1U << chunk_bits_; }

    void drop_stale() {
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
    std::vector<std::uint32_t> free_;  // may contain slots that are no longer free or no longer exist
    std::vector<bool> is_live_;
    std::uint32_t end_ = 0;
    std::uint32_t live_ = 0;
};

// Slots of several sizes, multiples of a unit. A handle contains the pool and the slot.
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

    // After a free: the handle of a slot that should move to another of the same size, or kNone.
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

}  // namespace mercast
