"""Numbers for the dimensions that subscriptions use, and the values of a publication by these numbers.

Names are converted to small integers once. The rest of the index never hashes or compares a name.
"""

from __future__ import annotations

from matching.expressions.values import Dimension, TypeClass, Value
from matching.indexes.be_tree.keys import PRESENT_KEY, key_of


class Dimensions:
    def __init__(self) -> None:
        self._next_number = 0
        self._by_class: dict[TypeClass, dict[str, int]] = {type_class: {} for type_class in TypeClass}
        self._by_type = {
            int: self._by_class[TypeClass.NUMBER],
            float: self._by_class[TypeClass.NUMBER],
            str: self._by_class[TypeClass.STRING],
            bool: self._by_class[TypeClass.BOOLEAN],
        }
        self._presence = self._by_class[TypeClass.ANY]
        self._names: dict[int, Dimension] = {}
        self._users: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def name(self, number: int) -> Dimension:
        return self._names[number]

    def number(self, dimension: Dimension) -> int | None:
        return self._by_class[dimension[1]].get(dimension[0])

    def acquire(self, dimension: Dimension) -> tuple[int, bool]:
        """Counts one more user. Returns the number of the dimension, and whether it is new."""
        number = self.number(dimension)
        is_new = number is None
        if number is None:
            number = self._next_number
            self._next_number += 1
            self._by_class[dimension[1]][dimension[0]] = number
            self._names[number] = dimension
            self._users[number] = 0
        self._users[number] += 1
        return number, is_new

    def release(self, number: int) -> bool:
        """Counts one user less. Returns True if it was the last one. The number is then invalid."""
        self._users[number] -= 1
        if self._users[number]:
            return False
        del self._users[number]
        attribute, type_class = self._names.pop(number)
        del self._by_class[type_class][attribute]
        return True

    def locate(self, publication: dict[str, Value]) -> dict[int, tuple[Value, int]]:
        """The values of the publication and their keys, on the dimensions that a subscription uses."""
        located: dict[int, tuple[Value, int]] = {}
        for attribute, value in publication.items():
            number = self._by_type[type(value)].get(attribute)
            if number is not None:
                located[number] = value, key_of(value)
        if self._presence:
            for attribute in publication:
                number = self._presence.get(attribute)
                if number is not None:
                    located[number] = True, PRESENT_KEY
        return located
