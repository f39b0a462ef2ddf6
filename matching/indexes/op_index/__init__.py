"""OpIndex: pivot attributes, then operators, then sorted predicate lists, and counters [OPI].

index.py             the matcher itself
forms.py             which normal form an expression is held in
members.py           what is held: conjunctions with counters, CNF subscriptions with bitmaps
partitions.py        level 1: members by pivot
dimensions.py        how often publications carry a dimension, and what one publication asks
operators.py         level 2: the table from operators to their indexes
operator_index.py    the protocol of such an index
predicate_lists.py   sorted lists in segments with signatures, for = != < <= > >= IN BETWEEN
tries.py             STARTS WITH, ENDS WITH
substrings.py        CONTAINS
patterns.py          MATCHES
negations.py         the NOT of any of them
"""

from matching.indexes.op_index.index import OpIndex
from matching.indexes.op_index.operator_index import OperatorIndex, Target
from matching.indexes.op_index.operators import OPERATOR_INDEXES

__all__ = ["OPERATOR_INDEXES", "OpIndex", "OperatorIndex", "Target"]
