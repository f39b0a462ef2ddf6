// A grid divides a dimension's keys into at most 255 cells. It never changes once entries refer to its cells. A
// dimension that has outgrown its grid gets another one, and the old one exists until its last entry is gone.
//
// Cuts are bounds that subscriptions used. A key that is a cut has its own cell, and so have the keys between two cuts.
// So an interval whose bounds are cuts, open or closed, is exactly a range of cells.
//
// A grid has the lists of ranges, by bucket, and the lists of values that are cuts, by cell.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/interval.hpp"
#include "memory/fetch_line.hpp"
#include "memory/none.hpp"

namespace mercast {

class alignas(64) Grid {
  public:
    static constexpr std::uint32_t kMostCuts = 127;
    static constexpr std::size_t kStride = 8;
    using Guide = std::array<std::uint64_t, 16>;
    // Buckets at three resolutions, so that a wide range needs few copies.
    static constexpr std::uint32_t kFineInCoarse = 4;
    static constexpr std::uint32_t kCoarseBuckets = 8;
    static constexpr std::uint32_t kFineBuckets = kCoarseBuckets * kFineInCoarse;
    static constexpr std::uint32_t kBuckets = kFineBuckets + kCoarseBuckets + 1;

    explicit Grid(std::uint32_t dimension) : dimension_(dimension), lists_(1, kNone) {}

    Grid(std::uint32_t dimension, std::vector<std::uint64_t> bounds) : dimension_(dimension) {
        std::sort(bounds.begin(), bounds.end());
        // By rank with repetitions, so that bounds shared by many subscriptions become cuts.
        std::vector<std::uint64_t> distinct = bounds;
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (distinct.size() <= kMostCuts) {
            cuts_ = std::move(distinct);
        } else {
            for (std::size_t i = 0; i < kMostCuts; ++i) cuts_.push_back(bounds[i * bounds.size() / kMostCuts]);
            cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
        }
        set_cut_count(static_cast<std::uint32_t>(cuts_.size()));
        // Padded, so that every search compares with the same number of cuts.
        cuts_.resize((cuts_.size() / kStride + 1) * kStride, kLargestKey);
        cuts_.shrink_to_fit();
        guide_.fill(kLargestKey);
        for (std::size_t i = 0; i + 1 < cuts_.size() / kStride; ++i) guide_[i] = cuts_[i * kStride + kStride - 1];
    }

    // A grid whose cuts are all integers of a range. It needs no search.
    struct Integers {
        double first;
        std::uint32_t count;
    };

    Grid(std::uint32_t dimension, Integers integers)
        : dimension_(dimension),
          is_of_integers_(true),
          first_cut_(integers.first),
          last_cut_(integers.first + integers.count - 1) {
        set_cut_count(integers.count);
        constexpr double kMost = 1 << 28;
        if (std::abs(first_cut_) > kMost) return;
        first_halves_ = static_cast<std::uint32_t>(2 * static_cast<std::int32_t>(first_cut_));
        halves_ = 2 * integers.count;
    }

    // The cell of a key, from 1, not decreasing in the key. A value between two keys has the key below it and is never
    // on a cut.
    std::uint32_t cell(std::uint64_t key, bool is_on_key = true) const {
        const std::size_t below = cuts_up_to(key);
        const bool is_on_cut = below != 0 && is_on_key && cut_before(below) == key;
        return static_cast<std::uint32_t>(2 * below + (is_on_cut ? 0 : 1));
    }

    // The smallest range of cells around an interval of keys. Exact if it contains no other values.
    struct Cells {
        std::uint32_t first;
        std::uint32_t last;
        bool is_exact;
    };

    // Finds integer bounds by their halves: one subtraction, no search. Branch-free in the kinds of bounds, which are
    // not predictable.
    Cells cells_of(const Interval& interval) const {
        const bool has_lower = interval.has_lower(), has_upper = interval.has_upper();
        const std::uint32_t lower = static_cast<std::uint32_t>(interval.first_halves) - first_halves_;
        const std::uint32_t upper = static_cast<std::uint32_t>(interval.last_halves) - first_halves_ + 1;
        if (((lower < halves_) | !has_lower) & ((upper < halves_) | !has_upper)) {
            return {has_lower ? lower + 2 : 1, has_upper ? upper + 1 : cells(), true};
        }
        return searched_cells_of(interval);
    }

    std::uint32_t cells() const { return 2 * cut_count_ + 1; }
    double share_of_cell() const { return share_of_cell_; }
    std::uint32_t dimension() const { return dimension_; }
    bool is_plain() const { return cut_count_ == 0; }

    // The buckets of a range of cells: coarse ones where the range covers them, fine ones at its ends.
    struct Buckets {
        std::uint32_t fine_first, fine_end;  // before the coarse ones, or all
        std::uint32_t coarse_first, coarse_end;
        std::uint32_t rest_first, rest_end;  // fine ones after the coarse ones

        template <typename Visit>
        void each(Visit visit) const {
            for (std::uint32_t bucket = fine_first; bucket < fine_end; ++bucket) visit(bucket);
            for (std::uint32_t bucket = coarse_first; bucket < coarse_end; ++bucket) visit(bucket);
            for (std::uint32_t bucket = rest_first; bucket < rest_end; ++bucket) visit(bucket);
        }
    };

