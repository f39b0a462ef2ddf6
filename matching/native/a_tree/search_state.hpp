// What one search knows of the nodes: true, false, or nothing yet. Each thread that searches has its own.
//
// A byte for each node, which counts only if it was written in the present search; so nothing is cleaned up between
// searches but once in 127.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../event.hpp"
#include "expression_graph.hpp"

namespace mercast::a_tree {

class SearchState {
  public:
    std::vector<NodeId> found;  // True nodes that have not told their listeners yet.
    std::uint64_t evaluated = 0;

    void begin(std::uint32_t nodes) {
        found.clear();
        evaluated = 0;
        if (known_.size() != nodes) {
            // New room is zero, which no search writes.
            known_.resize(nodes);
            if (known_.capacity() > 4 * known_.size() + 4096) known_.shrink_to_fit();
        }
        if (++number_ == 128) {
            std::fill(known_.begin(), known_.end(), std::uint8_t{0});
            number_ = 1;
        }
        true_ = static_cast<std::uint8_t>(2 * number_);
        false_ = static_cast<std::uint8_t>(2 * number_ + 1);
    }

    bool is_true(NodeId node) const { return known_[node] == true_; }
    bool is_false(NodeId node) const { return known_[node] == false_; }
    void set_true(NodeId node) { known_[node] = true_; }
    void set_false(NodeId node) { known_[node] = false_; }
    std::uint8_t* known() { return known_.data(); }

    void find(NodeId node) {
        set_true(node);
        found.push_back(node);
    }

  private:
    std::vector<std::uint8_t> known_;
    unsigned number_ = 0;
    std::uint8_t true_ = 0;
    std::uint8_t false_ = 0;
};

}  // namespace mercast::a_tree
