#include "flat.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace mercast {
namespace {

// An IN of more values, and a range over more buckets, is filed more coarsely.
constexpr std::uint32_t kMostPoints = 16;
constexpr std::uint32_t kMostBuckets = 16;
// After this many publications, what was seen weighs as much as the guess from the subscriptions.
constexpr double kPriorPublications = 16;
// In a list up to this length, an entry that moved is searched for when it goes, which costs less than to keep its place
// up to date: that would touch its subscription.
constexpr std::uint32_t kSearchedList = 48;

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

FlatIndex::FlatIndex() = default;

FlatIndex::~FlatIndex() {
    ids_.each([this](const IdKey&, std::uint32_t handle) { drop_form(details(handle)); });
}

const FlatIndex::LongForm* FlatIndex::long_form(const Details& details) {
    const LongForm* found;
    std::memcpy(&found, form_place(const_cast<Details&>(details)), sizeof found);
    return found;
}

Form FlatIndex::form_of(const Details& details) {
    if (details.form_bytes != Details::kLongForm) return {form_place(const_cast<Details&>(details)), details.form_bytes};
    const LongForm* found = long_form(details);
    return {found->at(), found->bytes};
}

void FlatIndex::store_form(Details& details, Form form) {
    std::uint8_t* place = form_place(details);
    if (details.form_bytes == Details::kLongForm) {
        auto* stored = new (::operator new(sizeof(LongForm) + form.size())) LongForm{form.size()};
        std::memcpy(stored + 1, form.data(), form.size());
        std::memcpy(place, &stored, sizeof stored);
        long_form_bytes_ += form.size();
    } else if (!form.empty()) {
        std::memcpy(place, form.data(), form.size());
    }
}

void FlatIndex::drop_form(const Details& details) {
    if (details.form_bytes != Details::kLongForm) return;
    const LongForm* stored = long_form(details);
    long_form_bytes_ -= stored->bytes;
    ::operator delete(const_cast<LongForm*>(stored));
}

Form FlatIndex::form(std::int64_t id) const { return form_of(details(ids_.find({id}))); }

std::uint32_t FlatIndex::destination(std::int64_t id) const { return destination_of_owner(details(ids_.find({id}))); }

void FlatIndex::add(std::int64_t id, const Conjunction& conjunction, std::optional<std::string_view> destination) {
    form_.clear();
    write_form(conjunction, vocabulary_, form_);
    read_terms(form_, vocabulary_, dimensions_, true, terms_);
    for (const Interval& interval : terms_.intervals) dimensions_.newest_grid(interval.dimension).prefetch_cuts();
    outgrown_.clear();
    for (const Interval& interval : terms_.intervals) {
        if (!interval.is_absence() && dimensions_.note(interval.dimension, interval.first, interval.last)) {
            outgrown_.push_back(interval.dimension);
        }
    }
    const std::uint32_t number = destination ? destinations_.acquire(*destination) : Interner::kUnknown;
    grown_lists_.clear();
    file({id, next_sequence_++, number}, form_);
    for (const std::uint32_t list : grown_lists_) refresh(list);
    for (const std::uint32_t dimension : outgrown_) {
        const std::uint32_t former = dimensions_.refine(dimension);
        move_value_lists(dimension, former);
        refile_lists_of(former);
    }
    if (!grown_lists_.empty()) compact_lists();
}

void FlatIndex::remove(std::int64_t id) {
    const std::uint32_t handle = ids_.find({id});
    const Details& found = details(handle);
    const Form form = form_of(found);
    form_.assign(form.begin(), form.end());
    const std::uint32_t destination = destination_of_owner(found);
    if (destination != Interner::kUnknown) destinations_.release(destination);
    unfile(handle);
    release_dimensions(form_, dimensions_);
    release_form(form_, vocabulary_);
    if (ids_.size() == 0) next_sequence_ = publications_ = 0;
}

void FlatIndex::file(const Subscription& subscription, Form form) {
    target_lists_.clear();
    Entry entry;
    if (terms_.can_match()) {
        rate_intervals();
        const Target target = choose_target();
        collect_lists(target);
        entry = make_entry(target.interval, target.kind == Target::Kind::Points, subscription.id);
    }
    for (const std::uint32_t list : target_lists_) lists_.prefetch_end(list);
    RecordHeader header;
    header.id = static_cast<std::uint32_t>(subscription.id);
    header.destination = subscription.destination;
    header.shape = shape_for(terms_);
    const std::uint32_t record = records_.allocate(record_bytes(terms_, header.shape));
    if (subscription.id < 0 || subscription.id > 0xffffffffLL) header.shape |= shape::kIdIsLong;

    const auto copies = static_cast<std::uint32_t>(target_lists_.size());
    const std::size_t fixed = sizeof(Details) + copies * sizeof(Place);
    const bool is_long = fixed + form.size() > decltype(details_)::kLargest;
    const std::uint32_t handle = details_.allocate(fixed + (is_long ? sizeof(LongForm*) : form.size()));
    header.details = handle;
    write_record(records_.at(record), header, terms_);

    Details& kept = details(handle);
    kept.id = subscription.id;
    kept.record = record;
    kept.sequence_low = static_cast<std::uint32_t>(subscription.sequence);
    kept.sequence_high = static_cast<std::uint16_t>(subscription.sequence >> 32);
    kept.form_bytes = is_long ? Details::kLongForm : static_cast<std::uint16_t>(form.size());
    kept.copies = static_cast<std::uint16_t>(copies);
    store_form(kept, form);
    entry.tail.record = record;
    for (std::uint32_t i = 0; i < copies; ++i) {
        const std::uint32_t list = target_lists_[i];
        if (std::has_single_bit(lists_.size(list))) grown_lists_.push_back(list);
        places(kept)[i] = {list, lists_.append(list, entry)};
        if (lists_.size(list) > 1) retain_grids(entry);
    }
    entries_ += copies;
    ids_.insert({subscription.id}, handle);
}

void FlatIndex::unfile(std::uint32_t handle) {
    Details& going = details(handle);
    take_out_entries(going);
    compact_lists();
    ids_.erase({going.id});
    drop_form(going);
    const std::uint32_t record = going.record;
    records_.free(record);
    details_.free(handle);
    compact_records(record);
    compact_details(handle);
}

void FlatIndex::take_out_entries(Details& going) {
    entries_ -= going.copies;
    for (std::uint32_t i = 0; i < going.copies; ++i) __builtin_prefetch(&lists_.head(places(going)[i].list));
    for (std::uint32_t i = 0; i < going.copies; ++i) {
        const std::uint32_t list = places(going)[i].list;
        const std::uint32_t position = position_of(going, i);
        const Entry entry = lists_.entry(list, position);
        // Alone, the other one will have no conditions.
        const Entry other = lists_.size(list) == 2 ? lists_.entry(list, 1 - position) : Entry();
        const std::uint32_t moved = lists_.remove(list, position);
        if (moved != kNone && lists_.size(list) >= kSearchedList) {
            Place* place = places(details(details_of(records_.at(moved))));
            while (place->list != list) ++place;
            place->position = position;
        }
        const EntryLists::Owner owner = lists_.owner(list);
        if (is_value(owner)) --dimensions_[owner.number].value_entries;
        if (lists_.size(list) == 0) drop_list(list);
        release_grids(entry);
        release_grids(other);
    }
}

// Where the entry is, which is where it was filed unless others took its place: then it moved towards the start.
std::uint32_t FlatIndex::position_of(const Details& owner, std::uint32_t copy) const {
    const auto [list, filed_at] = places(const_cast<Details&>(owner))[copy];
    const std::uint32_t size = lists_.size(list);
    if (filed_at < size && lists_.record(list, filed_at) == owner.record) return filed_at;
    std::uint32_t position = 0;
    while (lists_.record(list, position) != owner.record) ++position;
    return position;
}

void FlatIndex::retain_grids(const Entry& entry) {
    for (const CellRange& range : entry.tail.ranges) dimensions_.retain_grid(range.grid);
}

void FlatIndex::release_grids(const Entry& entry) {
    for (const CellRange& range : entry.tail.ranges) dimensions_.release_grid(range.grid);
}

bool FlatIndex::is_stale(const Entry& entry) const {
    const auto is_old = [this](CellRange range) {
        return range.grid != 0 && dimensions_[dimensions_.grid(range.grid).dimension()].newest_grid() != range.grid;
    };
    const auto& ranges = entry.tail.ranges;
    return ranges[0].grid == 0 || std::any_of(ranges.begin(), ranges.end(), is_old);
}

// Each time a list has doubled, its entries learn of newer grids, so that old grids die out. An entry that was alone gets
// its conditions back.
void FlatIndex::refresh(std::uint32_t list) {
    if (lists_.size(list) < 2 || (lists_.size(list) > 2 && !dimensions_.has_old_grids())) return;
    const EntryLists::Owner owner = lists_.owner(list);
    const std::uint32_t dimension = owner.is_bucket ? dimensions_.grid(owner.number).dimension() : owner.number;
    const bool is_filed_by_value = is_value(owner);
    for (std::uint32_t position = 0; position < lists_.size(list); ++position) {
        const Entry before = lists_.entry(list, position);
        if (!is_stale(before)) continue;
        const Details& kept = details(details_of(records_.at(before.tail.record)));
        read_terms(form_of(kept), vocabulary_, dimensions_, false, terms_);
        rate_intervals();
        std::size_t filed_under = 0;
        while (filed_under < terms_.intervals.size() && terms_.intervals[filed_under].dimension != dimension) ++filed_under;
        Entry entry = make_entry(filed_under, is_filed_by_value, kept.id);
        entry.tail.record = before.tail.record;
        retain_grids(entry);
        lists_.replace(list, position, entry);
        release_grids(before);
    }
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

void FlatIndex::refile_lists_of(std::uint32_t grid) {
    std::vector<std::int64_t> moving;
    const auto move_all = [&](std::uint32_t list) {
        for (std::uint32_t i = 0; i < lists_.size(list); ++i) {
            moving.push_back(details(details_of(records_.at(lists_.record(list, i)))).id);
        }
    };
    const std::uint32_t buckets = dimensions_.grid(grid).is_plain() ? 1 : Grid::kBuckets;
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        const std::uint32_t list = dimensions_.grid(grid).list(bucket);
        if (list != kNone) move_all(list);
    }
    std::sort(moving.begin(), moving.end());
    moving.erase(std::unique(moving.begin(), moving.end()), moving.end());
    // The grid must not go while its entries move, or another could take its number.
    dimensions_.retain_grid(grid);
    std::vector<std::uint8_t> form;
    for (const std::int64_t id : moving) {
        const std::uint32_t handle = ids_.find({id});
        const Details& found = details(handle);
        const Subscription subscription{found.id, found.sequence(), destination_of_owner(found)};
        form.assign(form_of(found).begin(), form_of(found).end());
        unfile(handle);
        read_terms(form, vocabulary_, dimensions_, false, terms_);
        file(subscription, form);
    }
    dimensions_.release_grid(grid);
}

void FlatIndex::compact_lists() {
    for (std::uint32_t block = lists_.to_compact(); block != kNone; block = lists_.to_compact()) {
        Details& owner = details(details_of(records_.at(lists_.record_in(block))));
        const Place* place = places(owner);
        while (!lists_.has_block(place->list, block)) ++place;
        lists_.compact(place->list, block);
    }
}

void FlatIndex::compact_records(std::uint32_t freed) {
    const std::uint32_t moving = records_.to_compact(freed);
    if (moving == kNone) return;
    const std::uint32_t moved = records_.allocate(records_.slot_bytes(moving));
    std::memcpy(records_.at(moved), records_.at(moving), records_.slot_bytes(moving));
    Details& owner = details(details_of(records_.at(moved)));
    for (std::uint32_t i = 0; i < owner.copies; ++i) {
        lists_.set_record(places(owner)[i].list, position_of(owner, i), moved);
    }
    owner.record = moved;
    records_.free(moving);
}

void FlatIndex::compact_details(std::uint32_t freed) {
    const std::uint32_t moving = details_.to_compact(freed);
    if (moving == kNone) return;
    const std::uint32_t moved = details_.allocate(details_.slot_bytes(moving));
    std::memcpy(details_.at(moved), details_.at(moving), details_.slot_bytes(moving));
    set_details(records_.at(details(moved).record), moved);
    ids_.replace({details(moved).id}, moved);
    details_.free(moving);
}

std::vector<std::int64_t> FlatIndex::ids_in_order() const {
    std::vector<std::pair<std::uint64_t, std::int64_t>> found;
    found.reserve(ids_.size());
    ids_.each([&](const IdKey& key, std::uint32_t handle) { found.emplace_back(details(handle).sequence(), key.id); });
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> ids;
    ids.reserve(found.size());
    for (const auto& [sequence, id] : found) ids.push_back(id);
    return ids;
}

FlatIndex::Figures FlatIndex::figures() const {
    const std::size_t bytes = vocabulary_.bytes() + destinations_.bytes() + dimensions_.bytes() + lists_.bytes() +
                              values_.bytes() + ids_.bytes() + records_.bytes() + details_.bytes() + store_.spare_bytes() +
                              long_form_bytes_;
    return {lists_.count(), entries_, dimensions_.count(), dimensions_.grid_count(), bytes};
}

void FlatIndex::rate_intervals() {
    ratings_.clear();
    const double guess_weight = kPriorPublications / (ids_.size() + 1.0);
    for (const Interval& interval : terms_.intervals) {
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
                                           : (rating.cells.last - rating.cells.first + 1.0) / grid.cells();
        }
        ratings_.push_back(rating);
    }
}

