// A predicate. In a call from outside, names and texts are views that are valid during the call. In an index they are
// numbers of its vocabulary.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/values.hpp"

namespace mercast {

// In the order of Python's `Operator`. Each operator is followed by its negation.
enum class Operator : std::uint8_t {
    Eq,
    Ne,
    Lt,
    Ge,
    Gt,
    Le,
    Between,
    NotBetween,
    In,
    NotIn,
    StartsWith,
    NotStartsWith,
    EndsWith,
    NotEndsWith,
    Contains,
    NotContains,
    Matches,
    NotMatches,
    Exists,
    NotExists,
};
inline constexpr int kOperators = 20;

inline bool is_negated(Operator op) {
    switch (op) {
        case Operator::Ne:
        case Operator::NotBetween:
        case Operator::NotIn:
        case Operator::NotStartsWith:
        case Operator::NotEndsWith:
        case Operator::NotContains:
        case Operator::NotMatches:
        case Operator::NotExists: return true;
        default: return false;
    }
}

// Whether the operator compares with one number, or with the two ends of a range.
inline bool is_range(Operator op) {
    constexpr auto bit = [](Operator one) { return 1U << static_cast<unsigned>(one); };
    constexpr unsigned kRanges = bit(Operator::Eq) | bit(Operator::Lt) | bit(Operator::Le) | bit(Operator::Gt) |
                                 bit(Operator::Ge) | bit(Operator::Between);
    return (kRanges >> static_cast<unsigned>(op) & 1) != 0;
}

inline bool is_pattern(Operator op) { return op == Operator::Matches || op == Operator::NotMatches; }

struct NumberOperand {
    Number number;
    std::uint64_t bits = 0;  // the int64 or the double itself, to give the number back as it was written
    std::int32_t halves = kNoHalves;
    bool is_integer = false;

    static NumberOperand of(std::int64_t value) {
        return {Number::of(value), static_cast<std::uint64_t>(value), halves_of(value), true};
    }
    static NumberOperand of(double value) {
        const bool is_narrow = value > -kMostInHalves && value < kMostInHalves;
        const std::int64_t integer = is_narrow ? static_cast<std::int64_t>(value) : kMostInHalves;
        const bool is_exact = static_cast<double>(integer) == value;
        return {Number::of(value), std::bit_cast<std::uint64_t>(value), is_exact ? halves_of(integer) : kNoHalves,
                false};
    }

  private:
    static constexpr std::int64_t kMostInHalves = std::int64_t{1} << 29;

    static std::int32_t halves_of(std::int64_t value) {
        return value > -kMostInHalves && value < kMostInHalves ? static_cast<std::int32_t>(2 * value) : kNoHalves;
    }
};

struct Operand : NumberOperand {
    Operand() = default;
    explicit Operand(const NumberOperand& number) : NumberOperand(number) {}

    std::string_view text;
    std::uint32_t text_number = 0;
    bool truth = false;
};

struct Predicate {
    std::string_view attribute;
    std::uint32_t attribute_number = 0;  // 0 while unknown
    Operator op = Operator::Eq;
    TypeClass type = TypeClass::Number;  // no meaning for Exists and NotExists
    bool needs_check = false;            // Keys do not decide it. The index sets it.
    std::uint32_t first_operand = 0;     // in the conjunction's operands
    std::uint32_t operands = 0;
};

inline bool is_range_of_numbers(const Predicate& predicate) {
    return predicate.type == TypeClass::Number && is_range(predicate.op);
}

// Whether an interval of keys decides a range of these numbers.
inline bool keys_decide_range(Operator op, const Number& first, const Number& last) {
    const bool is_strict = op == Operator::Lt || op == Operator::Gt;
    return first.is_on_key() && last.is_on_key() && (!is_strict || first.is_small());
}

// The predicates of one subscription. All must be true.
struct Conjunction {
    std::vector<Predicate> predicates;
    std::vector<Operand> operands;

    void clear() {
        predicates.clear();
        operands.clear();
    }

    const Operand& operand(const Predicate& predicate, std::uint32_t number) const {
        return operands[predicate.first_operand + number];
    }

    std::span<Operand> operands_of(const Predicate& predicate) {
        return {operands.data() + predicate.first_operand, predicate.operands};
    }
};

}  // namespace mercast
