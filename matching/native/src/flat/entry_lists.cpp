#include "flat/entry_lists.hpp"

#include <algorithm>

#include "memory/fetch_line.hpp"

namespace mercast {
namespace {

// Resizes an array of handles. Its capacity is a power of two.
std::uint32_t* resized_handles(std::uint32_t* handles, std::uint32_t count) {
    auto* resized = static_cast<std::uint32_t*>(std::realloc(handles, std::bit_ceil(count) * sizeof(std::uint32_t)));
    if (resized == nullptr) throw std::bad_alloc();
    return resized;
}

// A chunk has as many blocks as fit into nine pages, which they nearly fill.
unsigned chunk_bits(std::size_t block_bytes) {
    constexpr std::size_t kChunkBytes = 9 * 4096;
    return static_cast<unsigned>(std::bit_width(kChunkBytes / block_bytes)) - 1;
}

}  // namespace

EntryLists::EntryLists(ChunkStore& store) {
    pools_.reserve(kSizes);
    for (std::uint32_t size = 0; size < kSizes; ++size)
        pools_.emplace_back(block_bytes(size), chunk_bits(block_bytes(size)), store);
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
    // The position of the next entry, mostly in the line of the last one.
    const std::uint32_t place = head.size % kBlockEntries;
    const Parts last = parts(head.last);
    fetch_line_to_write(last.words + place);
    fetch_line_to_write(last.tails + place);
}

void EntryLists::prefetch_removal(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    if (head.size < 2) return;
    const std::uint32_t last = (head.size - 1) % kBlockEntries;
    const Parts from = parts(head.last);
    fetch_line_to_write(from.words + last);
    fetch_line_to_write(from.tails + last);
    if (position >= head.size) return;
    const Parts to = parts(block_with(head, position));
    const std::uint32_t place = position % kBlockEntries;
    fetch_line_to_write(to.words + place);
    fetch_line_to_write(to.tails + place);
}

std::uint32_t EntryLists::append(std::uint32_t list, const Entry& entry, std::uint32_t subscription) {
    Head& head = heads_[list];
    if (head.size == 0) {
        head.last = subscription;
        return head.size++;
    }
    make_room(head);
    const std::uint32_t place = head.size % kBlockEntries;
    const Parts last = parts(head.last);
    last.words[place] = entry.word;
    last.tails[place] = entry.tail;
    last.tails[place].subscription = subscription;
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
        head.last = move_block(head.last, in_last, size_of(head.last) + 1);
    } else {
        add_block(head);
    }
}

void EntryLists::add_block(Head& head) {
    const std::uint32_t count = full_blocks(head);
    if (count == 0 || std::has_single_bit(count)) head.full = resized_handles(head.full, count + 1);
    head.full[count] = head.last;
    head.last = allocate(kFirstOfOthers);
}

std::uint32_t EntryLists::move_block(std::uint32_t block, std::uint32_t entries, std::uint32_t size) {
    const std::uint32_t other = allocate(size);
    const Parts from = parts(block), to = parts(other);
    std::memcpy(to.words, from.words, entries * sizeof(FilterWord));
    std::memcpy(to.tails, from.tails, entries * sizeof(EntryTail));
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
    const Parts from = parts(block_with(head, last)), to = parts(block_with(head, position));
    const EntryTail moving = from.tails[last % kBlockEntries];
    to.words[position % kBlockEntries] = from.words[last % kBlockEntries];
    to.tails[position % kBlockEntries] = moving;
    head.size = last;
    shrink_last_block(head);
    return position == last ? kNone : moving.subscription;
}

void EntryLists::shrink_last_block(Head& head) {
    if (head.size == 1) {
        const std::uint32_t subscription = tails(head.last)->subscription;
        release(head.last);
        head.last = subscription;
        return;
    }
    if (head.full != nullptr && head.size % kBlockEntries == 0) {
        remove_last_block(head);
        return;
    }
    const std::uint32_t in_last = (head.size - 1) % kBlockEntries + 1;
    // Shrinks only if there is room to spare, so that a list that grows and shrinks by one does not move each time.
    const std::uint32_t size = size_of(head.last);
    if (size >= 2 && in_last <= kCapacities[size - 2]) head.last = move_block(head.last, in_last, size - 1);
}

void EntryLists::remove_last_block(Head& head) {
    const std::uint32_t count = full_blocks(head);
    release(head.last);
    head.last = head.full[count];
    if (count == 0) {
        std::free(head.full);
        head.full = nullptr;
    } else if (std::has_single_bit(count)) {
        head.full = resized_handles(head.full, count);
    }
}

Entry EntryLists::entry(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    Entry entry;
    if (head.size == 1) {
        entry.tail.subscription = head.last;
    } else {
        const Parts found = parts(block_with(head, position));
        entry.word = found.words[position % kBlockEntries];
        entry.tail = found.tails[position % kBlockEntries];
    }
    return entry;
}

void EntryLists::replace(std::uint32_t list, std::uint32_t position, const Entry& entry) {
    const Parts found = parts(block_with(heads_[list], position));
    found.words[position % kBlockEntries] = entry.word;
    found.tails[position % kBlockEntries] = entry.tail;
}

std::uint32_t EntryLists::subscription(std::uint32_t list, std::uint32_t position) const {
    const Head& head = heads_[list];
    return head.size == 1 ? head.last : tails(block_with(head, position))[position % kBlockEntries].subscription;
}

void EntryLists::set_subscription(std::uint32_t list, std::uint32_t position, std::uint32_t subscription) {
    Head& head = heads_[list];
    (head.size == 1 ? head.last : tails(block_with(head, position))[position % kBlockEntries].subscription) =
        subscription;
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
