"""Plans of the optimisation model in the simulation, made by the crawl's own `make_plan`.

A period is a day, and a cycle is 14 days.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import numpy as np

from webfountain.core.buckets import BUCKETS, bucket_of, intervals_of
from webfountain.core.census import Census
from webfountain.core.change_rate import NO_HISTORY, Prior, append, estimate_interval
from webfountain.core.phases import Phases
from webfountain.errors import NotConverged
from webfountain.frontier.planning.make_plan import make_plan
from webfountain.frontier.planning.plan import Bounds
from webfountain.policy.tables import CycleTable
from webfountain.policy.units import PositiveDuration

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.lab.simulate.rivals import Fetches

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["PERIOD", "Array", "Flags", "Pages", "PlannedPolicy"]

PERIOD = 86400.0
_FASTEST = PERIOD / 96
_PERIODS = 14


class PlannedPolicy:
    """Takes first the page whose phase clock has advanced most since the page's last crawl. A new plan is made every
    `_PERIODS` days.
    """

    def __init__(self, pages: int, strategy: Literal[1, 2, 3], *, capacity: int, seed: int) -> None:
        self._capacity, self._seed = capacity, seed
        self._cycle = CycleTable(
            periods=_PERIODS, period=PositiveDuration(PERIOD), capacity_pages_per_period=capacity, strategy=strategy
        )
        speed = 1 / intervals_of(np.arange(BUCKETS), _FASTEST)
        self._clocks = Phases.running(speed, start=0.0)
        self._counts = np.zeros((4, BUCKETS))  # fetches, changes, observed seconds, births; halved each cycle
        self._history = [NO_HISTORY] * pages
        self._changes, self._observed_time, self._arrived = (
            0.5,
            60.0,
            0.0,
        )  # the site's prior, in changes, days and pages
        self._bucket = np.full(pages, bucket_of(self._prior().interval, _FASTEST), dtype=np.int64)
        self._marks = self._clocks.at(0.0)[self._bucket]

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        if day % _PERIODS == 0 and len(pages):
            self._plan(day, pages, tau)
        return np.asarray(self._phase_after(day)[self._bucket[pages]] - self._marks[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        checked = ~fetches.first & ~fetches.gone & (fetches.tau > 0)
        self._arrived += np.count_nonzero(fetches.first)
        self._changes += np.count_nonzero(fetches.changed & checked)
        self._observed_time += float(np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)[checked].sum())
        self._count(fetches, checked)
        prior = self._prior()
        for page, tau, changed in zip(
            fetches.pages[checked].tolist(),
            fetches.tau[checked].tolist(),
            fetches.changed[checked].tolist(),
            strict=True,
        ):
            history = self._history[page] = append(self._history[page], tau * PERIOD, changed)
            self._bucket[page] = bucket_of(estimate_interval(history, prior=prior), _FASTEST)
        self._bucket[fetches.pages[fetches.first]] = bucket_of(prior.interval, _FASTEST)
        self._marks[fetches.pages] = self._phase_after(day)[self._bucket[fetches.pages]]

    def _phase_after(self, day: int) -> Array:
        """Return the (256,) phases of the clocks at the end of the day."""
        return self._clocks.at((day + 1) * PERIOD)

    def _count(self, fetches: Fetches, checked: Flags) -> None:
        bucket = self._bucket[fetches.pages]
        for count, weight in zip(
            self._counts,
            (checked, checked & fetches.changed, checked * fetches.tau * PERIOD, fetches.first),
            strict=True,
        ):
            np.add.at(count, bucket, weight)

    def _prior(self) -> Prior:
        return Prior(self._observed_time / self._changes * PERIOD)

    def _plan(self, day: int, pages: Pages, tau: Pages) -> None:
        """Make a plan for the next cycle; keep the last plan if the solver fails."""
        census = self._census(day, pages, tau)
        with suppress(NotConverged):
            plan = make_plan(
                census,
                at=day * PERIOD,
                cycle=self._cycle,
                bounds=Bounds(),
                clocks=self._clocks,
                solver="calendars",
                seed=self._seed,
            )
            self._clocks = plan.clocks()
        self._counts /= 2

    def _census(self, day: int, pages: Pages, tau: Pages) -> Census:
        planned, at = np.unique(self._bucket[pages], return_inverse=True)
        number = np.bincount(at).astype(np.float64)
        fetches, changes, observed_time, births = self._counts[:, planned]
        return Census(
            planned.astype(np.int64),
            number,
            mean_age=np.bincount(at, weights=tau * PERIOD) / number,
            fetches=fetches,
            changes=changes,
            observed_time=observed_time,
            seconds=fetches,
            links=np.zeros(len(planned)),
            births=births,
            new_fetches=births.sum(),
            new_seconds=births.sum(),
            new_links=0.0,
            waiting=0.0,
            arrivals=min(self._arrived / max(day, 1), self._capacity / 2),
        )
