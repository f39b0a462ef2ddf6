// Lists of entries compared with plain vectors, and the directory of lists while grids change.
#include <cstdint>
#include <vector>

#include "core/dimensions.hpp"
#include "core/values.hpp"
#include "flat/entry_lists.hpp"
#include "flat/list_directory.hpp"
#include "memory/chunk_store.hpp"
#include "tests/check.hpp"
#include "tests/soak.hpp"

namespace mercast {
namespace {

Entry entry_of(std::uint32_t subscription) {
    Entry entry;
    entry.word.codes[0] = static_cast<FilterCode>(subscription);
    entry.tail.id = 2 * subscription;
    return entry;
}

// The list has these subscriptions in this order, by position and by run. Alone, an entry has no conditions.
void check_list(const EntryLists& lists, std::uint32_t list, const std::vector<std::uint32_t>& expected) {
    CHECK_EQUAL(lists.size(list), expected.size());
    for (std::uint32_t i = 0; i < expected.size(); ++i) CHECK_EQUAL(lists.subscription(list, i), expected[i]);
    if (expected.size() < 2) return;
    CHECK_EQUAL(lists.last_subscription(list), expected.back());
    std::size_t position = 0;
    lists.each_run(lists.head(list), [&](const EntryRun& run) {
        CHECK(run.count <= EntryRun::kMost);
        CHECK(run.count != 0);
        for (std::uint32_t i = 0; i < run.count; ++i, ++position) {
            const EntryTail& tail = run.tails[i];
            CHECK_EQUAL(tail.subscription, expected[position]);
            CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(&tail) % 32, 0U);
            if (tail.id == EntryTail::kUndecided) continue;
            CHECK_EQUAL(tail.id, 2 * expected[position]);
            CHECK_EQUAL(run.words[i].codes[0], static_cast<FilterCode>(expected[position]));
        }
    });
    CHECK_EQUAL(position, expected.size());
}

void remove_at(EntryLists& lists, std::uint32_t list, std::vector<std::uint32_t>& expected, std::uint32_t position) {
    const bool is_last = position + 1 == expected.size();
    const std::uint32_t moved = lists.remove(list, position);
    CHECK_EQUAL(moved, is_last ? kNone : expected.back());
    expected[position] = expected.back();
    expected.pop_back();
}

void test_one_list() {
    ChunkStore store;
    EntryLists lists(store);
    Random random(1);
    const std::uint32_t list = lists.create({5, 6, false});
    CHECK_EQUAL(lists.owner(list).key, 5U);
    CHECK_EQUAL(lists.count(), 1U);
    std::vector<std::uint32_t> expected;
    // Up and down over the sizes of blocks, and over several blocks.
    for (const std::uint32_t wanted : {1U, 2U, 3U, 17U, 1U, 300U, 255U, 257U, 2'000U, 512U, 513U, 0U, 40U, 0U}) {
        while (expected.size() < wanted) {
            const std::uint32_t subscription = random.below(60'000);
            CHECK_EQUAL(lists.append(list, entry_of(subscription), subscription), expected.size());
            expected.push_back(subscription);
        }
        while (expected.size() > wanted) {
            remove_at(lists, list, expected, random.below(static_cast<std::uint32_t>(expected.size())));
        }
        check_list(lists, list, expected);
    }
    lists.destroy(list);
    CHECK_EQUAL(lists.count(), 0U);
}

// Blocks move until memory follows what is stored. A subscription is in one list here, whose number is its own.
void test_compaction() {
    ChunkStore store;
    EntryLists lists(store);
    constexpr std::uint32_t kLists = 2'000;
    std::vector<std::vector<std::uint32_t>> expected(kLists);
    for (std::uint32_t i = 0; i < kLists; ++i) {
        CHECK_EQUAL(lists.create({i, 0, false}), i);
        for (std::uint32_t n = 0; n < 3 + i % 40; ++n) {
            lists.append(i, entry_of(i), i);
            expected[i].push_back(i);
        }
    }
    const std::size_t most = lists.bytes();
    const auto compact = [&] {
        for (std::uint32_t block = lists.to_compact(); block != kNone; block = lists.to_compact()) {
            CHECK(!lists.compact((lists.subscription_in(block) + 1) % kLists, block));
            CHECK(lists.compact(lists.subscription_in(block), block));
        }
    };
    for (std::uint32_t i = 0; i < kLists; ++i) {
        while (i % 16 != 0 && !expected[i].empty()) remove_at(lists, i, expected[i], 0);
        compact();
    }
    for (std::uint32_t i = 0; i < kLists; ++i) check_list(lists, i, expected[i]);
    CHECK(lists.bytes() < most / 3);
    lists.set_subscription(16, 2, 77);
    CHECK_EQUAL(lists.entry(16, 2).tail.subscription, 77U);
}

std::uint64_t key_of(int value) { return Number::of(std::int64_t{value}).key; }

// Value lists are found before and after a new grid makes their values cuts, and are counted where they are.
void test_directory() {
    ChunkStore store;
    EntryLists lists(store);
    Dimensions dimensions;
    ListDirectory directory(dimensions, lists);
    CHECK_EQUAL(directory.always(), kNone);
    const std::uint32_t always = directory.always_list();
    CHECK_EQUAL(directory.always_list(), always);
    const std::uint32_t dimension = dimensions.make(1, Aspect::Number);
    const auto cell = [&](int value) { return dimensions.newest_grid(dimension).cell(key_of(value)); };
    const auto find = [&](int value) { return directory.find_value_list(dimension, key_of(value), cell(value)); };
    CHECK_EQUAL(find(4), kNone);
    const std::uint32_t four = directory.value_list(dimension, key_of(4), cell(4));
    const std::uint32_t far = directory.value_list(dimension, key_of(5'000), cell(5'000));
    CHECK(ListDirectory::is_value(lists.owner(four)));
    CHECK(!ListDirectory::is_value(lists.owner(always)));
    CHECK_EQUAL(dimensions[dimension].hashed_value_lists, 2U);
    const std::uint32_t bucket = directory.bucket_list(dimensions[dimension].newest_grid(), 0);
    CHECK(!ListDirectory::is_value(lists.owner(bucket)));

    while (!dimensions.is_outgrown(dimension)) {
        for (int value = 0; value < 50; ++value) dimensions.record_bounds(dimension, key_of(value), kLastBound);
    }
    const std::uint32_t former = dimensions.refine(dimension);
    CHECK(former != kNone);
    CHECK(dimensions.has_old_grids());
    directory.move_value_lists(dimension, former);
    CHECK(Grid::is_cut(cell(4)));
    CHECK(!Grid::is_cut(cell(5'000)));
    CHECK_EQUAL(find(4), four);
    CHECK_EQUAL(find(5'000), far);
    CHECK_EQUAL(directory.find_hashed(dimension, key_of(5'000)), far);
    CHECK_EQUAL(dimensions[dimension].hashed_value_lists, 1U);
    CHECK_EQUAL(dimensions[dimension].value_lists, 2U);

    for (const std::uint32_t list : {four, far, always}) directory.drop(list);
    CHECK_EQUAL(find(4), kNone);
    CHECK_EQUAL(find(5'000), kNone);
    CHECK_EQUAL(directory.always(), kNone);
    CHECK_EQUAL(dimensions[dimension].value_lists, 0U);
    // The bucket list is the last reference to the former grid.
    directory.drop(bucket);
    CHECK(!dimensions.has_old_grids());
    CHECK_EQUAL(lists.count(), 0U);
}

}  // namespace

void test_lists() {
    test_one_list();
    test_compaction();
    test_directory();
}

}  // namespace mercast
