// The predicates of an A-Tree: their meaning, and which of them a publication satisfies [ATREE 5].
//
// Each distinct predicate is one leaf. Watched leaves are in an index by dimension (attribute and class of values), so
// that a publication reads only predicates that it satisfies, with the exceptions named below.
//
//   =, IN                     by value, in a hash table of points
//   <, <=, >, >=              by their end, in order
//   BETWEEN                   by fork: the range is cut in two where the bits of its ends first differ, and a value on
//                             either side is compared only with the end on its side. A range has one place, however
//                             wide it is and whatever else is stored
//   NOT BETWEEN               as the two ranges that it leaves
//   !=, NOT IN                listed for the whole dimension; the point of the value names those that it makes false
//   STARTS WITH, ENDS WITH    by text, in the table of points, for each length that occurs
//   CONTAINS                  the same for each place in the text, or one by one if that is fewer
//   their negations           listed for the whole dimension, as for !=
//   MATCHES, NOT MATCHES      one by one, by the owner's verifier
//   EXISTS, NOT EXISTS        by attribute; the absent ones are listed
//
// Departs from [THESIS 6, PST 4]: PS-Tree copies a range to every space that it covers: too many on wide domains.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "a_tree/expression_graph.hpp"
#include "a_tree/ordered_ends.hpp"
#include "a_tree/search_state.hpp"
#include "core/event.hpp"
#include "core/id_table.hpp"
#include "core/interning.hpp"
#include "core/predicate.hpp"
#include "memory/fetch_line.hpp"
#include "memory/span_pool.hpp"

namespace mercast::a_tree {

// Returns whether the pattern occurs in the text. Native code has no regular expressions.
using Verifier = std::function<bool(std::string_view pattern, std::string_view text)>;

class PredicateIndex final : public Leaves {
  public:
    PredicateIndex(Vocabulary& vocabulary, const Verifier& verifier) : vocabulary_(vocabulary), verifier_(verifier) {}

    // The leaf with the same meaning, or kNone.
    std::uint32_t find(const Predicate& predicate, Operator op, const Conjunction& source);
    // Adds a leaf for a predicate that `find` did not find.
    std::uint32_t add(const Predicate& predicate, Operator op, const Conjunction& source);
    NodeId node(std::uint32_t leaf) const { return leaves_[leaf].node; }
    void set_node(std::uint32_t leaf, NodeId node);

    void watch(std::uint32_t leaf, std::uint64_t link) override;
    void unwatch(std::uint32_t leaf) override { place(leaf, Change::Remove); }
    void update(std::uint32_t leaf, std::uint64_t link) override;
    void count_use(std::uint32_t leaf, int times) override;
    double share(std::uint32_t leaf, std::uint32_t uses) const override;
    std::uint32_t dimension(std::uint32_t leaf) const override;
    void remove_leaf(std::uint32_t leaf) override;

    // Adds the links of the watched leaves that are true.
    void satisfied(const Event& event, SearchState& state) const;
    bool is_true(std::uint32_t leaf, const Event& event) const;
    // The same for the predicate of a node. `value` is the event's value in the predicate's dimension.
    bool is_true_at(NodeId node, const Number& value, const Event& event) const {
        const Test& test = tests_[node];
        switch (test.op) {
            case Operator::Eq: return value == test.number();
            case Operator::Ne: return value != test.number();
            case Operator::Lt: return value < test.number();
            case Operator::Le: return value <= test.number();
            case Operator::Gt: return value > test.number();
            case Operator::Ge: return value >= test.number();
            default: return is_true(test.leaf, event);
        }
    }
    void prefetch_test(NodeId node) const { fetch_line(&tests_[node]); }
    // A field's value as tests compare it: the number of a text, 1 or 2 for a boolean.
    static Number value_of(const Field& field) {
        if (field.type == TypeClass::Number) return field.number;
        return {field.type == TypeClass::Text ? field.text_number : truth_key(field.truth), 0};
    }

    static std::uint32_t dimension_of(std::uint32_t attribute, TypeClass type) {
        return 4 * attribute + static_cast<std::uint32_t>(type);
    }
    bool has_patterns() const { return patterns_ > 0; }
    std::uint32_t points() const { return point_table_.size(); }
    std::uint32_t dimensions() const { return dimension_count_; }
    std::size_t bytes() const;

