// What matching gives back, and the room that one thread needs for it.
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
    std::vector<std::int64_t> pending;  // match if their patterns do; ascending
    std::uint64_t candidates = 0;       // entries of the lists that the publication leads to
    std::uint64_t evaluated = 0;        // of these, subscriptions that were looked at
};

struct DestinationAnswer {
    std::vector<std::uint32_t> destinations;  // numbers, in the order in which they were hit
    std::vector<std::int64_t> pending;        // match if their patterns do, and their destination was not hit
    std::optional<std::int64_t> without;      // the smallest id that matches and has no destination
    std::uint64_t candidates = 0;
    std::uint64_t evaluated = 0;
};

// What one thread needs to match, kept between publications.
struct Scratch {
    Event event;
    std::vector<KeyPair> keys;                // by dimension
    std::vector<std::uint8_t> cells;          // by grid
    FilterTable filter;
    std::vector<std::uint32_t> dimensions;    // that have a value now
    std::vector<std::uint32_t> lists;
    std::vector<EntryRun> runs;               // what these lists hold
    std::vector<const EntryTail*> passing;    // the tails of the entries whose word passed, and room for more
    std::vector<std::uint32_t> decided;       // ids or subscriptions, of those that match
    std::vector<std::uint32_t> undecided;     // subscriptions that are still to be looked at
    std::vector<bool> is_hit;                 // by destination
    std::vector<std::int64_t> sorting;
};

}  // namespace mercast
