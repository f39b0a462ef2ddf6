#include "flat/list_directory.hpp"

namespace mercast {

std::uint32_t ListDirectory::always_list() {
    if (always_ == kNone) always_ = lists_.create({0, kNone, false});
    return always_;
}

std::uint32_t ListDirectory::find_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) const {
    if (Grid::is_cut(cell)) return dimensions_.newest_grid(dimension).value_list(cell);
    return dimensions_[dimension].hashed_value_lists == 0 ? kNone : values_.find({key, dimension});
}

void ListDirectory::set_value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t list) {
    Dimension& found = dimensions_[dimension];
    Grid& grid = dimensions_.newest_grid(dimension);
    const std::uint32_t cell = grid.cell(key);
    if (Grid::is_cut(cell)) {
        grid.set_value_list(cell, list);
    } else if (list == kNone) {
        values_.erase({key, dimension});
        --found.hashed_value_lists;
    } else {
        values_.insert({key, dimension}, list);
        ++found.hashed_value_lists;
    }
}

std::uint32_t ListDirectory::value_list(std::uint32_t dimension, std::uint64_t key, std::uint32_t cell) {
    std::uint32_t list = find_value_list(dimension, key, cell);
    if (list == kNone) {
        list = lists_.create({key, dimension, false});
        set_value_list(dimension, key, list);
        ++dimensions_[dimension].value_lists;
    }
    ++dimensions_[dimension].value_entries;
    return list;
}

void ListDirectory::move_value_lists(std::uint32_t dimension, std::uint32_t former_grid) {
    Dimension& found = dimensions_[dimension];
    Grid& grid = dimensions_.newest_grid(dimension);
    for (std::uint32_t cell = 2; cell < grid.cells(); cell += 2) {
        const std::uint32_t list = found.hashed_value_lists == 0 ? kNone : values_.find({grid.cut(cell), dimension});
        if (list == kNone) continue;
        grid.set_value_list(cell, list);
        values_.erase({grid.cut(cell), dimension});
        --found.hashed_value_lists;
    }
    const Grid& former = dimensions_.grid(former_grid);
    for (std::uint32_t cell = 2; cell < former.cells(); cell += 2) {
        if (former.value_list(cell) != kNone) set_value_list(dimension, former.cut(cell), former.value_list(cell));
    }
}

std::uint32_t ListDirectory::bucket_list(std::uint32_t grid, std::uint32_t bucket) {
    std::uint32_t list = dimensions_.grid(grid).list(bucket);
    if (list == kNone) {
        list = lists_.create({bucket, grid, true});
        dimensions_.grid(grid).set_list(bucket, list);
        dimensions_.retain_grid(grid, 1);
    }
    return list;
}

void ListDirectory::drop(std::uint32_t list) {
    const EntryLists::Owner owner = lists_.owner(list);
    lists_.destroy(list);
    if (owner.is_bucket) {
        dimensions_.grid(owner.number).set_list(static_cast<std::uint32_t>(owner.key), kNone);
        dimensions_.release_grid(owner.number);
    } else if (owner.number == kNone) {
        always_ = kNone;
    } else {
        set_value_list(owner.number, owner.key, kNone);
        --dimensions_[owner.number].value_lists;
    }
}

}  // namespace mercast
