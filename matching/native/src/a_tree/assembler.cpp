#include "a_tree/assembler.hpp"

#include <algorithm>

namespace mercast::a_tree {

NodeId Assembler::assemble(const ExpressionForm& expression) {
    forms_.assign(expression.parts.size(), Polarity{});
    groups_.clear();
    group_parts_.clear();
    mark_needed(expression);
    for (std::size_t number = 0; number < expression.parts.size(); ++number) {
        const ExpressionForm::Part& part = expression.parts[number];
        if (forms_[number].is_plain_needed) forms_[number].plain = built(expression, part, false);
        if (forms_[number].is_negated_needed) forms_[number].negated = built(expression, part, true);
    }
    return node(forms_.back().plain);
}

// Marks which parts are needed plain and which negated, from the whole expression downwards.
void Assembler::mark_needed(const ExpressionForm& expression) {
    forms_.back().is_plain_needed = true;
    for (std::size_t number = expression.parts.size(); number-- > 0;) {
        const ExpressionForm::Part& part = expression.parts[number];
        if (part.kind == Connective::Predicate) continue;
        const Polarity& above = forms_[number];
        const bool is_exclusive = part.kind == Connective::Xor || part.kind == Connective::Xnor;
        const bool is_turned = part.kind == Connective::Not;
        const bool is_needed = above.is_plain_needed || above.is_negated_needed;
        for (std::uint32_t child = 0; child < part.count; ++child) {
            Polarity& below = forms_[expression.children[part.first + child]];
            below.is_plain_needed |= is_exclusive ? is_needed
                                     : is_turned  ? above.is_negated_needed
                                                  : above.is_plain_needed;
            below.is_negated_needed |= is_exclusive ? is_needed
                                       : is_turned  ? above.is_plain_needed
                                                    : above.is_negated_needed;
        }
    }
}

Assembler::Form Assembler::built(const ExpressionForm& expression, const ExpressionForm::Part& part, bool is_negated) {
    const std::uint32_t* children = expression.children.data() + part.first;
    switch (part.kind) {
        case Connective::Predicate: return leaf(expression, part.first, is_negated);
        case Connective::Not: return below(children[0], !is_negated);
        case Connective::Xor:
        case Connective::Xnor:
            return exclusive(forms_[children[0]], forms_[children[1]], (part.kind == Connective::Xor) != is_negated);
        default: break;
    }
    joining_.clear();
    for (std::uint32_t number = 0; number < part.count; ++number)
        joining_.push_back(below(children[number], is_negated));
    const bool is_conjunction = (part.kind == Connective::And) != is_negated;
    return joined(is_conjunction ? NodeKind::Conjunction : NodeKind::Disjunction, joining_.data(), joining_.size());
}

Assembler::Form Assembler::leaf(const ExpressionForm& expression, std::uint32_t number, bool is_negated) {
    const Predicate& predicate = expression.leaves.predicates[number];
    // The enumeration places every operator next to its negation.
    const auto op = static_cast<Operator>(static_cast<unsigned>(predicate.op) ^ (is_negated ? 1U : 0U));
    const std::uint32_t known = predicates_.find(predicate, op, expression.leaves);
    if (known != kNone) return {Outcome::Node, predicates_.node(known)};
    const std::uint32_t made = predicates_.add(predicate, op, expression.leaves);
    predicates_.set_node(made, graph_.add_predicate(made));
    return {Outcome::Node, predicates_.node(made)};
}

Assembler::Form Assembler::exclusive(Polarity left, Polarity right, bool is_different) {
    const Form one[] = {left.plain, is_different ? right.negated : right.plain};
    const Form other[] = {left.negated, is_different ? right.plain : right.negated};
    const Form either[] = {joined(NodeKind::Conjunction, one, 2), joined(NodeKind::Conjunction, other, 2)};
    return joined(NodeKind::Disjunction, either, 2);
}

Assembler::Form Assembler::joined(NodeKind kind, const Form* first, std::size_t count) {
    const bool is_conjunction = kind == NodeKind::Conjunction;
    const Outcome deciding = is_conjunction ? Outcome::False : Outcome::True;
    const bool is_decided =
        std::any_of(first, first + count, [&](const Form& form) { return form.outcome == deciding; });
    if (is_decided) return {deciding, 0};
    const auto begin = static_cast<std::uint32_t>(group_parts_.size());
    for (const Form* form = first; form != first + count; ++form) {
        if (form->outcome == Outcome::Group) {
            const bool is_nested = groups_[form->number].kind == kind;
            group_parts_.push_back(is_nested ? *form : Form{Outcome::Node, node(*form)});
        } else if (form->outcome == Outcome::Node) {
            group_parts_.push_back(*form);
        }
    }
    const auto parts = static_cast<std::uint32_t>(group_parts_.size()) - begin;
    if (parts == 0) return {is_conjunction ? Outcome::True : Outcome::False, 0};
    groups_.push_back({kind, begin, parts, kNone, kNone});
    return {Outcome::Group, static_cast<std::uint32_t>(groups_.size() - 1)};
}

NodeId Assembler::node(Form form) {
    if (form.outcome == Outcome::Node) return form.number;
    if (form.outcome == Outcome::Group) return node_of_group(form.number);
    const bool is_true = form.outcome == Outcome::True;
    return graph_.connective(is_true ? NodeKind::Conjunction : NodeKind::Disjunction, {});
}

NodeId Assembler::node_of_group(std::uint32_t number) {
    if (groups_[number].node == kNone) {
        collect_operands(number);
        const bool is_single = operands_.size() == 1;
        groups_[number].node = is_single ? operands_[0] : graph_.connective(groups_[number].kind, operands_);
    }
    return groups_[number].node;
}

// Collects the distinct operands of the group and of the groups inside it, ascending.
void Assembler::collect_operands(std::uint32_t outermost) {
    const NodeKind kind = groups_[outermost].kind;
    operands_.clear();
    pending_.assign(1, outermost);
    while (!pending_.empty()) {
        const Group group = groups_[pending_.back()];
        pending_.pop_back();
        for (std::uint32_t number = group.first; number < group.first + group.count; ++number) {
            const Form part = group_parts_[number];
            if (part.outcome == Outcome::Group) {
                if (groups_[part.number].seen != outermost) {
                    groups_[part.number].seen = outermost;
                    pending_.push_back(part.number);
                }
            } else if (graph_.node(part.number).kind == kind) {
                // A group with one operand left may have become a node of the kind that is joined here.
                const Children children = graph_.children(part.number);
                for (std::uint32_t child = 0; child < children.size(); ++child)
                    operands_.push_back(children[child].node);
            } else {
                operands_.push_back(part.number);
            }
        }
    }
    std::sort(operands_.begin(), operands_.end());
    operands_.erase(std::unique(operands_.begin(), operands_.end()), operands_.end());
}

}  // namespace mercast::a_tree
