"""Errors of the client library.

ClientError
├── ServerAddressError     a server's address is not valid
├── ConnectError           no server accepted the connection
├── TimeoutExpiredError    no answer in time
├── ClosedError            the client was closed, or stopped to reconnect
└── RefusedError           a broker refused a request, or is certain to
    ├── NotAdvertisedError     outside the client's advertisements, if the overlay requires them
    ├── InvalidError           expression or attributes that the broker cannot read
    ├── OverloadedError        try again later
    └── TooLargeError          beyond a limit of the broker
"""

from __future__ import annotations

from broker.wire.client_frames import Reason


class ClientError(Exception):
    """An error of the client library. Every error that it raises is of this class."""

    exit_code = 1


class ServerAddressError(ClientError):
    exit_code = 2


class ConnectError(ClientError):
    """No broker could be reached."""

    exit_code = 4


class TimeoutExpiredError(ClientError, TimeoutError):
    """The broker did not answer in time."""

    exit_code = 5


class ClosedError(ClientError):
    """The client, or one of its subscriptions, is closed."""

    exit_code = 4


class RefusedError(ClientError):
    """The broker refused a request. The message says why."""

    def __init__(self, what: str, reason: str, text: str) -> None:
        super().__init__(f"{what} was refused: {text or reason}")
        self.reason = reason


class NotAdvertisedError(RefusedError):
    pass


class InvalidError(RefusedError):
    exit_code = 2


class OverloadedError(RefusedError):
    pass


class TooLargeError(RefusedError):
    pass


_BY_REASON: dict[str, type[RefusedError]] = {
    Reason.NOT_ADVERTISED: NotAdvertisedError,
    Reason.INVALID: InvalidError,
    Reason.OVERLOADED: OverloadedError,
    Reason.TOO_LARGE: TooLargeError,
}


def refused_error(what: str, reason: str, text: str) -> RefusedError:
    """Creates the error of the class that belongs to the broker's reason."""
    return _BY_REASON.get(reason, RefusedError)(what, reason, text)
