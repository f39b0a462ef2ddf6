// How the flat index changes: drafts that become entries in lists, entries that go, grids that are outgrown.
#include <algorithm>

#include "flat/flat_index.hpp"
#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

// So many drafts wait between two steps of an addition.
constexpr std::uint64_t kWaiting = 2;
// An index with fewer subscriptions is in the cache, so nothing waits: drafts would take more room than they do.
constexpr std::uint32_t kFew = 64;
// In a list up to this length, an entry that moved is searched for when it goes, which costs less than to keep its place
// up to date: that would touch its subscription.
constexpr std::uint32_t kSearchedList = 16;

}  // namespace

void FlatIndex::add(std::int64_t id, Conjunction& conjunction, std::optional<std::string_view> destination) {
    begin();
    for (Predicate& predicate : conjunction.predicates) ask(predicate, conjunction.operands_of(predicate));
    claim(id);
    finish(id, destination);
    settle();
}

void FlatIndex::begin() {
    if (drafts_ == nullptr && ids_.size() >= kFew) drafts_ = std::make_unique<Drafts>();
    writing_ = drafts_ == nullptr ? &only_ : &draft_at(written_);
    writing_->form.clear();
    writing_->terms.clear();
}

bool FlatIndex::finish(std::int64_t id, std::optional<std::string_view> destination) {
    Draft& draft = *writing_;
    draft.id = id;
    draft.sequence = next_sequence_++;
    draft.destination = destination ? destinations_.acquire(*destination) : Interner::kUnknown;
    const bool has_pattern = draft.terms.has_pattern;
    if (drafts_ == nullptr) {
        rate(draft);
        note_bounds(draft);
        aim(draft);
        store(draft);
        refine_outgrown_dimensions();
    } else {
        ++written_;
        step();
    }
    return has_pattern;
}

void FlatIndex::abandon() {
    release(writing_->form);
}

void FlatIndex::step() {
    if (written_ - rated_ > kWaiting) {
        Draft& draft = draft_at(rated_++);
        rate(draft);
        note_bounds(draft);
    }
    if (rated_ - aimed_ > kWaiting) aim(draft_at(aimed_++));
    if (aimed_ - reached_ > kWaiting) reach(draft_at(reached_++));
    if (reached_ - stored_ > kWaiting) store(draft_at(stored_++));
    // A new grid has other cells than drafts were rated by, and other lists than they aim at.
    if (!outgrown_.empty()) settle();
}

void FlatIndex::settle() {
    if (stored_ == written_) return;
    for (; rated_ < written_; ++rated_) {
        rate(draft_at(rated_));
        note_bounds(draft_at(rated_));
    }
    for (; aimed_ < written_; ++aimed_) aim(draft_at(aimed_));
    for (; reached_ < written_; ++reached_) reach(draft_at(reached_));
    for (; stored_ < written_; ++stored_) store(draft_at(stored_));
    refine_outgrown_dimensions();
}

void FlatIndex::ask(Predicate& predicate, std::span<Operand> operands) {
    if (is_range_of_numbers(predicate) &&
        ask_range(predicate.attribute_number, predicate.op, operands.front(), operands.back())) {
        return;
    }
    acquire_texts(predicate, operands, vocabulary_);
    const std::uint32_t dimension = acquire_dimension(predicate, aspect_of(predicate));
    write_form(predicate, operands, writing_->form);
    add_terms(predicate, operands, dimension, vocabulary_, writing_->terms);
}

// A dimension holds its attribute's name.
std::uint32_t FlatIndex::acquire_dimension(Predicate& predicate, Aspect aspect) {
    std::uint32_t dimension = dimensions_.acquire(predicate.attribute_number, aspect);
    if (dimension == kNone) dimension = acquire_other_dimension(predicate, aspect);
    dimensions_.newest_grid(dimension).prefetch();
    return dimension;
}

// One that is new, or whose attribute's number is not known.
std::uint32_t FlatIndex::acquire_other_dimension(Predicate& predicate, Aspect aspect) {
    if (predicate.attribute_number != Interner::kUnknown) {
        vocabulary_.attributes.retain(predicate.attribute_number);
    } else {
        predicate.attribute_number = vocabulary_.attributes.acquire(predicate.attribute);
        const std::uint32_t dimension = dimensions_.acquire(predicate.attribute_number, aspect);
        if (dimension != kNone) {
            vocabulary_.attributes.release(predicate.attribute_number);
            return dimension;
        }
    }
    return dimensions_.make(predicate.attribute_number, aspect);
}

void FlatIndex::note_bounds(const Draft& draft) {
    const bool is_noted = draft.sequence % Dimensions::kOneNotedOf == 0;
    if (!is_noted && !draft.has_plain_grid) return;
    for (const Interval& interval : draft.terms.intervals) {
        if (interval.is_absence() || !(is_noted || dimensions_.newest_grid(interval.dimension).is_plain())) continue;
        dimensions_.note(interval.dimension, interval.first, interval.last);
        if (dimensions_.is_outgrown(interval.dimension)) outgrown_.push_back(interval.dimension);
    }
}

void FlatIndex::reach(const Draft& draft) const {
    for (const std::uint32_t list : draft.lists) lists_.prefetch_end(list);
}

