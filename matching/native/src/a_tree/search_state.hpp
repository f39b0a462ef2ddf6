// The state of one search: what it knows of the nodes, and the links it must follow. Each searching thread has its own.
//
// A byte for each node: whether it is known to be true or false, and whether its links were followed. It is valid only
// if it was written in the present search. So the bytes are cleared once in 84 searches, not after each.
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
    // The links of true predicates, one for each: links that represent several, and single links.
    PickedList<Link> spans;
    PickedList<Link> singles;
    // Places of predicates that are false, in a list of predicates that are otherwise true.
    std::vector<std::uint32_t> excluded;
    std::uint64_t evaluated = 0;

    void begin(const ExpressionGraph& graph) {
        spans.clear();
        singles.clear();
        evaluated = 0;
        if (known_.size() != graph.node_limit()) {
            // New memory is zero, a value that no search writes.
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
    // The node is true and its links are followed.
    void set_propagated(NodeId node) { known_[node] = first_; }
    void prefetch(NodeId node) const { fetch_line(&known_[node]); }

    // Adds the links of true predicates. Branch-free: whether a link is a span is not predictable.
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
    std::uint8_t first_ = 0;  // The next two values mean true and false. Earlier searches wrote smaller values.
};

}  // namespace mercast::a_tree
