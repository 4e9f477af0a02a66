"""Process each flight from the end of its download until its page is settled.

A flight goes through three steps: download, comparison of the page with its copy, and end of the request in the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.crawl import engine
from webfountain.crawl.flight import Flight, arrive
from webfountain.crawl.revisits import NEVER
from webfountain.frontier.requests_by_url import REPLACED
from webfountain.records import FetchResult, LeaseId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.crawl.refusals import Refusals
    from webfountain.crawl.session import Session
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.visit import Visit
    from webfountain.records import Fetch

__all__ = ["Landings"]


class Landings:
    """The flights of one crawl (`flight.FlightListener`).

    Parameters
    ----------
    refusals : the refused requests that the engine must end
    set_timer : called after each landing, to wake the engine in time
    stir : called when there may be work for the worker
    on_landed : called with each fetch that landed
    """

    def __init__(
        self,
        crawler: Crawler,
        session: Session,
        frontier: Frontier,
        *,
        refusals: Refusals,
        set_timer: Callable[[], None],
        stir: Callable[[], None],
        on_landed: Callable[[FetchResult], None],
    ) -> None:
        self._crawler = crawler
        self._session = session
        self._frontier = frontier
        self._refusals = refusals
        self._set_timer = set_timer
        self._stir = stir
        self._on_landed = on_landed
        self._waiting: dict[LeaseId, Flight] = {}
        """The flights that wait for in-memory requests, by lease."""
        self._pages: dict[LeaseId, bytes] = {}
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

    # ---------------------------------------------------------- `flight.FlightListener`

    def land(self, flight: Flight, fetched: FetchResult) -> None:
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
        self._set_timer()

    def leave_queue(self, flight: Flight) -> None:
        """Record that the downloader sends the request now, so that the delay before the site's next request begins."""
        if flight.queued and not flight.landed and self._session.pace is not None:
            flight.queued = False
            delay = self._session.pace.delay_of(self._crawler.engine.downloader, flight.fetch.url)
            self._frontier.sites.flights.queue_empty(flight.fetch, wait_s=delay.shortest)
            self._set_timer()

    def count_apart(self, flight: Flight) -> None:
        """Record that a request waits in a downloader slot other than its host's, and is not counted as a request to
        its site.
        """
        if not flight.landed and flight.refusal is None:
            self._frontier.sites.flights.count_apart(flight.fetch)
            engine.wake(self._crawler)

    def now(self) -> float:
        return self._frontier.now()

    async def read_file(self, fetched: FetchResult) -> FetchResult:
        return await self._frontier.examiner.read_file(fetched)

    def examine_at_once(self, flight: Flight) -> Visit | None:
        assert flight.fetched is not None
        flight.visit = self._frontier.examiner.examine_at_once(flight.fetched)
        if flight.visit is not None:
            flight.let_go()
        return flight.visit

    async def examine_apart(self, flight: Flight) -> Visit | None:
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
            self._refusals.ended()
        for done in flight.end():
            self.settle(done)
        if flight.waits and flight.fetch.lease is not None:
            self._waiting[flight.fetch.lease.id] = flight
            self._frontier.sites.flights.keep(flight.fetch.lease.id)
        self._stir()

    def settle(self, flight: Flight) -> None:
        """Settle the page of a flight."""
        lease = flight.fetch.lease
        if lease is not None and self._waiting.pop(lease.id, None) is not None:
            self._frontier.sites.flights.unkeep(lease.id)
        if flight.refusal is not None and flight.lost_items:
            self._frontier.sites.flights.keep(flight.refusal.lease.id)  # its errback is called again in the next run
        elif flight.refusal is not None:
            self._refusals.settle(flight.refusal)
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
        assert self._session.built is not None
        if flight.once or flight.revisit == NEVER:
            self._refusals.make_again_at(lease, NEVER)
        elif flight.revisit and self._session.built.endless:
            self._refusals.make_again_at(lease, fetched.at + flight.revisit)
        if flight.page is not None:
            self._pages[lease.id] = flight.page
        error = REPLACED if flight.replaced else fetched.error
        self._frontier.acknowledge(flight.fetch, status=fetched.status, error=error, seconds=fetched.seconds)
