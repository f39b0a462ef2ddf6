"""TLS for clients and links: version 1.3 alone, certificates of the overlay's own authority, host names checked.

Both ends are Mercast's own, so nothing older has to be spoken and no downgrade can be asked for.
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
        """What connects from now on sees the files as they are now."""
        for path, what in ((self.certificate, "certificate"), (self.key, "key"), (self.authority, "ca")):
            if not path.is_file():
                raise ConfigError(f"[tls] {what}: there is no file {path}; `mercast certs` writes a set for trying out")
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"[tls] {self.certificate}, {self.key} and {self.authority} do not fit together: {error}"
            ) from error


def listening_context(files: CertificateFiles) -> ssl.SSLContext:
    """For whoever connects. A certificate that is shown must be the authority's; whether one is needed is asked later,
    when the other end has said who it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_OPTIONAL
    files.load_into(context)
    return context


def dialling_context(files: CertificateFiles) -> ssl.SSLContext:
    """For links to other brokers: both ends show certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    files.load_into(context)
    return context


def inside_context(files: CertificateFiles) -> ssl.SSLContext:
    """From a broker to itself: by whatever address it listens on, and its certificate may not name that."""
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
    """For a client: the authority's certificate, or the system's, and the client's own if it has one.

    `names` are what errors call the three files: those under which the user gave them.
    """
    if authority is not None:
        _check_certificate(authority, names[0])
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if certificate is not None:
        _check_certificate(certificate, names[1])
        _load_own(context, certificate, key, names[2])
    return context


def _load_own(context: ssl.SSLContext, certificate: Path, key: Path | None, name: str) -> None:
    try:
        context.load_cert_chain(certificate, None if key is None else _existing(key, name))
    except ssl.SSLError as error:
        if key is None:
            raise ConfigError(f"{name} is not set, and {certificate} holds no key of its own") from error
        raise ConfigError(f"{name}: {key} is not the key of {certificate} ({error.reason or error})") from error


def _check_certificate(path: Path, name: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(_existing(path, name))
    except ssl.SSLError as error:
        raise ConfigError(f"{name}: {path} is not a certificate in PEM form ({error.reason or error})") from error


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise ConfigError(f"{what}: there is no file {path}")
    return path
