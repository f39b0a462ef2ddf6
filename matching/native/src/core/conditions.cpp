#include "core/conditions.hpp"

namespace mercast {
namespace {

constexpr std::uint64_t kLowBits = kFirstBound - 1;

bool is_closed_half(std::uint64_t bound) { return (bound & (kLowBits >> 1)) == 0; }
bool is_half_lower(std::uint64_t bound) { return (bound & kLowBits) <= 1; }
bool is_half_upper(std::uint64_t bound) { return ((bound + 1) & kLowBits) <= 1; }

template <typename Visit>
void each_interval(const Terms& terms, Visit visit) {
    for (const Interval& interval : terms.intervals) visit(interval);
    for (const Interval& exclusion : terms.exclusions) visit(exclusion);
}

std::uint32_t half_bound(std::uint64_t bound, bool is_upper, bool has_open_bounds) {
    if (!has_open_bounds) return static_cast<std::uint32_t>(bound >> 32);
    if (is_upper) return static_cast<std::uint32_t>((bound + 1) >> 32) | ((bound & 1) != 0 ? 1U : 0U);
    return static_cast<std::uint32_t>(bound >> 32) | static_cast<std::uint32_t>(bound & 1);
}

class Writer {
  public:
    Writer(std::byte* at, bool is_wide, bool has_open_bounds)
        : at_(at), is_wide_(is_wide), has_open_bounds_(has_open_bounds) {}

    void dimension(std::uint32_t number) {
        if (is_wide_) {
            put(number);
        } else {
            put(static_cast<std::uint16_t>(number));
        }
    }

    void bound(std::uint64_t bound, bool is_upper) {
        if (is_wide_) {
            put(bound);
        } else {
            put(half_bound(bound, is_upper, has_open_bounds_));
        }
    }

  private:
    template <typename Value>
    void put(Value value) {
        std::memcpy(at_, &value, sizeof value);
        at_ += sizeof value;
    }

    std::byte* at_;
    bool is_wide_;
    bool has_open_bounds_;
};

}  // namespace

std::uint16_t shape_of(const Terms& terms) {
    bool is_half = true, is_closed = true;
    each_interval(terms, [&](const Interval& interval) {
        is_half &= is_half_lower(interval.first) && is_half_upper(interval.last) && interval.dimension < 65536;
        is_closed &= is_closed_half(interval.first) && is_closed_half(interval.last) && interval.dimension < 65536;
    });
    for (const ValueSet& set : terms.sets) {
        for (std::uint32_t i = 0; i < set.count; ++i) {
            const std::uint64_t value = terms.values[set.start + i];
            is_half &= is_half_lower(value) && (value & 1) == 0;
            is_closed &= is_closed_half(value);
        }
    }
    unsigned word = static_cast<unsigned>(terms.intervals.size()) | static_cast<unsigned>(terms.exclusions.size())
                                                                        << shape::kExclusionShift;
    if (!terms.sets.empty()) word |= shape::kHasSets;
    if (!is_closed) word |= is_half ? shape::kHasOpenBounds : shape::kIsWide;
    return static_cast<std::uint16_t>(word | flags_of(terms));
}

std::size_t condition_bytes(const Terms& terms, std::uint16_t shape) {
    const std::size_t dimension_bytes = (shape & shape::kIsWide) != 0 ? 4 : 2;
    const std::size_t bound_bytes = 2 * dimension_bytes;
    std::size_t bytes = (terms.intervals.size() + terms.exclusions.size()) * (dimension_bytes + 2 * bound_bytes);
    if (!terms.sets.empty()) {
        bytes += dimension_bytes;
        for (const ValueSet& set : terms.sets) bytes += 2 * dimension_bytes + set.count * bound_bytes;
    }
    return bytes;
}

void write_conditions(std::byte* conditions, std::uint16_t shape, const Terms& terms) {
    Writer writer(conditions, (shape & shape::kIsWide) != 0, (shape & shape::kHasOpenBounds) != 0);
    each_interval(terms, [&](const Interval& interval) { writer.dimension(interval.dimension); });
    each_interval(terms, [&](const Interval& interval) {
        writer.bound(interval.first, false);
        writer.bound(interval.last, true);
    });
    if (terms.sets.empty()) return;
    writer.dimension(static_cast<std::uint32_t>(terms.sets.size()));
    for (const ValueSet& set : terms.sets) {
        writer.dimension(set.dimension);
        writer.dimension(set.count);
        for (std::uint32_t i = 0; i < set.count; ++i) writer.bound(terms.values[set.start + i], false);
    }
}

}  // namespace mercast
