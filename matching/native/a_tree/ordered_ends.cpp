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

void OrderedEnds::insert(const End& end) {
    if (runs_.empty()) {
        runs_.insert(std::make_unique<Run>(1, end));
        return;
    }
    // A run's order among the others does not change by what is put into it, so the set need not know.
    Run& run = **run_for(end);
    const auto before = [order = runs_.key_comp()](const End& one, const End& other) { return order.is_before(one, other); };
    run.insert(std::upper_bound(run.begin(), run.end(), end, before), end);
    if (run.size() > kLongestRun) {
        auto second = std::make_unique<Run>(run.begin() + kLongestRun / 2, run.end());
        run.erase(run.begin() + kLongestRun / 2, run.end());
        runs_.insert(std::move(second));
    }
}

void OrderedEnds::remove(const End& end) {
    const auto found = run_for(end);
    Run& run = **found;
    const auto before = [order = runs_.key_comp()](const End& one, const End& other) { return order.is_before(one, other); };
    const auto place = std::lower_bound(run.begin(), run.end(), end, before);
    if (run.size() == 1) {
        runs_.erase(found);
        return;
    }
    run.erase(place);
    join(found);
}

void OrderedEnds::update(const End& end) {
    Run& run = **run_for(end);
    const auto before = [order = runs_.key_comp()](const End& one, const End& other) { return order.is_before(one, other); };
    *std::lower_bound(run.begin(), run.end(), end, before) = end;
}

void OrderedEnds::join(Runs::iterator run) {
    if (run != runs_.begin() && (*run)->size() + (*std::prev(run))->size() <= kLongestRun / 2) --run;
    const auto next = std::next(run);
    if (next != runs_.end() && (*run)->size() + (*next)->size() <= kLongestRun / 2) {
        (*run)->insert((*run)->end(), (*next)->begin(), (*next)->end());
        runs_.erase(next);
    }
    if ((*run)->capacity() > 4 * (*run)->size()) (*run)->shrink_to_fit();
}

std::size_t OrderedEnds::bytes() const {
    constexpr std::size_t kSetNode = 48;
    std::size_t total = 0;
    for (const auto& run : runs_) total += kSetNode + sizeof(Run) + run->capacity() * sizeof(End);
    return total;
}

}  // namespace mercast::a_tree
