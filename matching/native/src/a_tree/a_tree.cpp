#include "a_tree/a_tree.hpp"

#include <algorithm>

namespace mercast::a_tree {
ATree::ATree(unsigned identity_bits)
    : verifier_([](std::string_view, std::string_view) { return false; }),
      predicates_(vocabulary_, verifier_),
      graph_(predicates_, identity_bits),
      assembler_(graph_, predicates_) {}

std::uint32_t ATree::find(std::int64_t id) const {
    return table_.find(hash_of_id(id), [&](std::uint32_t number) { return subscriptions_[number].id == id; });
}

void ATree::add(std::int64_t id, const ExpressionForm& expression) {
    const NodeId root = assembler_.assemble(expression);
    std::uint32_t number;
    if (free_.empty()) {
        number = static_cast<std::uint32_t>(subscriptions_.size());
        subscriptions_.emplace_back();
    } else {
        number = free_.back();
        free_.pop_back();
    }
    subscriptions_[number] = {id, 0, offset_of(id)};
    table_.insert(hash_of_id(id), number);
    graph_.subscribe(root, number, subscriptions_[number].offset);
}

std::uint32_t ATree::offset_of(std::int64_t id) {
    constexpr std::int64_t kMiddle = std::int64_t{1} << 31;
    if (size() == 0) {
        base_ = id < INT64_MIN + kMiddle ? INT64_MIN : id - kMiddle;
        first_ = last_ = static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(base_));
        far_ = 0;
    }
    const std::uint64_t distance = static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(base_);
    if (id < base_ || distance >= kFar) {
        ++far_;
        return kFar;
    }
    const auto offset = static_cast<std::uint32_t>(distance);
    first_ = std::min(first_, offset);
    last_ = std::max(last_, offset);
    return offset;
}

std::uint32_t ATree::remove(std::int64_t id) {
    const std::uint32_t number = find(id);
    const std::uint32_t destination = subscriptions_[number].destination;
    graph_.unsubscribe(number);
    table_.erase(hash_of_id(id), number);
    if (subscriptions_[number].offset == kFar) --far_;
    subscriptions_[number] = {};
    free_.push_back(number);
    if (size() == 0) {
        std::vector<Subscription>().swap(subscriptions_);
        std::vector<std::uint32_t>().swap(free_);
        removed_since_measured_ = 0;
    } else if (++removed_since_measured_ > size()) {
        measure_ids();
    }
    return destination;
}

// Recomputes the range of offsets. Ids that only grow leave a gap at the start. One pass after as many removals as
// there are ids keeps the cost per removal constant.
void ATree::measure_ids() {
    removed_since_measured_ = 0;
    std::vector<bool> is_free(subscriptions_.size(), false);
    for (const std::uint32_t number : free_) is_free[number] = true;
    bool is_first = true;
    for (std::uint32_t number = 0; number < subscriptions_.size(); ++number) {
        const std::uint32_t offset = subscriptions_[number].offset;
        if (is_free[number] || offset == kFar) continue;
        first_ = is_first ? offset : std::min(first_, offset);
        last_ = is_first ? offset : std::max(last_, offset);
        is_first = false;
    }
}

std::size_t ATree::bytes() const {
    return vocabulary_.bytes() + predicates_.bytes() + graph_.bytes() + table_.bytes() +
           subscriptions_.capacity() * sizeof(Subscription) + free_.capacity() * sizeof(std::uint32_t);
}

}  // namespace mercast::a_tree
