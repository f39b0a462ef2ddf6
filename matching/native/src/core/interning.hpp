// Texts that subscriptions use, each with a small number. Publications only look texts up, so they cannot grow the
// table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/values.hpp"

namespace mercast {

class Interner {
  public:
    static constexpr std::uint32_t kUnknown = 0;

    // The text's number. It is valid until it was released as often as acquired. Numbers are reused.
    std::uint32_t acquire(std::string_view text) {
        const std::uint64_t hash = hash_of(text);
        if (const std::uint32_t known = find(text, hash); known != kUnknown) {
            ++entries_[known].references;
            return known;
        }
        if ((used_ + 1) * 2 > slots_.size()) grow();
        std::uint32_t number = free_;
        if (number != kUnknown) {
            free_ = entries_[number].references;
        } else {
            number = static_cast<std::uint32_t>(entries_.size());
            entries_.emplace_back();
        }
        entries_[number] = Entry{std::string(text), hash, 1};
        insert_slot(number);
        ++used_;
        return number;
    }

    void retain(std::uint32_t number) { ++entries_[number].references; }

    // Returns true if this was the last reference.
    bool release(std::uint32_t number) {
        Entry& entry = entries_[number];
        if (--entry.references != 0) return false;
        ++generation_;
        remove_slot(number);
        entry.text = std::string();
        entry.references = free_;
        free_ = number;
        --used_;
        if (used_ == 0) {
            const std::uint64_t generation = generation_;
            *this = Interner();
            generation_ = generation;
        }
        return true;
    }

    std::uint32_t find(std::string_view text) const { return used_ == 0 ? kUnknown : find(text, hash_of(text)); }

    const std::string& text(std::uint32_t number) const { return entries_[number].text; }

    // Changes whenever a number stops denoting its text.
    std::uint64_t generation() const { return generation_; }

    // One more than the largest number used since the interner was last empty.
    std::uint32_t bound() const { return static_cast<std::uint32_t>(entries_.size()); }
    std::uint32_t size() const { return used_; }

    std::size_t bytes() const {
        std::size_t total = entries_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(std::uint32_t);
        for (const Entry& entry : entries_) {
            if (entry.text.capacity() > 15) total += entry.text.capacity() + 1;
        }
        return total;
    }

  private:
    struct Entry {
        std::string text;
        std::uint64_t hash = 0;
        std::uint32_t references = 0;  // The next free number while this one is free.
    };

    std::uint32_t find(std::string_view text, std::uint64_t hash) const {
        if (slots_.empty()) return kUnknown;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = hash & mask; slots_[at] != kUnknown; at = (at + 1) & mask) {
            const Entry& entry = entries_[slots_[at]];
            if (entry.hash == hash && entry.text == text) return slots_[at];
        }
        return kUnknown;
    }

    void insert_slot(std::uint32_t number) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = entries_[number].hash & mask;
        while (slots_[at] != kUnknown) at = (at + 1) & mask;
        slots_[at] = number;
    }

    void remove_slot(std::uint32_t number) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t hole = entries_[number].hash & mask;
        while (slots_[hole] != number) hole = (hole + 1) & mask;
        // Linear probing without tombstones: entries that the hole would hide move into it.
        for (std::size_t at = (hole + 1) & mask; slots_[at] != kUnknown; at = (at + 1) & mask) {
            const std::size_t home = entries_[slots_[at]].hash & mask;
            if (((at - home) & mask) >= ((at - hole) & mask)) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole] = kUnknown;
    }

    void grow() {
        slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, kUnknown);
        std::vector<bool> is_free(entries_.size(), false);
        for (std::uint32_t number = free_; number != kUnknown; number = entries_[number].references) {
            is_free[number] = true;
        }
        for (std::uint32_t number = 1; number < entries_.size(); ++number) {
            if (!is_free[number]) insert_slot(number);
        }
    }

    std::vector<Entry> entries_ = std::vector<Entry>(1);
    std::vector<std::uint32_t> slots_;
    std::uint32_t free_ = kUnknown;
    std::uint32_t used_ = 0;
    std::uint64_t generation_ = 0;
};

// The vocabulary of an index's subscriptions: attribute names and the texts that they compare with.
struct Vocabulary {
    Interner attributes;
    Interner texts;

    std::size_t bytes() const { return attributes.bytes() + texts.bytes(); }
};

}  // namespace mercast
