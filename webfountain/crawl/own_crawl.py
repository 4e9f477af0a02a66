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
from webfountain.crawl.process_memory import tune_memory
from webfountain.errors import PolicyError
from webfountain.policy.collection_file import PolicyPoll
from webfountain.report.troubles import seed_lines, seeds_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.crawl.flight import Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.session import Session
    from webfountain.frontier.batch import Batch, LeaseEnd
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch

__all__ = ["POLICY_POLL_S", "OwnCrawl", "no_output", "own_request"]

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


class OwnCrawl:
    """One crawl of the fountain spider."""

    def __init__(self, session: Session, landings: Landings, direct: DirectRequests) -> None:
        self._session = session
        self._built = session.opened
        self._spider = session.spider
        self._landings = landings
        self._direct = direct

    async def open(self) -> None:
        """Begin the tasks that run beside the crawl."""
        tune_memory()
        self._session.worker.begin(self._adopt_edits(PolicyPoll(self._built.collection)))
        self._session.worker.begin(self._report_seeds())

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
            engine.flush_feeds(self._session.crawler)
        return work

    def absorb(self) -> None:
        """Do nothing."""

    def has_pending(self) -> bool:
        """Return True, because the frontier, not Scrapy, decides when the crawl ends."""
        return True

    async def close(self, reason: str) -> None:
        """Do nothing."""
        del reason

    async def _adopt_edits(self, policy: PolicyPoll) -> None:
        """Apply each edited policy file while the crawl runs."""
        while True:
            await asyncio.sleep(POLICY_POLL_S)
            if engine.is_closing(self._session.crawler):
                return
            edit = await self._session.call(policy.poll)
            if edit is None:
                continue
            if edit.collection is None:
                logger.error("The edited policy file is invalid; the previous one stays in force: %s", edit.error)
                continue
            try:
                self._built.frontier.work.adopt(edit.collection)
                self._session.worker.stir()
                await self._session.call(partial(self._load_seeds, edit.collection))
            except PolicyError as error:  # somebody is still writing the seeds file, so that it is read again
                logger.error("The edited seeds file could not be loaded completely: %s", error)
                continue
            wait = f"; these take effect at the next start: {', '.join(edit.waits)}" if edit.waits else ""
            logger.info("The edited policy file is in force%s", wait)

    async def _report_seeds(self) -> None:
        """At the end of the first period, log each seed from which no page was stored."""
        await asyncio.sleep(self._built.collection.cycle.period_s)
        year = time.gmtime(self._session.now()).tm_year
        for line in seed_lines(await self._session.on_store(partial(seeds_in_force, year=year))):
            logger.warning("A seed gave no page in the first period: %s", line)

    def _load_seeds(self, collection: Collection) -> None:
        """Load and count the seeds of a collection, and log refused seeds, in the worker thread."""
        loaded, metrics = self._built.seeds(collection), self._session.metrics
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
