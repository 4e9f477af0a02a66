"""The model's plans in the simulation: histories to buckets, buckets to a plan per cycle, the plan to due pages.

The same `change_rate`, `buckets`, `optimizer` and `cycle` that the controller uses; a period is a day, a cycle 14.
"""

from __future__ import annotations

__all__ = ["PLANS", "Planned"]

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.buckets import bucket_of, intervals_of
from webfountain.core.change_rate import NO_HISTORY, Prior, append, estimate_interval
from webfountain.core.cycle import PhaseClocks, instance_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.simulate.rivals import Fetches

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]

PLANS = {"strategy-1": 1, "strategy-2": 2, "strategy-3": 3}
"""Policy name to strategy."""

_PERIOD = 86400.0
_FASTEST = _PERIOD / 96
_PERIODS = 14


class Planned:
    """Greatest progress of the phase clock first; a new plan every `_PERIODS` days."""

    def __init__(self, pages: int, strategy: int, *, capacity: int, seed: int) -> None:
        self._strategy, self._capacity, self._seed = strategy, capacity, seed
        self._clocks = PhaseClocks()
        self._history = [NO_HISTORY] * pages
        self._changes, self._watched, self._arrived = 0.5, 60.0, 0.0  # the site's prior, in changes, days and pages
        self._bucket = np.full(pages, bucket_of(self._prior().interval, _FASTEST), dtype=np.int64)
        self._marks = self._clocks.mark(self._bucket)
        self._planned = np.empty(0, dtype=np.int64)
        self._increments = np.empty((0, 0))

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        if day % _PERIODS == 0 and len(pages):
            self._plan(day, pages, tau)
        if len(self._planned):
            self._clocks.advance(self._planned, self._increments[day % _PERIODS])
        return self._clocks.progress(self._bucket[pages], self._marks[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        checked = ~fetches.first & ~fetches.gone & (fetches.tau > 0)
        self._arrived += np.count_nonzero(fetches.first)
        self._changes += np.count_nonzero(fetches.changed & checked)
        self._watched += float(np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)[checked].sum())
        prior = self._prior()
        for page, tau, changed in zip(
            fetches.pages[checked].tolist(),
            fetches.tau[checked].tolist(),
            fetches.changed[checked].tolist(),
            strict=True,
        ):
            history = self._history[page] = append(self._history[page], tau * _PERIOD, changed)
            self._bucket[page] = bucket_of(estimate_interval(history, prior=prior), _FASTEST)
        self._bucket[fetches.pages[fetches.first]] = bucket_of(prior.interval, _FASTEST)
        self._marks[fetches.pages] = self._clocks.mark(self._bucket[fetches.pages])

    def _prior(self) -> Prior:
        return Prior(self._watched / self._changes * _PERIOD)

    def _plan(self, day: int, pages: Pages, tau: Pages) -> None:
        """A plan for the next cycle; if the solver gets nowhere the last one stays."""
        from webfountain.core.optimizer import solve  # noqa: PLC0415  (imports scipy)
        from webfountain.core.quotas import make_quotas  # noqa: PLC0415

        bucket = self._bucket[pages]
        planned, at = np.unique(bucket, return_inverse=True)
        risk = -np.expm1(-tau * _PERIOD / intervals_of(bucket, _FASTEST))
        obsolete = np.asarray(np.bincount(at, weights=risk), dtype=np.float64)
        arrivals = self._arrived / max(day, 1)
        instance = instance_of(
            planned.astype(np.int64),
            np.bincount(at).astype(np.float64),
            obsolete,
            strategy=self._strategy,
            periods=_PERIODS,
            period=_PERIOD,
            fastest=_FASTEST,
            capacity=float(self._capacity),
            waiting=0.0,
            arrivals=min(arrivals, self._capacity / 2),
        )
        solution = solve(instance, solver="calendars", seed=self._seed)
        if solution.status == "solved" or not len(self._planned):
            self._planned = planned
            self._increments = make_quotas(instance, solution.x, solution.z).increment
