// An interval of a dimension's keys.
#pragma once

#include <cstdint>

#include "core/values.hpp"

namespace mercast {

// The keys of small numbers, of texts by identity, of booleans and of presence end in 33 zeros. Conditions can
// therefore store half of each key and one bit for an open bound. Other numbers and texts by order need all 64 bits.
inline constexpr unsigned kHalfKeyShift = 33;
inline constexpr std::uint64_t kFirstBound = std::uint64_t{1} << kHalfKeyShift;
inline constexpr std::uint64_t kLastBound = ~(kFirstBound - 1);

inline std::uint64_t identity_key(std::uint32_t text_number) {
    return (std::uint64_t{text_number} + 1) << kHalfKeyShift;
}
inline std::uint64_t wide_truth_key(bool value) { return truth_key(value) << kHalfKeyShift; }
inline constexpr std::uint64_t kPresentKey = kFirstBound;

struct Interval {
    std::uint32_t dimension = 0;
    std::uint64_t first = kFirstBound;
    std::uint64_t last = kLastBound;
    // The same bounds in halves, if known. Grids of integers find their cells by them.
    std::int32_t first_halves = kNoHalves;
    std::int32_t last_halves = kNoHalves;

    bool has_lower() const { return first > kFirstBound; }
    bool has_upper() const { return last < kLastBound; }
    bool is_empty() const { return first > last; }
    bool is_point() const { return first == last; }
    // Whether the attribute must be missing. No value of a publication leads to such an interval.
    bool is_absence() const { return last == kMissing; }
};

}  // namespace mercast
