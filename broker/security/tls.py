"""TLS for clients and links: only version 1.3, certificates of the overlay's own authority, host names verified.

Both ends run Mercast. Older versions are therefore not needed, and a downgrade is impossible.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from broker.config.tables import ConfigError


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    authority: Path
    certificate: Path
    key: Path

    def load_into(self, context: ssl.SSLContext) -> None:
        """Loads the files' current content for new connections of the context."""
        for path, name in ((self.certificate, "certificate"), (self.key, "key"), (self.authority, "ca")):
            if not path.is_file():
                raise ConfigError(f"[tls] {name}: there is no file {path}; `mercast certs` writes a set for trying out")
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"[tls] {self.certificate}, {self.key} and {self.authority} do not fit together: {error}"
            ) from error


def server_context(files: CertificateFiles) -> ssl.SSLContext:
    """For incoming connections. A certificate is optional here, but the authority must have signed it.

    The authenticator requires one later, when the hello has named the peer.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_OPTIONAL
    files.load_into(context)
    return context


def link_context(files: CertificateFiles) -> ssl.SSLContext:
    """For outgoing links to other brokers. Both ends present certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    files.load_into(context)
    return context


def internal_context(files: CertificateFiles) -> ssl.SSLContext:
    """For connections of a broker to itself. Does not verify the host name.

    The broker connects to the address that it listens on, and its certificate need not name that address.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    files.load_into(context)
    return context


def client_context(
    authority: Path | None,
    certificate: Path | None,
    key: Path | None,
    names: tuple[str, str, str] = ("ca", "certificate", "key"),
) -> ssl.SSLContext:
    """For a client: with the authority's certificate or the system's, and with the client's own certificate if any.

    Errors call the three files by `names`, which are the options or variables that the user set.
    """
    if authority is not None:
        _check_certificate(authority, names[0])
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if certificate is not None:
        _check_certificate(certificate, names[1])
        _load_client_certificate(context, certificate, key, names[2])
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None, name: str) -> None:
    try:
        context.load_cert_chain(certificate, None if key is None else _require_file(key, name))
    except ssl.SSLError as error:
        if key is None:
            raise ConfigError(f"{name} is not set, and {certificate} holds no key of its own") from error
        raise ConfigError(f"{name}: {key} is not the key of {certificate} ({error.reason or error})") from error


def _check_certificate(path: Path, name: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(_require_file(path, name))
    except ssl.SSLError as error:
        raise ConfigError(f"{name}: {path} is not a certificate in PEM form ({error.reason or error})") from error


def _require_file(path: Path, name: str) -> Path:
    if not path.is_file():
        raise ConfigError(f"{name}: there is no file {path}")
    return path