void FlatIndex::store(const Draft& draft) {
    const bool is_decided = draft.entry.tail.id != EntryTail::kUndecided;
    const auto copies = static_cast<std::uint8_t>(draft.lists.size());
    const std::uint32_t handle =
        subscriptions_.add({draft.id, draft.sequence, draft.destination, copies, !is_decided}, draft.terms, draft.form);
    std::uint32_t retained = 0;
    Place* place = subscriptions_[handle].places().data();
    for (const std::uint32_t list : draft.lists) {
        const std::uint32_t position = lists_.append(list, draft.entry, handle);
        *place++ = {list, position};
        // Alone, an entry has no conditions.
        if (position != 0) ++retained;
        const bool has_doubled = (position & (position - 1)) == 0;
        if (has_doubled) grown_lists_.push_back(list);
    }
    retain_grids(draft.entry, retained);
    entries_ += copies;
    ids_.replace(draft.id, handle);
    if (!grown_lists_.empty()) refresh_grown_lists();
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
        move_value_lists(dimension, former);
        refile_lists_of(former);
    }
    outgrown_.clear();
}

void FlatIndex::remove(std::int64_t id) {
    const std::uint32_t handle = ids_.find(id);
    const Subscription& going = subscriptions_[handle];
    const Form form = subscriptions_.form(going);
    again_.form.assign(form);
    if (going.destination != Interner::kUnknown) destinations_.release(going.destination);
    take_out(handle);
    ids_.erase(id);
    release(again_.form);
    if (ids_.size() != 0) return;
    next_sequence_ = publications_ = 0;
    drafts_.reset();
}

void FlatIndex::read_terms(Form form, Terms& terms) {
    terms.clear();
    FormReader reader(form);
    Predicate predicate;
    while (reader.next(predicate, operands_)) {
        add_terms(predicate, operands_, dimensions_.find(predicate.attribute_number, aspect_of(predicate)), vocabulary_, terms);
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

void FlatIndex::take_out(std::uint32_t handle) {
    take_out_entries(handle);
    compact_lists();
    subscriptions_.remove(handle);
    compact_subscriptions(handle);
}

void FlatIndex::take_out_entries(std::uint32_t handle) {
    const std::span<const Place> places = subscriptions_[handle].places();
    entries_ -= places.size();
    // First all that will be read from memory, in the order in which one address leads to another.
    for (const Place& place : places) fetch_line(&lists_.head(place.list));
    for (const Place& place : places) lists_.prefetch_removal(place.list, place.position);
    for (const Place& place : places) {
        if (lists_.size(place.list) > kSearchedList) fetch_line(&subscriptions_[lists_.last_subscription(place.list)]);
    }
    for (std::uint32_t copy = 0; copy < places.size(); ++copy) {
        const std::uint32_t list = places[copy].list;
        const std::uint32_t position = position_of(handle, copy);
        const Entry entry = lists_.entry(list, position);
        // Alone, the other one will have no conditions.
        const Entry other = lists_.size(list) == 2 ? lists_.entry(list, 1 - position) : Entry();
        const std::uint32_t moved = lists_.remove(list, position);
        if (moved != kNone && lists_.size(list) >= kSearchedList) {
            Place* place = subscriptions_[moved].places().data();
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

// Each time a list has doubled, its entries learn of newer grids, so that old grids die out. An entry that was alone gets
// its conditions back.
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
    again_.id = kept.id;
    read_terms(subscriptions_.form(kept), again_.terms);
    rate(again_);
    const auto& intervals = again_.terms.intervals;
    std::size_t filed_under = 0;
    while (filed_under < intervals.size() && intervals[filed_under].dimension != dimension) ++filed_under;
    make_entry(again_, filed_under, is_value(owner));
    Entry& entry = again_.entry;
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
        for (std::uint32_t i = 0; i < lists_.size(list); ++i) moving.push_back(subscriptions_[lists_.subscription(list, i)].id);
    }
    std::sort(moving.begin(), moving.end());
    moving.erase(std::unique(moving.begin(), moving.end()), moving.end());
    // The grid must not go while its entries move, or another could take its number.
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
        take_out(handle);
        read_terms(draft.form, draft.terms);
        rate(draft);
        aim(draft);
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

std::vector<std::int64_t> FlatIndex::ids_in_order() const {
    std::vector<std::pair<std::uint64_t, std::int64_t>> found;
    found.reserve(ids_.size());
    ids_.each([&](std::int64_t id, std::uint32_t handle) { found.emplace_back(subscriptions_[handle].sequence(), id); });
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> ids;
    ids.reserve(found.size());
    for (const auto& [sequence, id] : found) ids.push_back(id);
    return ids;
}

FlatIndex::Figures FlatIndex::figures() const {
    const std::size_t bytes = vocabulary_.bytes() + destinations_.bytes() + dimensions_.bytes() + lists_.bytes() +
                              values_.bytes() + ids_.bytes() + subscriptions_.bytes() + store_.spare_bytes() +
                              (drafts_ == nullptr ? 0 : sizeof(Drafts));
    return {lists_.count(), entries_, dimensions_.count(), dimensions_.grid_count(), bytes};
}

}  // namespace mercast
