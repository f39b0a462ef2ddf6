// An allocator that asks for huge pages where a vector is large. A search jumps about in arrays of a hundred megabytes,
// and with small pages looking up the address of a cache line can take longer than fetching it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mercast::a_tree {

template <class T> struct HugePages {
    using value_type = T;

    HugePages() = default;
    template <class Other> HugePages(const HugePages<Other>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kLarge) return static_cast<T*>(::operator new(bytes));
        void* memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
        if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
        // Only a wish: without huge pages everything works, more slowly.
        static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
#endif
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < kLarge) {
            ::operator delete(memory);
        } else {
            std::free(memory);
        }
    }

    template <class Other> bool operator==(const HugePages<Other>&) const { return true; }

  private:
    static constexpr std::size_t kPage = std::size_t{1} << 21;
    static constexpr std::size_t kLarge = 2 * kPage;
};

}  // namespace mercast::a_tree
