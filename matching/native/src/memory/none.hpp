// The number that denotes nothing: no slot, list, node, dimension or handle.
#pragma once

#include <cstdint>

namespace mercast {

inline constexpr std::uint32_t kNone = 0xffffffffU;

}  // namespace mercast
