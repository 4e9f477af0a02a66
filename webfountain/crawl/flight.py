"""The flights of a crawl: each fetch from the engine's request until its page is settled.

A weak dictionary maps each request to its flight. The flight is not in `request.meta`, because the meta belongs to the
project. A copy of a request has no flight. A flight goes through three steps: download, comparison of the page with its
copy, and end of the request in the engine.

A request that is not plain data exists only in memory (`requests`) and would be lost with the process. A page is
settled only when all in-memory requests that its callback yielded are done. Each flight counts the in-memory requests
for which it waits.

The frontier refuses a request of a Scrapy project if robots.txt forbids the URL, or if its host has no address or a
private address. The engine gets such a request, too, and a middleware raises the error that its errback receives. The
request is settled only after its errback has run, so the errback is called again after a crash.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from webfountain.crawl import engine
from webfountain.frontier.batch import Batch
from webfountain.frontier.requests_by_url import REPLACED
from webfountain.records import FetchResult, LeaseId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy import Request

    from webfountain.crawl.session import Session
    from webfountain.download.body_budget import HeldBody
    from webfountain.download.fetcher import Terms
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.visit import Visit
    from webfountain.records import Fetch

__all__ = ["CURRENT", "MOST_REFUSED", "Flight", "Landings", "arrive", "depart", "flight_of", "origin_of", "replaced"]

CURRENT: Final[ContextVar[Flight | None]] = ContextVar("CURRENT", default=None)
"""The flight whose response or failure the spider is processing."""
MOST_REFUSED: Final = 1000
"""While more refused requests than this wait for their errbacks, the worker gets no new batch."""
_FLIGHTS: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
_REPLACED: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
"""Maps each new request from a downloader middleware to the flight of the request that it replaced."""


class Flight:
    """One fetch while the engine works on it. `own` is False for a request of a Scrapy project's spider.

    If a flight has a `refusal`, nothing is sent: the engine only calls the errback of the flight's request. `parent` is
    the flight that waits until this flight is settled.
    """

    def __init__(
        self,
        fetch: Fetch,
        terms: Terms,
        landing: Landings,
        *,
        own: bool,
        refusal: LeaseEnd | None = None,
        parent: Flight | None = None,
    ) -> None:
        self.fetch = fetch
        self.terms = terms
        self.landing = landing
        self.own = own
        self.fetched: FetchResult | None = None
        self.held_body: HeldBody | None = None
        """The body's share of the memory budget; None for a request of a Scrapy project."""
        self.landed = refusal is not None
        self.refusal = refusal
        self.parent = parent
        self.page: bytes | None = None
        """The fingerprint of the request, under which the digests of its items are stored (`new_items`)."""
        self.replaced = False
        """True if a middleware replaced the request by another."""
        self.revisit: float | None = None
        """The interval after which the request may be made again, in seconds; None if the store decides."""
        self.queued = False
        """True while the request waits in a downloader slot; meanwhile the frontier sends no other request to the site.
        """
        self.lost_items = False
        """True if an item could not be delivered because the target of a pipeline was unreachable."""
        self.ended = False
        """True if the engine is done with the request."""
        self.settled = False
        """True if the page was given to the frontier to be settled."""
        self.visit: Visit | None = None
        self._waits_for = 0

    def let_go(self) -> None:
        """Release the part of the memory budget that the body occupies."""
        if self.held_body is not None:
            self.held_body.release()

    def wait(self) -> None:
        """Make this flight wait for one more request in memory."""
        self._waits_for += 1

    def end(self) -> Iterator[Flight]:
        """Mark the flight as ended. Return the flights that may now be settled: this flight, and each flight that
        waited only for this one.
        """
        self.ended = True
        return self._settleable()

    def wait_no_longer(self) -> Iterator[Flight]:
        """Stop waiting for one request that the store already knows, and return the flights that may now be settled."""
        self._waits_for -= 1
        return self._settleable()

    def _settleable(self) -> Iterator[Flight]:
        flight: Flight | None = self
        while flight is not None and flight.ended and not flight._waits_for:
            if not flight.settled:
                flight.settled = True
                yield flight
            parent, flight.parent = flight.parent, None
            if parent is not None:
                parent._waits_for -= 1
            flight = parent

    @property
    def waits(self) -> bool:
        """True if the flight waits for requests that exist only in memory."""
        return self._waits_for > 0 and not self.settled


