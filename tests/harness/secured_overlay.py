"""Overlay files with certificates, tokens and access lists."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from broker import tls
from broker.security.certificates import write_certificates
from tests.harness.broker_processes import OverlayFileMaker

HERE = ("localhost", "127.0.0.1")
TLS = {"ca": "certs/ca.pem", "certificate": "certs/{broker}.pem", "key": "certs/{broker}.key"}


def with_certificates(
    folder: Path,
    brokers: Iterable[str],
    links: Iterable[tuple[str, str]] = (),
    acl: str | None = None,
    *,
    limits: Mapping[str, object] | None = None,
) -> OverlayFileMaker:
    """An overlay with TLS, and certificates for the brokers and the clients desk and lab."""
    names = tuple(brokers)
    write_certificates(folder / "certs", "test", dict.fromkeys(names, HERE), ("desk", "lab"))
    tables: dict[str, Mapping[str, object]] = {"tls": TLS, "limits": {"hello": "500ms", **(limits or {})}}
    if acl is not None:
        (folder / "access.toml").write_text(acl)
        tables["acl"] = {"file": "access.toml"}
    return OverlayFileMaker(folder, names, links, tables=tables)


def with_tokens(
    folder: Path, acl: str, brokers: Iterable[str] = ("b1",), links: Iterable[tuple[str, str]] = ()
) -> OverlayFileMaker:
    """An overlay without TLS. Brokers authenticate each other by a token, and clients by the access list."""
    (folder / "access.toml").write_text(acl)
    (folder / "brokers.token").write_text("the brokers of this overlay know this\n")
    tables = {"acl": {"file": "access.toml", "brokers_token_file": "brokers.token"}}
    return OverlayFileMaker(folder, brokers, links, tables=tables)


def shown(folder: Path, client: str | None = None) -> ssl.SSLContext:
    """The TLS context of a client, with its certificate if `client` names one."""
    certs = folder / "certs"
    if client is None:
        return tls(certs / "ca.pem")
    return tls(certs / "ca.pem", certs / f"{client}.pem", certs / f"{client}.key")


def rule(name: str, token: str = "", **rights: str) -> str:
    """An entry of an access list."""
    credentials = [f'token_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"'] if token else []
    return _rule(name, credentials, rights)


def anonymous_rule(name: str, **rights: str) -> str:
    """An entry of an access list for clients without credentials."""
    return _rule(name, ["anonymous = true"], rights)


def _rule(name: str, credentials: list[str], rights: Mapping[str, str]) -> str:
    granted = [f'{right} = "{expression}"' for right, expression in rights.items()]
    return "\n".join(["[[client]]", f'name = "{name}"', *credentials, *granted]) + "\n"
