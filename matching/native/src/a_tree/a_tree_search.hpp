// One publication's way through an A-Tree, from the predicates it satisfies up to the subscriptions [ATREE 5].
//
// Only what is true is propagated (zero suppression), and a conjunction is looked at only when its access child is true
// (propagation on demand). A disjunction that hears of a true child is true. What a conjunction's other children are is
// evaluated when it asks, once for each publication. Most conjunctions fail at a child whose attribute the publication
// lacks: the link to them says so already, or their children's dimensions do, without a look at the children.
//
// Departs from [ATREE 5.1]: nodes are taken as they come and not level by level, because what a node needs from below is
// evaluated on demand; and finding out a node's level would be a cache miss. Nearly all the time goes into such misses
// and into branches that are guessed wrongly. So whatever is looked at is asked for some nodes in advance, and where
// the order of things is random, they are told apart without a branch.
//
// A search keeps its room between publications, and belongs to one thread at a time.
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
    // The distinct destinations of those, in any order; all are below the bound. Subscriptions of a destination that is
    // hit already are skipped.
    SearchCounts match_destinations(const Event& event, std::vector<std::uint32_t>& destinations, std::uint32_t bound);
    // If a verifier throws, the search is of no use any more.

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
    std::vector<NodeId> true_nodes_;  // One may come more than once.
    std::size_t propagated_ = 0;            // How many of them have told their listeners.
    // Conjunctions whose access child is true, by the offset of their children. One may come more than once.
    PickedList<std::uint32_t> waiting_;
    std::vector<std::uint32_t> reachable_;  // Of those that are being decided, the ones that do not lack attributes.
    std::size_t decided_ = 0;               // How many are decided.
    std::uint64_t failed_ = 0;              // Subscriptions that were looked at in vain.
    std::vector<std::uint8_t> is_present_;  // By dimension. What needs none has dimension 0, which is always there.
    std::vector<Number> values_;            // By dimension, where there is one.
    std::vector<Walk> walk_;
    std::vector<std::uint64_t> bits_;  // All zero between publications.
    std::vector<bool> is_hit_;         // All false between publications.
};

}  // namespace mercast::a_tree
