"""A small HTTP/1.1 server on loopback for a `Web`: keep-alive, HEAD, conditional GET, an access log, a truth.

Place in the walk: the other end of the socket, for the demo and the tests; standard library only, so that its
process starts at once and costs the benchmark little. Every site has an address of its own (127.0.1.1,
127.0.1.2, …) on one port, or with ``layout="ports"`` a port of its own on 127.0.0.1.

Bounded: request heads, pipelined input, connections, idle time and the log in memory. It is honest (hostile
servers live in the tests) and it speaks no TLS.

What a web on loopback is to the server that speaks HTTP for it: a clock, answers and a truth. Place in the walk:
before it; this is the outside world that the demo and the tests crawl. A web knows neither sockets nor headers, and
it never reads a clock: *web time* is an argument, in whatever unit the web counts (periods for the generated web,
seconds for recorded pages).

A web's server as a process of its own: run, asked for its truth and its log, and ended: how the demo and the tests
hold the outside world in their hand. `freshness` and `overlaps` judge a crawl by what the server itself says. It ends
only the process that it started.

Run a web's server as a process of its own: options, the line that says it is ready, admin paths, the end. Place in
the walk: between a web and who watches it (`ServerProcess`). The ready line is one JSON object with ``urls`` (home page
of each site), ``admin`` (base URL), ``token``, ``pid``, ``clock``. The admin paths, on every site and only with the
token, are ``/_truth`` (now, or at UTC second ``at=``), ``/_log`` (from visit ``after=``) and ``/_stats``. The process
ends on SIGTERM, SIGINT or, with ``--until-stdin-closes``, with its parent.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import hmac
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache, partial
from heapq import nsmallest
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TextIO
from urllib.parse import parse_qs, urlencode, urlsplit

from webfountain.errors import WebfountainError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "HTML",
    "Answer",
    "DemoServer",
    "Log",
    "LoggedVisit",
    "ServedConnection",
    "Server",
    "ServerProcess",
    "Truth",
    "Web",
    "WebClock",
    "add_serving_options",
    "arguments_of",
    "bases_of",
    "bind_sites",
    "freshness",
    "http_date",
    "overlaps",
    "ready_line",
    "run_server",
    "until_stopped",
]

HTML = "text/html; charset=utf-8"


class Answer(NamedTuple):
    """One answer of a web. ``changed`` is the web time of the last change, None where no date is told."""

    status: int
    body: bytes = b""
    etag: str = ""
    changed: float | None = None
    location: str = ""
    media_type: str = HTML


class Web(Protocol):
    """Sites that can be asked. Pure: equal arguments give equal answers, in any order of asking."""

    def respond(self, site: int, path: str, t: float) -> Answer:
        """The answer of site number `site` to a path (with its query) at web time `t`."""
        ...

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """URL and hex SHA-1 of the body of every page that exists at `t` and that links reach at `t`."""
        ...


class WebClock(NamedTuple):
    """Web time runs from `origin` at UTC second `started`, `rate` web units a second; rate 0 stops it."""

    origin: float
    rate: float
    started: float

    @classmethod
    def start(cls, origin: float, rate: float) -> WebClock:
        """A clock that runs from now on; one that stands does so since a minute, so that all changes have a date."""
        return cls(origin, rate, time.time() - (0 if rate else 60))

    def web(self, utc: float) -> float:
        """Web time at a UTC second."""
        return self.origin + (utc - self.started) * self.rate

    def utc(self, t: float) -> float:
        """UTC second of a web time; with time stopped, one web unit before the origin counts as a second."""
        return self.started + (t - self.origin) / (self.rate or 1.0)


@lru_cache(maxsize=4096)
def http_date(second: int) -> str:
    """The date form of RFC 9110, section 5.6.7."""
    return formatdate(second, usegmt=True)


_MAX_HEAD: Final = 32_768
_MAX_CONNECTIONS: Final = 4_000
_IDLE_SECONDS: Final = 120.0
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class LoggedVisit(NamedTuple):
    """One request served: UTC seconds of its first byte and of the last byte handed over.

    ``busy`` counts the other requests that its site was serving when this one came.
    """

    site: str
    path: str
    status: int
    start: float
    end: float
    busy: int
    sent: int


class Log:
    """The last `size` visits in memory; `record` is called with every one."""

    def __init__(self, size: int, *, record: Callable[[LoggedVisit], object] | None = None) -> None:
        self.visits: deque[LoggedVisit] = deque(maxlen=size)
        self.served = 0
        self._record = record

    def note(self, visit: LoggedVisit) -> None:
        """Enter a visit."""
        self.served += 1
        self.visits.append(visit)
        if self._record is not None:
            self._record(visit)

    def tail(self, after: int) -> list[LoggedVisit]:
        """The visits from number `after` on, as far as they are still in memory."""
        skip = max(0, after - (self.served - len(self.visits)))
        return list(islice(self.visits, skip, None))


class Server:
    """Serves `web`, whose site number i is `bases[i]`, at the web time that `clock` gives.

    latency: seconds before each answer, so that requests take time and can be seen to overlap.
    gzip_bodies: use the gzip content coding where the client takes it.
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
        """Close the connections that have been silent for too long."""
        limit = time.time() - _IDLE_SECONDS
        for connection in [c for c in self.open if c.last < limit]:
            connection.close()

    def make_room(self) -> None:
        """Close a tenth of all connections, those that have been silent for longest."""
        silent = [c for c in self.open if not c.serving and c.start]
        for connection in nsmallest(_MAX_CONNECTIONS // 10, silent, key=lambda c: c.last):
            connection.close()

    def answer(self, site: int, path: str, utc: float) -> Answer:
        """What the web says now, or what the admin path says to who knows its token."""
        if path.startswith("/_") and self.admin is not None:
            body = self.admin(self, path)
            if body is not None:
                return Answer(200, body, media_type="application/json")
        return self.web.respond(site, path, self.clock.web(utc))


class ServedConnection(asyncio.Protocol):
    """One client's connection to one site: requests in, answers out, strictly in turn."""

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
        """Serve the buffered requests until one has to wait, then be called again."""
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
        """Answer the request in service, log it, go on with the next one."""
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
        """Status, head and body of the answer."""
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
        """No date for a change of the running second: a later one in it would look the same (RFC 9110, 8.8.2)."""
        if answer.changed is None:
            return ""
        second = int(self.server.clock.utc(answer.changed) // 1)
        return http_date(second) if second < int(utc) else ""

    def _encode(self, body: bytes, headers: dict[str, str]) -> tuple[bytes, str]:
        if not self.server.gzip_bodies or not body or "gzip" not in headers.get("accept-encoding", ""):
            return body, ""
        return gzip.compress(body, 1), "\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding"


def _unchanged(etag: str, dated: str, headers: dict[str, str]) -> bool:
    """Whether the client has the newest copy; If-None-Match, where given, decides alone (RFC 9110, 13.1)."""
    known = headers.get("if-none-match")
    if known is not None:
        return known == "*" or f'"{etag}"' in known.replace("W/", "").replace(" ", "").split(",")
    since = headers.get("if-modified-since")
    if not since or not dated:
        return False
    try:
        return since == dated or parsedate_to_datetime(dated) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False  # no date, or one without a zone: as if it was not given


def bind_sites(
    count: int, *, port: int = 0, layout: str = "addresses", first: str = "127.0.1.1"
) -> list[socket.socket]:
    """A bound socket per site: addresses from `first` on at one port, or successive free ports of 127.0.0.1.

    Raises: OSError, where the port is taken; a free one is looked for up to 20 times when `port` is 0.
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


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """The options that every web's server has."""
    add = parser.add_argument
    add("--port", type=int, default=0, help="port of all addresses; 0 looks for a free one")
    add("--layout", choices=("addresses", "ports"), default="addresses", help="what tells the sites apart")
    add("--first", default="127.0.1.1", help="address of the first site")
    add("--latency", type=float, default=0.0, help="seconds before each answer")
    add("--gzip", action="store_true", help="compress bodies for clients that take gzip")
    add("--log", type=Path, help="append every visit to this file, one JSON object a line")
    add("--log-size", type=int, default=200_000, help="visits kept in memory")
    add("--until-stdin-closes", action="store_true", help="end when the standard input closes")


def bases_of(sockets: list[socket.socket]) -> list[str]:
    """``http://ADDRESS:PORT`` of each bound socket."""
    return ["http://{}:{}".format(*bound.getsockname()) for bound in sockets]


def run_server(
    options: argparse.Namespace, sites: int, make_web: Callable[[list[str], WebClock], Web], clock: WebClock
) -> None:
    """Bind, build the web that knows its own URLs, serve until told to end."""
    sockets = bind_sites(sites, port=options.port, layout=options.layout, first=options.first)
    bases = bases_of(sockets)
    web = make_web(bases, clock)
    token = secrets.token_urlsafe(16)
    record = None
    if options.log is not None:
        log = options.log.open("a", buffering=1)
        record = partial(_write_line, log)
    server = Server(
        web,
        clock,
        bases,
        latency=options.latency,
        gzip_bodies=options.gzip,
        log=Log(options.log_size, record=record),
        admin=partial(_admin, token),
    )
    gc.freeze()  # what is built stays: without this each full collection walks all pages
    ready = ready_line(bases, token, clock=clock)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, sockets, ready, end_with_stdin=options.until_stdin_closes))


