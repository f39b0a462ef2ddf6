"""The multicasting layer: messages to destinations, along shortest paths [THESIS 4.2, Algorithm 2].

All messages with destinations travel in the same way. A broker groups the destinations by next hop, and sends one copy
to each next hop with its destinations. Neither the order of links nor the content matters, so the layer above does not
depend on changes of the overlay.

Departs from [THESIS Algorithm 2]: line 16 removes the broker's own id where a client's is meant. Here the layer above
serves clients, and a broker that is among the destinations removes itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from routing.link_state import LinkStateTable
from routing.messages import (
    Announce,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    Publish,
    Routed,
    Settled,
    Update,
    UpdateAcknowledged,
)
from routing.shortest_paths import Route, TopologyTable

MOST_STATES = 500
"""The limit of link states in one message, so that it fits into a frame everywhere."""

MOST_DESTINATIONS = 4096
"""The limit of destinations in one message. A longer list is split into several messages."""

Sends = list[tuple[str, Message]]
R = TypeVar("R", bound=Routed)


class MulticastLayer:
    """One broker's links in one domain, the link states of the other brokers, and the route to each."""

    def __init__(
        self, me: str, incarnation: int, domain: str, clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        self.me = me
        self.domain = domain
        self.sends: Sends = []
        self.unroutable = 0
        """The number of destinations that a message named and that have no route."""
        self.out_of_hops = 0
        self.losses = 0
        """How often another broker announced fewer links than before, or restarted."""
        self._link_states = LinkStateTable()
        self._routes: Mapping[str, Route] | None = None
        """The routes from this broker; None after a link state changed."""
        self._neighbours: dict[str, int] = {}
        self._own = LinkState(me, incarnation, 0, domain, (), clusters, address)
        self._add_state(self._own)

    @property
    def topology(self) -> TopologyTable:
        return self._link_states.topology

    @property
    def digest(self) -> bytes:
        return self._link_states.digest

    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted(self._neighbours))

    def state_of(self, broker: str) -> LinkState | None:
        return self._link_states.get(broker)

    def states(self) -> tuple[LinkState, ...]:
        return self._link_states.states()

    def address_of(self, broker: str) -> str:
        state = self._link_states.get(broker)
        return state.address if state is not None else ""

    def is_reachable(self, broker: str) -> bool:
        return broker == self.me or broker in (self._routes or self._find_routes())

    def _find_routes(self) -> Mapping[str, Route]:
        self._routes = self._link_states.topology.routes_from(self.me)
        return self._routes

    def _add_state(self, state: LinkState) -> bool:
        """Stores a link state if it is newer than the known one. Returns False if it is not."""
        self._routes = None
        return self._link_states.add_if_newer(state)

    @property
    def is_connected(self) -> bool:
        """Whether every broker of the domain that has not left is reachable."""
        present = sum(not state.has_left for state in self._link_states.states())
        return len(self.topology.routes_from(self.me)) == present - 1

    def load_link_states(self, states: Sequence[LinkState]) -> None:
        """Loads the link states of all brokers, including this one, from a configuration, so that a start needs no
        flood."""
        for state in states:
            self._add_state(state)
            if state.broker == self.me:
                self._own = state
                self._neighbours = {neighbour.broker: neighbour.cost for neighbour in state.neighbours}

    def neighbour_up(self, peer: str, cost: int = 1, knows: bytes = b"") -> None:
        """Adds a link. Both ends announce it to all brokers, and exchange their link states unless the digests are
        equal."""
        is_agreed = knows == self.digest
        if self._neighbours.get(peer) != cost:
            self._neighbours[peer] = cost
            if is_agreed and self.is_reachable(peer):
                self._multicast_own(self._with_neighbours())
            else:
                self._flood_own(self._with_neighbours())
        if not is_agreed:
            self._send_states(peer, self._link_states.states())

    def neighbour_lost(self, peer: str) -> None:
        """Removes a link. A failure is flooded, because other links may have failed too. A link that both ends agreed
        to close is multicast."""
        if self._neighbours.pop(peer, None) is None:
            return
        known = self._link_states.get(peer)
        was_given_up = known is not None and all(neighbour.broker != self.me for neighbour in known.neighbours)
        if was_given_up:
            self._multicast_own(self._with_neighbours())
        else:
            self._flood_own(self._with_neighbours())

    def withdraw_link(self, peer: str) -> None:
        """Announces that the link to the peer will close, so that no broker sends over it any more."""
        if self._neighbours.pop(peer, None) is not None:
            self._multicast_own(self._with_neighbours())

    def leave(self) -> None:
        farewell = replace(self._own, sequence=self._own.sequence + 1, neighbours=(), has_left=True)
        self.send(self._announcement(farewell))
        self._set_own(farewell)

    def _with_neighbours(self) -> LinkState:
        neighbours = tuple(Neighbour(peer, cost) for peer, cost in sorted(self._neighbours.items()))
        return replace(self._own, sequence=self._own.sequence + 1, neighbours=neighbours)

    def _set_own(self, own: LinkState) -> None:
        self._own = own
        self._add_state(own)

    def _flood_own(self, own: LinkState) -> None:
        self._set_own(own)
        self._flood([own], excluded=None)

    def _multicast_own(self, own: LinkState) -> None:
        self._set_own(own)
        self.send(self._announcement(own))

    def _announcement(self, own: LinkState) -> Announce:
        return Announce(self.me, self.domain, tuple(sorted(self.topology.routes_from(self.me))), own)

    def receive_announcement(self, message: Announce) -> bool:
        """Stores a link state and passes it on, along routes that include it. Returns True if it was new."""
        is_newer = message.state.domain == self.domain and self._add_if_newer(message.state)
        self.pass_on(message)
        return is_newer

    def receive_states(self, states: Sequence[LinkState], peer: str) -> bool:
        """Stores and passes on new link states, and sends the peer those that it lacks. Returns True if any was new."""
        newer = [state for state in states if self._add_if_newer(state)]
        self._flood(newer, excluded=peer)
        own = [self._link_states.get(state.broker) for state in states]
        lacking = [
            mine for mine, known in zip(own, states, strict=True) if mine is not None and known.version < mine.version
        ]
        self._send_states(peer, lacking)
        return bool(newer)

    def _add_if_newer(self, state: LinkState) -> bool:
        if state.broker == self.me:
            self._supersede_earlier_own(state)
            return False
        before = self._link_states.get(state.broker)
        is_newer = self._add_state(state)
        if is_newer and before is not None:
            is_loss = not set(before.neighbours) <= set(state.neighbours)
            self.losses += is_loss or before.incarnation != state.incarnation
        return is_newer

    def _supersede_earlier_own(self, state: LinkState) -> None:
        """Floods a newer own link state if another broker has one that this incarnation did not send."""
        if state.version > self._own.version and state.incarnation == self._own.incarnation:
            self._own = replace(self._own, sequence=state.sequence)
            self._flood_own(self._with_neighbours())

    def send_states_if_different(self, digest: bytes, peer: str) -> None:
        """Sends the neighbour all link states if its digest differs. The neighbour does the same."""
        if digest != self.digest and peer in self._neighbours:
            self._send_states(peer, self._link_states.states())

    def _send_states(self, peer: str, states: Sequence[LinkState]) -> None:
        for start in range(0, len(states), MOST_STATES):
            self.sends.append((peer, LinkStates(tuple(states[start : start + MOST_STATES]))))

    def _flood(self, states: list[LinkState], excluded: str | None) -> None:
        for peer in self.neighbours():
            if peer != excluded:
                self._send_states(peer, states)

    def send(self, message: Routed) -> None:
        """Sends one copy to each next hop, with the destinations behind it."""
        for next_hop, destinations in self._group_by_next_hop(destinations_of(message)):
            for start in range(0, len(destinations), MOST_DESTINATIONS):
                some = destinations[start : start + MOST_DESTINATIONS]
                self.sends.append((next_hop, narrowed(message, some)))

    def pass_on(self, message: Routed) -> bool:
        """Passes an arrived message on to its other destinations. Returns True if this broker is a destination too."""
        destinations = destinations_of(message)
        is_for_me = self.me in destinations
        others = [each for each in destinations if each != self.me] if is_for_me else destinations
        if others and message.hop_limit <= 1:
            self.out_of_hops += len(others)
        elif others:
            for next_hop, behind in self._group_by_next_hop(others):
                self.sends.append((next_hop, _one_hop_further(message, behind)))
        return is_for_me

    def _group_by_next_hop(self, destinations: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
        """Returns the destinations behind each next hop, in ascending order of next hops."""
        routes = self._routes or self._find_routes()
        if len(destinations) == 1 and destinations[0] in routes:
            return [(routes[destinations[0]].next_hop, destinations)]
        groups: dict[str, list[str]] = {}
        for destination in destinations:
            route = routes.get(destination)
            if route is None:
                self.unroutable += 1
            else:
                groups.setdefault(route.next_hop, []).append(destination)
        return sorted(groups.items())


def destinations_of(message: Routed) -> tuple[str, ...]:
    """The brokers that the message names as receivers, each once."""
    if not isinstance(message, Publish):
        return message.destinations
    if not message.transit or message.local == message.transit:
        return message.local
    return tuple(sorted({*message.local, *message.transit})) if message.local else message.transit


def forwarded(message: Publish, local: tuple[str, ...], transit: tuple[str, ...], further: int) -> Publish:
    """Returns the publication for these destinations, `further` hops on. Brokers between source and destination call
    this for every publication. For speed a publication is a tuple, and each field is copied explicitly."""
    return Publish(
        message.id,
        message.source,
        message.domain,
        local,
        transit,
        message.attributes,
        message.payload,
        message.crossed,
        message.tree,
        message.hops + further,
        message.expires,
        message.hop_limit - further,
        message.is_traced,
        message.once,
    )


def narrowed(message: R, destinations: Sequence[str]) -> R:
    """Returns the message for some of its destinations."""
    if len(destinations) == len(destinations_of(message)):
        return message
    if isinstance(message, Publish):
        return _publish_for(message, destinations, further=0)  # type: ignore[return-value]
    if isinstance(message, Update):
        chosen = set(destinations)
        return replace(message, turns=tuple(turn for turn in message.turns if turn.destination in chosen))
    return replace(message, destinations=tuple(destinations))


def _one_hop_further(message: R, destinations: Sequence[str]) -> R:
    """Returns the message for some of its destinations, one hop further."""
    if isinstance(message, Publish):
        return _publish_for(message, destinations, further=1)  # type: ignore[return-value]
    if isinstance(message, Settled):
        remaining = message.hop_limit - 1
        to = tuple(destinations)
        return Settled(message.source, message.domain, to, message.publications, remaining, message.duties)  # type: ignore[return-value]
    if isinstance(message, UpdateAcknowledged):
        return _acknowledgement_for(message, tuple(destinations))  # type: ignore[return-value]
    return replace(narrowed(message, destinations), hop_limit=message.hop_limit - 1)


def _acknowledgement_for(message: UpdateAcknowledged, destinations: tuple[str, ...]) -> UpdateAcknowledged:
    return UpdateAcknowledged(
        message.source,
        message.incarnation,
        message.domain,
        destinations,
        message.destination_incarnation,
        message.epoch,
        message.sequence,
        message.hop_limit - 1,
        message.is_inquiry,
    )


def _publish_for(message: Publish, destinations: Sequence[str], further: int) -> Publish:
    if len(destinations) == len(destinations_of(message)):
        return forwarded(message, message.local, message.transit, further)
    chosen = set(destinations)
    local = tuple([each for each in message.local if each in chosen])
    transit = tuple([each for each in message.transit if each in chosen])
    return forwarded(message, local, transit, further)
