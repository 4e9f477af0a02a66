"""When a known page is due again: from its bucket alone until a plan exists.

The store's recrawl lanes are ordered by the time of the last crawl; a schedule turns "now" into a *horizon*, one
time per lane (`store.base`), and the first order of a lane into the time when it comes due. So nothing is rewritten
when the schedule changes.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Protocol

from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.store.base import ADVANCED, LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BucketSchedule", "NoRecrawl", "Schedule"]


class Schedule(Protocol):
    """Which recrawl lanes are due at a time, and the weight between a site's two queues."""

    def horizon(self, at: float) -> Sequence[float]:
        """For each of the LANES the latest order that is due at `at`."""
        ...

    def due_time(self, lane: int, order: float) -> float:
        """When a page of this lane with this order comes due."""
        ...

    def weights(self, at: float) -> Sequence[float]:
        """Weights of the never-crawled and the recrawl queue where both have a due URL (p and 1-p)."""
        ...


class BucketSchedule:
    """A page is due one mean change interval of its bucket after its last crawl, within the policy's bounds."""

    __slots__ = ("_intervals",)

    def __init__(self, *, fastest: float, min_interval: float = 0.0, max_interval: float = inf) -> None:
        self._intervals = [
            min(max(interval_of(bucket, fastest), min_interval), max_interval) for bucket in range(BUCKETS)
        ]

    def horizon(self, at: float) -> Sequence[float]:
        return [at - interval for interval in self._intervals] + [at] * (LANES - BUCKETS)

    def due_time(self, lane: int, order: float) -> float:
        return order if lane >= ADVANCED else order + self._intervals[lane]

    def weights(self, at: float) -> Sequence[float]:
        return (0.5, 0.5)


class NoRecrawl:
    """Nothing is ever due again: another project's requests, which are asked once."""

    def horizon(self, at: float) -> Sequence[float]:
        return [-inf] * LANES

    def due_time(self, lane: int, order: float) -> float:
        return inf

    def weights(self, at: float) -> Sequence[float]:
        return (1.0, 0.0)
