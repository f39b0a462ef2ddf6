// A subscription's conditions on keys. Matching reads them if the cells of the entry do not decide. Layout: the
// dimensions of the intervals, then of the exclusions; their bounds; sets of values. A separate word describes the
// shape.
//
// Bounds have 32 bits if all of a subscription's bounds allow it (see interval.hpp), else 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/terms.hpp"

namespace mercast {

// A value as conditions see it: the keys next to it. Both are 0 while the attribute is missing.
struct KeyPair {
    std::uint64_t floor = kMissing;
    std::uint64_t ceiling = kMissing;
};

namespace shape {
inline constexpr unsigned kIntervals = 0x1f;
inline constexpr unsigned kExclusionShift = 5;
inline constexpr unsigned kExclusions = 0xf;
inline constexpr unsigned kHasSets = 1U << 9;
inline constexpr unsigned kIsWide = 1U << 10;
inline constexpr unsigned kHasOpenBounds = 1U << 11;
inline constexpr unsigned kNeedsCheck = 1U << 12;
inline constexpr unsigned kHasPattern = 1U << 13;
}  // namespace shape

template <typename Value>
inline Value load(const std::byte* at) {
    Value value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::uint16_t shape_of(const Terms& terms);
// The flags of a shape that do not concern conditions on keys.
inline std::uint16_t flags_of(const Terms& terms) {
    const unsigned check = terms.needs_check ? shape::kNeedsCheck : 0,
                   pattern = terms.has_pattern ? shape::kHasPattern : 0;
    return static_cast<std::uint16_t>(check | pattern);
}
std::size_t condition_bytes(const Terms& terms, std::uint16_t shape);
void write_conditions(std::byte* conditions, std::uint16_t shape, const Terms& terms);

// Whether all conditions on keys are true. `keys` are the publication's, by dimension. Branch-free within each loop:
// which condition fails is not predictable.
template <typename DimensionWord, typename BoundWord, bool HasOpenBounds>
inline bool conditions_hold(const std::byte* conditions, std::uint16_t shape, const KeyPair* keys) {
    const auto bound = [](const std::byte* at, bool is_upper) -> std::uint64_t {
        const auto word = load<BoundWord>(at);
        if constexpr (sizeof(BoundWord) == 8) {
            return word;
        } else if constexpr (HasOpenBounds) {
            const std::uint64_t open = word & 1U, wide = std::uint64_t{word & ~1U} << 32;
            return is_upper ? wide - open : wide + open;
        } else {
            return std::uint64_t{word} << 32;
        }
    };
    const unsigned intervals = shape & shape::kIntervals;
    const unsigned exclusions = (shape >> shape::kExclusionShift) & shape::kExclusions;
    const std::byte* dimensions = conditions;
    const std::byte* bounds = dimensions + (intervals + exclusions) * sizeof(DimensionWord);
    bool holds = true;
    for (unsigned i = 0; i < intervals; ++i) {
        const KeyPair key = keys[load<DimensionWord>(dimensions)];
        holds &= (key.floor >= bound(bounds, false)) & (key.ceiling <= bound(bounds + sizeof(BoundWord), true));
        dimensions += sizeof(DimensionWord);
        bounds += 2 * sizeof(BoundWord);
    }
    if ((shape & ((shape::kExclusions << shape::kExclusionShift) | shape::kHasSets)) == 0 || !holds) return holds;
    for (unsigned i = 0; i < exclusions; ++i) {
        const KeyPair key = keys[load<DimensionWord>(dimensions)];
        holds &= !((key.floor >= bound(bounds, false)) & (key.ceiling <= bound(bounds + sizeof(BoundWord), true)));
        dimensions += sizeof(DimensionWord);
        bounds += 2 * sizeof(BoundWord);
    }
    if ((shape & shape::kHasSets) == 0 || !holds) return holds;
    unsigned sets = load<DimensionWord>(bounds);
    bounds += sizeof(DimensionWord);
    for (; sets != 0 && holds; --sets) {
        const KeyPair key = keys[load<DimensionWord>(bounds)];
        const unsigned count = load<DimensionWord>(bounds + sizeof(DimensionWord));
        bounds += 2 * sizeof(DimensionWord);
        bool is_in = false;
        for (unsigned i = 0; i < count; ++i, bounds += sizeof(BoundWord)) is_in |= bound(bounds, false) == key.floor;
        holds = is_in & (key.floor == key.ceiling);
    }
    return holds;
}

inline bool conditions_hold(const std::byte* conditions, std::uint16_t shape, const KeyPair* keys) {
    if ((shape & (shape::kIsWide | shape::kHasOpenBounds)) == 0) {
        return conditions_hold<std::uint16_t, std::uint32_t, false>(conditions, shape, keys);
    }
    if ((shape & shape::kIsWide) != 0) {
        return conditions_hold<std::uint32_t, std::uint64_t, false>(conditions, shape, keys);
    }
    return conditions_hold<std::uint16_t, std::uint32_t, true>(conditions, shape, keys);
}

}  // namespace mercast
