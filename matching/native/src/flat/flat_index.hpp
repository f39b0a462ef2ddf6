// Flat: conjunctions in access-predicate lists, most of them decided by half a cache line.
//
// A subscription is filed under one of its conditions, its access predicate. An equality or a small IN is filed under a
// hash of dimension and value, a range in the buckets of its dimension's grid. Two ideas are from [THESIS 6, 7].
// PSTBloom's word for each reference rules out most of a list before any subscription is read. PSTHash files by the
// access predicate that the fewest publications satisfy. Flat changes three things:
//
// - PS-Tree's exact predicate spaces become coarse buckets. A wide domain has too many exact spaces, and the conditions
//   decide anyway.
// - The word holds two more conditions, quantised to cells, instead of hashed attributes: it distinguishes values, not
//   only presence.
// - Lists are contiguous in memory, words before references, and data is prefetched before it is read. The cost is
//   cache lines, not comparisons.
//
//   filing.cpp       which lists a subscription is filed in
//   addition.cpp     the steps of an addition
//   matching.cpp     from a publication to ids or destinations
//   compaction.cpp   removal, new grids, memory
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/dimensions.hpp"
#include "core/form.hpp"
#include "core/predicate.hpp"
#include "core/terms.hpp"
#include "flat/answer.hpp"
#include "flat/draft.hpp"
#include "flat/entry_lists.hpp"
#include "flat/hash_tables.hpp"
#include "flat/list_directory.hpp"
#include "flat/subscriptions.hpp"
#include "memory/chunk_store.hpp"

namespace mercast {

class FlatIndex {
  public:
    FlatIndex() = default;
    FlatIndex(const FlatIndex&) = delete;
    FlatIndex& operator=(const FlatIndex&) = delete;

    bool contains(std::int64_t id) const { return ids_.find(id) != kNone; }
    // Prefetches the slot that `contains`, `reserve_id` and `remove` read.
    void prefetch(std::int64_t id) const { ids_.prefetch(id); }

    // An addition: `begin`, `add_predicate` for each predicate, `reserve_id`, `finish`; or `abandon` instead of
    // `reserve_id`. The draft may then wait for memory while others are prepared. Until `flush`, only the ids and the
    // vocabulary contain it.
    void begin();
    // Fills in the predicate's numbers of the vocabulary.
    void add_predicate(Predicate& predicate, std::span<Operand> operands);
    // Adds a range of numbers on an attribute that is in the vocabulary. Returns false if `add_predicate` must be used.
    bool add_range(std::uint32_t attribute, Operator op, const NumberOperand& first, const NumberOperand& last);
    // Returns false if the id exists.
    bool reserve_id(std::int64_t id) { return ids_.insert_if_absent(id, kDrafted); }
    // Returns whether the subscription has patterns.
    bool finish(std::int64_t id, std::optional<std::string_view> destination);
    void abandon();
    void flush();
    // A whole addition, for an id that does not exist.
    void add(std::int64_t id, Conjunction& conjunction, std::optional<std::string_view> destination);

    // The id must exist.
    void remove(std::int64_t id);

    // Match the scratch's event. The index does not change, so several threads may match at once.
    void match(Scratch& scratch, Answer& answer) const;
    void match_destinations(Scratch& scratch, DestinationAnswer& answer) const;
    // Counts the dimensions of the publication that was matched last. The counts guide where later subscriptions are
    // filed.
    void record_publication(const Scratch& scratch);

    std::uint32_t size() const { return ids_.size(); }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Interner& destinations() const { return destinations_; }
    Form form(std::int64_t id) const { return subscriptions_.form(subscriptions_[ids_.find(id)]); }
    std::uint32_t destination(std::int64_t id) const { return subscriptions_[ids_.find(id)].destination; }
    std::vector<std::int64_t> ids_in_order() const;  // in the order of addition

    struct Figures {
        std::uint64_t lists, entries, dimensions, grids, bytes;
    };
    Figures figures() const;

  private:
    struct Target;  // Where to file a subscription.

    // The handle of a subscription that is still a draft.
    static constexpr std::uint32_t kDrafted = kNone - 1;

