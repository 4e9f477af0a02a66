"""Scrapy's scheduler on the frontier: hands out what the ant allows, hears every end, feeds the worker thread.

Place in the walk: between the ant's hand and Scrapy's downloader, and back from the spider to the store. It
decides nothing. The engine's calls never touch store or disk: one worker thread runs the frontier's batches, and
the engine is woken when a site comes due. Two modes: the fountain spider crawls a collection; with any other
spider only the requests it yields enter the frontier (`addon`).

Settings read: WEBFOUNTAIN_* (`webfountain.config`), DUPEFILTER_CLASS, and in add-on mode those that `session` names.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.signals import request_dropped
from scrapy.utils.defer import deferred_f_from_coro_f

from webfountain.core.url_cache import entries_within
from webfountain.crawl import engine
from webfountain.crawl.downloader import ABORT, reactor_addresses
from webfountain.crawl.flight import CURRENT, Flight, Refusals, arrive, depart, flight_of, is_one_off, origin_of
from webfountain.crawl.requests import ClassMissing, Duplicates, LostInMemory, RequestStore, crawlable
from webfountain.crawl.session import Session, StartUrls, Worker
from webfountain.download import Resolver
from webfountain.errors import WebfountainError
from webfountain.policy.files import PolicyPoll
from webfountain.records import Fetch, Fetched, LeaseId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.frontier.batch import Batch, Ended
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy.files import Collection

__all__ = ["FountainScheduler"]

logger = logging.getLogger(__name__)

GRACE_S: Final = 4.0
"""What is in flight when the crawl stops has this long to end; then it is cut, and its lease given back."""
POLICY_POLL_S: Final = 2.0
GC_ALLOCATIONS: Final = 50_000
"""Objects between two looks of Python's cycle collector: at its default of 700 it took 0.2 ms a page, a fifth of all.
An answered page leaves no cycle behind, so memory does not wait for it."""
ARENAS: Final = 2
"""glibc's heaps: by itself it makes up to eight a core, one for each thread, and what one frees no other uses again."""
MAPPED_BYTES: Final = 384 * 1024
"""Larger blocks, bodies above all, are mapped, and go back to the system when they are freed. glibc begins with 128 kB,
but raises it to up to 32 MB with each that is freed; then they stay as holes in its heaps. Every tree of lexbor's
begins with two blocks of 324 kB, whatever the page: to map them, touch them and give them back takes 25 µs a page."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
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

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self.metrics = session.metrics
        self._direct: deque[Request] = deque()
        self._worker = Worker(look=self._tick, absorbed=self._absorbed, failed=self._failed)
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._aborted = False
        self._lapsed = False
        self._stopped_at: float | None = None
        self._own = False
        self._running = engine.running_crawl()
        self._waiting: dict[LeaseId, Flight] = {}
        """By lease: pages that the engine is done with, but not with all that came of them in memory alone."""
        self._told: set[str] = set()
        self._policy: PolicyPoll | None = None
        self._poll_at = 0.0
        self._polling: asyncio.Task[None] | None = None
        self._start_urls: StartUrls | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | Scheduler:
        """Scrapy's own scheduler for commands that only look (`scrapy shell`, `fetch`, `parse`): they must not crawl
        what waits in the spider's frontier."""
        session = Session.of(crawler)
        return Scheduler.from_crawler(crawler) if session.inspecting else cls(crawler, session)

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
            built = await self._worker.call(lambda: self._session.open(spider))
        except WebfountainError as error:
            self._session.error = error
            self._worker.shut()
            engine.refuse(self._crawler, error, crawl=self._running)
            raise
        self.frontier: Frontier = built.frontier
        self._resolver = Resolver(None if self._own else reactor_addresses)
        engine.connect_ends(self._crawler, self._ended)
        engine.scrape_for(self._crawler, None if self._own else CURRENT, flight_of)
        if self._own:
            _tune_memory()
        self._requests = RequestStore(self._crawler, spider, self.metrics, again=built.endless)
        self._duplicates = Duplicates(self._crawler, size=entries_within(self._session.config.cache_bytes))
        await self._duplicates.open()
        self._refusals = Refusals(built.frontier, self._session.now)
        if self._own:
            self._policy = PolicyPoll(built.collection)
        self._session.census = self._freshness
        self._start_urls = None if self._own else StartUrls.of(self._crawler, spider, self.frontier)
        self._worker.start(built.frontier, self._load_seeds, self._take_work)

    @deferred_f_from_coro_f
    async def close(self, reason: str) -> None:
        """Settle what has landed, give leases back, close store and repository."""
        if self._session.built is None:
            return
        self._closing = True
        self._session.census = None
        if self._polling is not None:
            self._polling.cancel()
        self._resolver.close()
        if self._timer is not None:
            self._timer.cancel()
        self.frontier.stop()
        self._refusals.give_up()
        await self._worker.end()
        await self._duplicates.close(reason)
        if not self._own:
            self._say_known()
        try:
            await self._worker.call(self.frontier.close)
        except WebfountainError as error:  # nothing is lost: leases come back at the next start
            if self._session.error is None:
                self._session.error = error
                logger.critical("%s", error)
        finally:
            self._worker.shut()

    # ------------------------------------------------------------ hot path

    def has_pending_requests(self) -> bool:
        """Whether the crawl goes on. What is recrawled goes on until `finish_reason` says otherwise."""
        built = self._session.built
        if built is None or built.endless:
            return True
        if self._direct or self._refusals.unreported() or self.frontier.has_pending():
            return True
        return self._settle_stuck()

    def next_request(self) -> Request | None:
        """What may be asked now; None arms the timer for the time when something may."""
        if self._direct:
            self._crawler.stats.inc_value("scheduler/dequeued/memory")
            self._crawler.stats.inc_value("scheduler/dequeued")
            return self._direct.popleft()
        if (refusal := self._refusals.next_refused()) is not None:
            return self._refused_request(refusal)
        fetch = self.frontier.next()
        if fetch is None:
            self._set_timer()
            return None
        if self._session.started is None:
            self._session.started, self._session.started_cpu = time.monotonic(), time.process_time()
        if fetch.kind == "page" and not self._own:
            return self._foreign_request(fetch)
        callback: Callable[..., Any] = self._spider.parse if fetch.kind == "page" else _no_output
        request = Request(fetch.url, callback=callback, errback=_no_output, meta=dict(_META))
        depart(request, self._flight(fetch, own=True))
        return request

    def _flight(self, fetch: Fetch, *, own: bool, refusal: Ended | None = None, parent: Flight | None = None) -> Flight:
        assert self._session.terms is not None
        return Flight(fetch, self._session.terms, self, own=own, refusal=refusal, parent=parent)

    def enqueue_request(self, request: Request) -> bool:
        """Take in a request that a spider yielded, or that a middleware put in the place of another."""
        origin = origin_of(request)
        if self._own:
            # Nobody but the frontier orders fetches of a collection; the replaced one is settled when it ends.
            return origin is None and self._enqueue_direct(request)
        url = crawlable(request)
        if self._duplicates.holds(request, web=url is not None):
            return False
        if url is None:
            return self._enqueue_direct(request)
        unique = request.dont_filter or self._duplicates.decides
        link = self._requests.put(request, url, unique=unique, parent=origin)
        if link is None:
            return False
        self._crawler.stats.inc_value("scheduler/enqueued")
        self.frontier.offer(link)
        self._worker.stir()
        return True

    # ---------------------------------------------- what became of a fetch

    def land(self, flight: Flight, fetched: Fetched) -> None:
        """The download of a flight ended. A second call for the same flight has no effect."""
        if flight.landed or (self._aborted and fetched.error is not None):
            return
        if fetched.error == "cut" and not self.frontier.may_send():
            fetched = Fetched(fetched.fetch, fetched.at, fetched.seconds, error="lapsed")
        flight.landed = True
        flight.fetched = fetched
        self._robots_stats(fetched)
        self.frontier.landed(fetched)
        self._set_timer()

    async def read_file(self, fetched: Fetched) -> Fetched:
        """With what a robots.txt or a sitemap says, which was read beside the loop."""
        return await self.frontier.read_file(fetched)

    def now(self) -> float:
        """The frontier's clock, UTC seconds."""
        return self._session.now()

    async def _freshness(self) -> float | None:
        """Estimated share of the known pages whose copy is fresh; None: not known."""
        built = self._session.built
        if built is None or self._closing:
            return None
        return await self._worker.call(self.frontier.freshness)

    def examine_at_once(self, flight: Flight) -> Visit | None:
        """What a landed fetch means for its page; None where to find that out may take long."""
        assert flight.fetched is not None
        flight.visit = self.frontier.examine_at_once(flight.fetched)
        if flight.visit is not None:
            flight.let_go()
        return flight.visit

    async def examine_apart(self, flight: Flight) -> Visit | None:
        """What a landed fetch means for its page, found out beside the loop; None when the crawl was cut meanwhile."""
        assert flight.fetched is not None
        try:
            visit = await self.frontier.examine_apart(flight.fetched)
        except RuntimeError:  # no thread takes work any more
            visit = None
        finally:
            flight.let_go()
        flight.visit = None if self._aborted else visit
        return flight.visit

    def _ended(self, request: Request) -> None:
        """The engine is done with a request, whatever the end: callback, items, failure, replacement."""
        flight = arrive(request)
        if flight is None:
            return
        flight.let_go()
        if self._aborted and (not flight.landed or (flight.own and flight.visit is None)):
            return  # its lease goes back when the frontier closes
        self._end(flight)

    def _end(self, flight: Flight) -> None:
        """A flight is over: settle its page, unless requests came of it that live in memory alone."""
        if not flight.landed:
            self.land(flight, self._unanswered(flight, "filtered"))
        if flight.refusal is not None:
            self._refusals.ended()
        for done in flight.end():
            self._settle(done)
        if flight.waits and flight.fetch.lease is not None:
            self._waiting[flight.fetch.lease.id] = flight
            self.frontier.keep(flight.fetch.lease)
        self._worker.stir()

    def _settle(self, flight: Flight) -> None:
        lease = flight.fetch.lease
        if lease is not None and self._waiting.pop(lease.id, None) is not None:
            self.frontier.unkeep(lease)
        if flight.refusal is not None:
            self._refusals.settle(flight.refusal)
        elif flight.fetch.kind == "page":
            self._finish(flight)

    def _settle_stuck(self) -> bool:
        """Nothing is left but pages that wait for requests which the store has refused to take (its owner forgot
        their site): they wait in vain. Whether there were any."""
        stuck = list(self._waiting.values())
        for flight in stuck:
            flight.settled = True
            self._settle(flight)
        return bool(stuck)

    def _unanswered(self, flight: Flight, error: str) -> Fetched:
        """The end of a flight that brought no answer."""
        return Fetched(flight.fetch, self.now(), 0.0, error=error)

    def _finish(self, flight: Flight) -> None:
        fetched = flight.fetched
        assert fetched is not None
        if fetched.error == "lapsed":
            self.frontier.give_back(flight.fetch)
            return
        if not flight.own:
            if flight.once:
                assert flight.fetch.lease is not None
                self._refusals.once(flight.fetch.lease)
            self.frontier.acknowledge(flight.fetch, status=fetched.status, error=fetched.error, seconds=fetched.seconds)
            return
        if flight.visit is None and fetched.error is None:
            # The spider never saw it, or broke on it: it may be asked again, later.
            fetched = Fetched(flight.fetch, fetched.at, fetched.seconds, error="filtered")
        self.frontier.finish(flight.visit or self.frontier.examine(fetched))

    # ------------------------------------------------- requests of projects

    def _foreign_request(self, fetch: Fetch, refusal: Ended | None = None) -> Request | None:
        assert fetch.lease is not None
        try:
            taken = self._requests.take(fetch.lease)
        except ClassMissing as why:
            self._withhold(fetch, refusal, why)
            return None
        except (LostInMemory, ValueError, TypeError, KeyError) as error:
            self._forget(fetch, refusal, error)
            return None
        flight = self._flight(fetch, own=False, refusal=refusal, parent=taken.parent)
        depart(taken.request, flight)
        flight.once = is_one_off(taken.request)
        self._crawler.stats.inc_value("scheduler/dequeued")
        return taken.request

    def _withhold(self, fetch: Fetch, refusal: Ended | None, why: ClassMissing) -> None:
        """A request that only another version of the project can make keeps its place in the queue."""
        assert fetch.lease is not None
        if refusal is None:
            self.frontier.unasked(fetch)
        else:
            self._refusals.ended()
        self.frontier.keep(fetch.lease)
        self.metrics.inc("addon/withheld")
        if str(why) not in self._told:
            self._told.add(str(why))
            logger.error("Requests stay in the queue, because %s (counted in addon/withheld): %s", why, fetch.url)
        engine.wake(self._crawler)

    def _forget(self, fetch: Fetch, refusal: Ended | None, error: Exception) -> None:
        """A request that nobody can make again is settled."""
        if isinstance(error, LostInMemory):
            self.metrics.inc(
                "addon/lost_in_memory"
            )  # who yielded it was not settled, or is a start that yields it again
        else:
            logger.error("A stored request cannot be read again (%r): %s", error, fetch.url)
        if refusal is None:
            self.frontier.unasked(fetch)
        flight = self._flight(fetch, own=False, refusal=refusal)
        flight.landed = True
        flight.fetched = self._unanswered(flight, "filtered")
        self._end(flight)
        engine.wake(self._crawler)

    def _refused_request(self, refusal: Ended) -> Request | None:
        """A request that the engine ends at once: `RefusingMiddleware` sees to it."""
        lease = refusal.lease
        return self._foreign_request(Fetch(0, "page", lease.record.url, lease.site, None, lease=lease), refusal)

    def _enqueue_direct(self, request: Request) -> bool:
        """What is no web page (data:, file:) has no site and needs no politeness."""
        self._crawler.stats.inc_value("scheduler/enqueued/memory")
        self._crawler.stats.inc_value("scheduler/enqueued")
        self._direct.append(request)
        return True

    def _robots_stats(self, fetched: Fetched) -> None:
        """What Scrapy's middleware counts of robots.txt, under its names, for those who watch them."""
        if fetched.fetch.kind == "robots" and not self._own:
            stats = self._crawler.stats
            stats.inc_value("robotstxt/request_count")
            if fetched.status is None:
                stats.inc_value(f"robotstxt/exception_count/{fetched.error}")
            else:
                stats.inc_value("robotstxt/response_count")
                stats.inc_value(f"robotstxt/response_status_count/{fetched.status}")

    def _say_known(self) -> None:
        known = int(self.metrics.get("duplicates/by_store"))
        if known:
            logger.info(
                "%d requests were known from an earlier run of this crawl, and were not made again; "
                "WEBFOUNTAIN_FRESH=True begins anew, WEBFOUNTAIN_RECRAWL=True makes them again when they come due",
                known,
            )

    # ------------------------------------------------------- beside the walk

    def _load_seeds(self, edited: Collection | None = None) -> None:
        """In the worker thread, before anything else; those of an edited policy file when it is adopted."""
        built = self._session.built
        assert built is not None
        if built.seeds is None:
            return
        loaded = built.seeds(built.collection if edited is None else edited)
        self.metrics.inc("seeds/read", loaded.read)
        self.metrics.inc("seeds/new", loaded.new)
        for reason, (many, first) in loaded.refused.items():
            logger.warning("%d seeds are refused by the collection's own rules (%s): %s", many, reason, first)

    def _take_work(self) -> Batch | None:
        """The next batch. What it settles is in the feeds by then: an item of a settled page must not be lost."""
        work = self.frontier.take_work() if self._own else self._refusals.take_work()
        if work is not None and work.ended:
            engine.flush_feeds(self._crawler)
        return work

    def _absorbed(self) -> None:
        """A batch is done. Of what the store knew is said what Scrapy says of what its duplicate filter drops."""
        for link in self.frontier.take_known():
            request = self._requests.known(link)
            self._duplicates.log(request)
            self._crawler.signals.send_catch_log(request_dropped, request=request, spider=self._spider)
        engine.wake(self._crawler)

    def _failed(self, error: WebfountainError) -> None:
        self._session.error = error
        self.frontier.stop()
        engine.fail(self._crawler)

    def _tick(self) -> None:
        """What has to be looked at now and then: names to resolve, the end of the crawl."""
        if hosts := self.frontier.unresolved():
            self._resolver.ask(hosts, self._resolved)
        self._mind_term()
        if engine.is_closing(self._crawler):
            self._wind_down()
        elif (reason := self.frontier.finish_reason()) and not (reason == "idle" and self._refusals.unreported()):
            self._stop(reason)
        elif self._own:
            self._poll_policy()
        else:
            self._poll_start_urls()

    def _mind_term(self) -> None:
        """What is under way when the process can no longer be sure of its leases is cut, once."""
        lapsed = not self.frontier.may_send()
        if lapsed and not self._lapsed:
            logger.warning("The other ants may believe that this one is dead: nothing is sent until the store answers")
            self._crawler.signals.send_catch_log(ABORT)
        elif self._lapsed and not lapsed:
            logger.warning("The store answers: what is still this ant's goes on")
        self._lapsed = lapsed

    def _poll_start_urls(self) -> None:
        """Now and then: what others have pushed, taken in the worker thread."""
        now = time.monotonic()
        if self._start_urls is not None and self._polling is None and now >= self._poll_at:
            self._polling = asyncio.get_running_loop().create_task(self._take_start_urls(self._start_urls))

    async def _take_start_urls(self, start_urls: StartUrls) -> None:
        try:
            taken = await self._worker.call(partial(start_urls.take, self.now()))
            links = []
            for entry in taken:
                for request in start_urls.requests(entry.data):
                    url = crawlable(request)
                    unique = request.dont_filter or self._duplicates.decides
                    if url is None:
                        self._enqueue_direct(request)
                    elif (link := self._requests.put(request, url, unique=unique, parent=None)) is not None:
                        self._crawler.stats.inc_value("scheduler/enqueued")
                        links.append(link)
            if taken and not self._closing:
                await self._worker.call(partial(self.frontier.put_first, links))
                await self._worker.call(partial(start_urls.done, taken))
                self._worker.stir()
            self._poll_at = time.monotonic() + start_urls.wait_s
        except WebfountainError as error:
            logger.critical("%s", error)
            self._failed(error)
        finally:
            self._polling = None

    def _poll_policy(self) -> None:
        """Now and then: whether the policy file was edited. A poll is a `stat`, in the worker thread."""
        now = time.monotonic()
        if self._policy is not None and self._polling is None and now >= self._poll_at:
            self._poll_at = now + POLICY_POLL_S
            self._polling = asyncio.get_running_loop().create_task(self._adopt_edit())

    async def _adopt_edit(self) -> None:
        try:
            assert self._policy is not None
            edit = await self._worker.call(self._policy.poll)
            if edit is None or self._closing:
                return
            if edit.collection is None:
                logger.error("The edited policy file is refused, the crawl goes on with the one before: %s", edit.error)
                return
            self.frontier.adopt_collection(edit.collection)
            self._worker.stir()
            await self._worker.call(partial(self._load_seeds, edit.collection))
            wait = f"; these take effect at the next start: {', '.join(edit.waits)}" if edit.waits else ""
            logger.info("The edited policy file is in force%s", wait)
        finally:
            self._polling = None

    def _wind_down(self) -> None:
        """The engine waits for what is in flight; after a grace it is cut."""
        self.frontier.stop()
        now = time.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
        elif now - self._stopped_at > GRACE_S and not self._aborted:
            self._aborted = True
            self.frontier.cut_short()
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


def _tune_memory() -> None:
    """Hold the memory of a process that is all ours where it was after minutes, for days."""
    gc.freeze()  # what was imported stays: no full collection walks it again
    gc.set_threshold(GC_ALLOCATIONS, *gc.get_threshold()[1:])
    with suppress(OSError, AttributeError):  # another C library: it has its own ways
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_ARENA_MAX, ARENAS)
        set_option(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        set_option(_M_TRIM_THRESHOLD, 4 * MAPPED_BYTES)
