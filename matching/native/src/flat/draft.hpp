// A subscription between its first predicate and its place in the index.
#pragma once

#include <cstdint>

#include "core/dimensions.hpp"
#include "core/form.hpp"
#include "core/interning.hpp"
#include "core/terms.hpp"
#include "flat/entry.hpp"
#include "flat/subscriptions.hpp"
#include "memory/bounded_vector.hpp"

namespace mercast {

// An interval's cells in its dimension's newest grid, and estimated numbers of publications.
struct Estimate {
    Grid::Cells cells{1, 1, false};
    std::uint32_t grid = 0;
    double presence = 0;  // publications that have a value here
    double weight = 0;    // of these, publications that pass
    double cost = 0;      // publications that would read it if it were filed by its buckets
};

// A subscription that is being added.
struct Draft {
    std::int64_t id = 0;
    std::uint64_t sequence = 0;
    std::uint32_t destination = Interner::kUnknown;
    FormBuffer form;
    Terms terms;
    BoundedVector<Estimate, Terms::kMostIntervals> estimates;
    bool can_match = true, has_plain_grid = false;
    BoundedVector<std::uint32_t, Subscription::kMostCopies> lists;  // the lists to file it in
    Entry entry;
};

}  // namespace mercast
