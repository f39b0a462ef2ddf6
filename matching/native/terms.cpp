#include "terms.hpp"

#include <algorithm>

namespace mercast {
namespace {

// Longer lists stay in the form, where they are checked one by one.
constexpr std::size_t kMostExclusions = 15;
constexpr std::size_t kMostSetValues = 32;
constexpr std::size_t kMostIntervals = 31;

Aspect aspect_of(Operator op, TypeClass type) {
    if (op == Operator::Exists || op == Operator::NotExists) return Aspect::Presence;
    if (type == TypeClass::Number) return Aspect::Number;
    if (type == TypeClass::Truth) return Aspect::Truth;
    const bool is_by_identity =
        op == Operator::Eq || op == Operator::Ne || op == Operator::In || op == Operator::NotIn;
    return is_by_identity ? Aspect::Identity : Aspect::Order;
}

std::uint64_t first_key(const StoredOperand& operand, Aspect aspect, const Vocabulary& vocabulary) {
    switch (aspect) {
        case Aspect::Number: return operand.number.floor_key();
        case Aspect::Identity: return identity_key(operand.text);
        case Aspect::Order: return text_order_key(vocabulary.texts.text(operand.text));
        default: return wide_truth_key(operand.truth);
    }
}

std::uint64_t last_key(const StoredOperand& operand, Aspect aspect, const Vocabulary& vocabulary) {
    return aspect == Aspect::Number ? operand.number.ceiling_key() : first_key(operand, aspect, vocabulary);
}

class TermsReader {
  public:
    TermsReader(Form form, const Vocabulary& vocabulary, Terms& terms)
        : reader_(form), vocabulary_(vocabulary), terms_(terms) {}

    void add(const StoredPredicate& predicate, std::uint32_t dimension) {
        const Aspect aspect = aspect_of(predicate.op, predicate.type);
        terms_.needs_check |= predicate.needs_check;
        terms_.has_pattern |= is_pattern(predicate.op);
        Interval interval{dimension};
        switch (predicate.op) {
            case Operator::In: case Operator::NotIn: add_values(predicate, dimension, aspect, interval); break;
            case Operator::Between: case Operator::NotBetween: {
                const StoredOperand lower = reader_.operand(predicate.type), upper = reader_.operand(predicate.type);
                add_range(predicate, lower, upper, aspect, interval);
                break;
            }
            case Operator::Exists: break;
            case Operator::NotExists: interval.first = interval.last = kMissing; break;
            default: add_comparison(predicate, reader_.operand(predicate.type), aspect, interval);
        }
        meet(interval);
    }

    bool next(StoredPredicate& predicate) { return reader_.next(predicate); }

  private:
    void add_comparison(const StoredPredicate& predicate, const StoredOperand& operand, Aspect aspect, Interval& interval) {
        const std::uint64_t first = first_key(operand, aspect, vocabulary_);
        const std::uint64_t last = last_key(operand, aspect, vocabulary_);
        // Where keys decide, a strict bound stops one key short of its value.
        const std::uint64_t strict = predicate.needs_check ? 0 : 1;
        switch (predicate.op) {
            case Operator::Eq: interval.first = first; interval.last = last; break;
            case Operator::Lt: interval.last = last - strict; break;
            case Operator::Le: interval.last = last; break;
            case Operator::Gt: interval.first = first + strict; break;
            case Operator::Ge: interval.first = first; break;
            case Operator::Ne: exclude(predicate, {interval.dimension, first, last}); break;
            case Operator::StartsWith:
                interval.first = first;
                interval.last = text_order_key(vocabulary_.texts.text(operand.text), 0xff);
                break;
            default: break;  // No order of keys tells a suffix or a pattern: any text will do, and the form decides.
        }
    }

    void add_range(const StoredPredicate& predicate, const StoredOperand& lower, const StoredOperand& upper, Aspect aspect,
                   Interval& interval) {
        const std::uint64_t first = first_key(lower, aspect, vocabulary_), last = last_key(upper, aspect, vocabulary_);
        if (predicate.op == Operator::NotBetween) {
            if (!predicate.needs_check) exclude(predicate, {interval.dimension, first, last});
        } else {
            interval.first = first;
            interval.last = last;
        }
    }

    void add_values(const StoredPredicate& predicate, std::uint32_t dimension, Aspect aspect, Interval& interval) {
        const auto start = static_cast<std::uint32_t>(terms_.values.size());
        std::uint64_t smallest = kLargestKey, largest = 0;
        const bool is_positive = predicate.op == Operator::In;
        const bool is_inline = !predicate.needs_check &&
                               (is_positive ? start + predicate.operands <= kMostSetValues
                                            : terms_.exclusions.size() + predicate.operands <= kMostExclusions);
        terms_.needs_check |= !is_inline;
        for (std::uint32_t i = 0; i < predicate.operands; ++i) {
            const StoredOperand operand = reader_.operand(predicate.type);
            const std::uint64_t first = first_key(operand, aspect, vocabulary_);
            const std::uint64_t last = last_key(operand, aspect, vocabulary_);
            smallest = std::min(smallest, first);
            largest = std::max(largest, last);
            if (!is_inline) continue;
            if (is_positive) {
                terms_.values.push_back(first);
            } else {
                terms_.exclusions.push_back({dimension, first, last});
            }
        }
        if (!is_positive) return;
        interval.first = smallest;
        interval.last = largest;
        if (!is_inline) return;
        // Filed twice under one value, a subscription would be found twice.
        std::sort(terms_.values.begin() + start, terms_.values.end());
        terms_.values.erase(std::unique(terms_.values.begin() + start, terms_.values.end()), terms_.values.end());
        const auto count = static_cast<std::uint32_t>(terms_.values.size() - start);
        if (count > 1) terms_.sets.push_back({dimension, start, count});
    }

    void exclude(const StoredPredicate& predicate, Interval exclusion) {
        if (predicate.needs_check) return;
        if (exclusion.is_empty()) return;
        if (terms_.exclusions.size() < kMostExclusions) {
            terms_.exclusions.push_back(exclusion);
        } else {
            terms_.needs_check = true;
        }
    }

    void meet(const Interval& interval) {
        for (Interval& known : terms_.intervals) {
            if (known.dimension == interval.dimension) {
                known.first = std::max(known.first, interval.first);
                known.last = std::min(known.last, interval.last);
                return;
            }
        }
        if (terms_.intervals.size() < kMostIntervals) {
            terms_.intervals.push_back(interval);
        } else {
            terms_.needs_check = true;
        }
    }

    FormReader reader_;
    const Vocabulary& vocabulary_;
    Terms& terms_;
};

}  // namespace

void read_terms(Form form, const Vocabulary& vocabulary, Dimensions& dimensions, bool acquire, Terms& terms) {
    terms.clear();
    TermsReader reader(form, vocabulary, terms);
    StoredPredicate predicate;
    while (reader.next(predicate)) {
        const Aspect aspect = aspect_of(predicate.op, predicate.type);
        reader.add(predicate, acquire ? dimensions.acquire(predicate.attribute, aspect)
                                      : dimensions.find(predicate.attribute, aspect));
    }
}

void release_dimensions(Form form, Dimensions& dimensions) {
    FormReader reader(form);
    StoredPredicate predicate;
    while (reader.next(predicate)) {
        dimensions.release(dimensions.find(predicate.attribute, aspect_of(predicate.op, predicate.type)));
        for (std::uint32_t i = 0; i < predicate.operands; ++i) reader.operand(predicate.type);
    }
}

}  // namespace mercast
