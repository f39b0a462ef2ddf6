#include "core/terms.hpp"

#include <algorithm>

namespace mercast {
namespace {

std::uint64_t first_key(const Operand& operand, Aspect aspect, const Vocabulary& vocabulary) {
    switch (aspect) {
        case Aspect::Number: return operand.number.floor_key();
        case Aspect::Identity: return identity_key(operand.text_number);
        case Aspect::Order: return text_order_key(vocabulary.texts.text(operand.text_number));
        default: return wide_truth_key(operand.truth);
    }
}

std::uint64_t last_key(const Operand& operand, Aspect aspect, const Vocabulary& vocabulary) {
    return aspect == Aspect::Number ? operand.number.ceiling_key() : first_key(operand, aspect, vocabulary);
}

class TermsWriter {
  public:
    TermsWriter(const Predicate& predicate, std::span<const Operand> operands, const Vocabulary& vocabulary,
                Terms& terms)
        : predicate_(predicate),
          operands_(operands),
          aspect_(aspect_of(predicate)),
          vocabulary_(vocabulary),
          terms_(terms) {}

    void add(std::uint32_t dimension) {
        terms_.needs_check |= predicate_.needs_check;
        terms_.has_pattern |= is_pattern(predicate_.op);
        Interval interval{dimension};
        switch (predicate_.op) {
            case Operator::In:
            case Operator::NotIn: add_values(interval); break;
            case Operator::Between:
            case Operator::NotBetween: add_range(interval); break;
            case Operator::Exists: break;
            case Operator::NotExists: interval.first = interval.last = kMissing; break;
            default: add_comparison(interval);
        }
        terms_.intersect(interval);
    }

  private:
    void add_comparison(Interval& interval) {
        const Operand& operand = operands_[0];
        const std::uint64_t first = first_key(operand, aspect_, vocabulary_);
        const std::uint64_t last = last_key(operand, aspect_, vocabulary_);
        // Keys do not decide these bounds, or there are none. A strict bound includes its own key.
        switch (predicate_.op) {
            case Operator::Eq:
                interval.first = first;
                interval.last = last;
                break;
            case Operator::Lt: interval.last = last; break;
            case Operator::Le: interval.last = last; break;
            case Operator::Gt: interval.first = first; break;
            case Operator::Ge: interval.first = first; break;
            case Operator::Ne: exclude({interval.dimension, first, last}); break;
            case Operator::StartsWith:
                interval.first = first;
                interval.last = text_order_key(vocabulary_.texts.text(operand.text_number), 0xff);
                break;
            // The order of keys does not decide a suffix or a pattern: any text passes, and the form decides.
            default: break;
        }
    }

    void add_range(Interval& interval) {
        const std::uint64_t first = first_key(operands_[0], aspect_, vocabulary_);
        const std::uint64_t last = last_key(operands_[1], aspect_, vocabulary_);
        if (predicate_.op == Operator::NotBetween) {
            exclude({interval.dimension, first, last});
        } else {
            interval.first = first;
            interval.last = last;
        }
    }

    void add_values(Interval& interval) {
        const auto start = static_cast<std::uint32_t>(terms_.values.size());
        std::uint64_t smallest = kLargestKey, largest = 0;
        const bool is_positive = predicate_.op == Operator::In;
        const bool is_inline = !predicate_.needs_check &&
                               (is_positive ? start + operands_.size() <= Terms::kMostValues
                                            : terms_.exclusions.size() + operands_.size() <= Terms::kMostExclusions);
        terms_.needs_check |= !is_inline;
        for (const Operand& operand : operands_) {
            const std::uint64_t first = first_key(operand, aspect_, vocabulary_);
            const std::uint64_t last = last_key(operand, aspect_, vocabulary_);
            smallest = std::min(smallest, first);
            largest = std::max(largest, last);
            if (!is_inline) continue;
            if (is_positive) {
                terms_.values.push_back(first);
            } else {
                terms_.exclusions.push_back({interval.dimension, first, last});
            }
        }
        if (!is_positive) return;
        interval.first = smallest;
        interval.last = largest;
        if (!is_inline) return;
        // A subscription filed twice under one value would be found twice.
        std::uint64_t* values = terms_.values.begin() + start;
        std::sort(values, terms_.values.end());
        const auto count = static_cast<std::uint32_t>(std::unique(values, terms_.values.end()) - values);
        terms_.values.resize(start + count);
        if (count > 1) terms_.sets.push_back({interval.dimension, start, count});
    }

    void exclude(Interval exclusion) {
        if (predicate_.needs_check) return;
        if (exclusion.is_empty()) return;
        if (terms_.exclusions.size() < Terms::kMostExclusions) {
            terms_.exclusions.push_back(exclusion);
        } else {
            terms_.needs_check = true;
        }
    }

    const Predicate& predicate_;
    std::span<const Operand> operands_;
    Aspect aspect_;
    const Vocabulary& vocabulary_;
    Terms& terms_;
};

}  // namespace

void Terms::intersect_known(std::uint32_t dimension, std::uint64_t first, std::uint64_t last) {
    for (Interval& known : intervals) {
        if (known.dimension == dimension) {
            known.first = std::max(known.first, first);
            known.last = std::min(known.last, last);
            known.first_halves = known.last_halves = kNoHalves;
            return;
        }
    }
    if (intervals.size() < kMostIntervals) {
        intervals.push_back({dimension, first, last});
    } else {
        needs_check = true;
    }
}

void add_terms(const Predicate& predicate, std::span<const Operand> operands, std::uint32_t dimension,
               const Vocabulary& vocabulary, Terms& terms) {
    if (is_range_of_numbers(predicate) && !predicate.needs_check) {
        terms.intersect(interval_of(predicate.op, operands.front(), operands.back(), dimension));
    } else {
        TermsWriter(predicate, operands, vocabulary, terms).add(dimension);
    }
}

}  // namespace mercast
