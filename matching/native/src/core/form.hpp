// A conjunction as bytes, in the order of its predicates. An index gives expressions back from it, and checks against
// it the conditions that keys alone do not decide. Names and texts are numbers of the vocabulary.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/event.hpp"
#include "core/interning.hpp"
#include "core/predicate.hpp"

namespace mercast {

using Form = std::span<const std::uint8_t>;

// A byte buffer that does not initialise the memory it grows by.
class FormBuffer {
  public:
    operator Form() const { return {bytes_.get(), size_}; }

    void clear() { size_ = 0; }

    void assign(Form form) {
        clear();
        if (!form.empty()) std::memcpy(room(form.size()), form.data(), form.size());
        size_ = form.size();
    }

    // `room` returns the end, behind which this many bytes may be written. `set_end` sets the end after writing.
    std::uint8_t* room(std::size_t bytes) {
        if (size_ + bytes > capacity_) grow(size_ + bytes);
        return bytes_.get() + size_;
    }
    void set_end(const std::uint8_t* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }

  private:
    void grow(std::size_t capacity) {
        capacity = std::max(capacity, 2 * capacity_);
        std::unique_ptr<std::uint8_t[]> larger(new std::uint8_t[capacity]);
        if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }

    std::unique_ptr<std::uint8_t[]> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

class FormReader {
  public:
    explicit FormReader(Form form) : at_(form.data()), end_(form.data() + form.size()) {}

    // Reads the start of the next predicate. Its operands must be read before the predicate after it.
    bool next(Predicate& predicate);
    Operand operand(TypeClass type);
    // Skips a number's bytes.
    void skip_number() { at_ += 1 + std::min<std::size_t>(*at_, 8); }
    // Reads the next predicate with its operands.
    bool next(Predicate& predicate, std::vector<Operand>& operands);

  private:
    std::uint64_t varint();

    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

namespace form_layout {

inline constexpr unsigned kOperatorMask = 0x1f, kNeedsCheck = 0x20;
inline constexpr unsigned kTypeShift = 6;
// The largest sizes of a predicate's start and of an operand.
inline constexpr std::size_t kMostStartBytes = 11, kMostOperandBytes = 10;
// Tag of a double. The tag of an integer is the count of its bytes.
inline constexpr std::uint8_t kDouble = 9;

inline std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
    *at++ = static_cast<std::uint8_t>(value);
    return at;
}

// Writes a varint. Branch-free up to two bytes: the length is not predictable, so two bytes are written and the end
// moves by one or two.
inline std::uint8_t* put_attribute(std::uint8_t* at, std::uint32_t attribute) {
    if (attribute >= 0x4000) return put_varint(at, attribute);
    const bool is_long = attribute >= 0x80;
    at[0] = static_cast<std::uint8_t>((attribute & 0x7f) | static_cast<unsigned>(is_long) << 7);
    at[1] = static_cast<std::uint8_t>(attribute >> 7);
    return at + 1 + is_long;
}

inline std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

// Little-endian.
inline void put_word(std::uint8_t* at, std::uint64_t word) {
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    std::memcpy(at, &word, sizeof word);
}

// Writes a number. Branch-free: always writes eight bytes and moves the end by the number that count, because the
// length is not predictable.
inline std::uint8_t* put_number(std::uint8_t* at, const NumberOperand& operand) {
    if (!operand.is_integer) {
        *at++ = kDouble;
        put_word(at, operand.bits);
        return at + 8;
    }
    const std::uint64_t word = zigzag(static_cast<std::int64_t>(operand.bits));
    // At least one byte, which avoids a branch.
    const unsigned bytes = (static_cast<unsigned>(std::bit_width(word | 1)) + 7) / 8;
    *at++ = static_cast<std::uint8_t>(bytes);
    put_word(at, word);
    return at + bytes;
}

// Start of a predicate on numbers that keys decide.
inline std::uint8_t* put_start(std::uint8_t* at, Operator op, std::uint32_t attribute) {
    static_assert(static_cast<unsigned>(TypeClass::Number) == 0);
    *at++ = static_cast<std::uint8_t>(op);
    return put_attribute(at, attribute);
}

inline std::uint8_t* put_start(std::uint8_t* at, const Predicate& predicate) {
    *at++ = static_cast<std::uint8_t>(static_cast<unsigned>(predicate.op) | (predicate.needs_check ? kNeedsCheck : 0) |
                                      static_cast<unsigned>(predicate.type) << kTypeShift);
    return put_attribute(at, predicate.attribute_number);
}

}  // namespace form_layout

// Acquires a predicate's texts and sets whether it needs a check.
void acquire_texts(Predicate& predicate, std::span<Operand> operands, Vocabulary& vocabulary);
// Appends a predicate's form.
void write_form(const Predicate& predicate, std::span<const Operand> operands, FormBuffer& form);

// Appends the form of a range of numbers that keys decide.
[[gnu::always_inline]] inline void write_range_form(std::uint32_t attribute, Operator op, const NumberOperand& first,
                                                    const NumberOperand& last, FormBuffer& form) {
    using namespace form_layout;
    std::uint8_t* at = put_start(form.room(kMostStartBytes + 2 * kMostOperandBytes), op, attribute);
    at = put_number(at, first);
    form.set_end(op == Operator::Between ? put_number(at, last) : at);
}

// Whether all predicates are true. A pattern counts as true if the attribute is a text: the caller verifies it.
bool satisfies(const Event& event, Form form, const Vocabulary& vocabulary);

}  // namespace mercast
