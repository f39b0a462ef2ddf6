#include "a_tree/ordered_ends.hpp"

#include <algorithm>

namespace mercast::a_tree {

bool OrderedEnds::ByFirst::is_before(const End& one, const End& other) const {
    if (one.key != other.key) return one.key < other.key;
    if (texts != nullptr && (one.detail >> 1) != (other.detail >> 1)) {
        // Different numbers of the interner are different texts.
        return texts->text(static_cast<std::uint32_t>(one.detail >> 1)) <
               texts->text(static_cast<std::uint32_t>(other.detail >> 1));
    }
    return one.detail != other.detail ? one.detail < other.detail : one.owner < other.owner;
}

std::pair<OrderedEnds::Run*, OrderedEnds::Runs::iterator> OrderedEnds::run_for(const End& end) {
    const auto after = others_.upper_bound(end);
    if (after == others_.begin()) return {&first_, others_.end()};
    const auto found = std::prev(after);
    return {found->get(), found};
}

// The number of ends in the run before this one.
std::ptrdiff_t OrderedEnds::place_in(const Run& run, const End& end) const {
    const ByFirst order = others_.key_comp();
    const auto before = [&](const End& one, const End& other) { return order.is_before(one, other); };
    return std::lower_bound(run.ends.begin(), run.ends.end(), end, before) - run.ends.begin();
}

void OrderedEnds::insert(const End& end, std::uint64_t link) {
    // An insertion does not change the run's order among the others, so the set stays valid.
    Run& run = *run_for(end).first;
    const std::ptrdiff_t place = place_in(run, end);
    run.ends.insert(run.ends.begin() + place, end);
    run.links.insert(run.links.begin() + place, link);
    if (run.ends.size() > kLongestRun) split(run);
}

void OrderedEnds::split(Run& run) {
    constexpr std::ptrdiff_t kHalf = kLongestRun / 2;
    auto second = std::make_unique<Run>();
    second->ends.assign(run.ends.begin() + kHalf, run.ends.end());
    second->links.assign(run.links.begin() + kHalf, run.links.end());
    run.ends.erase(run.ends.begin() + kHalf, run.ends.end());
    run.links.erase(run.links.begin() + kHalf, run.links.end());
    others_.insert(std::move(second));
}

void OrderedEnds::update(const End& end, std::uint64_t link) {
    Run& run = *run_for(end).first;
    run.links[static_cast<std::size_t>(place_in(run, end))] = link;
}

void OrderedEnds::remove(const End& end) {
    const auto [run, place] = run_for(end);
    const std::ptrdiff_t at = place_in(*run, end);
    if (place != others_.end() && run->ends.size() == 1) {
        others_.erase(place);
        return;
    }
    run->ends.erase(run->ends.begin() + at);
    run->links.erase(run->links.begin() + at);
    join(*run, place == others_.end() ? others_.begin() : std::next(place));
}

// Merges the next run into this one if both are short. The first run is empty only if there are no others.
void OrderedEnds::join(Run& run, Runs::iterator next) {
    if (next != others_.end() && run.ends.size() + (*next)->ends.size() <= kLongestRun / 2) {
        run.ends.insert(run.ends.end(), (*next)->ends.begin(), (*next)->ends.end());
        run.links.insert(run.links.end(), (*next)->links.begin(), (*next)->links.end());
        others_.erase(next);
    } else if (next != others_.end() && run.ends.empty()) {
        run = std::move(**next);
        others_.erase(next);
    }
    if (run.ends.capacity() > 4 * run.ends.size()) {
        run.ends.shrink_to_fit();
        run.links.shrink_to_fit();
    }
}

std::size_t OrderedEnds::bytes() const {
    constexpr std::size_t kSetNode = 48;
    const auto bytes_of = [](const Run& run) {
        return run.ends.capacity() * sizeof(End) + run.links.capacity() * sizeof(std::uint64_t);
    };
    std::size_t total = bytes_of(first_);
    for (const auto& run : others_) total += kSetNode + sizeof(Run) + bytes_of(*run);
    return total;
}

}  // namespace mercast::a_tree
