"""The recorder: it describes a crawl in a snapshot every two seconds and in a sample once a minute.

The loop calls `snapshot` and passes the result to a thread that stores it for readers. A thread that may use the store
calls `record`. If several processes share a store, one of them keeps the history for all, and adds up their counts.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.cluster.ant_notes import ants_of
from webfountain.history.archive import MINUTE_S, Archive
from webfountain.history.live import MAX_SITES, LiveSnapshot, live_sites
from webfountain.history.publishing import drop_dead
from webfountain.history.sample import OUTCOMES, HistorySample, bounded
from webfountain.records import FETCHED, STATES
from webfountain.report.plan import plan_words
from webfountain.report.status import status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.planning.plan import Plan
    from webfountain.metrics import Metrics
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["KEEPER", "Recorder"]

KEEPER: Final = "role/history"
"""Name claimed by the process that keeps the history of a shared store."""
_KEEPER_S: Final = 3.0 * MINUTE_S
_WINDOW_S: Final = 10.0
"""Time over which a snapshot averages the crawl rate, in seconds."""


class Recorder:
    """The recorder of one process. `sizes` returns the sizes of store and repository in bytes, or None."""

    def __init__(
        self,
        crawl: Frontier,
        metrics: Metrics,
        *,
        now: Callable[[], float],
        sizes: Callable[[], tuple[int | None, int | None]] = lambda: (None, None),
    ) -> None:
        self._crawl = crawl
        self._metrics = metrics
        self._now = now
        self._sizes = sizes
        self._began = self._last_snapshot = self._recorded_at = now()
        self._rates: deque[tuple[float, int]] = deque([(self._began, 0)])
        self._limits: Counter[str] = Counter()
        self._counted: dict[str, dict[str, float]] = {crawl.owner: {}}  # counts by process, at the last record
        self._keeps = False

    def snapshot(self, *, lag_s: float = 0.0) -> LiveSnapshot:
        """Return a snapshot of the crawl. Call this method in the loop thread. `lag_s` is the delay of the event
        loop."""
        at = self._now()
        passed, self._last_snapshot = at - self._last_snapshot, at
        progress, follower = self._crawl.progress, self._crawl.planner.follower
        found, counts, limit = progress.statistics(), self._metrics.snapshot(), progress.limit(self._crawl.now())
        self._limits[limit] += max(passed, 0.0)  # type: ignore[assignment]  # seconds are no whole numbers
        live, plan = list(live_sites(self._crawl.sites.site_statistics(MAX_SITES), at=at)), follower.plan
        fetched = fetches_of(counts)
        return LiveSnapshot(
            owner=self._crawl.owner,
            pid=os.getpid(),
            began=self._began,
            at=at,
            lag_s=lag_s,
            fetched=fetched,
            pages_per_second=self._rate(at, fetched),
            limit=limit,
            pages={str(state): found.store.pages.get(state, 0) for state in STATES},
            sites=found.store.sites,
            active_sites=found.active_sites,
            in_flight=found.in_flight,
            pending_visits=found.pending_visits,
            pending_bytes=found.pending_bytes,
            immediate=found.store.immediate,
            leased=found.store.leased,
            price=follower.schedule.price,
            plan=None if plan is None else plan_words(plan, at=at),
            waits=dict(Counter(site.reason for site in live)),
            live=live,
            counts=counts,
        )

    def _rate(self, at: float, fetched: int) -> float:
        self._rates.append((at, fetched))
        while len(self._rates) > 2 and at - self._rates[0][0] > _WINDOW_S:
            self._rates.popleft()
        (begun, before), (ended, after) = self._rates[0], self._rates[-1]
        return (after - before) / (ended - begun) if ended > begun else 0.0

    def record(self, store: FrontierStore) -> HistorySample | None:
        """Store the counts since the last call as a sample. Call this method in a thread that may use the store.

        Return None if another process keeps the history. The call takes about a dozen reads and one write of the store.
        """
        at = self._now()
        counts = {self._crawl.owner: self._metrics.snapshot()}
        if store.claims is not None:
            if not self._claim(store.claims, at):
                return None
            counts |= {name: ant.counts for name, ant in ants_of(store.claims, at).items() if name != self._crawl.owner}
            drop_dead(store.claims, owner=self._crawl.owner, at=at)
        sample = self._sample(store, counts, at)
        Archive(store.board).add(sample)
        return sample

    def _claim(self, claims: Claims, at: float) -> bool:
        """Return whether this process keeps the history."""
        [claim] = claims.claim([KEEPER], owner=self._crawl.owner, until=at + _KEEPER_S, at=at)
        keeps, self._keeps = claim.owner == self._crawl.owner, self._keeps
        # After a takeover, only later work of the other processes is counted.
        if keeps and not self._keeps:
            others = {name: dict(ant.counts) for name, ant in ants_of(claims, at).items() if name != self._crawl.owner}
            self._counted = {**others, self._crawl.owner: self._counted.get(self._crawl.owner, {})}
        self._keeps = keeps
        return keeps

    def _sample(self, store: FrontierStore, counts: Mapping[str, Mapping[str, float]], at: float) -> HistorySample:
        begun, self._recorded_at = self._recorded_at, at
        new = self._counts_since(counts)
        found = status(store, at=at)
        limits, self._limits = bounded(self._limits), Counter()
        store_bytes, repository_bytes = self._sizes()
        return HistorySample(
            at=float(at // MINUTE_S * MINUTE_S),
            seconds=max(at - begun, 0.0),
            pages=tuple(found["pages"][state] for state in STATES),
            sites=found["sites"],
            active_sites=found["active_sites"],
            outcomes=tuple(int(new[f"outcome/{kind}"]) for kind in OUTCOMES),
            errors={word: int(many) for word, many in bounded(_family(new, "fetch/error/")).items()},
            links_new=int(new["duplicates/new"]),
            bytes=int(new["fetch/bytes"]),
            planned=_planned(self._crawl.planner.follower.plan, begun, at),
            freshness=found["freshness"],
            freshness_low=found["freshness_low"],
            freshness_high=found["freshness_high"],
            price=self._crawl.planner.follower.schedule.price,
            limits=limits,
            store_bytes=store_bytes,
            repository_bytes=repository_bytes,
            ants=len(counts),
        )

    def _counts_since(self, counts: Mapping[str, Mapping[str, float]]) -> Counter[str]:
        """Return the counts of all processes since the last call. If a process has joined since the last call, all its
        counts are included."""
        new: Counter[str] = Counter()
        for name, now in counts.items():
            before = self._counted.get(name, {})
            for stat, many in now.items():
                new[stat] += max(many - before.get(stat, 0.0), 0.0)  # type: ignore[assignment]  # seconds, bytes
        self._counted = {name: dict(now) for name, now in counts.items()}
        return new


def fetches_of(counts: Mapping[str, float]) -> int:
    """Return the number of settled fetches, not counting refused pages."""
    return int(sum(counts.get(f"outcome/{kind}", 0.0) for kind in FETCHED))


def _family(counts: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name.removeprefix(prefix): many for name, many in counts.items() if name.startswith(prefix) and many}


def _planned(plan: Plan | None, begun: float, at: float) -> float | None:
    """Return how many fetches a plan schedules for a time span, or None without a plan."""
    if plan is None or at <= begun:
        return None
    planned = plan.fetches_until(at) - plan.fetches_until(max(begun, plan.start))
    return max(planned, 0.0) if planned != inf else None
