"""STARTS WITH and ENDS WITH: tries of the prefixes, and of the reversed suffixes [OPI 6.2].

The path of a value in the trie passes exactly the prefixes that the value starts with. Edges are labelled with whole
strings, so a prefix of a thousand characters that shares nothing with others is one node.

Departs from [OPI 6.2]: each dimension has its own trie, instead of one trie of "attribute#prefix". The walk starts
where the paper's walk has read the attribute. Names may contain any character, because there is no delimiter.

Cost: insert and remove O(length of the prefix); match O(length that the value shares with some prefix + hits).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from matching.expressions.model import Predicate
from matching.indexes.op_index.operator_index import T, ValueIndex


class Node(Generic[T]):
    __slots__ = ("children", "label", "targets")

    def __init__(self, label: str) -> None:
        self.label = label
        """The text of the edge to this node."""
        self.children: dict[str, Node[T]] = {}
        """The children by the first character of their labels."""
        self.targets: dict[int, T] = {}
        """The targets of the prefix that ends here, by number."""


class PrefixTrie(ValueIndex[T]):
    __slots__ = ("_nodes", "_root")

    def __init__(self) -> None:
        self._root: Node[T] = Node("")
        self._nodes = 0

    def insert(self, predicate: Predicate, target: T) -> None:
        """Adds a prefix. The root counts as a node while the empty prefix is stored, so `nodes` shows emptiness."""
        node = self._find_or_create(self._word(predicate.operand))
        if node is self._root and not node.targets:
            self._nodes += 1
        node.targets[target.number] = target

    def remove(self, predicate: Predicate, target: T) -> None:
        path = self._path(self._word(predicate.operand))
        node = path[-1]
        del node.targets[target.number]
        if node.targets:
            return
        if node is self._root:
            self._nodes -= 1
            return
        if not node.children:
            del path[-2].children[node.label[0]]
            self._nodes -= 1
            node = path[-2]
        self._absorb_only_child(node)

    def match(self, value: str) -> Iterable[T]:
        word = self._word(value)
        hits = [*self._root.targets.values()]
        for node in self._path(word)[1:]:
            hits += node.targets.values()
        return hits

    @property
    def nodes(self) -> int:
        return self._nodes

    def _word(self, text: str) -> str:
        return text

    def _path(self, word: str) -> list[Node[T]]:
        """The nodes on the path of the word, from the root."""
        node = self._root
        path = [node]
        position = 0
        while position < len(word):
            child = node.children.get(word[position])
            if child is None or not word.startswith(child.label, position):
                break
            path.append(child)
            position += len(child.label)
            node = child
        return path

    def _find_or_create(self, word: str) -> Node[T]:
        """Returns the node where the word ends. Creates it if there is none."""
        path = self._path(word)
        node = path[-1]
        rest = word[sum(len(passed.label) for passed in path) :]
        if rest and rest[0] in node.children:
            node = self._split(node, node.children[rest[0]], rest)
            rest = rest[len(node.label) :]
        if rest:
            node.children[rest[0]] = node = self._new_node(rest)
        return node

    def _split(self, parent: Node[T], child: Node[T], word: str) -> Node[T]:
        """Inserts a node between parent and child, where the child's label and the word diverge."""
        shared = child.label[: _shared_length(child.label, word)]
        between = self._new_node(shared)
        parent.children[shared[0]] = between
        child.label = child.label[len(shared) :]
        between.children[child.label[0]] = child
        return between

    def _absorb_only_child(self, node: Node[T]) -> None:
        if node is self._root or node.targets or len(node.children) != 1:
            return
        (child,) = node.children.values()
        node.label += child.label
        node.targets = child.targets
        node.children = child.children
        self._nodes -= 1

    def _new_node(self, label: str) -> Node[T]:
        self._nodes += 1
        return Node(label)


class SuffixTrie(PrefixTrie[T]):
    __slots__ = ()

    def _word(self, text: str) -> str:
        return text[::-1]


def _shared_length(one: str, other: str) -> int:
    length = 0
    for character, other_character in zip(one, other, strict=False):
        if character != other_character:
            break
        length += 1
    return length
