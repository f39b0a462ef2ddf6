// A grid cuts a dimension's keys into at most 255 cells. It never changes once entries speak of its cells: a dimension
// that has outgrown its grid gets another one, and the old one lives on until its last entry is gone.
//
// The lists of ranges hang on its buckets, and those of values that are cuts on their cells.
//
// Cuts are bounds that subscriptions used. A key that is a cut has a cell of its own, and so have the keys between two
// cuts: an interval whose bounds are cuts, open or closed, is exactly a range of cells.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "storage.hpp"

namespace mercast {

class Grid {
  public:
    static constexpr std::uint32_t kMostCuts = 127;
    // Buckets at three resolutions: a range is filed at the finest where it needs few copies.
    static constexpr std::uint32_t kFineBuckets = 32;
    static constexpr std::uint32_t kCoarseBuckets = 8;
    static constexpr std::uint32_t kBuckets = kFineBuckets + kCoarseBuckets + 1;

    explicit Grid(std::uint32_t dimension) : dimension_(dimension), lists_(1, kNone) {}

    Grid(std::uint32_t dimension, std::vector<std::uint64_t> bounds) : dimension_(dimension) {
        std::sort(bounds.begin(), bounds.end());
        // By rank with repetitions, so that bounds which many subscriptions share are cuts of their own.
        std::vector<std::uint64_t> distinct = bounds;
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (distinct.size() <= kMostCuts) {
            cuts_ = std::move(distinct);
        } else {
            for (std::size_t i = 0; i < kMostCuts; ++i) cuts_.push_back(bounds[i * bounds.size() / kMostCuts]);
            cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
        }
        cuts_.shrink_to_fit();
        for (std::size_t i = 0; i < cuts_.size() / kStride; ++i) guide_[i] = cuts_[i * kStride + kStride - 1];
        lists_.assign(kBuckets + cuts_.size(), kNone);
    }

    // From 1. Not decreasing in the key; the key of a value that lies above it, on no key, is not on a cut.
    std::uint8_t cell(std::uint64_t key, bool is_on_key = true) const {
        const std::size_t below = cuts_up_to(key);
        const bool is_on_cut = below != 0 && is_on_key && cuts_[below - 1] == key;
        return static_cast<std::uint8_t>(2 * below + (is_on_cut ? 0 : 1));
    }

    // The smallest range of cells around an interval of keys, and whether it holds no other values.
    struct Cells {
        std::uint8_t first;
        std::uint8_t last;
        bool is_exact;
    };

    Cells cells_of(std::uint64_t first, std::uint64_t last, bool has_lower, bool has_upper) const {
        Cells cells{1, static_cast<std::uint8_t>(this->cells()), true};
        if (has_lower) {
            const std::size_t below = cuts_up_to(first);
            const bool is_on_cut = below != 0 && cuts_[below - 1] == first;
            cells.first = static_cast<std::uint8_t>(2 * below + (is_on_cut ? 0 : 1));
            cells.is_exact = is_on_cut || (below != 0 && cuts_[below - 1] == first - 1);
        }
        if (has_upper) {
            const std::size_t below = first == last && has_lower ? cells.first / 2U : cuts_up_to(last);
            const bool is_on_cut = below != 0 && cuts_[below - 1] == last;
            cells.last = static_cast<std::uint8_t>(2 * below + (is_on_cut ? 0 : 1));
            cells.is_exact &= is_on_cut || (below < cuts_.size() && cuts_[below] == last + 1);
        }
        return cells;
    }

    std::uint32_t cells() const { return static_cast<std::uint32_t>(2 * cuts_.size() + 1); }
    std::uint32_t dimension() const { return dimension_; }
    bool is_plain() const { return cuts_.empty(); }

    // The numbers of the buckets in which a range of cells is filed.
    struct Buckets {
        std::uint32_t first;
        std::uint32_t count;
    };

