"""BE-Tree: a tree that cuts the space of subscriptions by attribute, then by values, then by attribute again [BET].

    keys          order-preserving keys of values, buckets, and where a condition lies among them; `domain` their range
    dimensions    numbers for attributes with their classes
    nodes         partition, cluster and leaf nodes
    directories   the buckets of one attribute
    tree          insertion, partitioning, clustering, deletion
    search        which leaves an event reaches
    evaluation    plain and lazy verification of candidates; `bitmap` and `bloom` are the other ways to shorten it
    ranking       which attribute is worth a partition; `adaptation` is what happens when one is not
    expressive    expressions as events
    index         BETree, which puts them together; `inspection` and `invariants` look at it

Cost: insertion and deletion O(conditions * log of the domain); a match visits the leaves whose path it satisfies.
"""

from matching.indexes.be_tree.expressive import Semantics
from matching.indexes.be_tree.index import BETree, Work

__all__ = ["BETree", "Semantics", "Work"]
