// Filing: which lists a subscription goes to, and what its entries say.
//
// Invariants:
// - A subscription is filed under one condition, its access predicate: in the list of each of its values, or in the
//   buckets that cover its range. One without such a condition is in the list that every publication reads.
// - Every publication that satisfies the subscription reads exactly one of its lists, so no answer has an id twice.
// - An entry rules out nothing that matches. If it decides (`EntryTail::id` is set), passing its ranges is a match.
// - A subscription that cannot match is in no list.
#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "flat/flat_index.hpp"
#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

// An IN of more values is filed as a range.
constexpr std::uint32_t kMostPoints = Subscription::kMostCopies;
// After this many publications, what was seen weighs as much as the guess from the subscriptions.
constexpr double kPriorPublications = 16;

// What a rating is compared by: its weight, of which the lowest bits say where it is, so that the smallest are found
// without branches.
using Order = std::uint64_t;
constexpr Order kNoOrder = ~Order{0};
constexpr Order kPlaceMask = std::bit_ceil(Terms::kMostIntervals) - 1;

Order order_of(double weight, std::size_t place) { return (std::bit_cast<std::uint64_t>(weight) & ~kPlaceMask) | place; }
std::size_t place_in(Order order) { return order & kPlaceMask; }

}  // namespace

struct FlatIndex::Target {
    std::size_t interval = kNone;           // the access predicate's, or none
    std::span<const std::uint64_t> points;  // the values to file by, unless it is filed by a range
};

void FlatIndex::estimate(Draft& draft) const {
    draft.estimates.resize(draft.terms.intervals.size());
    draft.can_match = true;
    draft.has_plain_grid = false;
    const std::uint32_t stored = ids_.size() + 1;
    const double guess_weight = kPriorPublications / stored;
    Estimate* estimate = draft.estimates.begin();
    for (const Interval& interval : draft.terms.intervals) {
        draft.can_match &= !interval.is_empty();
        if (interval.is_absence()) {
            *estimate++ = Estimate();
            continue;
        }
        const Dimension& dimension = dimensions_[interval.dimension];
        const std::uint32_t number = dimension.newest_grid();
        const Grid& grid = dimensions_.grid(number);
        const Grid::Cells cells = grid.cells_of(interval);
        const double presence = dimension.publications + guess_weight * std::min(dimension.uses, stored);
        draft.has_plain_grid |= grid.is_plain();
        const double share = grid.is_plain() ? (interval.has_lower() || interval.has_upper() ? 0.9 : 1.0)
                                             : (cells.last - cells.first + 1) * grid.share_of_cell();
        *estimate++ = {cells, number, presence, share * presence, grid.share(cells.first, cells.last) * presence};
        // How long it is will be asked.
        if (!interval.is_point() || !Grid::is_cut(cells.first)) continue;
        if (const std::uint32_t list = grid.value_list(cells.first); list != kNone) fetch_line(&lists_.head(list));
    }
}

void FlatIndex::choose_lists(Draft& draft) {
    draft.lists.clear();
    if (!draft.can_match) {
        draft.entry = kEmptyEntry;
        return;
    }
    const Target target = choose_target(draft);
    collect_lists(target, draft);
    for (const std::uint32_t list : draft.lists) fetch_line(&lists_.head(list));
    make_entry(draft, target.interval, !target.points.empty());
}

