"""Many small sites on few addresses, served from a thread of the test, with a log of all requests.

A site is one port of an address. Its root page links all its pages, and no page changes. The log shows a crawl as
servers see it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Town", "Visit"]


class Visit(NamedTuple):
    """A request, with the monotonic seconds of its arrival and of the last byte of its answer."""

    address: str
    port: int
    path: str
    start: float
    end: float

    @property
    def url(self) -> str:
        """The requested URL."""
        return f"http://{self.address}:{self.port}{self.path}"


class _Door(asyncio.Protocol):
    """A connection, which answers one request after the other, each after the latency."""

    def __init__(self, town: Town, address: str, port: int) -> None:
        self._town, self._address, self._port = town, address, port
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            answer = partial(self._answer, path, time.monotonic())
            asyncio.get_running_loop().call_later(self._town.latency, answer)

    def _answer(self, path: str, start: float) -> None:
        assert self._transport is not None
        status, body = self._town.page(path)
        head = f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\n\r\n"
        self._town.visits.append(Visit(self._address, self._port, path, start, time.monotonic()))
        if not self._transport.is_closing():
            self._transport.write(head.encode() + body)


class Town:
    """A context manager for `addresses` with `ports` sites each, of `pages` pages."""

    def __init__(self, addresses: Sequence[str], ports: int, pages: int, *, latency: float = 0.005) -> None:
        self.latency = latency
        self.visits: list[Visit] = []
        self.urls: list[str] = []
        self._addresses, self._ports, self._pages = addresses, ports, pages
        links = "".join(f'<a href="/p{number}">{number}</a>' for number in range(1, pages))
        self._root = f"<title>root</title>{links}".encode()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="town")

    def page(self, path: str) -> tuple[str, bytes]:
        """Return status and body."""
        if path == "/":
            return "200 OK", self._root
        if path.startswith("/p") and path[2:].isdigit() and 0 < int(path[2:]) < self._pages:
            return "200 OK", f"<title>{path}</title><p>page {path} of this site".encode()
        return "404 Not Found", b""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        servers = self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        for server in servers:
            server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _door(self, address: str, port: list[int]) -> Callable[[], _Door]:
        return lambda: _Door(self, address, port[0])

    async def _listen(self) -> list[asyncio.Server]:
        servers = []
        for address in self._addresses:
            for _ in range(self._ports):
                door: list[int] = []
                server = await self._loop.create_server(self._door(address, door), address, 0)
                door.append(server.sockets[0].getsockname()[1])
                self.urls.append(f"http://{address}:{door[0]}/")
                servers.append(server)
        return servers
