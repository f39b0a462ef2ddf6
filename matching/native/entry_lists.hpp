// Lists of entries: a filter word and a tail each. The words of a list lie together, the tails after them, so that a
// scan reads words alone and touches a tail only where the word lets it pass.
//
// A filter word holds two of the subscription's conditions, each as a hash of its grid and a range of sixteenths of it;
// the tail holds five as ranges of the grids' cells, the record's handle and the id. An entry whose conditions are all
// among these, and exactly ranges of cells, is decided without its record. A list of one entry lies in its head, without
// any conditions: there are as many of these lists as there are rare values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "storage.hpp"

namespace mercast {

// A condition on a grid's cell: at least `first`, and at most `span` more. Grid 0 always stands in cell 1.
struct CellRange {
    std::uint16_t grid = 0;
    std::uint8_t first = 1;
    std::uint8_t span = 0;
};

// Cells by grid; a missing attribute's is 0, which lies in no range because ranges start at 1 and end by 255.
inline bool passes(CellRange range, const std::uint8_t* cells) {
    return static_cast<std::uint8_t>(cells[range.grid] - range.first) <= range.span;
}

// What a list keeps of an entry beside its word.
struct EntryTail {
    static constexpr std::size_t kRanges = 5;
    static constexpr std::uint32_t kUndecided = 0xffffffffU;

    std::uint32_t record = kNone;
    std::uint32_t id = kUndecided;  // when passing all ranges decides it
    std::array<CellRange, kRanges> ranges;
};
static_assert(sizeof(EntryTail) == 28);

inline bool passes(const EntryTail& tail, const std::uint8_t* cells) {
    bool all = true;
    for (const CellRange& range : tail.ranges) all &= passes(range, cells);
    return all;
}

// A condition in 16 bits: eight of the grid's hash, four each for the first and the last sixteenth.
using FilterCode = std::uint16_t;
inline constexpr FilterCode kNoCondition = 0;

inline unsigned filter_row(std::uint32_t grid) { return 1 + grid % 255; }

inline FilterCode filter_code(std::uint32_t grid, std::uint32_t first, std::uint32_t last) {
    return static_cast<FilterCode>(filter_row(grid) << 8 | first << 4 | last);
}

struct FilterWord {
    std::array<FilterCode, 2> codes{kNoCondition, kNoCondition};
};
static_assert(sizeof(FilterWord) == 4);

// Which codes a publication satisfies: a byte for each, so that an entry costs two loads. Grids that share a row let too
// much pass, never too little.
class FilterTable {
  public:
    FilterTable() : allowed_(256 * 256, 0) { std::fill_n(allowed_.begin(), 256, std::uint8_t{1}); }

    void allow(std::uint32_t grid, std::uint32_t sixteenth) {
        std::uint8_t* row = &allowed_[filter_row(grid) * 256];
        const std::uint8_t* ranges = kRangesWith[sixteenth].data();
        for (std::size_t i = 0; i < 256; ++i) row[i] |= ranges[i];
    }

    void forbid(std::uint32_t grid) { std::memset(&allowed_[filter_row(grid) * 256], 0, 256); }

    unsigned passes(FilterWord word) const { return allowed_[word.codes[0]] & allowed_[word.codes[1]]; }

  private:
    // For each sixteenth, the ranges that it lies in.
    static constexpr std::array<std::array<std::uint8_t, 256>, 16> kRangesWith = [] {
        std::array<std::array<std::uint8_t, 256>, 16> ranges{};
        for (std::size_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
            for (std::size_t range = 0; range < 256; ++range) {
                ranges[sixteenth][range] = (range >> 4) <= sixteenth && sixteenth <= (range & 15) ? 1 : 0;
            }
        }
        return ranges;
    }();

    std::vector<std::uint8_t> allowed_;
};

struct Entry {
    FilterWord word;
    EntryTail tail;
};

class EntryLists {
  public:
    // What a list hangs on: a value of a dimension, or a bucket of a grid.
    struct Owner {
        std::uint64_t key = 0;
        std::uint32_t number = 0;
        bool is_bucket = false;
    };

    struct Head {
        FilterWord* words;  // followed by the tails; none while there is one entry
        std::uint32_t size;
        union {
            std::uint32_t capacity;
            std::uint32_t record;  // of the only entry
        };
    };

    EntryLists() = default;
    EntryLists(const EntryLists&) = delete;
    EntryLists& operator=(const EntryLists&) = delete;
    ~EntryLists() {
        for (const Head& head : heads_) {
            if (head.size > 1) std::free(head.words);
        }
    }

    std::uint32_t create(Owner owner) {
        if (free_.empty()) {
            heads_.push_back(Head{nullptr, 0, {.capacity = 0}});
            owners_.push_back(owner);
            return static_cast<std::uint32_t>(heads_.size() - 1);
        }
        const std::uint32_t list = free_.back();
        free_.pop_back();
        owners_[list] = owner;
        return list;
    }

