// The results of matching, and the memory that one thread needs for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/conditions.hpp"
#include "core/event.hpp"
#include "flat/entry.hpp"
#include "flat/filter_words.hpp"

namespace mercast {

struct Answer {
    std::vector<std::int64_t> ids;      // ascending
    std::vector<std::int64_t> pending;  // ids that match if their patterns do; ascending
    std::uint64_t candidates = 0;       // entries of the lists that the publication reads
    std::uint64_t evaluated = 0;        // subscriptions among them that were evaluated
};

struct DestinationAnswer {
    std::vector<std::uint32_t> destinations;  // numbers, in the order in which they were hit
    std::vector<std::int64_t> pending;        // ids that match if their patterns do, and whose destination was not hit
    std::optional<std::int64_t> without;      // the smallest id that matches and has no destination
    std::uint64_t candidates = 0;
    std::uint64_t evaluated = 0;
};

// The state of one thread that matches, reused between publications.
struct Scratch {
    Event event;
    std::vector<KeyPair> keys;        // by dimension
    std::vector<std::uint8_t> cells;  // by grid
    FilterTable filter;
    std::vector<std::uint32_t> dimensions;  // dimensions that have a value now
    std::vector<std::uint32_t> lists;
    std::vector<EntryRun> runs;             // the entries of these lists
    std::vector<const EntryTail*> passing;  // tails of the entries whose word passed, and spare room
    std::vector<std::uint32_t> decided;     // ids or subscriptions of entries that match
    std::vector<std::uint32_t> undecided;   // subscriptions that must be evaluated
    std::vector<bool> is_hit;               // by destination
    std::vector<std::int64_t> sorting;
};

}  // namespace mercast
