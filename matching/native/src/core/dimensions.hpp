// The dimensions of the subscriptions' conditions.
//
// An attribute has a dimension for each way in which conditions compare it: numbers, texts by identity, texts by order,
// booleans, presence. A dimension has the keys of its values in their order, and grids over these keys.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/event.hpp"
#include "core/grid.hpp"

namespace mercast {

enum class Aspect : std::uint8_t { Number, Identity, Order, Truth, Presence };
inline constexpr std::size_t kAspects = 5;

// All fields but the sample are in one cache line.
struct alignas(64) Dimension {
    std::uint32_t attribute = Interner::kUnknown;
    Aspect aspect = Aspect::Number;
    std::uint8_t grid_count = 0;
    std::array<std::uint32_t, 6> grids{};  // the newest last
    double publications = 0;               // publications that had a value here
    std::uint32_t uses = 0;                // conditions on it
    std::uint32_t value_lists = 0;         // lists of subscriptions that are filed by value
    std::uint32_t hashed_value_lists = 0;  // those whose value is not a cut of the newest grid
    std::uint32_t value_entries = 0;
    std::uint32_t bounds_seen = 0;      // since the newest grid was made
    std::uint32_t bounds_wanted = 512;  // for the next grid
    std::vector<std::uint64_t> sample;

    std::uint32_t newest_grid() const { return grids[grid_count - 1U]; }
};

class Dimensions {
  public:
    // Counts one more use of an attribute's dimension and returns it. kNone if it does not exist and must be made.
    std::uint32_t acquire(std::uint32_t attribute, Aspect aspect) {
        const std::uint32_t dimension = find(attribute, aspect);
        if (dimension != kNone) ++dimensions_[dimension].uses;
        return dimension;
    }
    std::uint32_t make(std::uint32_t attribute, Aspect aspect);
    // Returns true if this was the last use and the dimension was removed.
    bool release(std::uint32_t dimension);

    // kNone if no subscription has a condition on it.
    std::uint32_t find(std::uint32_t attribute, Aspect aspect) const {
        return attribute < by_attribute_.size() ? by_attribute_[attribute][static_cast<std::size_t>(aspect)] : kNone;
    }

    Dimension& operator[](std::uint32_t dimension) { return dimensions_[dimension]; }
    const Dimension& operator[](std::uint32_t dimension) const { return dimensions_[dimension]; }
    Grid& grid(std::uint32_t grid) { return *grids_[grid]; }
    const Grid& grid(std::uint32_t grid) const { return *grids_[grid]; }
    Grid& newest_grid(std::uint32_t dimension) { return *grids_[dimensions_[dimension].newest_grid()]; }
    const Grid& newest_grid(std::uint32_t dimension) const { return *grids_[dimensions_[dimension].newest_grid()]; }

    // Where a dimension has a grid of its own, the bounds of one condition out of this many are a sufficient sample.
    static constexpr std::uint32_t kRecordedOneOf = 8;
    // Records a condition's bounds in the sample.
    void record_bounds(std::uint32_t dimension, std::uint64_t first, std::uint64_t last);
    // Whether enough bounds were recorded to make a new grid.
    bool is_outgrown(std::uint32_t dimension) const {
        const Dimension& found = dimensions_[dimension];
        return found.bounds_seen >= found.bounds_wanted && found.grid_count < found.grids.size();
    }
    // Makes a new grid from the sample, unless the newest already has its cuts. Returns the previous grid, whose
    // entries should move, or kNone.
    std::uint32_t refine(std::uint32_t dimension);

    // Grid 0 means no grid. Its count has no meaning: counting it too is cheaper than a branch.
    void retain_grid(std::uint32_t grid, std::uint32_t times) { references_[grid] += times; }
    // Removes a grid without references, unless it is its dimension's newest.
    void release_grid(std::uint32_t grid) {
        if (--references_[grid] == 0 && grid != 0) drop_if_unused(grid);
    }

    std::uint32_t bound() const { return static_cast<std::uint32_t>(dimensions_.size()); }
    std::uint32_t grid_bound() const { return static_cast<std::uint32_t>(grids_.size()); }
    std::uint32_t count() const { return bound() - static_cast<std::uint32_t>(free_dimensions_.size()); }
    std::uint32_t grid_count() const { return grid_bound() - 1 - static_cast<std::uint32_t>(free_grids_.size()); }
    bool is_old(std::uint32_t grid) const { return is_old_[grid] != 0; }
    // Whether some grid is not its dimension's newest.
    bool has_old_grids() const { return grid_count() > count(); }
    std::size_t bytes() const;

  private:
    void drop_if_unused(std::uint32_t grid);
    static void record_bound(Dimension& dimension, std::uint64_t bound);
    bool has_cuts_for_sample(const Dimension& dimension) const;
    std::uint32_t add_grid(std::unique_ptr<Grid> grid);
    void drop_grid(std::uint32_t grid);

    std::vector<Dimension> dimensions_;
    std::vector<std::uint32_t> free_dimensions_;
    std::vector<std::unique_ptr<Grid>> grids_ = std::vector<std::unique_ptr<Grid>>(1);  // 0 is no grid
    std::vector<std::uint32_t> references_ = std::vector<std::uint32_t>(1);  // by grid: references of entries and lists
    std::vector<std::uint8_t> is_old_ = std::vector<std::uint8_t>(1);  // by grid: whether its dimension has a newer one
    std::vector<std::uint32_t> free_grids_;
    std::vector<std::array<std::uint32_t, kAspects>> by_attribute_;
};

}  // namespace mercast
