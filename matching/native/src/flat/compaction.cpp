// Compaction: removal, entries that are updated to new grids, and memory that is proportional to what is stored.
//
// Invariants:
// - An entry is where its subscription filed it, or nearer to the start of the same list: a removal moves the last
//   entry into the gap. Only in a list of more than `kSearchedList` entries does it update the moved subscription's
//   place.
// - A grid is retained once for each range of cells in an entry of a list of several, and once for each bucket list. An
//   entry that is alone in its list has no conditions and retains nothing.
// - A slot or block moves when its pool has more empty slots than used ones, so memory stays within a constant factor
//   of what is stored.
#include <algorithm>
#include <array>
#include <vector>

#include "flat/flat_index.hpp"
#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

// In a list up to this length, an entry that moved is searched for when it is removed. This costs less than updating
// its place, which would read its subscription from memory.
constexpr std::uint32_t kSearchedList = 16;

}  // namespace

void FlatIndex::remove(std::int64_t id) {
    const std::uint32_t handle = ids_.find(id);
    const Subscription& removed = subscriptions_[handle];
    const Form form = subscriptions_.form(removed);
    refiled_.form.assign(form);
    if (removed.destination != Interner::kUnknown) destinations_.release(removed.destination);
    remove_stored(handle);
    ids_.erase(id);
    release(refiled_.form);
    if (ids_.size() != 0) return;
    next_sequence_ = publications_ = 0;
    drafts_.reset();
}

void FlatIndex::read_terms(Form form, Terms& terms) {
    terms.clear();
    FormReader reader(form);
    Predicate predicate;
    while (reader.next(predicate, operands_)) {
        add_terms(predicate, operands_, dimensions_.find(predicate.attribute_number, aspect_of(predicate)), vocabulary_,
                  terms);
    }
}

void FlatIndex::release(Form form) {
    FormReader reader(form);
    Predicate predicate;
    while (reader.next(predicate)) {
        const bool is_gone = dimensions_.release(dimensions_.find(predicate.attribute_number, aspect_of(predicate)));
        if (is_gone) vocabulary_.attributes.release(predicate.attribute_number);
        for (std::uint32_t i = 0; i < predicate.operands; ++i) {
            if (predicate.type == TypeClass::Number) {
                reader.skip_number();
            } else if (const Operand operand = reader.operand(predicate.type); predicate.type == TypeClass::Text) {
                vocabulary_.texts.release(operand.text_number);
            }
        }
    }
}

void FlatIndex::remove_stored(std::uint32_t handle) {
    remove_entries(handle);
    compact_lists();
    subscriptions_.remove(handle);
    compact_subscriptions(handle);
}

void FlatIndex::remove_entries(std::uint32_t handle) {
    const std::span<const Place> places = subscriptions_[handle].places();
    entries_ -= places.size();
    // Prefetches everything that the removal reads, in the order in which one address leads to the next.
    for (const Place& place : places) fetch_line(&lists_.head(place.list));
    for (const Place& place : places) lists_.prefetch_removal(place.list, place.position);
    for (const Place& place : places) {
        if (lists_.size(place.list) > kSearchedList) fetch_line(&subscriptions_[lists_.last_subscription(place.list)]);
    }
    for (std::uint32_t copy = 0; copy < places.size(); ++copy) {
        const std::uint32_t list = places[copy].list;
        const std::uint32_t position = position_of(handle, copy);
        const Entry entry = lists_.entry(list, position);
        // The entry that is left alone will have no conditions.
        const Entry other = lists_.size(list) == 2 ? lists_.entry(list, 1 - position) : Entry();
        const std::uint32_t moved = lists_.remove(list, position);
        if (moved != kNone && lists_.size(list) >= kSearchedList) {
            Place* place = subscriptions_[moved].places().data();
            while (place->list != list) ++place;
            place->position = position;
        }
        const EntryLists::Owner owner = lists_.owner(list);
        if (ListDirectory::is_value(owner)) --dimensions_[owner.number].value_entries;
        if (lists_.size(list) == 0) directory_.drop(list);
        release_grids(entry);
        release_grids(other);
    }
}

// The position of the entry: where it was filed, or nearer to the start if it replaced a removed entry.
std::uint32_t FlatIndex::position_of(std::uint32_t handle, std::uint32_t copy) const {
    const auto [list, filed_at] = subscriptions_[handle].places()[copy];
    if (filed_at < lists_.size(list) && lists_.subscription(list, filed_at) == handle) return filed_at;
    std::uint32_t position = 0;
    while (lists_.subscription(list, position) != handle) ++position;
    return position;
}

void FlatIndex::retain_grids(const Entry& entry, std::uint32_t times) {
    if (times == 0) return;
    for (const CellRange& range : entry.tail.ranges) dimensions_.retain_grid(range.grid, times);
}

