"""A-Tree: arbitrary expressions in one graph, where each distinct subexpression stands once [ATREE, THESIS 9].

Leaves are predicates, inner nodes are subexpressions, roots are expressions; an edge leads from a part to what it is
part of. A publication starts at the predicates it satisfies and goes up level by level. What many expressions share is
evaluated once, and equal expressions are one node.

    tree.py              the index itself
    assembly.py          expressions to nodes
    graph.py             nodes, edges, levels, uses
    identities.py        IDs that do not depend on the order of operands, and the table of nodes
    organisation.py      reorganisation and self-adjustment: which nodes a node is built from
    subsets.py           the nodes that cover part of another
    propagation.py       who hears of whom: propagation on demand
    selectivity.py       which child of an AND speaks
    predicates.py        which predicates a publication satisfies
    ranges.py            those that are ranges
    queues.py            the nodes to evaluate, by level
    zero_suppression.py  matching with true results only
    three_valued.py      matching with true and false results

Cost: a new expression of n predicates takes O(n²) at worst for its covers [ATREE 4.3], a look at the nodes above the
rarest of its operands, and time for each larger expression that is built anew because of it; a repeated one takes the
time to find it. Matching takes time for the predicates that are satisfied and watched, and for the nodes they reach.

A report's `candidates` are the subscriptions on nodes that were reached; its `evaluated` are the nodes, predicates
included, for which a result was found, pushed or pulled.
"""

from matching.indexes.a_tree.identities import Identities
from matching.indexes.a_tree.tree import ATree

__all__ = ["ATree", "Identities"]
