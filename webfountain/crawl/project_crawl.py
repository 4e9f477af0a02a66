"""The crawl of a Scrapy project: the frontier contains only requests that the project's spider yields.

The scheduler uses this module in add-on mode, and `own_crawl` for the fountain spider.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from webfountain.core.url_cache import entries_within
from webfountain.crawl import engine
from webfountain.crawl.downloader import FountainDownloader
from webfountain.crawl.dupefilter import Duplicates
from webfountain.crawl.flight import flight_of
from webfountain.crawl.own_crawl import own_request
from webfountain.crawl.project_requests import KnownRequests, ProjectRequests
from webfountain.crawl.scrapy_redis import EARLIER_SEEN, SeenFingerprints
from webfountain.crawl.start_urls import StartUrls
from webfountain.frontier.requests_by_url import make_failed_again
from webfountain.records import Fetch

if TYPE_CHECKING:
    from scrapy import Request

    from webfountain.crawl.flight import Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.new_items import ItemDigests
    from webfountain.crawl.session import Session
    from webfountain.crawl.session_cookies import SessionCookies
    from webfountain.frontier.batch import Batch, LeaseEnd

__all__ = ["ProjectCrawl"]

logger = logging.getLogger(__name__)


class ProjectCrawl:
    """One crawl of a spider of a Scrapy project."""

    def __init__(self, session: Session, landings: Landings, direct: DirectRequests) -> None:
        self._session = session
        self._crawler = session.crawler
        self._landings = landings
        self._frontier = session.frontier
        self._endless = session.opened.endless
        self._duplicates = duplicates = Duplicates(self._crawler, size=entries_within(session.config.cache_bytes))
        self._requests = ProjectRequests(session, landings, duplicates=duplicates, direct=direct)
        self._known = KnownRequests(session, landings, requests=self._requests, duplicates=duplicates)
        self._cookies: SessionCookies | None = None
        self._digests: ItemDigests | None = None

    async def open(self) -> None:
        """Open the features that settings of the project switch on, such as stored cookies."""
        await self._duplicates.open()
        await self._session.call(self._open_extras)
        start_urls = self._frontier.worker.on_store(partial(StartUrls.of, self._session))
        if start_urls is not None:
            self._session.worker.begin(start_urls.move(self._session, self._requests.link_of))

    def begin(self) -> None:
        """With WEBFOUNTAIN_RETRY_FAILED, put all failed requests at the front of their sites' queues."""
        if self._session.config.retry_failed:
            made = self._frontier.worker.on_store(partial(make_failed_again, now=self._frontier.now))
            self._session.metrics.inc("addon/made_again", made)

    def request_of(self, fetch: Fetch) -> Request | None:
        """Return the request of a fetch, or None if it cannot be restored.

        While the request waits in a downloader slot, the frontier sends no other request to the site.
        """
        request = self._requests.request_of(fetch) if fetch.kind == "page" else self._robots_request(fetch)
        pace, downloader = self._session.pace, self._crawler.engine.downloader
        if pace is None or request is None or not isinstance(downloader, FountainDownloader):
            return request
        flight = flight_of(request)
        assert flight is not None
        flight.queued = pace.waits_in_queue(downloader, request)
        if flight.queued:
            self._frontier.sites.flights.queue_full(flight.fetch)
        return request

    def _robots_request(self, fetch: Fetch) -> Request:
        """Return the request of a robots.txt; the project's HTTP cache may answer the request, as without the
        add-on.
        """
        request = own_request(fetch, self._landings)
        del request.meta["dont_cache"]
        return request

    def refused(self, refusal: LeaseEnd) -> Request | None:
        """Return the Scrapy request for a refused page; `RefusingMiddleware` ends this request without a download."""
        lease = refusal.lease
        return self._requests.request_of(Fetch(0, "page", lease.record.url, lease.site, None, lease=lease), refusal)

    def enqueue(self, request: Request) -> bool:
        """Add a request of the project to the frontier. Return False if the request is dropped."""
        if not self._requests.enqueue(request):
            return False
        self._session.worker.stir()
        return True

    def take_work(self) -> Batch | None:
        """Flush the feeds, save digests and cookies, and return the frontier's next batch. A page must not be settled
        before its items are in the feeds.
        """
        work = self._landings.take_work()
        if work is not None:
            self._known.count()
        if work is not None and work.ended:
            engine.flush_feeds(self._crawler)
            if self._digests is not None:
                self._digests.write(self._landings.take_pages(work.ended))
            if self._cookies is not None:
                self._cookies.save()
        return work

    def absorb(self) -> None:
        """Process those requests of the last batch that the store already knew."""
        self._known.absorb()

    def has_pending(self) -> bool:
        """Return whether any request of the crawl has yet to be made."""
        if self._endless or self._landings.refused() or self._frontier.has_pending() or self._known.is_busy():
            return True
        return self._landings.settle_stuck() or self._requests.settle_orphans()

    async def close(self, reason: str) -> None:
        """Close everything that `open` opened."""
        if self._cookies is not None:
            self._cookies.save()
        if self._digests is not None:
            self._digests.close()
        await self._duplicates.close(reason)
        if known := int(self._session.metrics.get("duplicates/by_store")):
            logger.info(
                "Requests known from an earlier run of this crawl and not repeated: %d. WEBFOUNTAIN_FRESH=True "
                "starts from the beginning; WEBFOUNTAIN_RECRAWL=True repeats them when "
                "they are due",
                known,
            )

    def _open_extras(self) -> None:
        """Load stored cookies, item digests and the fingerprints of scrapy-redis, in the worker thread."""
        session, folder = self._session, self._session.opened.folder
        if session.config.cookies:
            from webfountain.crawl.session_cookies import SessionCookies  # noqa: PLC0415  only where it is asked for

            self._cookies = SessionCookies(self._crawler, folder)
            self._cookies.load()
        if session.config.items == "changed":
            from webfountain.crawl.new_items import ItemDigests, NewItemsPipeline  # noqa: PLC0415

            self._digests = ItemDigests(folder)
            if (pipeline := self._crawler.get_item_pipeline(NewItemsPipeline)) is not None:
                pipeline.digests = self._digests
        if digests := self._frontier.worker.on_store(lambda store: store.board.value(EARLIER_SEEN)):
            self._duplicates.earlier = SeenFingerprints(digests)
