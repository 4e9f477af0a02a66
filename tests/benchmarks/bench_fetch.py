"""Measure the CPU time of a fetch: our own, and another project's request through our handler and through Scrapy's
handler.

``python -m tests.benchmarks.bench_fetch [--rounds N] [--json]``

A server in another process sends a page of 20 KB, plain and gzip, over kept connections. The three ways take turns in
rounds of 200 fetches, and the median round counts. Engine and middlewares are left out. Our costs are compared with the
cost of Scrapy's handler in the same run. Most of our cost is asyncio (socket, selector), and most of Scrapy's cost is
Twisted's HTTP client.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import ssl
import statistics
import time
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler

from webfountain.clock import SystemClock
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher, terms_of
from webfountain.download.resolver import Resolver
from webfountain.policy.tables import NetworkTable, PolitenessTable
from webfountain.records import Fetch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection

MOST = {"own": 0.5, "project": 1.0}
"""Largest cost of each way, as a share of the cost of Scrapy's handler."""
ROUND = 200
BODY = b"".join(b"<p>Paragraph %d of a page.</p>\n" % number for number in range(600))
HEAD = """HTTP/1.1 200 OK
Server: nginx
Date: Sun, 22 Nov 2026 07:00:00 GMT
Content-Type: text/html; charset=utf-8
Connection: keep-alive
Vary: Accept-Encoding
ETag: "5f3c-1"
Last-Modified: Sun, 22 Nov 2026 06:00:00 GMT
Cache-Control: max-age=60
""".replace("\n", "\r\n")


class Server(asyncio.Protocol):
    """A server that sends one answer for each piece of bytes."""

    answers = (
        f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY,
        f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(gzip.compress(BODY))}\r\n\r\n".encode()
        + gzip.compress(BODY),
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.answers[data.startswith(b"GET /packed")])


def serve(port: Connection) -> None:
    """Run the server."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(run())


async def measure(base: str, rounds: int) -> dict[str, dict[str, float]]:
    """Return the microseconds of CPU of a fetch, by page and way."""
    crawler = get_crawler(Spider)
    crawler.spider = crawler._create_spider("bench")
    handlers = {
        "project": "webfountain.crawl.download_handler.FountainDownloadHandler",
        "scrapy": crawler.settings.getdict("DOWNLOAD_HANDLERS_BASE")["http"],
    }
    built = {name: build_from_crawler(load_object(path), crawler) for name, path in handlers.items()}
    pool, resolver = ConnectionPool(ssl.create_default_context), Resolver()
    fetcher = Fetcher(pool, SystemClock(), resolver.resolve)
    terms = terms_of(PolitenessTable(), NetworkTable(allow_private=True), lambda *_: 0.0)

    async def own(url: str) -> int:
        fetched = await fetcher.fetch(Fetch(1, "page", url, base, "127.0.0.1"), terms)
        return len(fetched.body)

    def by_handler(name: str) -> Callable[[str], Awaitable[int]]:
        async def ask(url: str) -> int:
            return len((await built[name].download_request(Request(url))).body)

        return ask

    ways = {"own": own, "project": by_handler("project"), "scrapy": by_handler("scrapy")}
    found: dict[str, dict[str, list[float]]] = {page: {way: [] for way in ways} for page in ("plain", "packed")}
    for page, costs in found.items():
        url = f"{base}/{page}"
        for number in range(rounds + 1):  # the first warms up
            for way, ask in ways.items():
                before = time.process_time()
                for _ in range(ROUND):
                    assert await ask(url) > 1000
                if number:
                    costs[way].append(1e6 * (time.process_time() - before) / ROUND)
    for handler in built.values():
        await handler.close()
    pool.close()
    resolver.close()
    return {page: {way: statistics.median(each) for way, each in costs.items()} for page, costs in found.items()}


def main() -> int:
    """Print the costs and their ratios. Return 1 if a way costs more than its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor as installed

    reactor: Any = installed  # a module to mypy, of which the interface's methods lack their self

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    base = f"http://127.0.0.1:{ours.recv()}"
    loop = asyncio.get_event_loop()
    found: dict[str, dict[str, float]] = {}

    async def run() -> None:
        try:
            found.update(await measure(base, chosen.rounds))
        finally:
            reactor.stop()

    task: list[asyncio.Task[None]] = []
    reactor.callWhenRunning(lambda: task.append(loop.create_task(run())))
    reactor.run()
    task[0].result()
    process.terminate()
    process.join()
    ratios = {page: {way: costs[way] / costs["scrapy"] for way in MOST} for page, costs in found.items()}
    if chosen.json:
        print(json.dumps({"us_per_fetch": found, "share_of_scrapys_handler": ratios}, indent=1))
    else:
        for page, costs in found.items():
            line = ", ".join(f"{way} {cost:.0f} µs" for way, cost in costs.items())
            shares = ", ".join(f"{way} {share:.2f}" for way, share in ratios[page].items())
            print(f"{page}: {line}; share of Scrapy's handler: {shares}")
    return int(any(share > MOST[way] for shares in ratios.values() for way, share in shares.items()))


if __name__ == "__main__":
    raise SystemExit(main())
