// Matching: the publication's keys and cells, the lists they lead to, the entries whose filter words pass, their tails
// and their subscriptions.
//
// Invariants:
// - The index does not change, so several threads may match at once, each with its own `Scratch`.
// - Between publications a scratch has no keys and no cells, and its filter table passes only words without conditions:
//   `unload` undoes `load` and `find_lists`.
// - No draft waits: the caller called `flush`.
#include <algorithm>

#include "flat/flat_index.hpp"
#include "flat/sorting.hpp"
#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

constexpr std::size_t kSubscriptionsAhead = 16;
constexpr std::size_t kListsAhead = 12;
constexpr std::size_t kTailsAhead = 24;
// The words of this many runs are prefetched as the runs are found. More would evict each other from the cache.
constexpr std::size_t kRunsAtOnce = 256;

}  // namespace

void FlatIndex::set_keys(Scratch& scratch, std::uint32_t attribute, Aspect aspect, KeyPair keys) const {
    const std::uint32_t dimension = dimensions_.find(attribute, aspect);
    if (dimension == kNone) return;
    scratch.keys[dimension] = keys;
    scratch.dimensions.push_back(dimension);
    const Dimension& found = dimensions_[dimension];
    dimensions_.newest_grid(dimension).prefetch();
    if (found.hashed_value_lists != 0) directory_.prefetch_hashed(dimension, keys.floor);
}

void FlatIndex::load(Scratch& scratch) const {
    if (scratch.keys.size() < dimensions_.bound()) scratch.keys.resize(dimensions_.bound());
    if (scratch.cells.size() < dimensions_.grid_bound()) scratch.cells.resize(dimensions_.grid_bound());
    scratch.cells[0] = 1;
    scratch.dimensions.clear();
    for (const Field& field : scratch.event.fields()) {
        switch (field.type) {
            case TypeClass::Number:
                set_keys(scratch, field.attribute, Aspect::Number,
                         {field.number.floor_key(), field.number.ceiling_key()});
                break;
            case TypeClass::Text: {
                const std::uint64_t identity = identity_key(field.text_number), order = text_order_key(field.text);
                set_keys(scratch, field.attribute, Aspect::Identity, {identity, identity});
                set_keys(scratch, field.attribute, Aspect::Order, {order, order});
                break;
            }
            case TypeClass::Truth: {
                const std::uint64_t key = wide_truth_key(field.truth);
                set_keys(scratch, field.attribute, Aspect::Truth, {key, key});
            }
        }
        set_keys(scratch, field.attribute, Aspect::Presence, {kPresentKey, kPresentKey});
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
        fetch_line(&lists_.head(list));
    };
    if (directory_.always() != kNone) add_list(directory_.always());
    for (const std::uint32_t dimension : scratch.dimensions) {
        const Dimension& found = dimensions_[dimension];
        const std::uint64_t key = scratch.keys[dimension].floor;
        // A value between two keys equals no value that a subscription is filed by.
        const bool is_on_key = key == scratch.keys[dimension].ceiling;
        std::uint32_t cell = 0;
        for (std::size_t i = 0; i < found.grid_count; ++i) {
            const Grid& grid = dimensions_.grid(found.grids[i]);
            cell = grid.cell(key, is_on_key);
            scratch.cells[found.grids[i]] = static_cast<std::uint8_t>(cell);
            scratch.filter.allow(found.grids[i], grid.sixteenth(cell));
            for (const std::uint32_t list : grid.lists_with(cell)) {
                if (list != kNone) add_list(list);
            }
        }
        std::uint32_t list = kNone;
        if (Grid::is_cut(cell)) {
            list = dimensions_.newest_grid(dimension).value_list(cell);
        } else if (is_on_key && found.hashed_value_lists != 0) {
            list = directory_.find_hashed(dimension, key);
        }
        if (list != kNone) add_list(list);
    }
}

std::uint64_t FlatIndex::filter(Scratch& scratch, std::uint32_t EntryTail::* wanted) const {
    scratch.undecided.clear();
    const std::uint64_t entries = find_runs(scratch);
    const std::size_t count = scratch.runs.empty() ? 0 : scratch.filter.find_passing(scratch.runs, scratch.passing);
    const std::size_t alone = scratch.undecided.size();
    scratch.undecided.resize(alone + count);
    scratch.decided.resize(count);
    const std::uint8_t* cells = scratch.cells.data();
    const EntryTail* const* passing = scratch.passing.data();
    std::uint32_t* decided = scratch.decided.data();
    std::uint32_t* undecided = scratch.undecided.data() + alone;
    // Branch-free: which entry passes is not predictable. Each is written to both outputs, and the ends move if it
    // counts. The tails are prefetched kTailsAhead ahead.
    for (std::size_t i = 0; i < count; ++i) {
        fetch_line(passing[std::min(i + kTailsAhead, count - 1)]);
        const EntryTail& tail = *passing[i];
        const bool is_passing = passes(tail, cells), is_decided = tail.id != EntryTail::kUndecided;
        *decided = tail.*wanted;
        decided += is_passing & is_decided;
        *undecided = tail.subscription;
        undecided += is_passing & !is_decided;
    }
    scratch.decided.resize(static_cast<std::size_t>(decided - scratch.decided.data()));
    scratch.undecided.resize(static_cast<std::size_t>(undecided - scratch.undecided.data()));
    return entries;
}

