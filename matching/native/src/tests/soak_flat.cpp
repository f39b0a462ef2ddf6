#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flat/flat_index.hpp"
#include "tests/soak.hpp"

namespace mercast {
namespace {

struct Value {
    TypeClass type = TypeClass::Number;
    bool is_integer = false;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
    bool truth = false;

    // 64 bits of mantissa hold every int64 and every double.
    long double exact() const {
        return is_integer ? static_cast<long double>(integer) : static_cast<long double>(real);
    }
};

struct Condition {
    std::string attribute;
    Operator op = Operator::Eq;
    std::vector<Value> values;
};

using Publication = std::map<std::string, Value>;

const char* const kAttributes[] = {"a", "b", "c", "s", "t", "f"};
constexpr std::uint32_t kNarrow = 1;
const char* const kTexts[] = {"", "a", "b", "ab", "aba", "abcdefgh", "abcdefghi", "abcdefg", "\xc3\xa9", "zz"};
const std::int64_t kLargeIntegers[] = {(1LL << 53) - 1, 1LL << 53,     (1LL << 53) + 1, -(1LL << 53) - 1,
                                       INT64_MAX,       INT64_MAX - 1, INT64_MIN};
const double kReals[] = {-1.5, -0.0, 0.5, 2.5, 0x1p53, 0x1p63, -0x1p63, 1e300, 5e-324, 3.25};

Value random_value(Random& random, TypeClass type) {
    Value value;
    value.type = type;
    switch (type) {
        case TypeClass::Text: value.text = kTexts[random.below(10)]; break;
        case TypeClass::Truth: value.truth = random.below(2) == 0; break;
        default: {
            const std::uint32_t kind = random.below(20);
            value.is_integer = kind < 17;
            value.integer = kind < 16 ? random.below(200) : kLargeIntegers[random.below(7)];
            value.real = kReals[random.below(10)];
        }
    }
    return value;
}

TypeClass usual_class(std::uint32_t attribute) {
    return attribute < 3 ? TypeClass::Number : attribute < 5 ? TypeClass::Text : TypeClass::Truth;
}

TypeClass random_class(Random& random, std::uint32_t attribute) {
    return random.below(12) == 0 ? static_cast<TypeClass>(random.below(3)) : usual_class(attribute);
}

Condition random_condition(Random& random) {
    const std::uint32_t attribute = random.below(6);
    const TypeClass type = random_class(random, attribute);
    Condition condition;
    condition.attribute = kAttributes[attribute];
    for (;;) {
        condition.op = static_cast<Operator>(random.below(kOperators));
        const bool is_text_only = condition.op >= Operator::StartsWith && condition.op <= Operator::NotMatches;
        const bool is_order = condition.op >= Operator::Lt && condition.op <= Operator::NotBetween;
        if (is_pattern(condition.op) || (is_text_only && type != TypeClass::Text)) continue;
        if (!(is_order && type == TypeClass::Truth)) break;
    }
    std::uint32_t count = 1;
    if (condition.op == Operator::Exists || condition.op == Operator::NotExists) count = 0;
    if (condition.op == Operator::Between || condition.op == Operator::NotBetween) count = 2;
    if (condition.op == Operator::In || condition.op == Operator::NotIn)
        count = 1 + random.below(random.below(30) == 0 ? 60 : 4);
    for (; count != 0; --count) condition.values.push_back(random_value(random, type));
    // One attribute is compared only with integers of a narrow range, which have a grid of their own.
    if (attribute == kNarrow && type == TypeClass::Number) {
        for (Value& value : condition.values) {
            value.is_integer = true;
            value.integer = static_cast<std::int64_t>(random.below(90)) - 10;
        }
    }
    return condition;
}

int order_of(const Value& one, const Value& other) {
    if (one.type == TypeClass::Text) return one.text.compare(other.text);
    if (one.type == TypeClass::Truth) return static_cast<int>(one.truth) - static_cast<int>(other.truth);
    return one.exact() < other.exact() ? -1 : one.exact() > other.exact() ? 1 : 0;
}

bool holds(const Condition& condition, const Publication& publication) {
    const auto found = publication.find(condition.attribute);
    if (condition.values.empty()) return (found != publication.end()) == (condition.op == Operator::Exists);
    if (found == publication.end() || found->second.type != condition.values[0].type) return false;
    const Value& value = found->second;
    const std::string &text = value.text, &operand = condition.values[0].text;
    const auto is_in = [&] {
        return std::any_of(condition.values.begin(), condition.values.end(),
                           [&](const Value& one) { return order_of(value, one) == 0; });
    };
    const auto is_between = [&] {
        return order_of(value, condition.values[0]) >= 0 && order_of(value, condition.values[1]) <= 0;
    };
    switch (condition.op) {
        case Operator::Eq: return order_of(value, condition.values[0]) == 0;
        case Operator::Ne: return order_of(value, condition.values[0]) != 0;
        case Operator::Lt: return order_of(value, condition.values[0]) < 0;
        case Operator::Ge: return order_of(value, condition.values[0]) >= 0;
        case Operator::Gt: return order_of(value, condition.values[0]) > 0;
        case Operator::Le: return order_of(value, condition.values[0]) <= 0;
        case Operator::Between: return is_between();
        case Operator::NotBetween: return !is_between();
        case Operator::In: return is_in();
        case Operator::NotIn: return !is_in();
        case Operator::StartsWith: return text.rfind(operand, 0) == 0;
        case Operator::NotStartsWith: return text.rfind(operand, 0) != 0;
        case Operator::EndsWith: return text.ends_with(operand);
        case Operator::NotEndsWith: return !text.ends_with(operand);
        case Operator::Contains: return text.find(operand) != std::string::npos;
        default: return text.find(operand) == std::string::npos;
    }
}

struct Subscription {
    std::vector<Condition> conditions;
    std::uint32_t destination = 0;
};

class Soak {
  public:
    explicit Soak(std::uint64_t seed) : random_(seed) {}

