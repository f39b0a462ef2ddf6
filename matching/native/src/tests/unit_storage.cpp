// Storage: chunks, huge pages, slots, spans and hash tables. Memory follows what is stored.
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "core/id_table.hpp"
#include "flat/hash_tables.hpp"
#include "memory/chunk_store.hpp"
#include "memory/huge_pages.hpp"
#include "memory/slot_pool.hpp"
#include "memory/span_pool.hpp"
#include "tests/check.hpp"
#include "tests/soak.hpp"

namespace mercast {
namespace {

bool is_filled(const std::byte* memory, std::size_t bytes, int value) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (memory[i] != static_cast<std::byte>(value)) return false;
    }
    return true;
}

void test_small_store() {
    ChunkStore store;
    std::byte* chunk = store.acquire(100);
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(chunk) % 64, 0U);
    CHECK_EQUAL(store.spare_bytes(), 0U);
    store.release(chunk, 100);
    CHECK_EQUAL(store.spare_bytes(), 0U);
}

// Beyond kLarge, chunks come from huge pages. They do not overlap, are reused, and leave little memory unused.
void test_large_store() {
    constexpr std::size_t kBytes = 9 * 4096, kCount = 1'000;
    ChunkStore store;
    std::vector<std::byte*> chunks;
    for (std::size_t i = 0; i < kCount; ++i) {
        chunks.push_back(store.acquire(kBytes));
        std::memset(chunks[i], static_cast<int>(i % 251), kBytes);
    }
    for (std::size_t i = 0; i < kCount; ++i) CHECK(is_filled(chunks[i], kBytes, static_cast<int>(i % 251)));
    CHECK(store.spare_bytes() < kCount * kBytes / 8);
    for (std::size_t i = 0; i < kCount; ++i) {
        if (i % 4 != 0) store.release(chunks[i], kBytes);
    }
    // Pages were returned to the system, except for one in eight.
    CHECK(store.spare_bytes() < kCount * kBytes / 4);
    for (std::size_t i = 0; i < kCount; i += 4) CHECK(is_filled(chunks[i], kBytes, static_cast<int>(i % 251)));
    for (std::size_t i = 1; i < kCount; i += 4) {
        chunks[i] = store.acquire(kBytes);
        std::memset(chunks[i], 7, kBytes);
    }
    for (std::size_t i = 0; i < kCount; i += 4) CHECK(is_filled(chunks[i], kBytes, static_cast<int>(i % 251)));
    for (std::size_t i = 0; i < kCount; ++i) {
        if (i % 4 < 2) store.release(chunks[i], kBytes);
    }
    CHECK(store.spare_bytes() < kHugePage);
}

void test_huge_vector() {
    std::vector<std::uint64_t, HugePages<std::uint64_t>> numbers;
    constexpr std::uint64_t kCount = 3 * kWorthHugePages / sizeof(std::uint64_t);
    for (std::uint64_t i = 0; i < kCount; ++i) numbers.push_back(i);
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(numbers.data()) % kHugePage, 0U);
    for (std::uint64_t i = 0; i < kCount; i += 1'000) CHECK_EQUAL(numbers[i], i);
    numbers.resize(10);
    numbers.shrink_to_fit();
    CHECK_EQUAL(numbers[9], 9U);
}

void test_slots() {
    ChunkStore store;
    SlotPool pool(24, 4, store);
    CHECK_EQUAL(pool.to_compact(), kNone);
    std::set<std::uint32_t> slots;
    for (int i = 0; i < 200; ++i) slots.insert(pool.allocate());
    CHECK_EQUAL(slots.size(), 200U);
    for (const std::uint32_t slot : slots) std::memset(pool.at(slot), static_cast<int>(slot), 24);
    for (const std::uint32_t slot : slots) CHECK(is_filled(pool.at(slot), 24, static_cast<int>(slot)));
    const std::size_t most = pool.bytes();
    pool.free(3);
    CHECK_EQUAL(pool.allocate(), 3U);
    // With most slots free, the last live one should move. It does, until memory follows what is stored.
    std::set<std::uint32_t> live;
    for (const std::uint32_t slot : slots) {
        if (slot % 10 == 9) {
            live.insert(slot);
        } else {
            pool.free(slot);
        }
    }
    for (std::uint32_t slot = pool.to_compact(); slot != kNone; slot = pool.to_compact()) {
        CHECK_EQUAL(live.count(slot), 1U);
        const std::uint32_t other = pool.allocate();
        CHECK(other < slot);
        pool.free(slot);
        live.erase(slot);
        CHECK(live.insert(other).second);
    }
    CHECK_EQUAL(live.size(), 20U);
    for (const std::uint32_t slot : live) pool.free(slot);
    CHECK(pool.bytes() < most / 2);
}

