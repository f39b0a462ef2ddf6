// A conjunction as conditions on dimensions' keys: an interval each, values that are left out, and sets of values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "bounded_vector.hpp"
#include "dimensions.hpp"
#include "form.hpp"

namespace mercast {

struct Interval {
    std::uint32_t dimension = 0;
    std::uint64_t first = kFirstBound;
    std::uint64_t last = kLastBound;

    bool is_empty() const { return first > last; }
    bool is_point() const { return first == last; }
    // Asks that the attribute is missing, so no value of a publication leads to it.
    bool is_absence() const { return last == kMissing; }
};

struct ValueSet {
    std::uint32_t dimension = 0;
    std::uint32_t start = 0;  // of its values
    std::uint32_t count = 0;
};

// What is more than there is room for is checked in the form, one by one.
struct Terms {
    static constexpr std::size_t kMostIntervals = 31, kMostExclusions = 15, kMostValues = 32;

    BoundedVector<Interval, kMostIntervals> intervals;    // one for each dimension
    BoundedVector<Interval, kMostExclusions> exclusions;  // their dimensions have an interval too
    BoundedVector<ValueSet, kMostValues / 2> sets;        // of two values or more
    BoundedVector<std::uint64_t, kMostValues> values;
    bool needs_check = false;  // something is decided by the form alone
    bool has_pattern = false;

    void clear() {
        intervals.clear();
        exclusions.clear();
        sets.clear();
        values.clear();
        needs_check = has_pattern = false;
        maybe_known_ = 0;
    }

    // Both what is known of its dimension and this.
    void meet(const Interval& interval) {
        const std::uint64_t bit = std::uint64_t{1} << interval.dimension % 64;
        if ((maybe_known_ & bit) != 0 || intervals.size() == kMostIntervals) {
            meet_known(interval);
        } else {
            maybe_known_ |= bit;
            intervals.push_back(interval);
        }
    }

  private:
    void meet_known(const Interval& interval);

    std::uint64_t maybe_known_ = 0;  // a bit for each dimension that has an interval, and for others
};

inline Aspect aspect_of(const Predicate& predicate) {
    const Operator op = predicate.op;
    if (op == Operator::Exists || op == Operator::NotExists) return Aspect::Presence;
    if (predicate.type == TypeClass::Number) return Aspect::Number;
    if (predicate.type == TypeClass::Truth) return Aspect::Truth;
    const bool is_by_identity = op == Operator::Eq || op == Operator::Ne || op == Operator::In || op == Operator::NotIn;
    return is_by_identity ? Aspect::Identity : Aspect::Order;
}

// What a range of numbers allows that keys decide, without a branch on the operator, which nothing foretells.
inline Interval interval_of(Operator op, const Number& first, const Number& last, std::uint32_t dimension) {
    const bool has_lower = (op != Operator::Lt) & (op != Operator::Le);
    const bool has_upper = (op != Operator::Gt) & (op != Operator::Ge);
    const std::uint64_t lower = 0 - std::uint64_t{has_lower}, upper = 0 - std::uint64_t{has_upper};
    const std::uint64_t least = first.key + (op == Operator::Gt), most = last.key - (op == Operator::Lt);
    return {dimension, (least & lower) | (kFirstBound & ~lower), (most & upper) | (kLastBound & ~upper)};
}

// Adds what one more predicate says, on the dimension of its aspect. The predicate's names and texts are acquired.
void add_terms(const Predicate& predicate, std::span<const Operand> operands, std::uint32_t dimension,
               const Vocabulary& vocabulary, Terms& terms);

}  // namespace mercast
