"""Checks of names, expressions and numbers before they are sent.

A broker treats a value beyond the limits of the wire format as a protocol error, and ends the connection. So the client
checks the same limits first, and its errors name the value and the limit. The broker announces the largest size of a
text (`Welcome.text_bytes`). Until then the default applies.
"""

from __future__ import annotations

import math

from broker.client.errors import InvalidError, TooLargeError
from broker.wire.client_frames import Reason
from broker.wire.limits import LONGEST_LIFETIME_MS, LONGEST_NAME, Limits
from routing.messages import LARGEST_NUMBER, PublicationId

TEXT_BYTES = Limits().text_bytes
_SHOWN = 40
"""The largest number of characters of a value that an error shows."""


def check_name(name: str, what: str, text_bytes: int = TEXT_BYTES) -> None:
    """Checks the name of `what`: a subscription, an advertisement or a client."""
    size = _size(name, what, "its name")
    if not size:
        raise InvalidError(what, Reason.INVALID, "its name is empty")
    longest = min(LONGEST_NAME, text_bytes)
    if size > longest:
        raise _too_large(f"{what} {shortened(name)}", "its name", size, longest)


def check_expression(name: str, expression: str, what: str, text_bytes: int = TEXT_BYTES) -> None:
    """Checks the text of an expression. `what` and `name` describe it in errors."""
    described = f"{what} {shortened(name)}"
    size = _size(expression, described, "its expression")
    if size > text_bytes:
        raise _too_large(described, f"its expression {shortened(expression)}", size, text_bytes)


def check_publication_id(id: PublicationId, text_bytes: int = TEXT_BYTES) -> None:
    what = f"the trace of {shortened(str(id))}"
    size = _size(id.broker, what, "its broker")
    if size > text_bytes:
        raise _too_large(what, "its broker's name", size, text_bytes)
    for number in (id.incarnation, id.counter):
        if not 0 <= number <= LARGEST_NUMBER:
            raise InvalidError(what, Reason.INVALID, f"{number} is not from 0 to {LARGEST_NUMBER}")


def check_once_id(id: str) -> None:
    """Checks an id that the application chose for a publication."""
    size = _size(id, "the publication", "its id")
    if not size:
        raise InvalidError("the publication", Reason.INVALID, "its id is empty; None is no id")
    if size > LONGEST_NAME:
        raise _too_large("the publication", f"its id {shortened(id)}", size, LONGEST_NAME)


def lifetime_ms(expires: float) -> int:
    """Converts seconds to the milliseconds of the wire format."""
    if not hasattr(expires, "__float__"):
        text = f"expires is {_shown(expires)}, of type {type(expires).__name__}, and must be a number of seconds"
        raise InvalidError("the publication", Reason.INVALID, text)
    if not math.isfinite(expires) or expires * 1000 > LONGEST_LIFETIME_MS:
        text = f"it expires after {expires:g} s; the limit is {LONGEST_LIFETIME_MS // 1000} s, and None is never"
        raise InvalidError("the publication", Reason.INVALID, text)
    return max(1, round(expires * 1000))


def payload_bytes(payload: object) -> bytes:
    """Returns a copy of the payload, so that later changes of a buffer do not affect a resend."""
    if not isinstance(payload, (bytes, bytearray, memoryview)):
        hint = "; a text is sent with .encode()" if isinstance(payload, str) else ""
        text = f"its payload {_shown(payload)} is of type {type(payload).__name__}, and must be bytes{hint}"
        raise InvalidError("the publication", Reason.INVALID, text)
    return bytes(payload)


def shortened(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _size(text: object, what: str, part: str) -> int:
    """Returns the size in bytes of the encoded text."""
    if not isinstance(text, str):
        raise InvalidError(what, Reason.INVALID, f"{part} is {type(text).__name__}, not a text")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidError(what, Reason.INVALID, f"{part} has a lone surrogate at {error.start}") from None


def _too_large(what: str, part: str, size: int, longest: int) -> TooLargeError:
    return TooLargeError(what, Reason.TOO_LARGE, f"{part} has {size} bytes; the limit is {longest}")
