"""A client's connection: its requests become inputs of the core, and the core's answers become frames.

Publications that the broker cannot accept at present wait here, in order, up to the window in the client's Welcome.
The broker still reads the client's acknowledgements and other requests meanwhile.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from broker.config.overlay_config import OverlayConfig
from broker.core.effects import Accept, Greet, Refuse
from broker.core.inputs import (
    Advertised,
    ClientLeft,
    ClientLost,
    ClientPaused,
    ClientResumed,
    DeliveryAcknowledged,
    Published,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from broker.core.settings import MILLISECOND
from broker.runtime.connection import Connection
from broker.runtime.core_driver import CoreDriver
from broker.runtime.expression_reader import LONGEST_ON_LOOP, ExpressionReader, ReadExpression
from broker.runtime.rights_enforcement import RightsEnforcement
from broker.runtime.violations import Violations
from broker.security.access import NO_RIGHTS, Rights
from broker.security.authentication import PeerCredentials, Security
from broker.wire.client_codec import DeliveryWriter, attribute_count, decode, encode
from broker.wire.client_frames import (
    ONCE,
    Acknowledge,
    Advertise,
    ClientFrame,
    DeliveryMode,
    Goodbye,
    Hello,
    Ping,
    Pong,
    PublicationRefused,
    PublicationsAccepted,
    PublishRequest,
    Reason,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    TraceQuery,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from broker.wire.limits import Limits, WireError
from routing.messages import LARGEST_NUMBER

MAX_ANSWERS_PER_FRAME = 4_000
"""Pairs of a reference and a counter."""


class Sessions(Protocol):
    """The registry that the session is in."""

    waiting_publishers: dict[ClientSession, None]

    def remove(self, session: ClientSession) -> bool: ...


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The parts of the broker that its sessions use."""

    overlay: OverlayConfig
    limits: Limits
    driver: CoreDriver
    clients: Sessions
    rights: RightsEnforcement
    security: Security
    violations: Violations
    reader: ExpressionReader