// Half from how many values there are, half from how long the value's list is already: values that many subscriptions
// ask for are mostly those that many publications have, and a list must not grow because it is long.
double FlatIndex::value_share(std::uint32_t dimension, std::uint64_t key) const {
    const Dimension& found = dimensions_[dimension];
    const double values = std::max(found.value_lists + 1, dimensions_.newest_grid(dimension).cells() / 2);
    const std::uint32_t list = find_value_list(dimension, key);
    const double length = list == kNone ? 0 : lists_.size(list);
    return 0.5 / values + 0.5 * length / (found.value_entries + 1.0);
}

FlatIndex::Target FlatIndex::choose_target() const {
    Target best;
    for (std::size_t i = 0; i < terms_.intervals.size(); ++i) {
        const Interval& interval = terms_.intervals[i];
        if (interval.is_absence()) continue;
        Target target;
        target.interval = i;
        target.dimension = interval.dimension;
        target.keys = &interval.first;
        target.count = interval.is_point() ? 1 : 0;
        for (const ValueSet& set : terms_.sets) {
            if (target.count == 0 && set.dimension == interval.dimension && set.count <= kMostPoints) {
                target.keys = &terms_.values[set.start];
                target.count = set.count;
            }
        }
        const Rating& rating = ratings_[i];
        double share = 0;
        if (target.count != 0) {
            target.kind = Target::Kind::Points;
            for (std::uint32_t k = 0; k < target.count; ++k) share += value_share(interval.dimension, target.keys[k]);
        } else {
            target.kind = Target::Kind::Buckets;
            target.grid = rating.grid;
            const Grid& grid = dimensions_.grid(target.grid);
            target.buckets = grid.buckets(rating.cells.first, rating.cells.last, kMostBuckets);
            share = grid.share(target.buckets);
        }
        target.cost = std::min(share, 1.0) * rating.presence;
        if (best.kind == Target::Kind::Always || target.cost < best.cost) best = target;
    }
    return best;
}

