"""Which requests of another project's spider are duplicates: by the project's own filter, or by ours.

Place in the walk: in add-on mode before its door. With Scrapy's default filter the store decides, across runs; what
came lately in this run is dropped here, so that the engine says so as ever (signal `request_dropped`, stat
`dupefilter/filtered`). A DUPEFILTER_CLASS of the project's own decides alone: what it lets through is a request of
its own, whatever the store knows.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter

__all__ = ["Duplicates"]


class Duplicates:
    """The duplicate filter of one run. `size`: web requests that are remembered; all others are.

    Settings read: DUPEFILTER_CLASS, DUPEFILTER_DEBUG.
    """

    def __init__(self, crawler: Crawler, *, size: int) -> None:
        self._crawler = crawler
        self._size = size
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        kind = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self.decides = kind is not RFPDupeFilter
        """Whether the project's own filter decides, and nobody else."""
        if self.decides:
            self._filter: BaseDupeFilter = build_from_crawler(kind, crawler)
        else:
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            self._filter = RFPDupeFilter(debug=debug, fingerprinter=crawler.request_fingerprinter)

    async def open(self) -> None:
        """The crawl begins."""
        if (opening := self._filter.open()) is not None:
            await maybe_deferred_to_future(opening)

    async def close(self, reason: str) -> None:
        """The crawl is over."""
        if (closing := self._filter.close(reason)) is not None:
            await maybe_deferred_to_future(closing)

    def holds(self, request: Request, *, web: bool) -> bool:
        """Whether a request is to be dropped as one that came before; remembers it if not. `web`: the store knows its
        kind, so that it may be forgotten here."""
        if request.dont_filter or not self._knows(request, web=web):
            return False
        assert self._crawler.spider is not None
        self._filter.log(request, self._crawler.spider)
        return True

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
