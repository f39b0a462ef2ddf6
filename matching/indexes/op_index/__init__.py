"""OpIndex: pivot attributes, then operators, then sorted predicate lists, and counters [OPI]. The package may import
what the indexes may import.

```
index.py             the matcher itself
forms.py             chooses the normal form in which an expression is stored
members.py           the stored items: conjunctions with counters, CNF subscriptions with bitmaps
partitions.py        level 1: members by pivot
dimensions.py        the frequency of dimensions in publications, and the lookups of one publication
operators.py         level 2: the table from operators to their indexes
operator_index.py    the interface of the index of an operator
predicate_lists.py   sorted lists in segments with signatures, for = != < <= > >= IN BETWEEN
tries.py             STARTS WITH, ENDS WITH
substrings.py        CONTAINS
patterns.py          MATCHES
negations.py         the NOT of any of them
```
"""

from matching.indexes.op_index.index import OpIndex
from matching.indexes.op_index.operator_index import OperatorIndex, Target
from matching.indexes.op_index.operators import OPERATOR_INDEXES

__all__ = ["OPERATOR_INDEXES", "OpIndex", "OperatorIndex", "Target"]
