"""Builds a broker's `Security` from the tables [tls], [acl] and [admin] of its configuration.

[tls]
ca = "certs/ca.pem"
certificate = "certs/{broker}.pem"
key = "certs/{broker}.key"

[acl]
file = "access.toml"

[admin]
token_file = "admin.token"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from broker.config.gateway_config import gateway_client
from broker.config.overlay_config import BrokerConfig, OverlayConfig
from broker.config.tables import ConfigError
from broker.security.access import AccessList, read_access_list
from broker.security.authentication import Security, TlsContexts
from broker.security.credential_authenticator import CredentialAuthenticator
from broker.security.tls import CertificateFiles, internal_context, link_context, server_context
from broker.security.token_file import read_token
from topologies.files.typed_tables import Table, TableReader


class TlsTable(Table, frozen=True, kw_only=True):
    ca: str = ""
    """The certificate of the authority that signs all others."""
    certificate: str = ""
    """The broker's certificate; {broker} is replaced by its id."""
    key: str = ""
    """The key of the broker's certificate; {broker} is replaced by its id."""


class AclTable(Table, frozen=True, kw_only=True):
    file: str = ""
    """The access list: which clients may connect, and their rights."""
    brokers_token_file: str = ""
    """Without TLS: a file with the token that authenticates brokers."""
    lets_others_join: bool = False
    """Whether brokers that the overlay file does not name may join."""


def load_security(config: BrokerConfig) -> Security:
    """Reads [tls], [acl] and [admin] and the files that they name. Without [tls] and [acl] the broker accepts every
    peer."""
    tables = config.overlay.raw_tables
    reader = TableReader(str(config.overlay.path), ConfigError)
    tls = reader.read(TlsTable, tables.get("tls", {}), "tls")
    acl = reader.read(AclTable, tables.get("acl", {}), "acl")
    try:
        return _security(config, tls, acl)
    except ConfigError as error:
        raise ConfigError(f"{config.overlay.path}: {error}") from error


def _security(config: BrokerConfig, tls: TlsTable, acl: AclTable) -> Security:
    tables = config.overlay.raw_tables
    admin_token = partial(read_admin_token, config.overlay)
    if not tables.get("tls") and not tables.get("acl"):
        return Security(read_admin_token=admin_token)
    files = _certificate_files(tls, config) if tables.get("tls") else None
    brokers_token = _brokers_token(acl, config.overlay.path.parent)
    _check(files, acl, config)
    credentials = CredentialAuthenticator(
        _access_reader(acl, config.overlay.path.parent),
        has_tls=files is not None,
        brokers=tuple(broker.id for broker in config.overlay.overlay.brokers),
        lets_others_join=acl.lets_others_join,
        gateway_client=gateway_client(config.id),
        brokers_token=brokers_token,
    )
    if files is None:
        return Security(credentials, brokers_token, read_admin_token=admin_token)
    internal = internal_context(files)

    def read_contexts() -> TlsContexts:
        contexts = TlsContexts(server_context(files), link_context(files), internal)
        # Clients inside the process keep this context object, so it must load the new files too.
        files.load_into(internal)
        return contexts

    return Security(credentials, brokers_token, read_contexts, admin_token)


def _certificate_files(tls: TlsTable, config: BrokerConfig) -> CertificateFiles:
    for name in ("ca", "certificate", "key"):
        if not getattr(tls, name):
            raise ConfigError(f"[tls] needs {name}; `mercast certs` writes a set and says what to put here")
    folder = config.overlay.path.parent
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


def _brokers_token(acl: AclTable, folder: Path) -> str:
    return read_token(folder / acl.brokers_token_file, "[acl] brokers_token_file") if acl.brokers_token_file else ""


def read_admin_token(overlay: OverlayConfig) -> str:
    """Returns the token of the overlay's admin pages. Empty if [admin] names no file."""
    name = overlay.admin.token_file
    return read_token(overlay.path.parent / name, "[admin] token_file") if name else ""