// Half from how many values there are, half from how long the value's list is already: values that many subscriptions
// ask for are mostly those that many publications have, and a list must not grow because it is long.
double FlatIndex::value_share(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const {
    const Dimension& found = dimensions_[dimension];
    const double values = std::max(found.value_lists + 1, dimensions_.newest_grid(dimension).cells() / 2);
    const std::uint32_t list = directory_.find_value_list(dimension, key, cell);
    const double length = list == kNone ? 0 : lists_.size(list);
    return 0.5 / values + 0.5 * length / (found.value_entries + 1.0);
}

// The values that an interval can be filed by, none if it is to be filed as a range.
std::span<const std::uint64_t> FlatIndex::points_of(const Terms& terms, const Interval& interval) {
    if (interval.is_point()) return {&interval.first, 1};
    for (const ValueSet& set : terms.sets) {
        if (set.dimension == interval.dimension && set.count <= kMostPoints) return {&terms.values[set.start], set.count};
    }
    return {};
}

double FlatIndex::points_share(const Interval& interval, const Estimate& estimate, std::span<const std::uint64_t> points) const {
    if (interval.is_point()) return value_share(interval.dimension, interval.first, estimate.cells.first);
    const Grid& grid = dimensions_.grid(estimate.grid);
    double share = 0;
    for (const std::uint64_t point : points) share += value_share(interval.dimension, point, grid.cell(point));
    return share;
}

// That which fewest publications will lead to.
FlatIndex::Target FlatIndex::choose_target(const Draft& draft) const {
    const Terms& terms = draft.terms;
    Order best = kNoOrder;
    for (std::size_t i = 0; i < terms.intervals.size(); ++i) {
        const Interval& interval = terms.intervals[i];
        if (interval.is_absence()) continue;
        const Estimate& estimate = draft.estimates[i];
        double cost = estimate.cost;
        if (const std::span<const std::uint64_t> points = points_of(terms, interval); !points.empty()) {
            cost = std::min(points_share(interval, estimate, points), 1.0) * estimate.presence;
        }
        best = std::min(best, order_of(cost, i));
    }
    if (best == kNoOrder) return {};
    return {place_in(best), points_of(terms, terms.intervals[place_in(best)])};
}

void FlatIndex::collect_lists(const Target& target, Draft& draft) {
    if (target.interval == kNone) {
        draft.lists.push_back(directory_.always_list());
        return;
    }
    const Interval& interval = draft.terms.intervals[target.interval];
    const Estimate& estimate = draft.estimates[target.interval];
    const Grid& grid = dimensions_.grid(estimate.grid);
    for (const std::uint64_t point : target.points) {
        // An interval that begins on a cut begins in the cut's cell. Others do not tell: the first key counts as no bound.
        const bool is_known = interval.is_point() && Grid::is_cut(estimate.cells.first);
        draft.lists.push_back(directory_.value_list(interval.dimension, point, is_known ? estimate.cells.first : grid.cell(point)));
    }
    if (!target.points.empty()) return;
    const Grid::Buckets buckets = grid.buckets(estimate.cells.first, estimate.cells.last);
    buckets.each([&](std::uint32_t bucket) { draft.lists.push_back(directory_.bucket_list(estimate.grid, bucket)); });
}

FilterCode FlatIndex::code_of(const Estimate& estimate) const {
    const Grid& grid = dimensions_.grid(estimate.grid);
    return filter_code(estimate.grid, grid.sixteenth(estimate.cells.first), grid.sixteenth(estimate.cells.last));
}

// All ranges of cells, or those that rule out most if there are too many. The list itself says all about an access
// predicate that is a value, and much about a range, which comes last. The two that rule out most are in the word, too.
void FlatIndex::make_entry(Draft& draft, std::size_t filed_under, bool is_filed_by_value) const {
    const Terms& terms = draft.terms;
    constexpr double kComesLast = 1e18;
    bool is_decided = terms.exclusions.empty() && terms.sets.empty() && !terms.needs_check && !terms.has_pattern &&
                      draft.id >= 0 && draft.id < EntryTail::kUndecided;
    // With room for one that is written in vain: nothing foretells which the access predicate is.
    BoundedVector<Order, Terms::kMostIntervals + 1> orders;
    // The two that come first.
    Order best = kNoOrder, second = kNoOrder;
    for (std::size_t i = 0; i < terms.intervals.size(); ++i) {
        const Estimate& estimate = draft.estimates[i];
        const bool is_list = is_filed_by_value & (i == filed_under);
        const bool has_cells = !terms.intervals[i].is_absence() && estimate.grid <= 0xffff;
        const bool is_kept = has_cells & !is_list;
        is_decided &= is_list | (has_cells & estimate.cells.is_exact);
        const Order order = is_kept ? order_of(i == filed_under ? kComesLast : estimate.weight, i) : kNoOrder;
        orders[orders.size()] = order;
        orders.resize(orders.size() + is_kept);
        second = std::min(second, std::max(best, order));
        best = std::min(best, order);
    }
    if (orders.size() > EntryTail::kRanges) {
        is_decided = false;
        std::sort(orders.begin(), orders.end());
        orders.resize(EntryTail::kRanges);
    }
    // In its place: an entry that is put together elsewhere and copied at once makes the copying wait.
    Entry& entry = draft.entry;
    entry = kEmptyEntry;
    CellRange* range = entry.tail.ranges.data();
    for (const Order order : orders) {
        const Estimate& estimate = draft.estimates[place_in(order)];
        *range++ = {static_cast<std::uint16_t>(estimate.grid), static_cast<std::uint8_t>(estimate.cells.first),
                    static_cast<std::uint8_t>(estimate.cells.last - estimate.cells.first)};
    }
    if (best != kNoOrder) entry.word.codes[0] = code_of(draft.estimates[place_in(best)]);
    if (second != kNoOrder) entry.word.codes[1] = code_of(draft.estimates[place_in(second)]);
    if (is_decided) entry.tail.id = static_cast<std::uint32_t>(draft.id);
}

}  // namespace mercast
