"""Boolean expressions over attributes: values, predicates, evaluation, normal forms, intersection, printing. Of
`matching` it may import `matching.errors` only.
"""

from matching.expressions.builder import Attribute, attr
from matching.expressions.conjunction import Condition, conditions_of, require_conjunction
from matching.expressions.explain import Explanation, explain
from matching.expressions.intersection import Region, covers, region_of
from matching.expressions.intervals import ValueSet, satisfying
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Truth, Xnor, Xor
from matching.expressions.normal_forms import (
    Clause,
    as_conjunction,
    conjunctive_clauses,
    count_disjunctive_clauses,
    disjunctive_clauses,
    negation_normal_form,
)
from matching.expressions.printing import to_text
from matching.expressions.values import (
    Dimension,
    Publication,
    TypeClass,
    Value,
    check_attribute,
    check_publication,
    check_value,
)

__all__ = [
    "FALSE",
    "TRUE",
    "And",
    "Attribute",
    "Clause",
    "Condition",
    "Dimension",
    "Explanation",
    "Expression",
    "Not",
    "Operator",
    "Or",
    "Predicate",
    "Publication",
    "Region",
    "Truth",
    "TypeClass",
    "Value",
    "ValueSet",
    "Xnor",
    "Xor",
    "as_conjunction",
    "attr",
    "check_attribute",
    "check_publication",
    "check_value",
    "conditions_of",
    "conjunctive_clauses",
    "count_disjunctive_clauses",
    "covers",
    "disjunctive_clauses",
    "explain",
    "negation_normal_form",
    "region_of",
    "require_conjunction",
    "satisfying",
    "to_text",
]
