// Reads the MessagePack map of a publication's attributes into an event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/event.hpp"

namespace mercast {

// Returns false for anything that is not a plain publication: invalid MessagePack, or anything but a map from non-empty
// texts to numbers, texts and booleans. It also refuses NaN, integers beyond 64 bits with sign, texts that are not
// UTF-8, repeated attributes and trailing bytes. Never reads beyond the size. The event's texts are views of the bytes.
bool read_message_pack(const std::uint8_t* bytes, std::size_t size, const Vocabulary& vocabulary, Event& event);

bool is_utf8(const std::uint8_t* bytes, std::size_t size);

}  // namespace mercast
