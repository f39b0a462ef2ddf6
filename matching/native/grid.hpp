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

#include "fetch_line.hpp"
#include "storage.hpp"

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

    std::uint32_t references = 0;  // from entries and lists

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
        set_cut_count(static_cast<std::uint32_t>(cuts_.size()));
        // Filled up, so that a search always compares with as many.
        cuts_.resize((cuts_.size() / kStride + 1) * kStride, kLargestKey);
        cuts_.shrink_to_fit();
        guide_.fill(kLargestKey);
        for (std::size_t i = 0; i + 1 < cuts_.size() / kStride; ++i) guide_[i] = cuts_[i * kStride + kStride - 1];
    }

    // A grid whose cuts are all integers of a range needs no search.
    struct Integers {
        std::int64_t first;
        std::uint32_t count;
    };

    Grid(std::uint32_t dimension, Integers integers)
        : dimension_(dimension), is_of_integers_(true), first_integer_(integers.first) {
        set_cut_count(integers.count);
    }

    // From 1. Not decreasing in the key; the key of a value that lies above it, on no key, is not on a cut.
    std::uint8_t cell(std::uint64_t key, bool is_on_key = true) const {
        const std::size_t below = cuts_up_to(key);
        const bool is_on_cut = below != 0 && is_on_key && cut_before(below) == key;
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
            const bool is_on_cut = below != 0 && cut_before(below) == first;
            cells.first = static_cast<std::uint8_t>(2 * below + (is_on_cut ? 0 : 1));
            cells.is_exact = is_on_cut || (below != 0 && cut_before(below) == first - 1);
        }
        if (has_upper) {
            const std::size_t below = first == last && has_lower ? cells.first / 2U : cuts_up_to(last);
            const bool is_on_cut = below != 0 && cut_before(below) == last;
            cells.last = static_cast<std::uint8_t>(2 * below + (is_on_cut ? 0 : 1));
            cells.is_exact &= is_on_cut || (below < cut_count_ && cut_before(below + 1) == last + 1);
        }
        return cells;
    }

    std::uint32_t cells() const { return 2 * cut_count_ + 1; }
    double share_of_cell() const { return share_of_cell_; }
    std::uint32_t dimension() const { return dimension_; }
    bool is_plain() const { return cut_count_ == 0; }

    // The buckets in which a range of cells is filed: coarse ones where it covers them, fine ones at its ends.
    struct Buckets {
        std::uint32_t fine_first, fine_end;      // before the coarse ones, or all there are
        std::uint32_t coarse_first, coarse_end;
        std::uint32_t rest_first, rest_end;      // fine ones after the coarse ones

        template <typename Visit>
        void each(Visit visit) const {
            for (std::uint32_t bucket = fine_first; bucket < fine_end; ++bucket) visit(bucket);
            for (std::uint32_t bucket = coarse_first; bucket < coarse_end; ++bucket) visit(bucket);
            for (std::uint32_t bucket = rest_first; bucket < rest_end; ++bucket) visit(bucket);
        }
    };

    Buckets buckets(std::uint8_t first, std::uint8_t last) const {
        if (is_plain()) return {0, 1, 0, 0, 0, 0};
        const std::uint32_t begin = fine(first), end = fine(last) + 1;
        const std::uint32_t coarse_begin = (begin + kFineInCoarse - 1) / kFineInCoarse, coarse_end = end / kFineInCoarse;
        if (coarse_begin >= coarse_end) return {begin, end, 0, 0, 0, 0};
        // Covers nearly all: what it would spare is not worth the copies.
        if (coarse_end - coarse_begin > kCoarseBuckets - 2) return {kBuckets - 1, kBuckets, 0, 0, 0, 0};
        return {begin, coarse_begin * kFineInCoarse, kFineBuckets + coarse_begin, kFineBuckets + coarse_end,
                coarse_end * kFineInCoarse, end};
    }

    // The lists that may hold ranges with this cell.
    std::array<std::uint32_t, 3> lists_with(std::uint8_t cell) const {
        if (is_plain()) return {lists_[0], kNone, kNone};
        const std::uint32_t bucket = fine(cell);
        return {lists_[bucket], lists_[kFineBuckets + bucket / kFineInCoarse], lists_[kBuckets - 1]};
    }

    // The share of the cells whose publications look at what is filed there.
    double share(const Buckets& buckets) const {
        if (is_plain() || buckets.fine_first == kBuckets - 1) return 1.0;
        const std::uint32_t fine = buckets.fine_end - buckets.fine_first + buckets.rest_end - buckets.rest_first +
                                   (buckets.coarse_end - buckets.coarse_first) * kFineInCoarse;
        return static_cast<double>(fine) / std::min(cells(), kFineBuckets);
    }

    // The cell of a value that is a cut leads to it.
    static bool is_cut(std::uint8_t cell) { return cell % 2 == 0; }
    std::uint32_t value_list(std::uint8_t cell) const { return lists_[kBuckets + cell / 2U - 1]; }
    void set_value_list(std::uint8_t cell, std::uint32_t list) { lists_[kBuckets + cell / 2U - 1] = list; }
    std::uint64_t cut(std::uint8_t cell) const { return cut_before(cell / 2U); }

    // Where a search in the cuts begins.
    void prefetch_cuts() const {
        fetch_line(this);
        fetch_line(guide_.data());
        fetch_line(guide_.data() + guide_.size() / 2);
    }

    std::uint32_t list(std::uint32_t bucket) const { return lists_[bucket]; }
    void set_list(std::uint32_t bucket, std::uint32_t list) { lists_[bucket] = list; }

    // One of sixteen parts of the grid, not decreasing in the cell.
    std::uint32_t sixteenth(std::uint8_t cell) const { return fine(cell) / (kFineBuckets / 16); }

    std::size_t bytes() const {
        return sizeof(Grid) + cuts_.capacity() * sizeof(std::uint64_t) + lists_.capacity() * sizeof(std::uint32_t);
    }

  private:
    void set_cut_count(std::uint32_t count) {
        cut_count_ = count;
        share_of_cell_ = 1.0 / cells();
        buckets_for_cell_ = (kFineBuckets << 16) / std::max(cells(), kFineBuckets);
        lists_.assign(kBuckets + count, kNone);
    }

    // The last of so many cuts.
    std::uint64_t cut_before(std::size_t count) const {
        if (!is_of_integers_) return cuts_[count - 1];
        return Number::of(first_integer_ + static_cast<std::int64_t>(count) - 1).key;
    }

    std::size_t cuts_up_to(std::uint64_t key) const {
        return is_of_integers_ ? integers_up_to(Number::at(key)) : searched_cuts_up_to(key);
    }

    std::size_t integers_up_to(double value) const {
        const std::int64_t end = first_integer_ + cut_count_;
        if (value < static_cast<double>(first_integer_)) return 0;
        if (value >= static_cast<double>(end)) return cut_count_;
        auto below = static_cast<std::int64_t>(value);
        if (static_cast<double>(below) > value) --below;
        return static_cast<std::size_t>(below - first_integer_ + 1);
    }

    std::size_t searched_cuts_up_to(std::uint64_t key) const;

    // Cells 1 to n, spread over the buckets.
    std::uint32_t fine(std::uint8_t cell) const { return (cell - 1U) * buckets_for_cell_ >> 16; }

    std::uint32_t dimension_;
    std::uint32_t cut_count_ = 0;
    std::uint32_t buckets_for_cell_ = 0;  // in 65536ths: dividing takes long
    bool is_of_integers_ = false;
    std::int64_t first_integer_ = 0;
    double share_of_cell_ = 1;
    std::vector<std::uint32_t> lists_;
    std::vector<std::uint64_t> cuts_;
    Guide guide_{};  // the last of each eight cuts
};

}  // namespace mercast
