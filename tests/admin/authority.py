"""A certificate authority for a test, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = datetime.timedelta(days=1)


class Authority:
    """Its certificate is in the file `ca`; what it signs is written to the same directory."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        self.directory = directory
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.ca = str(self._written(f"{name.replace(' ', '-')}.pem", certificate))

    def sign(self, name: str, *names: str, file: str = "") -> tuple[str, str]:
        """Return the files of a certificate with these DNS names or addresses, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([_general(each) for each in (name, *names)])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, x509.BasicConstraints(ca=False, path_length=None), alternatives)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = file or name
        key_file = self.directory / f"{file}-key.pem"
        key_file.write_bytes(private)
        return str(self._written(f"{file}.pem", certificate)), str(key_file)

    def context(self, cert: str = "", key: str = "") -> ssl.SSLContext:
        """Return a client's context that trusts this authority alone."""
        context = ssl.create_default_context(cafile=self.ca)
        if cert:
            context.load_cert_chain(cert, key)
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _LIFE)
            .not_valid_after(now + _LIFE)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def _written(self, file: str, certificate: x509.Certificate) -> Path:
        path = self.directory / file
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
