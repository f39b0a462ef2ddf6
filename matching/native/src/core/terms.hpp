// A conjunction as conditions on the keys of dimensions: an interval for each, excluded intervals, and sets of values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/dimensions.hpp"
#include "core/form.hpp"
#include "core/interval.hpp"
#include "memory/bounded_vector.hpp"

namespace mercast {

struct ValueSet {
    std::uint32_t dimension = 0;
    std::uint32_t start = 0;  // of its values in `values`
    std::uint32_t count = 0;
};

// Conditions beyond these limits are checked by the form.
struct Terms {
    static constexpr std::size_t kMostIntervals = 31, kMostExclusions = 15, kMostValues = 32;

    BoundedVector<Interval, kMostIntervals> intervals;    // one for each dimension
    BoundedVector<Interval, kMostExclusions> exclusions;  // each dimension here also has an interval
    BoundedVector<ValueSet, kMostValues / 2> sets;        // of at least two values
    BoundedVector<std::uint64_t, kMostValues> values;
    bool needs_check = false;  // some condition is decided by the form alone
    bool has_pattern = false;

    void clear() {
        intervals.clear();
        exclusions.clear();
        sets.clear();
        values.clear();
        needs_check = has_pattern = false;
        maybe_known_ = 0;
    }

    // Intersects the dimension's interval with this one. By value: copying an interval that was just written to memory
    // stalls until the stores have left the store buffer.
    void intersect(Interval interval) {
        const std::uint64_t bit = std::uint64_t{1} << interval.dimension % 64;
        if ((maybe_known_ & bit) != 0 || intervals.size() == kMostIntervals) {
            intersect_known(interval.dimension, interval.first, interval.last);
        } else {
            maybe_known_ |= bit;
            intervals.push_back(interval);
        }
    }

  private:
    void intersect_known(std::uint32_t dimension, std::uint64_t first, std::uint64_t last);

    std::uint64_t maybe_known_ = 0;  // a bit for each dimension with an interval; dimensions share bits
};

inline Aspect aspect_of(const Predicate& predicate) {
    const Operator op = predicate.op;
    if (op == Operator::Exists || op == Operator::NotExists) return Aspect::Presence;
    if (predicate.type == TypeClass::Number) return Aspect::Number;
    if (predicate.type == TypeClass::Truth) return Aspect::Truth;
    const bool is_by_identity = op == Operator::Eq || op == Operator::Ne || op == Operator::In || op == Operator::NotIn;
    return is_by_identity ? Aspect::Identity : Aspect::Order;
}

// The interval of a range of numbers that keys decide. Branch-free: the operator is not predictable, so a table gives
// masks.
[[gnu::always_inline]] inline Interval interval_of(Operator op, const NumberOperand& first, const NumberOperand& last,
                                                   std::uint32_t dimension) {
    struct Shape {
        std::uint64_t lower = 0, upper = 0;  // all bits set if the bound exists
        std::uint8_t above = 0, below = 0;   // 1 if the bound is open
    };
    constexpr auto shapes = [] {
        constexpr std::uint64_t kBound = ~std::uint64_t{0};
        std::array<Shape, kOperators> made;
        made[static_cast<std::size_t>(Operator::Eq)] = {kBound, kBound, 0, 0};
        made[static_cast<std::size_t>(Operator::Between)] = {kBound, kBound, 0, 0};
        made[static_cast<std::size_t>(Operator::Lt)] = {0, kBound, 0, 1};
        made[static_cast<std::size_t>(Operator::Le)] = {0, kBound, 0, 0};
        made[static_cast<std::size_t>(Operator::Gt)] = {kBound, 0, 1, 0};
        made[static_cast<std::size_t>(Operator::Ge)] = {kBound, 0, 0, 0};
        return made;
    };
    static constexpr std::array<Shape, kOperators> kShapes = shapes();
    const Shape& shape = kShapes[static_cast<std::size_t>(op)];
    const std::uint64_t least = first.number.key + shape.above, most = last.number.key - shape.below;
    // A neighbour of kNoHalves is no valid number of halves either.
    return {dimension, (least & shape.lower) | (kFirstBound & ~shape.lower),
            (most & shape.upper) | (kLastBound & ~shape.upper),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(first.halves) + shape.above),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(last.halves) - shape.below)};
}

// Adds the conditions of one more predicate, whose names and texts are acquired, on the dimension of its aspect.
void add_terms(const Predicate& predicate, std::span<const Operand> operands, std::uint32_t dimension,
               const Vocabulary& vocabulary, Terms& terms);

}  // namespace mercast
