"""A broker's security, as its configuration asks for it.

[tls]
ca = "certs/ca.pem"
certificate = "certs/{broker}.pem"
key = "certs/{broker}.key"

[acl]
file = "access.toml"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broker.config.overlay_config import BrokerConfig
from broker.config.tables import ConfigError, key, read_table, text, yes_or_no
from broker.security.access import AccessList, read_access_list
from broker.security.authentication import Contexts, Security
from broker.security.credentials import Credentials
from broker.security.tls import CertificateFiles, dialling_context, inside_context, listening_context


@dataclass(frozen=True, slots=True)
class TlsTable:
    ca: str = key("", text, "the certificate of the authority that signed all others")
    certificate: str = key("", text, "the broker's own; {broker} stands for its id")
    key: str = key("", text, "the key of that certificate")


@dataclass(frozen=True, slots=True)
class AclTable:
    file: str = key("", text, "the access list: which clients may come in, and what they may do")
    brokers_token_file: str = key("", text, "without TLS: a file with the word by which brokers know each other")
    lets_others_join: bool = key(False, yes_or_no, "whether brokers that the file does not name may join")


def security_of(config: BrokerConfig) -> Security:
    """The configuration's [tls] and [acl]; with neither, everyone is trusted."""
    where = config.overlay.where
    try:
        return _security(config)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _security(config: BrokerConfig) -> Security:
    tables = config.overlay.tables_of_others
    tls = read_table(TlsTable, tables.get("tls", {}), "[tls]")
    acl = read_table(AclTable, tables.get("acl", {}), "[acl]")
    if not tables.get("tls") and not tables.get("acl"):
        return Security()
    files = _certificate_files(tls, config) if tables.get("tls") else None
    brokers_token = _token(config.overlay.where.parent / acl.brokers_token_file) if acl.brokers_token_file else ""
    _check(files, acl, config)
    credentials = Credentials(
        _access_reader(acl, config.overlay.where.parent),
        has_tls=files is not None,
        brokers=tuple(broker.id for broker in config.overlay.overlay.brokers),
        lets_others_join=acl.lets_others_join,
        brokers_token=brokers_token,
    )
    if files is None:
        return Security(credentials, brokers_token)
    inside = inside_context(files)

    def read_contexts() -> Contexts:
        contexts = Contexts(listening_context(files), dialling_context(files), inside)
        # Who connects from within keeps it, and must know what the broker shows from now on.
        files.load_into(inside)
        return contexts

    return Security(credentials, brokers_token, read_contexts)


def _certificate_files(tls: TlsTable, config: BrokerConfig) -> CertificateFiles:
    for name in ("ca", "certificate", "key"):
        if not getattr(tls, name):
            raise ConfigError(f"[tls] needs {name}; `mercast certs` writes a set and says what to put here")
    folder = config.overlay.where.parent
    certificate, key = (folder / each.replace("{broker}", config.id) for each in (tls.certificate, tls.key))
    return CertificateFiles(folder / tls.ca, certificate, key)


def _check(files: CertificateFiles | None, acl: AclTable, config: BrokerConfig) -> None:
    has_others = len(config.overlay.overlay.brokers) > 1 or acl.lets_others_join
    if files is None and not acl.brokers_token_file and has_others:
        raise ConfigError(
            "[acl] without [tls] needs brokers_token_file, or whoever says that it is a broker is let in as one"
        )
    if files is None and not acl.file:
        raise ConfigError("[acl] needs file, the access list; without it and without [tls] no client could come in")


def _access_reader(acl: AclTable, folder: Path) -> Callable[[], AccessList | None]:
    return lambda: read_access_list(folder / acl.file) if acl.file else None


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"[acl] brokers_token_file {path} cannot be read: {error.strerror}") from error
    if len(token) < 16:
        raise ConfigError(f"[acl] brokers_token_file {path} holds {len(token)} characters; 16 are the least")
    return token
