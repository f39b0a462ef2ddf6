// Values as the native indexes compare them. This file does not depend on Python.
//
// A number becomes a 64-bit key in the order of the doubles, and a residual for integers that no double represents.
// (key, residual) compares as the exact values do, also int with float. A text is compared by its UTF-8 bytes, which is
// the order of its code points. Its order key holds its first bytes: a smaller key means a smaller text, and equal keys
// decide nothing. No key is 0, so 0 means "missing".
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mercast {

enum class TypeClass : std::uint8_t { Number, Text, Truth };

inline constexpr std::uint64_t kMissing = 0;
inline constexpr std::uint64_t kSmallestKey = 1;
inline constexpr std::uint64_t kLargestKey = ~std::uint64_t{0};

// In halves, an integer n is 2n, and the keys just above and below it are one away. kNoHalves is no valid number of
// halves.
inline constexpr std::int32_t kNoHalves = INT32_MIN;

struct Number {
    std::uint64_t key = kMissing;
    std::int16_t residual = 0;

    static Number of(double value) {
        const auto bits = std::bit_cast<std::uint64_t>(value);
        const std::uint64_t magnitude = bits & ~kSign, is_negative = bits >> 63;
        // Mirrored at zero rather than complemented. So -0.0 and 0.0 have one key, and short fractions of either sign
        // have a key whose lower half is zero.
        return {kSign + ((magnitude ^ (0 - is_negative)) + is_negative), 0};
    }

    static Number of(std::int64_t value) {
        const auto rounded = static_cast<double>(value);
        Number number = of(rounded);
        if (value > kExactInDouble || value < -kExactInDouble) {
            // 2^63 is a double but not an int64. Integers just below it round up to it.
            number.residual = static_cast<std::int16_t>(rounded == 0x1p63 ? (value - INT64_MAX) - 1
                                                                          : value - static_cast<std::int64_t>(rounded));
        }
        return number;
    }

    // The number that a key represents.
    static double at(std::uint64_t key) {
        const std::uint64_t offset = key - kSign, is_negative = offset >> 63;
        const std::uint64_t magnitude = (offset ^ (0 - is_negative)) + is_negative;
        return std::bit_cast<double>(magnitude | is_negative << 63);
    }

    bool is_on_key() const { return residual == 0; }
    // Beyond 2^53 not every integer is a double, and a value may be between a bound's key and the next.
    bool is_small() const {
        constexpr std::uint64_t kLimit = std::bit_cast<std::uint64_t>(0x1p53);
        return key - (kSign - kLimit) - 1 < 2 * kLimit - 1;
    }

    // The largest key not above the number, and the smallest not below it.
    std::uint64_t floor_key() const { return residual < 0 ? key - 1 : key; }
    std::uint64_t ceiling_key() const { return residual > 0 ? key + 1 : key; }

    friend auto operator<=>(const Number&, const Number&) = default;

  private:
    static constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    static constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;
};

// The number of a text's bytes that its order key contains completely.
inline constexpr std::size_t kTextKeyBytes = 7;

inline std::uint64_t text_order_key(std::string_view text, unsigned char padding = 0) {
    unsigned char bytes[8];
    std::memset(bytes, padding, sizeof bytes);
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size() < 8 ? text.size() : 8);
    std::uint64_t key = 0;
    for (const unsigned char byte : bytes) key = (key << 8) | byte;
    return (std::uint64_t{1} << 63) | (key >> 1);
}

inline std::uint64_t truth_key(bool value) { return value ? 2 : 1; }

inline std::uint64_t mixed(std::uint64_t bits) {
    bits ^= bits >> 32;
    bits *= 0xd6e8feb86659fd93U;
    bits ^= bits >> 32;
    bits *= 0xd6e8feb86659fd93U;
    return bits ^ (bits >> 32);
}

inline std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0x9e3779b97f4a7c15U ^ text.size();
    const char* bytes = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, bytes += 8) {
        std::uint64_t word;
        std::memcpy(&word, bytes, 8);
        hash = mixed(hash ^ word);
    }
    if (left != 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, left);
        hash = mixed(hash ^ word);
    }
    return hash;
}

}  // namespace mercast
