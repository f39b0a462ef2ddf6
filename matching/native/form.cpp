#include "form.hpp"

#include <cmath>
#include <cstring>

namespace mercast {
namespace {

constexpr unsigned kOperatorMask = 0x1f, kNeedsCheck = 0x20;
constexpr unsigned kTypeShift = 6;

// The longest that a predicate's start and an operand can be.
constexpr std::size_t kMostStartBytes = 11, kMostOperandBytes = 11;

std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
    *at++ = static_cast<std::uint8_t>(value);
    return at;
}

std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) { return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

std::uint8_t* put_operand(std::uint8_t* at, TypeClass type, const StoredOperand& operand) {
    if (type == TypeClass::Text) return put_varint(at, operand.text);
    if (type == TypeClass::Truth) {
        *at++ = operand.truth ? 1 : 0;
        return at;
    }
    *at++ = operand.is_integer ? 1 : 0;
    if (operand.is_integer) return put_varint(at, zigzag(static_cast<std::int64_t>(operand.bits)));
    std::memcpy(at, &operand.bits, sizeof operand.bits);
    return at + sizeof operand.bits;
}

bool compares(Operator op, auto order) {
    switch (op) {
        case Operator::Eq: return order == 0;
        case Operator::Ne: return order != 0;
        case Operator::Lt: return order < 0;
        case Operator::Le: return order <= 0;
        case Operator::Gt: return order > 0;
        default: return order >= 0;
    }
}

bool text_holds(Operator op, std::string_view value, std::string_view operand) {
    switch (op) {
        case Operator::StartsWith: return value.starts_with(operand);
        case Operator::NotStartsWith: return !value.starts_with(operand);
        case Operator::EndsWith: return value.ends_with(operand);
        case Operator::NotEndsWith: return !value.ends_with(operand);
        case Operator::Contains: return value.find(operand) != std::string_view::npos;
        case Operator::NotContains: return value.find(operand) == std::string_view::npos;
        default: return compares(op, value.compare(operand));
    }
}

bool is_same(const Field& field, const StoredOperand& operand) {
    switch (field.type) {
        case TypeClass::Number: return field.number == operand.number;
        case TypeClass::Text: return field.text_number == operand.text;
        default: return field.truth == operand.truth;
    }
}

// The order of the published value against the operand.
int order_of(const Field& field, const StoredOperand& operand, const Vocabulary& vocabulary) {
    if (field.type == TypeClass::Text) return field.text.compare(vocabulary.texts.text(operand.text));
    const auto order = field.number <=> operand.number;
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

bool holds(const Field& field, const StoredPredicate& predicate, FormReader& reader, const Vocabulary& vocabulary) {
    switch (predicate.op) {
        case Operator::In:
        case Operator::NotIn: {
            bool is_in = false;
            for (std::uint32_t i = 0; i < predicate.operands; ++i) {
                is_in |= is_same(field, reader.operand(predicate.type));
            }
            return is_in == (predicate.op == Operator::In);
        }
        case Operator::Between:
        case Operator::NotBetween: {
            const bool reaches = order_of(field, reader.operand(predicate.type), vocabulary) >= 0;
            const bool is_within = order_of(field, reader.operand(predicate.type), vocabulary) <= 0;
            return (reaches && is_within) == (predicate.op == Operator::Between);
        }
        case Operator::Matches:
        case Operator::NotMatches:
            reader.operand(predicate.type);
            return true;
        default: break;
    }
    const StoredOperand operand = reader.operand(predicate.type);
    if (field.type == TypeClass::Text) return text_holds(predicate.op, field.text, vocabulary.texts.text(operand.text));
    if (field.type == TypeClass::Truth) return is_same(field, operand) == (predicate.op == Operator::Eq);
    return compares(predicate.op, field.number <=> operand.number);
}

// Beyond this the integers have gaps in the doubles, and a value may lie between a bound's key and the next.
bool is_small(const Number& number) {
    static const Number limit = Number::of(std::int64_t{1} << 53), other = Number::of(-(std::int64_t{1} << 53));
    return other < number && number < limit;
}

// Does keeping this predicate's interval of keys, its exclusions and its set decide it? If not, it needs a check.
bool is_decided_by_keys(const Conjunction& conjunction, const Predicate& predicate) {
    if (is_pattern(predicate.op)) return true;
    if (predicate.op == Operator::Exists || predicate.op == Operator::NotExists) return true;
    if (predicate.type == TypeClass::Truth) return true;
    const bool is_by_identity = predicate.op == Operator::Eq || predicate.op == Operator::Ne ||
                                predicate.op == Operator::In || predicate.op == Operator::NotIn;
    if (predicate.type == TypeClass::Text) {
        return is_by_identity || (predicate.op == Operator::StartsWith &&
                                  conjunction.operand(predicate, 0).text.size() <= kTextKeyBytes);
    }
    const bool is_strict = predicate.op == Operator::Lt || predicate.op == Operator::Gt;
    for (std::uint32_t i = 0; i < predicate.operands; ++i) {
        const Number& number = conjunction.operand(predicate, i).number;
        if (!number.is_on_key() || (is_strict && !is_small(number))) return false;
    }
    return true;
}

}  // namespace

std::uint64_t FormReader::varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint8_t byte = *at_++;
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return value;
    }
}

