// Search: the watched predicates that a publication satisfies.

#include <algorithm>

#include "a_tree/predicate_index.hpp"
#include "memory/fetch_line.hpp"

namespace mercast::a_tree {

namespace {

template <class Thing> void prefetch_all(const Thing& thing) {
    const auto* bytes = reinterpret_cast<const char*>(&thing);
    for (std::size_t line = 0; line < sizeof(Thing); line += 64) fetch_line(bytes + line);
}

}  // namespace

const PredicateIndex::Dimension* PredicateIndex::dimension_for(const Field& field) const {
    const std::uint32_t number = dimension_of(field.attribute, field.type);
    return number < dimensions_.size() ? dimensions_[number].get() : nullptr;
}

void PredicateIndex::fetch_dimension(const Field& field) const {
    const Dimension* dimension = dimension_for(field);
    if (dimension == nullptr) return;
    prefetch_all(*dimension);
    point_table_.prefetch(hash_of_point(dimension_of(field.attribute, field.type), Form::Value, value_of(field)));
}

void PredicateIndex::fetch_contents(const Field& field) const {
    const Dimension* dimension = dimension_for(field);
    if (dimension == nullptr) return;
    dimension->below.prefetch();
    dimension->above.prefetch();
    const std::vector<std::uint64_t>& listed = dimension->listed.links;
    for (std::size_t at = 0; at < std::min<std::size_t>(listed.size(), 128); at += 8) fetch_line(&listed[at]);
    const std::uint32_t point = point_table_.peek(hash_of_point(dimension->number, Form::Value, value_of(field)));
    if (point != kNone) prefetch_all(points_[point]);
}

void PredicateIndex::fetch_point(const Field& field) const {
    const std::uint32_t number = dimension_of(field.attribute, field.type);
    const std::uint32_t point = point_table_.peek(hash_of_point(number, Form::Value, value_of(field)));
    if (point == kNone) return;
    fetch_line(points_[point].making_true.links.data());
    fetch_line(points_[point].making_false.leaves.data());
}

void PredicateIndex::satisfied(const Event& event, SearchState& state) const {
    // Each loop prefetches what the next one reads. The chain of cache misses of one field would take longer than all
    // other work.
    for (const Field& field : event.fields()) fetch_dimension(field);
    for (const Field& field : event.fields()) fetch_contents(field);
    for (const Field& field : event.fields()) fetch_point(field);
    for (const Field& field : event.fields()) {
        if (field.attribute < present_.size() && present_[field.attribute] != kNone) {
            state.add_links(leaves_[present_[field.attribute]].link);
        }
        satisfied_by(field, state);
    }
    for (std::size_t number = 0; number < absent_.leaves.size(); ++number) {
        if (event.find(leaves_[absent_.leaves[number]].attribute) == nullptr) state.add_links(absent_.links[number]);
    }
    state.evaluated += state.spans.size() + state.singles.size();
}

void PredicateIndex::satisfied_by(const Field& field, SearchState& state) const {
    const Dimension* found = dimension_for(field);
    if (found == nullptr) return;
    const Dimension& dimension = *found;
    state.excluded.clear();
    add_point(find_point(dimension.number, Form::Value, value_of(field)), state);
    if (field.type == TypeClass::Text) satisfied_by_text(field, dimension, state);
    // Listed leaves come last, because the points determine which of them are false.
    add_listed(dimension, state);
    if (field.type == TypeClass::Truth) return;
    const Place place = Place::of(field);
    const auto visit = [&](const End*, const std::uint64_t* links, std::size_t count) {
        state.add_links(links, count);
    };
    dimension.below.visit_above(place, visit);
    dimension.above.visit_up_to(place, visit);
    if (!dimension.cuts.empty()) satisfied_by_forks(field, dimension, state);
}

void PredicateIndex::add_point(std::uint32_t number, SearchState& state) const {
    if (number == kNone) return;
    const Point& point = points_[number];
    for (const std::uint32_t leaf : point.making_false.leaves) state.excluded.push_back(leaves_[leaf].place_listed);
    if (point.form != Form::Part) {
        state.add_links(point.making_true.links.data(), point.making_true.links.size());
        return;
    }
    for (const std::uint32_t leaf : point.making_true.leaves) {
        // A part may occur in a text more than once.
        if (state.is_true(leaves_[leaf].node)) continue;
        state.set(leaves_[leaf].node, true);
        state.add_links(leaves_[leaf].link);
    }
}

void PredicateIndex::add_listed(const Dimension& dimension, SearchState& state) const {
    std::sort(state.excluded.begin(), state.excluded.end());
    const std::vector<std::uint64_t>& links = dimension.listed.links;
    std::size_t next = 0;
    for (const std::uint32_t place : state.excluded) {
        // A part that occurs more than once excludes the same place again.
        if (next < place) state.add_links(links.data() + next, place - next);
        next = std::size_t{place} + 1;
    }
    state.add_links(links.data() + next, links.size() - next);
}

void PredicateIndex::satisfied_by_text(const Field& field, const Dimension& dimension, SearchState& state) const {
    const auto visit = [&](std::string_view piece, Form form) {
        const std::uint32_t text = vocabulary_.texts.find(piece);
        if (text != Interner::kUnknown) add_point(find_point(dimension.number, form, {text, 0}), state);
    };
    for (const auto& [length, _] : dimension.prefixes) {
        if (length > field.text.size()) break;
        visit(field.text.substr(0, length), Form::Prefix);
    }
    for (const auto& [length, _] : dimension.suffixes) {
        if (length > field.text.size()) break;
        visit(field.text.substr(field.text.size() - length), Form::Suffix);
    }
    if (!dimension.parts.empty()) satisfied_by_parts(field, dimension, state);
    for (const std::uint32_t number : dimension.patterns.leaves) {
        const Leaf& leaf = leaves_[number];
        if (is_true_for(leaf, field)) {
            state.set(leaf.node, true);
            state.add_links(leaf.link);
        } else {
            state.set(leaf.node, false);
            ++state.evaluated;
        }
    }
}

void PredicateIndex::satisfied_by_parts(const Field& field, const Dimension& dimension, SearchState& state) const {
    if (dimension.part_points.size() <= field.text.size() * dimension.parts.size()) {
        for (const std::uint32_t point : dimension.part_points) {
            const bool occurs = field.text.find(text(points_[point].value)) != field.text.npos;
            occurs ? add_point(point, state) : static_cast<void>(++state.evaluated);
        }
        return;
    }
    for (const auto& [length, _] : dimension.parts) {
        for (std::size_t start = 0; start + length <= field.text.size(); ++start) {
            const std::uint32_t text = vocabulary_.texts.find(field.text.substr(start, length));
            if (text != Interner::kUnknown) add_point(find_point(dimension.number, Form::Part, {text, 0}), state);
        }
    }
}

void PredicateIndex::satisfied_by_forks(const Field& field, const Dimension& dimension, SearchState& state) const {
    const bool is_text = field.type == TypeClass::Text;
    const Place place = Place::of(field);
    const auto visit = [&](const End*, const std::uint64_t* links, std::size_t count) {
        state.add_links(links, count);
    };
    ForkKey key;
    key.dimension = dimension.number;
    for (const auto& [cut, _] : dimension.cuts) {
        const std::uint64_t block = is_text ? block_of(field.text, cut.block) : field.number.key;
        if (cut.block > 0) key.before = before_block(field.text, cut.block);
        key.cut = cut;
        key.bits = first_bits(block, cut.depth);
        const std::uint32_t found = find_fork(key);
        if (found == kNone) continue;
        const Fork& fork = *forks_[found];
        if (cut.depth == 64) {
            // Between ends that differ too little for a cut, the predicates are evaluated one by one.
            fork.lower.visit_up_to(place, [&](const End* ends, const std::uint64_t* links, std::size_t count) {
                for (std::size_t number = 0; number < count; ++number) {
                    const bool is_true = is_true_for(leaves_[ends[number].owner], field);
                    is_true ? state.add_links(links[number]) : static_cast<void>(++state.evaluated);
                }
            });
        } else if (block >> (63 - cut.depth) & 1) {
            fork.upper.visit_above(place, visit);
        } else {
            fork.lower.visit_up_to(place, visit);
        }
    }
}

}  // namespace mercast::a_tree
