"""Keep the requests of a Scrapy project's spider in the frontier, and restore them when they are leased.

If a stored request's class or callback is missing, the request stays in the queue for another version of the project. A
damaged request is settled without being made. After each batch, `KnownRequests` processes the requests that the store
already knew. If a request that the store already knew may be made again (`revisits`), it is put at the front of its
site's queue. A known request that may not be made again is dropped, as Scrapy's duplicate filter would drop it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy.signals import request_dropped

from webfountain.crawl import engine
from webfountain.crawl.flight import depart, origin_of
from webfountain.crawl.memory_requests import is_placeholder
from webfountain.crawl.refusals import is_one_off
from webfountain.crawl.requests import LostInMemory, crawlable
from webfountain.crawl.revisits import ALWAYS, NEVER, revisit_of
from webfountain.crawl.values import NameMissing
from webfountain.frontier.requests_by_url import made_before, make_again

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.flight import Flight
    from webfountain.crawl.landings import Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.refusals import Refusals
    from webfountain.crawl.requests import RequestStore
    from webfountain.crawl.session import Session
    from webfountain.crawl.worker_thread import Worker
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.frontier import Frontier
    from webfountain.metrics import Metrics
    from webfountain.records import Fetch, Link
    from webfountain.store.contract import FrontierStore

__all__ = ["KnownRequests", "ProjectRequests"]

logger = logging.getLogger(__name__)


class KnownRequests:
    """Processes requests that the store already knew: some are dropped, others are made again."""

    def __init__(
        self,
        crawler: Crawler,
        frontier: Frontier,
        worker: Worker,
        *,
        requests: RequestStore,
        duplicates: Duplicates,
        landings: Landings,
        metrics: Metrics,
    ) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._worker = worker
        self._requests = requests
        self._duplicates = duplicates
        self._landings = landings
        self._metrics = metrics
        self._began = frontier.now()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unseen_puts = 1  # notes and failed requests are put at the front before the first batch
        self._counted_puts = 0

    def is_busy(self) -> bool:
        """Return whether the crawl must stay open because known requests may still be made again."""
        return bool(self._tasks) or bool(self._unseen_puts)

    def count(self) -> None:
        """Record that the current batch counts all requests put back in the queues so far."""
        self._counted_puts = self._unseen_puts

    def absorb(self) -> None:
        """Process the requests that the last batch reported as known."""
        self._unseen_puts, self._counted_puts = self._unseen_puts - self._counted_puts, 0
        known = self._frontier.progress.take_known()
        placeholders = [link for link in known if is_placeholder(link.request)]
        others = [link for link in known if not is_placeholder(link.request)]
        if placeholders:
            self._begin(self._find_made(placeholders))
        if again := [found for link in others if (found := self._revisited(link)) is not None]:
            self._begin(self._make_again(again))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _revisited(self, link: Link) -> tuple[Link, float] | None:
        """Return a known request and a time: the request is made again if it was last made before that time. Drop the
        request and return None if it may not be made again.
        """
        revisit = revisit_of(self._requests.peek(link))
        if revisit is None or revisit == NEVER:
            self._drop(link)
            return None
        return link, self._began if revisit == ALWAYS else self._frontier.now() - revisit

    async def _make_again(self, links: Sequence[tuple[Link, float]]) -> None:
        again = partial(make_again, links=links, now=self._frontier.now)
        made = {link.key for link in await self._on_store(again)}
        self._metrics.inc("addon/made_again", len(made))
        for link, _ in links:
            if link.key not in made:
                self._drop(link)
        self._unseen_puts += bool(made)
        self._worker.stir()

    async def _find_made(self, links: Sequence[Link]) -> None:
        """Drop the requests in memory that were already made in an earlier run."""
        for link in await self._on_store(partial(made_before, links=links)):
            self._drop(link)
            for done in self._requests.memory.made_before(link.request or b""):
                self._landings.settle(done)
        self._worker.stir()
        engine.wake(self._crawler)

    async def _on_store(self, function: Callable[[FrontierStore], Sequence[Link]]) -> Sequence[Link]:
        return await self._worker.call(partial(self._frontier.worker.on_store, function))

    def _drop(self, link: Link) -> None:
        request = self._requests.known(link)
        self._duplicates.log(request)
        self._crawler.signals.send_catch_log(request_dropped, request=request, spider=self._crawler.spider)


class ProjectRequests:
    """Converts the requests of one crawl to frontier records and back. Call all methods in the loop thread."""

    def __init__(
        self,
        crawler: Crawler,
        session: Session,
        frontier: Frontier,
        *,
        stored: RequestStore,
        duplicates: Duplicates,
        refusals: Refusals,
        landings: Landings,
        direct: DirectRequests,
    ) -> None:
        self._crawler = crawler
        self._session = session
        self._frontier = frontier
        self._stored = stored
        self._duplicates = duplicates
        self._refusals = refusals
        self._landings = landings
        self._direct = direct
        self._missing: set[str] = set()  # reasons why requests were withheld, each logged once

    def enqueue(self, request: Request) -> bool:
        """Add a request of a spider or a middleware to the frontier. Return False if the request is dropped."""
        origin, url = origin_of(request), crawlable(request)
        if self._session.pace is not None:
            self._session.pace.is_apart(request)  # before anything is sent to its host
        if origin is not None and self._landings.goes_back(origin):
            return False  # its request is made again, and so are the requests that its end yields
        if self._duplicates.holds(request, web=url is not None):
            return False
        if url is None:
            self._direct.put(request)
            return True
        link = self._put(request, url, origin)
        if link is None:
            return False
        if (orphan := self._stored.memory.adopt(link.request or b"")) is not None:
            assert orphan.lease is not None
            self._frontier.sites.flights.unkeep(orphan.lease.id)
            self._frontier.give_back(orphan)
        self._crawler.stats.inc_value("scheduler/enqueued")
        self._frontier.offer(link)
        return True

    def link_of(self, request: Request) -> Link | None:
        """Convert a start request to the `Link` that the store keeps. Return None for a duplicate, and for a request
        that does not use HTTP.
        """
        url = crawlable(request)
        if url is None:
            self._direct.put(request)
            return None
        link = self._put(request, url, None)
        if link is not None:
            self._crawler.stats.inc_value("scheduler/enqueued")
        return link

    def request_of(self, fetch: Fetch, refusal: LeaseEnd | None = None) -> Request | None:
        """Return the request of a lease as the spider yielded it, or None if it cannot be restored."""
        assert fetch.lease is not None
        try:
            taken = self._stored.take(fetch.lease)
        except NameMissing as why:
            self._withhold(fetch, refusal, why)
            return None
        except (LostInMemory, ValueError, TypeError, KeyError) as error:
            self._forget(fetch, refusal, error)
            return None
        flight = self._landings.flight(fetch, own=False, refusal=refusal, parent=taken.parent)
        depart(taken.request, flight)
        flight.once = is_one_off(taken.request)
        flight.revisit = revisit_of(taken.request)
        if self._session.config.items == "changed":
            flight.page = self._crawler.request_fingerprinter.fingerprint(taken.request)
        self._crawler.stats.inc_value("scheduler/dequeued")
        return taken.request

    def settle_orphans(self) -> bool:
        """Settle each leased placeholder whose request the spider has not yielded again. Return whether any placeholder
        was settled.

        Call this method only when the crawl has nothing else left to do.
        """
        orphans = [] if self._missing else self._stored.memory.take_orphans()
        for fetch in orphans:
            assert fetch.lease is not None
            self._frontier.sites.flights.unkeep(fetch.lease.id)
            self._settle_unmade(fetch, None)
        return bool(orphans)

    def _put(self, request: Request, url: str, origin: Flight | None) -> Link | None:
        unique = request.dont_filter or self._duplicates.decides
        return self._stored.put(request, url, unique=unique, parent=origin)

    def _withhold(self, fetch: Fetch, refusal: LeaseEnd | None, why: NameMissing) -> None:
        """If a request's class or callback is missing, keep its lease, so that another version of the project can make
        the request.
        """
        assert fetch.lease is not None
        if refusal is None:
            self._frontier.sites.flights.unasked(fetch)
        else:
            self._refusals.ended()
        self._frontier.sites.flights.keep(fetch.lease.id)
        self._session.metrics.inc("addon/withheld")
        if str(why) not in self._missing:
            self._missing.add(str(why))
            logger.error(
                "Requests stay in the queue, because %s (counted in addon/withheld): %s",
                why,
                fetch.url,
                extra={"event": "addon/withheld"},
            )
        engine.wake(self._crawler)

    def _forget(self, fetch: Fetch, refusal: LeaseEnd | None, error: Exception) -> None:
        """Settle a request that cannot be restored, or keep its lease if the spider may yield the request again."""
        assert fetch.lease is not None
        if isinstance(error, LostInMemory):
            # The page that yielded it was not settled, or it is a start request that will be yielded again.
            self._session.metrics.inc("addon/lost_in_memory")
        else:
            logger.error("A stored request cannot be restored (%.200r): %s", error, fetch.url)
        if refusal is None:
            self._frontier.sites.flights.unasked(fetch)
        place = fetch.lease.record.request or b""
        is_orphan = isinstance(error, LostInMemory) and refusal is None
        if is_orphan and self._stored.memory.keep_orphan(fetch, place):
            self._frontier.sites.flights.keep(fetch.lease.id)
        else:
            self._settle_unmade(fetch, refusal)
        engine.wake(self._crawler)

    def _settle_unmade(self, fetch: Fetch, refusal: LeaseEnd | None) -> None:
        flight = self._landings.flight(fetch, own=False, refusal=refusal)
        flight.landed = True
        flight.fetched = self._landings.unanswered(flight)
        self._landings.end(flight)
