#include "core/grid.hpp"

#include "core/vectors.hpp"

#ifdef MERCAST_HAS_VECTORS
#include <immintrin.h>
#endif

namespace mercast {
namespace {

constexpr std::size_t kStride = Grid::kStride;

// Both count cuts in the guide (the last of each eight cuts), then among eight cuts: two dependent reads, where a
// binary search takes seven. Only the largest key reaches the padding of guide and cuts.
std::size_t count_one_by_one(const Grid::Guide& guide, const std::vector<std::uint64_t>& cuts, std::uint64_t key) {
    std::size_t strides = 0;
    for (const std::uint64_t cut : guide) strides += cut <= key ? 1 : 0;
    strides = std::min(strides, cuts.size() / kStride - 1);
    const std::uint64_t* rest = cuts.data() + strides * kStride;
    std::size_t count = strides * kStride;
    for (std::size_t i = 0; i < kStride; ++i) count += rest[i] <= key ? 1 : 0;
    return count;
}

#ifdef MERCAST_HAS_VECTORS

MERCAST_VECTORS std::size_t count_by_vectors(const Grid::Guide& guide, const std::vector<std::uint64_t>& cuts,
                                             std::uint64_t key) {
    const __m512i keys = _mm512_set1_epi64(static_cast<long long>(key));
    const unsigned lower = _mm512_cmple_epu64_mask(_mm512_loadu_si512(&guide[0]), keys);
    const unsigned upper = _mm512_cmple_epu64_mask(_mm512_loadu_si512(&guide[kStride]), keys);
    std::size_t strides = static_cast<std::size_t>(__builtin_popcount(lower | upper << kStride));
    strides = std::min(strides, cuts.size() / kStride - 1);
    const unsigned rest = _mm512_cmple_epu64_mask(_mm512_loadu_si512(&cuts[strides * kStride]), keys);
    return strides * kStride + static_cast<std::size_t>(__builtin_popcount(rest));
}

#endif

}  // namespace

Grid::Cells Grid::searched_cells_of(const Interval& interval) const {
    const std::uint64_t first = interval.first, last = interval.last;
    const bool has_lower = interval.has_lower(), has_upper = interval.has_upper();
    Cells cells{1, this->cells(), true};
    if (has_lower) {
        const std::size_t below = cuts_up_to(first);
        const bool is_on_cut = below != 0 && cut_before(below) == first;
        cells.first = static_cast<std::uint32_t>(2 * below + (is_on_cut ? 0 : 1));
        cells.is_exact = is_on_cut || (below != 0 && cut_before(below) == first - 1);
    }
    if (has_upper) {
        const std::size_t below = first == last && has_lower ? cells.first / 2 : cuts_up_to(last);
        const bool is_on_cut = below != 0 && cut_before(below) == last;
        cells.last = static_cast<std::uint32_t>(2 * below + (is_on_cut ? 0 : 1));
        cells.is_exact &= is_on_cut || (below < cut_count_ && cut_before(below + 1) == last + 1);
    }
    return cells;
}

std::size_t Grid::searched_cuts_up_to(std::uint64_t key) const {
    if (is_plain()) return 0;
#ifdef MERCAST_HAS_VECTORS
    if (vectors_are_used.load(std::memory_order_relaxed)) {
        return std::min<std::size_t>(count_by_vectors(guide_, cuts_, key), cut_count_);
    }
#endif
    return std::min<std::size_t>(count_one_by_one(guide_, cuts_, key), cut_count_);
}

}  // namespace mercast
