// What one search knows of the nodes, and whom it has yet to tell. Each thread that searches has its own.
//
// Of each node, whether it is known to be true or false, and whether its listeners know: a byte, which counts only if it was written in the present
// search. So nothing is cleaned up between searches but once in 84.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "a_tree/expression_graph.hpp"
#include "a_tree/picked_list.hpp"
#include "core/event.hpp"
#include "memory/fetch_line.hpp"

namespace mercast::a_tree {

class SearchState {
  public:
    // Of predicates that are true, one link for each: those that stand for several, and the others.
    PickedList<Link> spans;
    PickedList<Link> singles;
    std::vector<std::uint32_t> excluded;  // Places of predicates that are false in a list of those that are true.
    std::uint64_t evaluated = 0;

    void begin(const ExpressionGraph& graph) {
        spans.clear();
        singles.clear();
        evaluated = 0;
        if (known_.size() != graph.node_limit()) {
            // New room is zero, which no search writes.
            known_.resize(graph.node_limit());
            if (known_.capacity() > 4 * known_.size() + 4096) known_.shrink_to_fit();
        }
        if (++number_ == 85) {
            std::fill(known_.begin(), known_.end(), std::uint8_t{0});
            number_ = 1;
        }
        first_ = static_cast<std::uint8_t>(3 * number_);
    }

    bool is_known(NodeId node) const { return known_[node] >= first_; }
    bool is_true(NodeId node) const { return known_[node] == first_ || known_[node] == first_ + 1; }
    bool is_propagated(NodeId node) const { return known_[node] == first_; }
    void set(NodeId node, bool truth) { known_[node] = static_cast<std::uint8_t>(truth ? first_ + 1 : first_ + 2); }
    // True, and its listeners hear of it.
    void set_propagated(NodeId node) { known_[node] = first_; }
    void prefetch(NodeId node) const { fetch_line(&known_[node]); }

    // Predicates are true, and these are to hear of it.
    void add_links(std::uint64_t words) { add_links(&words, 1); }
    void add_links(const std::uint64_t* words, std::size_t count) {
        spans.make_room(count);
        singles.make_room(count);
        for (std::size_t number = 0; number < count; ++number) {
            const Link link = Link::read(words[number]);
            spans.push_if(link, link.kind() == LinkKind::Span);
            singles.push_if(link, link.kind() != LinkKind::Span);
        }
    }

  private:
    std::vector<std::uint8_t, HugePages<std::uint8_t>> known_;
    unsigned number_ = 0;
    std::uint8_t first_ = 0;  // The two numbers after it are true and false. Earlier searches wrote smaller ones.
};

}  // namespace mercast::a_tree
