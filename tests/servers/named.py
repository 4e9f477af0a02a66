"""Servers by name on loopback, with one port for http and one for https. The Host header selects the answer.

`NamedWeb` serves. ``python -m tests.servers.named NAMES COMMAND…`` runs a ``webfountain`` command in a process in which
the names resolve to loopback.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Answer", "Authority", "NamedWeb", "certificate"]

Answer = tuple[int, dict[str, str], bytes]


class Authority:
    """A certificate authority for a test. `file` is its certificate, for SSL_CERT_FILE."""

    def __init__(self, folder: Path) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webfountain tests")])
        self.file = folder / "authority.pem"
        own = _signed(self.name, self.name, self.key.public_key(), self.key, names=(), days=2, authority=True)
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))


def certificate(
    folder: Path, names: Sequence[str], *, authority: Authority | None, days: float = 2.0
) -> ssl.SSLContext:
    """Return a server's TLS context with a certificate for these hosts, which is self-signed without an authority.

    The certificate expires in `days` days; a negative number means that it has expired.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    issuer, signer = (subject, key) if authority is None else (authority.name, authority.key)
    signed = _signed(subject, issuer, key.public_key(), signer, names=names, days=days)
    file = folder / f"{names[0]}-{abs(hash((names[0], days, authority is None)))}.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    names: Sequence[str],
    days: float,
    authority: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if authority:
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = builder.add_extension(usage, critical=True)
    if names:
        alternative = x509.SubjectAlternativeName([_general_name(name) for name in names])
        builder = builder.add_extension(alternative, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class NamedWeb:
    """A context manager that serves `answer(url) -> status, headers, body` for any host, at `http_port` and
    `https_port`.
    """

    def __init__(self, answer: Callable[[str], Answer], tls: ssl.SSLContext) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, scheme)) for scheme in ("http", "https")]
        self.http_port, self.https_port = (server.server_address[1] for server in self._servers)
        secure = self._servers[1]
        secure.socket = tls.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        self._threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in self._servers]

    def answer(self, url: str) -> Answer:
        """Return the answer of a URL, and record the request."""
        self.asked.append(url)
        return self._answer(url)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


def _handler(web: NamedWeb, scheme: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = web.answer(f"{scheme}://{self.headers['Host']}{self.path}")
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", **headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _resolve_here(names: Sequence[str]) -> None:
    """Let names, and all names below them, resolve to loopback in this process."""
    system = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
        known = any(host == name or str(host).endswith("." + name) for name in names)
        if not known and not str(host).replace(".", "").isdigit():
            raise socket.gaierror(socket.EAI_NONAME, "unknown name")
        return system("127.0.0.1" if known else host, *arguments, **more)

    socket.getaddrinfo = getaddrinfo


if __name__ == "__main__":
    from webfountain.cli import main

    _resolve_here(json.loads(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
