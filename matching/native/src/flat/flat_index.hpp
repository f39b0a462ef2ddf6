// Flat: conjunctions in access-predicate lists, most of them decided by half a cache line.
//
// A subscription is filed under one of its conditions, its access predicate: an equality or a small IN under a hash of
// dimension and value, a range in the buckets of its dimension's grid. Of [THESIS 6, 7] it keeps PSTBloom's idea, a word
// beside each reference that rules most of a list out before any subscription is touched, and PSTHash's, to file by the
// access predicate that fewest publications reach. It changes three things. PS-Tree's exact predicate spaces are coarse
// buckets, because exact spaces explode on wide domains and the conditions decide anyway. The word holds no hashed
// attributes but two more conditions, quantised to cells: it tells values apart and not only presence. Lists lie flat in
// memory, words before references, and everything that is touched is fetched ahead: time is cache lines, not
// comparisons.
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
    // Where `contains`, `reserve_id` and `remove` will look.
    void prefetch(std::int64_t id) const { ids_.prefetch(id); }

    // An addition: `begin`, ask for each predicate, `reserve_id` an id, `finish`; or `abandon` before there is an id. It may
    // then wait for memory while others are prepared: only ids and the vocabulary know of it until all are settled.
    void begin();
    // The predicate gets its numbers.
    void add_predicate(Predicate& predicate, std::span<Operand> operands);
    // A range of numbers on an attribute that is in the vocabulary. False if it is not to be had so simply.
    bool add_range(std::uint32_t attribute, Operator op, const NumberOperand& first, const NumberOperand& last);
    // False if the id is there already.
    bool reserve_id(std::int64_t id) { return ids_.insert_if_absent(id, kDrafted); }
    // Returns whether it has patterns.
    bool finish(std::int64_t id, std::optional<std::string_view> destination);
    void abandon();
    void flush();
    // All of this for an id that is not there.
    void add(std::int64_t id, Conjunction& conjunction, std::optional<std::string_view> destination);

    // The id must be there.
    void remove(std::int64_t id);

    // The scratch's event is matched. The index does not change, so several threads may do this.
    void match(Scratch& scratch, Answer& answer) const;
    void match_destinations(Scratch& scratch, DestinationAnswer& answer) const;
    // How often publications have a value in a dimension guides where the next subscriptions are filed. Tells the index
    // of the publication that was matched last.
    void record_publication(const Scratch& scratch);

    std::uint32_t size() const { return ids_.size(); }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Interner& destinations() const { return destinations_; }
    Form form(std::int64_t id) const { return subscriptions_.form(subscriptions_[ids_.find(id)]); }
    std::uint32_t destination(std::int64_t id) const { return subscriptions_[ids_.find(id)].destination; }
    std::vector<std::int64_t> ids_in_order() const;  // of their addition

    struct Figures {
        std::uint64_t lists, entries, dimensions, grids, bytes;
    };
    Figures figures() const;

  private:
    struct Target;  // Where to file a subscription.

    // The handle of one that has none yet.
    static constexpr std::uint32_t kDrafted = kNone - 1;

    // Filing: which lists a subscription goes to, and what its entries say (filing.cpp).
    void estimate(Draft& draft) const;
    void choose_lists(Draft& draft);
    Target choose_target(const Draft& draft) const;
    static std::span<const std::uint64_t> points_of(const Terms& terms, const Interval& interval);
    double points_share(const Interval& interval, const Estimate& estimate, std::span<const std::uint64_t> points) const;
    double value_share(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const;
    void collect_lists(const Target& target, Draft& draft);
    // Fills in all of the draft's entry but the subscription's handle.
    void make_entry(Draft& draft, std::size_t filed_under, bool is_filed_by_value) const;
    FilterCode code_of(const Estimate& estimate) const;

    // Addition: a draft and the steps that store it (addition.cpp). What a step needs from memory, the one before asks for.
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
    // What the lists hold, and how many entries that is. Those that are alone are undecided.
    std::uint64_t find_runs(Scratch& scratch) const;
    // Finds the entries that pass their ranges. Of those that match, what is wanted is decided; the others are undecided.
    // Returns how many entries the lists have.
    std::uint64_t filter(Scratch& scratch, std::uint32_t EntryTail::*wanted) const;
    bool matches(const Scratch& scratch, const Subscription& subscription) const;
    template <typename Visit>
    void each_subscription(const std::vector<std::uint32_t>& handles, Visit visit) const;

    // Compaction: removal, entries that follow new grids, memory that follows what is stored (compaction.cpp).
    // Fills in the terms that the form says.
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

    std::unique_ptr<Drafts> drafts_;  // none in a small index
    std::uint64_t written_ = 0, estimated_ = 0, chosen_ = 0, prefetched_ = 0, stored_ = 0;  // so many drafts came so far
    std::vector<std::uint32_t> grown_lists_;
    std::vector<std::uint32_t> outgrown_;
    std::vector<Operand> operands_;  // of the predicate that is being read
    Draft immediate_;                     // one that need not wait
    Draft* current_ = &immediate_;        // the one that is being written
    Draft refiled_;                    // one that is filed again
};

// Here, so that it becomes a part of what reads the range: nearly all predicates come this way.
[[gnu::always_inline]] inline bool FlatIndex::add_range(std::uint32_t attribute, Operator op, const NumberOperand& first,
                                 const NumberOperand& last) {
    if (!keys_decide_range(op, first.number, last.number)) return false;
    const std::uint32_t dimension = dimensions_.acquire(attribute, Aspect::Number);
    if (dimension == kNone) return false;
    dimensions_.newest_grid(dimension).prefetch();
    write_range_form(attribute, op, first, last, current_->form);
    current_->terms.intersect(interval_of(op, first, last, dimension));
    return true;
}

}  // namespace mercast
