"""The access list: which clients may come in, and what they may publish, subscribe to and advertise.

    [[client]]
    name = "sensor-*"
    token_sha256 = "9f86d081884c7d65…"
    publish = "room = 'lab'"

    [[client]]
    name = "desk"
    certificate = "desk"
    publish = "TRUE"
    subscribe = "temperature > 0"

Rules are tried in order, and the first that fits a client's name and credentials counts. A right that a rule does not
name is not given. `publish` is satisfied by every publication of the client; `subscribe` and `advertise` cover every
subscription and advertisement, so that nobody asks for more than it may see.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from broker.config.tables import ConfigError, key, read_table, text, yes_or_no
from matching import MatchingError
from matching.expressions.intersection import covers
from matching.expressions.model import TRUE, Expression
from matching.languages.sql import parse
from matching.matcher import unpack_attributes

Right: TypeAlias = Expression | None
"""What is allowed; None: nothing is."""


@dataclass(frozen=True, slots=True)
class Rights:
    publish: Right = None
    subscribe: Right = None
    advertise: Right = None

    def refusal_to_publish(self, attributes: bytes) -> str | None:
        """Why the publication is not allowed; None: it is."""
        if self.publish == TRUE:
            return None
        if self.publish is None:
            return "this client may not publish"
        try:
            is_allowed = self.publish.matches(unpack_attributes(attributes))
        except MatchingError:
            # What cannot be read is refused by the core, in its own words.
            return None
        return None if is_allowed else f"this client may publish only what satisfies {self.publish}"

    def refusal_to_subscribe(self, expression: str) -> str | None:
        return _refusal(self.subscribe, expression, "subscribe to")

    def refusal_to_advertise(self, expression: str) -> str | None:
        return _refusal(self.advertise, expression, "advertise")

    def may_see(self, attributes: bytes) -> bool:
        """Could a subscription that is allowed match this publication?"""
        if self.subscribe is None or self.subscribe == TRUE:
            return self.subscribe == TRUE
        try:
            return self.subscribe.matches(unpack_attributes(attributes))
        except MatchingError:
            return False


def _refusal(right: Right, expression: str, what: str) -> str | None:
    if right == TRUE:
        return None
    if right is None:
        return f"this client may not {what} anything"
    try:
        wanted = parse(expression)
    except MatchingError:
        return None
    return None if covers(right, wanted) else f"this client may {what} only what {right} covers"


ALL_RIGHTS = Rights(TRUE, TRUE, TRUE)
NO_RIGHTS = Rights()


def _expression(value: object, place: str) -> Expression:
    try:
        return parse(text(value, place))
    except MatchingError as error:
        raise ConfigError(f"{place}: {error}") from error


def _digest(value: object, place: str) -> str:
    digest = text(value, place).lower()
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ConfigError(f"{place} must be 64 hexadecimal digits, the SHA-256 of a token; `mercast token` makes one")
    return digest


@dataclass(frozen=True, slots=True)
class Rule:
    name: str = key("", text, "the client's name; * stands for any letters")
    token_sha256: str = key("", _digest, "the SHA-256 of its token, in hexadecimal digits")
    certificate: str = key("", text, "a name on its certificate; * stands for any letters")
    anonymous: bool = key(False, yes_or_no, "whether it needs no credentials")
    publish: Right = key(None, _expression, "what all its publications satisfy")  # noqa: RUF009
    subscribe: Right = key(None, _expression, "what covers all its subscriptions")  # noqa: RUF009
    advertise: Right = key(None, _expression, "what covers all its advertisements")  # noqa: RUF009

    def fits(self, name: str, token: str, certificate_names: tuple[str, ...]) -> bool:
        if not fnmatchcase(name, self.name):
            return False
        if self.token_sha256:
            shown = hashlib.sha256(token.encode()).hexdigest()
            if not hmac.compare_digest(shown, self.token_sha256):
                return False
        if self.certificate:
            return any(fnmatchcase(each, self.certificate) for each in certificate_names)
        return True

    @property
    def rights(self) -> Rights:
        return Rights(self.publish, self.subscribe, self.advertise)


@dataclass(frozen=True, slots=True)
class AccessList:
    rules: tuple[Rule, ...]

    def rights_of(self, name: str, token: str, certificate_names: tuple[str, ...]) -> Rights | None:
        """None: no rule lets this client in."""
        return next((rule.rights for rule in self.rules if rule.fits(name, token, certificate_names)), None)


def read_access_list(path: Path) -> AccessList:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the access list {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the access list {path} is not TOML: {error}") from error
    clients = document.pop("client", [])
    if document:
        unknown = next(iter(document))
        raise ConfigError(f"the access list {path} has an unknown table {unknown!r}; it has [[client]] only")
    if not isinstance(clients, list):
        raise ConfigError(f"the access list {path}: write [[client]] with two brackets on each side")
    try:
        return AccessList(tuple(_rule(table, f"[[client]] {place}:") for place, table in enumerate(clients, 1)))
    except ConfigError as error:
        raise ConfigError(f"the access list {path}: {error}") from error


def _rule(table: object, place: str) -> Rule:
    rule = read_table(Rule, table, place)
    if not rule.name:
        raise ConfigError(f'{place} has no name; name = "*" fits every client')
    if not (rule.token_sha256 or rule.certificate or rule.anonymous):
        raise ConfigError(f"{place} lets anybody be {rule.name!r}: add token_sha256, certificate, or anonymous = true")
    if rule.anonymous and (rule.token_sha256 or rule.certificate):
        raise ConfigError(f"{place} asks for credentials and is anonymous; take one out")
    return rule