void FlatIndex::release_grids(const Entry& entry) {
    for (const CellRange& range : entry.tail.ranges) dimensions_.release_grid(range.grid);
}

bool FlatIndex::is_stale(const EntryTail& tail) const {
    bool is_old = tail.ranges[0].grid == 0;
    for (const CellRange& range : tail.ranges) is_old |= dimensions_.is_old(range.grid);
    return is_old;
}

void FlatIndex::refresh_grown_lists() {
    for (const std::uint32_t list : grown_lists_) refresh(list);
    grown_lists_.clear();
    compact_lists();
}

void FlatIndex::refine_outgrown_dimensions() {
    for (const std::uint32_t dimension : outgrown_) {
        if (!dimensions_.is_outgrown(dimension)) continue;
        const std::uint32_t former = dimensions_.refine(dimension);
        if (former == kNone) continue;
        directory_.move_value_lists(dimension, former);
        refile_lists_of(former);
    }
    outgrown_.clear();
}

// Updates a list's entries to the newest grids each time the list has doubled, so that old grids become unused. An
// entry that was alone gets its conditions back.
void FlatIndex::refresh(std::uint32_t list) {
    if (lists_.size(list) < 2 || (lists_.size(list) > 2 && !dimensions_.has_old_grids())) return;
    std::uint32_t position = 0;
    lists_.each_run(lists_.head(list), [&](const EntryRun& run) {
        for (std::uint32_t i = 0; i < run.count; ++i, ++position) {
            if (is_stale(run.tails[i])) refresh(list, position);
        }
    });
}

void FlatIndex::refresh(std::uint32_t list, std::uint32_t position) {
    const EntryLists::Owner owner = lists_.owner(list);
    const std::uint32_t dimension = owner.is_bucket ? dimensions_.grid(owner.number).dimension() : owner.number;
    const Entry before = lists_.entry(list, position);
    const Subscription& kept = subscriptions_[before.tail.subscription];
    refiled_.id = kept.id;
    read_terms(subscriptions_.form(kept), refiled_.terms);
    estimate(refiled_);
    const auto& intervals = refiled_.terms.intervals;
    std::size_t filed_under = 0;
    while (filed_under < intervals.size() && intervals[filed_under].dimension != dimension) ++filed_under;
    make_entry(refiled_, filed_under, ListDirectory::is_value(owner));
    Entry& entry = refiled_.entry;
    entry.tail.subscription = before.tail.subscription;
    retain_grids(entry, 1);
    lists_.replace(list, position, entry);
    release_grids(before);
}

void FlatIndex::refile_lists_of(std::uint32_t grid) {
    std::vector<std::int64_t> moving;
    const std::uint32_t buckets = dimensions_.grid(grid).is_plain() ? 1 : Grid::kBuckets;
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        const std::uint32_t list = dimensions_.grid(grid).list(bucket);
        if (list == kNone) continue;
        for (std::uint32_t i = 0; i < lists_.size(list); ++i)
            moving.push_back(subscriptions_[lists_.subscription(list, i)].id);
    }
    std::sort(moving.begin(), moving.end());
    moving.erase(std::unique(moving.begin(), moving.end()), moving.end());
    // The grid must stay while its entries move, or a new grid could get its number.
    dimensions_.retain_grid(grid, 1);
    Draft draft;
    for (const std::int64_t id : moving) {
        const std::uint32_t handle = ids_.find(id);
        const Subscription& found = subscriptions_[handle];
        draft.id = id;
        draft.sequence = found.sequence();
        draft.destination = found.destination;
        const Form form = subscriptions_.form(found);
        draft.form.assign(form);
        remove_stored(handle);
        read_terms(draft.form, draft.terms);
        estimate(draft);
        choose_lists(draft);
        store(draft);
    }
    dimensions_.release_grid(grid);
}

void FlatIndex::compact_lists() {
    for (std::uint32_t block = lists_.to_compact(); block != kNone; block = lists_.to_compact()) {
        const Place* place = subscriptions_[lists_.subscription_in(block)].places().data();
        while (!lists_.compact(place->list, block)) ++place;
    }
}

void FlatIndex::compact_subscriptions(std::uint32_t removed) {
    const std::uint32_t moving = subscriptions_.to_compact(removed);
    if (moving == kNone) return;
    std::array<std::uint32_t, Subscription::kMostCopies> positions;
    const Subscription& found = subscriptions_[moving];
    for (std::uint32_t copy = 0; copy < found.places().size(); ++copy) positions[copy] = position_of(moving, copy);
    const std::uint32_t moved = subscriptions_.move(moving);
    const Subscription& kept = subscriptions_[moved];
    for (std::uint32_t copy = 0; copy < kept.places().size(); ++copy) {
        lists_.set_subscription(kept.places()[copy].list, positions[copy], moved);
    }
    ids_.replace(kept.id, moved);
}

}  // namespace mercast
