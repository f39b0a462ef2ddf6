// A conjunction as bytes: what a subscription said, in its own order, from which its expression can be given back and
// against which conditions are checked that keys alone do not decide. Names and texts are numbers of the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "event.hpp"
#include "interning.hpp"
#include "predicate.hpp"

namespace mercast {

using Form = std::span<const std::uint8_t>;

struct StoredPredicate {
    Operator op = Operator::Eq;
    TypeClass type = TypeClass::Number;
    bool needs_check = false;  // Keys do not decide it.
    std::uint32_t attribute = Interner::kUnknown;
    std::uint32_t operands = 0;
};

struct StoredOperand {
    Number number;
    std::uint64_t bits = 0;
    bool is_integer = false;
    bool truth = false;
    std::uint32_t text = Interner::kUnknown;
};

class FormReader {
  public:
    explicit FormReader(Form form) : at_(form.data()), end_(form.data() + form.size()) {}

    // Its operands follow, to be read before the next predicate.
    bool next(StoredPredicate& predicate);
    StoredOperand operand(TypeClass type);
    // With its operands.
    bool next(StoredPredicate& predicate, std::vector<StoredOperand>& operands);

  private:
    std::uint64_t varint();

    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

// A predicate as it is kept: acquires its names and texts, and appends its operands.
StoredPredicate stored(const Conjunction& conjunction, const Predicate& predicate, Vocabulary& vocabulary,
                       std::vector<StoredOperand>& operands);
// Appends a predicate's form.
void write_form(const StoredPredicate& predicate, std::span<const StoredOperand> operands, std::vector<std::uint8_t>& form);

// Are all predicates true? Patterns are left to the caller: they count as true here when the attribute is a text.
bool satisfies(const Event& event, Form form, const Vocabulary& vocabulary);

}  // namespace mercast
