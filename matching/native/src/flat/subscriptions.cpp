#include "flat/subscriptions.hpp"

#include <cstring>

namespace mercast {

std::uint32_t Subscriptions::add(const Draft& draft, const Terms& terms, Form form) {
    const std::uint16_t shape = draft.keeps_conditions ? shape_of(terms) : flags_of(terms);
    std::size_t words = 0;
    if (draft.keeps_conditions) {
        words = (condition_bytes(terms, shape) + Subscription::kConditionWord - 1) / Subscription::kConditionWord;
    }
    std::size_t fixed = sizeof(Subscription) + draft.copies * sizeof(Place);
    // Conditions are stored only if the slot has room. The form can decide as well.
    if (fixed + words * Subscription::kConditionWord + sizeof(std::uint32_t) > decltype(slots_)::kLargest) words = 0;
    fixed += words * Subscription::kConditionWord;
    const bool is_long = fixed + form.size() > decltype(slots_)::kLargest;
    const std::uint32_t handle = slots_.allocate(fixed + (is_long ? sizeof(std::uint32_t) : form.size()));

    Subscription& made = (*this)[handle];
    made.id = draft.id;
    made.destination = draft.destination;
    made.shape = shape;
    made.form_bytes_ = is_long ? Subscription::kLongForm : static_cast<std::uint16_t>(form.size());
    made.sequence_low_ = static_cast<std::uint32_t>(draft.sequence);
    made.sequence_high_ = static_cast<std::uint16_t>(draft.sequence >> 32);
    made.copies_ = draft.copies;
    made.condition_words_ = static_cast<std::uint8_t>(words);
    if (words != 0) write_conditions(reinterpret_cast<std::byte*>(&made + 1), shape, terms);
    if (is_long) {
        const std::uint32_t number = keep_long_form(form);
        std::memcpy(made.form_place(), &number, sizeof number);
    } else if (!form.empty()) {
        std::memcpy(made.form_place(), form.data(), form.size());
    }
    return handle;
}

void Subscriptions::remove(std::uint32_t handle) {
    const Subscription& removed = (*this)[handle];
    if (removed.form_bytes_ == Subscription::kLongForm) drop_long_form(long_form(removed));
    slots_.free(handle);
}

std::uint32_t Subscriptions::long_form(const Subscription& subscription) {
    std::uint32_t number;
    std::memcpy(&number, const_cast<Subscription&>(subscription).form_place(), sizeof number);
    return number;
}

Form Subscriptions::form(const Subscription& subscription) const {
    if (subscription.form_bytes_ == Subscription::kLongForm) return long_forms_[long_form(subscription)];
    return {const_cast<Subscription&>(subscription).form_place(), subscription.form_bytes_};
}

std::uint32_t Subscriptions::move(std::uint32_t handle) {
    const std::uint32_t moved = slots_.allocate(slots_.slot_bytes(handle));
    std::memcpy(slots_.at(moved), slots_.at(handle), slots_.slot_bytes(handle));
    slots_.free(handle);
    return moved;
}

std::uint32_t Subscriptions::keep_long_form(Form form) {
    if (free_long_forms_.empty()) {
        free_long_forms_.push_back(static_cast<std::uint32_t>(long_forms_.size()));
        long_forms_.emplace_back();
    }
    const std::uint32_t number = free_long_forms_.back();
    free_long_forms_.pop_back();
    long_forms_[number].assign(form.begin(), form.end());
    long_form_bytes_ += form.size();
    return number;
}

void Subscriptions::drop_long_form(std::uint32_t number) {
    long_form_bytes_ -= long_forms_[number].size();
    LongForm().swap(long_forms_[number]);
    free_long_forms_.push_back(number);
    if (free_long_forms_.size() == long_forms_.size()) {
        std::vector<LongForm>().swap(long_forms_);
        std::vector<std::uint32_t>().swap(free_long_forms_);
    }
}

}  // namespace mercast
