// An open-addressing hash table without tombstones. Its memory stays within a constant factor of the slots in use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "memory/fetch_line.hpp"
#include "memory/huge_pages.hpp"

namespace mercast {

// Slots have a key. Linear probing; a removal moves up the slots that the hole would hide.
template <typename Slot>
class ProbedTable {
  public:
    using Key = decltype(Slot::key);

    // nullptr if the key is not in the table.
    const Slot* find(const Key& key) const {
        if (used_ == 0) return nullptr;
        const Slot& slot = slots_[place_of(key)];
        return slot.is_empty() ? nullptr : &slot;
    }
    Slot* find(const Key& key) { return const_cast<Slot*>(std::as_const(*this).find(key)); }

    // The key's slot. If it is empty, the caller must fill it.
    Slot& find_or_insert(const Key& key) {
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
        // Fetches two lines: a slot may cross a line, and the search may continue in the next slots.
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

}  // namespace mercast
