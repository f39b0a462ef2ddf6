"""The access list: which clients may connect, and what they may publish, subscribe to and advertise.

    [[client]]
    name = "sensor-*"
    token_sha256 = "9f86d081884c7d65…"
    publish = "room = 'lab'"

    [[client]]
    name = "desk"
    certificate = "desk"
    publish = "TRUE"
    subscribe = "temperature > 0"

The broker tries rules in order. The first rule that matches a client's name and credentials applies. A rule grants only
the rights that it names. Every publication of the client must satisfy `publish`. `subscribe` and `advertise` must cover
every subscription and advertisement of the client, so that no client receives publications outside its rights.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from broker.config.tables import ConfigError, boolean, key, read_table, text
from matching import MatchingError
from matching.expressions.intersection import covers
from matching.expressions.model import TRUE, Expression
from matching.languages.sql import parse
from matching.matcher import unpack_attributes

Right: TypeAlias = Expression | None
"""An expression for the allowed content. None allows nothing."""


@dataclass(frozen=True, slots=True)
class Rights:
    """A client's rights to publish, subscribe and advertise."""

    publish: Right = None
    subscribe: Right = None
    advertise: Right = None

    def refusal_to_publish(self, attributes: bytes) -> str | None:
        """The reason why the publication is not allowed, or None if it is allowed."""
        if self.publish == TRUE:
            return None
        if self.publish is None:
            return "this client may not publish"
        try:
            is_allowed = self.publish.matches(unpack_attributes(attributes))
        except MatchingError:
            # The core refuses attributes that it cannot decode, with a message of its own.
            return None
        return None if is_allowed else f"this client may publish only what satisfies {self.publish}"

    def refusal_to_subscribe(self, expression: str) -> str | None:
        return _refusal(self.subscribe, expression, "subscribe to")

    def refusal_to_advertise(self, expression: str) -> str | None:
        return _refusal(self.advertise, expression, "advertise")

    def may_see(self, attributes: bytes) -> bool:
        """Whether an allowed subscription can match this publication."""
        if self.subscribe is None or self.subscribe == TRUE:
            return self.subscribe == TRUE
        try:
            return self.subscribe.matches(unpack_attributes(attributes))
        except MatchingError:
            return False


def _refusal(right: Right, expression: str, action: str) -> str | None:
    if right == TRUE:
        return None
    if right is None:
        return f"this client may not {action} anything"
    try:
        requested = parse(expression)
    except MatchingError:
        return None
    return None if covers(right, requested) else f"this client may {action} only what {right} covers"


ALL_RIGHTS = Rights(TRUE, TRUE, TRUE)
"""Allows everything."""
NO_RIGHTS = Rights()
"""Allows nothing."""


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
    """A [[client]] table: the credentials that it requires and the rights that it grants."""

    name: str = key("", text, "a pattern for the client's name; * matches any characters")
    token_sha256: str = key("", _digest, "the SHA-256 of the client's token, in hexadecimal digits")
    certificate: str = key("", text, "a pattern for a name on the client's certificate; * matches any characters")
    anonymous: bool = key(False, boolean, "whether the client needs no credentials")
    publish: Right = key(None, _expression, "an expression that every publication must satisfy")  # noqa: RUF009
    subscribe: Right = key(None, _expression, "an expression that must cover every subscription")  # noqa: RUF009
    advertise: Right = key(None, _expression, "an expression that must cover every advertisement")  # noqa: RUF009

    def matches(self, name: str, token: str, certificate_names: tuple[str, ...]) -> bool:
        if not fnmatchcase(name, self.name):
            return False
        if self.token_sha256:
            digest = hashlib.sha256(token.encode()).hexdigest()
            if not hmac.compare_digest(digest, self.token_sha256):
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
        """The rights that the first matching rule grants, or None if no rule matches."""
        return next((rule.rights for rule in self.rules if rule.matches(name, token, certificate_names)), None)


def read_access_list(path: Path) -> AccessList:
    """Reads an access list from a TOML file. Raises ConfigError with the place of a mistake."""
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
