"""The progress of one process: what it has handed out, what is in flight, what is left to do, and what limits its rate.

No fetch is handed out if the budget is used up, the worker is behind, or the crawl ends. The progress display and
`webfountain status` show in words what limits the rate of fetches (`RateLimit`).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.config import FountainConfig
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.sites.active_list import ActiveList, ActiveListStatistics
    from webfountain.frontier.visit import Visit
    from webfountain.policy.tables import CycleTable
    from webfountain.records import FetchResult, Link
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import Board

__all__ = [
    "IDLE_S",
    "LIMIT",
    "MAX_PENDING_BYTES",
    "MAX_PENDING_VISITS",
    "FrontierStatistics",
    "Progress",
    "RateLimit",
    "TokenBucket",
    "published_limit",
]

LIMIT: Final = "rate-limit"
"""Name under which the `RateLimit` is published."""
MAX_PENDING_BYTES: Final = 32_000_000
MAX_PENDING_VISITS: Final = 512
"""Limits on the bodies and visits that wait for the worker. No fetch is handed out while too many bodies or visits wait
for the worker.
"""
_POLL_S: Final = 0.02
IDLE_S: Final = 60.0
"""A crawl with `--until-idle` counts as idle if no never-crawled URL becomes due within this time, in seconds
(DESIGN.md section 7).
"""
_BURST: Final = 0.02
"""Largest burst after a pause, as a share of the fetches that the budget allows per period."""
_STALL_S: Final = 5.0
"""After a stall, the process makes up for at most this many seconds of missed fetches, and at most the share
_STALL_SHARE of a period.
"""
_STALL_SHARE: Final = 0.2


class RateLimit(msgspec.Struct, frozen=True, array_like=True):
    """A description of what limited a process's rate of fetches at the time `at`, UTC seconds."""

    at: float
    words: str


def published_limit(board: Board) -> RateLimit | None:
    """Return the `RateLimit` that was published last, or None."""
    value = board.value(LIMIT)
    return None if value is None else msgspec.msgpack.decode(value, type=RateLimit)


class FrontierStatistics(msgspec.Struct, frozen=True):
    """A snapshot of one crawling process."""

    store: Statistics
    active_sites: int
    in_flight: int
    pending_visits: int
    pending_bytes: int


class TokenBucket:
    """A token bucket that evenly releases `capacity` pages in each `period` seconds. If `capacity` is None, there is no
    limit.
    """

    __slots__ = ("_burst_s", "_step", "_virtual")

    def __init__(self, capacity: int | None, period: float, *, start: float) -> None:
        self._step = 0.0 if capacity is None else period / capacity
        self._burst_s = max(_BURST * period, min(_STALL_S, _STALL_SHARE * period), self._step)
        self._virtual = start

    def open_at(self) -> float:
        """Return the time at which the budget allows one more page."""
        return -inf if not self._step else self._virtual

    def take(self, at: float, *, share: float = 1.0) -> None:
        """Count one page against the budget. `share` is this process's share of the budget."""
        self._virtual = max(self._virtual, at - self._burst_s) + self._step / share


