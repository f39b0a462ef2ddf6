// An entry: a filter word and a tail, which a list stores for a subscription.
//
// The word contains two of the subscription's conditions coarsely, each as a code of 16 bits. Eight bits are of its
// grid's hash, four each are for the first and the last sixteenth of the grid that passes. The tail holds six
// conditions as ranges of the grids' cells, the subscription's handle and its id, within one cache line. If the tail
// has all conditions, and each is exactly a range of cells, the tail decides the subscription.
#pragma once

#include <array>
#include <cstdint>

#include "memory/none.hpp"

namespace mercast {

using FilterCode = std::uint16_t;
inline constexpr FilterCode kNoCondition = 0;

inline unsigned filter_row(std::uint32_t grid) { return 1 + grid % 255; }

inline FilterCode filter_code(std::uint32_t grid, std::uint32_t first, std::uint32_t last) {
    return static_cast<FilterCode>(filter_row(grid) << 8 | first << 4 | last);
}

struct FilterWord {
    std::array<FilterCode, 2> codes{kNoCondition, kNoCondition};
};
static_assert(sizeof(FilterWord) == 4);

// A condition on a grid's cell: at least `first`, and at most `span` more. Grid 0 is always in cell 1.
struct CellRange {
    std::uint16_t grid = 0;
    std::uint8_t first = 1;
    std::uint8_t span = 0;
};

// `cells` are by grid. The cell of a missing attribute is 0, which is in no range: ranges start at 1 and end by 255.
inline bool passes(CellRange range, const std::uint8_t* cells) {
    return static_cast<std::uint8_t>(cells[range.grid] - range.first) <= range.span;
}

struct EntryTail {
    static constexpr std::size_t kRanges = 6;
    static constexpr std::uint32_t kUndecided = 0xffffffffU;

    std::uint32_t subscription = kNone;
    std::uint32_t id = kUndecided;  // set if passing all ranges decides the subscription
    std::array<CellRange, kRanges> ranges;
};
static_assert(sizeof(EntryTail) == 32);

inline bool passes(const EntryTail& tail, const std::uint8_t* cells) {
    bool all = true;
    for (const CellRange& range : tail.ranges) all &= passes(range, cells);
    return all;
}

struct Entry {
    FilterWord word;
    EntryTail tail;
};
inline constexpr Entry kEmptyEntry;

// Up to sixteen adjacent entries, with words and tails apart.
struct EntryRun {
    // The number of words in a cache line.
    static constexpr std::uint32_t kMost = 16;

    const FilterWord* words;
    const EntryTail* tails;
    std::uint32_t count;
};

}  // namespace mercast
