"""Converts messages to arrays of plain values and back: a pair of functions for each kind of message.

Reading trusts nothing. It checks the shape first, then the limits, then names that must be distinct. It does not
interpret texts: an expression is parsed where it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.wire.limits import Limits, WireError
from broker.wire.shapes import (
    OPTIONAL_ARRAY,
    OPTIONAL_INTEGER,
    Packable,
    Shape,
    check_destinations,
    check_distinct,
    check_length,
    check_texts,
    read_optional_entry_id,
    read_publication_id,
)
from broker.wire.update_fields import read_update, write_update
from routing.messages import (
    Announce,
    Credit,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    ProposalAnswered,
    Propose,
    Publish,
    Resend,
    Settled,
    Update,
    UpdateAcknowledged,
)

_PUBLISH = Shape(
    "the header",
    sequence=OPTIONAL_INTEGER,
    attributes_bytes=int,
    id=tuple,
    source=str,
    domain=str,
    local=tuple,
    transit=tuple,
    crossed=tuple,
    tree=OPTIONAL_ARRAY,
    hops=int,
    expires=OPTIONAL_INTEGER,
    hop_limit=int,
    is_traced=bool,
)


def write_publish(message: Publish, sequence: int | None) -> Packable:
    return (
        sequence,
        len(message.attributes),
        message.id,
        message.source,
        message.domain,
        message.local,
        message.transit,
        message.crossed,
        message.tree,
        message.hops,
        message.expires,
        message.hop_limit,
        message.is_traced,
    )


def read_publish(fields: object, frame: bytes, body: int, limits: Limits) -> tuple[Publish, int | None]:
    """`body` is the offset of the attributes. The attributes and the payload are unchanged slices of the frame."""
    sequence, attributes, id, source, domain, local, transit, crossed, *rest = _PUBLISH.check(fields, "Publish")
    tree, hops, expires, hop_limit, is_traced = rest
    payload = body + attributes
    if payload > len(frame):
        raise WireError(f"Publish: {attributes} bytes of attributes are announced, {len(frame) - body} bytes are left")
    message = Publish(
        read_publication_id(id, "Publish"),
        source,
        domain,
        check_destinations(local, "Publish", "local", limits),
        check_destinations(transit, "Publish", "transit", limits),
        frame[body:payload],
        frame[payload:],
        check_texts(crossed, "Publish", "crossed", "items", limits.items),
        read_optional_entry_id(tree, "Publish"),
        hops,
        expires,
        hop_limit,
        is_traced,
    )
    return message, sequence


_UPDATE_ACKNOWLEDGED = Shape(
    "the header",
    source=str,
    incarnation=int,
    domain=str,
    destinations=tuple,
    heard=int,
    epoch=int,
    sequence=int,
    hop_limit=int,
    is_inquiry=bool,
)


def _write_update_acknowledged(message: UpdateAcknowledged) -> Packable:
    return (
        message.source,
        message.incarnation,
        message.domain,
        message.destinations,
        message.heard,
        message.epoch,
        message.sequence,
        message.hop_limit,
        message.is_inquiry,
    )


def _read_update_acknowledged(fields: object, limits: Limits) -> UpdateAcknowledged:
    kind = "UpdateAcknowledged"
    source, incarnation, domain, to, *rest = _UPDATE_ACKNOWLEDGED.check(fields, kind)
    return UpdateAcknowledged(source, incarnation, domain, check_destinations(to, kind, "destinations", limits), *rest)


_RESEND = Shape("the header", source=str, incarnation=int, domain=str, destinations=tuple, epoch=int, hop_limit=int)


def _write_resend(message: Resend) -> Packable:
    return (
        message.source,
        message.incarnation,
        message.domain,
        message.destinations,
        message.epoch,
        message.hop_limit,
    )


def _read_resend(fields: object, limits: Limits) -> Resend:
    source, incarnation, domain, to, epoch, hop_limit = _RESEND.check(fields, "Resend")
    destinations = check_destinations(to, "Resend", "destinations", limits)
    return Resend(source, incarnation, domain, destinations, epoch, hop_limit)


_SETTLED = Shape(
    "the header", source=str, domain=str, destinations=tuple, publications=tuple, hop_limit=int, duties=int
)


def _write_settled(message: Settled) -> Packable:
    return (
        message.source,
        message.domain,
        message.destinations,
        message.publications,
        message.hop_limit,
        message.duties,
    )


def _read_settled(fields: object, limits: Limits) -> Settled:
    source, domain, to, publications, hop_limit, duties = _SETTLED.check(fields, "Settled")
    destinations = check_destinations(to, "Settled", "destinations", limits)
    check_length(publications, "Settled", "publications", "items", limits.items)
    settled = tuple(read_publication_id(each, "Settled") for each in publications)
    return Settled(source, domain, destinations, settled, hop_limit, duties)


_LINK_STATES = Shape("the header", states=tuple)
_LINK_STATE = Shape(
    "a link state",
    broker=str,
    incarnation=int,
    sequence=int,
    domain=str,
    neighbours=tuple,
    clusters=tuple,
    address=str,
    has_left=bool,
)
_NEIGHBOUR = Shape("a neighbour", broker=str, cost=int)


def _write_link_states(message: LinkStates) -> Packable:
    return (tuple(map(_write_link_state, message.states)),)


def _write_link_state(state: LinkState) -> Packable:
    return (
        state.broker,
        state.incarnation,
        state.sequence,
        state.domain,
        state.neighbours,
        state.clusters,
        state.address,
        state.has_left,
    )


def _read_link_states(fields: object, limits: Limits) -> LinkStates:
    (states,) = _LINK_STATES.check(fields, "LinkStates")
    check_length(states, "LinkStates", "states", "items", limits.items)
    return LinkStates(tuple(_read_link_state(state, "LinkStates", limits) for state in states))


def _read_link_state(value: object, kind: str, limits: Limits) -> LinkState:
    broker, incarnation, sequence, domain, links, clusters, address, has_left = _LINK_STATE.check(value, kind)
    check_length(links, kind, "neighbours", "items", limits.items)
    neighbours = tuple(Neighbour._make(_NEIGHBOUR.check(each, kind)) for each in links)
    check_distinct([neighbour.broker for neighbour in neighbours], kind, "neighbours")
    clusters = check_texts(clusters, kind, "clusters", "items", limits.items)
    return LinkState(broker, incarnation, sequence, domain, neighbours, clusters, address, has_left)


_HEARTBEAT = Shape("the header", incarnation=int, clusters=tuple, known=tuple)
_KNOWN = Shape("what is known of a domain", domain=str, digest=bytes)


def _write_heartbeat(message: Heartbeat) -> Packable:
    return (message.incarnation, message.clusters, message.known)


def _read_heartbeat(fields: object, limits: Limits) -> Heartbeat:
    incarnation, clusters, digests = _HEARTBEAT.check(fields, "Heartbeat")
    check_length(digests, "Heartbeat", "known", "items", limits.items)
    known = tuple((domain, digest) for domain, digest in (_KNOWN.check(each, "Heartbeat") for each in digests))
    check_distinct([domain for domain, _ in known], "Heartbeat", "known")
    return Heartbeat(incarnation, check_texts(clusters, "Heartbeat", "clusters", "items", limits.items), known)


_CREDIT = Shape("the header", taken=int)


def _write_credit(message: Credit) -> Packable:
    return (message.taken,)


def _read_credit(fields: object, _limits: Limits) -> Credit:
    (taken,) = _CREDIT.check(fields, "Credit")
    return Credit(taken)


_PROPOSE = Shape(
    "the header",
    source=str,
    domain=str,
    destinations=tuple,
    gain=float,
    minimal_loss=float,
    address=str,
    hop_limit=int,
)


def _write_propose(message: Propose) -> Packable:
    return (
        message.source,
        message.domain,
        message.destinations,
        float(message.gain),
        float(message.minimal_loss),
        message.address,
        message.hop_limit,
    )


def _read_propose(fields: object, limits: Limits) -> Propose:
    source, domain, to, gain, minimal_loss, address, hop_limit = _PROPOSE.check(fields, "Propose")
    destinations = check_destinations(to, "Propose", "destinations", limits)
    return Propose(source, domain, destinations, gain, minimal_loss, address, hop_limit)


_PROPOSAL_ANSWERED = Shape(
    "the header", source=str, domain=str, destinations=tuple, accepted=bool, address=str, hop_limit=int
)


def _write_proposal_answered(message: ProposalAnswered) -> Packable:
    return (
        message.source,
        message.domain,
        message.destinations,
        message.accepted,
        message.address,
        message.hop_limit,
    )


def _read_proposal_answered(fields: object, limits: Limits) -> ProposalAnswered:
    kind = "ProposalAnswered"
    source, domain, to, accepted, address, hop_limit = _PROPOSAL_ANSWERED.check(fields, kind)
    return ProposalAnswered(
        source, domain, check_destinations(to, kind, "destinations", limits), accepted, address, hop_limit
    )


_ANNOUNCE = Shape("the header", source=str, domain=str, destinations=tuple, state=tuple, hop_limit=int)


def _write_announce(message: Announce) -> Packable:
    state = _write_link_state(message.state)
    return (message.source, message.domain, message.destinations, state, message.hop_limit)


def _read_announce(fields: object, limits: Limits) -> Announce:
    source, domain, to, state, hop_limit = _ANNOUNCE.check(fields, "Announce")
    destinations = check_destinations(to, "Announce", "destinations", limits)
    return Announce(source, domain, destinations, _read_link_state(state, "Announce", limits), hop_limit)


PUBLISH = 1

CONTROL: dict[int, tuple[type[Message], Callable[[Any], Packable], Callable[[object, Limits], Message]]] = {
    2: (Settled, _write_settled, _read_settled),
    3: (Credit, _write_credit, _read_credit),
    4: (Heartbeat, _write_heartbeat, _read_heartbeat),
    5: (LinkStates, _write_link_states, _read_link_states),
    6: (Update, write_update, read_update),
    7: (UpdateAcknowledged, _write_update_acknowledged, _read_update_acknowledged),
    8: (Resend, _write_resend, _read_resend),
    9: (Propose, _write_propose, _read_propose),
    10: (ProposalAnswered, _write_proposal_answered, _read_proposal_answered),
    11: (Announce, _write_announce, _read_announce),
}
"""All kinds of messages except publications, which alone have a body and a number on their link."""

NAMES = {PUBLISH: Publish.__name__, **{kind: message.__name__ for kind, (message, _, _) in CONTROL.items()}}
WRITERS = {message: (kind, write) for kind, (message, write, _) in CONTROL.items()}