std::uint64_t FlatIndex::find_runs(Scratch& scratch) const {
    const std::vector<std::uint32_t>& lists = scratch.lists;
    std::uint64_t entries = 0;
    scratch.runs.clear();
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (i + kListsAhead < lists.size()) fetch_line(lists_.head(lists[i + kListsAhead]).full);
        const EntryLists::Head& head = lists_.head(lists[i]);
        entries += head.size;
        if (head.size == 1) {
            scratch.undecided.push_back(head.last);
        } else {
            lists_.each_run(head, [&](const EntryRun& run) {
                if (scratch.runs.size() < kRunsAtOnce) fetch_line(run.words);
                scratch.runs.push_back(run);
            });
        }
    }
    return entries;
}

template <typename Visit>
void FlatIndex::each_subscription(const std::vector<std::uint32_t>& handles, Visit visit) const {
    const auto fetch = [&](std::size_t i) {
        if (i >= handles.size()) return;
        const auto* start = reinterpret_cast<const std::byte*>(&subscriptions_[handles[i]]);
        fetch_line(start);
        fetch_line(start + 64);
    };
    for (std::size_t i = 0; i < kSubscriptionsAhead; ++i) fetch(i);
    for (std::size_t i = 0; i < handles.size(); ++i) {
        fetch(i + kSubscriptionsAhead);
        visit(subscriptions_[handles[i]]);
    }
}

bool FlatIndex::matches(const Scratch& scratch, const Subscription& subscription) const {
    if (subscription.has_conditions()) {
        if (!conditions_hold(subscription.conditions(), subscription.shape, scratch.keys.data())) return false;
        if ((subscription.shape & shape::kNeedsCheck) == 0) return true;
    }
    return satisfies(scratch.event, subscriptions_.form(subscription), vocabulary_);
}

void FlatIndex::match(Scratch& scratch, Answer& answer) const {
    answer.pending.clear();
    load(scratch);
    find_lists(scratch);
    answer.candidates = filter(scratch, &EntryTail::id);
    answer.ids.assign(scratch.decided.begin(), scratch.decided.end());
    answer.evaluated = scratch.undecided.size();
    each_subscription(scratch.undecided, [&](const Subscription& subscription) {
        if (!matches(scratch, subscription)) return;
        const bool is_pending = (subscription.shape & shape::kHasPattern) != 0;
        (is_pending ? answer.pending : answer.ids).push_back(subscription.id);
    });
    unload(scratch);
    sort_ids(answer.ids, scratch.sorting);
    sort_ids(answer.pending, scratch.sorting);
}

void FlatIndex::match_destinations(Scratch& scratch, DestinationAnswer& answer) const {
    answer.destinations.clear();
    answer.pending.clear();
    answer.without.reset();
    answer.evaluated = 0;
    if (scratch.is_hit.size() < destinations_.bound()) scratch.is_hit.resize(destinations_.bound());
    load(scratch);
    find_lists(scratch);
    answer.candidates = filter(scratch, &EntryTail::subscription);
    const auto hit = [&](const Subscription& subscription) {
        if (subscription.destination == Interner::kUnknown) {
            answer.without = std::min(answer.without.value_or(subscription.id), subscription.id);
        } else {
            scratch.is_hit[subscription.destination] = true;
            answer.destinations.push_back(subscription.destination);
        }
    };
    each_subscription(scratch.decided, [&](const Subscription& subscription) {
        if (scratch.is_hit[subscription.destination]) return;
        ++answer.evaluated;
        hit(subscription);
    });
    each_subscription(scratch.undecided, [&](const Subscription& subscription) {
        if (scratch.is_hit[subscription.destination]) return;
        ++answer.evaluated;
        if (!matches(scratch, subscription)) return;
        if ((subscription.shape & shape::kHasPattern) != 0) {
            answer.pending.push_back(subscription.id);
        } else {
            hit(subscription);
        }
    });
    unload(scratch);
    for (const std::uint32_t destination : answer.destinations) scratch.is_hit[destination] = false;
}

void FlatIndex::record_publication(const Scratch& scratch) {
    ++publications_;
    for (const std::uint32_t dimension : scratch.dimensions) ++dimensions_[dimension].publications;
}

}  // namespace mercast