    int run(std::uint64_t operations) {
        for (std::uint64_t operation = 0; operation < operations; ++operation) {
            // Waves, so that lists, tables and slots grow, shrink and move.
            const std::uint32_t wanted = wave(operation);
            const std::uint32_t kind = random_.below(100);
            if (kind < 3) {
                match();
            } else if (ids_.size() < wanted || (ids_.size() < wanted + 8 && kind < 50)) {
                add();
            } else if (!ids_.empty()) {
                remove();
            }
        }
        return emptied();
    }

    // So many subscriptions that memory comes in huge pages, some of which are returned.
    int run_large(std::uint32_t size) {
        for (const std::uint32_t wanted : {size, size / 4, size}) {
            while (ids_.size() < wanted) add();
            while (ids_.size() > wanted) remove();
            for (int i = 0; i < 4; ++i) match();
            if (wanted == size) wrong_ += index_.figures().bytes > 2 * ChunkStore::kLarge ? 0 : 1;
        }
        return emptied();
    }

  private:
    int emptied() {
        while (!ids_.empty()) remove();
        const FlatIndex::Figures left = index_.figures();
        wrong_ += left.lists == 0 && left.entries == 0 && left.dimensions == 0 && left.grids == 0 ? 0 : 1;
        return wrong_;
    }

