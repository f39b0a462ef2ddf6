// An expression as an index receives it: its parts, children before parents. A shared part occurs once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/predicate.hpp"

namespace mercast {

enum class Connective : std::uint8_t { Predicate, And, Or, Not, Xor, Xnor };

struct ExpressionForm {
    struct Part {
        Connective kind;
        std::uint32_t first;  // Of a connective: into `children`. Of a predicate: into `leaves`.
        std::uint32_t count;
    };

    std::vector<Part> parts;  // The last one is the expression.
    std::vector<std::uint32_t> children;
    Conjunction leaves;

    void clear() {
        parts.clear();
        children.clear();
        leaves.clear();
    }
};

}  // namespace mercast
