// Search of an A-Tree for one publication, from the predicates it satisfies up to the subscriptions [ATREE 5].
//
// Only true nodes are propagated (zero suppression). A conjunction is evaluated only when its access child is true
// (propagation on demand). A disjunction with a true child is true. A conjunction's other children are evaluated on
// demand, once for each publication. Most conjunctions fail at a child whose attribute the publication lacks. The gate
// in their link or the dimensions of their children show this without reading the children.
//
// Departs from [ATREE 5.1]: nodes are processed in the order in which they become true, not level by level. The nodes
// below are evaluated on demand, and reading a node's level would be a cache miss. Nearly all the time is cache misses
// and mispredicted branches. So data is prefetched some nodes ahead, and where the order is random, loops are
// branch-free.
//
// A search keeps its memory between publications. One thread uses it at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "a_tree/a_tree.hpp"
#include "a_tree/picked_list.hpp"
#include "a_tree/search_state.hpp"
#include "core/event.hpp"

namespace mercast::a_tree {

struct SearchCounts {
    std::uint64_t candidates = 0;
    std::uint64_t evaluated = 0;
};

class ATreeSearch {
  public:
    explicit ATreeSearch(const ATree& index) : index_(index) {}

    // The ids of the subscriptions that match the event, ascending.
    SearchCounts match(const Event& event, std::vector<std::int64_t>& ids);
    // The distinct destinations of these subscriptions, in any order. All are below the bound. Subscriptions of a
    // destination that is already hit are skipped.
    SearchCounts match_destinations(const Event& event, std::vector<std::uint32_t>& destinations, std::uint32_t bound);
    // If a verifier throws, the search must not be used again.

  private:
    struct Walk {
        Child at;
        std::uint32_t next;
    };

    template <class Sink> void run(Sink& sink);
    void mark_ids(std::vector<std::int64_t>& ids);
    std::int64_t* write_marked(std::int64_t* id);
    template <class Sink> void propagate_predicates(Sink& sink);
    template <class Sink> void propagate_nodes(Sink& sink);
    template <class Sink> void follow_all(const std::uint64_t* links, std::size_t count, Sink& sink);
    template <class Sink> void follow(Link link, Sink& sink);
    template <class Sink> void decide(Sink& sink);
    template <class Sink> void decide_one(Children conjunction, Sink& sink);
    void fetch_disjunctions(Children conjunction) const;
    void fetch_truth(Children conjunction) const;
    void fetch_truth(Child child) const;
    void set_presence();
    void clear_presence();
    Children children_at(std::uint32_t offset) const { return Children(index_.graph().words() + offset); }
    bool lacks_attributes(Children conjunction) const;
    bool are_others_true(Children conjunction);
    bool is_true(Child child);
    bool is_predicate_true(Child child);
    bool is_missing(Child child) const { return is_present_[child.is_connective() ? 0 : child.dimension()] == 0; }
    bool lacks_attributes(Child child) const;
    bool evaluate_connective(Child root);
    void set_result(NodeId node, bool truth);

    const ATree& index_;
    const Event* event_ = nullptr;
    SearchState state_;
    std::vector<NodeId> true_nodes_;  // A node may occur more than once.
    std::size_t propagated_ = 0;      // The nodes whose links were followed.
    // Conjunctions whose access child is true, by the offset of their children. One may occur more than once.
    PickedList<std::uint32_t> waiting_;
    std::vector<std::uint32_t> reachable_;  // Conjunctions of the batch that lack no attributes.
    std::size_t decided_ = 0;               // The number of conjunctions that are decided.
    std::uint64_t failed_ = 0;              // Subscriptions that were evaluated and do not match.
    // By dimension. Dimension 0 is always present: it is that of nodes that need none.
    std::vector<std::uint8_t> is_present_;
    std::vector<Number> values_;  // By dimension, where the event has a value.
    std::vector<Walk> walk_;
    std::vector<std::uint64_t> bits_;  // All zero between publications.
    std::vector<bool> is_hit_;         // All false between publications.
};

}  // namespace mercast::a_tree
