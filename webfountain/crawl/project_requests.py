"""Keep the requests of a Scrapy project's spider in the frontier, and restore them when they are leased.

If a stored request's class or callback is missing, the request stays in the queue for another version of the project. A
damaged request is settled without being made. After each batch, `KnownRequests` processes the requests that the store
already knew. A request that may be made again (`revisits`) is put at the front of its site's queue. Any other is
dropped, as Scrapy's duplicate filter would drop it.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.signals import request_dropped

from webfountain.crawl import engine
from webfountain.crawl.flight import depart, origin_of
from webfountain.crawl.memory_requests import MemoryRequest, MemoryRequests
from webfountain.crawl.requests import Packer, crawlable, is_placeholder, link_of, says_ignore_robots
from webfountain.crawl.revisits import ALWAYS, NEVER, is_one_off, revisit_of
from webfountain.crawl.values import NameMissing, UnstorableValue
from webfountain.frontier.requests_by_url import made_before, make_again

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Sequence

    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.flight import Flight, Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.session import Session
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.records import Fetch, Lease, Link

__all__ = ["KnownRequests", "ProjectRequests"]

logger = logging.getLogger(__name__)


class ProjectRequests:
    """Converts the requests of one crawl to frontier records and back. Call all methods in the loop thread."""

    def __init__(self, session: Session, landings: Landings, *, duplicates: Duplicates, direct: DirectRequests) -> None:
        self._crawler = session.crawler
        self._session = session
        self._frontier = session.frontier
        self._duplicates = duplicates
        self._landings = landings
        self._direct = direct
        self._packer = Packer(session.spider)
        self.memory = MemoryRequests(again=session.opened.endless)
        self._has_warned = False
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
        if (orphan := self.memory.adopt(link.request or b"")) is not None:
            assert orphan.lease is not None
            self._frontier.sites.flights.unkeep(orphan.lease.id)
            self._frontier.give_back(orphan)
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
        return self._put(request, url, None)

    def request_of(self, fetch: Fetch, refusal: LeaseEnd | None = None) -> Request | None:
        """Return the request of a lease as the spider yielded it, or None if it cannot be restored."""
        assert fetch.lease is not None
        try:
            taken = self._take(fetch.lease)
        except NameMissing as why:
            self._withhold(fetch, refusal, why)
            return None
        except (ValueError, TypeError, KeyError) as error:
            logger.error("A stored request cannot be restored (%.200r): %s", error, fetch.url)
            self._forget(fetch, refusal)
            return None
        if taken is None:
            # The page that yielded it was not settled, or it is a start request that will be yielded again.
            self._session.metrics.inc("addon/lost_in_memory")
            self._forget(fetch, refusal)
            return None
        flight = self._landings.flight(fetch, own=False, refusal=refusal, parent=taken.parent)
        depart(taken.request, flight)
        revisit = revisit_of(taken.request)
        flight.revisit = NEVER if is_one_off(taken.request) else revisit
        if self._session.config.items == "changed":
            flight.page = self._crawler.request_fingerprinter.fingerprint(taken.request)
        return taken.request

    def settle_orphans(self) -> bool:
        """Settle each leased placeholder whose request the spider has not yielded again. Return whether any placeholder
        was settled.

        Call this method only when the crawl has nothing else left to do.
        """
        orphans = [] if self._missing else self.memory.take_orphans()
        for fetch in orphans:
            assert fetch.lease is not None
            self._frontier.sites.flights.unkeep(fetch.lease.id)
            self._settle_unmade(fetch, None)
        return bool(orphans)

    def known(self, link: Link) -> Request:
        """Return a request that the store already knew, and subtract it from Scrapy's stats of enqueued requests."""
        self._count("enqueued", "memory" if is_placeholder(link.request) else "disk", -1)
        return self.peek(link)

    def peek(self, link: Link) -> Request:
        """Return the Scrapy request that a `Link` contains. If the request cannot be restored, return a plain request
        for its URL.
        """
        if is_placeholder(link.request):
            return self.memory.request(link.request or b"") or Request(link.url)
        try:
            return self._packer.unpack(link.request or b"")
        except (ValueError, TypeError, KeyError):
            return Request(link.url)

    def _put(self, request: Request, url: str, origin: Flight | None) -> Link | None:
        """Convert a Scrapy request to the `Link` that the store keeps. Return None if the request is kept in memory and
        the spider has already yielded an equal request.
        """
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        unique = request.dont_filter or self._duplicates.decides
        if unique:
            # It is as long as every other fingerprint: a shared store keeps the fingerprints of a site side by side.
            fingerprint = hashlib.sha1(fingerprint + os.urandom(8), usedforsecurity=False).digest()
        try:
            link = link_of(request, url, self._packer.pack(request), fingerprint)
        except UnstorableValue as why:
            self._warn(request, why)
        else:
            self._count("enqueued", "disk")
            return link
        ignores = says_ignore_robots(request.meta)
        put = self.memory.put(request, fingerprint, ignores_robots=ignores, unique=unique, parent=origin)
        if put is None:
            return None
        key, place = put
        self._count("enqueued", "memory")
        return link_of(request, url, place, key)

    def _take(self, lease: Lease) -> MemoryRequest | None:
        """Return the Scrapy request of a leased page, or None if the request was in the memory of another process.

        Raises
        ------
        NameMissing, ValueError, TypeError, KeyError
            see `Packer.unpack`.
        """
        data = lease.record.request
        if data is None:
            self._crawler.stats.inc_value("scheduler/dequeued")
            return MemoryRequest(Request(lease.record.url), None)
        is_in_memory = is_placeholder(data)
        taken = self.memory.take(data) if is_in_memory else MemoryRequest(self._packer.unpack(data), None)
        if taken is not None:
            self._count("dequeued", "memory" if is_in_memory else "disk")
        return taken

    def _count(self, what: str, where: str, many: int = 1) -> None:
        self._crawler.stats.inc_value(f"scheduler/{what}", many)
        self._crawler.stats.inc_value(f"scheduler/{what}/{where}", many)

    def _warn(self, request: Request, why: UnstorableValue) -> None:
        self._session.metrics.inc("addon/in_memory")
        self._crawler.stats.inc_value("scheduler/unserializable")
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "A request stays in memory, because %s. After a restart the page that yielded it is requested "
                "again (counted in addon/in_memory, logged once): %s",
                why,
                request,
                extra={"event": "addon/in_memory"},
            )

    def _withhold(self, fetch: Fetch, refusal: LeaseEnd | None, why: NameMissing) -> None:
        """If a request's class or callback is missing, keep its lease, so that another version of the project can make
        the request.
        """
        assert fetch.lease is not None
        if refusal is None:
            self._frontier.sites.flights.unasked(fetch)
        else:
            self._landings.refused_ended()
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

    def _forget(self, fetch: Fetch, refusal: LeaseEnd | None) -> None:
        """Settle a request that cannot be restored, or keep its lease if the spider may yield the request again."""
        assert fetch.lease is not None
        if refusal is None:
            self._frontier.sites.flights.unasked(fetch)
        if refusal is None and self.memory.keep_orphan(fetch, fetch.lease.record.request or b""):
            self._frontier.sites.flights.keep(fetch.lease.id)
        else:
            self._settle_unmade(fetch, refusal)
        engine.wake(self._crawler)

    def _settle_unmade(self, fetch: Fetch, refusal: LeaseEnd | None) -> None:
        flight = self._landings.flight(fetch, own=False, refusal=refusal)
        flight.landed = True
        flight.fetched = self._landings.unanswered(flight)
        self._landings.end(flight)