class Landings:
    """The flights of one crawl. Call all methods in the loop thread.

    Parameters
    ----------
    on_landed : called with each fetch that landed
    """

    def __init__(self, session: Session, *, on_landed: Callable[[FetchResult], None]) -> None:
        self._crawler = session.crawler
        self._session = session
        self._frontier = session.frontier
        self._on_landed = on_landed
        self._waiting: dict[LeaseId, Flight] = {}
        """The flights that wait for in-memory requests, by lease."""
        self._pages: dict[LeaseId, bytes] = {}
        self._refused: deque[LeaseEnd] = deque()
        self._refused_in_engine = 0
        self._settled: list[LeaseEnd] = []
        self._is_cut = False

    def flight(
        self, fetch: Fetch, *, own: bool, refusal: LeaseEnd | None = None, parent: Flight | None = None
    ) -> Flight:
        """Return a new flight for a fetch."""
        assert self._session.terms is not None
        return Flight(fetch, self._session.terms, self, own=own, refusal=refusal, parent=parent)

    def cut(self) -> None:
        """Ignore all downloads that have not ended yet; the next run repeats their requests."""
        self._is_cut = True

    # ------------------------------------------------------- refused requests

    def take_work(self) -> Batch | None:
        """Return the frontier's next batch; it contains a refused request only after the request's errback has been
        called.
        """
        batch = self._frontier.work.take() if self.refused() <= MOST_REFUSED else None
        if batch is not None:
            self._refused += [each for each in batch.ended if not each.asked]
            batch.ended = [each for each in batch.ended if each.asked]
        if self._settled:
            batch = batch or Batch(self.now())
            batch.ended += self._settled
            self._settled = []
        return batch

    def next_refused(self) -> LeaseEnd | None:
        """Return a refused request for the engine, or None. When the engine has processed the request, the caller must
        call `refused_ended`.
        """
        if not self._refused:
            return None
        self._refused_in_engine += 1
        return self._refused.popleft()

    def refused_ended(self) -> None:
        """Record that the engine has processed a request that `next_refused` returned."""
        self._refused_in_engine -= 1

    def refused(self) -> int:
        """Return the number of refused requests whose errbacks have not been called yet."""
        return len(self._refused) + self._refused_in_engine

    def give_up(self) -> None:
        """At the end of the crawl, forget the refused requests that still wait for the engine; the next run makes them
        again.
        """
        self._refused.clear()

    # ------------------------------------------------------------ the download

    def land(self, flight: Flight, fetched: FetchResult) -> None:
        """Process the result of a flight's download. Only the first call for a flight has an effect."""
        if flight.landed or (self._is_cut and fetched.error is not None):
            return
        if fetched.error == "cut" and not self._frontier.may_send():
            fetched = FetchResult(fetched.fetch, fetched.at, fetched.seconds, error="lapsed")
        if flight.queued:  # it was answered or refused before it was sent, so the next one need not wait
            flight.queued = False
            self._frontier.sites.flights.queue_empty(flight.fetch, wait_s=0.0)
        flight.landed = True
        flight.fetched = fetched
        self._on_landed(fetched)
        self._frontier.landed(fetched)

    def leave_queue(self, flight: Flight) -> None:
        """Record that the downloader sends the request now, so that the delay before the site's next request begins."""
        if flight.queued and not flight.landed and self._session.pace is not None:
            flight.queued = False
            delay = self._session.pace.delay_of(self._crawler.engine.downloader, flight.fetch.url)
            self._frontier.sites.flights.queue_empty(flight.fetch, wait_s=delay.shortest)
            engine.wake(self._crawler)

    def count_apart(self, flight: Flight) -> None:
        """Record that a request waits in a downloader slot other than its host's, and is not counted as a request to
        its site.
        """
        if not flight.landed and flight.refusal is None:
            self._frontier.sites.flights.count_apart(flight.fetch)
            engine.wake(self._crawler)

    def now(self) -> float:
        """Return the frontier's time, UTC seconds."""
        return self._frontier.now()

    def examine_at_once(self, flight: Flight) -> Visit | None:
        """Compare a fetched page with its copy, or return None if this would block the event loop for long."""
        assert flight.fetched is not None
        flight.visit = self._frontier.examiner.examine_at_once(flight.fetched)
        if flight.visit is not None:
            flight.let_go()
        return flight.visit

    async def examine_apart(self, flight: Flight) -> Visit | None:
        """Compare a fetched page with its copy, in another thread; return None if the crawl ends meanwhile."""
        assert flight.fetched is not None
        try:
            visit = await self._frontier.examiner.examine_apart(flight.fetched)
        except RuntimeError:  # no thread accepts work any more
            visit = None
        finally:
            flight.let_go()
        flight.visit = None if self._is_cut else visit
        return flight.visit

    # ------------------------------------------------------------------ the end

    def ended(self, request: Request) -> None:
        """End the flight of a request that the engine is done with."""
        flight = arrive(request)
        if flight is None:
            return
        flight.let_go()
        if self._is_cut and (not flight.landed or (flight.own and flight.visit is None)):
            return  # its lease goes back when the frontier closes
        self.end(flight)

    def end(self, flight: Flight) -> None:
        """Settle the page of an ended flight as soon as the flight waits for no request in memory."""
        if not flight.landed:
            self.land(flight, self.unanswered(flight))
        if flight.refusal is not None:
            self.refused_ended()
        for done in flight.end():
            self.settle(done)
        if flight.waits and flight.fetch.lease is not None:
            self._waiting[flight.fetch.lease.id] = flight
            self._frontier.sites.flights.keep(flight.fetch.lease.id)
        self._session.worker.stir()

    def settle(self, flight: Flight) -> None:
        """Settle the page of a flight."""
        lease = flight.fetch.lease
        if lease is not None and self._waiting.pop(lease.id, None) is not None:
            self._frontier.sites.flights.unkeep(lease.id)
        if flight.refusal is not None and flight.lost_items:
            self._frontier.sites.flights.keep(flight.refusal.lease.id)  # its errback is called again in the next run
        elif flight.refusal is not None:
            self._settled.append(flight.refusal)
        elif flight.fetch.kind == "page":
            self._finish(flight)

    def settle_stuck(self) -> bool:
        """Settle all pages that still wait for requests in memory, because these requests cannot be made any more.
        Return whether any page was settled.

        Call this method only when the crawl has nothing else left to do.
        """
        stuck = list(self._waiting.values())
        for flight in stuck:
            flight.settled = True
            self.settle(flight)
        return bool(stuck)

    def goes_back(self, flight: Flight) -> bool:
        """Return whether a flight's download was aborted, so that its request must be made again."""
        if flight.fetched is not None and flight.fetched.error == "lapsed":
            return True
        return self._is_cut and not flight.landed

    def unanswered(self, flight: Flight) -> FetchResult:
        """Return the result for a flight that got no answer because a middleware dropped its request."""
        return FetchResult(flight.fetch, self.now(), 0.0, error="filtered")

    def take_pages(self, ended: Iterable[LeaseEnd]) -> list[bytes]:
        """Remove and return the fingerprints of requests that are done, for `new_items`."""
        found = (self._pages.pop(each.lease.id, None) for each in ended)
        return [page for page in found if page is not None]

    def _finish(self, flight: Flight) -> None:
        fetched = flight.fetched
        assert fetched is not None
        if fetched.error == "lapsed" or flight.lost_items:
            if flight.lost_items:
                self._session.metrics.inc("addon/asked_for_items")
            self._frontier.give_back(flight.fetch)
            return
        if not flight.own:
            self._acknowledge(flight, fetched)
            return
        if flight.visit is None and fetched.error is None:
            # The spider never saw it, or failed on it, so it may be requested again later.
            fetched = FetchResult(flight.fetch, fetched.at, fetched.seconds, error="filtered")
        self._frontier.finish(flight.visit or self._frontier.examiner.examine(fetched))

    def _acknowledge(self, flight: Flight, fetched: FetchResult) -> None:
        """Report to the frontier that a request of a Scrapy project was made."""
        lease = flight.fetch.lease
        assert lease is not None
        due = None
        if flight.revisit and (flight.revisit == inf or self._session.opened.endless):
            due = fetched.at + flight.revisit
        if flight.page is not None:
            self._pages[lease.id] = flight.page
        error = REPLACED if flight.replaced else fetched.error
        self._frontier.acknowledge(flight.fetch, status=fetched.status, error=error, seconds=fetched.seconds, due=due)


def depart(request: Request, flight: Flight) -> None:
    """Link a flight to a request that the engine receives."""
    _FLIGHTS[request] = flight


def arrive(request: Request) -> Flight | None:
    """Remove and return the flight of a request that the engine is done with."""
    return _FLIGHTS.pop(request, None)


def replaced(flight: Flight, by: Request) -> None:
    """Record that a middleware replaced the request of a flight, for example by a redirect."""
    flight.replaced = True
    _REPLACED[by] = flight


def origin_of(request: Request) -> Flight | None:
    """Return the flight whose callback yielded a request, or None for a start request."""
    return _REPLACED.pop(request, None) or CURRENT.get()


def flight_of(request: Request) -> Flight | None:
    """Return the flight of a request that the engine works on, or None."""
    return _FLIGHTS.get(request)
