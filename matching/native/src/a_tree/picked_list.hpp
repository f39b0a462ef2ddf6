// A list for loops that select items unpredictably. Each item is written behind the end, and the end moves if it is
// selected. Branch-free: a mispredicted branch would cost more than the write.
#pragma once

#include <cstddef>
#include <vector>

namespace mercast::a_tree {

template <class Item> class PickedList {
  public:
    // To be called before this many more calls of `push_if`.
    void make_room(std::size_t more) {
        if (items_.size() < count_ + more) items_.resize(2 * (count_ + more));
    }

    void push_if(Item item, bool is_picked) {
        items_[count_] = item;
        count_ += is_picked;
    }

    void clear() { count_ = 0; }
    std::size_t size() const { return count_; }
    Item operator[](std::size_t number) const { return items_[number]; }
    const Item* begin() const { return items_.data(); }
    const Item* end() const { return items_.data() + count_; }

  private:
    std::vector<Item> items_;
    std::size_t count_ = 0;
};

}  // namespace mercast::a_tree
