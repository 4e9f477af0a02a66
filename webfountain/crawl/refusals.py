"""End requests of another project that the ant refuses, or that must not be made again.

A leased request may end before it is handed out, because of robots.txt or a private or missing address. In add-on mode,
this module takes such a request out of the batch and passes it through the engine, where a middleware calls its
errback. The refused request is settled when the engine is done with it, so after a crash the errback is called again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from webfountain.frontier.batch import LeaseEnd
    from webfountain.frontier.frontier import Frontier
    from webfountain.records import Lease, LeaseId

__all__ = ["MOST", "Refusals", "is_one_off"]

MOST: Final = 1000
"""With this number of refused requests in or before the engine, the worker gets no new batch."""


def is_one_off(request: Request) -> bool:
    """Return whether a request is made only once each time it is yielded, even under WEBFOUNTAIN_RECRAWL.

    A request with `dont_filter` is made once, unless it is a start request, which no callback yields again.
    """
    is_start = request.meta.get("is_start_request") and not request.meta.get("retry_times")
    return request.dont_filter and not is_start


class Refusals:
    """Filters the batches between a frontier and its worker; for the loop thread. `now` returns UTC seconds."""

    def __init__(self, frontier: Frontier, now: Callable[[], float]) -> None:
        self._frontier = frontier
        self._now = now
        self._refused: deque[LeaseEnd] = deque()
        self._in_engine = 0
        self._settled: list[LeaseEnd] = []
        self._due: dict[LeaseId, float] = {}

    def take_work(self) -> Batch | None:
        """Return the frontier's next batch. Newly refused requests are taken out, and earlier refused requests are
        added after their errback was called.
        """
        batch = self._frontier.work.take() if self.unreported() <= MOST else None
        if batch is not None:
            self._refused += [each for each in batch.ended if not each.asked]
            batch.ended = [self._last(each) for each in batch.ended if each.asked]
        if self._settled:
            batch = batch or Batch(self._now())
            batch.ended += self._settled
            self._settled = []
        return batch

    def make_again_at(self, lease: Lease, due: float) -> None:
        """Record the time at which the acknowledged request of a lease is made again (inf: never)."""
        self._due[lease.id] = due

    def _last(self, acknowledged: LeaseEnd) -> LeaseEnd:
        due = self._due.pop(acknowledged.lease.id, None)
        if due is None:
            return acknowledged
        outcome = acknowledged.outcome
        last = msgspec.structs.replace(outcome, record=msgspec.structs.replace(outcome.record, due=due))
        return msgspec.structs.replace(acknowledged, outcome=last)

    def next_refused(self) -> LeaseEnd | None:
        """Return a refused request for the engine, or None. The caller must call `ended` later."""
        if not self._refused:
            return None
        self._in_engine += 1
        return self._refused.popleft()

    def ended(self) -> None:
        """Record that the engine is done with a request that `next_refused` returned."""
        self._in_engine -= 1

    def settle(self, refusal: LeaseEnd) -> None:
        """Add an ended refusal to the next batch."""
        self._settled.append(refusal)

    def unreported(self) -> int:
        """Return the number of refused requests that the engine is not done with."""
        return len(self._refused) + self._in_engine

    def give_up(self) -> None:
        """Drop the waiting refusals at the end of the crawl, so that their requests go back to their queues."""
        self._refused.clear()
