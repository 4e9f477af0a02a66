"""A flight: the data of a fetch while Scrapy's engine works on it.

A weak dictionary maps each request to its flight. The flight is not in `request.meta`, because the meta belongs to the
project. A copy of a request has no flight.

A request that is not plain data exists only in memory (`requests`) and would be lost with the process. A page is
settled only when all in-memory requests that its callback yielded are done. Each flight counts the in-memory requests
for which it waits.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

    from webfountain.download.body_budget import HeldBody
    from webfountain.download.fetcher import Terms
    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.visit import Visit
    from webfountain.records import Fetch, FetchResult

__all__ = ["CURRENT", "Flight", "FlightListener", "arrive", "depart", "flight_of", "origin_of", "replaced"]

CURRENT: Final[ContextVar[Flight | None]] = ContextVar("CURRENT", default=None)
"""The flight whose response or failure the spider is processing."""
_FLIGHTS: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
_REPLACED: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
"""Maps each new request from a downloader middleware to the flight of the request that it replaced."""


class FlightListener(Protocol):
    """The receiver of a flight's events."""

    def land(self, flight: Flight, fetched: FetchResult) -> None:
        """Process the result of a flight's download. Only the first call for a flight has an effect."""

    def leave_queue(self, flight: Flight) -> None:
        """Record that the flight's request left the downloader's queue and is being sent."""

    def count_apart(self, flight: Flight) -> None:
        """Record that the request waits in a downloader slot other than its host's (`download_slot`)."""

    def now(self) -> float:
        """Return the frontier's time, UTC seconds."""

    async def read_file(self, fetched: FetchResult) -> FetchResult:
        """Parse a fetched robots.txt or sitemap, and return the result of the fetch with the parsed content."""

    def examine_at_once(self, flight: Flight) -> Visit | None:
        """Compare a fetched page with its copy, or return None if this would block the event loop for long."""

    async def examine_apart(self, flight: Flight) -> Visit | None:
        """Compare a fetched page with its copy, in another thread; return None if the crawl ends meanwhile."""


class Flight:
    """One fetch while the engine works on it. `own` is False for a request of a Scrapy project's spider.

    If a flight has a `refusal`, nothing is sent: the engine only calls the errback of the flight's request. `parent` is
    the flight that waits until this flight is settled.
    """

    def __init__(
        self,
        fetch: Fetch,
        terms: Terms,
        landing: FlightListener,
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
        self.once = False
        """True if the request must not be made again."""
        self.page: bytes | None = None
        """The fingerprint of the request, under which the digests of its items are stored (`new_items`)."""
        self.replaced = False
        """True if a middleware replaced the request by another."""
        self.revisit: float | None = None
        """The interval `meta["revisit"]` after which the request may be made again, in seconds."""
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
