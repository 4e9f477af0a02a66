"""A small HTTP/1.1 server of a `Web` on loopback.

Built on the standard library alone, the server starts at once and takes little CPU time from a benchmark. Every site
has its own address (127.0.1.1, 127.0.1.2, …). With ``layout="ports"``, every site has its own port on 127.0.0.1.

The server has limits for request heads, pipelined input, connections, idle time and the log. The server does not
simulate errors, and uses no TLS.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from collections import deque
from email.utils import parsedate_to_datetime
from heapq import nsmallest
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.lab.demo.answers import Answer, http_date

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.lab.demo.answers import Web, WebClock

__all__ = ["Log", "LoggedVisit", "ServedConnection", "Server", "bind_sites"]

_MAX_HEAD: Final = 32_768
_MAX_CONNECTIONS: Final = 4_000
_IDLE_SECONDS: Final = 120.0
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class LoggedVisit(NamedTuple):
    """One served request, with the UTC seconds of its first and last byte.

    ``busy`` is the number of other requests that were running on the same site when the request arrived.
    """

    site: str
    path: str
    status: int
    start: float
    end: float
    busy: int
    sent: int


class Log:
    """A log of the last `size` visits. `record` is called with each visit."""

    def __init__(self, size: int, *, record: Callable[[LoggedVisit], object] | None = None) -> None:
        self.visits: deque[LoggedVisit] = deque(maxlen=size)
        self.served = 0
        self._record = record

    def note(self, visit: LoggedVisit) -> None:
        self.served += 1
        self.visits.append(visit)
        if self._record is not None:
            self._record(visit)

    def tail(self, after: int) -> list[LoggedVisit]:
        """Return the visits numbered `after` or later that are still in memory."""
        skip = max(0, after - (self.served - len(self.visits)))
        return list(islice(self.visits, skip, None))


class Server:
    """A server that serves `web` at the time that `clock` shows. Site number i is at `bases[i]`.

    latency: seconds before each answer. gzip_bodies: use the gzip content coding if the client accepts it.
    """

    def __init__(
        self,
        web: Web,
        clock: WebClock,
        bases: list[str],
        *,
        latency: float = 0.0,
        gzip_bodies: bool = False,
        log: Log | None = None,
        admin: Callable[[Server, str], bytes | None] | None = None,
    ) -> None:
        self.web, self.clock, self.bases, self.latency = web, clock, bases, latency
        self.gzip_bodies, self.admin = gzip_bodies, admin
        self.log = log or Log(200_000)
        self.busy = [0] * len(bases)
        self.open: set[ServedConnection] = set()

    async def listen(self, sockets: list[socket.socket]) -> list[asyncio.Server]:
        """Serve site number i on `sockets[i]`."""
        loop = asyncio.get_running_loop()
        listeners = []
        for site, bound in enumerate(sockets):
            listeners.append(await loop.create_server(lambda site=site: ServedConnection(self, site), sock=bound))  # type: ignore[misc]
        return listeners

    def sweep(self) -> None:
        """Close the connections that have been idle for too long."""
        limit = time.time() - _IDLE_SECONDS
        for connection in [c for c in self.open if c.last < limit]:
            connection.close()

    def make_room(self) -> None:
        """Close one tenth of the connections: those that have been idle for longest."""
        silent = [c for c in self.open if not c.serving and c.start]
        for connection in nsmallest(_MAX_CONNECTIONS // 10, silent, key=lambda c: c.last):
            connection.close()

    def answer(self, site: int, path: str, utc: float) -> Answer:
        """Return the web's answer at UTC second `utc`, or the admin answer if the request has the token."""
        if path.startswith("/_") and self.admin is not None:
            body = self.admin(self, path)
            if body is not None:
                return Answer(200, body, media_type="application/json")
        return self.web.respond(site, path, self.clock.web(utc))


