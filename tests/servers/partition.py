"""A connection to a server that can be cut like a network that loses all packets, and sites with slow pages."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

__all__ = ["CuttableWay", "SlowSites", "Transfer", "overlaps"]


class _InThread:
    """A context manager that runs an event loop in a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # who is killed leaves in the middle of a line
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []

    def _call(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30.0)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        raise NotImplementedError

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class CuttableWay(_InThread):
    """A loopback port that forwards bytes to another port, and back. While the way is cut, connections and bytes are
    accepted, but not forwarded. After the repair, the waiting bytes are forwarded.
    """

    def __init__(self, target: int) -> None:
        super().__init__()
        self._target = target
        self._whole = asyncio.Event()
        self._whole.set()
        self.port = 0

    def cut(self) -> None:
        """Forward nothing from now on."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Go on."""
        self._loop.call_soon_threadsafe(self._whole.set)

    async def _open(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._whole.wait()
            inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await asyncio.gather(self._pass_on(reader, outer), self._pass_on(inner, writer))
            finally:
                outer.transport.abort()
        finally:
            writer.transport.abort()

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                await self._whole.wait()
                target.write(data)
                await target.drain()
        await self._whole.wait()
        target.close()


class Transfer(NamedTuple):
    """A request of a page, from its arrival until all bytes were sent or the client was gone. Monotonic seconds."""

    site: str
    address: str
    path: str
    client: str
    """The User-Agent, which names the ant."""
    began: float
    ended: float
    whole: bool


class SlowSites(_InThread):
    """Sites that each have their own loopback address. A page takes `page_s` seconds, and has two links."""

    def __init__(self, sites: int, *, page_s: float, pages: int) -> None:
        super().__init__()
        self._addresses = [f"127.0.3.{number + 1}" for number in range(sites)]
        self.page_s = page_s
        self._pages = pages
        self._port = 0
        self.transfers: list[Transfer] = []
        self.under_way: defaultdict[str, int] = defaultdict(int)
        """Number of current requests, by client."""

    @property
    def urls(self) -> list[str]:
        """The first page of each site."""
        return [f"http://{address}:{self._port}/0" for address in self._addresses]

    async def _open(self) -> None:
        self._port = 0
        for address in self._addresses:
            server = await asyncio.start_server(self._serve, address, self._port)
            self._servers.append(server)
            self._port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), _closed(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                if not path[1:].isdigit():
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                    continue
                await self._send_page(reader, writer, path, fields)
                await writer.drain()
                return

    async def _send_page(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, fields: dict[str, str]
    ) -> None:
        number, client, began, whole = int(path[1:]), fields["User-Agent"], time.monotonic(), False
        links = "".join(f"<a href=/{next_}>x</a>" for next_ in (2 * number + 1, 2 * number + 2) if next_ < self._pages)
        body = f"<title>{path}</title>{links}".encode()
        gone = asyncio.ensure_future(reader.read(1))
        self.under_way[client] += 1
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body))
            done, _ = await asyncio.wait([gone], timeout=self.page_s)
            whole = not done
            if whole:
                writer.write(body)
                await writer.drain()
        finally:
            gone.cancel()
            self.under_way[client] -= 1
            address = writer.get_extra_info("sockname")[0]
            site = fields["Host"]
            self.transfers.append(Transfer(site, address, path, client, began, time.monotonic(), whole))


@contextlib.contextmanager
def _closed(writer: asyncio.StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.close()


def overlaps(transfers: list[Transfer], by: Callable[[Transfer], str]) -> list[tuple[Transfer, Transfer]]:
    """Return the pairs of transfers of one site that overlapped in time."""
    groups: defaultdict[str, list[Transfer]] = defaultdict(list)
    for transfer in sorted(transfers, key=lambda each: each.began):
        groups[by(transfer)].append(transfer)
    return [(a, b) for group in groups.values() for a, b in pairwise(group) if b.began < a.ended]
