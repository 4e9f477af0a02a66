"""Scrapy's scheduler on the frontier: hands out what the ant allows, hears every end, feeds the worker thread.

Place in the walk: between the ant's hand and Scrapy's downloader, and back from the spider to the store. It
decides nothing. The engine's calls never touch store or disk: one worker thread runs the frontier's batches, and
the engine is woken when a site comes due. Two modes: the fountain spider crawls a collection; with any other
spider only the requests it yields enter the frontier (`addon`).

Settings read: WEBFOUNTAIN_* (`webfountain.config`), and in add-on mode those that `building` names.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.utils.defer import deferred_f_from_coro_f

from webfountain.config import FountainConfig
from webfountain.core.freshness import freshness
from webfountain.crawl import engine
from webfountain.crawl.building import Built, build_for_project, build_own
from webfountain.crawl.download_handler import ABORT
from webfountain.crawl.flight import FLIGHT, Flight, flight_of
from webfountain.crawl.requests import crawlable
from webfountain.crawl.settling import Settling, is_one_off
from webfountain.crawl.shelf import RequestShelf
from webfountain.crawl.worker import Worker
from webfountain.download.fetcher import terms_of
from webfountain.download.resolver import Resolver
from webfountain.errors import InputError, WebfountainError
from webfountain.metrics import Metrics
from webfountain.records import Fetch, Fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.download.fetcher import Terms
    from webfountain.frontier.batch import Refusal
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.pages.examiner import Visit

__all__ = ["FountainScheduler"]

logger = logging.getLogger(__name__)

GRACE_S: Final = 4.0
"""What is in flight when the crawl stops has this long to end; then it is cut, and its lease given back."""
GC_ALLOCATIONS: Final = 50_000
"""Objects between two looks of Python's cycle collector: at its default of 700 it took 0.2 ms a page, a fifth of all.
An answered page leaves no cycle behind, so memory does not wait for it."""
_META: Final = {
    "handle_httpstatus_all": True,
    "dont_redirect": True,
    "dont_retry": True,
    "dont_cache": True,
    "dont_obey_robotstxt": True,
    "verbatim_url": True,  # the canonical form is the store's key: it is asked for as it is
    "allow_offsite": True,
}


class FountainScheduler:
    """One crawl's scheduler. The engine calls it in the loop thread."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.metrics = Metrics()
        self.started: float | None = None
        """Monotonic seconds when the first request went out."""
        self.started_cpu: float | None = None
        """CPU seconds of the process by then."""
        self.terms: Terms | None = None
        self.error: WebfountainError | None = None
        self._built: Built | None = None
        self._direct: deque[Request] = deque()
        self._worker = Worker(look=self._look, absorbed=lambda: engine.wake(crawler), failed=self._failed)
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._aborted = False
        self._stopped_at: float | None = None
        self._own = False
        self._running = engine.running_crawl()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # ---------------------------------------------------------------- life

    @deferred_f_from_coro_f
    async def open(self, spider: Spider) -> None:
        """Open store and repository and start the worker.

        Raises
        ------
        WebfountainError
            when the crawl cannot begin; the text is one line for the user.
        """
        self._own = getattr(spider, "is_fountain", False)
        self._spider = spider
        try:
            built = await self._worker.call(self._build)
        except WebfountainError as error:
            self.error = error
            self._worker.shut()
            engine.refuse(self._crawler, error, crawl=self._running)
            raise
        self._built = built
        if self._own:
            gc.freeze()  # what was imported stays: no full collection walks it again
            gc.set_threshold(GC_ALLOCATIONS, *gc.get_threshold()[1:])
        self.frontier: Frontier = built.frontier
        self.terms = terms_of(built.collection.politeness, built.collection.network)
        self._resolver = Resolver(self._resolved)
        engine.watch_ends(self._crawler, self._ended)
        engine.scrape_in_turn(self._crawler)
        self._shelf = RequestShelf(self._crawler, spider, self.metrics, again=built.endless)
        self._settling = Settling(built.frontier, self.now)
        take = built.frontier.take_work if self._own else self._settling.take_work
        self._worker.start(built.frontier, self._load_seeds, take)

    def _build(self) -> Built:
        config = FountainConfig.from_mapping(self._crawler.settings)
        if not self._own:
            return build_for_project(config, self._crawler.settings, self._spider.name, self.metrics)
        if config.collection is None:
            raise InputError("the fountain spider needs a collection: -a collection=FILE")
        return build_own(config, self.metrics)

    @deferred_f_from_coro_f
    async def close(self, reason: str) -> None:
        """Settle what has landed, give leases back, close store and repository."""
        del reason
        if self._built is None:
            return
        self._closing = True
        self._resolver.close()
        if self._timer is not None:
            self._timer.cancel()
        self.frontier.stop()
        self._settling.give_up()
        await self._worker.end()
        try:
            await self._worker.call(self.frontier.close)
        except WebfountainError as error:  # nothing is lost: leases come back at the next start
            if self.error is None:
                self.error = error
                logger.critical("%s", error)
        finally:
            self._worker.shut()

    # ------------------------------------------------------------ hot path

    def has_pending_requests(self) -> bool:
        """Whether the crawl goes on. What is recrawled goes on until `finish_reason` says otherwise."""
        if self._built is None or self._built.endless:
            return True
        return bool(self._direct) or self._settling.untold() > 0 or self.frontier.has_pending()

    def next_request(self) -> Request | None:
        """What may be asked now; None arms the timer for the time when something may."""
        if self._direct:
            return self._direct.popleft()
        if (refusal := self._settling.next_refused()) is not None:
            return self._refused_request(refusal)
        fetch = self.frontier.next()
        if fetch is None:
            self._set_timer()
            return None
        if self.started is None:
            self.started, self.started_cpu = time.monotonic(), time.process_time()
        if fetch.kind == "page" and not self._own:
            return self._foreign_request(fetch)
        callback: Callable[..., Any] = self._spider.parse if fetch.kind == "page" else _no_output
        assert self.terms is not None
        flight = Flight(fetch, self.terms, own=True)
        request = Request(fetch.url, callback=callback, errback=_no_output, meta={**_META, FLIGHT: flight})
        flight.request = request
        return request

    def enqueue_request(self, request: Request) -> bool:
        """Take in a request that a spider yielded, or that a middleware put in the place of another."""
        flight = request.meta.pop(FLIGHT, None)
        if self._own:
            # Nobody but the frontier orders fetches of a collection; the replaced one is settled when it ends.
            return flight is None and self._enqueue_direct(request)
        url = crawlable(request)
        if url is None:
            return self._enqueue_direct(request)
        link = self._shelf.put(request, url)
        if link is None:
            return False
        self.frontier.offer(link)
        self._worker.stir()
        return True

    # ---------------------------------------------- what became of a fetch

    def land(self, flight: Flight, fetched: Fetched) -> None:
        """The download of a flight ended. A second call for the same flight has no effect."""
        if flight.landed or (self._aborted and fetched.error is not None):
            return
        flight.landed = True
        flight.fetched = fetched
        self.frontier.landed(fetched)
        self._set_timer()

    def now(self) -> float:
        """The frontier's clock, UTC seconds."""
        assert self._built is not None
        return self._built.clock.now()

    async def freshness(self) -> float | None:
        """Estimated share of the known pages whose copy is fresh, by the store's census; None: not known."""
        if self._built is None or self._closing:
            return None
        return freshness(
            await self._worker.call(self.frontier.census),
            never_crawled=self.frontier.statistics().store.pages["never-crawled"],
            at=self.now(),
            fastest_s=self._built.collection.cycle.fastest_s,
        )

    def examine(self, flight: Flight) -> Visit:
        """What a landed fetch means for its page."""
        assert flight.fetched is not None
        flight.visit = self.frontier.examine(flight.fetched)
        return flight.visit

    def _ended(self, request: Request) -> None:
        """The engine is done with a request, whatever the end: callback, items, failure, replacement."""
        flight = flight_of(request)
        if flight is None or flight.request is not request:
            return
        flight.request = None  # each holds the other
        if not flight.landed and self._aborted:
            return  # its lease goes back when the frontier closes
        self._end(flight)

    def _end(self, flight: Flight) -> None:
        """A flight is over: settle its page."""
        if not flight.landed:
            self.land(flight, self.unanswered(flight, "filtered"))
        if flight.refusal is not None:
            self._settling.ended(flight.refusal)
        elif flight.fetch.kind == "page":
            self._finish(flight)
        self._worker.stir()

    def unanswered(self, flight: Flight, error: str) -> Fetched:
        """The end of a flight that brought no answer."""
        return Fetched(flight.fetch, self.now(), 0.0, error=error)

    def _finish(self, flight: Flight) -> None:
        fetched = flight.fetched
        assert fetched is not None
        if not flight.own:
            if flight.once:
                assert flight.fetch.lease is not None
                self._settling.once(flight.fetch.lease)
            self.frontier.acknowledge(flight.fetch, status=fetched.status, error=fetched.error, seconds=fetched.seconds)
            return
        if flight.visit is None and fetched.error is None:
            # The spider never saw it, or broke on it: it may be asked again, later.
            fetched = Fetched(flight.fetch, fetched.at, fetched.seconds, error="filtered")
        self.frontier.finish(flight.visit or self.frontier.examine(fetched))

    # ------------------------------------------------- requests of projects

    def _foreign_request(self, fetch: Fetch, refusal: Refusal | None = None) -> Request | None:
        assert self.terms is not None
        assert fetch.lease is not None
        flight = Flight(fetch, self.terms, own=False, refusal=refusal)
        try:
            request = self._shelf.take(fetch.lease)
        except (ValueError, TypeError, ImportError, AttributeError) as error:
            logger.error("A stored request cannot be made again (%s): %s", error, fetch.url)
            self._end(flight)
            engine.wake(self._crawler)
            return None
        request.meta[FLIGHT] = flight
        flight.request = request
        flight.once = is_one_off(request)
        return request

    def _refused_request(self, refusal: Refusal) -> Request | None:
        """A request that the engine ends at once: `RefusingMiddleware` sees to it."""
        lease = refusal.lease
        return self._foreign_request(Fetch(0, "page", lease.record.url, lease.site, None, lease=lease), refusal)

    def _enqueue_direct(self, request: Request) -> bool:
        """What is no web page (data:, file:) has no site and needs no politeness."""
        self._direct.append(request)
        return True

    # ------------------------------------------------------- beside the walk

    def _load_seeds(self) -> None:
        """In the worker thread, before anything else."""
        assert self._built is not None
        if self._built.seeds is None:
            return
        loaded = self._built.seeds()
        self.metrics.inc("seeds/read", loaded.read)
        self.metrics.inc("seeds/new", loaded.new)
        for reason, (many, first) in loaded.refused.items():
            logger.warning("%d seeds are refused by the collection's own rules (%s): %s", many, reason, first)

    def _failed(self, error: WebfountainError) -> None:
        self.error = error
        self.frontier.stop()
        engine.fail(self._crawler)

    def _look(self) -> None:
        """What has to be looked at now and then: names to resolve, the end of the crawl."""
        if hosts := self.frontier.unresolved():
            self._resolver.ask(hosts)
        if engine.is_closing(self._crawler):
            self._wind_down()
        elif (reason := self.frontier.finish_reason()) and not (reason == "idle" and self._settling.untold()):
            self._stop(reason)

    def _wind_down(self) -> None:
        """The engine waits for what is in flight; after a grace it is cut."""
        self.frontier.stop()
        now = time.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
        elif now - self._stopped_at > GRACE_S and not self._aborted:
            self._aborted = True
            self._crawler.signals.send_catch_log(ABORT)

    def _stop(self, reason: str) -> None:
        self.frontier.stop()
        engine.close(self._crawler, reason)

    def _resolved(self, host: str, addresses: Sequence[str]) -> None:
        self.frontier.resolved(host, addresses, error=None if addresses else "dns")
        engine.wake(self._crawler)

    def _set_timer(self) -> None:
        """Have the engine woken when the ant may have something."""
        at = self.frontier.wake_at()
        if at is None or self._closing:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, at - self.now())
        if self._timer is not None:
            if self._timer.when() <= when + 0.001 and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._come_due)

    def _come_due(self) -> None:
        self._timer = None
        self.metrics.inc("scheduler/woken")
        engine.wake(self._crawler)


def _no_output(_: object) -> None:
    """Callback of robots.txt and sitemaps, errback of our fetches: what they say was heard when they landed."""
