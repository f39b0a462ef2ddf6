#include "ordered_ends.hpp"

#include <algorithm>

namespace mercast::a_tree {

bool OrderedEnds::ByFirst::is_before(const End& one, const End& other) const {
    if (one.key != other.key) return one.key < other.key;
    if (texts != nullptr && (one.detail >> 1) != (other.detail >> 1)) {
        // Two numbers of the interner are two texts.
        return texts->text(static_cast<std::uint32_t>(one.detail >> 1)) <
               texts->text(static_cast<std::uint32_t>(other.detail >> 1));
    }
    return one.detail != other.detail ? one.detail < other.detail : one.owner < other.owner;
}

// The last run that does not begin after the end; the first one when all do.
OrderedEnds::Runs::iterator OrderedEnds::run_for(const End& end) {
    auto run = runs_.upper_bound(end);
    return run == runs_.begin() ? run : std::prev(run);
}

// The number of ends in the run that come before this one.
std::ptrdiff_t OrderedEnds::place_in(const Run& run, const End& end) const {
    const auto before = [order = runs_.key_comp()](const End& one, const End& other) { return order.is_before(one, other); };
    return std::lower_bound(run.ends.begin(), run.ends.end(), end, before) - run.ends.begin();
}

void OrderedEnds::insert(const End& end, std::uint64_t told) {
    if (runs_.empty()) {
        runs_.insert(std::make_unique<Run>(Run{{end}, {told}}));
        return;
    }
    // A run's order among the others does not change by what is put into it, so the set need not know.
    Run& run = **run_for(end);
    const std::ptrdiff_t place = place_in(run, end);
    run.ends.insert(run.ends.begin() + place, end);
    run.told.insert(run.told.begin() + place, told);
    if (run.ends.size() <= kLongestRun) return;
    constexpr std::ptrdiff_t kHalf = kLongestRun / 2;
    auto second = std::make_unique<Run>(Run{{run.ends.begin() + kHalf, run.ends.end()}, {run.told.begin() + kHalf, run.told.end()}});
    run.ends.erase(run.ends.begin() + kHalf, run.ends.end());
    run.told.erase(run.told.begin() + kHalf, run.told.end());
    runs_.insert(std::move(second));
}

void OrderedEnds::update(const End& end, std::uint64_t told) {
    Run& run = **run_for(end);
    run.told[static_cast<std::size_t>(place_in(run, end))] = told;
}

void OrderedEnds::remove(const End& end) {
    const auto found = run_for(end);
    Run& run = **found;
    if (run.ends.size() == 1) {
        runs_.erase(found);
        return;
    }
    const std::ptrdiff_t place = place_in(run, end);
    run.ends.erase(run.ends.begin() + place);
    run.told.erase(run.told.begin() + place);
    join(found);
}

void OrderedEnds::join(Runs::iterator run) {
    if (run != runs_.begin() && (*run)->ends.size() + (*std::prev(run))->ends.size() <= kLongestRun / 2) --run;
    Run& kept = **run;
    const auto next = std::next(run);
    if (next != runs_.end() && kept.ends.size() + (*next)->ends.size() <= kLongestRun / 2) {
        kept.ends.insert(kept.ends.end(), (*next)->ends.begin(), (*next)->ends.end());
        kept.told.insert(kept.told.end(), (*next)->told.begin(), (*next)->told.end());
        runs_.erase(next);
    }
    if (kept.ends.capacity() > 4 * kept.ends.size()) {
        kept.ends.shrink_to_fit();
        kept.told.shrink_to_fit();
    }
}

std::size_t OrderedEnds::bytes() const {
    constexpr std::size_t kSetNode = 48;
    std::size_t total = 0;
    for (const auto& run : runs_) {
        total += kSetNode + sizeof(Run) + run->ends.capacity() * sizeof(End) + run->told.capacity() * sizeof(std::uint64_t);
    }
    return total;
}

}  // namespace mercast::a_tree
