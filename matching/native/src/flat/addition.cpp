// Addition: the draft of a subscription and the four steps that store it.
//
//   written      `begin`, a call for each predicate, `finish`: the draft has its form and terms
//   estimated    `estimate`, `record_bounds`: its conditions have cells and costs
//   chosen       `choose_lists`: its lists and its entry are chosen
//   prefetched   `prefetch_lists`: the ends of its lists are on their way to the cache
//   stored       `store`: it is in the index
//
// Invariants:
// - Drafts complete the steps in the order of their addition: written >= estimated >= chosen >= prefetched >= stored.
// - Until it is stored, only the ids and the vocabulary contain a draft.
// - Grids change only while no draft is between two steps, because cells and lists of a draft are those of its grids.
// - An index that has stayed below `kFew` subscriptions since it was empty has no ring of drafts: an addition completes
//   all steps at once.
#include <algorithm>

#include "flat/flat_index.hpp"
#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

// The number of drafts that wait between two steps. One draft waits for memory while the others are processed.
constexpr std::uint64_t kWaiting = 2;
// A smaller index fits into the cache, so additions do not wait: the drafts would take more memory than the index.
constexpr std::uint32_t kFew = 64;

}  // namespace

void FlatIndex::add(std::int64_t id, Conjunction& conjunction, std::optional<std::string_view> destination) {
    begin();
    for (Predicate& predicate : conjunction.predicates) add_predicate(predicate, conjunction.operands_of(predicate));
    reserve_id(id);
    finish(id, destination);
    flush();
}

void FlatIndex::begin() {
    if (drafts_ == nullptr && ids_.size() >= kFew) drafts_ = std::make_unique<Drafts>();
    current_ = drafts_ == nullptr ? &immediate_ : &draft_at(written_);
    current_->form.clear();
    current_->terms.clear();
}

bool FlatIndex::finish(std::int64_t id, std::optional<std::string_view> destination) {
    Draft& draft = *current_;
    draft.id = id;
    draft.sequence = next_sequence_++;
    draft.destination = destination ? destinations_.acquire(*destination) : Interner::kUnknown;
    const bool has_pattern = draft.terms.has_pattern;
    if (drafts_ == nullptr) {
        estimate(draft);
        record_bounds(draft);
        choose_lists(draft);
        store(draft);
        refine_outgrown_dimensions();
    } else {
        ++written_;
        step();
    }
    return has_pattern;
}

void FlatIndex::abandon() { release(current_->form); }

void FlatIndex::step() {
    if (written_ - estimated_ > kWaiting) {
        Draft& draft = draft_at(estimated_++);
        estimate(draft);
        record_bounds(draft);
    }
    if (estimated_ - chosen_ > kWaiting) choose_lists(draft_at(chosen_++));
    if (chosen_ - prefetched_ > kWaiting) prefetch_lists(draft_at(prefetched_++));
    if (prefetched_ - stored_ > kWaiting) store(draft_at(stored_++));
    // A new grid has other cells and lists than the drafts were estimated and filed by.
    if (!outgrown_.empty()) flush();
}

void FlatIndex::flush() {
    if (stored_ == written_) return;
    for (; estimated_ < written_; ++estimated_) {
        estimate(draft_at(estimated_));
        record_bounds(draft_at(estimated_));
    }
    for (; chosen_ < written_; ++chosen_) choose_lists(draft_at(chosen_));
    for (; prefetched_ < written_; ++prefetched_) prefetch_lists(draft_at(prefetched_));
    for (; stored_ < written_; ++stored_) store(draft_at(stored_));
    refine_outgrown_dimensions();
}

void FlatIndex::add_predicate(Predicate& predicate, std::span<Operand> operands) {
    if (is_range_of_numbers(predicate) &&
        add_range(predicate.attribute_number, predicate.op, operands.front(), operands.back())) {
        return;
    }
    acquire_texts(predicate, operands, vocabulary_);
    const std::uint32_t dimension = acquire_dimension(predicate, aspect_of(predicate));
    write_form(predicate, operands, current_->form);
    add_terms(predicate, operands, dimension, vocabulary_, current_->terms);
}

// A dimension retains its attribute's name.
std::uint32_t FlatIndex::acquire_dimension(Predicate& predicate, Aspect aspect) {
    std::uint32_t dimension = dimensions_.acquire(predicate.attribute_number, aspect);
    if (dimension == kNone) dimension = acquire_other_dimension(predicate, aspect);
    dimensions_.newest_grid(dimension).prefetch();
    return dimension;
}

// Makes a dimension, or finds one whose attribute's number is not known.
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

void FlatIndex::record_bounds(const Draft& draft) {
    const bool is_recorded = draft.sequence % Dimensions::kRecordedOneOf == 0;
    if (!is_recorded && !draft.has_plain_grid) return;
    for (const Interval& interval : draft.terms.intervals) {
        if (interval.is_absence() || !(is_recorded || dimensions_.newest_grid(interval.dimension).is_plain())) continue;
        dimensions_.record_bounds(interval.dimension, interval.first, interval.last);
        if (dimensions_.is_outgrown(interval.dimension)) outgrown_.push_back(interval.dimension);
    }
}

void FlatIndex::prefetch_lists(const Draft& draft) const {
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
        // An entry that is alone in its list has no conditions.
        if (position != 0) ++retained;
        const bool has_doubled = (position & (position - 1)) == 0;
        if (has_doubled) grown_lists_.push_back(list);
    }
    retain_grids(draft.entry, retained);
    entries_ += copies;
    ids_.replace(draft.id, handle);
    if (!grown_lists_.empty()) refresh_grown_lists();
}

}  // namespace mercast
