// The meaning of predicates: one leaf for each distinct one, its truth, and an estimate of how often it is true.

#include <algorithm>

#include "a_tree/predicate_index.hpp"

namespace mercast::a_tree {
namespace {

// The word after a value's key in a list of values.
struct ListWord {
    std::int16_t residual;
    std::uint16_t unused;
    std::uint32_t place;
};

bool has_list(Operator op) { return op == Operator::In || op == Operator::NotIn; }

Operator without_negation(Operator op) { return static_cast<Operator>(static_cast<unsigned>(op) & ~1U); }

}  // namespace

bool PredicateIndex::read_values(const Predicate& predicate, Operator op, const Conjunction& source,
                                 bool is_acquiring) {
    read_.clear();
    for (std::uint32_t number = 0; number < predicate.operands; ++number) {
        const Operand& operand = source.operand(predicate, number);
        switch (predicate.type) {
            case TypeClass::Number: read_.push_back(operand.number); break;
            case TypeClass::Truth: read_.push_back({truth_key(operand.truth), 0}); break;
            case TypeClass::Text: {
                Interner& texts = vocabulary_.texts;
                const std::uint32_t text = is_acquiring ? texts.acquire(operand.text) : texts.find(operand.text);
                if (text == Interner::kUnknown) return false;
                read_.push_back({text, 0});
                break;
            }
        }
    }
    if (!has_list(op)) return true;
    std::sort(read_.begin(), read_.end());
    std::size_t kept = 0;
    for (const Number& value : read_) {
        if (kept == 0 || value != read_[kept - 1]) {
            read_[kept++] = value;
        } else if (is_acquiring && predicate.type == TypeClass::Text) {
            vocabulary_.texts.release(static_cast<std::uint32_t>(value.key));
        }
    }
    read_.resize(kept);
    return true;
}

std::uint32_t PredicateIndex::hash_of_read(std::uint32_t attribute, Operator op, TypeClass type) const {
    std::uint64_t hash =
        (std::uint64_t{attribute} << 16) | static_cast<unsigned>(op) << 8 | static_cast<unsigned>(type);
    for (const Number& value : read_) {
        hash = mixed(hash ^ value.key) + static_cast<std::uint16_t>(value.residual);
    }
    return static_cast<std::uint32_t>(mixed(hash));
}

std::uint32_t PredicateIndex::find(const Predicate& predicate, Operator op, const Conjunction& source) {
    const std::uint32_t attribute = vocabulary_.attributes.find(predicate.attribute);
    if (attribute == Interner::kUnknown || !read_values(predicate, op, source, false)) return kNone;
    const std::uint32_t hash = hash_of_read(attribute, op, predicate.type);
    return leaf_table_.find(
        hash, [&](std::uint32_t leaf) { return equals_read(leaves_[leaf], attribute, op, predicate.type); });
}

bool PredicateIndex::equals_read(const Leaf& leaf, std::uint32_t attribute, Operator op, TypeClass type) const {
    if (leaf.attribute != attribute || leaf.op != op || leaf.type != type) return false;
    if (!has_list(op)) {
        return (read_.empty() || leaf.first == read_[0]) && (read_.size() < 2 || leaf.second == read_[1]);
    }
    if (leaf.count != read_.size()) return false;
    for (std::uint32_t number = 0; number < leaf.count; ++number) {
        if (listed_value(leaf, number) != read_[number]) return false;
    }
    return true;
}

std::uint32_t PredicateIndex::add(const Predicate& predicate, Operator op, const Conjunction& source) {
    Leaf leaf;
    leaf.attribute = vocabulary_.attributes.acquire(predicate.attribute);
    read_values(predicate, op, source, true);
    leaf.op = op;
    leaf.type = predicate.type;
    leaf.hash = hash_of_read(leaf.attribute, op, leaf.type);
    if (has_list(op)) {
        leaf.count = static_cast<std::uint32_t>(read_.size());
        leaf.list = lists_.allocate(2 * leaf.count);
        std::uint64_t* words = lists_.at(leaf.list);
        for (const Number& value : read_) {
            *words++ = value.key;
            *words++ = std::bit_cast<std::uint64_t>(ListWord{value.residual, 0, 0});
        }
    } else {
        if (!read_.empty()) leaf.first = read_[0];
        if (read_.size() > 1) leaf.second = read_[1];
    }
    std::uint32_t number;
    if (free_leaves_.empty()) {
        number = static_cast<std::uint32_t>(leaves_.size());
        leaves_.push_back(leaf);
    } else {
        number = free_leaves_.back();
        free_leaves_.pop_back();
        leaves_[number] = leaf;
    }
    leaf_table_.insert(leaf.hash, number);
    patterns_ += is_pattern(op);
    return number;
}

void PredicateIndex::set_node(std::uint32_t number, NodeId node) {
    Leaf& leaf = leaves_[number];
    leaf.node = node;
    if (tests_.size() <= node) tests_.resize(std::size_t{node} + 1);
    const bool is_equality = leaf.op == Operator::Eq || leaf.op == Operator::Ne;
    const bool is_comparison = leaf.op <= Operator::Le && leaf.type == TypeClass::Number;
    tests_[node] = {leaf.first.key, number, leaf.first.residual,
                    is_equality || is_comparison ? leaf.op : Operator::Matches};
}

void PredicateIndex::remove_leaf(std::uint32_t number) {
    const Leaf leaf = leaves_[number];
    leaf_table_.erase(leaf.hash, number);
    patterns_ -= is_pattern(leaf.op);
    if (leaf.type == TypeClass::Text) release_texts(leaf);
    vocabulary_.attributes.release(leaf.attribute);
    if (has_list(leaf.op)) lists_.release(leaf.list, 2 * leaf.count);
    free_leaves_.push_back(number);
    if (leaf_table_.size() > 0) return;
    std::vector<Leaf>().swap(leaves_);
    std::vector<std::uint32_t>().swap(free_leaves_);
    std::vector<Uses>().swap(uses_);
    decltype(tests_)().swap(tests_);
    std::vector<std::unique_ptr<Dimension>>().swap(dimensions_);
    std::vector<std::uint32_t>().swap(present_);
    absent_ = {};
}

void PredicateIndex::release_texts(const Leaf& leaf) {
    if (has_list(leaf.op)) {
        for (std::uint32_t number = 0; number < leaf.count; ++number) {
            vocabulary_.texts.release(static_cast<std::uint32_t>(listed_value(leaf, number).key));
        }
        return;
    }
    vocabulary_.texts.release(static_cast<std::uint32_t>(leaf.first.key));
    const bool has_second = without_negation(leaf.op) == Operator::Between;
    if (has_second) vocabulary_.texts.release(static_cast<std::uint32_t>(leaf.second.key));
}

Number PredicateIndex::listed_value(const Leaf& leaf, std::uint32_t number) const {
    const std::uint64_t* words = lists_.at(leaf.list + 2 * number);
    return {words[0], std::bit_cast<ListWord>(words[1]).residual};
}

// The value's position in the leaf's list, or kNone.
std::uint32_t PredicateIndex::find_listed(const Leaf& leaf, Number value) const {
    std::uint32_t low = 0;
    std::uint32_t high = leaf.count;
    while (low < high) {
        const std::uint32_t middle = (low + high) / 2;
        if (listed_value(leaf, middle) < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < leaf.count && listed_value(leaf, low) == value ? low : kNone;
}

std::uint32_t PredicateIndex::place_at(const Leaf& leaf, Number value) const {
    if (!has_list(leaf.op)) return leaf.place;
    return std::bit_cast<ListWord>(*lists_.at(leaf.list + 2 * find_listed(leaf, value) + 1)).place;
}

void PredicateIndex::set_place_at(Leaf& leaf, Number value, std::uint32_t place) {
    if (!has_list(leaf.op)) {
        leaf.place = place;
        return;
    }
    std::uint64_t* word = lists_.at(leaf.list + 2 * find_listed(leaf, value) + 1);
    *word = std::bit_cast<std::uint64_t>(ListWord{value.residual, 0, place});
}

// The order of the leaf's first value and its second: below 0, 0 or above 0.
int PredicateIndex::order(const Leaf& leaf) const {
    if (leaf.type == TypeClass::Text) return text(leaf.first).compare(text(leaf.second));
    return leaf.first < leaf.second ? -1 : leaf.first > leaf.second ? 1 : 0;
}

std::uint32_t PredicateIndex::dimension(std::uint32_t leaf) const {
    const Leaf& found = leaves_[leaf];
    // EXISTS accepts any class of values.
    return without_negation(found.op) == Operator::Exists ? 0 : dimension_of(found.attribute, found.type);
}

bool PredicateIndex::is_true(std::uint32_t leaf, const Event& event) const {
    const Leaf& found = leaves_[leaf];
    const Field* field = event.find(found.attribute);
    if (without_negation(found.op) == Operator::Exists) return (field != nullptr) == (found.op == Operator::Exists);
    return field != nullptr && field->type == found.type && is_true_for(found, *field);
}

// Whether the predicate is true for a value of its own class.
bool PredicateIndex::is_true_for(const Leaf& leaf, const Field& field) const {
    bool is_true = false;
    switch (without_negation(leaf.op)) {
        case Operator::Eq: is_true = value_of(field) == leaf.first; break;
        case Operator::In: is_true = find_listed(leaf, value_of(field)) != kNone; break;
        default:
            if (field.type == TypeClass::Text) return is_true_for_text(leaf, field.text);
            switch (leaf.op) {
                case Operator::Lt: return field.number < leaf.first;
                case Operator::Le: return field.number <= leaf.first;
                case Operator::Gt: return field.number > leaf.first;
                case Operator::Ge: return field.number >= leaf.first;
                default: is_true = leaf.first <= field.number && field.number <= leaf.second;
            }
    }
    return is_true != is_negated(leaf.op);
}

bool PredicateIndex::is_true_for_text(const Leaf& leaf, std::string_view value) const {
    const std::string_view first = text(leaf.first);
    bool is_true = false;
    switch (leaf.op) {
        case Operator::Lt: return value < first;
        case Operator::Le: return value <= first;
        case Operator::Gt: return value > first;
        case Operator::Ge: return value >= first;
        case Operator::StartsWith:
        case Operator::NotStartsWith: is_true = value.starts_with(first); break;
        case Operator::EndsWith:
        case Operator::NotEndsWith: is_true = value.ends_with(first); break;
        case Operator::Contains:
        case Operator::NotContains: is_true = value.find(first) != value.npos; break;
        case Operator::Matches:
        case Operator::NotMatches: is_true = verifier_(first, value); break;
        default: is_true = first <= value && value <= text(leaf.second);
    }
    return is_true != is_negated(leaf.op);
}

// Estimates are based on subscriptions. An attribute that many predicates use is assumed to be present often, and a
// value that many equalities name to be frequent. Only the order of the estimates matters.
double PredicateIndex::share(std::uint32_t leaf, std::uint32_t uses) const {
    const Leaf& found = leaves_[leaf];
    if (found.op == Operator::NotExists) return 1.0;
    const std::uint32_t place = uses_index(found);
    const Uses known = place < uses_.size() ? uses_[place] : Uses{};
    const double presence = known.all / (static_cast<double>(all_uses_) + 1);
    // Values that publications have and no subscription names, in uses.
    constexpr double kOtherValues = 3;
    // By operator: the share of the publications with the attribute that satisfy it. Points are counted instead.
    static constexpr double kShares[kOperators] = {0,    0.99, 0.5, 0.5, 0.5, 0.5, 0.2, 0.8, 0, 0.95,
                                                   0.05, 0.95, 0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 1, 1};
    if (found.op != Operator::Eq && found.op != Operator::In) return presence * kShares[static_cast<int>(found.op)];
    const double values = found.op == Operator::In ? found.count : 1;
    return presence * std::min(1.0, uses * values / (known.points + kOtherValues));
}

std::uint32_t PredicateIndex::uses_index(const Leaf& leaf) {
    const bool is_presence = without_negation(leaf.op) == Operator::Exists;
    return 4 * leaf.attribute + (is_presence ? 3 : static_cast<std::uint32_t>(leaf.type));
}

void PredicateIndex::count_use(std::uint32_t leaf, int times) {
    const Leaf& used = leaves_[leaf];
    const std::uint32_t place = uses_index(used);
    if (uses_.size() <= place) uses_.resize(std::size_t{place} + 1);
    all_uses_ += static_cast<std::uint64_t>(times);
    uses_[place].all += static_cast<std::uint32_t>(times);
    if (used.op == Operator::Eq || used.op == Operator::In) uses_[place].points += static_cast<std::uint32_t>(times);
}

}  // namespace mercast::a_tree
