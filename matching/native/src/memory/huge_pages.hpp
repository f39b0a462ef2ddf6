// Huge pages for large amounts of memory. A search reads all over hundreds of megabytes, and with small pages the
// address translation of a cache line can take longer than fetching it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mercast {

inline constexpr std::size_t kHugePage = std::size_t{1} << 21;
// From this size on, the unused part of a huge page is small compared with the stored data.
inline constexpr std::size_t kWorthHugePages = 2 * kHugePage;

// The memory must be released with std::free.
inline void* acquire_huge_pages(std::size_t bytes) {
    const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = std::aligned_alloc(kHugePage, whole);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    // A hint: without huge pages everything works, but more slowly.
    static_cast<void>(madvise(memory, whole, MADV_HUGEPAGE));
#endif
    return memory;
}

// Returns the memory of whole small pages to the system. Their addresses stay valid, and the pages are zero when used
// again.
inline void return_pages_to_system(void* memory, std::size_t bytes) {
#if defined(__linux__)
    static_cast<void>(madvise(memory, bytes, MADV_DONTNEED));
#else
    static_cast<void>(memory);
    static_cast<void>(bytes);
#endif
}

// An allocator for vectors.
template <class T> struct HugePages {
    using value_type = T;

    HugePages() = default;
    template <class Other> HugePages(const HugePages<Other>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        return static_cast<T*>(bytes < kWorthHugePages ? ::operator new(bytes) : acquire_huge_pages(bytes));
    }

    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < kWorthHugePages) {
            ::operator delete(memory);
        } else {
            std::free(memory);
        }
    }

    template <class Other> bool operator==(const HugePages<Other>&) const { return true; }
};

}  // namespace mercast
