#include "flat.hpp"

#include <algorithm>
#include <cstring>

namespace mercast {
namespace {

// An IN of more values, and a range over more buckets, is filed more coarsely.
constexpr std::uint32_t kMostPoints = 16;
constexpr std::uint32_t kMostBuckets = 12;
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
    double cost = 2;  // the share of publications that will look at the entry
};

FlatIndex::FlatIndex() = default;

FlatIndex::~FlatIndex() {
    ids_.each([this](const IdKey&, std::uint32_t handle) { delete[] details(handle).long_form; });
}

Form FlatIndex::form_of(const Details& details) {
    const std::uint8_t* bytes = details.long_form;
    if (bytes == nullptr) bytes = reinterpret_cast<const std::uint8_t*>(places(const_cast<Details&>(details)) + details.copies);
    return {bytes, details.form_bytes};
}

Form FlatIndex::form(std::int64_t id) const { return form_of(details(ids_.find({id}))); }

std::uint32_t FlatIndex::destination(std::int64_t id) const { return details(ids_.find({id})).destination; }

void FlatIndex::add(std::int64_t id, const Conjunction& conjunction, std::optional<std::string_view> destination) {
    form_.clear();
    write_form(conjunction, vocabulary_, form_);
    read_terms(form_, vocabulary_, dimensions_, true, terms_);
    std::vector<std::uint32_t> outgrown;
    for (const Interval& interval : terms_.intervals) {
        if (!interval.is_absence() && dimensions_.note(interval.dimension, interval.first, interval.last)) {
            outgrown.push_back(interval.dimension);
        }
    }
    const std::uint32_t number = destination ? destinations_.acquire(*destination) : Interner::kUnknown;
    file({id, next_sequence_++, number}, form_);
    for (const std::uint32_t dimension : outgrown) {
        const std::uint32_t grid = dimensions_.refine(dimension);
        refile_lists_of(grid);
        dimensions_.drop_if_unused(grid);
    }
}

void FlatIndex::remove(std::int64_t id) {
    const std::uint32_t handle = ids_.find({id});
    const Details& found = details(handle);
    const Form form = form_of(found);
    form_.assign(form.begin(), form.end());
    if (found.destination != Interner::kUnknown) destinations_.release(found.destination);
    unfile(handle);
    release_dimensions(form_, dimensions_);
    release_form(form_, vocabulary_);
    if (ids_.size() == 0) next_sequence_ = publications_ = 0;
}

void FlatIndex::file(const Subscription& subscription, Form form) {
    target_lists_.clear();
    FilterWord word = 0;
    if (terms_.can_match()) {
        const Target target = choose_target(terms_);
        collect_lists(target);
        word = choose_filter(terms_, target.interval);
    }
    RecordHeader header;
    header.id = static_cast<std::uint32_t>(subscription.id);
    header.destination = subscription.destination;
    header.shape = shape_for(terms_);
    const std::uint32_t record = records_.allocate(record_bytes(terms_, header.shape));
    if (subscription.id < 0 || subscription.id > 0xffffffffLL) header.shape |= shape::kIdIsLong;

    const auto copies = static_cast<std::uint32_t>(target_lists_.size());
    const std::size_t fixed = sizeof(Details) + copies * sizeof(Place);
    const bool is_long = fixed + form.size() > decltype(details_)::kLargest;
    const std::uint32_t handle = details_.allocate(is_long ? fixed : fixed + form.size());
    header.details = handle;
    write_record(records_.at(record), header, terms_);

    Details& kept = details(handle);
    kept = Details{subscription.id, subscription.sequence, nullptr, record, static_cast<std::uint32_t>(form.size()),
                   subscription.destination, copies};
    if (is_long) {
        auto* bytes = new std::uint8_t[form.size()];
        std::memcpy(bytes, form.data(), form.size());
        kept.long_form = bytes;
        long_form_bytes_ += form.size();
    } else if (!form.empty()) {
        std::memcpy(places(kept) + copies, form.data(), form.size());
    }
    for (std::uint32_t i = 0; i < copies; ++i) {
        places(kept)[i] = {target_lists_[i], lists_.append(target_lists_[i], word, record)};
        dimensions_.retain_grid(first_grid(word));
        dimensions_.retain_grid(second_grid(word));
    }
    entries_ += copies;
    ids_.insert({subscription.id}, handle);
}

void FlatIndex::unfile(std::uint32_t handle) {
    Details& going = details(handle);
    take_out_entries(going);
    ids_.erase({going.id});
    if (going.long_form != nullptr) {
        long_form_bytes_ -= going.form_bytes;
        delete[] going.long_form;
    }
    const std::uint32_t record = going.record;
    records_.free(record);
    details_.free(handle);
    compact_records(record);
    compact_details(handle);
}

void FlatIndex::take_out_entries(Details& going) {
    entries_ -= going.copies;
    for (std::uint32_t i = 0; i < going.copies; ++i) {
        const auto [list, position] = places(going)[i];
        const FilterWord word = lists_.word(list, position);
        const std::uint32_t moved = lists_.remove(list, position);
        if (moved != kNone) {
            Details& other = details(details_of(records_.at(moved)));
            Place* place = places(other);
            while (place->list != list) ++place;
            place->position = position;
        }
        const EntryLists::Owner owner = lists_.owner(list);
        if (!owner.is_bucket && owner.number != kNone) --dimensions_[owner.number].point_entries;
        if (lists_.size(list) == 0) drop_list(list);
        dimensions_.release_grid(first_grid(word));
        dimensions_.release_grid(second_grid(word));
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
        points_.erase({owner.key, owner.number});
        --dimensions_[owner.number].point_lists;
    }
}

void FlatIndex::refile_lists_of(std::uint32_t grid) {
    std::vector<std::int64_t> moving;
    const std::uint32_t buckets = dimensions_.grid(grid).is_plain() ? 1 : Grid::kBuckets;
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        const std::uint32_t list = dimensions_.grid(grid).list(bucket);
        if (list == kNone) continue;
        for (std::uint32_t i = 0; i < lists_.size(list); ++i) {
            moving.push_back(details(details_of(records_.at(lists_.reference(list, i)))).id);
        }
    }
    std::sort(moving.begin(), moving.end());
    moving.erase(std::unique(moving.begin(), moving.end()), moving.end());
    // The grid must not go while its entries move, or another could take its number.
    dimensions_.retain_grid(grid);
    std::vector<std::uint8_t> form;
    for (const std::int64_t id : moving) {
        const std::uint32_t handle = ids_.find({id});
        const Details& found = details(handle);
        const Subscription subscription{found.id, found.sequence, found.destination};
        form.assign(form_of(found).begin(), form_of(found).end());
        unfile(handle);
        read_terms(form, vocabulary_, dimensions_, false, terms_);
        file(subscription, form);
    }
    dimensions_.release_grid(grid);
}