    Buckets buckets(std::uint8_t first, std::uint8_t last, std::uint32_t most_copies) const {
        if (is_plain()) return {0, 1};
        const std::uint32_t fine_first = fine(first), fine_count = fine(last) - fine_first + 1;
        if (fine_count <= most_copies) return {fine_first, fine_count};
        const std::uint32_t coarse_first = coarse(first), coarse_count = coarse(last) - coarse_first + 1;
        if (coarse_count <= kCoarseBuckets - 2) return {kFineBuckets + coarse_first, coarse_count};
        return {kBuckets - 1, 1};
    }

    // The lists that may hold ranges with this cell.
    std::array<std::uint32_t, 3> lists_with(std::uint8_t cell) const {
        if (is_plain()) return {lists_[0], kNone, kNone};
        return {lists_[fine(cell)], lists_[kFineBuckets + coarse(cell)], lists_[kBuckets - 1]};
    }

    // The share of the buckets that a range of cells is filed in.
    double share(Buckets buckets) const {
        if (is_plain() || buckets.first == kBuckets - 1) return 1.0;
        if (buckets.first >= kFineBuckets) return static_cast<double>(buckets.count) / kCoarseBuckets;
        const std::uint32_t in_use = std::min(cells(), kFineBuckets);
        return static_cast<double>(buckets.count) / in_use;
    }

    // The cell of a value that is a cut leads to it.
    static bool is_cut(std::uint8_t cell) { return cell % 2 == 0; }
    std::uint32_t value_list(std::uint8_t cell) const { return lists_[kBuckets + cell / 2U - 1]; }
    void set_value_list(std::uint8_t cell, std::uint32_t list) { lists_[kBuckets + cell / 2U - 1] = list; }
    std::uint64_t cut(std::uint8_t cell) const { return cuts_[cell / 2U - 1]; }

    // Where a search in the cuts begins.
    void prefetch_cuts() const {
        __builtin_prefetch(guide_.data());
        __builtin_prefetch(guide_.data() + guide_.size() / 2);
        __builtin_prefetch(&cuts_);
    }

    std::uint32_t list(std::uint32_t bucket) const { return lists_[bucket]; }
    void set_list(std::uint32_t bucket, std::uint32_t list) { lists_[bucket] = list; }

    // One of sixteen parts of the grid, not decreasing in the cell.
    std::uint32_t sixteenth(std::uint8_t cell) const { return (cell - 1U) * 16 / std::max(cells(), 16U); }

    std::uint32_t references = 0;  // from entries and lists

    std::size_t bytes() const {
        return sizeof(Grid) + cuts_.capacity() * sizeof(std::uint64_t) + lists_.capacity() * sizeof(std::uint32_t);
    }

  private:
    static constexpr std::size_t kStride = 8;

    // Counts among every eighth cut, then among eight: two steps that wait for memory, where halving takes seven.
    std::size_t cuts_up_to(std::uint64_t key) const {
        std::size_t strides = 0;
        for (std::size_t i = 0; i < cuts_.size() / kStride; ++i) strides += guide_[i] <= key ? 1 : 0;
        std::size_t count = strides * kStride;
        const std::size_t end = std::min(cuts_.size(), count + kStride);
        for (std::size_t i = strides * kStride; i < end; ++i) count += cuts_[i] <= key ? 1 : 0;
        return count;
    }

    // Cells 1 to n, spread over the buckets.
    std::uint32_t fine(std::uint8_t cell) const { return (cell - 1U) * kFineBuckets / std::max(cells(), kFineBuckets); }
    std::uint32_t coarse(std::uint8_t cell) const { return (cell - 1U) * kCoarseBuckets / std::max(cells(), kCoarseBuckets); }

    std::array<std::uint64_t, kMostCuts / kStride> guide_{};  // the last of each eight cuts
    std::uint32_t dimension_;
    std::vector<std::uint64_t> cuts_;
    std::vector<std::uint32_t> lists_;
};

}  // namespace mercast