  private:
    // Values of texts are their numbers; booleans are 1 and 2.
    struct Leaf {
        Number first;
        Number second;
        std::uint32_t hash = 0;
        NodeId node = kNone;
        std::uint32_t attribute = 0;
        std::uint32_t list = 0;  // Offset of the values of IN and NOT IN, ascending.
        std::uint32_t count = 0;
        std::uint32_t place = 0;         // At its point; not used by a leaf with a list.
        std::uint32_t place_listed = 0;  // Among the leaves listed for the whole dimension.
        Operator op = Operator::Eq;
        TypeClass type = TypeClass::Number;
        std::uint64_t link = 0;  // While it is watched.
    };

    // What a search reads of a predicate that is not watched: small, and by node. Most comparisons need nothing else.
    struct Test {
        std::uint64_t key = 0;
        std::uint32_t leaf = 0;
        std::int16_t residual = 0;
        Operator op = Operator::Matches;  // Matches if only the leaf can decide.

        Number number() const { return {key, residual}; }
    };

    // Leaves and their links.
    struct Listed {
        std::vector<std::uint32_t> leaves;
        std::vector<std::uint64_t> links;

        std::size_t bytes() const {
            return leaves.capacity() * sizeof(std::uint32_t) + links.capacity() * sizeof(std::uint64_t);
        }
    };

    enum class Change : std::uint8_t { Add, Remove, Update };

    enum class Form : std::uint8_t { Value, Prefix, Suffix, Part };

    // A value, or a text at the start, at the end or anywhere in another; and the leaves that it makes true or false.
    struct Point {
        std::uint32_t dimension = 0;
        Form form = Form::Value;
        Number value;
        std::uint32_t place = 0;  // Of a part: among the parts of the dimension.
        Listed making_true;
        Listed making_false;
    };

    struct Cut {
        std::uint32_t block = 0;  // Blocks of eight bytes before the one with the cut; 0 for numbers.
        std::uint32_t depth = 0;  // Bits of the block before the cut; 64 if nothing can be cut.
        auto operator<=>(const Cut&) const = default;
    };
    struct ForkKey {
        std::uint32_t dimension = 0;
        Cut cut;
        std::uint64_t bits = 0;  // Those of the block before the cut.
        std::string before;      // The blocks before it.

        bool operator==(const ForkKey&) const = default;
        std::uint32_t hash() const;
    };
    struct Fork {
        Fork(ForkKey key, const Interner* texts) : key(std::move(key)), lower(texts), upper(texts) {}
        ForkKey key;
        OrderedEnds lower;
        OrderedEnds upper;
    };

    using Lengths = std::map<std::uint32_t, std::uint32_t>;

    struct Dimension {
        Dimension(std::uint32_t number, const Interner* texts) : number(number), below(texts), above(texts) {}
        std::uint32_t number;
        std::uint32_t watched = 0;
        OrderedEnds below;
        OrderedEnds above;
        Listed listed;    // True unless a point makes them false.
        Listed patterns;  // Verified one by one.
        std::map<Cut, std::uint32_t> cuts;
        Lengths prefixes;
        Lengths suffixes;
        Lengths parts;
        std::vector<std::uint32_t> part_points;
    };

    struct Uses {
        std::uint32_t all = 0;
        std::uint32_t points = 0;
    };

    bool read_values(const Predicate& predicate, Operator op, const Conjunction& source, bool is_acquiring);
    std::uint32_t hash_of_read(std::uint32_t attribute, Operator op, TypeClass type) const;
    bool equals_read(const Leaf& leaf, std::uint32_t attribute, Operator op, TypeClass type) const;
    Number listed_value(const Leaf& leaf, std::uint32_t number) const;
    std::uint32_t find_listed(const Leaf& leaf, Number value) const;
    void release_texts(const Leaf& leaf);
    static std::uint32_t uses_index(const Leaf& leaf);