class ServedConnection(asyncio.Protocol):
    """One client's connection to one site. Requests are answered one after the other."""

    def __init__(self, server: Server, site: int) -> None:
        self.server, self.site = server, site
        self.buffer = b""
        self.serving = False
        self.writable = True
        self.start = self.last = 0.0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.last = time.time()
        self.server.open.add(self)
        if len(self.server.open) > _MAX_CONNECTIONS:
            self.server.make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self)

    def close(self) -> None:
        self.transport.close()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._next()

    def data_received(self, data: bytes) -> None:
        if not self.buffer:
            self.start = time.time()
        self.buffer += data
        self._next()

    def _next(self) -> None:
        """Serve the buffered requests until an answer has to be delayed."""
        while self.writable and not self.serving and not self.transport.is_closing():
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end or len(head) > _MAX_HEAD:
                self._refuse_endless()
                return
            self.buffer = rest
            self._serve(head.decode("latin-1"))

    def _refuse_endless(self) -> None:
        if len(self.buffer) > _MAX_HEAD:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n")
            self.close()

    def _serve(self, head: str) -> None:
        line, *fields = head.split("\r\n")
        try:
            method, path, protocol = line.split(" ")
        except ValueError:
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            return self.close()
        headers = {name.strip().lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
        headers["connection"] = headers.get("connection", "" if protocol == "HTTP/1.1" else "close").lower()
        busy = self.server.busy[self.site]
        self.server.busy[self.site] += 1
        self.serving = True
        if self.server.latency:
            asyncio.get_running_loop().call_later(self.server.latency, self._finish, method, path, headers, busy)
        else:
            self._finish(method, path, headers, busy)
        return None

    def _finish(self, method: str, path: str, headers: dict[str, str], busy: int) -> None:
        """Answer the current request, log it, and continue with the next one."""
        server, start = self.server, self.start
        now = self.start = self.last = time.time()
        status, head, body = self._reply(method, path, headers, now)
        if not self.transport.is_closing():
            self.transport.write(head + body)
        server.busy[self.site] -= 1
        self.serving = False
        if not path.startswith("/_"):
            server.log.note(LoggedVisit(server.bases[self.site], path, status, start, time.time(), busy, len(body)))
        if headers["connection"] == "close" or method not in ("GET", "HEAD"):
            self.close()
        elif server.latency:
            self._next()

    def _reply(self, method: str, path: str, headers: dict[str, str], utc: float) -> tuple[int, bytes, bytes]:
        if method not in ("GET", "HEAD"):
            answer = Answer(405, b"GET or HEAD\n", media_type="text/plain")
        else:
            answer = self.server.answer(self.site, path, utc)
        dated = self._last_modified(answer, utc)
        if answer.status == 200 and _unchanged(answer.etag, dated, headers):
            answer = answer._replace(status=304, body=b"")
        body, coding = self._encode(answer.body, headers)
        lines = [
            f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, '')}",
            f"Date: {http_date(int(utc))}",
        ]
        if answer.etag:
            lines.append(f'ETag: "{answer.etag}"')
        if dated:
            lines.append(f"Last-Modified: {dated}")
        if answer.location:
            lines.append(f"Location: {answer.location}")
        if answer.status != 304:
            lines.append(f"Content-Type: {answer.media_type}\r\nContent-Length: {len(body)}{coding}")
        if headers["connection"] == "close":
            lines.append("Connection: close")
        return (
            answer.status,
            "\r\n".join([*lines, "\r\n"]).encode("latin-1"),
            b"" if method == "HEAD" else body,
        )

    def _last_modified(self, answer: Answer, utc: float) -> str:
        """Return the date of the last change. Return "" if the page changed in the current second, because a later
        change in that second would have the same date (RFC 9110, 8.8.2).
        """
        if answer.changed is None:
            return ""
        second = int(self.server.clock.utc(answer.changed) // 1)
        return http_date(second) if second < int(utc) else ""

    def _encode(self, body: bytes, headers: dict[str, str]) -> tuple[bytes, str]:
        if not self.server.gzip_bodies or not body or "gzip" not in headers.get("accept-encoding", ""):
            return body, ""
        return gzip.compress(body, 1), "\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding"


def _unchanged(etag: str, dated: str, headers: dict[str, str]) -> bool:
    """Return whether the client has the newest copy. An If-None-Match header has priority over If-Modified-Since (RFC
    9110, 13.1).
    """
    known = headers.get("if-none-match")
    if known is not None:
        return known == "*" or f'"{etag}"' in known.replace("W/", "").replace(" ", "").split(",")
    since = headers.get("if-modified-since")
    if not since or not dated:
        return False
    try:
        return since == dated or parsedate_to_datetime(dated) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False  # a header without a date, or without a time zone, is ignored


def bind_sites(
    count: int, *, port: int = 0, layout: str = "addresses", first: str = "127.0.1.1"
) -> list[socket.socket]:
    """Return a bound socket per site, on successive addresses or on successive ports (`layout`).

    If `port` is 0, up to 20 ports are tried. Raises OSError if the port is taken.
    """
    if layout == "ports":
        return [_bind("127.0.0.1", port + i if port else 0) for i in range(count)]
    numbers = [int(n) for n in first.split(".")]
    start = numbers[1] << 16 | numbers[2] << 8 | numbers[3]
    hosts = [f"127.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(start, start + count)]
    for attempt in range(20):
        bound = [_bind(hosts[0], port)]
        try:
            bound += [_bind(host, bound[0].getsockname()[1]) for host in hosts[1:]]
        except OSError:
            _close(bound)
            if port or attempt == 19:
                raise
        else:
            return bound
    raise AssertionError("unreachable: the last attempt returns or raises")


def _close(sockets: list[socket.socket]) -> None:
    for bound in sockets:
        bound.close()


def _bind(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
