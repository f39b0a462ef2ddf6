// From an expression to its node. Negations move into the predicates, constants are folded, nested ANDs and ORs are
// merged, and repetitions are removed. Kleene's truth value stays the same for every publication, undefined included.
//
// NOT moves down to the predicates, each of which has a negation. XOR and XNOR are expanded [ATREE 5.2.1]. An operand
// of XOR is needed plain and negated, and each is built once: a chain of n XORs takes O(n) nodes. There is no
// recursion.
//
// Departs from [ATREE 4.2.1]: the grouping of operands is not part of an expression's identity. So a group of an AND
// inside an AND has no node.
#pragma once

#include <cstdint>
#include <vector>

#include "a_tree/expression_graph.hpp"
#include "a_tree/predicate_index.hpp"
#include "core/expression_form.hpp"

namespace mercast::a_tree {

class Assembler {
  public:
    Assembler(ExpressionGraph& graph, PredicateIndex& predicates) : graph_(graph), predicates_(predicates) {}

    NodeId assemble(const ExpressionForm& expression);

  private:
    enum class Outcome : std::uint8_t { Unknown, False, True, Node, Group };

    // The result for a part: a constant, a node, or operands that may become part of a larger group.
    struct Form {
        Outcome outcome = Outcome::Unknown;
        std::uint32_t number = 0;
    };

    struct Group {
        NodeKind kind;
        std::uint32_t first;
        std::uint32_t count;
        NodeId node;
        std::uint32_t seen;
    };

    struct Polarity {
        bool is_plain_needed = false;
        bool is_negated_needed = false;
        Form plain;
        Form negated;
    };

    void mark_needed(const ExpressionForm& expression);
    Form built(const ExpressionForm& expression, const ExpressionForm::Part& part, bool is_negated);
    Form leaf(const ExpressionForm& expression, std::uint32_t number, bool is_negated);
    Form exclusive(Polarity left, Polarity right, bool is_different);
    Form joined(NodeKind kind, const Form* first, std::size_t count);
    NodeId node(Form form);
    NodeId node_of_group(std::uint32_t number);
    void collect_operands(std::uint32_t group);
    Form below(std::uint32_t part, bool is_negated) const {
        return is_negated ? forms_[part].negated : forms_[part].plain;
    }

    ExpressionGraph& graph_;
    PredicateIndex& predicates_;
    // Scratch memory, reused for every expression.
    std::vector<Polarity> forms_;
    std::vector<Group> groups_;
    std::vector<Form> group_parts_;
    std::vector<Form> joining_;
    std::vector<NodeId> operands_;
    std::vector<std::uint32_t> pending_;
};

}  // namespace mercast::a_tree
