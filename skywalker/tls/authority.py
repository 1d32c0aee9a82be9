"""A small certificate authority, for trying TLS out. It has no list of certificates that are revoked, nor serves any.

Needs the package cryptography, which nothing else here does. Reaches no file: a certificate and its key are PEM.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from skywalker.errors import ConfigError

NAME: Final = "skywalker certs"
"""What an authority calls itself."""

MARGIN: Final = timedelta(hours=1)
"""How far a clock may be behind ours, and a new certificate count there."""

_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,61}", re.ASCII)
"""A DNS name, or that of a client: no longer than a common name may be."""

_NO_USE: Final = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, in PEM form; how long it counts, and for whom."""

    certificate: bytes
    key: bytes = dataclasses.field(repr=False)
    ends: datetime
    names: tuple[str, ...] = ()


class Authority:
    """Signs certificates. Whoever trusts it trusts them all. Made by new() or load()."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, days: int) -> Authority:
        """Return one that nobody knows yet, and that ends after so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _common_name(NAME)
        builder = (
            _builder(name, name, key, datetime.now(UTC) + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Authority:
        """Return the one that pair() was asked of. Raises ValueError if it is none, or has ended."""
        held = x509.load_pem_x509_certificate(certificate)
        its = serialization.load_pem_private_key(key, password=None)
        if not isinstance(its, ec.EllipticCurvePrivateKey) or its.public_key() != held.public_key():
            raise ValueError("the key is not that of the certificate")
        try:
            held.verify_directly_issued_by(held)
        except (ValueError, TypeError, InvalidSignature) as error:
            raise ValueError("it is not one that signs for itself") from error
        if held.not_valid_after_utc <= datetime.now(UTC):
            raise ValueError(f"it has ended, on {held.not_valid_after_utc:%Y-%m-%d}")
        return cls(held, its)

    def pair(self) -> Pair:
        """Return its own certificate and key."""
        return _pair(self._certificate, self._key)

    def for_node(self, names: Sequence[str], days: int) -> Pair:
        """Return what a node shows that is reached by any of these host names and addresses. Raises ConfigError.

        It shows the same to nodes to which it connects.
        """
        return self._signed(names, days, ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)

    def for_client(self, name: str, days: int) -> Pair:
        """Return what a client of that name shows. Raises ConfigError."""
        return self._signed([name], days, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _signed(self, names: Sequence[str], days: int, *uses: x509.ObjectIdentifier) -> Pair:
        alternatives = [*map(_general_name, names)]
        ends = min(datetime.now(UTC) + timedelta(days=days), self._certificate.not_valid_after_utc)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_common_name(names[0]), self._certificate.subject, key, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage("digital_signature"), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return _pair(builder.sign(self._key, hashes.SHA256()), key, names)


def is_name(text: str) -> bool:
    """Whether a certificate can be made for a host or a client of that name."""
    return _HOST.fullmatch(text) is not None


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not is_name(name):
            raise ConfigError(f"{name!r} is neither an address nor a name of letters, digits and . - _") from None
        return x509.DNSName(name)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - MARGIN)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*uses: str) -> x509.KeyUsage:
    return x509.KeyUsage(**(_NO_USE | dict.fromkeys(uses, True)))


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, names: Sequence[str] = ()) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.not_valid_after_utc,
        tuple(names),
    )
