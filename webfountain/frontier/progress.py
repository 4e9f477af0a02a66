"""How far one process has come, and whether it goes on: what it handed out, what is under way, what is left to do.

Place in the walk: asked before every fetch, told what goes out, what landed and what the worker has done. Three things
keep the next fetch back: the budget (pages a period, pages in all), a worker that is behind, and the end. It counts
and compares; whose turn it is the ant knows, and what is waiting in the store the store said with the last batch.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.agenda import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.config import FountainConfig
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy.tables import CycleTable
    from webfountain.records import Fetched
    from webfountain.store.contract import Statistics

__all__ = ["MAX_PENDING_BYTES", "MAX_PENDING_VISITS", "FrontierStatistics", "Progress"]

MAX_PENDING_BYTES: Final = 32_000_000
MAX_PENDING_VISITS: Final = 512
"""Bodies and visits that wait for the worker; above either no new fetch goes out, so memory stays bounded."""
_POLL_S: Final = 0.02
IDLE_S: Final = 60.0
"""`--until-idle`: idle is when no never-crawled URL comes due within this time (DESIGN.md section 7)."""


class FrontierStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot of one crawling process."""

    store: Statistics
    active_sites: int
    in_flight: int
    pending_visits: int
    pending_bytes: int
    handed_out: int


class Progress:
    """One process on its way. `start` is now, UTC seconds."""

    def __init__(self, config: FountainConfig, cycle: CycleTable, *, stored: Statistics, start: float) -> None:
        self._config = config
        self._most = inf if config.max_pages is None else config.max_pages
        self._pace = Pace(cycle.capacity_pages_per_period, cycle.period_s, start=start)
        self._started = start
        self._never_crawled_due: float | None = None
        self._immediate_left = False
        self._handed_out = 0
        self._pending_visits = 0
        self._written_visits = 0
        self._pending_bytes = 0
        self._examined_bytes = 0
        self.stored = stored
        """What the store held after the last batch."""
        self.working = False
        """Whether a batch is with the worker."""
        self.stopped = False
        """Whether nothing more may go out, because somebody said so."""

    # -------------------------------------------------------------- the budget

    def open_at(self) -> float:
        """From when on one more fetch may go out; inf: by time alone none may."""
        if self.stopped or self._handed_out >= self._most or self.congested():
            return inf
        return self._pace.open_at()

    def congested(self) -> bool:
        """Whether the worker is so far behind that nothing more should be fetched."""
        held = self._pending_bytes + self._examined_bytes
        return held > MAX_PENDING_BYTES or self._pending_visits > MAX_PENDING_VISITS

    def spend(self, at: float) -> None:
        """One page of the budget goes out."""
        self._pace.take(at)
        self._handed_out += 1

    # ---------------------------------------------------------- with the worker

    @contextmanager
    def examining(self, fetched: Fetched) -> Iterator[None]:
        """While a body waits for a thread that examines it, and for the end of that, it is in memory."""
        self._examined_bytes += len(fetched.body)
        try:
            yield
        finally:
            self._examined_bytes -= len(fetched.body)

    def wait_for_worker(self, visit: Visit) -> None:
        """A visit is in memory until the worker has written it."""
        self._pending_visits += 1
        self._pending_bytes += _size_of(visit)

    async def all_written(self, *, within_s: float) -> None:
        """Until what waits for the worker now is in the store, or the time is over."""
        awaited = self._written_visits + self._pending_visits
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._written_visits < awaited:
                    await asyncio.sleep(_POLL_S)

    def absorb(self, result: BatchResult) -> None:
        """A batch came back."""
        self.working = False
        visits = [ended.visit for ended in result.batch.ended if ended.visit is not None]
        self._pending_visits -= len(visits)
        self._written_visits += len(visits)
        self._pending_bytes -= sum(map(_size_of, visits))
        if result.statistics is not None:
            self.stored = result.statistics
        self._never_crawled_due = result.never_crawled_due
        self._immediate_left = result.immediate_left

    # ----------------------------------------------------------------- the end

    def is_busy(self, sites: ActiveList, batch: Batch) -> bool:
        """Anything in flight, or waiting to be settled: `batch` is the one being gathered."""
        return bool(sites.in_flight or self._pending_visits or batch.has_ends())

    def has_pending(self, sites: ActiveList, batch: Batch) -> bool:
        """Whether any URL is left to ask once: never-crawled, leased or offered."""
        left = self.stored.pages["never-crawled"] + self.stored.immediate > sites.kept
        return left or self.working or self.is_busy(sites, batch)

    def finish_reason(self, at: float, sites: ActiveList, batch: Batch) -> str | None:
        """Why the crawl should close now; None: it goes on."""
        if self._config.max_seconds is not None and at - self._started >= self._config.max_seconds:
            return "max_seconds"
        if self._handed_out >= self._most and not self.is_busy(sites, batch):
            return "max_pages"
        return "idle" if self._config.until_idle and self._is_idle(at, sites, batch) else None

    def _is_idle(self, at: float, sites: ActiveList, batch: Batch) -> bool:
        """DESIGN.md section 7: nothing in flight, and no never-crawled URL comes due within IDLE_S."""
        if self.working or self.is_busy(sites, batch) or self._immediate_left or self._never_crawled_due is None:
            return False
        return self._never_crawled_due > at + IDLE_S and not sites.has_before(at + IDLE_S)

    def statistics(self, sites: ActiveList) -> FrontierStatistics:
        """A frozen snapshot."""
        return FrontierStatistics(
            store=self.stored,
            active_sites=sites.statistics().sites,
            in_flight=sites.in_flight,
            pending_visits=self._pending_visits,
            pending_bytes=self._pending_bytes,
            handed_out=self._handed_out,
        )


def _size_of(visit: Visit) -> int:
    """About how many bytes a visit holds in memory."""
    return len(visit.fetched.body) + 3 * len(visit.reading.text)