    Buckets buckets(std::uint32_t first, std::uint32_t last) const {
        if (is_plain()) return {0, 1, 0, 0, 0, 0};
        const std::uint32_t begin = fine(first), end = fine(last) + 1;
        if (covers_nearly_all(begin, end)) return {kBuckets - 1, kBuckets, 0, 0, 0, 0};
        const std::uint32_t coarse_begin = coarse_from(begin), coarse_end = end / kFineInCoarse;
        if (coarse_begin >= coarse_end) return {begin, end, 0, 0, 0, 0};
        return {begin,
                coarse_begin * kFineInCoarse,
                kFineBuckets + coarse_begin,
                kFineBuckets + coarse_end,
                coarse_end * kFineInCoarse,
                end};
    }

    // The lists that may contain ranges with this cell.
    std::array<std::uint32_t, 3> lists_with(std::uint32_t cell) const {
        if (is_plain()) return {lists_[0], kNone, kNone};
        const std::uint32_t bucket = fine(cell);
        return {lists_[bucket], lists_[kFineBuckets + bucket / kFineInCoarse], lists_[kBuckets - 1]};
    }

    // The share of cells whose publications read a range that is filed in its buckets.
    double share(std::uint32_t first, std::uint32_t last) const {
        const std::uint32_t begin = fine(first), end = fine(last) + 1;
        if (is_plain() || covers_nearly_all(begin, end)) return 1.0;
        return (end - begin) * share_of_bucket_;
    }

    // Value lists: a value that is a cut finds its list by its cell, without a hash.
    static bool is_cut(std::uint32_t cell) { return cell % 2 == 0; }
    std::uint32_t value_list(std::uint32_t cell) const { return lists_[kBuckets + cell / 2 - 1]; }
    void set_value_list(std::uint32_t cell, std::uint32_t list) { lists_[kBuckets + cell / 2 - 1] = list; }
    std::uint64_t cut(std::uint32_t cell) const { return cut_before(cell / 2); }

    // Prefetches what a search for a key reads first. Does not read the grid itself, which may not be in the cache.
    void prefetch() const {
        fetch_line(this);
        fetch_line(guide_.data());
        fetch_line(guide_.data() + guide_.size() / 2);
    }

    std::uint32_t list(std::uint32_t bucket) const { return lists_[bucket]; }
    void set_list(std::uint32_t bucket, std::uint32_t list) { lists_[bucket] = list; }

    // The sixteenth of the grid that a cell is in, not decreasing in the cell.
    std::uint32_t sixteenth(std::uint32_t cell) const { return fine(cell) / (kFineBuckets / 16); }

    std::size_t bytes() const {
        return sizeof(Grid) + cuts_.capacity() * sizeof(std::uint64_t) + lists_.capacity() * sizeof(std::uint32_t);
    }

  private:
    void set_cut_count(std::uint32_t count) {
        cut_count_ = count;
        share_of_cell_ = 1.0 / cells();
        share_of_bucket_ = 1.0 / std::min(cells(), kFineBuckets);
        buckets_for_cell_ = (kFineBuckets << 16) / std::max(cells(), kFineBuckets);
        lists_.assign(kBuckets + count, kNone);
    }

    // The last of the first `count` cuts.
    std::uint64_t cut_before(std::size_t count) const {
        if (!is_of_integers_) return cuts_[count - 1];
        return Number::of(first_cut_ + static_cast<double>(count - 1)).key;
    }

    std::size_t cuts_up_to(std::uint64_t key) const {
        return is_of_integers_ ? integers_up_to(Number::at(key)) : searched_cuts_up_to(key);
    }

    std::size_t integers_up_to(double value) const {
        const std::int32_t cut = cut_near(clamped(value));
        return static_cast<std::size_t>(cut + (first_cut_ + cut > value ? 0 : 1));
    }

    // From 0. For a number between the first and the last cut: the cut at or below an integer, or one next to it for
    // other numbers.
    std::int32_t cut_near(double value) const { return static_cast<std::int32_t>(value - first_cut_); }

    // The value, limited to the range of the cuts. NaN becomes the first cut.
    double clamped(double value) const {
        value = value > first_cut_ ? value : first_cut_;
        return value < last_cut_ ? value : last_cut_;
    }

    Cells searched_cells_of(const Interval& interval) const;

    std::size_t searched_cuts_up_to(std::uint64_t key) const;

    // The first coarse bucket that begins at this fine bucket or later.
    static std::uint32_t coarse_from(std::uint32_t fine) { return (fine + kFineInCoarse - 1) / kFineInCoarse; }

    // Whether the range is so wide that the cells it leaves out do not justify several copies.
    static bool covers_nearly_all(std::uint32_t begin, std::uint32_t end) {
        return end / kFineInCoarse > coarse_from(begin) + kCoarseBuckets - 2;
    }

    // Distributes cells 1 to n over the fine buckets.
    std::uint32_t fine(std::uint32_t cell) const { return (cell - 1) * buckets_for_cell_ >> 16; }

    std::uint32_t dimension_;
    std::uint32_t cut_count_ = 0;
    std::uint32_t buckets_for_cell_ = 0;  // in 65536ths, because division is slow
    bool is_of_integers_ = false;
    std::uint32_t first_halves_ = 0;       // of the first cut
    std::uint32_t halves_ = 0;             // from the first cut to above the last; 0 if halves are not used
    double first_cut_ = 0, last_cut_ = 0;  // of a grid of integers
    double share_of_cell_ = 1;
    double share_of_bucket_ = 1;  // of a fine bucket
    std::vector<std::uint32_t> lists_;
    std::vector<std::uint64_t> cuts_;
    Guide guide_{};  // the last of each eight cuts
};

}  // namespace mercast