class KnownRequests:
    """Processes requests that the store already knew: some are dropped, others are made again."""

    def __init__(
        self, session: Session, landings: Landings, *, requests: ProjectRequests, duplicates: Duplicates
    ) -> None:
        self._session = session
        self._frontier = session.frontier
        self._requests = requests
        self._duplicates = duplicates
        self._landings = landings
        self._began = session.now()
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

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._session.worker.begin(work)
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
        made = {link.key for link in await self._session.on_store(again)}
        self._session.metrics.inc("addon/made_again", len(made))
        for link, _ in links:
            if link.key not in made:
                self._drop(link)
        self._unseen_puts += bool(made)
        self._session.worker.stir()

    async def _find_made(self, links: Sequence[Link]) -> None:
        """Drop the requests in memory that were already made in an earlier run."""
        for link in await self._session.on_store(partial(made_before, links=links)):
            self._drop(link)
            for done in self._requests.memory.made_before(link.request or b""):
                self._landings.settle(done)
        self._session.worker.stir()
        engine.wake(self._session.crawler)

    def _drop(self, link: Link) -> None:
        request = self._requests.known(link)
        self._duplicates.log(request)
        crawler = self._session.crawler
        crawler.signals.send_catch_log(request_dropped, request=request, spider=crawler.spider)
