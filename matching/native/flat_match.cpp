// How the flat index matches: the publication's keys and cells, the lists they lead to, the entries that pass their
// filter words, their records.
#include <algorithm>

#include "flat.hpp"
#include "sorting.hpp"

namespace mercast {
namespace {

constexpr std::size_t kRecordsAhead = 16;
constexpr std::size_t kListsAhead = 12;
constexpr std::size_t kTailsAhead = 24;

}  // namespace

void FlatIndex::touch(Scratch& scratch, std::uint32_t attribute, Aspect aspect, KeyPair keys) const {
    const std::uint32_t dimension = dimensions_.find(attribute, aspect);
    if (dimension == kNone) return;
    scratch.keys[dimension] = keys;
    scratch.dimensions.push_back(dimension);
    const Dimension& found = dimensions_[dimension];
    dimensions_.newest_grid(dimension).prefetch_cuts();
    if (found.hashed_value_lists != 0) values_.prefetch({keys.floor, dimension});
}

void FlatIndex::load(Scratch& scratch) const {
    if (scratch.keys.size() < dimensions_.bound()) scratch.keys.resize(dimensions_.bound());
    if (scratch.cells.size() < dimensions_.grid_bound()) scratch.cells.resize(dimensions_.grid_bound());
    scratch.cells[0] = 1;
    scratch.dimensions.clear();
    for (const Field& field : scratch.event.fields()) {
        switch (field.type) {
            case TypeClass::Number:
                touch(scratch, field.attribute, Aspect::Number, {field.number.floor_key(), field.number.ceiling_key()});
                break;
            case TypeClass::Text: {
                const std::uint64_t identity = identity_key(field.text_number), order = text_order_key(field.text);
                touch(scratch, field.attribute, Aspect::Identity, {identity, identity});
                touch(scratch, field.attribute, Aspect::Order, {order, order});
                break;
            }
            case TypeClass::Truth: {
                const std::uint64_t key = wide_truth_key(field.truth);
                touch(scratch, field.attribute, Aspect::Truth, {key, key});
            }
        }
        touch(scratch, field.attribute, Aspect::Presence, {kPresentKey, kPresentKey});
    }
}

void FlatIndex::unload(Scratch& scratch) const {
    for (const std::uint32_t dimension : scratch.dimensions) {
        scratch.keys[dimension] = KeyPair();
        const Dimension& found = dimensions_[dimension];
        for (std::size_t i = 0; i < found.grid_count; ++i) {
            scratch.cells[found.grids[i]] = 0;
            scratch.filter.forbid(found.grids[i]);
        }
    }
}

void FlatIndex::find_lists(Scratch& scratch) const {
    scratch.lists.clear();
    const auto add_list = [&](std::uint32_t list) {
        scratch.lists.push_back(list);
        __builtin_prefetch(&lists_.head(list));
    };
    if (always_ != kNone) add_list(always_);
    for (const std::uint32_t dimension : scratch.dimensions) {
        const Dimension& found = dimensions_[dimension];
        const std::uint64_t key = scratch.keys[dimension].floor;
        // A value on no key equals nothing that is filed by value.
        const bool is_on_key = key == scratch.keys[dimension].ceiling;
        std::uint8_t cell = 0;
        for (std::size_t i = 0; i < found.grid_count; ++i) {
            const Grid& grid = dimensions_.grid(found.grids[i]);
            cell = grid.cell(key, is_on_key);
            scratch.cells[found.grids[i]] = cell;
            scratch.filter.allow(found.grids[i], grid.sixteenth(cell));
            for (const std::uint32_t list : grid.lists_with(cell)) {
                if (list != kNone) add_list(list);
            }
        }
        std::uint32_t list = kNone;
        if (Grid::is_cut(cell)) {
            list = dimensions_.newest_grid(dimension).value_list(cell);
        } else if (is_on_key && found.hashed_value_lists != 0) {
            list = values_.find({key, dimension});
        }
        if (list != kNone) add_list(list);
    }
}

std::uint64_t FlatIndex::filter(Scratch& scratch, std::vector<std::int64_t>* decided) const {
    scratch.records.clear();
    scratch.passing.clear();
    const std::uint64_t entries = find_runs(scratch);
    scratch.filter.find_passing(scratch.runs, scratch.passing);
    const std::uint8_t* cells = scratch.cells.data();
    const std::vector<const EntryTail*>& passing = scratch.passing;
    for (std::size_t i = 0; i < passing.size(); ++i) {
        if (i + kTailsAhead < passing.size()) __builtin_prefetch(passing[i + kTailsAhead]);
        const EntryTail* tail = passing[i];
        if (!passes(*tail, cells)) continue;
        if (decided != nullptr && tail->id != EntryTail::kUndecided) {
            decided->push_back(tail->id);
        } else {
            scratch.records.push_back(tail->record);
        }
    }
    return entries;
}

std::uint64_t FlatIndex::find_runs(Scratch& scratch) const {
    const std::vector<std::uint32_t>& lists = scratch.lists;
    std::uint64_t entries = 0;
    scratch.runs.clear();
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (i + kListsAhead < lists.size()) __builtin_prefetch(lists_.head(lists[i + kListsAhead]).chain);
        const EntryLists::Head& head = lists_.head(lists[i]);
        entries += head.size;
        if (head.size == 1) {
            scratch.records.push_back(head.only);
        } else {
            lists_.each_run(head, [&](const EntryRun& run) { scratch.runs.push_back(run); });
        }
    }
    return entries;
}

