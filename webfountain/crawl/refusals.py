"""What becomes of another project's requests that the ant refuses, or that are not to be made again.

Place in the walk: between the frontier's batch and the worker that settles it, in add-on mode. Robots.txt (or an
address that is private, or missing) ends a leased request before it is ever handed out. Here it is taken out of the
batch and goes through the engine, where a middleware ends it as Scrapy's own would; when the engine is done with it,
it is settled. So a crash calls the errback again, and loses none.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from webfountain.frontier.batch import Ended
    from webfountain.frontier.frontier import Frontier
    from webfountain.records import Lease, LeaseId

__all__ = ["Refusals", "is_one_off"]

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
        batch = self._frontier.take_work() if self.untold() <= MOST else None
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

    def untold(self) -> int:
        """How many refused requests the engine is not done with."""
        return len(self._refused) + self._in_engine

    def give_up(self) -> None:
        """The crawl ends: what no errback was told goes back to its queue, when the store closes."""
        self._refused.clear()
