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

The most specific rule for a client's name decides, and `*` is the only wildcard. A name without `*` is more specific
than every pattern. Of two patterns, the one with more literal characters is more specific. Of equally specific
patterns, the first in the list decides.

Only the rules with the name that decides can admit the client. They are alternatives: the first one whose credentials
the client presents applies. So a name that has a rule of its own is reserved, and no wider rule admits a client under
that name. The order of other rules has no effect.

A rule grants only the rights that it names. Every publication of the client must satisfy `publish`. `subscribe` and
`advertise` must cover every subscription and advertisement of the client, so that no client receives publications
outside its rights.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from broker.config.tables import ConfigError
from matching import MatchingError
from matching.expressions.intersection import covers
from matching.expressions.model import TRUE, Expression
from matching.languages.sql import parse
from matching.matcher import unpack_attributes
from topologies.files.typed_tables import Parser, Table, TableReader, parse_toml, read_text

WILDCARD = "*"
UNSUPPORTED_WILDCARDS = "?["
"""Wildcards of `fnmatchcase` that rules must not contain. Specificity is not defined for them."""

Right: TypeAlias = Expression | None
"""An expression for the allowed content. None allows nothing."""


@dataclass(frozen=True, slots=True)
class Rights:
    """A client's rights to publish, subscribe and advertise."""

    publish: Right = None
    subscribe: Right = None
    advertise: Right = None
    may_publish_all: bool = field(init=False)
    """Whether every publication is allowed. Comparing expressions for each publication would take longer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "may_publish_all", self.publish == TRUE)

    def refusal_to_publish(self, attributes: bytes) -> str | None:
        """The reason why the publication is not allowed, or None if it is allowed."""
        if self.may_publish_all:
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


class TokenDigest(str):
    """The SHA-256 of a token, as 64 hexadecimal digits."""

    __slots__ = ()


def _expression(text: str) -> Expression:
    try:
        return parse(text)
    except MatchingError as error:
        raise ConfigError(str(error)) from error


def _digest(text: str) -> TokenDigest:
    digest = text.lower()
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        # The message does not show the text, because it may be the token.
        raise ConfigError("it must be 64 hexadecimal digits, the SHA-256 of a token; `mercast token` makes one")
    return TokenDigest(digest)


_PARSERS: Mapping[type, Parser] = {Expression: _expression, TokenDigest: _digest}


class Rule(Table, frozen=True, kw_only=True):
    """A [[client]] table: the credentials that it requires and the rights that it grants."""

    name: str = ""
    """The client's name, or a pattern for it; * matches any characters."""
    token_sha256: TokenDigest = TokenDigest()
    """The SHA-256 of the client's token, in hexadecimal digits."""
    certificate: str = ""
    """A pattern for a name on the client's certificate; * matches any characters."""
    anonymous: bool = False
    """Whether the client needs no credentials."""
    publish: Right = None
    """An expression that every publication must satisfy."""
    subscribe: Right = None
    """An expression that must cover every subscription."""
    advertise: Right = None
    """An expression that must cover every advertisement."""

    @property
    def specificity(self) -> tuple[bool, int]:
        """Whether the name has no wildcard, and the number of its literal characters. The larger one decides."""
        wildcards = self.name.count(WILDCARD)
        return not wildcards, len(self.name) - wildcards

    def accepts(self, token_sha256: str, certificate_names: tuple[str, ...]) -> bool:
        """Whether these credentials satisfy the rule. It does not check the client's name."""
        if self.token_sha256 and not hmac.compare_digest(token_sha256, self.token_sha256):
            return False
        if self.certificate:
            return any(fnmatchcase(each, self.certificate) for each in certificate_names)
        return True

    @property
    def rights(self) -> Rights:
        return Rights(self.publish, self.subscribe, self.advertise)


class AccessList(Table, frozen=True):
    """The rules of an access list. The most specific rule for a client's name decides."""

    client: tuple[Rule, ...] = ()
    """The rules. Their order matters only among equally specific ones."""

    def rights_of(self, name: str, token: str, certificate_names: tuple[str, ...]) -> Rights | None:
        """The rights of the client, or None if the rules for its name do not accept its credentials."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        return next((rule.rights for rule in self._rules_for(name) if rule.accepts(digest, certificate_names)), None)

    def _rules_for(self, name: str) -> tuple[Rule, ...]:
        """The rules that can admit a client with this name: all rules with the most specific name that fits."""
        fitting = [rule for rule in self.client if fnmatchcase(name, rule.name)]
        if not fitting:
            return ()
        # `max` returns the first of equally specific rules.
        decisive = max(fitting, key=lambda rule: rule.specificity)
        return tuple(rule for rule in fitting if rule.name == decisive.name)


def read_access_list(path: Path) -> AccessList:
    """Reads an access list from a TOML file. Raises ConfigError with the place of a mistake."""
    source = f"the access list {path}"
    reader = TableReader(source, ConfigError, _PARSERS)
    access = reader.read(AccessList, parse_toml(read_text(path, "the access list", ConfigError), source, ConfigError))
    for number, rule in enumerate(access.client, start=1):
        _check(rule, f"client.{number}", reader)
    return access


def _check(rule: Rule, key: str, reader: TableReader) -> None:
    if not rule.name:
        raise reader.refusal(f"{key}.name", 'is missing or empty; name = "*" fits every client')
    for part, pattern in (("name", rule.name), ("certificate", rule.certificate)):
        if any(each in pattern for each in UNSUPPORTED_WILDCARDS):
            raise reader.refusal(f"{key}.{part}", f"is {pattern!r}; * is the only wildcard, ? and [ are not allowed")
    if not (rule.token_sha256 or rule.certificate or rule.anonymous):
        raise reader.refusal(key, f"lets anybody be {rule.name!r}: add token_sha256, certificate, or anonymous = true")
    if rule.anonymous and (rule.token_sha256 or rule.certificate):
        raise reader.refusal(key, f"({rule.name}) asks for credentials and is anonymous; take one out")