    // Filing: which lists a subscription is filed in, and what its entries contain (filing.cpp).
    void estimate(Draft& draft) const;
    void choose_lists(Draft& draft);
    Target choose_target(const Draft& draft) const;
    static std::span<const std::uint64_t> points_of(const Terms& terms, const Interval& interval);
    double points_share(const Interval& interval, const Estimate& estimate,
                        std::span<const std::uint64_t> points) const;
    double value_share(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const;
    void collect_lists(const Target& target, Draft& draft);
    // Fills in the draft's entry, except for the subscription's handle.
    void make_entry(Draft& draft, std::size_t filed_under, bool is_filed_by_value) const;
    FilterCode code_of(const Estimate& estimate) const;

    // Addition: a draft and the steps that store it (addition.cpp). Each step prefetches what the next one reads.
    std::uint32_t acquire_dimension(Predicate& predicate, Aspect aspect);
    std::uint32_t acquire_other_dimension(Predicate& predicate, Aspect aspect);
    void record_bounds(const Draft& draft);
    void prefetch_lists(const Draft& draft) const;
    void store(const Draft& draft);
    void step();

    // Matching (matching.cpp).
    void load(Scratch& scratch) const;
    void unload(Scratch& scratch) const;
    void set_keys(Scratch& scratch, std::uint32_t attribute, Aspect aspect, KeyPair keys) const;
    void find_lists(Scratch& scratch) const;
    // Finds the runs of the lists' entries. Entries that are alone in their list become undecided. Returns the number
    // of entries.
    std::uint64_t find_runs(Scratch& scratch) const;
    // Finds the entries that pass their ranges. Writes the wanted field of those that match to `decided`, and the
    // subscriptions of the others to `undecided`. Returns the number of entries in the lists.
    std::uint64_t filter(Scratch& scratch, std::uint32_t EntryTail::* wanted) const;
    bool matches(const Scratch& scratch, const Subscription& subscription) const;
    template <typename Visit>
    void each_subscription(const std::vector<std::uint32_t>& handles, Visit visit) const;

    // Compaction: removal, updates to new grids, compaction of memory (compaction.cpp). `read_terms` derives the terms
    // from the form.
    void read_terms(Form form, Terms& terms);
    void release(Form form);
    void remove_stored(std::uint32_t handle);
    void remove_entries(std::uint32_t handle);
    std::uint32_t position_of(std::uint32_t handle, std::uint32_t copy) const;
    void retain_grids(const Entry& entry, std::uint32_t times);
    void release_grids(const Entry& entry);
    bool is_stale(const EntryTail& tail) const;
    void refresh(std::uint32_t list);
    void refresh(std::uint32_t list, std::uint32_t position);
    void refresh_grown_lists();
    void refine_outgrown_dimensions();
    void refile_lists_of(std::uint32_t grid);
    void compact_lists();
    void compact_subscriptions(std::uint32_t removed);

    Vocabulary vocabulary_;
    Interner destinations_;
    Dimensions dimensions_;
    ChunkStore store_;
    EntryLists lists_{store_};
    ListDirectory directory_{dimensions_, lists_};
    HandleTable ids_;
    Subscriptions subscriptions_{store_};
    std::uint64_t next_sequence_ = 0;
    std::uint64_t publications_ = 0;
    std::uint64_t entries_ = 0;

    using Drafts = std::array<Draft, 16>;
    Draft& draft_at(std::uint64_t number) { return (*drafts_)[number % std::tuple_size_v<Drafts>]; }

    std::unique_ptr<Drafts> drafts_;  // nullptr in a small index
    // drafts that completed each step
    std::uint64_t written_ = 0, estimated_ = 0, chosen_ = 0, prefetched_ = 0, stored_ = 0;
    std::vector<std::uint32_t> grown_lists_;
    std::vector<std::uint32_t> outgrown_;
    std::vector<Operand> operands_;  // of the predicate that is being read
    Draft immediate_;                // used while additions do not wait
    Draft* current_ = &immediate_;   // the draft that is being written
    Draft refiled_;                  // a subscription that is filed again
};

// Inline, so that it becomes part of the caller that reads the range: nearly all predicates take this path.
[[gnu::always_inline]] inline bool FlatIndex::add_range(std::uint32_t attribute, Operator op,
                                                        const NumberOperand& first, const NumberOperand& last) {
    if (!keys_decide_range(op, first.number, last.number)) return false;
    const std::uint32_t dimension = dimensions_.acquire(attribute, Aspect::Number);
    if (dimension == kNone) return false;
    dimensions_.newest_grid(dimension).prefetch();
    write_range_form(attribute, op, first, last, current_->form);
    current_->terms.intersect(interval_of(op, first, last, dimension));
    return true;
}

}  // namespace mercast
