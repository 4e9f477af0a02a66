"""Peers on loopback for the downloader's tests: raw bytes for raw bytes, plain or TLS, in the test's own loop."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from webfountain.clock import SystemClock
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher, Terms, terms_of
from webfountain.download.resolver import Resolver
from webfountain.policy.tables import NetworkTable, PolitenessTable
from webfountain.policy.units import PositiveDuration, Size
from webfountain.records import Fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from webfountain.records import FetchKind, FetchResult

__all__ = ["Peer", "fetcher", "ok", "page", "peer", "server", "terms", "tls_of"]


def ok(body: bytes, *headers: str) -> bytes:
    """A plain answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", "Content-Type: text/html", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def terms(
    *,
    timeout: float = 1.0,
    max_bytes: int = 10_000_000,
    allow_private: bool = True,
    detour: Callable[[Fetch, str], float] = lambda *_: 0.0,
) -> Terms:
    """A collection's terms, fit for loopback."""
    politeness = PolitenessTable(user_agent="test/1.0", timeout=PositiveDuration(timeout), max_bytes=Size(max_bytes))
    return terms_of(politeness, NetworkTable(allow_private=allow_private), detour)


class Peer:
    """A server that answers each request with the next of its answers, and keeps what it was asked.

    An answer `None` closes the connection without a word; so does the end of the list.
    """

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.connections = 0
        self.base = ""
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while self._answers:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head.decode("latin-1"))
                answer = self._answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def peer(
    *answers: bytes | None, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Peer]:
    """A peer that listens while the block runs."""
    served = Peer(answers)
    server = await asyncio.start_server(served.serve, host, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    served.base = f"{'http' if tls is None else 'https'}://{name}:{port}"
    try:
        yield served
    finally:
        server.close()
        for writer in served.writers:
            writer.transport.abort()
        await _quiet()


async def _quiet() -> None:
    """Let transports that were just closed say so; a socket that is collected unclosed is a warning."""
    for _ in range(4):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def fetcher(context: ssl.SSLContext | None = None) -> AsyncIterator[Fetcher]:
    """A fetcher whose connections are closed at the end."""
    pool, resolver = ConnectionPool(lambda: context or ssl._create_unverified_context()), Resolver()
    try:
        yield Fetcher(pool, SystemClock(), resolver.resolve)
    finally:
        resolver.close()
        pool.close()
        await _quiet()


async def page(
    with_: Fetcher,
    url: str,
    *,
    address: str | None = "127.0.0.1",
    kind: FetchKind = "page",
    under: Terms | None = None,
    etag: str | None = None,
    last_modified: str | None = None,
) -> FetchResult:
    """Fetch one URL."""
    site = url[: url.index("/", 8)]
    return await with_.fetch(
        Fetch(1, kind, url, site, address, etag=etag, last_modified=last_modified), under or terms()
    )


def tls_of(folder: Path, name: str) -> ssl.SSLContext:
    """A server's TLS context with a certificate that it signed for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@contextlib.asynccontextmanager
async def server(serve: object, port: int = 0) -> AsyncIterator[int]:
    """A server of one function; its port."""
    writers: list[asyncio.StreamWriter] = []

    async def held(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)  # type: ignore[operator]

    listening = await asyncio.start_server(held, "127.0.0.1", port)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        for _ in range(4):
            await asyncio.sleep(0)
