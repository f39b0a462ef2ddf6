// The list of a value, of a bucket of a grid, or of subscriptions without a condition to file by.
//
// Invariants:
// - A list is in the directory from its creation to `drop`. It is empty only while a draft waits to be filed in it.
// - The list of a value that is a cut of its dimension's newest grid is stored in the grid, any other in the hash
//   table. `Dimension::hashed_value_lists` counts the latter, `value_lists` both.
// - A bucket's list retains its grid, so the grid's number is not reused while the list exists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dimensions.hpp"
#include "flat/entry_lists.hpp"
#include "flat/hash_tables.hpp"
#include "memory/none.hpp"

namespace mercast {

class ListDirectory {
  public:
    ListDirectory(Dimensions& dimensions, EntryLists& lists) : dimensions_(dimensions), lists_(lists) {}
    ListDirectory(const ListDirectory&) = delete;
    ListDirectory& operator=(const ListDirectory&) = delete;

    // The list of subscriptions that no condition leads to, or kNone.
    std::uint32_t always() const { return always_; }
    // The same list. Created if there is none.
    std::uint32_t always_list();

    // The list of a value whose cell in the newest grid is known, or kNone.
    std::uint32_t find_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const;
    // The same list. Created if there is none. Counts one more entry of the dimension that is filed by value.
    std::uint32_t value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell);
    // The list of a value that is not a cut of the newest grid, or kNone.
    std::uint32_t find_hashed(std::uint32_t dimension, std::uint64_t key) const {
        return values_.find({key, dimension});
    }
    void prefetch_hashed(std::uint32_t dimension, std::uint64_t key) const { values_.prefetch({key, dimension}); }
    // Moves value lists between grid and table after the dimension got a new grid.
    void move_value_lists(std::uint32_t dimension, std::uint32_t former_grid);

    // The list of a grid's bucket. Created if there is none.
    std::uint32_t bucket_list(std::uint32_t grid, std::uint32_t bucket);

    static bool is_value(const EntryLists::Owner& owner) { return !owner.is_bucket && owner.number != kNone; }

    // Destroys an empty list and removes it from the directory.
    void drop(std::uint32_t list);

    std::size_t bytes() const { return values_.bytes(); }

  private:
    void set_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t list);

    Dimensions& dimensions_;
    EntryLists& lists_;
    ValueTable values_;
    std::uint32_t always_ = kNone;
};

}  // namespace mercast
