"""A fetch on its way through Scrapy's engine: what is known of it until the engine is done with it.

It lies beside the request, not in `request.meta`: meta is the project's, whose callbacks copy it into items, write
it as JSON and hand it on. Only the request that the scheduler handed out has it, no copy of that request.

A request that lives in memory alone (`requests`) would be lost with the process, so the flight in whose course it
came is settled after it: `wait` counts it, `end` tells who need wait no longer. Written by the scheduler, read by
the downloader, its handler and the middlewares; what is to be done with a flight is the scheduler's business.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

    from webfountain.download.fetcher import Terms
    from webfountain.frontier.batch import Ended
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.records import Fetch, Fetched

__all__ = ["CURRENT", "Flight", "Landing", "arrive", "depart", "flight_of", "origin_of", "replaced"]

CURRENT: Final[ContextVar[Flight | None]] = ContextVar("CURRENT", default=None)
"""The flight whose response or failure the spider is working on."""
_FLIGHTS: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
_REPLACED: Final[WeakKeyDictionary[Request, Flight]] = WeakKeyDictionary()
"""By the request that a downloader middleware put in the place of another: the flight of that other."""


class Landing(Protocol):
    """Who is told what came of a flight: the scheduler."""

    def land(self, flight: Flight, fetched: Fetched) -> None:
        """The download of a flight ended. A second call for the same flight has no effect."""

    def now(self) -> float:
        """The frontier's clock, UTC seconds."""

    def examine_at_once(self, flight: Flight) -> Visit | None:
        """What a landed fetch means for its page; None where to find that out may take long."""

    async def examine_apart(self, flight: Flight) -> Visit | None:
        """What a landed fetch means for its page, found out beside the loop; None when the crawl was cut meanwhile."""


class Flight:
    """One fetch in the engine. `own`: our own request, not one that another project's spider made.

    With a `refusal` it is only there to be ended: it was never handed out and does not land. `parent` waits for it.
    """

    __slots__ = (
        "_waits_for",
        "ended",
        "fetch",
        "fetched",
        "landed",
        "landing",
        "once",
        "own",
        "parent",
        "refusal",
        "settled",
        "terms",
        "visit",
    )

    def __init__(
        self,
        fetch: Fetch,
        terms: Terms,
        landing: Landing,
        *,
        own: bool,
        refusal: Ended | None = None,
        parent: Flight | None = None,
    ) -> None:
        self.fetch = fetch
        self.terms = terms
        self.landing = landing
        self.own = own
        self.fetched: Fetched | None = None
        """What the download handler brought, also when it raised."""
        self.landed = refusal is not None
        self.refusal = refusal
        self.parent = parent
        self.once = False
        """Whether its request is not made again, known or not."""
        self.ended = False
        """Whether the engine is done with it."""
        self.settled = False
        """Whether its page is settled, as far as the engine goes."""
        self.visit: Visit | None = None
        self._waits_for = 0

    def wait(self) -> None:
        """One more request came of it that lives in memory alone. Without effect once it is settled: a task that a
        callback left behind may yield for ever."""
        self._waits_for += 1

    def end(self) -> Iterator[Flight]:
        """The engine is done with it. The flights that may be settled now, each once: itself, if it waits for none,
        and those that waited for it alone."""
        self.ended = True
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
        """Whether requests came of it that live in memory alone and are not settled."""
        return self._waits_for > 0 and not self.settled


def depart(request: Request, flight: Flight) -> None:
    """The engine gets a request: from now on `flight_of` tells its flight."""
    _FLIGHTS[request] = flight


def arrive(request: Request) -> Flight | None:
    """The engine is done with a request: its flight, which `flight_of` tells no more."""
    return _FLIGHTS.pop(request, None)


def replaced(flight: Flight, by: Request) -> None:
    """A middleware put another request in the place of a flight's: a redirect, a retry."""
    _REPLACED[by] = flight


def origin_of(request: Request) -> Flight | None:
    """The flight in whose course a request comes that is scheduled now; None for start requests."""
    return _REPLACED.pop(request, None) or CURRENT.get()


def flight_of(request: Request) -> Flight | None:
    """The flight of a request that the scheduler handed out and the engine is not done with, else None."""
    return _FLIGHTS.get(request)
