// Asks for a cache line before it is needed.
#pragma once

namespace mercast {

// GCC takes a function that only prefetches for one without effect and drops calls of it. The empty statement prevents it.
inline void fetch_line(const void* at) {
    __builtin_prefetch(at);
    asm volatile("");
}

inline void fetch_line_to_write(const void* at) {
    __builtin_prefetch(at, 1);
    asm volatile("");
}

}  // namespace mercast