void FlatIndex::compact_records(std::uint32_t freed) {
    const std::uint32_t moving = records_.to_compact(freed);
    if (moving == kNone) return;
    const std::uint32_t moved = records_.allocate(records_.slot_bytes(moving));
    std::memcpy(records_.at(moved), records_.at(moving), records_.slot_bytes(moving));
    Details& owner = details(details_of(records_.at(moved)));
    owner.record = moved;
    for (std::uint32_t i = 0; i < owner.copies; ++i) {
        lists_.set_reference(places(owner)[i].list, places(owner)[i].position, moved);
    }
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
    ids_.each([&](const IdKey& key, std::uint32_t handle) { found.emplace_back(details(handle).sequence, key.id); });
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> ids;
    ids.reserve(found.size());
    for (const auto& [sequence, id] : found) ids.push_back(id);
    return ids;
}

FlatIndex::Figures FlatIndex::figures() const {
    const std::size_t bytes = vocabulary_.bytes() + destinations_.bytes() + dimensions_.bytes() + lists_.bytes() +
                              points_.bytes() + ids_.bytes() + records_.bytes() + details_.bytes() + long_form_bytes_;
    return {lists_.count(), entries_, dimensions_.count(), dimensions_.grid_count(), bytes};
}

double FlatIndex::presence(std::uint32_t dimension) const {
    const Dimension& found = dimensions_[dimension];
    const double guess = std::min(1.0, found.uses / (ids_.size() + 1.0));
    return (static_cast<double>(found.publications) + kPriorPublications * guess) /
           (static_cast<double>(publications_) + kPriorPublications);
}

