// One publication's way through an A-Tree, from the predicates it satisfies up to the subscriptions [ATREE 5].
//
// Only what is true is propagated (zero suppression), and a conjunction is looked at only when its access child is true
// (propagation on demand). A disjunction that hears of a true child is true and tells so at once; conjunctions wait for
// their level, because by then all that is watched below them is decided, and what nobody watches is evaluated when they
// ask. Most conjunctions fail at a child whose attribute the publication lacks, which is seen without looking at it.
//
// A search keeps its room between publications, and belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "a_tree.hpp"
#include "../event.hpp"
#include "search_state.hpp"

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
    struct Waiting {
        NodeId node;
        std::uint32_t children;
    };

    struct Walk {
        Child at;
        std::uint32_t next;
    };

    template <class Sink> void run(Sink& sink);
    void mark_ids(std::vector<std::int64_t>& ids);
    template <class Sink> void tell_of_predicates(Sink& sink);
    template <class Sink> void tell_of_nodes(Sink& sink);
    template <class Sink> void follow(Link link, Sink& sink);
    void fetch_children(const std::vector<Waiting>& conjunctions, std::size_t number) const;
    template <class Sink> void decide(const std::vector<Waiting>& conjunctions, Sink& sink);
    void note_presence();
    void forget_presence();
    bool are_others_true(Children children);
    bool is_true(Child child);
    bool is_missing(Child child) const {
        return !child.is_connective() && child.dimension() > 0 && is_present_[child.dimension()] == 0;
    }
    bool is_known(NodeId node) const { return state_.is_true(node) || state_.is_false(node); }
    bool pull(Child asked);
    void settle(NodeId node, bool truth);

    const ATree& index_;
    const Event* event_ = nullptr;
    SearchState state_;
    std::vector<NodeId> true_nodes_;
    std::size_t told_ = 0;  // How many of them have told their listeners.
    std::uint64_t failed_ = 0;  // Subscriptions that were looked at in vain.
    std::vector<std::uint8_t> is_present_;       // By dimension.
    std::vector<std::vector<Waiting>> waiting_;  // By level.
    std::vector<Walk> walk_;
    std::vector<std::uint64_t> bits_;  // All zero between publications.
    std::vector<bool> is_hit_;         // All false between publications.
};

}  // namespace mercast::a_tree
