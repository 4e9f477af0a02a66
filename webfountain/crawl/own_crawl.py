"""The crawl of a collection: every fetch comes from the frontier.

Place in the walk: called by the scheduler if the fountain spider runs. `project_crawl` is its counterpart.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from webfountain.crawl import engine
from webfountain.crawl.flight import origin_of
from webfountain.crawl.own_requests import no_output, own_request
from webfountain.crawl.pollers import FirstPeriod, PolicyPoller

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from webfountain.crawl.builder import FrontierSetup
    from webfountain.crawl.direct_requests import DirectRequests
    from webfountain.crawl.landings import Landings
    from webfountain.crawl.worker_thread import Worker
    from webfountain.frontier.batch import Batch, LeaseEnd
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch

__all__ = ["OwnCrawl"]

logger = logging.getLogger(__name__)


class OwnCrawl:
    """One crawl of the fountain spider."""

    def __init__(
        self,
        crawler: Crawler,
        built: FrontierSetup,
        spider: Spider,
        worker: Worker,
        *,
        landings: Landings,
        direct: DirectRequests,
    ) -> None:
        self._crawler = crawler
        self._built = built
        self._spider = spider
        self._landings = landings
        self._direct = direct
        self._policy = PolicyPoller(built.collection, built.frontier, worker, self._load_seeds)
        self._first_period = FirstPeriod(
            lambda function: worker.call(partial(built.frontier.worker.on_store, function)),
            ends_at=built.clock.now() + built.collection.cycle.period_s,
        )

    async def open(self) -> None:
        """Open nothing more."""

    def begin(self) -> None:
        """Load the seeds, before anything else in the worker thread."""
        self._load_seeds(self._built.collection)

    def request_of(self, fetch: Fetch) -> Request:
        """Return the request of a fetch."""
        return own_request(fetch, self._landings, self._spider.parse if fetch.kind == "page" else no_output)

    def refused(self, refusal: LeaseEnd) -> None:
        """Do nothing: a refused page has no errback."""
        del refusal

    def enqueue(self, request: Request) -> bool:
        """Queue a request that no flight produced. Return False for others: a replacement is settled with the request
        that it replaces.
        """
        if origin_of(request) is not None:
            return False
        self._direct.put(request)
        return True

    def take_work(self) -> Batch | None:
        """Return the frontier's next batch. The items of the pages that it settles are in the feeds by then."""
        work = self._built.frontier.work.take()
        if work is not None and work.ended:
            engine.flush_feeds(self._crawler)
        return work

    def absorb(self) -> None:
        """Do nothing: no request waits for the result of a batch."""

    def has_pending(self) -> bool:
        """Return True: a collection is crawled again and again, and the frontier decides when the crawl ends."""
        return True

    def poll(self) -> None:
        """Check for an edit of the policy file, and for seeds without a page once the first period is over."""
        self._policy.poll()
        self._first_period.poll(self._built.clock.now())

    def stop(self) -> None:
        """Cancel work in progress beside the crawl."""
        self._policy.close()
        self._first_period.close()

    async def close(self, reason: str) -> None:
        """Close nothing more."""
        del reason

    def _load_seeds(self, collection: Collection) -> None:
        """Load the seeds of a collection, count them, and log the refused ones. It runs in the worker thread."""
        loaded, metrics = self._built.seeds(collection), self._built.metrics
        metrics.inc("seeds/read", loaded.read)
        metrics.inc("seeds/new", loaded.new)
        for reason, (many, first) in loaded.refused.items():
            logger.warning(
                "%d seeds are refused by the collection's own rules (%s): %s",
                many,
                reason,
                first,
                extra={"event": f"judge/{reason}"},
            )
