"""A durable broker without neighbours, whose store commits when the test calls `write`.

As in the real store, all changes since the last commit are one transaction. The commit is reported later, and the
broker handles inputs meanwhile.
"""

from __future__ import annotations

import msgpack

from broker.core.broker import Broker
from broker.core.effects import Accept, Deliver, Effect, Forget, Greet, Persist, Refuse
from broker.core.inputs import ClientConnected, Input, Persisted, Published, Restored
from broker.core.settings import Settings
from routing.registry import create

Key = tuple[str, ...]


class SlowPlace:
    """A core, the changes that wait for its store, and a disk that survives crashes."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings(is_durable=True)
        self.disk: dict[Key, object] = {}
        self.now = 0
        self.incarnation = 0
        self.start()

    def start(self) -> None:
        """Starts the broker, also after a crash, with the committed records only."""
        self.incarnation += 1
        self.broker = Broker(
            create("d-dbr", "b1", self.incarnation), "b1", self.incarnation, self.settings, has_lived=False
        )
        self._changes: list[Persist | Forget] = []
        self._written: list[Persist | Forget] | None = None
        self.effects: list[Effect] = []
        """Effects since the last `settle`."""
        if self.disk:
            self.handle(Restored(dict(self.disk)))

    def handle(self, happened: Input) -> list[Effect]:
        self.now += 1
        effects = self.broker.handle(happened, self.now)
        self._changes += [each for each in effects if isinstance(each, Persist | Forget)]
        self.effects += effects
        return effects

    def write(self) -> None:
        """Commits a transaction and does not report it to the broker."""
        assert self._written is None
        self._written, self._changes = self._changes, []
        for change in self._written:
            if isinstance(change, Persist):
                self.disk[change.key] = change.record
            else:
                self.disk.pop(change.key, None)

    def report(self) -> None:
        """Reports the committed transaction to the broker."""
        written, self._written = self._written or [], None
        for key in dict.fromkeys(each.key for each in written if isinstance(each, Persist)):
            self.handle(Persisted(key))

    @property
    def is_written(self) -> bool:
        """Whether a committed transaction is not reported yet."""
        return self._written is not None

    def commit(self) -> None:
        self.write()
        self.report()

    def settle(self) -> list[Effect]:
        """Commits until no change is left. Returns all effects since the last call."""
        self.report()
        while self._changes:
            self.commit()
        effects, self.effects = self.effects, []
        return effects

    def connect(self, name: str = "c", session: str = "s", **options: object) -> Greet:
        kept: dict[str, object] = {"is_reliable": True, "keep": None, **options}
        effects = self.handle(ClientConnected(name, session, **kept))  # type: ignore[arg-type]
        (greeting,) = [each for each in effects if isinstance(each, Greet)]
        return greeting

    def publish(self, n: int, client: str = "p", reference: int = 1) -> list[Effect]:
        return self.handle(Published(client, reference, msgpack.packb({"n": n})))

    def stored(self, client: str) -> list[Key]:
        """The keys of the client's session on the disk."""
        return [key for key in self.disk if key[0] not in ("publication", "arrival") and key[1] == client]


def answers(effects: list[Effect], client: str) -> list[tuple[bool, int | str]]:
    """The client's answered requests: whether each was accepted, and its reference."""
    return [
        (isinstance(each, Accept), each.reference)
        for each in effects
        if isinstance(each, Accept | Refuse) and each.client == client
    ]


def delivered(effects: list[Effect], client: str) -> list[int]:
    return [
        msgpack.unpackb(each.attributes)["n"] for each in effects if isinstance(each, Deliver) and each.client == client
    ]
