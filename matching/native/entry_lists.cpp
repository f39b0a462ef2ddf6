#include "entry_lists.hpp"

#include <algorithm>

#include "fetch_line.hpp"

namespace mercast {
namespace {

// There is room for a power of two.
std::uint32_t* resized(std::uint32_t* handles, std::uint32_t count) {
    auto* moved = static_cast<std::uint32_t*>(std::realloc(handles, std::bit_ceil(count) * sizeof(std::uint32_t)));
    if (moved == nullptr) throw std::bad_alloc();
    return moved;
}

// A chunk has as many blocks as fit into nine pages, which they nearly fill.
unsigned chunk_bits(std::size_t block_bytes) {
    constexpr std::size_t kChunkBytes = 9 * 4096;
    return static_cast<unsigned>(std::bit_width(kChunkBytes / block_bytes)) - 1;
}

}  // namespace

EntryLists::EntryLists(ChunkStore& store) {
    pools_.reserve(kSizes);
    for (std::uint32_t size = 0; size < kSizes; ++size) pools_.emplace_back(block_bytes(size), chunk_bits(block_bytes(size)), store);
}

EntryLists::~EntryLists() {
    for (const Head& head : heads_) std::free(head.full);
}

std::uint32_t EntryLists::create(Owner owner) {
    if (free_.empty()) {
        heads_.emplace_back();
        owners_.push_back(owner);
        return static_cast<std::uint32_t>(heads_.size() - 1);
    }
    const std::uint32_t list = free_.back();
    free_.pop_back();
    owners_[list] = owner;
    return list;
}

void EntryLists::destroy(std::uint32_t list) {
    free_.push_back(list);
    if (free_.size() == heads_.size()) {
        std::vector<Head>().swap(heads_);
        std::vector<Owner>().swap(owners_);
        std::vector<std::uint32_t>().swap(free_);
    }
}

void EntryLists::prefetch_end(std::uint32_t list) const {
    const Head& head = heads_[list];
    if (head.size < 2) return;
    // Beside the last entry, mostly.
    const std::uint32_t place = head.size % kBlockEntries;
    fetch_line_to_write(words(head.last) + place);
    fetch_line_to_write(tails(head.last) + place);
}

void EntryLists::prefetch_removal(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    if (head.size < 2) return;
    const std::uint32_t last = (head.size - 1) % kBlockEntries;
    fetch_line_to_write(words(head.last) + last);
    fetch_line_to_write(tails(head.last) + last);
    if (position >= head.size) return;
    const std::uint32_t block = block_with(head, position), place = position % kBlockEntries;
    fetch_line_to_write(words(block) + place);
    fetch_line_to_write(tails(block) + place);
}

std::uint32_t EntryLists::append(std::uint32_t list, const Entry& entry) {
    Head& head = heads_[list];
    if (head.size == 0) {
        head.last = entry.tail.subscription;
        return head.size++;
    }
    make_room(head);
    const std::uint32_t place = head.size % kBlockEntries;
    words(head.last)[place] = entry.word;
    tails(head.last)[place] = entry.tail;
    return head.size++;
}

void EntryLists::make_room(Head& head) {
    if (head.size == 1) {
        const std::uint32_t subscription = head.last;
        head.last = allocate(0);
        words(head.last)[0] = FilterWord{};
        tails(head.last)[0] = {.subscription = subscription, .id = EntryTail::kUndecided, .ranges = {}};
        return;
    }
    const std::uint32_t in_last = (head.size - 1) % kBlockEntries + 1;
    if (in_last < capacity(head.last)) return;
    if (size_of(head.last) < kLargest) {
        head.last = moved(head.last, in_last, size_of(head.last) + 1);
    } else {
        lengthen(head);
    }
}

void EntryLists::lengthen(Head& head) {
    const std::uint32_t count = full_blocks(head);
    if (count == 0 || std::has_single_bit(count)) head.full = resized(head.full, count + 1);
    head.full[count] = head.last;
    head.last = allocate(kFirstOfOthers);
}

std::uint32_t EntryLists::moved(std::uint32_t block, std::uint32_t entries, std::uint32_t size) {
    const std::uint32_t other = allocate(size);
    std::memcpy(words(other), words(block), entries * sizeof(FilterWord));
    std::memcpy(tails(other), tails(block), entries * sizeof(EntryTail));
    release(block);
    return other;
}

std::uint32_t EntryLists::remove(std::uint32_t list, std::uint32_t position) {
    Head& head = heads_[list];
    if (head.size == 1) {
        head.size = 0;
        return kNone;
    }
    const std::uint32_t last = head.size - 1;
    const std::uint32_t from = block_with(head, last), to = block_with(head, position);
    const EntryTail moving = tails(from)[last % kBlockEntries];
    words(to)[position % kBlockEntries] = words(from)[last % kBlockEntries];
    tails(to)[position % kBlockEntries] = moving;
    head.size = last;
    give_back_room(head);
    return position == last ? kNone : moving.subscription;
}

void EntryLists::give_back_room(Head& head) {
    if (head.size == 1) {
        const std::uint32_t subscription = tails(head.last)->subscription;
        release(head.last);
        head.last = subscription;
        return;
    }
    if (head.full != nullptr && head.size % kBlockEntries == 0) {
        shorten(head);
        return;
    }
    const std::uint32_t in_last = (head.size - 1) % kBlockEntries + 1;
    // Only when it fits with room to spare, so that a list that grows and shrinks by one does not move each time.
    const std::uint32_t size = size_of(head.last);
    if (size >= 2 && in_last <= kCapacities[size - 2]) head.last = moved(head.last, in_last, size - 1);
}

void EntryLists::shorten(Head& head) {
    const std::uint32_t count = full_blocks(head);
    release(head.last);
    head.last = head.full[count];
    if (count == 0) {
        std::free(head.full);
        head.full = nullptr;
    } else if (std::has_single_bit(count)) {
        head.full = resized(head.full, count);
    }
}

Entry EntryLists::entry(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    Entry entry;
    if (head.size == 1) {
        entry.tail.subscription = head.last;
    } else {
        const std::uint32_t block = block_with(head, position);
        entry.word = words(block)[position % kBlockEntries];
        entry.tail = tails(block)[position % kBlockEntries];
    }
    return entry;
}

void EntryLists::replace(std::uint32_t list, std::uint32_t position, const Entry& entry) {
    const std::uint32_t block = block_with(heads_[list], position);
    words(block)[position % kBlockEntries] = entry.word;
    tails(block)[position % kBlockEntries] = entry.tail;
}

std::uint32_t EntryLists::subscription(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    return head.size == 1 ? head.last : tails(block_with(head, position))[position % kBlockEntries].subscription;
}

void EntryLists::set_subscription(std::uint32_t list, std::uint32_t position, std::uint32_t subscription) {
    Head& head = heads_[list];
    (head.size == 1 ? head.last : tails(block_with(head, position))[position % kBlockEntries].subscription) = subscription;
}

std::uint32_t EntryLists::to_compact() const {
    for (std::uint32_t size = 0; size < kSizes; ++size) {
        const std::uint32_t slot = pools_[size].to_compact();
        if (slot != kNone) return size << kSlotBits | slot;
    }
    return kNone;
}

std::uint32_t* EntryLists::reference_to(Head& head, std::uint32_t block) {
    if (head.size < 2) return nullptr;
    if (head.last == block) return &head.last;
    std::uint32_t* end = head.full + full_blocks(head);
    std::uint32_t* found = std::find(head.full, end, block);
    return found == end ? nullptr : found;
}

bool EntryLists::compact(std::uint32_t list, std::uint32_t block) {
    std::uint32_t* reference = reference_to(heads_[list], block);
    if (reference == nullptr) return false;
    const std::uint32_t size = size_of(block);
    *reference = allocate(size);
    std::memcpy(at(*reference), at(block), block_bytes(size));
    release(block);
    return true;
}

std::size_t EntryLists::bytes() const {
    std::size_t total = heads_.capacity() * sizeof(Head) + owners_.capacity() * sizeof(Owner) +
                        free_.capacity() * sizeof(std::uint32_t);
    for (const SlotPool& pool : pools_) total += pool.bytes();
    for (const Head& head : heads_) {
        if (head.full != nullptr) total += std::bit_ceil(full_blocks(head)) * sizeof(std::uint32_t) + 16;
    }
    return total;
}

}  // namespace mercast
