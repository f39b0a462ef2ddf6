// Linear scan over any expressions: the reference for the native A-Tree's speed, and the native counterpart of Python's
// scan.
//
// The expressions are one array of instructions, each expression a tree in prefix order, so a scan reads memory
// sequentially. Evaluation stops when a result is decided. It distinguishes false from undefined only below NOT, XOR
// and XNOR. A predicate that compares a number is one instruction; if its attribute is missing, it costs one read of a
// small table. Expressions that share parts, or are very deep, are kept as a list of parts, children first, and
// evaluated part by part.
#pragma once

#include <cstdint>
#include <vector>

#include "a_tree/predicate_index.hpp"
#include "core/event.hpp"
#include "core/expression_form.hpp"
#include "core/id_table.hpp"

namespace mercast {

class ExpressionScan {
  public:
    ExpressionScan();
    ExpressionScan(const ExpressionScan&) = delete;
    ExpressionScan& operator=(const ExpressionScan&) = delete;

    void set_verifier(a_tree::Verifier verifier) { verifier_ = std::move(verifier); }
    // Ids must be new in `add` and exist in `remove`.
    void add(std::int64_t id, const ExpressionForm& expression);
    void remove(std::int64_t id);
    // The ids of the expressions that are true, ascending.
    void match(const Event& event, std::vector<std::int64_t>& ids);

    std::uint32_t size() const { return table_.size(); }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const a_tree::PredicateIndex& predicates() const { return predicates_; }
    std::size_t bytes() const;

  private:
    enum class Truth : std::uint8_t { Undefined, False, True };

    struct Instruction {
        // Of a comparison: its dimension. Of a connective in a tree: the number of its instructions.
        std::uint32_t where;
        std::uint16_t unused;
        Connective kind;
        // Of a predicate: a comparison of numbers, or Matches if the leaf decides.
        Operator op;
        // Of a comparison: the number's key. Of any other predicate: its leaf. Of a part in a list: its first child in
        // the upper half and the number of its children in the lower.
        std::uint64_t value;
    };

    struct Program {
        std::int64_t id;
        std::uint64_t first;
        std::uint32_t count;
        std::uint32_t children;  // Words after the instructions of a list of parts; 0 for a tree.
        bool is_tree;
        bool is_live;
    };

    std::uint32_t find(std::int64_t id) const;
    bool is_small_tree(const ExpressionForm& expression);
    void write_tree(const ExpressionForm& expression, std::uint32_t part);
    void write_list(const ExpressionForm& expression);
    Instruction predicate(const ExpressionForm& expression, std::uint32_t number);
    void release(const Instruction& instruction);
    void compact();

    Truth evaluate(const Instruction*& at, bool needs_false) const;
    Truth evaluate_predicate(const Instruction& instruction) const;
    Truth evaluate_leaf(std::uint32_t leaf) const;
    Truth evaluate_joined(const Instruction*& at, bool needs_false) const;
    Truth evaluate_list(const Program& program);
    Truth combined(Connective kind, const Instruction* children, std::uint32_t count) const;
    static Truth exclusive(Truth left, Truth right, bool is_xor);
    static Truth opposite(Truth truth);

    Vocabulary vocabulary_;
    a_tree::Verifier verifier_;
    a_tree::PredicateIndex predicates_;
    std::vector<std::uint32_t> leaf_uses_;
    std::vector<Instruction> instructions_;
    std::vector<Program> programs_;
    IdTable table_;
    std::uint32_t dead_ = 0;
    // State of the current publication.
    const Event* event_ = nullptr;
    std::vector<std::uint8_t> is_present_;
    std::vector<Number> numbers_;
    std::vector<Truth> truths_;
    std::vector<std::uint32_t> depths_;
};

}  // namespace mercast
