// Reads the MessagePack map of a publication's attributes straight into an event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/event.hpp"

namespace mercast {

// False for whatever is not plainly a publication: bytes that are not MessagePack, anything but a map from non-empty
// texts to numbers, texts and booleans, NaN, integers beyond 64 bits with sign, texts that are not UTF-8, an attribute
// that occurs twice, bytes left over. Reads nothing beyond the size, whatever the bytes say. The event's texts are
// views of the bytes.
bool read_message_pack(const std::uint8_t* bytes, std::size_t size, const Vocabulary& vocabulary, Event& event);

bool is_utf8(const std::uint8_t* bytes, std::size_t size);

}  // namespace mercast
