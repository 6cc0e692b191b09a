"""Certificates for tests: an authority of their own, and a server's certificate for loopback."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Files in PEM. ca: of the authority. cert, key: of a server on loopback that the authority vouches for."""

    ca: str
    cert: str
    key: str


def make_certificates(folder: Path) -> Certificates:
    """A new authority and a certificate of it for localhost and 127.0.0.1, valid for a day."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    ca = _signed(authority, authority, authority_key.public_key(), authority_key, is_ca=True, names=names)
    server = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    cert = _signed(server, authority, server_key.public_key(), authority_key, is_ca=False, names=names)
    made = Certificates(*(str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem")))
    Path(made.ca).write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    Path(made.cert).write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    Path(made.key).write_bytes(
        server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return made


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
    names: list[x509.GeneralName],
) -> x509.Certificate:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), now - day, now + day)
    builder = builder.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    builder = builder.add_extension(known, critical=False)
    return builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(signer, hashes.SHA256())