    static std::uint32_t wave(std::uint64_t operation) {
        static constexpr std::uint32_t kSizes[] = {20, 300, 5, 1200, 100, 0, 3000, 60};
        return kSizes[operation / 9'000 % 8];
    }

    void add() {
        Subscription subscription;
        const std::uint32_t count = random_.below(40) == 0 ? random_.below(60) : random_.below(6);
        for (std::uint32_t i = 0; i < count; ++i) subscription.conditions.push_back(random_condition(random_));
        subscription.destination = random_.below(5);
        const std::int64_t id =
            random_.below(50) == 0 ? -static_cast<std::int64_t>(next_id_++) : static_cast<std::int64_t>(next_id_++);
        Conjunction conjunction;
        for (const Condition& condition : subscription.conditions) append(conjunction, condition);
        const std::string destination = "broker " + std::to_string(subscription.destination);
        abandon_one_sometimes(conjunction);
        write(conjunction);
        wrong_ += index_.contains(id) ? 1 : 0;
        wrong_ += index_.reserve_id(id) ? 0 : 1;
        index_.finish(id, destination);
        wrong_ += index_.contains(id) && !index_.reserve_id(id) ? 0 : 1;
        // Sometimes after each addition, mostly after several before the next removal or match.
        if (random_.below(4) == 0) index_.flush();
        subscriptions_.emplace(id, std::move(subscription));
        ids_.push_back(id);
    }

    void write(Conjunction& conjunction) {
        index_.begin();
        for (Predicate& predicate : conjunction.predicates)
            index_.add_predicate(predicate, conjunction.operands_of(predicate));
    }

    // An abandoned addition leaves nothing behind, at any predicate.
    void abandon_one_sometimes(Conjunction conjunction) {
        if (random_.below(8) != 0) return;
        conjunction.predicates.resize(random_.below(static_cast<std::uint32_t>(conjunction.predicates.size()) + 1));
        write(conjunction);
        index_.abandon();
    }

    static void append(Conjunction& conjunction, const Condition& condition) {
        Predicate predicate;
        predicate.attribute = condition.attribute;
        predicate.op = condition.op;
        predicate.first_operand = static_cast<std::uint32_t>(conjunction.operands.size());
        predicate.operands = static_cast<std::uint32_t>(condition.values.size());
        for (const Value& value : condition.values) {
            predicate.type = value.type;
            Operand operand(value.is_integer ? NumberOperand::of(value.integer) : NumberOperand::of(value.real));
            operand.text = value.text;
            operand.truth = value.truth;
            conjunction.operands.push_back(operand);
        }
        conjunction.predicates.push_back(predicate);
    }

    void remove() {
        const std::uint32_t place = random_.below(static_cast<std::uint32_t>(ids_.size()));
        const std::int64_t id = ids_[place];
        ids_[place] = ids_.back();
        ids_.pop_back();
        index_.flush();
        index_.remove(id);
        subscriptions_.erase(id);
    }

    void match() {
        Publication publication;
        for (std::uint32_t attribute = 0; attribute < 6; ++attribute) {
            if (random_.below(3) != 0) {
                publication[kAttributes[attribute]] = random_value(random_, random_class(random_, attribute));
            }
        }
        std::vector<std::int64_t> expected;
        std::vector<bool> is_reached(5, false);
        for (const auto& [id, subscription] : subscriptions_) {
            const auto& conditions = subscription.conditions;
            const auto is_true = [&](const Condition& condition) { return holds(condition, publication); };
            if (!std::all_of(conditions.begin(), conditions.end(), is_true)) continue;
            expected.push_back(id);
            is_reached[subscription.destination] = true;
        }
        index_.flush();
        load(publication);
        Answer answer;
        index_.match(scratch_, answer);
        wrong_ += answer.ids == expected && answer.pending.empty() ? 0 : 1;
        load(publication);
        DestinationAnswer destinations;
        index_.match_destinations(scratch_, destinations);
        std::vector<bool> reached(5, false);
        for (const std::uint32_t number : destinations.destinations) {
            reached[static_cast<std::size_t>(index_.destinations().text(number).back() - '0')] = true;
        }
        wrong_ += reached == is_reached && !destinations.without ? 0 : 1;
        index_.record_publication(scratch_);
    }

    void load(const Publication& publication) {
        scratch_.event.begin(index_.vocabulary());
        for (const auto& [name, value] : publication) {
            const std::uint32_t attribute = scratch_.event.attribute(name);
            if (attribute == Interner::kUnknown) continue;
            switch (value.type) {
                case TypeClass::Text: scratch_.event.add(attribute, std::string_view(value.text)); break;
                case TypeClass::Truth: scratch_.event.add_truth(attribute, value.truth); break;
                default:
                    scratch_.event.add(attribute,
                                       value.is_integer ? Number::of(value.integer) : Number::of(value.real));
            }
        }
    }

    Random random_;
    FlatIndex index_;
    Scratch scratch_;
    std::map<std::int64_t, Subscription> subscriptions_;
    std::vector<std::int64_t> ids_;
    std::uint64_t next_id_ = 1;
    int wrong_ = 0;
};

}  // namespace

int soak_flat(std::uint64_t seed, std::uint64_t operations) { return Soak(seed).run(operations); }

int soak_large_flat(std::uint64_t seed, std::uint32_t size) { return Soak(seed).run_large(size); }

}  // namespace mercast
