"""The common part of D-DBR and MERC: local tables, domains, and the handling of messages [THESIS 4.1, Algorithm 1].

A broker is in one domain or, as an edge broker, in several. Algorithm 1 calls Forward, which does nothing in D-DBR.
Here `_entries_changed` and `_onward` replace it, and MERC overrides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matching.expressions.model import TRUE, Expression
from routing.domain import Domain
from routing.messages import (
    GAP,
    Advertise,
    Announce,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    ProposalAnswered,
    Propose,
    Publish,
    Routed,
    Settled,
    Subscribe,
)
from routing.multicast import MulticastLayer, destinations_of
from routing.reorganisation import CloseLink, OpenLink, Reorganisation
from routing.router import (
    ANY_NUMBER,
    Counts,
    ForwardingLeg,
    LearnedSubscription,
    RouterOutput,
    RouterSettings,
    RoutingDecision,
    UnknownInterest,
)
from routing.silence import Silence
from routing.tables import LocalAdvertisements, LocalSubscriptions, TableWork, region_of, work_of


class DestinationBased:
    name: str

    def __init__(self, me: str, incarnation: int, matcher: str, clusters: tuple[str, ...], address: str = "") -> None:
        self.me = me
        self._incarnation = incarnation
        self._clusters = clusters
        self._local_advertisements = LocalAdvertisements()
        self._local_subscriptions = LocalSubscriptions(matcher)
        self._learned_subscriptions: list[LearnedSubscription] = []
        self._domains = {
            name: Domain(
                MulticastLayer(me, incarnation, name, clusters, address),
                incarnation,
                matcher,
                self._learned_subscriptions,
            )
            for name in sorted(clusters)
        }
        self._settings = RouterSettings()
        self._reorganisations: dict[str, Reorganisation] = {}
        self._expected: dict[str, None] = {}
        """Neighbours that a configuration names and of which no domain has a link state yet."""
        self._neighbour_silence: Silence[str] = Silence()
        self._has_pending_link_states = False
        """Whether link states arrived that the matching layer has not applied. A failure produces hundreds of them at
        once, so they are applied together: before the next query, or when the broker calls `apply_link_states`."""

    @property
    def settings(self) -> RouterSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: RouterSettings) -> None:
        self._settings = settings
        for domain in self._domains.values():
            domain.settings = settings

    def apply_link_states(self) -> None:
        if self._has_pending_link_states:
            self._has_pending_link_states = False
            for domain in self._domains.values():
                domain.topology_changed()
            self._topology_changed()

    def load_link_states(self, states: tuple[LinkState, ...]) -> None:
        for name, domain in self._domains.items():
            domain.multicast.load_link_states([state for state in states if state.domain == name])
            domain.topology_changed()
        self._topology_changed()

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int = 1) -> None:
        """Adds a link in every domain that both ends are in."""
        known = dict(greeting.known)
        for name in self._domains:
            if name in greeting.clusters:
                self._domains[name].multicast.neighbour_up(peer, cost, known.get(name, b""))
                self._domains[name].topology_changed()
                if name in self._reorganisations:
                    self._reorganisations[name].neighbour_up(peer)
        self._topology_changed()

    def neighbour_lost(self, peer: str) -> None:
        for domain in self._domains.values():
            domain.multicast.neighbour_lost(peer)
            domain.topology_changed()
        self._topology_changed()

    def neighbour_left(self, peer: str) -> None:
        """Does nothing: the neighbour's link state says that it has left."""

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_advertisements.insert(entry, client, expression)
        for domain in self._domains.values():
            domain.export_advertisement(Advertise(entry, str(expression)))

    def deactivate_advertisement(self, entry: EntryId) -> None:
        self._local_advertisements.remove(entry)

    def unadvertise(self, entry: EntryId) -> None:
        for domain in self._domains.values():
            domain.withdraw_advertisement(entry)

    def subscribe(self, entry: EntryId, client: str, expression: Expression, since: int = 0) -> None:
        self._local_subscriptions.insert(entry, client, expression)
        text, region = str(expression), region_of(expression)
        for domain in self._domains.values():
            domain.export_subscription(Subscribe(entry, text, since=since), region)

    def unsubscribe(self, entry: EntryId) -> None:
        self._local_subscriptions.remove(entry)
        for domain in self._domains.values():
            domain.withdraw_subscription(entry)

    def match_own(self, client: str, attributes: bytes) -> RoutingDecision | None:
        self.apply_link_states()
        advertisement = self._local_advertisements.find_permitting(client, attributes)
        if advertisement is None:
            return None
        report, clients = self._local_subscriptions.match(attributes)
        legs, work = self._legs(attributes, self._domains, self._served_clusters())
        return RoutingDecision(clients, legs, (work_of("L-PRT", report), *work), advertisement=advertisement)

    def match_arrived(self, publication: Publish, peer: str) -> RoutingDecision:
        clients: Mapping[str, tuple[EntryId, ...]] = {}
        work: tuple[TableWork, ...] = ()
        if self.me in publication.local:
            report, clients = self._local_subscriptions.match(publication.attributes)
            work = (work_of("L-PRT", report),)
        legs: tuple[ForwardingLeg, ...] = ()
        if self.me in publication.transit:
            self.apply_link_states()
            legs, further = self._onward(publication)
            work += further
        return RoutingDecision(clients, legs, work)

    def current_legs(self, publication: Publish, peer: str | None) -> tuple[ForwardingLeg, ...]:
        self.apply_link_states()
        if peer is not None:
            return self._onward(publication)[0]
        return self._legs(publication.attributes, self._domains, self._served_clusters())[0]

    def unknown_interest(self, publication: Publish, peer: str | None) -> UnknownInterest:
        self.apply_link_states()
        visited = {*publication.crossed, publication.domain} if peer is not None else set()
        crossed = tuple(visited) if peer is not None else self._served_clusters()
        silent = {name: domain.silent_members() for name, domain in self._domains.items()}
        own = {broker: ticks for name in silent if name not in visited for broker, ticks in silent[name].items()}
        if len(self._domains) > 1:
            # A broker in several common domains sends its subscriptions in each of them.
            own = {broker: ticks for broker, ticks in own.items() if not self._is_known_elsewhere(broker, silent)}
        own.update((broker, self._neighbour_silence.ticks(broker, 0)) for broker in self._missing_neighbours())
        behind = {broker: ticks for broker, ticks in own.items() if self._may_pass_on(broker)}
        gaps: dict[str, int] = {}
        for name, domain in self._domains.items():
            if name not in visited:
                gaps.update(domain.gaps(crossed))
        return UnknownInterest(own, behind, gaps)

    def _is_known_elsewhere(self, broker: str, silent: Mapping[str, Mapping[str, int]]) -> bool:
        states = ((name, domain.multicast.state_of(broker)) for name, domain in self._domains.items())
        return any(state is not None and not state.has_left and broker not in silent[name] for name, state in states)

    def _may_pass_on(self, broker: str) -> bool:
        """Whether the broker may be an edge broker."""
        states = [domain.multicast.state_of(broker) for domain in self._domains.values()]
        known = [state for state in states if state is not None]
        return not known or any(len(state.clusters) > 1 for state in known)

    def expect_neighbours(self, peers: tuple[str, ...]) -> None:
        self._expected = dict.fromkeys(peers)

    def _missing_neighbours(self) -> tuple[str, ...]:
        """Returns expected neighbours that are unknown so far. Possibly no other broker knows them, so this one must
        announce the gap."""
        domains = self._domains.values()
        return tuple(
            broker for broker in self._expected if all(domain.multicast.state_of(broker) is None for domain in domains)
        )

    def _announce_gaps(self) -> None:
        """Announces in each domain whether this broker has a gap: brokers behind it whose subscriptions it does not
        know."""
        for name, domain in self._domains.items():
            behind = self._gap_behind(name)
            gap = EntryId(self.me, self._incarnation, GAP)
            if behind is None:
                domain.withdraw_subscription(gap)
            else:
                domain.export_subscription(Subscribe(gap, str(TRUE), behind))

    def _gap_behind(self, target: str) -> tuple[str, ...] | None:
        """Returns the clusters, seen from the target, in which brokers are unreachable. An empty tuple means a gap at
        an unknown place, None means no gap."""
        return () if self._missing_neighbours() else None

    @property
    def is_converging(self) -> bool:
        return any(domain.is_converging for domain in self._domains.values())

    def incarnation_of(self, broker: str) -> int:
        states = (domain.multicast.state_of(broker) for domain in self._domains.values())
        return max((state.incarnation for state in states if state is not None), default=0)

    def members(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple((name, domain.members()) for name, domain in self._domains.items())

    def restore_members(self, domain: str, members: tuple[str, ...]) -> None:
        if domain in self._domains:
            self._domains[domain].restore_members(members)

    def begin_recovery(self) -> None:
        for domain in self._domains.values():
            domain.begin_recovery()

    @property
    def has_all_openings(self) -> bool:
        self.apply_link_states()
        return all(domain.has_all_openings for domain in self._domains.values())

    def end_recovery(self) -> None:
        for domain in self._domains.values():
            domain.end_recovery()

    def _served_clusters(self) -> tuple[str, ...]:
        """Returns the clusters of this broker in which a publication reaches every broker."""
        return self._clusters

    def _onward(self, publication: Publish) -> tuple[tuple[ForwardingLeg, ...], tuple[TableWork, ...]]:
        """Returns the legs into further domains. A broker in one domain has none."""
        return (), ()

    def _legs(
        self, attributes: bytes, into: Iterable[str], crossed: tuple[str, ...]
    ) -> tuple[tuple[ForwardingLeg, ...], tuple[TableWork, ...]]:
        """Returns a leg for each domain. A broker in several domains is served in the first one in which it is
        reachable."""
        legs: list[ForwardingLeg] = []
        work: list[TableWork] = []
        served: set[str] = set()
        for name in into:
            domain = self._domains[name]
            reports, local, transit = domain.subscriptions.match(attributes, crossed)
            work += [work_of(f"R-PRT {name}".rstrip(), report) for report in reports]
            chosen = [each for each in dict.fromkeys((*local, *transit)) if each not in served]
            chosen = [each for each in chosen if self._is_best_in(name, each)]
            served.update(chosen)
            if chosen:
                mine = set(chosen)
                local = tuple(each for each in local if each in mine)
                transit = tuple(each for each in transit if each in mine)
                legs.append(ForwardingLeg(name, local, transit, crossed))
        return tuple(legs), tuple(work)

    def _is_best_in(self, domain: str, broker: str) -> bool:
        """Whether to serve a broker in this domain: it is reachable here, or in no common domain."""
        if self.is_reachable(domain, broker):
            return True
        return not any(self.is_reachable(other, broker) for other in self._domains if other != domain)

    def is_valid(self, leg: ForwardingLeg) -> bool:
        """Whether the leg's domain exists. Destinations stay valid, because brokers keep their ids."""
        return leg.domain in self._domains

    def send(self, message: Routed) -> None:
        self._domains[message.domain].multicast.send(message)
        if message.domain in self._reorganisations:
            for destination in destinations_of(message):
                self._reorganisations[message.domain].count(destination)

    def receive(self, message: Message, peer: str) -> Message | None:
        if isinstance(message, Publish):
            return self._receive_publication(message)
        if isinstance(message, Heartbeat):
            self._compare_digests(message, peer)
            return None
        if isinstance(message, LinkStates):
            self._receive_states(message, peer)
            return None
        if isinstance(message, Credit):
            return message
        domain = self._domains.get(message.domain)
        if domain is None:
            return None
        if isinstance(message, Announce):
            self._receive_announcement(message, domain)
            return None
        if not domain.multicast.pass_on(message):
            return None
        reorganisation = self._reorganisations.get(message.domain)
        if isinstance(message, Propose | ProposalAnswered):
            self._receive_proposal(message, reorganisation)
            return None
        if reorganisation is not None:
            reorganisation.count(message.source)
        self.apply_link_states()
        if not isinstance(message, Settled):
            domain.receive(message)
        self._pass_on_changed_entries()
        return message

    def _receive_publication(self, message: Publish) -> Publish | None:
        domain = self._domains.get(message.domain)
        if domain is None or not domain.multicast.pass_on(message):
            return None
        if self._reorganisations:
            self._reorganisations[message.domain].count(message.source)
        return message

    def _receive_proposal(self, message: Propose | ProposalAnswered, reorganisation: Reorganisation | None) -> None:
        if reorganisation is not None:
            reorganisation.receive(message)
        elif isinstance(message, Propose):
            answer = ProposalAnswered(self.me, message.domain, (message.source,), accepted=False)
            self._domains[message.domain].multicast.send(answer)

    def _compare_digests(self, heartbeat: Heartbeat, peer: str) -> None:
        for name, digest in heartbeat.known:
            if name in self._domains:
                self._domains[name].multicast.send_states_if_different(digest, peer)

    def _receive_states(self, message: LinkStates, peer: str) -> None:
        for name, domain in self._domains.items():
            states = [state for state in message.states if state.domain == name]
            if states and domain.multicast.receive_states(states, peer):
                self._has_pending_link_states = True

    def _receive_announcement(self, message: Announce, domain: Domain) -> None:
        if domain.multicast.receive_announcement(message):
            self._has_pending_link_states = True

    def _topology_changed(self) -> None:
        for reorganisation in self._reorganisations.values():
            reorganisation.topology_changed()
        self._pass_on_changed_entries()
        self._announce_gaps()

    def _pass_on_changed_entries(self) -> None:
        changed = [entry for domain in self._domains.values() for entry in domain.changed_entries]
        for domain in self._domains.values():
            domain.changed_entries.clear()
        if changed:
            self._entries_changed(list(dict.fromkeys(changed)))

    def _entries_changed(self, entries: list[EntryId]) -> None:
        """Called when entries of other brokers were added, withdrawn or changed their path."""

    def tick(self) -> None:
        self.apply_link_states()
        for domain in self._domains.values():
            domain.tick(self.settings.detection_ticks)
        for reorganisation in self._reorganisations.values():
            reorganisation.tick()
        self._neighbour_silence.tick(dict.fromkeys(self._missing_neighbours(), 0))
        self._announce_gaps()

    def idle_ticks(self) -> int:
        return min((domain.idle_ticks() for domain in self._domains.values()), default=ANY_NUMBER)

    def skip_ticks(self, count: int) -> None:
        for domain in self._domains.values():
            domain.skip_ticks(count, self.settings.detection_ticks)
        self._neighbour_silence.skip_ticks(count)

    def greeting(self) -> Heartbeat:
        known = tuple((name, domain.multicast.digest) for name, domain in self._domains.items())
        return Heartbeat(self._incarnation, self._clusters, known)

    def is_reachable(self, domain: str, broker: str) -> bool:
        return domain in self._domains and self._domains[domain].multicast.is_reachable(broker)

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        return None

    def leave(self) -> None:
        for domain in self._domains.values():
            domain.multicast.leave()

    def drain(self) -> RouterOutput:
        messages: list[tuple[str, Message]] = []
        losses = 0
        for domain in self._domains.values():
            if domain.update_sender.unflushed:
                domain.flush()
            losses += domain.multicast.losses
            if domain.multicast.sends:
                messages += domain.multicast.sends
                domain.multicast.sends = []
        learned: Sequence[LearnedSubscription] = ()
        if self._learned_subscriptions:
            learned = self._learned_subscriptions[:]
            self._learned_subscriptions.clear()
        requests = self._drain_link_requests() if self._reorganisations else ()
        return RouterOutput(messages, requests, learned, losses, self._has_pending_link_states)

    def enable_reorganisation(self, most_links: int) -> None:
        self._reorganisations = {
            name: Reorganisation(domain.multicast, most_links) for name, domain in self._domains.items()
        }

    def reorganise(self) -> None:
        self.apply_link_states()
        for reorganisation in self._reorganisations.values():
            reorganisation.end_cycle()

    def _drain_link_requests(self) -> list[OpenLink | CloseLink]:
        link_requests: list[OpenLink | CloseLink] = []
        for reorganisation in self._reorganisations.values():
            link_requests += reorganisation.link_requests
            reorganisation.link_requests.clear()
        return link_requests

    def counts(self) -> Counts:
        self.apply_link_states()
        domains = self._domains.values()
        return Counts(
            advertisements=len(self._local_advertisements) + sum(len(domain.advertisements) for domain in domains),
            local_subscriptions=len(self._local_subscriptions),
            remote_subscriptions=sum(len(domain.subscriptions) for domain in domains),
            routing_table_bytes=sum(domain.multicast.topology.size_bytes for domain in domains),
            unroutable=sum(domain.multicast.unroutable for domain in domains),
            out_of_hops=sum(domain.multicast.out_of_hops for domain in domains),
            unacknowledged_changes=sum(domain.unacknowledged for domain in domains),
        )