std::int64_t FlatIndex::id_of(const std::byte* record, std::uint16_t shape) const {
    return (shape & shape::kIdIsLong) != 0 ? details(details_of(record)).id : std::int64_t{low_id_of(record)};
}

// Calls `hit(record, shape, is_pending)` for each record whose conditions hold; `wants(record)` may rule it out before.
template <typename Wants, typename Hit>
void FlatIndex::verify(const Scratch& scratch, Wants wants, Hit hit) const {
    const std::vector<std::uint32_t>& records = scratch.records;
    for (std::size_t i = 0; i < records.size() && i < kRecordsAhead; ++i) __builtin_prefetch(records_.at(records[i]));
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (i + kRecordsAhead < records.size()) __builtin_prefetch(records_.at(records[i + kRecordsAhead]));
        const std::byte* record = records_.at(records[i]);
        if (!wants(record)) continue;
        const std::uint16_t shape = shape_of(record);
        if (!conditions_hold(record, shape, scratch.keys.data())) continue;
        if ((shape & shape::kNeedsCheck) != 0 &&
            !satisfies(scratch.event, form_of(details(details_of(record))), vocabulary_)) {
            continue;
        }
        hit(record, shape, (shape & shape::kHasPattern) != 0);
    }
}

void FlatIndex::match(Scratch& scratch, Answer& answer) const {
    answer.ids.clear();
    answer.pending.clear();
    load(scratch);
    find_lists(scratch);
    answer.candidates = filter(scratch, &answer.ids);
    answer.evaluated = scratch.records.size();
    const auto wants = [](const std::byte*) { return true; };
    verify(scratch, wants, [&](const std::byte* record, std::uint16_t shape, bool is_pending) {
        (is_pending ? answer.pending : answer.ids).push_back(id_of(record, shape));
    });
    unload(scratch);
    sort_ids(answer.ids, scratch.sorting);
    sort_ids(answer.pending, scratch.sorting);
}

void FlatIndex::match_destinations(Scratch& scratch, DestinationAnswer& answer) const {
    answer.destinations.clear();
    answer.pending.clear();
    answer.without.reset();
    if (scratch.is_hit.size() < destinations_.bound()) scratch.is_hit.resize(destinations_.bound());
    load(scratch);
    find_lists(scratch);
    answer.candidates = filter(scratch, nullptr);
    answer.evaluated = 0;
    const auto wants = [&](const std::byte* record) {
        const bool is_wanted = !scratch.is_hit[destination_of(record)];
        answer.evaluated += is_wanted ? 1 : 0;
        return is_wanted;
    };
    verify(scratch, wants, [&](const std::byte* record, std::uint16_t shape, bool is_pending) {
        const std::uint32_t destination = destination_of(record);
        if (is_pending) {
            answer.pending.push_back(id_of(record, shape));
        } else if (destination == Interner::kUnknown) {
            const std::int64_t id = id_of(record, shape);
            if (!answer.without || id < *answer.without) answer.without = id;
        } else {
            scratch.is_hit[destination] = true;
            answer.destinations.push_back(destination);
        }
    });
    unload(scratch);
    for (const std::uint32_t destination : answer.destinations) scratch.is_hit[destination] = false;
}

void FlatIndex::learn(const Scratch& scratch) {
    ++publications_;
    for (const std::uint32_t dimension : scratch.dimensions) ++dimensions_[dimension].publications;
}

}  // namespace mercast
