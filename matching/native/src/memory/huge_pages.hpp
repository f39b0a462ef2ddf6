// Memory in huge pages, where there is much of it. A search jumps about in hundreds of megabytes, and with small pages
// looking up the address of a cache line can take longer than fetching it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mercast {

inline constexpr std::size_t kHugePage = std::size_t{1} << 21;
// From here on, part of a huge page that stays empty is little beside what is stored.
inline constexpr std::size_t kWorthHugePages = 2 * kHugePage;

// To be given back with std::free.
inline void* acquire_huge_pages(std::size_t bytes) {
    const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = std::aligned_alloc(kHugePage, whole);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    // Only a wish: without huge pages everything works, more slowly.
    static_cast<void>(madvise(memory, whole, MADV_HUGEPAGE));
#endif
    return memory;
}

// Gives the memory of whole small pages back to the system, while their addresses stay. They are empty when used again.
inline void return_pages_to_system(void* memory, std::size_t bytes) {
#if defined(__linux__)
    static_cast<void>(madvise(memory, bytes, MADV_DONTNEED));
#else
    static_cast<void>(memory);
    static_cast<void>(bytes);
#endif
}

// For vectors.
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
