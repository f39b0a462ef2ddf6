// A vector of limited capacity, stored in the object itself.
#pragma once

#include <array>
#include <cstddef>

namespace mercast {

template <typename Item, std::size_t Most>
class BoundedVector {
  public:
    Item* begin() { return items_.data(); }
    Item* end() { return items_.data() + size_; }
    const Item* begin() const { return items_.data(); }
    const Item* end() const { return items_.data() + size_; }
    Item& operator[](std::size_t place) { return items_[place]; }
    const Item& operator[](std::size_t place) const { return items_[place]; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    void clear() { size_ = 0; }
    void resize(std::size_t size) { size_ = size; }
    void push_back(const Item& item) { items_[size_++] = item; }
    Item& emplace_back() { return items_[size_++] = Item(); }

  private:
    std::array<Item, Most> items_;
    std::size_t size_ = 0;
};

}  // namespace mercast
