// GCC takes a function that only prefetches for one without effect and drops calls of it. Inlined, it stays.
#pragma once

#define MERCAST_PREFETCHES [[gnu::always_inline]] inline