    void destroy(std::uint32_t list) {
        free_.push_back(list);
        if (free_.size() == heads_.size()) {
            std::vector<Head>().swap(heads_);
            std::vector<Owner>().swap(owners_);
            std::vector<std::uint32_t>().swap(free_);
        }
    }

    const Owner& owner(std::uint32_t list) const { return owners_[list]; }
    const Head& head(std::uint32_t list) const { return heads_[list]; }
    std::uint32_t size(std::uint32_t list) const { return heads_[list].size; }

    static const EntryTail* tails(const Head& head) { return reinterpret_cast<const EntryTail*>(head.words + head.capacity); }

    // The next append would move the list.
    bool is_full(std::uint32_t list) const { return heads_[list].size == 1 || heads_[list].size == heads_[list].capacity; }

    // Before an append.
    void prefetch_end(std::uint32_t list) const {
        const Head& head = heads_[list];
        if (head.size < 2) return;
        __builtin_prefetch(head.words + head.size, 1);
        __builtin_prefetch(tails(head) + head.size, 1);
    }

    // The entry's position.
    std::uint32_t append(std::uint32_t list, const Entry& entry) {
        Head& head = heads_[list];
        if (head.size == 0) {
            head.record = entry.tail.record;
        } else {
            if (head.size == 1) {
                resize_from_one(head);
            } else if (head.size == head.capacity) {
                resize(head, head.capacity + head.capacity / 2 + 1);
            }
            head.words[head.size] = entry.word;
            mutable_tails(head)[head.size] = entry.tail;
        }
        return head.size++;
    }

    // Puts the last entry into the place of the one that goes. Returns the record of the one that moved, or kNone.
    std::uint32_t remove(std::uint32_t list, std::uint32_t position) {
        Head& head = heads_[list];
        if (head.size == 1) {
            head.size = 0;
            return kNone;
        }
        const std::uint32_t last = --head.size;
        EntryTail* stored = mutable_tails(head);
        const std::uint32_t moved = position == last ? kNone : stored[last].record;
        head.words[position] = head.words[last];
        stored[position] = stored[last];
        if (head.size == 1) {
            const std::uint32_t only = stored[0].record;
            std::free(head.words);
            head.words = nullptr;
            head.record = only;
        } else if (head.capacity > 8 && head.size < head.capacity / 3) {
            resize(head, head.size + head.size / 2);
        }
        return moved;
    }

    Entry entry(std::uint32_t list, std::uint32_t position) const {
        const Head& head = heads_[list];
        Entry entry;
        if (head.size == 1) {
            entry.tail.record = head.record;
        } else {
            entry.word = head.words[position];
            entry.tail = tails(head)[position];
        }
        return entry;
    }

    // Of a list of several.
    void replace(std::uint32_t list, std::uint32_t position, const Entry& entry) {
        Head& head = heads_[list];
        head.words[position] = entry.word;
        mutable_tails(head)[position] = entry.tail;
    }

    std::uint32_t record(std::uint32_t list, std::uint32_t position) const {
        const Head& head = heads_[list];
        return head.size == 1 ? head.record : tails(head)[position].record;
    }

    void set_record(std::uint32_t list, std::uint32_t position, std::uint32_t record) {
        Head& head = heads_[list];
        (head.size == 1 ? head.record : mutable_tails(head)[position].record) = record;
    }

    std::uint32_t count() const { return static_cast<std::uint32_t>(heads_.size() - free_.size()); }

    std::size_t bytes() const {
        std::size_t total = heads_.capacity() * (sizeof(Head)) + owners_.capacity() * sizeof(Owner) +
                            free_.capacity() * sizeof(std::uint32_t);
        for (const Head& head : heads_) {
            if (head.size > 1) total += head.capacity * kEntryBytes + 16;
        }
        return total;
    }

  private:
    static constexpr std::size_t kEntryBytes = sizeof(FilterWord) + sizeof(EntryTail);

    static EntryTail* mutable_tails(Head& head) { return reinterpret_cast<EntryTail*>(head.words + head.capacity); }

    static FilterWord* allocate(std::uint32_t capacity) {
        auto* words = static_cast<FilterWord*>(std::malloc(capacity * kEntryBytes));
        if (words == nullptr) throw std::bad_alloc();
        return words;
    }

    static void resize_from_one(Head& head) {
        const Head before = head;
        head.words = allocate(2);
        head.capacity = 2;
        head.words[0] = FilterWord{};
        mutable_tails(head)[0] = {.record = before.record, .id = EntryTail::kUndecided, .ranges = {}};
    }

    static void resize(Head& head, std::uint32_t capacity) {
        Head larger = head;
        larger.words = allocate(capacity);
        larger.capacity = capacity;
        std::memcpy(larger.words, head.words, head.size * sizeof(FilterWord));
        std::memcpy(mutable_tails(larger), tails(head), head.size * sizeof(EntryTail));
        std::free(head.words);
        head = larger;
    }

    std::vector<Head> heads_;
    std::vector<Owner> owners_;
    std::vector<std::uint32_t> free_;
};

}  // namespace mercast
