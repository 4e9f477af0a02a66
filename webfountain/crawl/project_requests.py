"""Keep the requests of a Scrapy project's spider in the frontier, and restore them when they are leased.

If a stored request's class or callback is missing, the request stays in the queue for another version of the project. A
damaged request is settled without being made.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from webfountain.crawl import engine
from webfountain.crawl.flight import depart, origin_of
from webfountain.crawl.requests import LostInMemory, crawlable
from webfountain.crawl.revisits import NEVER, is_one_off, revisit_of
from webfountain.crawl.values import NameMissing

if TYPE_CHECKING:
    from scrapy import Request

    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.flight import Flight, Landings
    from webfountain.crawl.memory_requests import DirectRequests
    from webfountain.crawl.requests import RequestStore
    from webfountain.crawl.session import Session
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.records import Fetch, Link

__all__ = ["ProjectRequests"]

logger = logging.getLogger(__name__)


class ProjectRequests:
    """Converts the requests of one crawl to frontier records and back. Call all methods in the loop thread."""

    def __init__(
        self,
        session: Session,
        landings: Landings,
        *,
        requests: RequestStore,
        duplicates: Duplicates,
        direct: DirectRequests,
    ) -> None:
        self._crawler = session.crawler
        self._session = session
        self._frontier = session.frontier
        self._stored = requests
        self._duplicates = duplicates
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
        revisit = revisit_of(taken.request)
        flight.revisit = NEVER if is_one_off(taken.request) else revisit
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
