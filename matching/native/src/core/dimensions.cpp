#include "core/dimensions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace mercast {
namespace {

constexpr std::size_t kSampled = 1024;
// A new grid is made after 24 bounds for each condition. The entries that move to it are then few compared with those
// added since the last grid. This is so while the dimension grows and when its values drift.
constexpr std::uint32_t kBoundsForEachUse = 24;
constexpr std::uint32_t kBoundsAtLeast = 480;
// A grid is kept while at most one of this many bounds is not one of its cuts.
constexpr std::size_t kSampleForOneOther = 256;

// The integer at a bound or, for an open bound, next to it. NaN if there is none.
double integer_at(std::uint64_t bound) {
    for (const std::uint64_t key : {bound, bound - 1, bound + 1}) {
        if (const double value = Number::at(key); std::floor(value) == value) return value;
    }
    return std::nan("");
}

// If all bounds are integers of a narrow range, further bounds are expected in this range and next to it.
std::optional<Grid::Integers> integers_around(const std::vector<std::uint64_t>& bounds) {
    double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
    for (const std::uint64_t bound : bounds) {
        const double value = integer_at(bound);
        if (std::isnan(value)) return std::nullopt;
        smallest = std::min(smallest, value);
        largest = std::max(largest, value);
    }
    const double count = largest - smallest + 1;
    if (!(count <= Grid::kMostCuts) || std::abs(smallest) > 0x1p52) return std::nullopt;
    const double margin = std::floor(std::min((Grid::kMostCuts - count) / 2, 1 + count / 64));
    return Grid::Integers{smallest - margin, static_cast<std::uint32_t>(count + 2 * margin)};
}

std::unique_ptr<Grid> grid_for(std::uint32_t number, const Dimension& dimension) {
    if (dimension.aspect == Aspect::Number) {
        if (const auto integers = integers_around(dimension.sample)) return std::make_unique<Grid>(number, *integers);
    }
    return std::make_unique<Grid>(number, dimension.sample);
}

}  // namespace

std::uint32_t Dimensions::make(std::uint32_t attribute, Aspect aspect) {
    if (attribute >= by_attribute_.size()) {
        std::array<std::uint32_t, kAspects> none;
        none.fill(kNone);
        by_attribute_.resize(attribute + 1, none);
    }
    std::uint32_t number = bound();
    if (free_dimensions_.empty()) {
        dimensions_.emplace_back();
    } else {
        number = free_dimensions_.back();
        free_dimensions_.pop_back();
    }
    by_attribute_[attribute][static_cast<std::size_t>(aspect)] = number;
    Dimension& made = dimensions_[number];
    made.attribute = attribute;
    made.aspect = aspect;
    made.grids[0] = add_grid(std::make_unique<Grid>(number));
    made.grid_count = 1;
    made.uses = 1;
    return number;
}

bool Dimensions::release(std::uint32_t number) {
    Dimension& dimension = dimensions_[number];
    if (--dimension.uses != 0) return false;
    for (std::size_t i = 0; i < dimension.grid_count; ++i) drop_grid(dimension.grids[i]);
    by_attribute_[dimension.attribute][static_cast<std::size_t>(dimension.aspect)] = kNone;
    dimension = Dimension();
    free_dimensions_.push_back(number);
    if (free_dimensions_.size() == dimensions_.size()) *this = Dimensions();
    return true;
}

void Dimensions::record_bounds(std::uint32_t number, std::uint64_t first, std::uint64_t last) {
    Dimension& dimension = dimensions_[number];
    if (first > kFirstBound) record_bound(dimension, first);
    if (last < kLastBound && last != first) record_bound(dimension, last);
}

void Dimensions::record_bound(Dimension& dimension, std::uint64_t bound) {
    ++dimension.bounds_seen;
    if (dimension.sample.size() < kSampled) {
        dimension.sample.push_back(bound);
        return;
    }
    // Later bounds are kept less often, so that all are about equally likely to be in the sample.
    const std::uint32_t stride = std::bit_floor(dimension.bounds_seen / static_cast<std::uint32_t>(kSampled));
    if ((dimension.bounds_seen & (stride - 1)) == 0) dimension.sample[mixed(dimension.bounds_seen) % kSampled] = bound;
}

bool Dimensions::has_cuts_for_sample(const Dimension& dimension) const {
    const Grid& grid = *grids_[dimension.newest_grid()];
    std::size_t others = 0;
    for (const std::uint64_t bound : dimension.sample) others += Grid::is_cut(grid.cell(bound)) ? 0 : 1;
    return others * kSampleForOneOther <= dimension.sample.size();
}

std::uint32_t Dimensions::refine(std::uint32_t number) {
    std::uint32_t before = kNone;
    if (!has_cuts_for_sample(dimensions_[number])) {
        Dimension& refined = dimensions_[number];
        const std::uint32_t grid = add_grid(grid_for(number, refined));
        before = refined.newest_grid();
        is_old_[before] = 1;
        refined.grids[refined.grid_count++] = grid;
    }
    Dimension& dimension = dimensions_[number];
    dimension.bounds_seen = 0;
    dimension.bounds_wanted = kBoundsAtLeast + kBoundsForEachUse / kRecordedOneOf * dimension.uses;
    dimension.sample.clear();
    return before;
}

void Dimensions::drop_if_unused(std::uint32_t grid) {
    Dimension& dimension = dimensions_[grids_[grid]->dimension()];
    if (references_[grid] != 0 || dimension.newest_grid() == grid) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < dimension.grid_count; ++i) {
        if (dimension.grids[i] != grid) dimension.grids[kept++] = dimension.grids[i];
    }
    dimension.grid_count = static_cast<std::uint8_t>(kept);
    drop_grid(grid);
}

std::uint32_t Dimensions::add_grid(std::unique_ptr<Grid> grid) {
    if (free_grids_.empty()) {
        grids_.push_back(std::move(grid));
        is_old_.push_back(0);
        references_.push_back(0);
        return grid_bound() - 1;
    }
    const std::uint32_t number = free_grids_.back();
    free_grids_.pop_back();
    grids_[number] = std::move(grid);
    return number;
}

void Dimensions::drop_grid(std::uint32_t grid) {
    grids_[grid].reset();
    is_old_[grid] = 0;
    references_[grid] = 0;
    free_grids_.push_back(grid);
}

std::size_t Dimensions::bytes() const {
    std::size_t total = dimensions_.capacity() * sizeof(Dimension) +
                        grids_.capacity() * (sizeof(void*) + sizeof(std::uint32_t) + 1) +
                        by_attribute_.capacity() * sizeof(by_attribute_[0]) +
                        (free_grids_.capacity() + free_dimensions_.capacity()) * sizeof(std::uint32_t);
    for (const Dimension& dimension : dimensions_) total += dimension.sample.capacity() * sizeof(std::uint64_t);
    for (const auto& grid : grids_) total += grid == nullptr ? 0 : grid->bytes();
    return total;
}

}  // namespace mercast