    void place(std::uint32_t leaf, Change change);
    void place_in(Dimension& dimension, std::uint32_t leaf, Change change);
    static void put_end(OrderedEnds& ends, const End& end, std::uint64_t link, Change change);
    void place_presence(std::uint32_t leaf, Change change);
    void place_range(Dimension& dimension, std::uint32_t leaf, Change change);
    void place_between(Dimension& dimension, std::uint32_t leaf, Change change);
    void place_text(Dimension& dimension, std::uint32_t leaf, Change change);
    void place_listed(Listed& entries, std::uint32_t leaf, Change change);
    void place_points(Dimension& dimension, std::uint32_t leaf, Form form, Change change);
    void place_at_point(Dimension& dimension, std::uint32_t leaf, Number value, Form form, Change change);
    std::uint32_t place_at(const Leaf& leaf, Number value) const;
    void set_place_at(Leaf& leaf, Number value, std::uint32_t place);
    static std::uint32_t hash_of_point(std::uint32_t dimension, Form form, Number value) {
        const std::uint64_t place = (std::uint64_t{dimension} << 20) | static_cast<std::uint64_t>(form) << 16;
        return static_cast<std::uint32_t>(mixed(value.key + mixed(place | static_cast<std::uint16_t>(value.residual))));
    }
    std::uint32_t find_point(std::uint32_t dimension, Form form, Number value) const;
    std::uint32_t make_point(Dimension& dimension, Form form, Number value);
    void drop_point(Dimension& dimension, std::uint32_t point);
    ForkKey fork_of(std::uint32_t dimension, const Leaf& leaf) const;
    static std::uint64_t block_of(std::string_view text, std::uint32_t number);
    static std::string before_block(std::string_view text, std::uint32_t number);
    static std::uint64_t first_bits(std::uint64_t block, std::uint32_t depth) {
        return depth == 0 ? 0 : block >> (64 - depth);
    }
    std::uint32_t find_fork(const ForkKey& wanted) const;
    std::uint32_t make_fork(Dimension& dimension, ForkKey key, TypeClass type);
    void drop_fork(Dimension& dimension, std::uint32_t number);
    int order(const Leaf& leaf) const;
    End end_of(std::uint32_t leaf, Number value, bool is_just_above) const;
    std::string_view text(Number value) const { return vocabulary_.texts.text(static_cast<std::uint32_t>(value.key)); }
    const Interner* texts_for(TypeClass type) const { return type == TypeClass::Text ? &vocabulary_.texts : nullptr; }

    const Dimension* dimension_for(const Field& field) const;
    void fetch_dimension(const Field& field) const;
    void fetch_contents(const Field& field) const;
    void fetch_point(const Field& field) const;
    void satisfied_by(const Field& field, SearchState& state) const;
    void satisfied_by_text(const Field& field, const Dimension& dimension, SearchState& state) const;
    void satisfied_by_parts(const Field& field, const Dimension& dimension, SearchState& state) const;
    void satisfied_by_forks(const Field& field, const Dimension& dimension, SearchState& state) const;
    void add_point(std::uint32_t point, SearchState& state) const;
    void add_listed(const Dimension& dimension, SearchState& state) const;
    bool is_true_for(const Leaf& leaf, const Field& field) const;
    bool is_true_for_text(const Leaf& leaf, std::string_view value) const;

    Vocabulary& vocabulary_;
    const Verifier& verifier_;
    std::vector<Leaf> leaves_;
    std::vector<std::uint32_t> free_leaves_;
    std::vector<Test, HugePages<Test>> tests_;
    IdTable leaf_table_;
    SpanPool lists_;
    std::vector<Number> read_;
    std::vector<Uses> uses_;
    std::uint64_t all_uses_ = 0;
    std::uint32_t patterns_ = 0;

    std::vector<std::unique_ptr<Dimension>> dimensions_;
    std::uint32_t dimension_count_ = 0;
    std::vector<Point> points_;
    std::vector<std::uint32_t> free_points_;
    IdTable point_table_;
    std::vector<std::unique_ptr<Fork>> forks_;
    std::vector<std::uint32_t> free_forks_;
    IdTable fork_table_;
    std::vector<std::uint32_t> present_;  // By attribute: the leaf of EXISTS, or kNone if it is not watched.
    Listed absent_;
};

}  // namespace mercast::a_tree
