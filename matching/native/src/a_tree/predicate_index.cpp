// Positions of watched predicates in the index.

#include "a_tree/predicate_index.hpp"

#include <bit>

namespace mercast::a_tree {

void PredicateIndex::watch(std::uint32_t leaf, std::uint64_t link) {
    leaves_[leaf].link = link;
    place(leaf, Change::Add);
}

void PredicateIndex::update(std::uint32_t leaf, std::uint64_t link) {
    leaves_[leaf].link = link;
    place(leaf, Change::Update);
}

void PredicateIndex::place(std::uint32_t leaf, Change change) {
    const Leaf& placed = leaves_[leaf];
    if (placed.op == Operator::Exists || placed.op == Operator::NotExists) {
        place_presence(leaf, change);
        return;
    }
    const std::uint32_t number = dimension_of(placed.attribute, placed.type);
    if (change == Change::Add) {
        if (dimensions_.size() <= number) dimensions_.resize(std::size_t{number} + 1);
        if (dimensions_[number] == nullptr) {
            dimensions_[number] = std::make_unique<Dimension>(number, texts_for(placed.type));
            ++dimension_count_;
        }
        ++dimensions_[number]->watched;
    }
    Dimension& dimension = *dimensions_[number];
    place_in(dimension, leaf, change);
    if (change == Change::Remove && --dimension.watched == 0) {
        dimensions_[number].reset();
        --dimension_count_;
    }
}

void PredicateIndex::place_presence(std::uint32_t leaf, Change change) {
    const Leaf& placed = leaves_[leaf];
    if (placed.op == Operator::NotExists) {
        place_listed(absent_, leaf, change);
        return;
    }
    if (present_.size() <= placed.attribute) present_.resize(std::size_t{placed.attribute} + 1, kNone);
    present_[placed.attribute] = change == Change::Remove ? kNone : leaf;
}

void PredicateIndex::place_in(Dimension& dimension, std::uint32_t leaf, Change change) {
    switch (leaves_[leaf].op) {
        case Operator::NotIn:
        case Operator::Ne: place_listed(dimension.listed, leaf, change); [[fallthrough]];
        case Operator::In:
        case Operator::Eq: place_points(dimension, leaf, Form::Value, change); break;
        case Operator::Lt:
        case Operator::Le:
        case Operator::Gt:
        case Operator::Ge:
        case Operator::Between:
        case Operator::NotBetween: place_range(dimension, leaf, change); break;
        default: place_text(dimension, leaf, change);
    }
}

void PredicateIndex::place_range(Dimension& dimension, std::uint32_t leaf, Change change) {
    const Leaf& placed = leaves_[leaf];
    const auto put = [&](OrderedEnds& ends, Number value, bool is_just_above) {
        put_end(ends, end_of(leaf, value, is_just_above), placed.link, change);
    };
    const bool has_two_ends = placed.op == Operator::Between || placed.op == Operator::NotBetween;
    const int direction = has_two_ends ? order(placed) : 0;
    switch (placed.op) {
        case Operator::Lt:
        case Operator::Le: put(dimension.below, placed.first, placed.op == Operator::Le); break;
        case Operator::Gt:
        case Operator::Ge: put(dimension.above, placed.first, placed.op == Operator::Gt); break;
        case Operator::Between:
            // A range whose first end is above its second is empty and has no position.
            if (direction == 0) place_points(dimension, leaf, Form::Value, change);
            if (direction < 0) place_between(dimension, leaf, change);
            break;
        default:
            if (direction > 0) {
                place_listed(dimension.listed, leaf, change);
                break;
            }
            put(dimension.below, placed.first, false);
            put(dimension.above, placed.second, true);
    }
}

void PredicateIndex::place_text(Dimension& dimension, std::uint32_t leaf, Change change) {
    const Operator op = leaves_[leaf].op;
    if (is_pattern(op)) {
        place_listed(dimension.patterns, leaf, change);
        return;
    }
    if (is_negated(op)) place_listed(dimension.listed, leaf, change);
    const bool is_prefix = op == Operator::StartsWith || op == Operator::NotStartsWith;
    const bool is_suffix = op == Operator::EndsWith || op == Operator::NotEndsWith;
    place_points(dimension, leaf, is_prefix ? Form::Prefix : is_suffix ? Form::Suffix : Form::Part, change);
    Lengths& lengths = is_prefix ? dimension.prefixes : is_suffix ? dimension.suffixes : dimension.parts;
    const auto length = static_cast<std::uint32_t>(text(leaves_[leaf].first).size());
    if (change == Change::Add) {
        ++lengths[length];
    } else if (change == Change::Remove && --lengths[length] == 0) {
        lengths.erase(length);
    }
}

void PredicateIndex::put_end(OrderedEnds& ends, const End& end, std::uint64_t link, Change change) {
    switch (change) {
        case Change::Add: ends.insert(end, link); break;
        case Change::Remove: ends.remove(end); break;
        case Change::Update: ends.update(end, link); break;
    }
}

namespace {

// Removes an entry by moving the last one into its place.
template <class Entries> void remove_at(Entries& entries, std::uint32_t place) {
    entries[place] = entries.back();
    entries.pop_back();
    if (entries.capacity() > 64 && entries.size() * 4 < entries.capacity()) entries.shrink_to_fit();
}

}  // namespace

void PredicateIndex::place_listed(Listed& entries, std::uint32_t leaf, Change change) {
    Leaf& placed = leaves_[leaf];
    if (change == Change::Add) {
        placed.place_listed = static_cast<std::uint32_t>(entries.leaves.size());
        entries.leaves.push_back(leaf);
        entries.links.push_back(placed.link);
    } else if (change == Change::Update) {
        entries.links[placed.place_listed] = placed.link;
    } else {
        leaves_[entries.leaves.back()].place_listed = placed.place_listed;
        const std::uint32_t place = placed.place_listed;
        remove_at(entries.leaves, place);
        remove_at(entries.links, place);
    }
}

void PredicateIndex::place_points(Dimension& dimension, std::uint32_t leaf, Form form, Change change) {
    const Leaf& placed = leaves_[leaf];
    if (placed.op != Operator::In && placed.op != Operator::NotIn) {
        place_at_point(dimension, leaf, placed.first, form, change);
        return;
    }
    for (std::uint32_t number = 0; number < placed.count; ++number) {
        place_at_point(dimension, leaf, listed_value(placed, number), form, change);
    }
}

void PredicateIndex::place_at_point(Dimension& dimension, std::uint32_t leaf, Number value, Form form, Change change) {
    Leaf& placed = leaves_[leaf];
    std::uint32_t number = find_point(dimension.number, form, value);
    if (number == kNone) number = make_point(dimension, form, value);
    Point& point = points_[number];
    Listed& entries = is_negated(placed.op) ? point.making_false : point.making_true;
    if (change == Change::Add) {
        set_place_at(placed, value, static_cast<std::uint32_t>(entries.leaves.size()));
        entries.leaves.push_back(leaf);
        entries.links.push_back(placed.link);
        return;
    }
    const std::uint32_t place = place_at(placed, value);
    if (change == Change::Update) {
        entries.links[place] = placed.link;
        return;
    }
    set_place_at(leaves_[entries.leaves.back()], value, place);
    remove_at(entries.leaves, place);
    remove_at(entries.links, place);
    if (point.making_true.leaves.empty() && point.making_false.leaves.empty()) drop_point(dimension, number);
}

std::uint32_t PredicateIndex::find_point(std::uint32_t dimension, Form form, Number value) const {
    const std::uint32_t hash = hash_of_point(dimension, form, value);
    return point_table_.find(hash, [&](std::uint32_t number) {
        const Point& point = points_[number];
        return point.dimension == dimension && point.form == form && point.value == value;
    });
}

std::uint32_t PredicateIndex::make_point(Dimension& dimension, Form form, Number value) {
    std::uint32_t number;
    if (free_points_.empty()) {
        number = static_cast<std::uint32_t>(points_.size());
        points_.emplace_back();
    } else {
        number = free_points_.back();
        free_points_.pop_back();
    }
    Point& point = points_[number];
    point.dimension = dimension.number;
    point.form = form;
    point.value = value;
    point_table_.insert(hash_of_point(dimension.number, form, value), number);
    if (form == Form::Part) {
        point.place = static_cast<std::uint32_t>(dimension.part_points.size());
        dimension.part_points.push_back(number);
    }
    return number;
}

void PredicateIndex::drop_point(Dimension& dimension, std::uint32_t number) {
    const Point& point = points_[number];
    point_table_.erase(hash_of_point(point.dimension, point.form, point.value), number);
    if (point.form == Form::Part) {
        const std::uint32_t last = dimension.part_points.back();
        dimension.part_points[point.place] = last;
        points_[last].place = point.place;
        dimension.part_points.pop_back();
    }
    points_[number] = Point{};
    free_points_.push_back(number);
    if (point_table_.size() > 0) return;
    std::vector<Point>().swap(points_);
    std::vector<std::uint32_t>().swap(free_points_);
}

End PredicateIndex::end_of(std::uint32_t number, Number value, bool is_just_above) const {
    const Leaf& leaf = leaves_[number];
    const bool is_text = leaf.type == TypeClass::Text;
    const std::uint64_t key = is_text ? text_order_key(text(value)) : value.key;
    const std::int32_t detail = is_text ? static_cast<std::int32_t>(value.key) : value.residual;
    return {key, 2 * detail + (is_just_above ? 1 : 0), number};
}

std::uint32_t PredicateIndex::ForkKey::hash() const {
    const std::uint64_t place = (std::uint64_t{dimension} << 32) | std::uint64_t{cut.block} << 8 | cut.depth;
    return static_cast<std::uint32_t>(mixed(bits + mixed(place + (before.empty() ? 0 : hash_of(before)))));
}

// The text's eight bytes in this block. A text that has ended continues with zeros, which keeps the order.
std::uint64_t PredicateIndex::block_of(std::string_view text, std::uint32_t number) {
    std::uint64_t block = 0;
    for (std::size_t at = std::size_t{number} * 8; at < std::size_t{number} * 8 + 8; ++at) {
        block = block << 8 | (at < text.size() ? static_cast<unsigned char>(text[at]) : 0);
    }
    return block;
}

std::string PredicateIndex::before_block(std::string_view text, std::uint32_t number) {
    std::string before(text.substr(0, std::size_t{number} * 8));
    before.resize(std::size_t{number} * 8, '\0');
    return before;
}

PredicateIndex::ForkKey PredicateIndex::fork_of(std::uint32_t dimension, const Leaf& leaf) const {
    ForkKey key;
    key.dimension = dimension;
    std::uint64_t low = leaf.first.key;
    std::uint64_t high = leaf.second.key;
    if (leaf.type == TypeClass::Text) {
        const std::string_view lower = text(leaf.first);
        const std::string_view upper = text(leaf.second);
        const std::size_t blocks = std::max(lower.size(), upper.size()) / 8 + 1;
        while (key.cut.block < blocks && block_of(lower, key.cut.block) == block_of(upper, key.cut.block))
            ++key.cut.block;
        // Ends that differ only in trailing zero bytes cannot be cut.
        if (key.cut.block == blocks) key.cut.block = 0;
        low = block_of(lower, key.cut.block);
        high = block_of(upper, key.cut.block);
        key.before = before_block(lower, key.cut.block);
    }
    key.cut.depth = static_cast<std::uint32_t>(std::countl_zero(low ^ high));
    key.bits = first_bits(low, key.cut.depth);
    return key;
}

std::uint32_t PredicateIndex::find_fork(const ForkKey& wanted) const {
    return fork_table_.find(wanted.hash(), [&](std::uint32_t number) { return forks_[number]->key == wanted; });
}

void PredicateIndex::place_between(Dimension& dimension, std::uint32_t leaf, Change change) {
    const Leaf& placed = leaves_[leaf];
    ForkKey key = fork_of(dimension.number, placed);
    const bool is_cut = key.cut.depth < 64;
    std::uint32_t number = find_fork(key);
    if (number == kNone) number = make_fork(dimension, std::move(key), placed.type);
    Fork& fork = *forks_[number];
    put_end(fork.lower, end_of(leaf, placed.first, false), placed.link, change);
    if (is_cut) put_end(fork.upper, end_of(leaf, placed.second, true), placed.link, change);
    if (fork.lower.is_empty()) drop_fork(dimension, number);
}

std::uint32_t PredicateIndex::make_fork(Dimension& dimension, ForkKey key, TypeClass type) {
    std::uint32_t number;
    if (free_forks_.empty()) {
        number = static_cast<std::uint32_t>(forks_.size());
        forks_.emplace_back();
    } else {
        number = free_forks_.back();
        free_forks_.pop_back();
    }
    ++dimension.cuts[key.cut];
    fork_table_.insert(key.hash(), number);
    forks_[number] = std::make_unique<Fork>(std::move(key), texts_for(type));
    return number;
}

void PredicateIndex::drop_fork(Dimension& dimension, std::uint32_t number) {
    const ForkKey& key = forks_[number]->key;
    if (--dimension.cuts[key.cut] == 0) dimension.cuts.erase(key.cut);
    fork_table_.erase(key.hash(), number);
    forks_[number].reset();
    free_forks_.push_back(number);
}

std::size_t PredicateIndex::bytes() const {
    constexpr std::size_t kMapNode = 48;
    std::size_t total =
        leaves_.capacity() * sizeof(Leaf) + tests_.capacity() * sizeof(Test) + leaf_table_.bytes() + lists_.bytes() +
        uses_.capacity() * sizeof(Uses) + dimensions_.capacity() * sizeof(dimensions_[0]) +
        points_.capacity() * sizeof(Point) + point_table_.bytes() + fork_table_.bytes() +
        forks_.capacity() * sizeof(forks_[0]) + absent_.bytes() +
        (free_leaves_.capacity() + free_points_.capacity() + free_forks_.capacity() + present_.capacity()) *
            sizeof(std::uint32_t);
    for (const Point& point : points_) {
        total += point.making_true.bytes() + point.making_false.bytes();
    }
    for (const auto& fork : forks_) {
        if (fork != nullptr)
            total += sizeof(Fork) + fork->key.before.capacity() + fork->lower.bytes() + fork->upper.bytes();
    }
    for (const auto& dimension : dimensions_) {
        if (dimension == nullptr) continue;
        total += sizeof(Dimension) + dimension->below.bytes() + dimension->above.bytes() + dimension->listed.bytes() +
                 dimension->patterns.bytes() + dimension->part_points.capacity() * sizeof(std::uint32_t) +
                 (dimension->cuts.size() + dimension->prefixes.size() + dimension->suffixes.size() +
                  dimension->parts.size()) *
                     kMapNode;
    }
    return total;
}

}  // namespace mercast::a_tree
