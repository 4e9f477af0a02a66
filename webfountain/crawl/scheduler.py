"""Scrapy's scheduler on top of the frontier: hand out the requests that the frontier allows, and feed the worker
thread.

The engine's calls never access store or disk: one worker thread runs the frontier's batches. A timer wakes the engine
when a site becomes due, because an idle engine calls its scheduler only every five seconds. The fountain
spider crawls a collection (`own_crawl`). The spider of a Scrapy project fills the frontier only with the requests that
it yields (`project_crawl`).

Settings read: WEBFOUNTAIN_* (`webfountain.config`), and in add-on mode the settings that `session` names.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.utils.defer import deferred_f_from_coro_f

from webfountain.crawl import engine
from webfountain.crawl.download_handler import ABORT
from webfountain.crawl.flight import CURRENT, Flight, Landings, flight_of
from webfountain.crawl.item_safety import ItemSafety
from webfountain.crawl.memory_requests import DirectRequests
from webfountain.crawl.own_crawl import OwnCrawl
from webfountain.crawl.project_crawl import ProjectCrawl
from webfountain.crawl.project_robots import count_robots
from webfountain.crawl.reactor_names import reactor_addresses
from webfountain.crawl.session import Session
from webfountain.crawl.worker_thread import Worker
from webfountain.download.resolver import Resolver
from webfountain.errors import StoreAway, WebfountainError
from webfountain.frontier.cluster.term import TermGuard

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.download.bad_response import ErrorWord
    from webfountain.frontier.frontier import Frontier
    from webfountain.records import FetchResult

__all__ = ["FountainScheduler"]

_SAME_S = 0.001
logger = logging.getLogger(__name__)
GRACE_S: Final = 4.0
"""Time in which fetches in flight may end after the crawl stops, in seconds."""


class FountainScheduler:
    """The scheduler of one crawl, which the engine calls in the loop thread."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._direct = DirectRequests(crawler.stats)
        self._worker = session.worker = Worker(before_batch=self._tick, absorbed=self._absorbed, failed=self._failed)
        self._aborted = False
        self._has_left = False
        self._term: TermGuard | None = None
        self._stopped_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        """The timer that wakes the engine when the next fetch is allowed."""
        self._running = engine.running_crawl()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | Scheduler:
        """Build the scheduler, or Scrapy's own scheduler for commands that only inspect pages (`scrapy shell`, `fetch`,
        `parse`).
        """
        session = Session.of(crawler)
        return Scheduler.from_crawler(crawler) if session.inspecting else cls(crawler, session)

    # ---------------------------------------------------------------- life

    @deferred_f_from_coro_f
    async def open(self, spider: Spider) -> None:
        """Open store and repository and start the worker.

        Raises
        ------
        WebfountainError
            if the crawl cannot start; the text is one line for the user.
        OSError
            if the folder of the store belongs to another user, for example.
        """
        try:
            built = await self._worker.call(partial(self._session.open, spider))
        except (WebfountainError, OSError) as error:
            if isinstance(error, WebfountainError):
                self._session.error = error
            self._worker.shut()
            engine.refuse(self._crawler, error, crawl=self._running)
            raise
        self.frontier: Frontier = built.frontier
        is_own = getattr(spider, "is_fountain", False)
        self._resolver = Resolver(None if is_own else reactor_addresses)
        self._landings = Landings(
            self._session,
            on_landed=_count_nothing if is_own else partial(count_robots, self._crawler.stats, self._session.robots),
        )
        engine.connect_ends(self._crawler, self._landings.ended)
        engine.scrape_for(self._crawler, None if is_own else CURRENT, flight_of)
        engine.guard_pipelines(self._crawler, ItemSafety(self._crawler, _source_of).guard)
        self._crawl = (OwnCrawl if is_own else ProjectCrawl)(self._session, self._landings, self._direct)
        if (heart := built.frontier.heart) is not None:
            self._term = TermGuard(heart.term.left_s, partial(self._cut, "lapsed"))
            self._term.start()
        await self._crawl.open()
        begin, take = self._crawl.begin, self._crawl.take_work
        self._worker.start(built.frontier, begin, take, compare_clock=built.compare_clock)

    @deferred_f_from_coro_f
    async def close(self, reason: str) -> None:
        """Settle all finished downloads, release the other leases, and close the store and the repository."""
        if self._session.built is None:
            return
        self._resolver.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._term is not None:
            self._term.stop()
        self.frontier.stop()
        self._landings.give_up()
        await self._worker.end()
        await self._crawl.close(reason)
        try:
            await self._worker.call(self._session.close)
        except WebfountainError as error:  # nothing is lost: leases come back at the next start
            if self._session.error is None and not self._is_left(error):
                self._session.error = error
                logger.critical("%s", error)
        finally:
            self._worker.shut()

    def _is_left(self, error: WebfountainError) -> bool:
        """Return whether an error is harmless: the crawl was ending anyway, and the store's server did not answer in
        time.
        """
        if not (isinstance(error, StoreAway) and self.frontier.progress.stopped):
            return False
        if not self._has_left:
            self._has_left = True
            logger.warning(
                "The crawl ends, because its store failed; unsettled pages will be requested again: %s", error
            )
        return True

    # ------------------------------------------------------------ hot path

    def has_pending_requests(self) -> bool:
        """Return whether the crawl continues."""
        return self._session.built is None or bool(self._direct) or self._crawl.has_pending()

    def next_request(self) -> Request | None:
        """Return the next request. If no request is allowed now, set the timer and return None."""
        if self._direct:
            return self._direct.take()
        if (refusal := self._landings.next_refused()) is not None:
            return self._crawl.refused(refusal)
        fetch = self.frontier.next()
        if fetch is None:
            self._set_timer()
            return None
        if self._session.started is None:
            self._session.started, self._session.started_cpu = time.monotonic(), time.process_time()
        return self._crawl.request_of(fetch)

    def enqueue_request(self, request: Request) -> bool:
        """Add a request of a spider or a middleware to the frontier. Return False if the request is dropped."""
        return self._crawl.enqueue(request)

    def _set_timer(self) -> None:
        """Set the timer to the time of the next fetch."""
        at = self.frontier.wake_at()
        if at == inf:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, at - self.frontier.now())
        if self._timer is not None:
            if self._timer.when() <= when + _SAME_S:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._session.metrics.inc("scheduler/woken")
        engine.wake(self._crawler)

    # ------------------------------------------------------- beside the walk

    def _absorbed(self) -> None:
        """After each batch and each heartbeat, end all transfers from sites that other ants have taken over."""
        if lost := self.frontier.sites.departures.take_lost():
            self._cut("lapsed", lost)
        self._crawl.absorb()
        engine.wake(self._crawler)

    def _failed(self, error: WebfountainError) -> None:
        if self._is_left(error):
            return
        logger.critical("%s", error)
        self._session.error = error
        self.frontier.stop()
        engine.fail(self._crawler)

    def _tick(self) -> None:
        """Do the regular work: resolve host names, and end a finished crawl."""
        if hosts := self.frontier.sites.addresses.unresolved():
            self._resolver.ask(hosts, self._resolved)
        if engine.is_closing(self._crawler):
            self._wind_down()
        elif (reason := self.frontier.finish_reason()) and not (reason == "idle" and self._landings.refused()):
            self.frontier.stop()
            engine.close(self._crawler, reason)

    def _cut(self, word: ErrorWord, sites: Collection[str] | None = None) -> None:
        """End all transfers immediately, or those from some sites."""
        self._crawler.signals.send_catch_log(ABORT, word=word, sites=sites)

    def _wind_down(self) -> None:
        """Wait for fetches in flight, but end them after a grace period or at a second signal."""
        self.frontier.stop()
        engine.at_second_signal(self.frontier.stop_at_once)
        now = time.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
        elif now - self._stopped_at > GRACE_S and not self._aborted:
            self._aborted = True
            self._landings.cut()
            self.frontier.examiner.cut_short()
            self._cut("cut")

    def _resolved(self, host: str, addresses: Sequence[str]) -> None:
        self.frontier.resolved(host, addresses, error=None if addresses else "dns")
        engine.wake(self._crawler)


def _source_of(response: Any) -> Flight | None:
    """Return the flight whose callback yielded an item."""
    request = getattr(response, "request", None)
    return CURRENT.get() or (flight_of(request) if isinstance(request, Request) else None)


def _count_nothing(_: FetchResult) -> None:
    """Do nothing."""
