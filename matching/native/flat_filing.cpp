// How the flat index chooses where to file a subscription, and what its entries say.
#include <algorithm>

#include "fetch_line.hpp"
#include "flat.hpp"

namespace mercast {
namespace {

// An IN of more values is filed as a range.
constexpr std::uint32_t kMostPoints = Subscription::kMostCopies;
// After this many publications, what was seen weighs as much as the guess from the subscriptions.
constexpr double kPriorPublications = 16;

}  // namespace

struct FlatIndex::Target {
    enum class Kind { Always, Points, Buckets };

    Kind kind = Kind::Always;
    std::size_t interval = kNone;  // the access predicate's
    std::uint32_t dimension = 0;
    const std::uint64_t* keys = nullptr;
    std::uint32_t count = 0;
    std::uint32_t grid = 0;
    Grid::Buckets buckets{};
    double cost = 0;  // proportional to the publications that will look at the entry
};

void FlatIndex::aim(Draft& draft) {
    draft.lists.clear();
    draft.entry = Entry();
    if (!draft.terms.can_match()) return;
    rate_intervals(draft);
    const Target target = choose_target(draft);
    collect_lists(target, draft.lists);
    for (const std::uint32_t list : draft.lists) fetch_line(&lists_.head(list));
    draft.entry = make_entry(draft, target.interval, target.kind == Target::Kind::Points);
}

void FlatIndex::rate_intervals(Draft& draft) const {
    draft.ratings.clear();
    const double guess_weight = kPriorPublications / (ids_.size() + 1.0);
    for (const Interval& interval : draft.terms.intervals) {
        Rating rating;
        if (!interval.is_absence()) {
            const Dimension& dimension = dimensions_[interval.dimension];
            rating.grid = dimension.newest_grid();
            const Grid& grid = dimensions_.grid(rating.grid);
            const bool has_lower = interval.first > kFirstBound, has_upper = interval.last < kLastBound;
            rating.cells = grid.cells_of(interval.first, interval.last, has_lower, has_upper);
            rating.presence = static_cast<double>(dimension.publications) +
                              guess_weight * std::min(dimension.uses, ids_.size() + 1);
            rating.share = grid.is_plain() ? (has_lower || has_upper ? 0.9 : 1.0)
                                           : (rating.cells.last - rating.cells.first + 1) * grid.share_of_cell();
        }
        draft.ratings.push_back(rating);
    }
}

// Half from how many values there are, half from how long the value's list is already: values that many subscriptions
// ask for are mostly those that many publications have, and a list must not grow because it is long.
double FlatIndex::value_share(std::uint32_t dimension, std::uint64_t key, std::uint8_t cell) const {
    const Dimension& found = dimensions_[dimension];
    const double values = std::max(found.value_lists + 1, dimensions_.newest_grid(dimension).cells() / 2);
    const std::uint32_t list = find_value_list(dimension, key, cell);
    const double length = list == kNone ? 0 : lists_.size(list);
    return 0.5 / values + 0.5 * length / (found.value_entries + 1.0);
}

FlatIndex::Target FlatIndex::choose_target(const Draft& draft) const {
    const Terms& terms = draft.terms;
    Target best;
    for (std::size_t i = 0; i < terms.intervals.size(); ++i) {
        const Interval& interval = terms.intervals[i];
        if (interval.is_absence()) continue;
        Target target;
        target.interval = i;
        target.dimension = interval.dimension;
        target.keys = &interval.first;
        target.count = interval.is_point() ? 1 : 0;
        for (const ValueSet& set : terms.sets) {
            if (target.count == 0 && set.dimension == interval.dimension && set.count <= kMostPoints) {
                target.keys = &terms.values[set.start];
                target.count = set.count;
            }
        }
        const Rating& rating = draft.ratings[i];
        double share = 0;
        if (target.count != 0) {
            target.kind = Target::Kind::Points;
            const Grid& grid = dimensions_.grid(rating.grid);
            for (std::uint32_t k = 0; k < target.count; ++k) {
                const std::uint8_t cell = interval.is_point() ? rating.cells.first : grid.cell(target.keys[k]);
                share += value_share(interval.dimension, target.keys[k], cell);
            }
        } else {
            target.kind = Target::Kind::Buckets;
            target.grid = rating.grid;
            const Grid& grid = dimensions_.grid(target.grid);
            target.buckets = grid.buckets(rating.cells.first, rating.cells.last);
            share = grid.share(target.buckets);
        }
        target.cost = std::min(share, 1.0) * rating.presence;
        if (best.kind == Target::Kind::Always || target.cost < best.cost) best = target;
    }
    return best;
}

void FlatIndex::collect_lists(const Target& target, std::vector<std::uint32_t>& lists) {
    switch (target.kind) {
        case Target::Kind::Always:
            if (always_ == kNone) always_ = lists_.create({0, kNone, false});
            lists.push_back(always_);
            break;
        case Target::Kind::Points:
            for (std::uint32_t i = 0; i < target.count; ++i) {
                lists.push_back(value_list(target.dimension, target.keys[i]));
            }
            break;
        case Target::Kind::Buckets:
            target.buckets.each([&](std::uint32_t bucket) { lists.push_back(bucket_list(target.grid, bucket)); });
    }
}

std::uint32_t FlatIndex::find_value_list(std::uint32_t dimension, std::uint64_t key, std::uint8_t cell) const {
    if (Grid::is_cut(cell)) return dimensions_.newest_grid(dimension).value_list(cell);
    return dimensions_[dimension].hashed_value_lists == 0 ? kNone : values_.find({key, dimension});
}

void FlatIndex::set_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t list) {
    Dimension& found = dimensions_[dimension];
    Grid& grid = dimensions_.newest_grid(dimension);
    const std::uint8_t cell = grid.cell(key);
    if (Grid::is_cut(cell)) {
        grid.set_value_list(cell, list);
    } else if (list == kNone) {
        values_.erase({key, dimension});
        --found.hashed_value_lists;
    } else {
        values_.insert({key, dimension}, list);
        ++found.hashed_value_lists;
    }
}

