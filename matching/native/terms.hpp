// A conjunction as conditions on dimensions' keys: an interval each, values that are left out, and sets of values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

struct Terms {
    std::vector<Interval> intervals;   // one for each dimension
    std::vector<Interval> exclusions;  // their dimensions have an interval too
    std::vector<ValueSet> sets;
    std::vector<std::uint64_t> values;
    bool needs_check = false;  // something is decided by the form alone
    bool has_pattern = false;

    void clear() {
        intervals.clear();
        exclusions.clear();
        sets.clear();
        values.clear();
        needs_check = has_pattern = false;
    }

    bool can_match() const {
        for (const Interval& interval : intervals) {
            if (interval.is_empty()) return false;
        }
        return true;
    }
};

Aspect aspect_of(const StoredPredicate& predicate);
// Adds what one more predicate says, on the dimension of its aspect.
void add_terms(const StoredPredicate& predicate, std::span<const StoredOperand> operands, std::uint32_t dimension,
               const Vocabulary& vocabulary, Terms& terms);

}  // namespace mercast
