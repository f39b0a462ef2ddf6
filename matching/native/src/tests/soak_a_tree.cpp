// The A-Tree compared with a plain evaluation of each expression, in Kleene's three-valued logic.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "a_tree/a_tree_search.hpp"
#include "scan/expression_scan.hpp"
#include "tests/soak.hpp"

namespace mercast {
namespace {

struct Value {
    TypeClass type = TypeClass::Number;
    std::int64_t number = 0;
    std::string text;
    bool truth = false;
};

// Small domains, so that expressions share parts, collide and match.
const char* const kNames[] = {"a", "b", "c", "s", "t", "f"};
const char* const kTexts[] = {"", "a", "b", "ab", "aba", "abcdefghij", "abcdefghik", "abcdefgh", "\xc3\xa9", "bab"};

Value random_value(Random& random, TypeClass type) {
    Value value;
    value.type = type;
    value.number = random.below(8) == 0 ? INT64_MAX - random.below(3) : random.below(12);
    value.text = kTexts[random.below(10)];
    value.truth = random.below(2) == 0;
    return value;
}

TypeClass random_class(Random& random, std::uint32_t attribute) {
    if (random.below(12) == 0) return static_cast<TypeClass>(random.below(3));
    return attribute < 3 ? TypeClass::Number : attribute < 5 ? TypeClass::Text : TypeClass::Truth;
}

struct Node {
    Connective kind = Connective::Predicate;
    std::vector<std::shared_ptr<Node>> children;
    std::string attribute;
    Operator op = Operator::Eq;
    std::vector<Value> values;
};

using Tree = std::shared_ptr<Node>;
using Publication = std::map<std::string, Value>;

Tree random_predicate(Random& random) {
    auto node = std::make_shared<Node>();
    const std::uint32_t attribute = random.below(6);
    const TypeClass type = random_class(random, attribute);
    node->attribute = kNames[attribute];
    do {
        node->op = static_cast<Operator>(random.below(kOperators));
    } while ((node->op >= Operator::StartsWith && node->op <= Operator::NotMatches && type != TypeClass::Text) ||
             (node->op >= Operator::Lt && node->op <= Operator::NotBetween && type == TypeClass::Truth));
    std::uint32_t count = 1;
    if (node->op >= Operator::Exists) count = 0;
    if (node->op == Operator::Between || node->op == Operator::NotBetween) count = 2;
    if (node->op == Operator::In || node->op == Operator::NotIn) count = 3;
    for (; count != 0; --count) node->values.push_back(random_value(random, type));
    return node;
}

Tree random_tree(Random& random, std::uint32_t depth) {
    if (depth == 0 || random.below(6) == 0) return random_predicate(random);
    auto node = std::make_shared<Node>();
    node->kind = static_cast<Connective>(1 + random.below(5));
    const bool is_joined = node->kind == Connective::And || node->kind == Connective::Or;
    std::uint32_t count = node->kind == Connective::Not ? 1 : is_joined ? random.below(5) : 2;
    if (is_joined && count == 1) count = 2;
    for (; count != 0; --count) {
        const bool is_shared = !node->children.empty() && random.below(8) == 0;
        node->children.push_back(is_shared ? node->children[0] : random_tree(random, depth - 1));
    }
    return node;
}

int order_of(const Value& one, const Value& other) {
    if (one.type == TypeClass::Text) return one.text.compare(other.text);
    if (one.type == TypeClass::Truth) return static_cast<int>(one.truth) - static_cast<int>(other.truth);
    return one.number < other.number ? -1 : one.number > other.number ? 1 : 0;
}

// The native core calls a verifier for patterns. Here a pattern matches where its text occurs.
bool holds(const Node& node, const Value& value) {
    const auto order = [&](std::size_t number) { return order_of(value, node.values[number]); };
    bool is_true = false;
    switch (static_cast<Operator>(static_cast<unsigned>(node.op) & ~1U)) {
        case Operator::Eq: is_true = order(0) == 0; break;
        case Operator::Lt: is_true = order(0) < 0; break;
        case Operator::Gt: is_true = order(0) > 0; break;
        case Operator::Between: is_true = order(0) >= 0 && order(1) <= 0; break;
        case Operator::In: is_true = order(0) == 0 || order(1) == 0 || order(2) == 0; break;
        case Operator::StartsWith: is_true = value.text.starts_with(node.values[0].text); break;
        case Operator::EndsWith: is_true = value.text.ends_with(node.values[0].text); break;
        default: is_true = value.text.find(node.values[0].text) != std::string::npos;
    }
    return is_true != ((static_cast<unsigned>(node.op) & 1U) != 0);
}

std::optional<bool> evaluate(const Node& node, const Publication& publication) {
    std::vector<std::optional<bool>> below;
    for (const Tree& child : node.children) below.push_back(evaluate(*child, publication));
    switch (node.kind) {
        case Connective::Predicate: {
            const auto found = publication.find(node.attribute);
            if (node.values.empty()) return (found != publication.end()) == (node.op == Operator::Exists);
            if (found == publication.end() || found->second.type != node.values[0].type) return std::nullopt;
            return holds(node, found->second);
        }
        case Connective::Not: return below[0] ? std::optional<bool>(!*below[0]) : std::nullopt;
        case Connective::Xor:
        case Connective::Xnor:
            if (!below[0] || !below[1]) return std::nullopt;
            return (*below[0] != *below[1]) == (node.kind == Connective::Xor);
        default: break;
    }
    const bool deciding = node.kind == Connective::Or;
    std::optional<bool> result = !deciding;
    for (const std::optional<bool>& truth : below) {
        if (truth == deciding) return deciding;
        if (!truth) result = std::nullopt;
    }
    return result;
}

std::uint32_t write(const Tree& tree, ExpressionForm& form, std::map<const Node*, std::uint32_t>& written) {
    if (const auto known = written.find(tree.get()); known != written.end()) return known->second;
    if (tree->kind == Connective::Predicate) {
        Predicate predicate;
        predicate.attribute = tree->attribute;
        predicate.op = tree->op;
        predicate.first_operand = static_cast<std::uint32_t>(form.leaves.operands.size());
        predicate.operands = static_cast<std::uint32_t>(tree->values.size());
        for (const Value& value : tree->values) {
            predicate.type = value.type;
            Operand operand;
            operand.number = Number::of(value.number);
            operand.text = value.text;
            operand.truth = value.truth;
            form.leaves.operands.push_back(operand);
        }
        form.parts.push_back({Connective::Predicate, static_cast<std::uint32_t>(form.leaves.predicates.size()), 0});
        form.leaves.predicates.push_back(predicate);
    } else {
        std::vector<std::uint32_t> children;
        for (const Tree& child : tree->children) children.push_back(write(child, form, written));
        const auto first = static_cast<std::uint32_t>(form.children.size());
        form.children.insert(form.children.end(), children.begin(), children.end());
        form.parts.push_back({tree->kind, first, static_cast<std::uint32_t>(children.size())});
    }
    return written[tree.get()] = static_cast<std::uint32_t>(form.parts.size() - 1);
}

class Soak {
  public:
    Soak(std::uint64_t seed, unsigned identity_bits) : random_(seed), tree_(identity_bits), search_(tree_) {
        const auto verifier = [](std::string_view pattern, std::string_view text) {
            return text.find(pattern) != text.npos;
        };
        tree_.set_verifier(verifier);
        scan_.set_verifier(verifier);
    }

