// Lists of entries: a filter word and a tail each. The words of a list lie together, the tails after them, so that a
// scan reads words alone and touches a tail only where the word lets it pass.
//
// A filter word holds two of the subscription's conditions as ranges of cells of two grids, the tail three more, the
// record's handle and the id. An entry whose conditions are all among these, and exactly ranges of cells, is decided
// without its record. A list of one entry lies in its head, without the tail's conditions: there are as many of these
// lists as there are rare values.
#pragma once

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

struct FilterWord {
    CellRange a, b;
};
static_assert(sizeof(FilterWord) == 8);

inline bool passes(FilterWord word, const std::uint8_t* cells) {
    return passes(word.a, cells) & passes(word.b, cells);
}

struct Entry {
    static constexpr std::size_t kRanges = 5;

    FilterWord word;
    std::array<CellRange, kRanges - 2> rest;
    std::uint32_t record = kNone;
    std::uint32_t id = kUndecided;  // when passing all ranges decides it

    static constexpr std::uint32_t kUndecided = 0xffffffffU;

    void set(std::size_t number, CellRange range) {
        if (number == 0) {
            word.a = range;
        } else if (number == 1) {
            word.b = range;
        } else {
            rest[number - 2] = range;
        }
    }
};

// What a list keeps of an entry beside its word.
struct EntryTail {
    std::uint32_t record;
    std::uint32_t id;
    std::array<CellRange, Entry::kRanges - 2> ranges;
};
static_assert(sizeof(EntryTail) == 20);

inline bool passes(const EntryTail& tail, const std::uint8_t* cells) {
    return passes(tail.ranges[0], cells) & passes(tail.ranges[1], cells) & passes(tail.ranges[2], cells);
}

class EntryLists {
  public:
    // What a list hangs on: a value of a dimension, or a bucket of a grid.
    struct Owner {
        std::uint64_t key = 0;
        std::uint32_t number = 0;
        bool is_bucket = false;
    };

    struct Head {
        union {
            FilterWord* words;  // followed by the tails
            FilterWord word;    // of the only entry
        };
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
            heads_.push_back(Head{{.words = nullptr}, 0, {.capacity = 0}});
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

    bool is_known(std::uint32_t list) const { return list < heads_.size(); }
    const Owner& owner(std::uint32_t list) const { return owners_[list]; }
    const Head& head(std::uint32_t list) const { return heads_[list]; }
    std::uint32_t size(std::uint32_t list) const { return heads_[list].size; }

    static const EntryTail* tails(const Head& head) { return reinterpret_cast<const EntryTail*>(head.words + head.capacity); }

    // The next append would move the list.
    bool is_full(std::uint32_t list) const { return heads_[list].size > 1 && heads_[list].size == heads_[list].capacity; }

    // The entry's position.
    std::uint32_t append(std::uint32_t list, const Entry& entry) {
        Head& head = heads_[list];
        if (head.size == 0) {
            head.word = entry.word;
            head.record = entry.record;
        } else {
            if (head.size == 1) {
                resize_from_one(head);
            } else if (head.size == head.capacity) {
                resize(head, head.capacity + head.capacity / 2 + 1);
            }
            head.words[head.size] = entry.word;
            mutable_tails(head)[head.size] = {entry.record, entry.id, entry.rest};
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
            FilterWord* words = head.words;
            const std::uint32_t only = stored[0].record;
            head.word = words[0];
            head.record = only;
            std::free(words);
        } else if (head.capacity > 8 && head.size < head.capacity / 3) {
            resize(head, head.size + head.size / 2);
        }
        return moved;
    }

    Entry entry(std::uint32_t list, std::uint32_t position) const {
        const Head& head = heads_[list];
        Entry entry;
        if (head.size == 1) {
            entry.word = head.word;
            entry.record = head.record;
        } else {
            const EntryTail& tail = tails(head)[position];
            entry.word = head.words[position];
            entry.rest = tail.ranges;
            entry.record = tail.record;
            entry.id = tail.id;
        }
        return entry;
    }

    void replace(std::uint32_t list, std::uint32_t position, const Entry& entry) {
        Head& head = heads_[list];
        if (head.size == 1) {
            head.word = entry.word;
            head.record = entry.record;
        } else {
            head.words[position] = entry.word;
            mutable_tails(head)[position] = {entry.record, entry.id, entry.rest};
        }
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
        head.words[0] = before.word;
        // The head kept no tail: an open range lets everything pass, and the record decides.
        mutable_tails(head)[0] = {before.record, Entry::kUndecided, {}};
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
