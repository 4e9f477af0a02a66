"""Requests of another project's spider: store them in the frontier, and restore them from its leases.

Place in the walk: between the engine and the frontier. A request that cannot be restored keeps its place in the queue,
or is settled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from webfountain.crawl import engine
from webfountain.crawl.flight import depart, origin_of
from webfountain.crawl.project_classes import ClassMissing
from webfountain.crawl.refusals import is_one_off
from webfountain.crawl.requests import LostInMemory, crawlable
from webfountain.crawl.revisits import revisit_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.crawl.direct_requests import DirectRequests
    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.flight import Flight
    from webfountain.crawl.landings import Landings
    from webfountain.crawl.refusals import Refusals
    from webfountain.crawl.requests import RequestStore
    from webfountain.crawl.session import Session
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.frontier import Frontier
    from webfountain.records import Fetch, Link

__all__ = ["ProjectRequests"]

logger = logging.getLogger(__name__)


class ProjectRequests:
    """The requests of one crawl. The loop thread uses it."""

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
        """Store a request that a spider yielded, or that a middleware put in the place of another."""
        origin, url = origin_of(request), crawlable(request)
        if self._session.pace is not None:
            self._session.pace.is_apart(request)  # before anything is sent to its host
        if origin is not None and self._landings.goes_back(origin):
            return False  # its request is made again, and so are the requests of its end: a retry, an errback's request
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
        """Return the link that the store needs for a start request; None for a request that waits in memory or is
        dropped."""
        url = crawlable(request)
        if url is None:
            self._direct.put(request)
            return None
        link = self._put(request, url, None)
        if link is not None:
            self._crawler.stats.inc_value("scheduler/enqueued")
        return link

    def request_of(self, fetch: Fetch, refusal: LeaseEnd | None = None) -> Request | None:
        """Return the request of a lease as its spider yielded it; None if it cannot be restored now."""
        assert fetch.lease is not None
        try:
            taken = self._stored.take(fetch.lease)
        except ClassMissing as why:
            self._withhold(fetch, refusal, why)
            return None
        except (LostInMemory, ValueError, TypeError, KeyError) as error:
            self._forget(fetch, refusal, error)
            return None
        flight = self._landings.flight(fetch, own=False, refusal=refusal, parent=taken.parent)
        depart(taken.request, flight)
        flight.once = is_one_off(taken.request)
        flight.revisit = revisit_of(taken.request)
        if self._session.item_digests is not None:
            flight.page = self._crawler.request_fingerprinter.fingerprint(taken.request)
        self._crawler.stats.inc_value("scheduler/dequeued")
        return taken.request

    def settle_orphans(self) -> bool:
        """Settle placeholders of requests that were not yielded again, when nothing else is left to do. Return whether
        there were any.

         Withheld requests may still yield these orphans.
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

    def _withhold(self, fetch: Fetch, refusal: LeaseEnd | None, why: ClassMissing) -> None:
        """Leave a request in the queue that only another version of the project can restore."""
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
        """Settle a request that cannot be restored. A request that may be yielded again keeps its place."""
        assert fetch.lease is not None
        if isinstance(error, LostInMemory):
            # The page that yielded it was not settled, or it is a start request that will be yielded again.
            self._session.metrics.inc("addon/lost_in_memory")
        else:
            logger.error("A stored request cannot be read again (%.200r): %s", error, fetch.url)
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
        flight.fetched = self._landings.unanswered(flight, "filtered")
        self._landings.end(flight)
