// Chunks of memory for pools. A small store allocates each chunk by itself. A large one cuts chunks from huge pages
// that all pools of an index share.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "memory/huge_pages.hpp"

namespace mercast {

class ChunkStore {
  public:
    // From this size on, the unused part of the last huge page is small compared with the stored data.
    static constexpr std::size_t kLarge = 4 * kHugePage;

    ChunkStore() = default;
    ChunkStore(const ChunkStore&) = delete;
    ChunkStore& operator=(const ChunkStore&) = delete;

    // Returns memory at the start of a cache line. Chunks from huge pages consist of whole small pages.
    std::byte* acquire(std::size_t bytes) {
        bytes_ += bytes;
        if (bytes_ < kLarge || bytes > kHugePage) return acquire_alone(bytes);
        const std::size_t pages = (bytes + kPage - 1) / kPage;
        for (std::size_t i = 0; i < regions_.size(); ++i) {
            if (regions_[i].free < pages || regions_[i].has_no_run_of <= pages) continue;
            if (std::byte* chunk = regions_[i].allocate(pages)) return chunk;
        }
        regions_.push_back(Region{static_cast<std::byte*>(acquire_huge_pages(kHugePage))});
        return regions_.back().allocate(pages);
    }

    void release(std::byte* chunk, std::size_t bytes) {
        bytes_ -= bytes;
        for (std::size_t i = 0; i < regions_.size(); ++i) {
            const auto offset = static_cast<std::size_t>(chunk - regions_[i].memory);
            if (chunk < regions_[i].memory || offset >= kHugePage) continue;
            const std::size_t pages = (bytes + kPage - 1) / kPage;
            regions_[i].release(offset / kPage, pages);
            if (regions_[i].free == kPages) {
                std::free(regions_[i].memory);
                regions_[i] = regions_.back();
                regions_.pop_back();
            }
            released_ += pages;
            if (released_ > kPages && released_ > regions_.size() * kPages / kMostSpare) return_pages_if_many();
            return;
        }
        std::free(chunk);
    }

    // Memory that is not in any chunk.
    std::size_t spare_bytes() const {
        std::size_t total = regions_.capacity() * sizeof(Region);
        for (const Region& region : regions_) total += region.spare() * kPage;
        return total;
    }

  private:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kPages = kHugePage / kPage;
    static constexpr std::size_t kLine = 64;
    // At most one page out of this many may be spare.
    static constexpr std::size_t kMostSpare = 8;

    struct Region {
        std::byte* memory;
        std::size_t free = kPages;
        std::size_t has_no_run_of = kPages + 1;  // no run of this many free pages or more is known to exist
        std::bitset<kPages> is_used{};
        std::bitset<kPages> is_returned{};  // free pages whose memory was returned to the system

        // Allocates the first run of free pages that is long enough. Returns nullptr if there is none.
        std::byte* allocate(std::size_t pages) {
            std::size_t run = 0;
            for (std::size_t page = 0; page < kPages; ++page) {
                run = is_used[page] ? 0 : run + 1;
                if (run != pages) continue;
                const std::size_t first = page + 1 - pages;
                for (std::size_t i = first; i <= page; ++i) {
                    is_used[i] = true;
                    is_returned[i] = false;
                }
                free -= pages;
                return memory + first * kPage;
            }
            has_no_run_of = pages;
            return nullptr;
        }

        void release(std::size_t first, std::size_t pages) {
            for (std::size_t i = first; i < first + pages; ++i) is_used[i] = false;
            free += pages;
            has_no_run_of = kPages + 1;
        }

        std::size_t spare() const { return free - is_returned.count(); }

        // Returns free pages to the system in runs as long as possible, because each run is a system call.
        void return_pages() {
            for (std::size_t first = 0; first < kPages; ++first) {
                std::size_t end = first;
                while (end < kPages && !is_used[end] && !is_returned[end]) is_returned[end++] = true;
                if (end == first) continue;
                return_pages_to_system(memory + first * kPage, (end - first) * kPage);
                first = end;
            }
        }
    };

    // A huge page that is returned in part is no longer huge. So pages are returned when many are spare, not one by
    // one.
    void return_pages_if_many() {
        released_ = 0;
        std::size_t spare = 0;
        for (const Region& region : regions_) spare += region.spare();
        if (spare < regions_.size() * kPages / kMostSpare) return;
        for (Region& region : regions_) region.return_pages();
    }

    static std::byte* acquire_alone(std::size_t bytes) {
        void* memory = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<std::byte*>(memory);
    }

    std::vector<Region> regions_;
    std::size_t released_ = 0;  // pages, since spare pages were last counted
    std::size_t bytes_ = 0;
};

}  // namespace mercast