void FlatIndex::collect_lists(const Target& target) {
    switch (target.kind) {
        case Target::Kind::Always:
            if (always_ == kNone) always_ = lists_.create({0, kNone, false});
            target_lists_.push_back(always_);
            break;
        case Target::Kind::Points:
            for (std::uint32_t i = 0; i < target.count; ++i) {
                target_lists_.push_back(value_list(target.dimension, target.keys[i]));
            }
            break;
        case Target::Kind::Buckets:
            for (std::uint32_t i = 0; i < target.buckets.count; ++i) {
                target_lists_.push_back(bucket_list(target.grid, target.buckets.first + i));
            }
    }
}

std::uint32_t FlatIndex::find_value_list(std::uint32_t dimension, std::uint64_t key) const {
    const Dimension& found = dimensions_[dimension];
    const Grid& grid = dimensions_.newest_grid(dimension);
    const std::uint8_t cell = grid.cell(key);
    if (Grid::is_cut(cell)) return grid.value_list(cell);
    return found.hashed_value_lists == 0 ? kNone : values_.find({key, dimension});
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
    std::uint32_t list = find_value_list(dimension, key);
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
        dimensions_.retain_grid(grid);
    }
    return list;
}

// The ranges of cells that rule out most come first. The list itself says all about an access predicate that is a value,
// and much about a range, whose cells come last.
Entry FlatIndex::make_entry(std::size_t filed_under, bool is_filed_by_value, std::int64_t id) const {
    constexpr double kComesLast = 1e18;
    std::array<std::pair<double, std::size_t>, EntryTail::kRanges> best;
    std::size_t count = 0;
    bool is_decided = terms_.exclusions.empty() && terms_.sets.empty() && !terms_.needs_check && !terms_.has_pattern &&
                      id >= 0 && id < EntryTail::kUndecided;
    for (std::size_t i = 0; i < terms_.intervals.size(); ++i) {
        is_decided &= !terms_.intervals[i].is_absence();
        if (terms_.intervals[i].is_absence() || (i == filed_under && is_filed_by_value)) continue;
        const Rating& rating = ratings_[i];
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
        const Rating& rating = ratings_[best[place].second];
        if (rating.grid > 0xffff) continue;
        entry.tail.ranges[place] = {static_cast<std::uint16_t>(rating.grid), rating.cells.first,
                                    static_cast<std::uint8_t>(rating.cells.last - rating.cells.first)};
        if (place >= entry.word.codes.size()) continue;
        const Grid& grid = dimensions_.grid(rating.grid);
        entry.word.codes[place] = filter_code(rating.grid, grid.sixteenth(rating.cells.first), grid.sixteenth(rating.cells.last));
    }
    if (is_decided) entry.tail.id = static_cast<std::uint32_t>(id);
    return entry;
}

}  // namespace mercast
