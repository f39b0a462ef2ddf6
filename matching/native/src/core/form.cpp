#include "core/form.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mercast {
namespace {

using namespace form_layout;

std::int64_t unzigzag(std::uint64_t value) { return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

std::uint8_t* put_operand(std::uint8_t* at, TypeClass type, const Operand& operand) {
    if (type == TypeClass::Number) return put_number(at, operand);
    if (type == TypeClass::Text) return put_varint(at, operand.text_number);
    *at++ = operand.truth ? 1 : 0;
    return at;
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

bool is_same(const Field& field, const Operand& operand) {
    switch (field.type) {
        case TypeClass::Number: return field.number == operand.number;
        case TypeClass::Text: return field.text_number == operand.text_number;
        default: return field.truth == operand.truth;
    }
}

// The order of the published value relative to the operand.
int order_of(const Field& field, const Operand& operand, const Vocabulary& vocabulary) {
    if (field.type == TypeClass::Text) return field.text.compare(vocabulary.texts.text(operand.text_number));
    const auto order = field.number <=> operand.number;
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

bool holds(const Field& field, const Predicate& predicate, FormReader& reader, const Vocabulary& vocabulary) {
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
        case Operator::NotMatches: reader.operand(predicate.type); return true;
        default: break;
    }
    const Operand operand = reader.operand(predicate.type);
    if (field.type == TypeClass::Text)
        return text_holds(predicate.op, field.text, vocabulary.texts.text(operand.text_number));
    if (field.type == TypeClass::Truth) return is_same(field, operand) == (predicate.op == Operator::Eq);
    return compares(predicate.op, field.number <=> operand.number);
}

// Whether the predicate's interval of keys, its exclusions and its set decide it. If not, it needs a check.
bool is_decided_by_keys(const Predicate& predicate, std::span<const Operand> operands) {
    if (predicate.operands == 0 || predicate.type == TypeClass::Truth || is_pattern(predicate.op)) return true;
    if (predicate.type == TypeClass::Text) {
        switch (predicate.op) {
            case Operator::Eq:
            case Operator::Ne:
            case Operator::In:
            case Operator::NotIn: return true;
            case Operator::StartsWith: return operands[0].text.size() <= kTextKeyBytes;
            default: return false;
        }
    }
    if (is_range(predicate.op)) return keys_decide_range(predicate.op, operands.front().number, operands.back().number);
    return std::all_of(operands.begin(), operands.end(),
                       [](const Operand& operand) { return operand.number.is_on_key(); });
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

bool FormReader::next(Predicate& predicate) {
    if (at_ == end_) return false;
    const std::uint8_t first = *at_++;
    predicate.op = static_cast<Operator>(first & kOperatorMask);
    predicate.needs_check = (first & kNeedsCheck) != 0;
    predicate.type = static_cast<TypeClass>(first >> kTypeShift);
    predicate.attribute_number = static_cast<std::uint32_t>(varint());
    switch (predicate.op) {
        case Operator::In:
        case Operator::NotIn: predicate.operands = static_cast<std::uint32_t>(varint()); break;
        case Operator::Between:
        case Operator::NotBetween: predicate.operands = 2; break;
        case Operator::Exists:
        case Operator::NotExists: predicate.operands = 0; break;
        default: predicate.operands = 1;
    }
    return true;
}

Operand FormReader::operand(TypeClass type) {
    Operand operand;
    if (type == TypeClass::Truth) {
        operand.truth = *at_++ != 0;
    } else if (type == TypeClass::Text) {
        operand.text_number = static_cast<std::uint32_t>(varint());
    } else {
        const unsigned first = *at_++;
        std::uint64_t word = 0;
        for (unsigned i = 0; i < std::min(first, 8U); ++i) word |= std::uint64_t{*at_++} << (8 * i);
        operand = Operand(first == kDouble ? NumberOperand::of(std::bit_cast<double>(word))
                                           : NumberOperand::of(unzigzag(word)));
    }
    return operand;
}

bool FormReader::next(Predicate& predicate, std::vector<Operand>& operands) {
    operands.clear();
    if (!next(predicate)) return false;
    for (std::uint32_t i = 0; i < predicate.operands; ++i) operands.push_back(operand(predicate.type));
    return true;
}

void acquire_texts(Predicate& predicate, std::span<Operand> operands, Vocabulary& vocabulary) {
    predicate.needs_check = !is_decided_by_keys(predicate, operands);
    if (predicate.type != TypeClass::Text) return;
    for (Operand& operand : operands) operand.text_number = vocabulary.texts.acquire(operand.text);
}

void write_form(const Predicate& predicate, std::span<const Operand> operands, FormBuffer& form) {
    std::uint8_t* at = form.room(kMostStartBytes + operands.size() * kMostOperandBytes);
    at = put_start(at, predicate);
    if (predicate.op == Operator::In || predicate.op == Operator::NotIn) at = put_varint(at, predicate.operands);
    for (const Operand& operand : operands) at = put_operand(at, predicate.type, operand);
    form.set_end(at);
}

bool satisfies(const Event& event, Form form, const Vocabulary& vocabulary) {
    FormReader reader(form);
    Predicate predicate;
    while (reader.next(predicate)) {
        const Field* field = event.find(predicate.attribute_number);
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
