"""The nodes to evaluate, by level. Lower levels come first [ATREE 5.1]."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from matching.indexes.a_tree.node import Node


class LevelQueues:
    """The queues of one publication. A node is queued at most once."""

    __slots__ = ("_levels", "_publication", "_queues")

    def __init__(self, publication: int) -> None:
        self._publication = publication
        self._queues: dict[int, list[Node]] = {}
        self._levels: list[int] = []

    def put(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.queued != self._publication:
                node.queued = self._publication
                queue = self._queues.get(node.level)
                if queue is None:
                    self._queues[node.level] = [node]
                    heappush(self._levels, node.level)
                else:
                    queue.append(node)

    def pop_lowest(self) -> list[Node]:
        """Removes and returns the queue of the lowest level. Returns an empty list if there is none."""
        return self._queues.pop(heappop(self._levels)) if self._levels else []
