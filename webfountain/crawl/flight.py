"""A fetch on its way through Scrapy's engine: what rides along in `request.meta` until the engine is done with it.

Written by the scheduler, read by the download handler and the middlewares. It holds state of one request and
nothing else; what is to be done with it is the scheduler's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scrapy import Request

    from webfountain.download.fetcher import Terms
    from webfountain.frontier.batch import Refusal
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.records import Fetch, Fetched

__all__ = ["FLIGHT", "Flight", "flight_of"]

FLIGHT: Final = "webfountain"
"""The key in `request.meta`."""


class Flight:
    """One fetch in the engine. `own`: our own request, not one that another project's spider made.

    With a `refusal` it is only there to be ended: it was never handed out and does not land.
    """

    __slots__ = ("fetch", "fetched", "landed", "once", "own", "refusal", "request", "terms", "visit")

    def __init__(self, fetch: Fetch, terms: Terms, *, own: bool, refusal: Refusal | None = None) -> None:
        self.fetch = fetch
        self.terms = terms
        self.own = own
        self.fetched: Fetched | None = None
        """What the download handler brought, also when it raised."""
        self.landed = refusal is not None
        self.refusal = refusal
        self.request: Request | None = None
        """The request that carries it; a copy of it that a middleware made does not."""
        self.once = False
        """Whether its request is not made again, known or not."""
        self.visit: Visit | None = None

    def __copy__(self) -> Flight:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Flight:
        """One fetch has one flight, also when a middleware copies the request with its meta."""
        return self


def flight_of(request: Request) -> Flight | None:
    """The flight of a request that the scheduler handed out, else None."""
    flight = request.meta.get(FLIGHT)
    return flight if isinstance(flight, Flight) else None
