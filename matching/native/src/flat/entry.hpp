// An entry: what a list keeps of a subscription, a filter word and a tail.
//
// The word holds two of the subscription's conditions coarsely, each as a code of 16 bits: eight of its grid's hash, four
// each for the first and the last sixteenth of the grid that it lets pass. The tail holds six conditions as ranges of the
// grids' cells, the subscription's handle and its id, and lies in one cache line. An entry whose conditions are all in
// its tail, and exactly ranges of cells, is decided by it.
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

// A condition on a grid's cell: at least `first`, and at most `span` more. Grid 0 always stands in cell 1.
struct CellRange {
    std::uint16_t grid = 0;
    std::uint8_t first = 1;
    std::uint8_t span = 0;
};

// Cells by grid; a missing attribute's is 0, which lies in no range because ranges start at 1 and end by 255.
inline bool passes(CellRange range, const std::uint8_t* cells) {
    return static_cast<std::uint8_t>(cells[range.grid] - range.first) <= range.span;
}

struct EntryTail {
    static constexpr std::size_t kRanges = 6;
    static constexpr std::uint32_t kUndecided = 0xffffffffU;

    std::uint32_t subscription = kNone;
    std::uint32_t id = kUndecided;  // when passing all ranges decides it
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

// A few entries that lie together in memory, words and tails apart.
struct EntryRun {
    // As many as there are words in a cache line.
    static constexpr std::uint32_t kMost = 16;

    const FilterWord* words;
    const EntryTail* tails;
    std::uint32_t count;
};

}  // namespace mercast
