// Lists of entries: a filter word and a reference to a record each. The words of a list lie together, the references
// after them, so that a scan reads words alone and touches a reference only where the word lets it pass.
//
// A filter word holds two of the subscription's conditions, quantised to the cells of two grids. A list of one entry
// lies in its head; there are as many of these as there are rare values.
#pragma once

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

using FilterWord = std::uint64_t;

inline FilterWord filter_word(CellRange a, CellRange b) {
    const auto half = [](CellRange range) {
        return std::uint64_t{range.grid} | std::uint64_t{range.first} << 16 | std::uint64_t{range.span} << 24;
    };
    return half(a) | half(b) << 32;
}

inline std::uint16_t first_grid(FilterWord word) { return static_cast<std::uint16_t>(word); }
inline std::uint16_t second_grid(FilterWord word) { return static_cast<std::uint16_t>(word >> 32); }

// Cells by grid; a missing attribute's is 0, which lies in no range because ranges start at 1 and end by 255.
inline bool passes(FilterWord word, const std::uint8_t* cells) {
    const auto off_a = static_cast<std::uint8_t>(cells[first_grid(word)] - static_cast<std::uint8_t>(word >> 16));
    const auto off_b = static_cast<std::uint8_t>(cells[second_grid(word)] - static_cast<std::uint8_t>(word >> 48));
    return (off_a <= static_cast<std::uint8_t>(word >> 24)) & (off_b <= static_cast<std::uint8_t>(word >> 56));
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
            FilterWord* words;  // followed by the references
            FilterWord word;    // of the only entry
        };
        std::uint32_t size;
        union {
            std::uint32_t capacity;
            std::uint32_t reference;  // of the only entry
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
            heads_.push_back(Head{{.word = 0}, 0, {.reference = 0}});
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

    static const std::uint32_t* references(const Head& head) {
        return reinterpret_cast<const std::uint32_t*>(head.words + head.capacity);
    }

    // The entry's position.
    std::uint32_t append(std::uint32_t list, FilterWord word, std::uint32_t reference) {
        Head& head = heads_[list];
        if (head.size == 0) {
            head.word = word;
            head.reference = reference;
        } else {
            if (head.size == 1) {
                resize_from_one(head);
            } else if (head.size == head.capacity) {
                resize(head, head.capacity + head.capacity / 2 + 1);
            }
            head.words[head.size] = word;
            mutable_references(head)[head.size] = reference;
        }
        return head.size++;
    }

    // Puts the last entry into the place of the one that goes. Returns the reference that moved there, or kNone.
    std::uint32_t remove(std::uint32_t list, std::uint32_t position) {
        Head& head = heads_[list];
        if (head.size == 1) {
            head.size = 0;
            return kNone;
        }
        const std::uint32_t last = --head.size;
        std::uint32_t* references = mutable_references(head);
        const std::uint32_t moved = position == last ? kNone : references[last];
        head.words[position] = head.words[last];
        references[position] = references[last];
        if (head.size == 1) {
            FilterWord* words = head.words;
            const std::uint32_t only = references[0];
            head.word = words[0];
            head.reference = only;
            std::free(words);
        } else if (head.capacity > 8 && head.size < head.capacity / 3) {
            resize(head, head.size + head.size / 2);
        }
        return moved;
    }

    FilterWord word(std::uint32_t list, std::uint32_t position) const {
        const Head& head = heads_[list];
        return head.size == 1 ? head.word : head.words[position];
    }

    void set_reference(std::uint32_t list, std::uint32_t position, std::uint32_t reference) {
        Head& head = heads_[list];
        if (head.size == 1) {
            head.reference = reference;
        } else {
            mutable_references(head)[position] = reference;
        }
    }

    std::uint32_t reference(std::uint32_t list, std::uint32_t position) const {
        const Head& head = heads_[list];
        return head.size == 1 ? head.reference : references(head)[position];
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
    static constexpr std::size_t kEntryBytes = sizeof(FilterWord) + sizeof(std::uint32_t);

    static std::uint32_t* mutable_references(Head& head) {
        return reinterpret_cast<std::uint32_t*>(head.words + head.capacity);
    }

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
        mutable_references(head)[0] = before.reference;
    }

    static void resize(Head& head, std::uint32_t capacity) {
        Head larger = head;
        larger.words = allocate(capacity);
        larger.capacity = capacity;
        std::memcpy(larger.words, head.words, head.size * sizeof(FilterWord));
        std::memcpy(mutable_references(larger), references(head), head.size * sizeof(std::uint32_t));
        std::free(head.words);
        head = larger;
    }

    std::vector<Head> heads_;
    std::vector<Owner> owners_;
    std::vector<std::uint32_t> free_;
};

}  // namespace mercast
