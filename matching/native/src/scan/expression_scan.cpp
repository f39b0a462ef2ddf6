#include "scan/expression_scan.hpp"

#include <algorithm>

namespace mercast {
namespace {

constexpr std::uint32_t kDeepest = 64;

}  // namespace

ExpressionScan::ExpressionScan()
    : verifier_([](std::string_view, std::string_view) { return false; }), predicates_(vocabulary_, verifier_) {}

std::uint32_t ExpressionScan::find(std::int64_t id) const {
    return table_.find(hash_of_id(id), [&](std::uint32_t number) { return programs_[number].id == id; });
}

void ExpressionScan::add(std::int64_t id, const ExpressionForm& expression) {
    Program program{id, instructions_.size(), 0, 0, is_small_tree(expression), true};
    if (program.is_tree) {
        write_tree(expression, static_cast<std::uint32_t>(expression.parts.size() - 1));
    } else {
        write_list(expression);
        program.children = static_cast<std::uint32_t>(expression.children.size());
    }
    program.count = static_cast<std::uint32_t>(instructions_.size() - program.first);
    table_.insert(hash_of_id(id), static_cast<std::uint32_t>(programs_.size()));
    programs_.push_back(program);
}

bool ExpressionScan::is_small_tree(const ExpressionForm& expression) {
    // Every part except the whole is a child exactly once, unless it is shared.
    if (expression.children.size() + 1 != expression.parts.size()) return false;
    depths_.assign(expression.parts.size(), 1);
    for (std::size_t number = 0; number < expression.parts.size(); ++number) {
        const ExpressionForm::Part& part = expression.parts[number];
        for (std::uint32_t child = 0; part.kind != Connective::Predicate && child < part.count; ++child) {
            depths_[number] = std::max(depths_[number], depths_[expression.children[part.first + child]] + 1);
        }
    }
    return depths_.back() <= kDeepest;
}

void ExpressionScan::write_tree(const ExpressionForm& expression, std::uint32_t number) {
    const ExpressionForm::Part& part = expression.parts[number];
    if (part.kind == Connective::Predicate) {
        instructions_.push_back(predicate(expression, part.first));
        return;
    }
    const std::size_t place = instructions_.size();
    instructions_.push_back({0, 0, part.kind, Operator::Eq, 0});
    for (std::uint32_t child = 0; child < part.count; ++child) {
        write_tree(expression, expression.children[part.first + child]);
    }
    instructions_[place].where = static_cast<std::uint32_t>(instructions_.size() - place);
}

void ExpressionScan::write_list(const ExpressionForm& expression) {
    for (const ExpressionForm::Part& part : expression.parts) {
        if (part.kind == Connective::Predicate) {
            instructions_.push_back(predicate(expression, part.first));
        } else {
            instructions_.push_back({0, 0, part.kind, Operator::Eq, std::uint64_t{part.first} << 32 | part.count});
        }
    }
    for (const std::uint32_t child : expression.children)
        instructions_.push_back({child, 0, Connective::And, Operator::Eq, 0});
}

ExpressionScan::Instruction ExpressionScan::predicate(const ExpressionForm& expression, std::uint32_t number) {
    const Predicate& read = expression.leaves.predicates[number];
    const bool is_comparison = read.op <= Operator::Le && read.type == TypeClass::Number;
    if (is_comparison && expression.leaves.operand(read, 0).number.residual == 0) {
        const std::uint32_t attribute = vocabulary_.attributes.acquire(read.attribute);
        const std::uint32_t dimension = a_tree::PredicateIndex::dimension_of(attribute, TypeClass::Number);
        return {dimension, 0, Connective::Predicate, read.op, expression.leaves.operand(read, 0).number.key};
    }
    std::uint32_t leaf = predicates_.find(read, read.op, expression.leaves);
    if (leaf == kNone) leaf = predicates_.add(read, read.op, expression.leaves);
    if (leaf_uses_.size() <= leaf) leaf_uses_.resize(std::size_t{leaf} + 1);
    ++leaf_uses_[leaf];
    return {predicates_.dimension(leaf), 0, Connective::Predicate, Operator::Matches, leaf};
}

void ExpressionScan::release(const Instruction& instruction) {
    if (instruction.kind != Connective::Predicate) return;
    if (instruction.op != Operator::Matches) {
        vocabulary_.attributes.release(instruction.where / 4);
    } else if (--leaf_uses_[instruction.value] == 0) {
        predicates_.remove_leaf(static_cast<std::uint32_t>(instruction.value));
    }
}

void ExpressionScan::remove(std::int64_t id) {
    const std::uint32_t number = find(id);
    Program& program = programs_[number];
    for (std::uint32_t at = 0; at < program.count - program.children; ++at) release(instructions_[program.first + at]);
    program.is_live = false;
    table_.erase(hash_of_id(id), number);
    if (++dead_ > programs_.size() / 2) compact();
}

// Removes the dead programs, when they are more than half.
void ExpressionScan::compact() {
    std::vector<Instruction> instructions;
    std::vector<Program> programs;
    for (Program program : programs_) {
        if (!program.is_live) continue;
        const auto first = instructions_.begin() + static_cast<std::ptrdiff_t>(program.first);
        program.first = instructions.size();
        instructions.insert(instructions.end(), first, first + program.count);
        programs.push_back(program);
    }
    instructions_.swap(instructions);
    programs_.swap(programs);
    dead_ = 0;
    table_ = {};
    for (std::uint32_t number = 0; number < programs_.size(); ++number)
        table_.insert(hash_of_id(programs_[number].id), number);
    if (programs_.empty()) std::vector<std::uint32_t>().swap(leaf_uses_);
}

void ExpressionScan::match(const Event& event, std::vector<std::int64_t>& ids) {
    ids.clear();
    event_ = &event;
    const std::size_t dimensions = 4 * std::size_t{vocabulary_.attributes.bound()};
    is_present_.assign(dimensions, 0);
    if (dimensions > 0) is_present_[0] = 1;  // For predicates that need no value.
    numbers_.resize(dimensions);
    for (const Field& field : event.fields()) {
        const std::uint32_t dimension = a_tree::PredicateIndex::dimension_of(field.attribute, field.type);
        is_present_[dimension] = 1;
        numbers_[dimension] = field.number;
    }
    bool is_ascending = true;
    for (const Program& program : programs_) {
        if (!program.is_live) continue;
        const Instruction* at = instructions_.data() + program.first;
        const Truth truth = program.is_tree ? evaluate(at, false) : evaluate_list(program);
        if (truth != Truth::True) continue;
        is_ascending = is_ascending && (ids.empty() || ids.back() < program.id);
        ids.push_back(program.id);
    }
    if (!is_ascending) std::sort(ids.begin(), ids.end());
}

// Moves `at` behind the subtree. If `needs_false` is not set, the result may be undefined where it would be false.
ExpressionScan::Truth ExpressionScan::evaluate(const Instruction*& at, bool needs_false) const {
    switch (at->kind) {
        case Connective::Predicate: return evaluate_predicate(*at++);
        case Connective::Not: ++at; return opposite(evaluate(at, true));
        case Connective::Xor:
        case Connective::Xnor: {
            const bool is_xor = at->kind == Connective::Xor;
            const Instruction* end = at + at->where;
            ++at;
            const Truth left = evaluate(at, true);
            const Truth right = left == Truth::Undefined ? left : evaluate(at, true);
            at = end;
            return exclusive(left, right, is_xor);
        }
        default: return evaluate_joined(at, needs_false);
    }
}

ExpressionScan::Truth ExpressionScan::evaluate_joined(const Instruction*& at, bool needs_false) const {
    const bool is_conjunction = at->kind == Connective::And;
    const Truth deciding = is_conjunction ? Truth::False : Truth::True;
    const Instruction* end = at + at->where;
    Truth result = is_conjunction ? Truth::True : Truth::False;
    for (++at; at != end;) {
        const Truth truth = evaluate(at, needs_false);
        if (truth == deciding) {
            at = end;
            return deciding;
        }
        if (truth != Truth::Undefined) continue;
        result = Truth::Undefined;
        if (is_conjunction && !needs_false) at = end;
    }
    return result;
}

ExpressionScan::Truth ExpressionScan::evaluate_predicate(const Instruction& instruction) const {
    if (is_present_[instruction.where] == 0) return Truth::Undefined;
    if (instruction.op == Operator::Matches) return evaluate_leaf(static_cast<std::uint32_t>(instruction.value));
    // The operand's residual is 0.
    const Number number = numbers_[instruction.where];
    const Number operand{instruction.value, 0};
    bool is_true = false;
    switch (instruction.op) {
        case Operator::Eq: is_true = number == operand; break;
        case Operator::Ne: is_true = number != operand; break;
        case Operator::Lt: is_true = number < operand; break;
        case Operator::Le: is_true = number <= operand; break;
        case Operator::Gt: is_true = number > operand; break;
        default: is_true = number >= operand; break;
    }
    return is_true ? Truth::True : Truth::False;
}

ExpressionScan::Truth ExpressionScan::evaluate_leaf(std::uint32_t leaf) const {
    // The dimension is present, so the predicate is defined.
    return predicates_.is_true(leaf, *event_) ? Truth::True : Truth::False;
}

ExpressionScan::Truth ExpressionScan::evaluate_list(const Program& program) {
    const Instruction* parts = instructions_.data() + program.first;
    const std::uint32_t count = program.count - program.children;
    truths_.resize(count);
    for (std::uint32_t number = 0; number < count; ++number) {
        const Instruction& part = parts[number];
        if (part.kind == Connective::Predicate) {
            truths_[number] = evaluate_predicate(part);
        } else {
            const Instruction* children = parts + count + (part.value >> 32);
            truths_[number] = combined(part.kind, children, static_cast<std::uint32_t>(part.value));
        }
    }
    return truths_[count - 1];
}

ExpressionScan::Truth ExpressionScan::combined(Connective kind, const Instruction* children,
                                               std::uint32_t count) const {
    const auto truth = [&](std::uint32_t number) { return truths_[children[number].where]; };
    if (kind == Connective::Not) return opposite(truth(0));
    if (kind == Connective::Xor || kind == Connective::Xnor) {
        return exclusive(truth(0), truth(1), kind == Connective::Xor);
    }
    const Truth deciding = kind == Connective::And ? Truth::False : Truth::True;
    Truth result = opposite(deciding);
    for (std::uint32_t number = 0; number < count; ++number) {
        if (truth(number) == deciding) return deciding;
        if (truth(number) == Truth::Undefined) result = Truth::Undefined;
    }
    return result;
}

ExpressionScan::Truth ExpressionScan::exclusive(Truth left, Truth right, bool is_xor) {
    if (left == Truth::Undefined || right == Truth::Undefined) return Truth::Undefined;
    return (left != right) == is_xor ? Truth::True : Truth::False;
}

ExpressionScan::Truth ExpressionScan::opposite(Truth truth) {
    return truth == Truth::Undefined ? truth : truth == Truth::True ? Truth::False : Truth::True;
}

std::size_t ExpressionScan::bytes() const {
    return vocabulary_.bytes() + predicates_.bytes() + instructions_.capacity() * sizeof(Instruction) +
           programs_.capacity() * sizeof(Program) + table_.bytes() + leaf_uses_.capacity() * sizeof(std::uint32_t);
}

}  // namespace mercast
