// Prefetches a cache line.
#pragma once

namespace mercast {

// GCC treats a function that only prefetches as one without effect and drops calls of it. The empty statement prevents
// this.
inline void fetch_line(const void* at) {
    __builtin_prefetch(at);
    asm volatile("");
}

inline void fetch_line_to_write(const void* at) {
    __builtin_prefetch(at, 1);
    asm volatile("");
}

}  // namespace mercast
