// From an expression to its node: negations go into the predicates, constants fold away, nested ANDs and ORs become
// one, repetitions vanish. All of this keeps Kleene's truth value for every publication, undefined included.
//
// NOT moves down to the predicates, each of which has a negation; XOR and XNOR are written out [ATREE 5.2.1]. An operand
// of XOR is needed plain and negated, each is built once: a chain of n XORs takes O(n) nodes. Nothing recurses.
//
// Departs from [ATREE 4.2.1]: the grouping of operands is no part of an expression's identity, so a group of an AND
// inside an AND has no node of its own.
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

    // What a part has become: a constant, a node, or operands that may turn out to belong to a larger group.
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
    // Room that is used again for every expression.
    std::vector<Polarity> forms_;
    std::vector<Group> groups_;
    std::vector<Form> group_parts_;
    std::vector<Form> joining_;
    std::vector<NodeId> operands_;
    std::vector<std::uint32_t> pending_;
};

}  // namespace mercast::a_tree
