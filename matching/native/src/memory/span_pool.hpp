// Short arrays of 64-bit words in one growing allocation, addressed by 32-bit offsets.
//
// A released span is kept in the free list of its size and reused, so that adding and removing in turn takes no new
// memory. Offsets stay valid when the memory grows; pointers do not. Short spans do not cross a cache line, so that
// reading one is a single cache miss.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "memory/huge_pages.hpp"

namespace mercast {

class SpanPool {
  public:
    // The capacity of a span for at least this many words.
    static std::uint32_t capacity_for(std::uint32_t words) {
        if (words <= kExact) return words;
        const std::uint32_t half = std::bit_floor(words - 1);
        // There is one more size between two powers of two: at most a third of a span is unused.
        return words <= half + half / 2 ? half + half / 2 : 2 * half;
    }

    std::uint32_t allocate(std::uint32_t words) {
        const std::uint32_t capacity = capacity_for(words);
        std::vector<std::uint32_t>& unused = free_[size_class(capacity)];
        if (!unused.empty()) {
            const std::uint32_t offset = unused.back();
            unused.pop_back();
            used_ += capacity;
            return offset;
        }
        leave_line_for(capacity);
        const std::size_t offset = words_.size();
        if (offset + capacity > kLargest) throw std::length_error("the index is full: 2^31 words of links");
        words_.resize(offset + capacity);
        used_ += capacity;
        return static_cast<std::uint32_t>(offset);
    }

    void release(std::uint32_t offset, std::uint32_t words) {
        const std::uint32_t capacity = capacity_for(words);
        used_ -= capacity;
        if (used_ == 0) {
            *this = SpanPool();
        } else {
            free_[size_class(capacity)].push_back(offset);
        }
    }

    std::uint64_t* at(std::uint32_t offset) { return words_.data() + offset; }
    const std::uint64_t* at(std::uint32_t offset) const { return words_.data() + offset; }

    std::size_t bytes() const {
        std::size_t total = words_.capacity() * sizeof(std::uint64_t);
        for (const auto& unused : free_) total += unused.capacity() * sizeof(std::uint32_t);
        return total;
    }

  private:
    static constexpr std::uint32_t kExact = 16;
    static constexpr std::size_t kLine = 8;  // Words.
    // The highest bit of an offset is free for other uses.
    static constexpr std::size_t kLargest = std::size_t{1} << 31;

    // A span that fits into the rest of a cache line is placed there. Any other starts a new line, and the rest becomes
    // a free span of its size.
    void leave_line_for(std::uint32_t capacity) {
        const auto left = static_cast<std::uint32_t>((kLine - words_.size() % kLine) % kLine);
        if (left == 0 || capacity <= left) return;
        free_[size_class(left)].push_back(static_cast<std::uint32_t>(words_.size()));
        words_.resize(words_.size() + left);
    }

    static std::size_t size_class(std::uint32_t capacity) {
        if (capacity <= kExact) return capacity;
        const bool is_power = std::has_single_bit(capacity);
        return kExact + 2 * static_cast<std::size_t>(std::bit_width(capacity)) + (is_power ? 0 : 1);
    }

    std::vector<std::uint64_t, HugePages<std::uint64_t>> words_;
    std::array<std::vector<std::uint32_t>, kExact + 68> free_;
    std::size_t used_ = 0;
};

}  // namespace mercast
