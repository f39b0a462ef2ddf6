// Grids: cells of values and intervals, buckets, and grids of integers compared with grids that search.
#include <algorithm>
#include <vector>

#include "core/grid.hpp"
#include "core/predicate.hpp"
#include "core/terms.hpp"
#include "tests/check.hpp"

namespace mercast {
namespace {

std::uint64_t key_of(double value) { return Number::of(value).key; }

Interval closed(double first, double last) { return {0, key_of(first), key_of(last)}; }

void check_cells(const Grid& grid, const Interval& interval, std::uint32_t first, std::uint32_t last, bool is_exact) {
    const Grid::Cells cells = grid.cells_of(interval);
    CHECK_EQUAL(cells.first, first);
    CHECK_EQUAL(cells.last, last);
    CHECK_EQUAL(cells.is_exact, is_exact);
}

void test_plain_grid() {
    const Grid grid(7);
    CHECK(grid.is_plain());
    CHECK_EQUAL(grid.dimension(), 7U);
    CHECK_EQUAL(grid.cells(), 1U);
    CHECK_EQUAL(grid.cell(key_of(3)), 1U);
    CHECK_EQUAL(grid.lists_with(1)[0], kNone);
    check_cells(grid, closed(1, 2), 1, 1, false);
    check_cells(grid, Interval{7}, 1, 1, true);
}

void test_cells_of_cuts() {
    const Grid grid(0, {key_of(20), key_of(10), key_of(30), key_of(10)});
    CHECK_EQUAL(grid.cells(), 7U);
    CHECK_EQUAL(grid.cell(key_of(-1)), 1U);
    CHECK_EQUAL(grid.cell(key_of(10)), 2U);
    CHECK_EQUAL(grid.cell(key_of(15)), 3U);
    CHECK_EQUAL(grid.cell(key_of(30)), 6U);
    CHECK_EQUAL(grid.cell(kLargestKey), 7U);
    // A value just above a cut, on no key, is not on the cut.
    CHECK_EQUAL(grid.cell(key_of(20), false), 5U);
    CHECK_EQUAL(grid.cut(4), key_of(20));
    check_cells(grid, closed(10, 20), 2, 4, true);
    check_cells(grid, {0, key_of(10) + 1, key_of(20) - 1}, 3, 3, true);
    check_cells(grid, closed(12, 20), 3, 4, false);
    check_cells(grid, closed(12, 13), 3, 3, false);
    check_cells(grid, {0, kFirstBound, key_of(30)}, 1, 6, true);
    check_cells(grid, {0, key_of(30), kLastBound}, 6, 7, true);
}

void test_many_bounds() {
    std::vector<std::uint64_t> bounds;
    for (int i = 0; i < 5'000; ++i) bounds.push_back(key_of(i * 0.37));
    const Grid grid(0, bounds);
    CHECK(grid.cells() <= 255);
    std::uint32_t before = 1, sixteenth = 0;
    for (const std::uint64_t bound : bounds) {
        const std::uint32_t cell = grid.cell(bound);
        CHECK(cell >= before);
        CHECK(cell <= grid.cells());
        CHECK(grid.sixteenth(cell) >= sixteenth);
        CHECK(grid.sixteenth(cell) < 16);
        before = cell;
        sixteenth = grid.sixteenth(cell);
    }
}

// A publication reads a range once if its fine bucket is between those of the range's ends, and not at all otherwise.
// Every publication reads a range in the bucket of the whole grid.
void check_buckets(const Grid& grid) {
    const auto fine = [&](std::uint32_t cell) { return grid.lists_with(cell)[0]; };
    for (std::uint32_t first = 1; first <= grid.cells(); ++first) {
        for (std::uint32_t last = first; last <= grid.cells(); ++last) {
            std::vector<std::uint32_t> filed;
            grid.buckets(first, last).each([&](std::uint32_t bucket) { filed.push_back(bucket); });
            CHECK(filed.size() <= 16);
            const bool is_in_widest = filed == std::vector<std::uint32_t>{Grid::kBuckets - 1};
            for (std::uint32_t cell = 1; cell <= grid.cells(); ++cell) {
                std::ptrdiff_t found = 0;
                for (const std::uint32_t list : grid.lists_with(cell)) {
                    found += std::count(filed.begin(), filed.end(), list);
                }
                const bool is_between = fine(first) <= fine(cell) && fine(cell) <= fine(last);
                CHECK_EQUAL(found, is_in_widest || is_between ? 1 : 0);
            }
        }
    }
}

void test_buckets() {
    for (const int cuts : {1, 3, 15, 16, 40, 127}) {
        std::vector<std::uint64_t> bounds;
        for (int i = 0; i < cuts; ++i) bounds.push_back(key_of(i + 0.5));
        Grid grid(0, bounds);
        // Each bucket's list is its own number, so that the lists of a cell name its buckets.
        for (std::uint32_t bucket = 0; bucket < Grid::kBuckets; ++bucket) grid.set_list(bucket, bucket);
        check_buckets(grid);
    }
}

// A grid of integers finds the same cells by a subtraction as a grid with the same cuts by a search.
void test_integers() {
    constexpr int kFirst = -5, kCount = 60;
    std::vector<std::uint64_t> bounds;
    for (int i = 0; i < kCount; ++i) bounds.push_back(key_of(kFirst + i));
    const Grid searched(0, bounds), integers(0, Grid::Integers{kFirst, kCount});
    CHECK_EQUAL(integers.cells(), searched.cells());
    for (double value = -20; value < 80; value += 0.25) {
        CHECK_EQUAL(integers.cell(key_of(value)), searched.cell(key_of(value)));
        CHECK_EQUAL(integers.cell(key_of(value), false), searched.cell(key_of(value), false));
    }
    for (std::uint32_t cell = 2; cell < integers.cells(); cell += 2)
        CHECK_EQUAL(integers.cut(cell), searched.cut(cell));
    for (const Operator op :
         {Operator::Eq, Operator::Lt, Operator::Le, Operator::Gt, Operator::Ge, Operator::Between}) {
        for (double first = -8; first < 60; first += 0.5) {
            for (double last = first; last < (op == Operator::Between ? 60 : first + 0.5); last += 1.5) {
                const Interval interval = interval_of(op, NumberOperand::of(first), NumberOperand::of(last), 0);
                const Grid::Cells expected = searched.cells_of({0, interval.first, interval.last});
                check_cells(integers, interval, expected.first, expected.last, expected.is_exact);
            }
        }
    }
}

}  // namespace

void test_grid() {
    test_plain_grid();
    test_cells_of_cuts();
    test_many_bounds();
    test_buckets();
    test_integers();
}

}  // namespace mercast
