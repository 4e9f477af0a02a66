"""Serve each hostile behaviour on its own loopback address (127.0.2.1, 127.0.2.2, …), at one port.

Each site has a home page that links to ``/bad``, the page with the behaviour, and to ``/good``, an ordinary page. The
behaviour of ``/bad`` must not keep a crawler from ``/good``. The site ``plain`` only has ordinary pages.
``HostileServer("gzip-bomb", "silence")`` serves these two sites and ``plain``. Without names, all sites are served.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.servers import markup, pages, redirects, robots, wire
from tests.servers.behaviours import BEHAVIOURS, Ask, Behaviour, send
from webfountain.lab.demo.process import ServerProcess
from webfountain.lab.demo.server import Log, LoggedVisit, bind_sites
from webfountain.lab.demo.serving import bases_of, ready_line, until_stopped

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

__all__ = ["BEHAVIOURS", "HostileServer"]

TOKEN = "hostile"  # nothing here is worth guarding; the paths only must not be met by chance
_ROOMS = (markup, pages, redirects, robots, wire)  # imported for what they enter into BEHAVIOURS
_HOME = '<title>Home</title><p>A site.</p><a href="/bad">bad</a> <a href="/good">good</a>'


class Hostile:
    """Answers the requests for all sites. `names[i]` is the behaviour of the site `bases[i]`."""

    def __init__(self, names: Sequence[str], bases: Sequence[str]) -> None:
        self.sites = dict(zip(names, bases, strict=True))
        self.log = Log(200_000)
        self._asked: Counter[tuple[str, str]] = Counter()
        self._busy: Counter[str] = Counter()

    async def serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            start = time.time()
            line, *fields = head.decode("latin-1").split("\r\n")
            headers = {key.lower(): value.strip() for key, _, value in (field.partition(":") for field in fields)}
            await self._answer(name, line.split(" ")[1], headers, start, reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(
        self,
        name: str,
        path: str,
        headers: dict[str, str],
        start: float,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if path.startswith("/_log"):
            await send(writer, json.dumps(self.log.tail(int(parse_qs(urlsplit(path).query)["after"][0]))))
            return
        self._asked[name, path] += 1
        busy = self._busy[name]
        self._busy[name] += 1
        ask = Ask(path, headers, self.sites[name], self.sites, self._asked[name, path])
        try:
            await _while_connected(reader, self._act(BEHAVIOURS.get(name), ask, writer))
        finally:
            self._busy[name] -= 1
            self.log.note(LoggedVisit(self.sites[name], path, 0, start, time.time(), busy, 0))

    async def _act(self, behaviour: Behaviour | None, ask: Ask, writer: asyncio.StreamWriter) -> None:
        """Carry out the behaviour on its paths, and answer other requests normally."""
        if behaviour is not None and ask.path.startswith(behaviour.place):
            await behaviour.act(ask, writer)
        elif ask.path == "/robots.txt":
            named = behaviour is not None and behaviour.place == robots.SITEMAP
            rules = f"User-agent: *\nAllow: /\nSitemap: {ask.base}/sitemap.xml\n" if named else ""
            await send(writer, rules, status="200 OK" if named else "404 Not Found", media_type="text/plain")
        elif ask.path.startswith("/back?to="):
            await send(writer, b"", f"Location: {ask.path.removeprefix('/back?to=')}", status="302 Found")
        elif ask.path in ("/", "/good", "/bad"):
            await send(writer, _HOME if ask.path == "/" else f"<title>{ask.path}</title><p>A good page.</p>")
        else:
            await send(writer, "<p>nothing here</p>", status="404 Not Found")


async def _while_connected(reader: asyncio.StreamReader, act: Coroutine[None, None, None]) -> None:
    """Act to the end, or until the client closes the connection, so that the log has the time."""
    acting = asyncio.ensure_future(act)
    leaving = asyncio.ensure_future(_gone(reader))
    try:
        await asyncio.wait({acting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if acting.done():
            acting.result()
    finally:
        for task in (acting, leaving):
            task.cancel()
        await asyncio.gather(acting, leaving, return_exceptions=True)


async def _gone(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(65_536):
            pass


class HostileServer(ServerProcess):
    """A server process for the named behaviours, or for all. ``sites`` maps the name of a behaviour to the URL of its
    site.
    """

    def __init__(self, *names: str) -> None:
        super().__init__("tests.servers.hostile", *names)

    @property
    def sites(self) -> dict[str, str]:
        """The home page of each site, by name."""
        return dict(zip(self.ready["names"], self.urls, strict=True))

    def visits(self, name: str) -> list[LoggedVisit]:
        """Return the requests of a site, in the order in which they ended, without status."""
        base = self.sites[name].rstrip("/")
        return [visit for visit in self.log() if visit.site == base]


async def _run(options: argparse.Namespace) -> None:
    names = ["plain", *(options.names or sorted(BEHAVIOURS))]
    for name in names[1:]:
        if (body := BEHAVIOURS[name].body) is not None:
            body()
    sockets = bind_sites(len(names), port=options.port, first="127.0.2.1")
    bases = bases_of(sockets)
    hostile = Hostile(names, bases)
    for name, bound in zip(names, sockets, strict=True):
        await asyncio.start_server(partial(hostile.serve, name), sock=bound, limit=65_536)
    sys.stdout.write(ready_line(bases, TOKEN, names=names) + "\n")
    sys.stdout.flush()
    await until_stopped(end_with_stdin=options.until_stdin_closes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers.hostile")
    parser.add_argument("names", nargs="*", metavar="BEHAVIOUR", help=", ".join(sorted(BEHAVIOURS)))
    parser.add_argument("--port", type=int, default=0, help="port of all addresses; 0 looks for a free one")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when the standard input closes")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(BEHAVIOURS)
    if unknown:
        parser.error(f"no behaviour is called {', '.join(sorted(unknown))}")
    asyncio.run(_run(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
