#include "dimensions.hpp"

namespace mercast {
namespace {

constexpr std::size_t kSampled = 1024;
// A new grid comes after 24 bounds for each condition that is there. What moves to it is little beside what came since
// the last one, while the dimension grows and when its values drift.
constexpr std::uint32_t kBoundsForEachUse = 24;
constexpr std::uint32_t kBoundsAtLeast = 480;

}  // namespace

std::uint32_t Dimensions::acquire(std::uint32_t attribute, Aspect aspect) {
    if (attribute >= by_attribute_.size()) {
        std::array<std::uint32_t, kAspects> none;
        none.fill(kNone);
        by_attribute_.resize(attribute + 1, none);
    }
    std::uint32_t& dimension = by_attribute_[attribute][static_cast<std::size_t>(aspect)];
    if (dimension == kNone) {
        if (free_dimensions_.empty()) {
            dimension = bound();
            dimensions_.emplace_back();
        } else {
            dimension = free_dimensions_.back();
            free_dimensions_.pop_back();
        }
        Dimension& made = dimensions_[dimension];
        made.attribute = attribute;
        made.aspect = aspect;
        made.grids[0] = add_grid(std::make_unique<Grid>(dimension));
        made.grid_count = 1;
    }
    ++dimensions_[dimension].uses;
    return dimension;
}

void Dimensions::release(std::uint32_t number) {
    Dimension& dimension = dimensions_[number];
    if (--dimension.uses != 0) return;
    for (std::size_t i = 0; i < dimension.grid_count; ++i) drop_grid(dimension.grids[i]);
    by_attribute_[dimension.attribute][static_cast<std::size_t>(dimension.aspect)] = kNone;
    dimension = Dimension();
    free_dimensions_.push_back(number);
    if (free_dimensions_.size() == dimensions_.size()) *this = Dimensions();
}

bool Dimensions::note(std::uint32_t number, std::uint64_t first, std::uint64_t last) {
    Dimension& dimension = dimensions_[number];
    if (first > kFirstBound) note_bound(dimension, first);
    if (last < kLastBound && last != first) note_bound(dimension, last);
    return dimension.bounds_seen >= dimension.bounds_wanted && dimension.grid_count < dimension.grids.size();
}

void Dimensions::note_bound(Dimension& dimension, std::uint64_t bound) {
    ++dimension.bounds_seen;
    if (dimension.sample.size() < kSampled) {
        dimension.sample.push_back(bound);
        return;
    }
    // A random number below the bounds seen: the upper half of the product with one below 2^32.
    const std::uint64_t place = (mixed(dimension.bounds_seen) >> 32) * dimension.bounds_seen >> 32;
    if (place < kSampled) dimension.sample[place] = bound;
}

std::uint32_t Dimensions::refine(std::uint32_t number) {
    const std::uint32_t grid = add_grid(std::make_unique<Grid>(number, dimensions_[number].sample));
    Dimension& dimension = dimensions_[number];
    const std::uint32_t before = dimension.newest_grid();
    dimension.grids[dimension.grid_count++] = grid;
    dimension.bounds_seen = 0;
    dimension.bounds_wanted = kBoundsAtLeast + kBoundsForEachUse * dimension.uses;
    dimension.sample.clear();
    return before;
}

void Dimensions::drop_if_unused(std::uint32_t grid) {
    Dimension& dimension = dimensions_[grids_[grid]->dimension()];
    if (grids_[grid]->references != 0 || dimension.newest_grid() == grid) return;
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
        return grid_bound() - 1;
    }
    const std::uint32_t number = free_grids_.back();
    free_grids_.pop_back();
    grids_[number] = std::move(grid);
    return number;
}

void Dimensions::drop_grid(std::uint32_t grid) {
    grids_[grid].reset();
    free_grids_.push_back(grid);
}

std::size_t Dimensions::bytes() const {
    std::size_t total = dimensions_.capacity() * sizeof(Dimension) + grids_.capacity() * sizeof(void*) +
                        by_attribute_.capacity() * sizeof(by_attribute_[0]) +
                        (free_grids_.capacity() + free_dimensions_.capacity()) * sizeof(std::uint32_t);
    for (const Dimension& dimension : dimensions_) total += dimension.sample.capacity() * sizeof(std::uint64_t);
    for (const auto& grid : grids_) total += grid == nullptr ? 0 : grid->bytes();
    return total;
}

}  // namespace mercast
