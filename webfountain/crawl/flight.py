"""A fetch on its way through Scrapy's engine: what is known of it until the engine is done with it.

It lies beside the request, not in `request.meta`: meta is the project's, whose callbacks copy it into items, write
it as JSON and hand it on. Only the request that the scheduler handed out has it, no copy of that request.

A request that lives in memory alone (`requests`) would be lost with the process, so the flight in whose course it
came is settled after it: `wait` counts it, `end` tells who need wait no longer. Written by the scheduler, read by
the downloader, its handler and the middlewares; what is to be done with a flight is the scheduler's business.

What becomes of another project's requests that the ant refuses, or that are not to be made again. Place in the walk:
between the frontier's batch and the worker that settles it, in add-on mode. Robots.txt (or an address that is
private, or missing) ends a leased request before it is ever handed out. Here it is taken out of the batch and goes
through the engine, where a middleware ends it as Scrapy's own would; when the engine is done with it, it is settled.
So a crash calls the errback again, and loses none.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

import msgspec

from webfountain.frontier.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

    from webfountain.download import Terms
    from webfountain.download.budget import HeldBody
    from webfountain.frontier.batch import Ended
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.records import Fetch, Fetched, Lease, LeaseId

__all__ = [
    "CURRENT",
    "Flight",
    "Landing",
    "Refusals",
    "arrive",
    "depart",
    "flight_of",
    "is_one_off",
    "origin_of",
    "replaced",
]

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

    async def read_file(self, fetched: Fetched) -> Fetched:
        """With what a robots.txt or a sitemap says, which was read beside the loop."""

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
        "held_body",
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
        self.held_body: HeldBody | None = None
        """The place of its body in the crawl's budget, of our own fetches."""
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

    def let_go(self) -> None:
        """Its body was examined, or will not be."""
        if self.held_body is not None:
            self.held_body.release()

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


MOST: Final = 1000
"""Refused requests in the engine or before it: above that the worker gets no batch that could bring more."""


def is_one_off(request: Request) -> bool:
    """Whether a request is made only as often as it is yielded, also under WEBFOUNTAIN_RECRAWL.

    One with `dont_filter` is itself and no other: what yields it (a callback, a retry) yields the next one too. But
    nothing yields a start request again.
    """
    is_start = request.meta.get("is_start_request") and not request.meta.get("retry_times")
    return request.dont_filter and not is_start


class Refusals:
    """Stands between a frontier and its worker; used in the loop thread. `now` is UTC seconds."""

    def __init__(self, frontier: Frontier, now: Callable[[], float]) -> None:
        self._frontier = frontier
        self._now = now
        self._refused: deque[Ended] = deque()
        self._in_engine = 0
        self._settled: list[Ended] = []
        self._once: set[LeaseId] = set()

    def take_work(self) -> Batch | None:
        """The frontier's next batch without what is refused in it, with what has been told to its errback."""
        batch = self._frontier.take_work() if self.unreported() <= MOST else None
        if batch is not None:
            self._refused += [each for each in batch.ended if not each.asked]
            batch.ended = [self._last(each) for each in batch.ended if each.asked]
        if self._settled:
            batch = batch or Batch(self._now())
            batch.ended += self._settled
            self._settled = []
        return batch

    def once(self, lease: Lease) -> None:
        """The request of a lease that is acknowledged now is not made again."""
        self._once.add(lease.id)

    def _last(self, acknowledged: Ended) -> Ended:
        if acknowledged.lease.id not in self._once:
            return acknowledged
        self._once.remove(acknowledged.lease.id)
        outcome = acknowledged.outcome
        once = msgspec.structs.replace(outcome, record=msgspec.structs.replace(outcome.record, due=inf))
        return msgspec.structs.replace(acknowledged, outcome=once)

    def next_refused(self) -> Ended | None:
        """One that the engine has to end now. `ended` must follow."""
        if not self._refused:
            return None
        self._in_engine += 1
        return self._refused.popleft()

    def ended(self) -> None:
        """The engine is done with one that `next_refused` gave."""
        self._in_engine -= 1

    def settle(self, refusal: Ended) -> None:
        """One that has ended goes with the next batch."""
        self._settled.append(refusal)

    def unreported(self) -> int:
        """How many refused requests the engine is not done with."""
        return len(self._refused) + self._in_engine

    def give_up(self) -> None:
        """The crawl ends: what no errback was told goes back to its queue, when the store closes."""
        self._refused.clear()
