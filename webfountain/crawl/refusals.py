"""Call the errback of each Scrapy request that webfountain refuses, for example because of robots.txt.

The frontier refuses a request if robots.txt forbids the URL, or if its host has no address or a private address.
`Refusals` passes a refused request to Scrapy's engine, and a middleware raises the error that the errback receives. A
refused request is settled only after its errback has run, so the errback is called again after a crash.
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
"""While more refused requests than this wait for their errbacks, the worker gets no new batch."""


def is_one_off(request: Request) -> bool:
    """Return whether a request is made only once, even with WEBFOUNTAIN_RECRAWL.

    The frontier does not repeat a request with `dont_filter`, because a callback will yield it anew; it repeats start
    requests.
    """
    is_start = request.meta.get("is_start_request") and not request.meta.get("retry_times")
    return request.dont_filter and not is_start


class Refusals:
    """Keeps refused requests out of the frontier's batches until their errbacks have been called. Call all methods in
    the loop thread.
    """

    def __init__(self, frontier: Frontier, now: Callable[[], float]) -> None:
        self._frontier = frontier
        self._now = now
        self._refused: deque[LeaseEnd] = deque()
        self._in_engine = 0
        self._settled: list[LeaseEnd] = []
        self._due: dict[LeaseId, float] = {}

    def take_work(self) -> Batch | None:
        """Return the frontier's next batch; it contains a refused request only after the request's errback has been
        called.
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
        """Set the time at which the request of a lease is made again, UTC seconds; infinity means never."""
        self._due[lease.id] = due

    def _last(self, acknowledged: LeaseEnd) -> LeaseEnd:
        due = self._due.pop(acknowledged.lease.id, None)
        if due is None:
            return acknowledged
        outcome = acknowledged.outcome
        last = msgspec.structs.replace(outcome, record=msgspec.structs.replace(outcome.record, due=due))
        return msgspec.structs.replace(acknowledged, outcome=last)

    def next_refused(self) -> LeaseEnd | None:
        """Return a refused request for the engine, or None. When the engine has processed the request, the caller must
        call `ended`.
        """
        if not self._refused:
            return None
        self._in_engine += 1
        return self._refused.popleft()

    def ended(self) -> None:
        """Record that the engine has processed a request that `next_refused` returned."""
        self._in_engine -= 1

    def settle(self, refusal: LeaseEnd) -> None:
        """Add a refused request to the next batch after its errback has been called."""
        self._settled.append(refusal)

    def unreported(self) -> int:
        """Return the number of refused requests whose errbacks have not been called yet."""
        return len(self._refused) + self._in_engine

    def give_up(self) -> None:
        """At the end of the crawl, forget the refused requests that still wait for the engine; the next run makes them
        again.
        """
        self._refused.clear()
