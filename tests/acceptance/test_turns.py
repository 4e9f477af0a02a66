"""Turns by site in whole crawls over HTTP: hostile neighbours take little from a good site.

Two crawls run one after the other, several times. In the first, the good site has three ordinary neighbours. In the
second, three sites stand in their place whose pages, robots.txt and sitemaps cost seconds to read. Both crawls keep the
default politeness. What the good site is asked for and what is settled of it is compared.
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from contextlib import ExitStack
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest

from tests.acceptance.crawls import policy, records, run
from tests.formats.markup import MARKUP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = 15
LINKS = 3000
SITEMAPS, LISTED = 10, 1500
KEPT = 0.8
XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
RULES = "User-agent: *\n" + "".join(f"Disallow: /closed/{number}/\n" for number in range(1500))
"""A robots.txt that is long enough to be read in another process."""


class Answer(NamedTuple):
    """A body and its media type."""

    body: bytes
    kind: str = "text/html"
    packing: str | None = None


class _Server(ThreadingHTTPServer):
    """A server that is silent about clients that go."""

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address


class Site:
    """A site on an address of its own; each request is counted by its kind."""

    def __init__(self, address: str) -> None:
        self.asked: Counter[str] = Counter()
        self._guard = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                answer = site.counted(self.path)
                self.send_response(200)
                self.send_header("content-type", answer.kind)
                if answer.packing is not None:
                    self.send_header("content-encoding", answer.packing)
                self.send_header("content-length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = _Server((address, 0), Handler)
        self.base = f"http://{address}:{self._server.server_address[1]}"

    def counted(self, path: str) -> Answer:
        """The answer to a request, which is counted."""
        kind = "robots" if path == "/robots.txt" else "sitemap" if path.startswith("/map") else "page"
        with self._guard:
            self.asked[kind] += 1
            number = self.asked[kind]
        if kind == "robots":
            return Answer(f"{self.rules()}Sitemap: {self.base}/map\n".encode(), "text/plain")
        return self.sitemap(path) if kind == "sitemap" else self.page(number)

    def rules(self) -> str:
        """What robots.txt says before it names the sitemaps."""
        return RULES

    def page(self, number: int) -> Answer:
        """A page with many links, and with another text at each request."""
        words = " ".join(f"w{number * 37 + word}" for word in range(200))
        return Answer(f"<title>{number}</title>{words}{links(self.base)}".encode())

    def sitemap(self, path: str) -> Answer:
        """An index, or a sitemap whose pages no rule admits. Each is long enough to be read in another process."""
        if path == "/map":
            locs = "".join(f"<sitemap><loc>{self.base}/map{each}</loc></sitemap>" for each in range(SITEMAPS))
            return Answer(
                f"<sitemapindex {XMLNS}>{locs}<!--{'x' * 70_000}--></sitemapindex>".encode(), "application/xml"
            )
        locs = "".join(f"<url><loc>{self.base}{path}/{number}</loc></url>" for number in range(LISTED))
        return Answer(f"<urlset {XMLNS}>{locs}</urlset>".encode(), "application/xml")

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@cache
def links(base: str) -> str:
    """Links to the pages of a site, many to each."""
    return "".join(f'<a href="{base}/p{number % PAGES}#{number}">page {number}</a> ' for number in range(LINKS))


class HostileSite(Site):
    """A site of a markup that costs seconds to read, with a robots.txt and sitemaps of the same kind."""

    def __init__(self, address: str, markup: str) -> None:
        super().__init__(address)
        self._own = "".join(f'<a href="{self.base}/p{number}">x</a>' for number in range(200)).encode()
        self._page = MARKUP[markup](900_000).encode()
        others = "".join(f"User-agent: bot{number}\nDisallow: /{number}\n\n" for number in range(10_000))
        self._rules = f"{others}User-agent: *\nDisallow: /closed/\n"

    def rules(self) -> str:
        return self._rules

    def page(self, number: int) -> Answer:
        return Answer(b"<p>" + str(number).encode() + self._own + (self._page if number > 1 else b""))

    def sitemap(self, path: str) -> Answer:
        return super().sitemap(path) if path == "/map" else Answer(_ampersands(), "application/xml", "gzip")


@cache
def _ampersands() -> bytes:
    """50 MB of ampersands as 50 kB."""
    packed = zlib.compressobj(9, wbits=31)
    head = f"<urlset {XMLNS}><url><loc>".encode()
    return packed.compress(head) + b"".join(packed.compress(b"&" * 1_000_000) for _ in range(50)) + packed.flush()


class TurnCounts(NamedTuple):
    """What a crawl did for the good site."""

    settled: int
    changed: int
    robots: int
    sitemaps: int


def crawl(folder: Path, neighbours: Callable[[], list[Site]], seconds: int) -> TurnCounts:
    """Crawl the good site and its neighbours for some time."""
    folder.mkdir()
    with ExitStack() as stack:
        good = stack.enter_context(Site("127.77.0.1"))
        others = [stack.enter_context(site) for site in neighbours()]
        collection = policy(
            folder,
            [f"{site.base}/" for site in (good, *others)],
            politeness={"min_delay": "1s", "delay_factor": 10, "timeout": "20s"},
            cycle={"period": "30s"},
            changes={"diff": True},
            policies__default={"deny": ["/map"], "revisit": {"max_interval": "10s", "min_interval": "1s"}},
        )
        run(collection, folder / "store", f"--max-seconds={seconds}", seconds=seconds + 240)
        crowd = [each for each in others if isinstance(each, HostileSite)]
        assert sum(each.asked["page"] for each in crowd) >= 4 * len(crowd), "the hostile pages are asked for"
    own = [each for each in records(folder / "store") if each.url.startswith(good.base) and each.state == "crawled"]
    settled, changed = sum(1 + each.checks for each in own), sum(each.changes for each in own)
    return TurnCounts(settled, changed, good.asked["robots"], good.asked["sitemap"])


def hostile() -> list[Site]:
    markups = "attributes with greater-than signs", "list items in lists", "foster parents"
    return [HostileSite(f"127.77.0.{place}", markup) for place, markup in enumerate(markups, 2)]


def ordinary() -> list[Site]:
    return [Site(f"127.77.0.{place}") for place in range(2, 5)]


@pytest.mark.soak
def test_a_good_site_keeps_four_fifths_beside_hostile_ones(tmp_path: Path) -> None:
    """Medians of interleaved crawls, of settled pages, changes, and reads of robots.txt and sitemaps."""
    beside: dict[Callable[[], list[Site]], list[TurnCounts]] = {ordinary: [], hostile: []}
    for number in range(3):
        for neighbours, found in beside.items():
            found.append(crawl(tmp_path / f"{neighbours.__name__}-{number}", neighbours, seconds=90))
            print(neighbours.__name__, found[-1])
    for kind in TurnCounts._fields:
        usual, kept = (median(getattr(each, kind) for each in found) for found in beside.values())
        assert usual > 0, kind
        assert kept >= KEPT * usual, (kind, beside)
