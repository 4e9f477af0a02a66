"""A web without sockets, for a crawl's own costs: a download handler that answers at once, a watch on next_request.

Site number n is ``http://10.x.y.z/`` with x.y.z the bytes of n, so no name has to be resolved. Each has no robots.txt
and `PAGES` pages: a home page that links to all of the others.
"""

from __future__ import annotations

import json
import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler

from webfountain.crawl.download_handler import FountainResponse
from webfountain.crawl.flight import flight_of
from webfountain.crawl.scheduler import FountainScheduler
from webfountain.records import FetchResult

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

HTML = (("content-type", "text/html"),)
TOOK_S = 0.000_1


def site(number: int) -> str:
    """Home page of a site."""
    return f"http://10.{number >> 16}.{number >> 8 & 255}.{number & 255}/"


def number_of(name: str) -> int:
    """The number of a site's name."""
    _, x, y, z = (int(part) for part in name.removeprefix("http://").split("."))
    return x << 16 | y << 8 | z


class NoIoHandler(BaseDownloadHandler):
    """Settings read: TEST_PAGES (of a site), TEST_COUNTS (file for how often each site's home page was asked)."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._counts = bytearray(1 << 17)
        self._file = Path(crawler.settings["TEST_COUNTS"])
        links = "".join(f'<a href="/{n}">page {n}</a>' for n in range(1, crawler.settings.getint("TEST_PAGES")))
        self._body = f"<title>A page</title><p>Words of a page.</p>{links}".encode()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """The answer, at once."""
        flight = flight_of(request)
        assert flight is not None
        fetch = flight.fetch
        if fetch.kind != "page":
            flight.fetched = FetchResult(fetch, time.time(), TOOK_S, 404, HTML, b"")
        else:
            self._counts[number_of(fetch.site)] += fetch.url.endswith("/")
            body = self._body + fetch.url.encode()
            flight.fetched = FetchResult(fetch, time.time(), TOOK_S, 200, HTML, body)
        fetched = flight.fetched
        return FountainResponse(request.url, fetched=fetched, status=fetched.status, body=fetched.body, request=request)

    async def close(self) -> None:
        """Tell the counts, unless it is the instance of the scheme that was not used."""
        if any(self._counts):
            self._file.write_bytes(self._counts)


class NextRequestTimes:
    """An extension: thread CPU seconds of each `next_request` of the scheduler, as quantiles in the file TEST_TIMES."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = array("d")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Put a watch around the scheduler's method."""
        observed = cls(Path(crawler.settings["TEST_TIMES"]))
        plain, seconds, clock = FountainScheduler.next_request, observed._seconds, time.thread_time

        def next_request(self: FountainScheduler) -> Request | None:
            before = clock()
            request = plain(self)
            seconds.append(clock() - before)
            return request

        FountainScheduler.next_request = next_request  # type: ignore[method-assign]
        crawler.signals.connect(observed.write, signals.engine_stopped)
        return observed

    def write(self) -> None:
        """Median, 99th percentile and number of calls."""
        ranked = sorted(self._seconds)
        found = {"calls": len(ranked), "median": ranked[len(ranked) // 2], "p99": ranked[len(ranked) * 99 // 100]}
        self._file.write_text(json.dumps(found))
