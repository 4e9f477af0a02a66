"""The crawl of a collection: every fetch comes from the frontier.

The scheduler uses this module for the fountain spider, and `project_crawl` for other spiders. A running crawl adopts an
edited policy file. After the first period, the crawl logs all seeds that gave no page.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request

from webfountain.crawl import engine
from webfountain.crawl.flight import depart, origin_of
from webfountain.policy.collection_file import PolicyPoll
from webfountain.report.troubles import seed_lines, seeds_in_force

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.crawl.builder import FrontierSetup
    from webfountain.crawl.landings import Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.worker_thread import Worker
    from webfountain.frontier.batch import Batch, LeaseEnd
    from webfountain.frontier.frontier import Frontier
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch
    from webfountain.report.troubles import SeedWithoutPage
    from webfountain.store.contract import FrontierStore

__all__ = ["POLICY_POLL_S", "FirstPeriod", "OwnCrawl", "PolicyPoller", "no_output", "own_request"]

_META: Final = {
    "handle_httpstatus_all": True,
    "dont_redirect": True,
    "dont_retry": True,
    "dont_cache": True,
    "dont_obey_robotstxt": True,
    "verbatim_url": True,  # the canonical form is the key in the store, so it is requested unchanged
    "allow_offsite": True,
}
logger = logging.getLogger(__name__)
POLICY_POLL_S: Final = 2.0


def no_output(_: object) -> None:
    """Do nothing. `no_output` is the callback and errback of requests whose result the frontier has already
    processed.
    """


def own_request(fetch: Fetch, landings: Landings, callback: Callable[..., Any] = no_output) -> Request:
    """Return the request of a fetch, linked to a new flight."""
    request = Request(fetch.url, callback=callback, errback=no_output, meta=dict(_META))
    depart(request, landings.flight(fetch, own=True))
    return request


class PolicyPoller:
    """Regularly checks whether the policy file was edited, and applies the edited file. `load_seeds` loads new seeds of
    an edited policy file, in the worker thread.
    """

    def __init__(
        self, collection: Collection, frontier: Frontier, worker: Worker, load_seeds: Callable[[Collection], None]
    ) -> None:
        self._poll = PolicyPoll(collection)
        self._frontier = frontier
        self._worker = worker
        self._load_seeds = load_seeds
        self._task: asyncio.Task[None] | None = None
        self._poll_at = 0.0

    def poll(self) -> None:
        """Check, at regular intervals, whether the policy file was edited."""
        now = time.monotonic()
        if self._task is None and now >= self._poll_at:
            self._poll_at = now + POLICY_POLL_S
            self._task = asyncio.get_running_loop().create_task(self._adopt())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _adopt(self) -> None:
        try:
            edit = await self._worker.call(self._poll.poll)
            if edit is None:
                return
            if edit.collection is None:
                logger.error("The edited policy file is invalid; the previous one stays in force: %s", edit.error)
                return
            self._frontier.work.adopt(edit.collection)
            self._worker.stir()
            await self._worker.call(partial(self._load_seeds, edit.collection))
            wait = f"; these take effect at the next start: {', '.join(edit.waits)}" if edit.waits else ""
            logger.info("The edited policy file is in force%s", wait)
        finally:
            self._task = None


class FirstPeriod:
    """At the end of a crawl's first period, logs each seed from which no page was stored.

    `read` passes the store to a function, in the worker thread. `ends_at` is the end of the period, UTC seconds.
    """

    def __init__(
        self,
        read: Callable[[Callable[[FrontierStore], list[SeedWithoutPage]]], Awaitable[list[SeedWithoutPage]]],
        *,
        ends_at: float,
    ) -> None:
        self._read = read
        self._ends_at = ends_at
        self._task: asyncio.Task[None] | None = None

    def poll(self, at: float) -> None:
        """When the first period is over, start a task that logs the seeds that have no page."""
        if self._task is None and at >= self._ends_at:
            self._task = asyncio.get_running_loop().create_task(self._report(at))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _report(self, at: float) -> None:
        year = time.gmtime(at).tm_year
        found = await self._read(lambda store: seeds_in_force(store, year=year))
        for line in seed_lines(found):
            logger.warning("A seed gave no page in the first period: %s", line)


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
        """Do nothing."""

    def begin(self) -> None:
        """Load the seeds."""
        self._load_seeds(self._built.collection)

    def request_of(self, fetch: Fetch) -> Request:
        """Return the request of a fetch."""
        return own_request(fetch, self._landings, self._spider.parse if fetch.kind == "page" else no_output)

    def refused(self, refusal: LeaseEnd) -> None:
        """Do nothing, because a refused page has no errback."""
        del refusal

    def enqueue(self, request: Request) -> bool:
        """Add a start request to the queue. Return False, without queueing, for a request that a callback yielded."""
        if origin_of(request) is not None:
            return False
        self._direct.put(request)
        return True

    def take_work(self) -> Batch | None:
        """Flush the feeds, and return the frontier's next batch. A page must not be settled before its items are in the
        feeds.
        """
        work = self._built.frontier.work.take()
        if work is not None and work.ended:
            engine.flush_feeds(self._crawler)
        return work

    def absorb(self) -> None:
        """Do nothing."""

    def has_pending(self) -> bool:
        """Return True, because the frontier, not Scrapy, decides when the crawl ends."""
        return True

    def poll(self) -> None:
        """Apply an edited policy file and, after the first period, log the seeds that have no page."""
        self._policy.poll()
        self._first_period.poll(self._built.clock.now())

    def stop(self) -> None:
        self._policy.close()
        self._first_period.close()

    async def close(self, reason: str) -> None:
        """Do nothing."""
        del reason

    def _load_seeds(self, collection: Collection) -> None:
        """Load and count the seeds of a collection, and log refused seeds, in the worker thread."""
        loaded, metrics = self._built.seeds(collection), self._built.metrics
        metrics.inc("seeds/read", loaded.read)
        metrics.inc("seeds/new", loaded.new)
        for reason, (many, first) in loaded.refused.items():
            logger.warning(
                "The policy file refuses %d of its own seeds (%s): %s",
                many,
                reason,
                first,
                extra={"event": f"judge/{reason}"},
            )
