"""What a client asks for, looked at before it is sent.

A broker takes what its wire format cannot hold for a broken protocol, and ends the connection. So names, expressions
and numbers are held against the same limits here, and whoever asked hears which value is beyond which limit. How long
a text may be is the broker's to say (`Welcome.text_bytes`); before it has said anything its default holds.
"""

from __future__ import annotations

import math

from broker.client.errors import InvalidError, TooLargeError
from broker.wire.client_frames import Reason
from broker.wire.limits import LARGEST_NUMBER, LONGEST_LIFETIME_MS, LONGEST_NAME, Limits
from routing.messages import PublicationId

TEXT_BYTES = Limits().text_bytes
_SHOWN = 40
"""Characters of a text that are shown in an error."""


def check_name(name: str, what: str, text_bytes: int = TEXT_BYTES) -> None:
    """`what` has the name: a subscription, an advertisement, a client."""
    size = _size(name, what, "its name")
    if not size:
        raise InvalidError(what, Reason.INVALID, "its name is empty")
    longest = min(LONGEST_NAME, text_bytes)
    if size > longest:
        raise _too_large(f"{what} {shortened(name)}", "its name", size, longest)


def check_expression(name: str, expression: str, what: str, text_bytes: int = TEXT_BYTES) -> None:
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


def lifetime_ms(expires: float | None) -> int:
    """How a time in seconds goes over the wire; 0 is for ever."""
    if expires is None:
        return 0
    if not hasattr(expires, "__float__"):
        text = f"expires is {_shown(expires)}, of type {type(expires).__name__}, and must be a number of seconds"
        raise InvalidError("the publication", Reason.INVALID, text)
    if not math.isfinite(expires) or expires * 1000 > LONGEST_LIFETIME_MS:
        text = f"it expires after {expires:g} s; the limit is {LONGEST_LIFETIME_MS // 1000} s, and None is never"
        raise InvalidError("the publication", Reason.INVALID, text)
    return max(1, round(expires * 1000))


def payload_bytes(payload: object) -> bytes:
    """As it goes over the wire, and stays until it is answered for, whatever becomes of a buffer."""
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
    """In bytes, as it is written."""
    if not isinstance(text, str):
        raise InvalidError(what, Reason.INVALID, f"{part} is {type(text).__name__}, not a text")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidError(what, Reason.INVALID, f"{part} has a lone surrogate at {error.start}") from None


def _too_large(what: str, part: str, size: int, longest: int) -> TooLargeError:
    return TooLargeError(what, Reason.TOO_LARGE, f"{part} has {size} bytes; the limit is {longest}")