class Progress:
    """Counts the fetches of one process, and finds what limits their rate. `start` is the current time, UTC seconds."""

    def __init__(
        self, config: FountainConfig, cycle: CycleTable, sites: ActiveList, *, stored: Statistics, start: float
    ) -> None:
        self._config = config
        self._sites = sites
        self._most = inf if config.max_pages is None else config.max_pages
        self._pace = TokenBucket(cycle.capacity_pages_per_period, cycle.period_s, start=start)
        self.share = 1.0
        """The process's share of the crawl's budget."""
        self._started = start
        self._checked_at = -inf
        self._never_crawled_due: float | None = None
        self._immediate_left = False
        self._known: list[Link] = []
        self._handed_out = 0
        self._pending_visits = 0
        self._written_visits = 0
        self._pending_bytes = 0
        self._examined_bytes = 0
        self.stored = stored
        """The store's counts after the last batch."""
        self.working = False
        """True if the worker has a batch."""
        self.stopped = False
        """True if the crawl was stopped."""
        self.is_paused = False
        """True if the crawl is paused."""
        self.is_drained = False
        """True if this process is giving up its sites in order to end."""
        self.lacks_room = False
        """True if the disk has too little room for new copies."""
        self._is_adding_seeds = False

    # -------------------------------------------------------------- the budget

    def open_at(self) -> float:
        """Return the time at which one more fetch may be handed out, or inf if no such time is known."""
        if self._is_held() or self._handed_out >= self._most or self.congested():
            return inf
        return self._pace.open_at()

    def _is_held(self) -> bool:
        return any((self.stopped, self.is_paused, self.is_drained, self.lacks_room))

    def limit(self, at: float) -> str:
        """Return in words what limits the rate of fetches now.

        The causes are checked in the order in which `Frontier.next` checks them, so the first cause that applies is the
        actual limit.
        """
        holds: tuple[tuple[bool, str], ...] = (
            (self.stopped, "the crawl ends"),
            (self.is_drained, "it was drained and ends"),
            (self.is_paused, "it is paused (`webfountain resume`)"),
            (self.lacks_room, "the disk of the copies is full"),
            (self._handed_out >= self._most, "--max-pages is reached"),
            (self._is_adding_seeds, "seeds are being added"),
            (self.congested(), "pages are fetched faster than they are read and written"),
            (self._pace.open_at() > at, "the budget (cycle.capacity_pages_per_period)"),
        )
        hold = next((words for holds_now, words in holds if holds_now), None)
        return hold or _limit_of(self._sites.statistics())

    def congested(self) -> bool:
        """Return whether too many bodies and visits wait for the worker."""
        held = self._pending_bytes + self._examined_bytes
        return held > MAX_PENDING_BYTES or self._pending_visits > MAX_PENDING_VISITS

    def spend(self, at: float) -> None:
        """Count one page against the budget."""
        self._pace.take(at, share=self.share)
        self._handed_out += 1

    # ---------------------------------------------------------- with the worker

    @contextmanager
    def adding_seeds(self) -> Iterator[None]:
        """Report that seeds limit the rate during a ``with`` block, in which the worker thread adds seeds."""
        self._is_adding_seeds = True
        try:
            yield
        finally:
            self._is_adding_seeds = False

    @contextmanager
    def examining(self, fetched: FetchResult) -> Iterator[None]:
        """Count a body as held in memory during a ``with`` block, in which the body waits to be examined."""
        self._examined_bytes += len(fetched.body)
        try:
            yield
        finally:
            self._examined_bytes -= len(fetched.body)

    def wait_for_worker(self, visit: Visit) -> None:
        """Count a visit as held in memory until the worker has written it."""
        self._pending_visits += 1
        self._pending_bytes += _size_of(visit)

    async def all_written(self, *, within_s: float) -> None:
        """Wait at most `within_s` seconds until all visits that are pending now are in the store."""
        import asyncio  # noqa: PLC0415  (20 ms; `status` reads what this module published)

        awaited = self._written_visits + self._pending_visits
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._written_visits < awaited:
                    await asyncio.sleep(_POLL_S)

    def absorb(self, result: BatchResult) -> None:
        """Apply the result of a batch."""
        self.working = False
        self.lacks_room = result.lacks_room
        self.is_paused = result.is_paused
        self.is_drained |= result.is_drained
        visits = [ended.visit for ended in result.batch.ended if ended.visit is not None]
        self._pending_visits -= len(visits)
        self._written_visits += len(visits)
        self._pending_bytes -= sum(map(_size_of, visits))
        if result.statistics is not None:
            self.stored = result.statistics
        self._never_crawled_due = result.never_crawled_due
        if result.never_crawled_due is not None:
            self._checked_at = result.batch.at
        self._immediate_left = result.immediate_left
        self._known += result.known

    def take_known(self) -> list[Link]:
        """Remove and return the offered requests that the store already had."""
        known, self._known = self._known, []
        return known

    # ----------------------------------------------------------------- the end

    def is_busy(self, batch: Batch) -> bool:
        """Return whether a fetch is in flight, or a page of this or an earlier batch is not settled yet."""
        return bool(self._sites.flights or self._pending_visits or batch.has_ends())

    def has_pending(self, batch: Batch) -> bool:
        """Return whether the crawl knows a URL that it has not requested yet."""
        left = self.stored.pages["never-crawled"] + self.stored.immediate > self._sites.flights.kept
        return left or self.working or self.is_busy(batch)

    def finish_reason(self, batch: Batch, *, all_idle: float | None = -inf) -> str | None:
        """Return why the crawl should end now, or None if the crawl continues.

        `all_idle` is a time at which every ant of the crawl was idle, or None.
        """
        if self._config.max_seconds is not None and batch.at - self._started >= self._config.max_seconds:
            return "max_seconds"
        if self._handed_out >= self._most and not self.is_busy(batch):
            return "max_pages"
        if self.is_drained and not self.is_busy(batch):
            return "drained"
        if not self._config.until_idle or all_idle is None:
            return None
        return "idle" if self._is_idle(batch) and self._checked_at >= all_idle else None

    def is_resting(self, batch: Batch) -> bool:
        """Return whether nothing is in flight and no active site has work that is due within IDLE_S seconds."""
        return not (self.is_busy(batch) or self._immediate_left or self._sites.has_before(batch.at + IDLE_S))

    def _is_idle(self, batch: Batch) -> bool:
        """Return whether nothing is in flight and no never-crawled URL becomes due within IDLE_S seconds."""
        if self.working or self._never_crawled_due is None or not self.is_resting(batch):
            return False
        return self._never_crawled_due > batch.at + IDLE_S

    def statistics(self) -> FrontierStatistics:
        """Return the current counts."""
        return FrontierStatistics(
            store=self.stored,
            active_sites=self._sites.statistics().sites,
            in_flight=len(self._sites.flights),
            pending_visits=self._pending_visits,
            pending_bytes=self._pending_bytes,
        )


def _size_of(visit: Visit) -> int:
    """Return the approximate size of a visit in memory, in bytes."""
    return len(visit.fetched.body) + 3 * len(visit.reading.text)


def _limit_of(sites: ActiveListStatistics) -> str:
    """If nothing stops the whole process, return in words what slows down its sites."""
    if not sites.sites or (not sites.in_flight and sites.quiet >= sites.sites):
        return "nothing is due"
    if sites.preparing >= sites.sites:
        return "it waits for robots.txt and addresses"
    if sites.in_flight:
        return "politeness: sites wait for their turn or for answers"
    return "politeness: the sites rest between two requests"