std::uint32_t FlatIndex::value_list(std::uint32_t dimension, std::uint64_t key) {
    std::uint32_t list = find_value_list(dimension, key, dimensions_.newest_grid(dimension).cell(key));
    if (list == kNone) {
        list = lists_.create({key, dimension, false});
        set_value_list(dimension, key, list);
        ++dimensions_[dimension].value_lists;
    }
    ++dimensions_[dimension].value_entries;
    return list;
}

void FlatIndex::move_value_lists(std::uint32_t dimension, std::uint32_t former_grid) {
    Dimension& found = dimensions_[dimension];
    Grid& grid = dimensions_.newest_grid(dimension);
    for (std::uint32_t cell = 2; cell < grid.cells(); cell += 2) {
        const auto at = static_cast<std::uint8_t>(cell);
        const std::uint32_t list = found.hashed_value_lists == 0 ? kNone : values_.find({grid.cut(at), dimension});
        if (list == kNone) continue;
        grid.set_value_list(at, list);
        values_.erase({grid.cut(at), dimension});
        --found.hashed_value_lists;
    }
    const Grid& former = dimensions_.grid(former_grid);
    for (std::uint32_t cell = 2; cell < former.cells(); cell += 2) {
        const auto at = static_cast<std::uint8_t>(cell);
        if (former.value_list(at) != kNone) set_value_list(dimension, former.cut(at), former.value_list(at));
    }
}

std::uint32_t FlatIndex::bucket_list(std::uint32_t grid, std::uint32_t bucket) {
    std::uint32_t list = dimensions_.grid(grid).list(bucket);
    if (list == kNone) {
        list = lists_.create({bucket, grid, true});
        dimensions_.grid(grid).set_list(bucket, list);
        dimensions_.retain_grid(grid, 1);
    }
    return list;
}

void FlatIndex::drop_list(std::uint32_t list) {
    const EntryLists::Owner owner = lists_.owner(list);
    lists_.destroy(list);
    if (owner.is_bucket) {
        dimensions_.grid(owner.number).set_list(static_cast<std::uint32_t>(owner.key), kNone);
        dimensions_.release_grid(owner.number);
    } else if (owner.number == kNone) {
        always_ = kNone;
    } else {
        set_value_list(owner.number, owner.key, kNone);
        --dimensions_[owner.number].value_lists;
    }
}

bool FlatIndex::is_value(const EntryLists::Owner& owner) {
    return !owner.is_bucket && owner.number != kNone;
}

// The ranges of cells that rule out most come first. The list itself says all about an access predicate that is a value,
// and much about a range, whose cells come last.
Entry FlatIndex::make_entry(const Draft& draft, std::size_t filed_under, bool is_filed_by_value) const {
    const Terms& terms = draft.terms;
    constexpr double kComesLast = 1e18;
    std::array<std::pair<double, std::size_t>, EntryTail::kRanges> best;
    std::size_t count = 0;
    bool is_decided = terms.exclusions.empty() && terms.sets.empty() && !terms.needs_check && !terms.has_pattern &&
                      draft.id >= 0 && draft.id < EntryTail::kUndecided;
    for (std::size_t i = 0; i < terms.intervals.size(); ++i) {
        is_decided &= !terms.intervals[i].is_absence();
        if (terms.intervals[i].is_absence() || (i == filed_under && is_filed_by_value)) continue;
        const Rating& rating = draft.ratings[i];
        const double share = i == filed_under ? kComesLast : rating.share * rating.presence;
        is_decided &= rating.cells.is_exact && rating.grid <= 0xffff;
        if (count == best.size()) {
            is_decided = false;
            if (share >= best[count - 1].first) continue;
            --count;
        }
        std::size_t place = count++;
        for (; place != 0 && best[place - 1].first > share; --place) best[place] = best[place - 1];
        best[place] = {share, i};
    }
    Entry entry;
    for (std::size_t place = 0; place < count; ++place) {
        const Rating& rating = draft.ratings[best[place].second];
        if (rating.grid > 0xffff) continue;
        entry.tail.ranges[place] = {static_cast<std::uint16_t>(rating.grid), rating.cells.first,
                                    static_cast<std::uint8_t>(rating.cells.last - rating.cells.first)};
        if (place >= entry.word.codes.size()) continue;
        const Grid& grid = dimensions_.grid(rating.grid);
        entry.word.codes[place] = filter_code(rating.grid, grid.sixteenth(rating.cells.first), grid.sixteenth(rating.cells.last));
    }
    if (is_decided) entry.tail.id = static_cast<std::uint32_t>(draft.id);
    return entry;
}

}  // namespace mercast
