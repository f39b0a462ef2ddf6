"""A set of certificates for an overlay: an authority, one for each broker, and one for each client that is named.

Elliptic curve keys (P-256), a year for brokers and clients, ten for the authority. Keys can be read by their owner
alone. The authority's key is written beside the rest: whoever has it can make certificates that every broker trusts,
so for anything but trying out it belongs somewhere else.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3_650
DAYS = 365
BACKDATED = timedelta(minutes=5)
"""Clocks differ a little."""


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def new_authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(f"{name} authority")
    certificate = (
        _dated(subject, subject, key.public_key(), timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def issue(
    authority: Authority, name: str, hosts: Iterable[str] = (), lasts: timedelta = timedelta(days=DAYS)
) -> tuple[bytes, bytes]:
    """A certificate and its key as PEM. `name` and `hosts` are what it is good for."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_general_name(host) for host in dict.fromkeys((name, *hosts))]
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = (
        _dated(_named(name), authority.certificate.subject, key.public_key(), lasts)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(usages, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def write_set(folder: Path, overlay: str, brokers: dict[str, tuple[str, ...]], clients: Iterable[str]) -> list[Path]:
    """Brokers by id with the hosts that they are reached at. The folder must be new."""
    folder.mkdir(parents=True)
    authority = new_authority(overlay)
    written = [_write(folder / "ca.pem", authority.certificate.public_bytes(serialization.Encoding.PEM), 0o644)]
    written.append(_write(folder / "ca.key", _pem(authority.key), 0o600))
    for name, hosts in (*brokers.items(), *((client, ()) for client in clients)):
        certificate, key = issue(authority, name, hosts)
        written.append(_write(folder / f"{name}.pem", certificate, 0o644))
        written.append(_write(folder / f"{name}.key", key, 0o600))
    return written


def _write(path: Path, content: bytes, mode: int) -> Path:
    """With its permissions from the first moment on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _dated(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta
) -> x509.CertificateBuilder:
    start = datetime.now(UTC) - BACKDATED
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=start,
        not_valid_after=max(start + timedelta(seconds=1), datetime.now(UTC) + lasts),
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
