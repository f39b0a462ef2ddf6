// A hash table from hashes to numbers of objects stored elsewhere. Open addressing, no tombstones.
//
// The caller compares the objects themselves, so equal hashes never merge two objects. Removal shifts later entries
// back. A table that is too large for its entries shrinks, so memory is proportional to what is stored.
#pragma once

#include <cstdint>
#include <vector>

#include "core/values.hpp"
#include "memory/fetch_line.hpp"
#include "memory/none.hpp"

namespace mercast {

inline std::uint32_t hash_of_id(std::int64_t id) {
    return static_cast<std::uint32_t>(mixed(static_cast<std::uint64_t>(id)));
}

class IdTable {
  public:
    std::uint32_t size() const { return size_; }
    std::size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

    void prefetch(std::uint32_t hash) const {
        if (!entries_.empty()) fetch_line(&entries_[hash & mask_]);
    }

    // Some number with this hash, not compared, or kNone. For prefetching.
    std::uint32_t peek(std::uint32_t hash) const {
        return find(hash, [](std::uint32_t) { return true; });
    }

    template <class Same> std::uint32_t find(std::uint32_t hash, Same&& is_wanted) const {
        if (entries_.empty()) return kNone;
        for (std::size_t place = hash & mask_;; place = (place + 1) & mask_) {
            const Entry& entry = entries_[place];
            if (entry.id == kNone) return kNone;
            if (entry.hash == hash && is_wanted(entry.id)) return entry.id;
        }
    }

    void insert(std::uint32_t hash, std::uint32_t id) {
        if ((std::size_t{size_} + 1) * 8 > entries_.size() * 5) resize(entries_.empty() ? 16 : entries_.size() * 2);
        place(hash, id);
        ++size_;
    }

    void erase(std::uint32_t hash, std::uint32_t id) {
        std::size_t hole = hash & mask_;
        while (entries_[hole].id != id || entries_[hole].hash != hash) hole = (hole + 1) & mask_;
        for (std::size_t next = (hole + 1) & mask_; entries_[next].id != kNone; next = (next + 1) & mask_) {
            const std::size_t home = entries_[next].hash & mask_;
            // An entry may move back unless its home position is behind the hole.
            if (((next - home) & mask_) >= ((next - hole) & mask_)) {
                entries_[hole] = entries_[next];
                hole = next;
            }
        }
        entries_[hole].id = kNone;
        --size_;
        if (size_ == 0) {
            std::vector<Entry>().swap(entries_);
        } else if (entries_.size() > 64 && std::size_t{size_} * 8 < entries_.size()) {
            resize(entries_.size() / 2);
        }
    }

  private:
    struct Entry {
        std::uint32_t hash = 0;
        std::uint32_t id = kNone;
    };

    void place(std::uint32_t hash, std::uint32_t id) {
        std::size_t place = hash & mask_;
        while (entries_[place].id != kNone) place = (place + 1) & mask_;
        entries_[place] = {hash, id};
    }

    void resize(std::size_t capacity) {
        std::vector<Entry> old(capacity);
        old.swap(entries_);
        mask_ = capacity - 1;
        for (const Entry& entry : old) {
            if (entry.id != kNone) place(entry.hash, entry.id);
        }
    }

    std::vector<Entry> entries_;
    std::size_t mask_ = 0;
    std::uint32_t size_ = 0;
};

}  // namespace mercast
