// The data of each subscription in one slot: its id, the places of its entries, and its form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/conditions.hpp"
#include "core/form.hpp"
#include "memory/slot_pool.hpp"

namespace mercast {

// The place where an entry was filed.
struct Place {
    std::uint32_t list;
    std::uint32_t position;
};

// The start of a slot. If the entries do not decide, the conditions follow. Then follow the places of the entries, and
// the form or, if that is long, the number of a long form.
class Subscription {
  public:
    static constexpr std::size_t kMostCopies = 16;

    std::int64_t id;
    std::uint32_t destination;
    std::uint16_t shape;  // of the conditions that follow

    std::uint64_t sequence() const { return std::uint64_t{sequence_high_} << 32 | sequence_low_; }
    bool has_conditions() const { return condition_words_ != 0; }
    const std::byte* conditions() const { return reinterpret_cast<const std::byte*>(this + 1); }
    std::span<Place> places() { return {reinterpret_cast<Place*>(after_conditions()), copies_}; }
    std::span<const Place> places() const { return const_cast<Subscription*>(this)->places(); }

  private:
    friend class Subscriptions;
    static constexpr std::size_t kConditionWord = 8;
    static constexpr std::uint16_t kLongForm = 0xffff;

    std::byte* after_conditions() { return reinterpret_cast<std::byte*>(this + 1) + condition_words_ * kConditionWord; }
    std::uint8_t* form_place() { return reinterpret_cast<std::uint8_t*>(after_conditions() + copies_ * sizeof(Place)); }

    std::uint16_t form_bytes_;
    std::uint32_t sequence_low_;
    std::uint16_t sequence_high_;
    std::uint8_t copies_;
    std::uint8_t condition_words_;
};
static_assert(sizeof(Subscription) == 24);

class Subscriptions {
  public:
    explicit Subscriptions(ChunkStore& store) : slots_(store) {}

    struct Draft {
        std::int64_t id;
        std::uint64_t sequence;
        std::uint32_t destination;
        std::uint8_t copies;
        bool keeps_conditions;
    };
    // Returns the handle of a subscription whose places must still be filled in.
    std::uint32_t add(const Draft& draft, const Terms& terms, Form form);
    void remove(std::uint32_t handle);

    Subscription& operator[](std::uint32_t handle) { return *reinterpret_cast<Subscription*>(slots_.at(handle)); }
    const Subscription& operator[](std::uint32_t handle) const {
        return *reinterpret_cast<const Subscription*>(slots_.at(handle));
    }
    Form form(const Subscription& subscription) const;

    // After a removal: the handle of a subscription that should move, so that memory is proportional to what is stored,
    // or kNone.
    std::uint32_t to_compact(std::uint32_t removed) const { return slots_.to_compact(removed); }
    // Moves a subscription. Returns its new handle.
    std::uint32_t move(std::uint32_t handle);

    std::size_t bytes() const { return slots_.bytes() + long_forms_.capacity() * sizeof(LongForm) + long_form_bytes_; }

  private:
    using LongForm = std::vector<std::uint8_t>;

    std::uint32_t keep_long_form(Form form);
    void drop_long_form(std::uint32_t number);
    static std::uint32_t long_form(const Subscription& subscription);

    SizedSlots<16, 31> slots_;
    std::vector<LongForm> long_forms_;
    std::vector<std::uint32_t> free_long_forms_;
    std::size_t long_form_bytes_ = 0;
};

}  // namespace mercast