bool FormReader::next(StoredPredicate& predicate) {
    if (at_ == end_) return false;
    const std::uint8_t first = *at_++;
    predicate.op = static_cast<Operator>(first & kOperatorMask);
    predicate.needs_check = (first & kNeedsCheck) != 0;
    predicate.type = static_cast<TypeClass>(first >> kTypeShift);
    predicate.attribute = static_cast<std::uint32_t>(varint());
    switch (predicate.op) {
        case Operator::In: case Operator::NotIn: predicate.operands = static_cast<std::uint32_t>(varint()); break;
        case Operator::Between: case Operator::NotBetween: predicate.operands = 2; break;
        case Operator::Exists: case Operator::NotExists: predicate.operands = 0; break;
        default: predicate.operands = 1;
    }
    return true;
}

StoredOperand FormReader::operand(TypeClass type) {
    StoredOperand operand;
    if (type == TypeClass::Truth) {
        operand.truth = *at_++ != 0;
    } else if (type == TypeClass::Text) {
        operand.text = static_cast<std::uint32_t>(varint());
    } else if (*at_++ != 0) {
        const std::int64_t integer = unzigzag(varint());
        operand.is_integer = true;
        operand.bits = static_cast<std::uint64_t>(integer);
        operand.number = Number::of(integer);
    } else {
        std::memcpy(&operand.bits, at_, sizeof operand.bits);
        at_ += sizeof operand.bits;
        operand.number = Number::of(std::bit_cast<double>(operand.bits));
    }
    return operand;
}

bool FormReader::next(StoredPredicate& predicate, std::vector<StoredOperand>& operands) {
    operands.clear();
    if (!next(predicate)) return false;
    for (std::uint32_t i = 0; i < predicate.operands; ++i) operands.push_back(operand(predicate.type));
    return true;
}

StoredPredicate stored(const Conjunction& conjunction, const Predicate& predicate, Vocabulary& vocabulary,
                       std::vector<StoredOperand>& operands) {
    StoredPredicate kept{predicate.op, predicate.type, !is_decided_by_keys(conjunction, predicate),
                         predicate.attribute_number, predicate.operands};
    if (kept.attribute == Interner::kUnknown) {
        kept.attribute = vocabulary.attributes.acquire(predicate.attribute);
    } else {
        vocabulary.attributes.retain(kept.attribute);
    }
    for (std::uint32_t i = 0; i < predicate.operands; ++i) {
        const Operand& operand = conjunction.operand(predicate, i);
        const bool is_text = predicate.type == TypeClass::Text;
        operands.push_back({operand.number, operand.bits, operand.is_integer, operand.truth,
                            is_text ? vocabulary.texts.acquire(operand.text) : Interner::kUnknown});
    }
    return kept;
}

void write_form(const StoredPredicate& predicate, std::span<const StoredOperand> operands, std::vector<std::uint8_t>& form) {
    const std::size_t before = form.size();
    form.resize(before + kMostStartBytes + operands.size() * kMostOperandBytes);
    std::uint8_t* at = form.data() + before;
    *at++ = static_cast<std::uint8_t>(static_cast<unsigned>(predicate.op) | (predicate.needs_check ? kNeedsCheck : 0) |
                                      static_cast<unsigned>(predicate.type) << kTypeShift);
    at = put_varint(at, predicate.attribute);
    if (predicate.op == Operator::In || predicate.op == Operator::NotIn) at = put_varint(at, predicate.operands);
    for (const StoredOperand& operand : operands) at = put_operand(at, predicate.type, operand);
    form.resize(static_cast<std::size_t>(at - form.data()));
}

bool satisfies(const Event& event, Form form, const Vocabulary& vocabulary) {
    FormReader reader(form);
    StoredPredicate predicate;
    while (reader.next(predicate)) {
        const Field* field = event.find(predicate.attribute);
        if (predicate.operands == 0) {
            if ((field != nullptr) != (predicate.op == Operator::Exists)) return false;
            continue;
        }
        if (field == nullptr || field->type != predicate.type) return false;
        if (!holds(*field, predicate, reader, vocabulary)) return false;
    }
    return true;
}

}  // namespace mercast
