// The hash tables of the flat index: from values to lists, from ids to subscriptions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/values.hpp"
#include "memory/none.hpp"
#include "memory/probed_table.hpp"

namespace mercast {

// From a value of a dimension to its list.
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
    void insert(const Key& key, std::uint32_t list) { table_.find_or_insert(key).list = list; }
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

// From a subscription's id to its handle. Ids are mostly consecutive, so eight of them share a slot.
class HandleTable {
  public:
    std::uint32_t size() const { return size_; }
    std::size_t bytes() const { return table_.bytes(); }
    void prefetch(std::int64_t id) const { table_.prefetch(Key::of(id)); }

    std::uint32_t find(std::int64_t id) const {
        const Slot* slot = table_.find(Key::of(id));
        return slot == nullptr ? kNone : slot->handles[place_of(id)];
    }

    // Returns false if the id exists.
    bool insert_if_absent(std::int64_t id, std::uint32_t handle) {
        std::uint32_t& found = table_.find_or_insert(Key::of(id)).handles[place_of(id)];
        if (found != kNone) return false;
        found = handle;
        ++size_;
        return true;
    }

    // The id must exist.
    void replace(std::int64_t id, std::uint32_t handle) { table_.find(Key::of(id))->handles[place_of(id)] = handle; }

    void erase(std::int64_t id) {
        Slot* slot = table_.find(Key::of(id));
        slot->handles[place_of(id)] = kNone;
        --size_;
        if (slot->handles == Slot().handles) table_.erase(slot);
    }

    // Visits ids and handles.
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
