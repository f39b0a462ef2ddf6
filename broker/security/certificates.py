"""A set of certificates for an overlay: an authority, one for each broker, and one for each named client.

Keys are elliptic curve keys (P-256). Certificates are valid for one year, the authority's for ten. Only the owner can
read key files. The authority's key is written to the same folder. It can sign certificates that every broker trusts,
so keep it in a safe place except in tests and trials.
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
"""Certificates start in the past because the clocks of two machines can differ."""


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def create_authority(name: str) -> Authority:
    """Creates a key and a self-signed certificate for a new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _common_name(f"{name} authority")
    certificate = (
        _builder(subject, subject, key.public_key(), timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(_authority_key_id(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def issue_certificate(
    authority: Authority, name: str, hosts: Iterable[str] = (), lifetime: timedelta = timedelta(days=DAYS)
) -> tuple[bytes, bytes]:
    """Returns a certificate and its key in PEM form. The certificate is valid for `name` and `hosts`."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_general_name(host) for host in dict.fromkeys((name, *hosts))]
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = (
        _builder(_common_name(name), authority.certificate.subject, key.public_key(), lifetime)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(usages, critical=False)
        .add_extension(_authority_key_id(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def write_certificates(
    folder: Path, overlay: str, brokers: dict[str, tuple[str, ...]], clients: Iterable[str]
) -> list[Path]:
    """Writes an authority and certificates into a new folder, and returns the paths.

    `brokers` maps each id to the hosts under which the broker is reachable.
    """
    folder.mkdir(parents=True)
    authority = create_authority(overlay)
    written = [_write(folder / "ca.pem", authority.certificate.public_bytes(serialization.Encoding.PEM), 0o644)]
    written.append(_write(folder / "ca.key", _pem(authority.key), 0o600))
    for name, hosts in (*brokers.items(), *((client, ()) for client in clients)):
        certificate, key = issue_certificate(authority, name, hosts)
        written.append(_write(folder / f"{name}.pem", certificate, 0o644))
        written.append(_write(folder / f"{name}.key", key, 0o600))
    return written


def _write(path: Path, content: bytes, mode: int) -> Path:
    """Creates the file with its final permissions, so that no other user can open it in between."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    return path


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    start = datetime.now(UTC) - BACKDATED
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=start,
        not_valid_after=max(start + timedelta(seconds=1), datetime.now(UTC) + lifetime),
    ).add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _authority_key_id(key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    """Names the key of the authority. Python 3.13 and later verify strictly and require it."""
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)


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
