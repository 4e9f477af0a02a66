"""The filter that drops duplicate requests of a Scrapy project before they reach the frontier.

By default, the filter drops only repetitions of requests that the spider yielded recently; the store drops older
duplicates a moment later. If the project sets its own DUPEFILTER_CLASS, that class alone decides which requests are
dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import build_from_crawler, load_object

from webfountain.crawl.scrapy_redis import SeenFingerprints

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.http import Request

__all__ = ["Duplicates"]


class Duplicates:
    """The duplicate filter of one run. The filter remembers the last `size` requests for http and https, and all
    requests for other schemes.

    Settings read: DUPEFILTER_CLASS, DUPEFILTER_DEBUG.
    """

    def __init__(self, crawler: Crawler, *, size: int) -> None:
        self._crawler = crawler
        self._size = size
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        self.earlier = SeenFingerprints(b"")
        """The requests that scrapy-redis has seen."""
        kind = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self.decides = kind is not RFPDupeFilter
        """True if the project has set a DUPEFILTER_CLASS of its own."""
        if self.decides:
            self._filter: BaseDupeFilter = build_from_crawler(kind, crawler)
        else:
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            self._filter = RFPDupeFilter(debug=debug, fingerprinter=crawler.request_fingerprinter)

    async def open(self) -> None:
        await ensure_awaitable(self._filter.open())

    async def close(self, reason: str) -> None:
        await ensure_awaitable(self._filter.close(reason))

    def holds(self, request: Request, *, web: bool) -> bool:
        """Return whether to drop a request because an equal request came before. Remember the request if it is not
        dropped.

        `web` is True for http and https; the filter may forget such requests, because the store remembers them.
        """
        if request.dont_filter or not (self._knows(request, web=web) or self.earlier.holds(request)):
            return False
        self.log(request)
        return True

    def log(self, request: Request) -> None:
        assert self._crawler.spider is not None
        self._filter.log(request, self._crawler.spider)

    def _knows(self, request: Request, *, web: bool) -> bool:
        if self.decides or not web:
            return self._filter.request_seen(request)
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        if fingerprint in self._recent:
            return True
        self._recent[fingerprint] = None
        if len(self._recent) > self._size:
            self._recent.popitem(last=False)
        return False
