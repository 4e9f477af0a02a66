"""Our own schedule: the interval per bucket at which every fetch buys the same freshness, on each site's own clock.

The plan's budget for recrawling sets a price of a fetch; each bucket gets the interval at which a fetch is worth it
(`core.forecast`). Real pages are not independent: when one page of a site is found changed, its siblings are
likelier to be. So each site has a clock that runs faster through a burst of changes and slower through a lull
(`core.activity`, one section per site), and intervals are counted on it: after a release the whole site is due
sooner, oldest copies first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.activity import WINDOW, Activity, Signals
from webfountain.core.buckets import BUCKETS, intervals_of
from webfountain.core.sections import SITE, Sections
from webfountain.frontier.schedule import corrected
from webfountain.records import FETCHED
from webfountain.store.base import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.page import Visit
    from webfountain.frontier.plan import Plan
    from webfountain.frontier.schedule import Bounds

__all__ = ["FountainSchedule", "SiteClocks"]

_SITES: Final = 2000
"""Sites whose bursts are followed; the one that was not asked for longest is forgotten."""
_BATCH: Final = 16
"""Checks that are learned from at once; an observation revises two months of steps, so not each on its own."""
_SURE: Final = 20.0
"""Changes that a page's bucket is worth as evidence of its own rate, against what its site does."""


class SiteClocks:
    """For each followed site how its changes bunch: `elapsed` maps real time to time on the site's own clock.

    A step is `step_s` seconds. Only checks are heard, so a site that is not asked runs on real time.
    """

    def __init__(self, *, step_s: float, fastest: float) -> None:
        self._step_s = step_s
        self._fastest = fastest
        self._sites: OrderedDict[str, _SiteClock] = OrderedDict()

    def observe(self, site: str, *, since: float, at: float, changed: bool, bucket: int) -> None:
        """A page crawled at `since` was checked again `at`; `bucket` is what was believed of it before."""
        clock = self._sites.get(site)
        if clock is None:
            clock = self._sites[site] = _SiteClock(int(at // self._step_s))
            if len(self._sites) > _SITES:
                self._sites.popitem(last=False)
        self._sites.move_to_end(site)
        rate = self._step_s / float(intervals_of(bucket, self._fastest))
        clock.hear(int(since // self._step_s), int(at // self._step_s), changed, rate)

    def elapsed(self, site: str, at: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(times, elapsed): on the site's clock `elapsed[k]` seconds have passed since times[k], times ascending.

        None for a site that nothing is known of: its clock is the real one.
        """
        clock = self._sites.get(site)
        return None if clock is None else clock.elapsed(at, self._step_s)


class _SiteClock:
    """Activity of one site as one section."""

    def __init__(self, step: int) -> None:
        self._activity = Activity(
            Sections(max_depth=0), signals=Signals(history=False, sections=False), step=step - WINDOW
        )
        self._activity.advance(step)
        self._step = step
        self._heard: list[tuple[int, bool, float]] = []

    def hear(self, since: int, step: int, changed: bool, rate: float) -> None:
        if step > self._step:
            self._learn()
            self._activity.advance(step)
            self._step = step
        if since < self._step:
            self._heard.append((since, changed, rate))
            if len(self._heard) >= _BATCH or changed:
                self._learn()

    def _learn(self) -> None:
        if not self._heard:
            return
        since, changed, rate = (np.array(column) for column in zip(*self._heard, strict=True))
        self._heard.clear()
        section = np.full(len(since), SITE)
        relative = rate / self._activity.mean_rate(SITE)
        self._activity.observe(section, since, changed, _SURE * relative, np.full(len(since), _SURE))

    def elapsed(self, at: float, step_s: float) -> tuple[np.ndarray, np.ndarray]:
        steps = np.arange(self._step - WINDOW, self._step + 1)
        hazard = self._activity.hazard(np.full(len(steps), SITE), steps)
        since_step = at - self._step * step_s  # the running step counts as always
        return steps * step_s, hazard / self._activity.mean_rate(SITE) * step_s + since_step


class FountainSchedule:
    """Follows a plan's budget at one price per fetch, on the sites' own clocks."""

    def __init__(self, plan: Plan, *, bounds: Bounds, clocks: SiteClocks) -> None:
        self._plan = plan
        self._bounds = bounds
        self._clocks = clocks
        self._intervals = np.array(plan.intervals)
        self._gain = 1.0

    def horizon(self, site: str, at: float) -> list[float]:
        wanted = self._intervals * self._gain
        known = self._clocks.elapsed(site, at)
        if known is None:
            return self._bounds.lanes((at - wanted).tolist(), at)
        times, elapsed = known
        latest = np.interp(-wanted, -elapsed, times)
        # Before the window the site's clock is the real one.
        before = times[0] - (wanted - elapsed[0])
        return self._bounds.lanes(np.where(wanted > elapsed[0], before, latest).tolist(), at)

    def due_time(self, lane: int, order: float) -> float:
        if lane >= ADVANCED:
            return order
        return self._bounds.due(order, order + float(self._intervals[lane]) * self._gain)

    def weights(self, at: float) -> Sequence[float]:
        p = self._plan.weights[self._plan.period_at(at)]
        return (p, 1.0 - p)

    def observe(self, visit: Visit) -> None:
        """Every check moves its site's clock."""
        lease = visit.fetch.lease
        if lease is None or visit.kind not in FETCHED or visit.record.checks == lease.record.checks:
            return
        before = lease.record.last_crawled
        if before is not None:
            self._clocks.observe(
                visit.fetch.site,
                since=before,
                at=visit.fetched.at,
                changed=visit.kind == "changed",
                bucket=lease.record.bucket,
            )

    def correct(self, ratio: float) -> None:
        """The price follows the budget: unspent, it falls; overspent, it rises."""
        self._gain = float(np.clip(self._gain * corrected(ratio), 0.25, 4.0))


def unplanned_lanes(planned: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(256,) values of all buckets from those of the planned ones: an empty bucket goes with its nearest, in order."""
    return np.asarray(np.interp(np.arange(BUCKETS), planned, values))
