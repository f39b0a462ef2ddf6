"""BE-Tree: a tree that divides subscriptions by attribute, then by values, then by attribute again [BET]. The
package may import what the indexes may import.

    keys          order-preserving keys of values, buckets, and the key interval of a condition
    domain        the range of the keys of a directory
    dimensions    numbers for attributes with their classes
    nodes         partition, cluster and leaf nodes
    directories   the buckets of one attribute
    tree          insertion, partitioning, clustering, deletion
    search        finds the leaves that an event reaches
    evaluation    plain and lazy verification of candidates; `bitmap` and `bloom` are other ways to shorten it
    ranking       ranks attributes for partitioning
    adaptation    removes partitions that do not pay, and moves subscriptions
    expressive    expressions as events
    index         BETree, which combines the parts; `inspection` and `invariants` examine it

Cost: insertion and deletion O(conditions * log of the domain); a match visits the leaves whose path it satisfies.
"""

from matching.indexes.be_tree.expressive import Semantics
from matching.indexes.be_tree.index import BETree, Work

__all__ = ["BETree", "Semantics", "Work"]
