"""The data of a fetch while Scrapy's engine works on it, called a flight.

A flight is linked to the request, but not through `request.meta`. Meta belongs to the project, whose callbacks copy it
into items, write it as JSON and pass it on. Only the request that the scheduler handed out has a flight; copies of that
request have none.

A request that is not plain data exists only in memory (`requests`) and would be lost with the process. So the flight
that yielded such a request is settled after it: `wait` counts these requests, and `end` returns the flights that need
not wait any longer. The scheduler changes flights; the downloader, its handler and the middlewares read them. The
scheduler decides what happens to a flight.
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
"""Request that a downloader middleware put in the place of another -> flight of the replaced request."""


class FlightListener(Protocol):
    """The receiver of a flight's events: the scheduler."""

    def land(self, flight: Flight, fetched: FetchResult) -> None:
        """Process the end of a flight's download. A second call for the same flight has no effect."""

    def leave_queue(self, flight: Flight) -> None:
        """Record that the flight's request left the downloader's queue and is being sent. A second call has no
        effect."""

    def count_apart(self, flight: Flight) -> None:
        """Record that the flight's request is paced by a slot that does not belong to its site."""

    def now(self) -> float:
        """Return the frontier's time, UTC seconds."""

    async def read_file(self, fetched: FetchResult) -> FetchResult:
        """Return the fetch with the parsed content of a robots.txt or sitemap. The file is read outside the loop."""

    def examine_at_once(self, flight: Flight) -> Visit | None:
        """Return what a landed fetch means for its page; None if examining it may take long."""

    async def examine_apart(self, flight: Flight) -> Visit | None:
        """Return what a landed fetch means for its page, examined outside the loop; None if the crawl ended."""


class Flight:
    """One fetch while the engine works on it. `own`: the request is the crawl's own and not one of another project's
    spider.

    A flight with a `refusal` exists only to be ended: its request was never handed out and does not land. The flight
    `parent` waits for this one.
    """

    __slots__ = (
        "_waits_for",
        "ended",
        "fetch",
        "fetched",
        "held_body",
        "landed",
        "landing",
        "lost_items",
        "once",
        "own",
        "page",
        "parent",
        "queued",
        "refusal",
        "replaced",
        "revisit",
        "settled",
        "terms",
        "visit",
    )

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
        """True if the download handler has returned or raised."""
        self.held_body: HeldBody | None = None
        """The entry of its body in the crawl's memory budget; only for our own fetches."""
        self.landed = refusal is not None
        self.refusal = refusal
        self.parent = parent
        self.once = False
        """True if its request must not be made again, even if it is known."""
        self.page: bytes | None = None
        """The fingerprint of its request: the key under which its items are remembered, if that is switched on."""
        self.replaced = False
        """True if a middleware put another request in its place."""
        self.revisit: float | None = None
        """Seconds after which its request may be made again, from its meta."""
        self.queued = False
        """True while its request waits in the downloader's slot. Meanwhile its site hands out no other request."""
        self.lost_items = False
        """True if one of its items could not be delivered because the target of a pipeline was unreachable."""
        self.ended = False
        """True if the engine is done with it."""
        self.settled = False
        """True if the engine's part of settling its page is done."""
        self.visit: Visit | None = None
        self._waits_for = 0

    def let_go(self) -> None:
        """Free the memory of its body, which was examined or will not be."""
        if self.held_body is not None:
            self.held_body.release()

    def wait(self) -> None:
        """Count one more request of this flight that exists only in memory.

        It does nothing once the flight is settled, because a task that a callback left behind may yield requests for
        ever.
        """
        self._waits_for += 1

    def end(self) -> Iterator[Flight]:
        """Mark the flight as ended. Return the flights that may be settled now, each once.

        These are the flight itself, if it does not wait, and flights that waited only for it.
        """
        self.ended = True
        return self._settleable()

    def wait_no_longer(self) -> Iterator[Flight]:
        """Stop waiting for one of its requests, because this request need not be made. Return the flights that may be
        settled now.
        """
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
        """Return whether some of its requests exist only in memory and are not settled."""
        return self._waits_for > 0 and not self.settled


def depart(request: Request, flight: Flight) -> None:
    """Link a flight to a request that the engine receives. From now on `flight_of` returns the flight."""
    _FLIGHTS[request] = flight


def arrive(request: Request) -> Flight | None:
    """Return the flight of a request that the engine is done with. `flight_of` no longer returns it."""
    return _FLIGHTS.pop(request, None)


def replaced(flight: Flight, by: Request) -> None:
    """Record that a middleware replaced the request of a flight by another one, for example for a redirect or a
    retry."""
    flight.replaced = True
    _REPLACED[by] = flight


def origin_of(request: Request) -> Flight | None:
    """Return the flight whose callback yielded the request that is being scheduled; None for start requests."""
    return _REPLACED.pop(request, None) or CURRENT.get()


def flight_of(request: Request) -> Flight | None:
    """Return the flight of a request that the scheduler handed out and the engine is not done with, else None."""
    return _FLIGHTS.get(request)
