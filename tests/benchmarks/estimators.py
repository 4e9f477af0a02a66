"""Compare four estimators of a page's change interval on a real trace, by how well they predict later checks.

Every page that exists during the whole trace is checked at random gaps of 1 to 60 days. Each estimator computes the
page's mean change interval from the checks of the first half. The loss is the mean of -ln P(result) over the checks of
the second half. The Poisson probability of finding a change is limited to at least 1e-4 and at most 1 - 1e-4, in favour
of estimates of 0 and infinity. `shares` shows what such estimates cost: it replays the trace with the highest urgency
at the estimated rate first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from webfountain.core.change_rate import (
    HISTORY_CHECKS,
    Check,
    Prior,
    Totals,
    append,
    estimate_interval,
)
from webfountain.core.urgency import urgency_of_known_rate
from webfountain.lab.simulate.revisit import replay_learner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from webfountain.lab.simulate.rivals import Fetches
    from webfountain.lab.simulate.trace import ChangeTrace

    Pages = npt.NDArray[np.int64]

LONGEST = 60
"""Largest number of days between two checks."""

DAY = 86400.0
_SURE = 1e-4


def losses(trace: ChangeTrace, *, seed: int) -> dict[str, float]:
    """Return the mean loss per check, in nats, by estimator."""
    pages = [checks for checks in _checks(trace, seed) if min(map(len, checks)) > 0]
    reported = [check for first, _ in pages for check in first]
    observed_time, changes = sum(check.interval for check in reported), sum(check.changed for check in reported)
    prior = Prior(observed_time / (changes + 0.5))
    return {
        name: float(np.mean([loss for first, later in pages for loss in _lost(estimate(first, prior), later)]))
        for name, estimate in ESTIMATORS.items()
    }


def shares(trace: ChangeTrace, fetches_per_day: int) -> dict[str, float]:
    """Return the obsolete share of a replay by each estimator."""
    return {
        name: replay_learner(trace, fetches_per_day, _EstimatorOrder(len(trace.urls), estimate)).obsolete_share
        for name, estimate in ESTIMATORS.items()
    }


class _EstimatorOrder:
    """The order of highest urgency at the estimated rate. Before a page's first check, the interval is the prior's."""

    def __init__(self, pages: int, estimate: Callable[[list[Check], Prior], float]) -> None:
        self._estimate = estimate
        self._checks: list[list[Check]] = [[] for _ in range(pages)]
        self._changes, self._observed = 0.5, 60.0 * DAY  # as in `simulate.plans`
        self._rate = np.full(pages, np.nan)

    def score(self, day: int, pages: Pages, tau: Pages) -> npt.NDArray[np.float64]:
        rate = np.where(np.isnan(self._rate[pages]), self._changes / self._observed, self._rate[pages])
        return urgency_of_known_rate(rate * DAY, tau.astype(np.float64))

    def learn(self, day: int, fetches: Fetches) -> None:
        checked = ~fetches.first & ~fetches.gone & (fetches.tau > 0)
        for page, tau, changed in zip(*(each[checked].tolist() for each in fetches[:2] + fetches[3:4]), strict=True):
            self._checks[page].append(Check(tau * DAY, changed))
            self._changes += changed
            self._observed += tau * DAY * (0.5 if changed else 1.0)
            interval = self._estimate(self._checks[page][-HISTORY_CHECKS:], Prior(self._observed / self._changes))
            self._rate[page] = 1 / max(interval, 0.1 * DAY)


def naive_interval(checks: Sequence[Check]) -> float:
    """Return observed time / changes found, s, or inf without a change.

    Of several changes between two checks, only one is counted.

    Source: Cho 2000, section 3 (average change interval).
    """
    changes = sum(check.changed for check in checks)
    return sum(check.interval for check in checks) / changes if changes else math.inf


def bias_corrected_interval(checks: Sequence[Check]) -> float:
    """Return Cho's estimate for regular checks, -mean interval / ln((n - X + .5)/(n + .5)), s, or inf without a change.

    Source: Cho & Garcia-Molina, *Estimating frequency of change*, TOIT 2003, section 4.2, equation for -ln((n - X +
    0.5)/(n + 0.5)). For irregular checks their mean interval is used, which is worse than the likelihood.
    """
    count, changes = len(checks), sum(check.changed for check in checks)
    if not changes:
        return math.inf
    mean = sum(check.interval for check in checks) / count
    return -mean / math.log((count - changes + 0.5) / (count + 0.5))


def likelihood_interval(checks: Sequence[Check]) -> float:
    """Return the maximum likelihood for irregular checks, s: inf without a change, 0 if every check found a change.

    Solves sum over unchanged t = sum over changed t/(exp(r t) - 1).

    Source: as `core.change_rate.estimate_interval`, without the prior.
    """
    still = sum(check.interval for check in checks if not check.changed)
    found = [check.interval for check in checks if check.changed]
    if not found:
        return math.inf
    if not still:
        return 0.0

    def excess(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return sum(t / math.expm1(min(rate * t, 700.0)) for t in found) - still

    # Each term lies between 1/r - t and 1/r.
    lowest, highest = math.log(len(found) / (still + sum(found))), math.log(len(found) / still)
    return math.exp(-float(brentq(excess, lowest - 1e-9, highest + 1e-9)))


def _bayesian(checks: list[Check], prior: Prior) -> float:
    """Return the crawler's estimate, from the last 24 checks and the totals."""
    history = b""
    for check in checks[-HISTORY_CHECKS:]:
        history = append(history, *check)
    totals = Totals(len(checks), sum(c.changed for c in checks), sum(c.interval for c in checks))
    return estimate_interval(history, totals=totals, prior=prior)


ESTIMATORS: dict[str, Callable[[list[Check], Prior], float]] = {
    "naive": lambda checks, _: naive_interval(checks),
    "bias-corrected": lambda checks, _: bias_corrected_interval(checks),
    "likelihood": lambda checks, _: likelihood_interval(checks),
    "bayesian": _bayesian,
}


def _lost(interval: float, checks: list[Check]) -> list[float]:
    found = []
    for gap, changed in checks:
        chance = -math.expm1(-gap / interval) if interval > 0 else 1.0
        chance = min(max(chance, _SURE), 1 - _SURE)
        found.append(-math.log(chance if changed else 1 - chance))
    return found


def _checks(trace: ChangeTrace, seed: int) -> list[tuple[list[Check], list[Check]]]:
    """Return the checks of the first and of the second half, for each page that exists during the whole trace."""
    rng = np.random.default_rng(seed)
    steady = trace.alive.copy()
    steady[trace.page[trace.kind != 1]] = False  # born, deleted, or born again
    found = []
    for page in np.flatnonzero(steady):
        events = trace.day[trace.page == page]
        days = np.cumsum(rng.integers(1, LONGEST + 1, size=trace.days))
        days = np.concatenate([[0], days[days < trace.days]])
        seen = np.diff(np.searchsorted(events, days)) > 0
        checks = [Check(float(gap) * DAY, bool(hit)) for gap, hit in zip(np.diff(days), seen, strict=True)]
        middle = int(np.searchsorted(days[1:], trace.days // 2))
        found.append((checks[:middle], checks[middle:]))
    return found