class ClientSession:
    """The receiver at the broker's end of a client's connection, from its Hello on."""

    def __init__(
        self, context: SessionContext, connection: Connection, hello: Hello, credentials: PeerCredentials
    ) -> None:
        self.name = hello.client
        self.session = hello.session
        self.is_reliable = hello.mode is DeliveryMode.AT_LEAST_ONCE
        self._gives_once_ids = ONCE in hello.capabilities
        """Whether publications without an id receive one: the client may publish them again at another broker."""
        self.window = min(hello.window, context.overlay.delivery.outbox)
        self.connection = connection
        self._credentials = credentials
        self._security = context.security
        self._rights = context.security.authenticator.rights(credentials) or NO_RIGHTS
        self._enforcement = context.rights
        self._driver = context.driver
        self._clients = context.clients
        self._violations = context.violations
        self._reader = context.reader
        self._overlay_limits = context.overlay.limits
        self._limits = context.limits
        self._answers: list[int] = []
        self._is_reset_unconfirmed = False
        """Whether the Welcome requested all entries again, and the client has sent nothing since."""
        self._waiting: deque[PublishRequest] = deque()
        """Publications that wait until the broker accepts publications."""
        self._unanswered = 0
        self._sent_count = 0
        """Deliveries over this connection. The wire numbers them from 1."""
        self._unacknowledged: deque[int] = deque()
        """The core's numbers of the deliveries that the client has not acknowledged, in order."""

    def received(self, frames: list[bytes]) -> None:
        self._is_reset_unconfirmed = False
        connection, last = self.connection, len(frames) - 1
        for index, frame in enumerate(frames):
            content = decode(frame, self._limits)
            if type(content) is PublishRequest:
                self._publish(content)
            elif isinstance(content, Subscribe | Advertise) and len(content.expression) > LONGEST_ON_LOOP:
                connection.hold(frames[index + 1 :])
                self._read_expression(content)
                return
            else:
                self._handle_request(content)
            if connection.is_closing:
                return
            if index < last and connection.budget.is_share_over:
                connection.postpone(frames[index + 1 :])
                return

    def _read_expression(self, request: Subscribe | Advertise) -> None:
        rights = self._rights
        refusal = rights.refusal_to_subscribe if isinstance(request, Subscribe) else rights.refusal_to_advertise
        self._reader.read(request.expression, refusal, partial(self._finish_request, request, rights))

    def _finish_request(self, request: Subscribe | Advertise, rights: Rights, read: ReadExpression | None) -> None:
        """Executes a request whose expression was read meanwhile."""
        if self.connection.is_closing:
            return
        if self._rights is not rights:
            self._read_expression(request)
            return
        if read is None:
            self._refuse_request(request, Reason.INVALID, "the broker failed to read the expression")
        elif read.forbidden is not None:
            self._refuse_forbidden(request, read.forbidden)
        elif read.expression is None:
            self._refuse_request(request, Reason.INVALID, read.invalid)
        else:
            happened = Subscribed if isinstance(request, Subscribe) else Advertised
            self._driver.handle(happened(self.name, request.name, read.expression, str(request.request)))
        self.connection.release()

    def _refuse_request(self, request: Subscribe | Advertise, reason: Reason, text: str) -> None:
        self.connection.send(encode(RequestRefused(request.request, reason, text)))

    def _refuse_forbidden(self, request: Subscribe | Advertise, text: str) -> None:
        self._violations.count("forbidden", self.name, type(request).__name__.lower())
        self._refuse_request(request, Reason.FORBIDDEN, text)

    def _publish(self, request: PublishRequest) -> None:
        self._unanswered += 1
        if self._waiting or not self._driver.accepts_publications:
            self._enqueue(request)
        else:
            self._submit(request)

    def _enqueue(self, request: PublishRequest) -> None:
        window = self._overlay_limits.publish_window
        self._waiting.append(request)
        self._clients.waiting_publishers[self] = None
        if len(self._waiting) < window:
            return
        if not self.is_reliable:
            # It receives no answers, so it cannot count its waiting publications.
            self.connection.pause_reading()
        elif self._unanswered > window:
            self._violations.count("publish_window", self.name)
            self.end(Reason.LIMIT, f"more than {window} publications wait for an answer")

    def submit_waiting(self) -> bool:
        """Submits waiting publications while the broker accepts them. Returns whether none is left."""
        while self._waiting and self._driver.accepts_publications:
            self._submit(self._waiting.popleft())
        if not self._waiting:
            self.connection.resume_reading()
        return not self._waiting

    def _submit(self, request: PublishRequest) -> None:
        limit = self._overlay_limits.attributes
        count = attribute_count(request.attributes)
        if count > limit:
            self._violations.count("attributes", self.name)
            reason = f"{count} attributes are too many; the limit is {limit}"
            self.refuse(Refuse(self.name, request.reference, reason, Reason.LIMIT))
            return
        rights = self._rights
        forbidden = None if rights.may_publish_all else rights.refusal_to_publish(request.attributes)
        if forbidden is not None:
            self._violations.count("forbidden", self.name, "publish")
            self.refuse(Refuse(self.name, request.reference, forbidden, Reason.FORBIDDEN))
            return
        expires = _expiry(self._driver.now(), request.lifetime_ms)
        self._driver.publish(
            Published(
                self.name,
                request.reference,
                request.attributes,
                request.payload,
                expires,
                request.is_traced,
                request.id or (f"{self.session}/{request.reference}" if self._gives_once_ids else ""),
            )
        )

    def _handle_request(self, content: ClientFrame) -> None:
        handle = self._driver.handle
        match content:
            case Acknowledge():
                self._acknowledge(content.number)
            case Subscribe() | Advertise() if (reason := self._access_refusal(content)) is not None:
                self._refuse_forbidden(content, reason)
            case Subscribe():
                handle(Subscribed(self.name, content.name, content.expression, str(content.request)))
            case Unsubscribe():
                handle(Unsubscribed(self.name, content.name, str(content.request)))
            case Advertise():
                handle(Advertised(self.name, content.name, content.expression, str(content.request)))
            case Unadvertise():
                handle(Unadvertised(self.name, content.name, str(content.request)))
            case Ping():
                self.connection.send(encode(Pong(content.number)))
            case Pong():
                pass
            case TraceQuery():
                steps = self._driver.tracer.steps_of(content.publication)
                self.connection.send(encode(TraceAnswer(content.request, self._driver.core.me, steps)))
            case Goodbye():
                self._leave(content)
            case _:
                raise WireError(f"a client does not send {type(content).__name__}")

    def _access_refusal(self, content: Subscribe | Advertise) -> str | None:
        if isinstance(content, Subscribe):
            return self._rights.refusal_to_subscribe(content.expression)
        return self._rights.refusal_to_advertise(content.expression)

    def update_rights(self) -> None:
        """Applies the rights of a reloaded access list. Disconnects the client if it loses access or entries."""
        rights = self._security.authenticator.rights(self._credentials)
        if rights is None:
            self._violations.count("unauthorised", self.name)
            self.end(Reason.UNAUTHORISED, "the access list does not let this client in any more")
        else:
            self._rights = rights
            if self.enforce_rights():
                self.disconnect_after_revocation()

    def enforce_rights(self) -> bool:
        """Revokes entries that the client's rights do not cover. Returns whether there were any."""
        return self._enforcement.enforce(self.name, self._rights)

    def disconnect_after_revocation(self) -> None:
        """Ends the connection. The client reconnects, sends its entries again, and receives a refusal for each one
        that its rights do not cover."""
        self.end(Reason.FORBIDDEN, "this client had entered what it may not have any more; that is withdrawn")

    def deliver(self, writer: DeliveryWriter, number: int, subscriptions: bytes) -> None:
        if self.is_reliable:
            frame = writer.frame_for(self._sent_count + 1, subscriptions)
            self._sent_count += 1
            self._unacknowledged.append(number)
            self.connection.send(frame)
        else:
            self.connection.send(writer.frame_for(0, subscriptions))

    def _acknowledge(self, through: int) -> None:
        acknowledged = through - (self._sent_count - len(self._unacknowledged))
        if acknowledged > len(self._unacknowledged):
            raise WireError(f"Acknowledge: delivery {through} was never sent; the last one was {self._sent_count}")
        if acknowledged > 0:
            for _ in range(acknowledged):
                number = self._unacknowledged.popleft()
            self._driver.handle(DeliveryAcknowledged(self.name, number))

    def _leave(self, goodbye: Goodbye) -> None:
        self._clients.remove(self)
        self._driver.handle(ClientLost(self.name) if goodbye.is_kept else ClientLeft(self.name))
        self.connection.close()

    def greet(self, effect: Greet) -> None:
        """Sends the Welcome. After revocations it denies that the session is resumed."""
        limits = self._overlay_limits
        has_revocations = self._enforcement.clear_revoked(self.name)
        self._is_reset_unconfirmed = has_revocations or not effect.is_resumed
        welcome = Welcome(
            self._driver.core.me,
            self._driver.core.incarnation,
            not self._is_reset_unconfirmed,
            effect.accepted_through,
            limits.frame_bytes,
            self._limits.request_text_bytes,
            limits.publish_window,
            limits.idle // MILLISECOND,
            self.window,
            (ONCE,),
            effect.missing,
        )
        self.connection.send(encode(welcome))

    def accept(self, effect: Accept) -> None:
        if effect.publication is None:
            self.connection.send(encode(RequestAccepted(int(effect.reference))))
            return
        self._unanswered -= 1
        if self.is_reliable:
            self._answers += (int(effect.reference), effect.publication.counter)
            self.connection.schedule_flush()

    def refuse(self, effect: Refuse) -> None:
        if isinstance(effect.reference, str):
            self.connection.send(encode(RequestRefused(int(effect.reference), effect.code, effect.reason)))
            return
        self._unanswered -= 1
        self._send_answers()
        self.connection.send(encode(PublicationRefused(effect.reference, effect.code, effect.reason)))

    def before_writing(self) -> None:
        if self._answers:
            self._send_answers()

    def _send_answers(self) -> None:
        answers, self._answers = self._answers, []
        for start in range(0, len(answers), 2 * MAX_ANSWERS_PER_FRAME):
            batch = tuple(answers[start : start + 2 * MAX_ANSWERS_PER_FRAME])
            self.connection.send(encode(PublicationsAccepted(batch)))

    def paused(self) -> None:
        self._driver.handle(ClientPaused(self.name))

    def resumed(self) -> None:
        self._driver.handle(ClientResumed(self.name))

    def malformed(self, error: WireError) -> None:
        self._violations.count("malformed", self.name, str(error))
        self.end(Reason.MALFORMED, str(error))

    def end(self, reason: Reason, text: str) -> None:
        """Ends the connection with a Goodbye. The session continues for the time that it is kept."""
        self.connection.close(encode(Goodbye(reason, text)))
        self.lost()

    def lost(self) -> None:
        if self._clients.remove(self):
            if self._is_reset_unconfirmed:
                self._enforcement.mark_revoked(self.name)
            self._driver.handle(ClientLost(self.name))


def _expiry(now: int, lifetime_ms: int) -> int | None:
    """The time at which a publication expires, or None. A lifetime too large for a frame becomes the latest time that
    a frame can carry: clients use large lifetimes for publications that never expire."""
    return min(now + lifetime_ms * MILLISECOND, LARGEST_NUMBER) if lifetime_ms else None