    int run(std::uint64_t operations) {
        static constexpr std::uint32_t kSizes[] = {10, 200, 3, 60, 0, 400};
        for (std::uint64_t operation = 0; operation < operations; ++operation) {
            const std::uint32_t wanted = kSizes[operation / 4'000 % 6];
            const std::uint32_t kind = random_.below(100);
            if (kind < 4) {
                match();
            } else if (ids_.size() < wanted || (ids_.size() < wanted + 8 && kind < 50)) {
                add();
            } else if (!ids_.empty()) {
                remove();
            }
        }
        while (!ids_.empty()) remove();
        const a_tree::GraphShape left = tree_.shape();
        wrong_ += left.nodes == 0 && left.levels == 0 && tree_.predicates().points() == 0 && tree_.size() == 0 ? 0 : 1;
        return wrong_;
    }

  private:
    void add() {
        const bool is_repeated = !ids_.empty() && random_.below(5) == 0;
        const Tree tree = is_repeated ? trees_[ids_[random_.below(static_cast<std::uint32_t>(ids_.size()))]]
                                      : random_tree(random_, random_.below(5));
        ++added_;
        // Some ids are far from the others, so that both ways of sorting them are tested.
        const bool is_far = random_.below(3'000) == 0;
        const std::int64_t id =
            is_far ? INT64_MIN + static_cast<std::int64_t>(added_) : static_cast<std::int64_t>(added_);
        ExpressionForm form;
        std::map<const Node*, std::uint32_t> written;
        write(tree, form, written);
        tree_.add(id, form);
        tree_.set_destination(id, 1 + static_cast<std::uint32_t>(added_ % 5));
        scan_.add(id, form);
        trees_[id] = tree;
        ids_.push_back(id);
    }

    void remove() {
        const std::uint32_t place = random_.below(static_cast<std::uint32_t>(ids_.size()));
        const std::int64_t id = ids_[place];
        ids_[place] = ids_.back();
        ids_.pop_back();
        tree_.remove(id);
        scan_.remove(id);
        trees_.erase(id);
    }

    void match() {
        Publication publication;
        for (std::uint32_t attribute = 0; attribute < 6; ++attribute) {
            if (random_.below(3) == 0) continue;
            publication[kNames[attribute]] = random_value(random_, random_class(random_, attribute));
        }
        std::vector<std::int64_t> expected;
        for (const auto& [id, tree] : trees_) {
            if (evaluate(*tree, publication) == true) expected.push_back(id);
        }
        std::vector<std::int64_t> ids;
        load(publication, tree_.vocabulary());
        const a_tree::SearchCounts counts = search_.match(event_, ids);
        wrong_ += ids == expected && counts.candidates >= ids.size() ? 0 : 1;
        std::vector<std::uint32_t> destinations;
        search_.match_destinations(event_, destinations, 6);
        std::vector<bool> is_wanted(6, false);
        for (const std::int64_t id : expected) is_wanted[destination_of(id)] = true;
        for (const std::uint32_t destination : destinations) is_wanted[destination] = !is_wanted[destination];
        wrong_ += std::find(is_wanted.begin(), is_wanted.end(), true) == is_wanted.end() ? 0 : 1;
        load(publication, scan_.vocabulary());
        scan_.match(event_, ids);
        wrong_ += ids == expected ? 0 : 1;
    }

    static std::size_t destination_of(std::int64_t id) {
        const std::int64_t number = id < 0 ? id - INT64_MIN : id;
        return static_cast<std::size_t>(1 + number % 5);
    }

    void load(const Publication& publication, const Vocabulary& vocabulary) {
        event_.begin(vocabulary);
        for (const auto& [name, value] : publication) {
            const std::uint32_t attribute = event_.attribute(name);
            if (attribute == Interner::kUnknown) continue;
            switch (value.type) {
                case TypeClass::Text: event_.add(attribute, std::string_view(value.text)); break;
                case TypeClass::Truth: event_.add_truth(attribute, value.truth); break;
                default: event_.add(attribute, Number::of(value.number));
            }
        }
    }

    Random random_;
    a_tree::ATree tree_;
    a_tree::ATreeSearch search_;
    ExpressionScan scan_;
    Event event_;
    std::map<std::int64_t, Tree> trees_;
    std::vector<std::int64_t> ids_;
    std::uint64_t added_ = 0;
    int wrong_ = 0;
};

}  // namespace

int soak_a_tree(std::uint64_t seed, std::uint64_t operations) {
    // Three quarters with full IDs, and a quarter with IDs of two bits, where nearly all collide.
    return Soak(seed, 32).run(operations / 4 * 3) + Soak(seed + 1, 2).run(operations / 4);
}

}  // namespace mercast
