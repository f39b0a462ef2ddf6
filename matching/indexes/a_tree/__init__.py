"""A-Tree: a graph of arbitrary expressions in which each distinct subexpression has one node [ATREE, THESIS 9].

Leaves are predicates, inner nodes are subexpressions, and roots are expressions. An edge leads from a child to a parent
that contains it. Matching starts at the predicates that a publication satisfies and proceeds upwards, level by level. A
subexpression that many expressions share is evaluated once. Equal expressions have one node. The package may import
what the indexes may import.

    tree.py              the index itself
    assembly.py          converts expressions to nodes
    graph.py             nodes, edges, levels, uses
    identities.py        IDs that do not depend on the order of operands, and the table of nodes
    organisation.py      reorganisation and self-adjustment: chooses the nodes that a node is built from
    subsets.py           finds the nodes that cover part of another node
    propagation.py       propagation on demand: chooses the children that a node listens to
    selectivity.py       estimates which child of an AND is true least often
    predicates.py        finds the predicates that a publication satisfies
    ranges.py            finds the satisfied predicates that are ranges
    queues.py            the nodes to evaluate, by level
    zero_suppression.py  matching with true results only
    three_valued.py      matching with true and false results

Cost: a new expression of n predicates takes O(n²) at worst for its covers [ATREE 4.3]. It also takes time for the nodes
above the rarest of its operands, and for each larger expression that is rebuilt. An expression that is already stored
takes only the time to find it. Matching takes time for the satisfied predicates that are watched, and for the nodes
that they reach.

In a report, `candidates` counts the subscriptions of the nodes that were reached. `evaluated` counts the nodes,
including predicates, whose result was computed, pushed or pulled.
"""

from matching.indexes.a_tree.identities import Identities
from matching.indexes.a_tree.tree import ATree

__all__ = ["ATree", "Identities"]