// Half from how many values there are, half from how long the value's list is already: values that many subscriptions
// ask for are mostly those that many publications have, and a list must not grow because it is long.
double FlatIndex::point_share(std::uint32_t dimension, std::uint64_t key) const {
    const Dimension& found = dimensions_[dimension];
    const double values = std::max(found.point_lists + 1, dimensions_.grid(found.newest_grid()).cells());
    const std::uint32_t list = points_.find({key, dimension});
    const double length = list == kNone ? 0 : lists_.size(list);
    return 0.5 / values + 0.5 * length / (found.point_entries + 1.0);
}

FlatIndex::Target FlatIndex::choose_target(const Terms& terms) const {
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
        if (target.count != 0) {
            target.kind = Target::Kind::Points;
            target.cost = 0;
            for (std::uint32_t k = 0; k < target.count; ++k) {
                target.cost += point_share(interval.dimension, target.keys[k]);
            }
        } else {
            target.kind = Target::Kind::Buckets;
            target.grid = dimensions_[interval.dimension].newest_grid();
            const Grid& grid = dimensions_.grid(target.grid);
            target.buckets = grid.buckets(grid.cell(interval.first), grid.cell(interval.last), kMostBuckets);
            target.cost = grid.share(target.buckets);
        }
        target.cost = std::min(target.cost, 1.0) * presence(interval.dimension);
        if (target.cost < best.cost) best = target;
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
                target_lists_.push_back(point_list(target.dimension, target.keys[i]));
            }
            break;
        case Target::Kind::Buckets:
            for (std::uint32_t i = 0; i < target.buckets.count; ++i) {
                target_lists_.push_back(bucket_list(target.grid, target.buckets.first + i));
            }
    }
}

std::uint32_t FlatIndex::point_list(std::uint32_t dimension, std::uint64_t key) {
    std::uint32_t list = points_.find({key, dimension});
    if (list == kNone) {
        list = lists_.create({key, dimension, false});
        points_.insert({key, dimension}, list);
        ++dimensions_[dimension].point_lists;
    }
    ++dimensions_[dimension].point_entries;
    return list;
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

CellRange FlatIndex::cell_range(const Interval& interval) const {
    const std::uint32_t number = dimensions_[interval.dimension].newest_grid();
    if (number > 0xffff) return {};
    const Grid& grid = dimensions_.grid(number);
    const std::uint8_t first = grid.cell(interval.first), last = grid.cell(interval.last);
    return {static_cast<std::uint16_t>(number), first, static_cast<std::uint8_t>(last - first)};
}

double FlatIndex::pass_share(const Interval& interval) const {
    const Grid& grid = dimensions_.grid(dimensions_[interval.dimension].newest_grid());
    double share = 1;
    if (!grid.is_plain()) {
        share = (grid.cell(interval.last) - grid.cell(interval.first) + 1.0) / grid.cells();
    } else if (interval.first > kFirstBound || interval.last < kLastBound) {
        share = 0.9;
    }
    return share * presence(interval.dimension);
}

FilterWord FlatIndex::choose_filter(const Terms& terms, std::size_t filed_under) const {
    // The list says much about the access predicate already, so it comes last.
    constexpr double kSaidAlready = 2;
    std::array<std::pair<double, std::size_t>, 2> best{{{4, kNone}, {4, kNone}}};
    for (std::size_t i = 0; i < terms.intervals.size(); ++i) {
        if (terms.intervals[i].is_absence()) continue;
        const double share = pass_share(terms.intervals[i]) + (i == filed_under ? kSaidAlready : 0);
        if (share < best[0].first) {
            best[1] = best[0];
            best[0] = {share, i};
        } else if (share < best[1].first) {
            best[1] = {share, i};
        }
    }
    const auto range = [&](std::size_t i) { return i == kNone ? CellRange{} : cell_range(terms.intervals[i]); };
    return filter_word(range(best[0].second), range(best[1].second));
}

}  // namespace mercast
