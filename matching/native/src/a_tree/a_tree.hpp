// A-Tree: arbitrary expressions in one graph, in which each distinct subexpression is one node [ATREE, THESIS 9].
//
//   core/expression_form   expressions as an index receives them
//   assembler              expressions to nodes
//   expression_graph       nodes, links and listeners
//   predicate_index        which predicates a publication satisfies
//   a_tree_search          from satisfied predicates to subscriptions
//
// Several threads may search an index at once, each with its own search, while no thread changes it.
#pragma once

#include <cstdint>
#include <vector>

#include "a_tree/assembler.hpp"
#include "a_tree/expression_graph.hpp"
#include "a_tree/predicate_index.hpp"
#include "core/event.hpp"
#include "core/expression_form.hpp"
#include "core/id_table.hpp"

namespace mercast::a_tree {

class ATree {
  public:
    explicit ATree(unsigned identity_bits = 32);
    ATree(const ATree&) = delete;
    ATree& operator=(const ATree&) = delete;

    // Verifies MATCHES. Without a verifier no pattern matches.
    void set_verifier(Verifier verifier) { verifier_ = std::move(verifier); }

    // The caller guarantees that `add` gets new ids and `remove` existing ones.
    void add(std::int64_t id, const ExpressionForm& expression);
    // The destination is 0 until it is set.
    void set_destination(std::int64_t id, std::uint32_t destination) {
        subscriptions_[find(id)].destination = destination;
    }
    // Returns the subscription's destination.
    std::uint32_t remove(std::int64_t id);
    bool contains(std::int64_t id) const { return find(id) != kNone; }

    std::uint32_t size() const { return table_.size(); }
    GraphShape shape() const { return graph_.shape(); }
    std::size_t bytes() const;

    const Vocabulary& vocabulary() const { return vocabulary_; }
    const ExpressionGraph& graph() const { return graph_; }
    const PredicateIndex& predicates() const { return predicates_; }

    static constexpr std::uint32_t kFar = 0xFFFF'FFFF;

    struct Subscription {
        std::int64_t id = 0;
        std::uint32_t destination = 0;
        std::uint32_t offset = 0;  // From `base`, or kFar.
    };
    const Subscription& subscription(std::uint32_t number) const { return subscriptions_[number]; }
    std::int64_t base() const { return base_; }
    // Whether the ids are so close together that a bitmap from the smallest to the largest is small.
    bool is_dense() const { return far_ == 0 && last_ - first_ <= 64ULL * size() + 65'536; }
    std::uint32_t first_offset() const { return first_; }
    std::uint32_t last_offset() const { return last_; }

  private:
    std::uint32_t find(std::int64_t id) const;
    std::uint32_t offset_of(std::int64_t id);
    void measure_ids();

    Vocabulary vocabulary_;
    Verifier verifier_;
    PredicateIndex predicates_;
    ExpressionGraph graph_;
    Assembler assembler_;
    std::vector<Subscription> subscriptions_;
    std::vector<std::uint32_t> free_;
    IdTable table_;
    std::int64_t base_ = 0;
    std::uint32_t first_ = 0;
    std::uint32_t last_ = 0;
    std::uint32_t far_ = 0;
    std::uint32_t removed_since_measured_ = 0;
};

}  // namespace mercast::a_tree
