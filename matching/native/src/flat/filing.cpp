// Filing: which lists a subscription is filed in, and what its entries contain.
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

// An IN with more values is filed as a range.
constexpr std::uint32_t kMostPoints = Subscription::kMostCopies;
// After this many publications, observations weigh as much as the estimate from the subscriptions.
constexpr double kPriorPublications = 16;

// The sort key of an estimate: its weight, with its position in the lowest bits. Branch-free: `min` finds the smallest
// and its position, where the outcome of a comparison is not predictable.
using Order = std::uint64_t;
constexpr Order kNoOrder = ~Order{0};
constexpr Order kPlaceMask = std::bit_ceil(Terms::kMostIntervals) - 1;

Order order_of(double weight, std::size_t place) {
    return (std::bit_cast<std::uint64_t>(weight) & ~kPlaceMask) | place;
}
std::size_t place_in(Order order) { return order & kPlaceMask; }

}  // namespace

struct FlatIndex::Target {
    std::size_t interval = kNone;           // the access predicate's, or kNone
    std::span<const std::uint64_t> points;  // the values to file by; none if it is filed by a range
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
        // The next step reads the list's length.
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

// Half from the number of values, half from the length of the value's list. Values that many subscriptions use are
// mostly those of many publications, but a list must not grow because it is long.
double FlatIndex::value_share(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const {
    const Dimension& found = dimensions_[dimension];
    const double values = std::max(found.value_lists + 1, dimensions_.newest_grid(dimension).cells() / 2);
    const std::uint32_t list = directory_.find_value_list(dimension, key, cell);
    const double length = list == kNone ? 0 : lists_.size(list);
    return 0.5 / values + 0.5 * length / (found.value_entries + 1.0);
}

// The values that an interval can be filed by; none if it is filed as a range.
std::span<const std::uint64_t> FlatIndex::points_of(const Terms& terms, const Interval& interval) {
    if (interval.is_point()) return {&interval.first, 1};
    for (const ValueSet& set : terms.sets) {
        if (set.dimension == interval.dimension && set.count <= kMostPoints)
            return {&terms.values[set.start], set.count};
    }
    return {};
}

double FlatIndex::points_share(const Interval& interval, const Estimate& estimate,
                               std::span<const std::uint64_t> points) const {
    if (interval.is_point()) return value_share(interval.dimension, interval.first, estimate.cells.first);
    const Grid& grid = dimensions_.grid(estimate.grid);
    double share = 0;
    for (const std::uint64_t point : points) share += value_share(interval.dimension, point, grid.cell(point));
    return share;
}

// Chooses the access predicate that the fewest publications are expected to satisfy.
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
        // An interval that begins on a cut begins in the cut's cell. Other intervals do not: the first key is not a
        // bound.
        const bool is_known = interval.is_point() && Grid::is_cut(estimate.cells.first);
        draft.lists.push_back(
            directory_.value_list(interval.dimension, point, is_known ? estimate.cells.first : grid.cell(point)));
    }
    if (!target.points.empty()) return;
    const Grid::Buckets buckets = grid.buckets(estimate.cells.first, estimate.cells.last);
    buckets.each([&](std::uint32_t bucket) { draft.lists.push_back(directory_.bucket_list(estimate.grid, bucket)); });
}

FilterCode FlatIndex::code_of(const Estimate& estimate) const {
    const Grid& grid = dimensions_.grid(estimate.grid);
    return filter_code(estimate.grid, grid.sixteenth(estimate.cells.first), grid.sixteenth(estimate.cells.last));
}

// Writes the ranges of cells, or the most selective ones if there are too many. The list decides an access predicate
// that is a value and most of one that is a range, which therefore comes last. The two most selective ranges are also
// in the word.
void FlatIndex::make_entry(Draft& draft, std::size_t filed_under, bool is_filed_by_value) const {
    const Terms& terms = draft.terms;
    constexpr double kComesLast = 1e18;
    bool is_decided = terms.exclusions.empty() && terms.sets.empty() && !terms.needs_check && !terms.has_pattern &&
                      draft.id >= 0 && draft.id < EntryTail::kUndecided;
    // One spare slot: the entry of the access predicate is written too and then overwritten. Branch-free, because the
    // position of the access predicate is not predictable.
    BoundedVector<Order, Terms::kMostIntervals + 1> orders;
    // The two most selective ranges.
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
    // Written in place: copying an entry that was just written elsewhere stalls until its stores have left the store
    // buffer.
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