def ready_line(bases: list[str], token: str, **more: object) -> str:
    """The JSON object that says where a server listens."""
    urls = [f"{base}/" for base in bases]
    return json.dumps({"urls": urls, "admin": bases[0], "token": token, "pid": os.getpid(), **more})


async def _serve(server: Server, sockets: list[socket.socket], ready: str, *, end_with_stdin: bool) -> None:
    listeners = await server.listen(sockets)
    sys.stdout.write(ready + "\n")
    sys.stdout.flush()
    sweeping = asyncio.create_task(_sweep(server))
    await until_stopped(end_with_stdin=end_with_stdin)
    sweeping.cancel()
    for listener in listeners:
        listener.close()


async def _sweep(server: Server) -> None:
    while True:
        await asyncio.sleep(10)
        server.sweep()


async def until_stopped(*, end_with_stdin: bool) -> None:
    """Return at SIGTERM, SIGINT or the end of the standard input."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, told.set)
    if end_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _end_with_stdin, told)
    await told.wait()
    if end_with_stdin:
        loop.remove_reader(sys.stdin.fileno())


def _end_with_stdin(told: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        told.set()


def _admin(token: str, server: Server, path: str) -> bytes | None:
    """The body of an admin path, None for one without the token."""
    split = urlsplit(path)
    query = {key: values[0] for key, values in parse_qs(split.query).items()}
    if not hmac.compare_digest(query.get("token", "").encode(), token.encode()):
        return None
    if split.path == "/_truth":
        at = float(query.get("at") or time.time())
        t = server.clock.web(at)
        return json.dumps({"at": at, "t": t, "pages": dict(server.web.truth(t))}).encode()
    if split.path == "/_log":
        return json.dumps(server.log.tail(int(query.get("after", "0")))).encode()
    if split.path == "/_stats":
        stats = {"served": server.log.served, "open": len(server.open), "cpu_seconds": time.process_time()}
        return json.dumps(stats).encode()
    return None


def _write_line(log: TextIO, visit: LoggedVisit) -> None:
    log.write(json.dumps(visit._asdict()) + "\n")


_ROOT = Path(__file__).resolve().parents[2]


class Truth(NamedTuple):
    """What a perfect copy would hold at UTC second `at`, web time `t`: hex SHA-1 of the body, by URL."""

    at: float
    t: float
    pages: dict[str, str]


class ServerProcess:
    """``python -m MODULE ARGUMENTS``, ready when the constructor returns; a context manager that ends it.

    Raises: WebfountainError, where the process ends before it is ready (its words are on standard error).
    """

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module, "--until-stdin-closes", *arguments]
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise WebfountainError(f"{module} ended with status {self._process.returncode} before it was ready")
        self.ready: dict[str, Any] = json.loads(line)

    @property
    def urls(self) -> list[str]:
        """Home page of each site."""
        return list(self.ready["urls"])

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @property
    def clock(self) -> WebClock:
        """Maps UTC seconds to the web's time and back."""
        return WebClock(*self.ready["clock"])

    def ask(self, path: str, **query: object) -> Any:
        """The JSON document of an admin path."""
        where = urlsplit(self.ready["admin"])
        connection = HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            connection.request("GET", f"{path}?{urlencode({'token': self.ready['token'], **query})}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def truth(self, at: float | None = None) -> Truth:
        """Every page that exists and can be reached, now or at UTC second `at`."""
        return Truth(**self.ask("/_truth", **({} if at is None else {"at": repr(at)})))

    def log(self, after: int = 0) -> list[LoggedVisit]:
        """The visits so far in the order of their ends, from number `after` on."""
        return [LoggedVisit(*fields) for fields in self.ask("/_log", after=after)]

    def stats(self) -> dict[str, float]:
        """``served`` visits, ``open`` connections and the server's own ``cpu_seconds``."""
        return dict(self.ask("/_stats"))

    def stop(self) -> None:
        """End the process; a second call has no effect."""
        process = self._process
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class DemoServer(ServerProcess):
    """The generated web as a process; an option is one of ``python -m webfountain.demo.web`` with underscores.

    ``DemoServer(seed=1, sites=3, pages=60, period=0, latency=0.002)``; True stands for an option without value.
    """

    def __init__(self, **options: object) -> None:
        super().__init__("webfountain.demo.web", *arguments_of(options))


def arguments_of(options: Mapping[str, object]) -> list[str]:
    """Command line arguments of keyword options."""
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value is not None and value is not False
    ]


def freshness(truth: Truth, digests: Mapping[str, str | None]) -> float:
    """Share of the true pages whose digest (hex SHA-1, by URL) is the true one; 1.0 where there are none."""
    if not truth.pages:
        return 1.0
    return sum(digests.get(url) == digest for url, digest in truth.pages.items()) / len(truth.pages)


def overlaps(visits: Iterable[LoggedVisit]) -> list[tuple[LoggedVisit, LoggedVisit]]:
    """Pairs of visits to one site that were in service at the same time, each with the one it met."""
    last: dict[str, LoggedVisit] = {}
    found = []
    for visit in sorted(visits, key=lambda visit: visit.start):
        before = last.get(visit.site)
        if before is not None and visit.start < before.end:
            found.append((before, visit))
        if before is None or visit.end > before.end:
            last[visit.site] = visit
    return found
