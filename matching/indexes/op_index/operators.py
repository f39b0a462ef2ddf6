"""Level 2 of the partitioning: the index for the predicates of each operator [OPI 4.2, 6.2]."""

from __future__ import annotations

from matching.expressions.model import Operator
from matching.indexes.op_index.negations import negated
from matching.indexes.op_index.operator_index import OperatorIndexFactory, Presence, each_dimension
from matching.indexes.op_index.patterns import Patterns
from matching.indexes.op_index.predicate_lists import (
    Between,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    NotEqual,
)
from matching.indexes.op_index.substrings import Substrings
from matching.indexes.op_index.tries import PrefixTrie, SuffixTrie

OPERATOR_INDEXES: dict[Operator, OperatorIndexFactory] = {
    Operator.EQ: Equal,
    Operator.NE: NotEqual,
    Operator.LT: Less,
    Operator.LE: LessOrEqual,
    Operator.GT: Greater,
    Operator.GE: GreaterOrEqual,
    Operator.BETWEEN: Between,
    Operator.NOT_BETWEEN: negated(Between),
    Operator.NOT_IN: negated(Equal),
    Operator.STARTS_WITH: each_dimension(PrefixTrie),
    Operator.NOT_STARTS_WITH: negated(each_dimension(PrefixTrie)),
    Operator.ENDS_WITH: each_dimension(SuffixTrie),
    Operator.NOT_ENDS_WITH: negated(each_dimension(SuffixTrie)),
    Operator.CONTAINS: each_dimension(Substrings),
    Operator.NOT_CONTAINS: negated(each_dimension(Substrings)),
    Operator.MATCHES: each_dimension(Patterns),
    Operator.NOT_MATCHES: negated(each_dimension(Patterns)),
    Operator.EXISTS: each_dimension(Presence),
}
"""NOT EXISTS is missing. No value of a publication leads to it, so it is checked separately."""

REWRITTEN: dict[Operator, Operator] = {Operator.IN: Operator.EQ}
"""Operators whose predicates are stored in the index of another operator. An IN has an entry in `=` for each value."""
