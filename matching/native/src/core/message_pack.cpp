#include "core/message_pack.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace mercast {
namespace {

class Reader {
  public:
    Reader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}

    bool is_at_end() const { return at_ == end_; }

    bool read_byte(std::uint8_t& byte) {
        if (at_ == end_) return false;
        byte = *at_++;
        return true;
    }

    // Big-endian, as all numbers in MessagePack.
    template <typename Unsigned>
    bool read_unsigned(std::uint64_t& value) {
        if (static_cast<std::size_t>(end_ - at_) < sizeof(Unsigned)) return false;
        value = 0;
        for (std::size_t i = 0; i < sizeof(Unsigned); ++i) value = (value << 8) | at_[i];
        at_ += sizeof(Unsigned);
        return true;
    }

    bool read_text(std::uint64_t size, std::string_view& text) {
        if (static_cast<std::uint64_t>(end_ - at_) < size || !is_utf8(at_, size)) return false;
        text = {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(size)};
        at_ += size;
        return true;
    }

    bool read_map_size(std::uint64_t& size) {
        std::uint8_t tag;
        if (!read_byte(tag)) return false;
        if ((tag & 0xf0) == 0x80) {
            size = tag & 0x0f;
            return true;
        }
        return tag == 0xde ? read_unsigned<std::uint16_t>(size) : tag == 0xdf && read_unsigned<std::uint32_t>(size);
    }

    bool read_text_after(std::uint8_t tag, std::string_view& text) {
        std::uint64_t size = 0;
        if ((tag & 0xe0) == 0xa0) {
            size = tag & 0x1f;
        } else if (tag == 0xd9) {
            if (!read_unsigned<std::uint8_t>(size)) return false;
        } else if (tag == 0xda) {
            if (!read_unsigned<std::uint16_t>(size)) return false;
        } else if (tag == 0xdb) {
            if (!read_unsigned<std::uint32_t>(size)) return false;
        } else {
            return false;
        }
        return read_text(size, text);
    }

    bool read_value(std::uint32_t attribute, Event& event) {
        std::uint8_t tag;
        if (!read_byte(tag)) return false;
        if (tag <= 0x7f) return put(attribute, Number::of(std::int64_t{tag}), event);
        if (tag >= 0xe0) return put(attribute, Number::of(std::int64_t{static_cast<std::int8_t>(tag)}), event);
        if (tag == 0xc2 || tag == 0xc3) {
            return attribute == Interner::kUnknown || event.add_truth(attribute, tag == 0xc3);
        }
        std::string_view text;
        Number number;
        if (read_number_after(tag, number)) return put(attribute, number, event);
        if (!read_text_after(tag, text)) return false;
        return attribute == Interner::kUnknown || event.add(attribute, text);
    }

  private:
    static bool put(std::uint32_t attribute, Number number, Event& event) {
        return attribute == Interner::kUnknown || event.add(attribute, number);
    }

    template <typename Unsigned, typename Signed>
    bool read_integer(Number& number) {
        std::uint64_t bits = 0;
        if (!read_unsigned<Unsigned>(bits)) return false;
        number = Number::of(static_cast<std::int64_t>(static_cast<Signed>(bits)));
        return true;
    }

    bool read_number_after(std::uint8_t tag, Number& number) {
        std::uint64_t bits = 0;
        switch (tag) {
            case 0xcc: return read_integer<std::uint8_t, std::uint8_t>(number);
            case 0xcd: return read_integer<std::uint16_t, std::uint16_t>(number);
            case 0xce: return read_integer<std::uint32_t, std::uint32_t>(number);
            case 0xcf:
                if (!read_unsigned<std::uint64_t>(bits) || bits > static_cast<std::uint64_t>(INT64_MAX)) return false;
                number = Number::of(static_cast<std::int64_t>(bits));
                return true;
            case 0xd0: return read_integer<std::uint8_t, std::int8_t>(number);
            case 0xd1: return read_integer<std::uint16_t, std::int16_t>(number);
            case 0xd2: return read_integer<std::uint32_t, std::int32_t>(number);
            case 0xd3: return read_integer<std::uint64_t, std::int64_t>(number);
            case 0xca:
                return read_unsigned<std::uint32_t>(bits) &&
                       read_double(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))), number);
            case 0xcb: return read_unsigned<std::uint64_t>(bits) && read_double(std::bit_cast<double>(bits), number);
            default: return false;
        }
    }

    static bool read_double(double value, Number& number) {
        if (std::isnan(value)) return false;
        number = Number::of(value);
        return true;
    }

    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

// The number of bytes of the character at the start, or 0 if it is not a valid character.
std::size_t character_size(const std::uint8_t* bytes, std::size_t left) {
    const std::uint8_t first = bytes[0];
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || left < size) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    }
    const std::uint8_t second = bytes[1];
    const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool is_surrogate = first == 0xed && second > 0x9f;
    const bool is_beyond = first == 0xf4 && second > 0x8f;
    return is_overlong || is_surrogate || is_beyond ? 0 : size;
}

}  // namespace

bool is_utf8(const std::uint8_t* bytes, std::size_t size) {
    std::size_t at = 0;
    while (at < size) {
        std::uint64_t word;
        while (size - at >= 8) {
            std::memcpy(&word, bytes + at, 8);
            if ((word & 0x8080808080808080U) != 0) break;
            at += 8;
        }
        if (at == size) break;
        const std::size_t step = character_size(bytes + at, size - at);
        if (step == 0) return false;
        at += step;
    }
    return true;
}

bool read_message_pack(const std::uint8_t* bytes, std::size_t size, const Vocabulary& vocabulary, Event& event) {
    event.begin(vocabulary);
    Reader reader(bytes, size);
    std::uint64_t pairs = 0;
    if (!reader.read_map_size(pairs)) return false;
    for (; pairs != 0; --pairs) {
        std::uint8_t tag;
        std::string_view name;
        if (!reader.read_byte(tag) || !reader.read_text_after(tag, name) || name.empty()) return false;
        if (!reader.read_value(event.attribute(name), event)) return false;
    }
    return reader.is_at_end();
}

}  // namespace mercast