void test_sized_slots() {
    ChunkStore store;
    SizedSlots<16, 31> slots(store);
    for (std::size_t bytes = 1; bytes <= slots.kLargest; ++bytes) {
        const std::uint32_t handle = slots.allocate(bytes);
        CHECK(slots.slot_bytes(handle) >= bytes);
        CHECK(slots.slot_bytes(handle) < bytes + 16);
        std::memset(slots.at(handle), 1, bytes);
        slots.free(handle);
    }
}

void test_spans() {
    SpanPool pool;
    for (std::uint32_t words = 1; words <= 1'000; ++words) {
        CHECK(SpanPool::capacity_for(words) >= words);
        CHECK(words <= 16 || SpanPool::capacity_for(words) * 2 <= words * 3);
        const std::uint32_t offset = pool.allocate(words);
        CHECK(words > 8 || offset / 8 == (offset + words - 1) / 8);
        for (std::uint32_t i = 0; i < words; ++i) pool.at(offset)[i] = words;
        if (words == 100) pool.release(offset, words);
        if (words == 101) CHECK_EQUAL(SpanPool::capacity_for(101), SpanPool::capacity_for(128));
    }
    const std::uint32_t one = pool.allocate(5);
    pool.release(one, 5);
    CHECK_EQUAL(pool.allocate(5), one);
}

void test_value_table() {
    ValueTable table;
    for (std::uint32_t i = 0; i < 10'000; ++i) table.insert({i / 3, i % 3}, i);
    for (std::uint32_t i = 0; i < 10'000; ++i) CHECK_EQUAL(table.find({i / 3, i % 3}), i);
    CHECK_EQUAL(table.find({10'000, 0}), kNone);
    const std::size_t most = table.bytes();
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        if (i % 100 != 0) table.erase({i / 3, i % 3});
    }
    for (std::uint32_t i = 0; i < 10'000; ++i) CHECK_EQUAL(table.find({i / 3, i % 3}), i % 100 == 0 ? i : kNone);
    CHECK(table.bytes() < most / 8);
}

void test_handle_table() {
    HandleTable table;
    const std::int64_t extreme[] = {INT64_MIN, -9, -8, -1, 0, 1, 7, 8, INT64_MAX};
    std::uint32_t handle = 0;
    for (const std::int64_t id : extreme) CHECK(table.insert_if_absent(id, handle++));
    CHECK(!table.insert_if_absent(-8, 99));
    handle = 0;
    for (const std::int64_t id : extreme) CHECK_EQUAL(table.find(id), handle++);
    CHECK_EQUAL(table.find(2), kNone);
    table.replace(7, 70);
    CHECK_EQUAL(table.find(7), 70U);
    std::set<std::int64_t> visited;
    table.each([&](std::int64_t id, std::uint32_t) { visited.insert(id); });
    CHECK(visited == std::set<std::int64_t>(std::begin(extreme), std::end(extreme)));
    for (const std::int64_t id : extreme) table.erase(id);
    CHECK_EQUAL(table.size(), 0U);
    CHECK_EQUAL(table.find(0), kNone);
}

// The comparison distinguishes equal hashes, and a removal keeps the others.
void test_id_table() {
    IdTable table;
    for (std::uint32_t id = 0; id < 1'000; ++id) table.insert(id % 7, id);
    const auto find = [&](std::uint32_t id) {
        return table.find(id % 7, [&](std::uint32_t other) { return other == id; });
    };
    for (std::uint32_t id = 0; id < 1'000; id += 2) table.erase(id % 7, id);
    for (std::uint32_t id = 0; id < 1'000; ++id) CHECK_EQUAL(find(id), id % 2 == 0 ? kNone : id);
    for (std::uint32_t id = 1; id < 1'000; id += 2) table.erase(id % 7, id);
    CHECK_EQUAL(table.bytes(), 0U);
}

}  // namespace

void test_storage() {
    test_small_store();
    test_large_store();
    test_huge_vector();
    test_slots();
    test_sized_slots();
    test_spans();
    test_value_table();
    test_handle_table();
    test_id_table();
}

}  // namespace mercast
