"""What became of a session's publications, by the client's references, which count from 1 on.

A client whose connection broke does not know which of its last publications were accepted. Told here, it takes those
for accepted, and sends all others again: what was refused is judged again, what is being stored is recognised, and what
never came is new. So nothing is published twice, and nothing counts as accepted that was not.

A client sends no more than a window of publications without an answer, on each connection in the order of their
references, and hears answers in the order in which they were given. So of refusals it may have missed the last ones,
and none after which it has sent a window of others on the same connection.
"""

from __future__ import annotations

MOST_REFUSED = 8_192
"""What a greeting has room for, however large the window."""


class PublishLedger:
    __slots__ = ("_being_stored", "_highest", "_refused", "_window")

    def __init__(self, window: int, record: object = 0) -> None:
        """`record` is what the store had of an earlier life of the broker."""
        self._window = min(window, MOST_REFUSED)
        self._being_stored: dict[int, None] = {}
        highest, refused = record if isinstance(record, tuple) else (record, ())
        assert isinstance(highest, int)
        self._highest = highest
        self._refused: dict[int, int] = dict.fromkeys(refused, highest)
        """Refused, or never seen here, with the highest reference at that time; those that may be missed come last."""

    def is_new(self, reference: int) -> bool:
        """Is it neither accepted nor being stored?"""
        return reference > self._highest or reference in self._refused

    def begin_store(self, reference: int) -> None:
        self._reach(reference)
        self._refused.pop(reference, None)
        self._being_stored[reference] = None

    def accept(self, reference: int) -> None:
        if reference > self._highest or self._refused:
            self._reach(reference)
            self._refused.pop(reference, None)
        self._being_stored.pop(reference, None)

    def refuse(self, reference: int) -> None:
        self._reach(reference)
        self._refused.pop(reference, None)
        self._refused[reference] = self._highest
        self._forget_heard()

    def _reach(self, reference: int) -> None:
        before = self._highest
        if reference <= before:
            return
        self._highest = reference
        if reference > before + 1:
            # A driver refuses some before they come here.
            for missing in range(max(before + 1, reference - self._window), reference):
                self._refused[missing] = reference
        if self._refused:
            self._forget_heard()

    def _forget_heard(self) -> None:
        while self._refused:
            oldest = next(iter(self._refused))
            if len(self._refused) <= self._window and self._refused[oldest] > self._highest - self._window:
                break
            del self._refused[oldest]

    def resume(self) -> tuple[int, tuple[int, ...]]:
        """For a client that connects again: the last one that was accepted, and those before it that were not."""
        # What it missed comes again before anything new does, and may be refused again, here or by the driver.
        self._refused = dict.fromkeys(sorted(self._refused), self._highest)
        missing = sorted({**self._refused, **self._being_stored})
        taken = self._highest
        while missing and missing[-1] == taken:
            missing.pop()
            taken -= 1
        return taken, tuple(missing)

    def to_record(self) -> object:
        """What is stored together with a publication: that one and all before it are stored then."""
        return (self._highest, tuple(self._refused)) if self._refused else self._highest
