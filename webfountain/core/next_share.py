"""Forecast the obsolete share of the next cycle as a distribution, blended from the forecasts of two laws.

- `by_past` uses the shares of earlier cycles, and a prior distribution whose centre and width adapt to them. It allows
  for a release, but does not know when one comes.
- `by_present` uses what is known when the cycle begins: the share of recent fetches that found a change, and the share
  believed obsolete. So its forecast includes a release that is under way. It is a regression on these two numbers. Its
  errors are distributed as they were in earlier cycles with a similar beginning: after a release, the share is either
  high for long or soon low, and a bell curve would forecast the middle.

After each cycle, the forecasts of both laws are scored by the continuous ranked probability score (CRPS). A forecasting
law gets the weight exp(-`RATE` * loss) (Hedge). The loss of a forecasting law is its score divided by the sum of both
laws' scores. Without fading (`FADE` = 1), the blend would lose at most ln 2 / `RATE` + `RATE` T / 8 more than the
better law in T cycles.

A distribution is a list of `POINTS` quantiles with equal weights.

Source: Gneiting & Raftery, *Strictly proper scoring rules, prediction, and estimation*, JASA 2007 (CRPS, interval
score); Freund & Schapire, *A decision-theoretic generalization of on-line learning*, JCSS 1997 (Hedge). The logarithm
of a share is predicted by Student's t (Gelman et al., *Bayesian data analysis*, 3rd ed., 2013, section 3.3; regression:
14.2). Student's t is the base measure of a Dirichlet process with a kernel (Escobar & West, JASA 1995; weights that
depend on covariates: Dunson, Pillai & Park, JRSS B 2007).
"""

from __future__ import annotations

from itertools import accumulate
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DEVIATES", "INTERVAL", "KEPT", "LEAST", "POINTS", "PRIOR_CYCLES", "USUAL_HITS", "Began", "Outlook", "PastCycle",
    "blended", "by_past", "by_present", "crps", "faded_losses", "outlook_of", "quantiles", "recent",
]  # fmt: skip

HALF: Final = 12.0
"""A past cycle loses half of its weight after this many cycles."""
KEPT: Final = 64
"""Largest number of cycles that are stored."""
PRIOR_CYCLES: Final = 2.0
"""The prior distribution counts as much as this many cycles."""
USUAL_SHARE: Final = 0.003
USUAL_HITS: Final = 0.03
"""Centre of the regression: usual obsolete share, and usual share of fetches that find a change."""
BETWEEN: Final = 1.4
WITHIN: Final = 1.9
"""Standard deviations of the logarithm of a share. `BETWEEN` is the spread of the usual shares of collections around
`USUAL_SHARE`. `WITHIN` is the spread of a collection's cycles around its usual share.
"""
SPREADS: Final = 3.0
"""The priors `WITHIN` and `NOISE` count as much as this many cycles."""
ERROR: Final = 0.35
"""Standard deviation of the error in the logarithm of a past cycle's share."""
SLOPES: Final = (0.0, 0.3, 0.4)
SLOPE_SPREADS: Final = (0.2, 0.3, 0.3)
NOISE: Final = 0.12
"""Prior of a linear regression on the square roots of shares. `SLOPES` are the constant, the slope for the share of
fetches that found a change, and the slope for the believed share. `SLOPE_SPREADS` are the standard deviations of the
constant and of the two slopes. `NOISE` is the standard deviation of the residual of the regression.
"""
HALF_OF_PRESENT: Final = 24.0
"""In `by_present`, a past cycle loses half of its weight after this many cycles."""
ALIKE: Final = 0.15
"""Difference between the beginnings of two cycles, in square roots of shares, at which `_likeness` is e^-1/2."""
ROOT_ERROR: Final = 0.05
"""Standard deviation of the error in the square root of a past cycle's share."""
RATE: Final = 2.0
FADE: Final = 0.95
LEAST: Final = 2e-4
"""Smallest share that is distinguished from 0."""
POINTS: Final = 40
EVENLY: Final = tuple((number + 0.5) / POINTS for number in range(POINTS))
INTERVAL: Final = (0.1, 0.5, 0.9)
"""Reported quantiles: lower end of the interval, median, upper end."""
_TINY: Final = 1e-12
_UPPER: Final = (
    0.031, 0.094, 0.157, 0.221, 0.286, 0.352, 0.419, 0.489, 0.561, 0.636, 0.714, 0.798, 0.887, 0.984, 1.092, 1.213,
    1.356, 1.534, 1.780, 2.241,
)  # fmt: skip
DEVIATES: Final = (*(-each for each in reversed(_UPPER)), *_UPPER)
"""`POINTS` quantiles of the standard normal distribution, at .0125, .0375, …"""


class Outlook(msgspec.Struct, frozen=True, array_like=True):
    """Forecast of the obsolete share: median, interval and mean of its distribution."""

    median: float
    low: float
    high: float
    """Upper end of an interval that contains the share in four of five cases."""
    cycles: int
    """Number of complete cycles on which the forecast is based."""
    mean: float | None = None
    """Mean of the distribution; None if an earlier version of webfountain wrote the record."""


class Began(msgspec.Struct, frozen=True, array_like=True):
    """What was known about a cycle when it began."""

    hits: float
    """Share of the fetches shortly before the cycle that found a change."""
    believed: float
    """Share of the known pages that was believed obsolete."""


class PastCycle(NamedTuple):
    began: Began | None
    share: float


def recent(count: int, *, half: float = HALF) -> list[float]:
    """Return the weights of `count` cycles, from the oldest to the newest."""
    return [0.5 ** ((count - 1 - number) / half) for number in range(count)]


def by_past(shares: Sequence[float]) -> list[float]:
    """Return the forecast distribution of the next cycle's share, from the shares of earlier cycles."""
    weights = recent(len(shares))
    logs = [log(max(share, LEAST)) for share in shares]
    prior = _law(logs, weights)
    values = [(exp(middle), PRIOR_CYCLES / POINTS) for middle in prior]
    for middle, weight in zip(logs, weights, strict=True):
        values += [(exp(middle + ERROR * deviate), weight / POINTS) for deviate in DEVIATES]
    return [min(value, 1.0) for value in quantiles(values)]


def by_present(cycles: Sequence[PastCycle], began: Began) -> list[float]:
    """Return the forecast distribution of a cycle's share, from what was known at its beginning and from earlier
    cycles.
    """
    known = [
        (_row(cycle.began), sqrt(cycle.share), weight, _likeness(cycle.began, began))
        for cycle, weight in zip(cycles, recent(len(cycles), half=HALF_OF_PRESENT), strict=True)
        if cycle.began is not None
    ]
    inverse = [[0.0] * 3 for _ in range(3)]
    for place, spread in enumerate(SLOPE_SPREADS):
        inverse[place][place] = (NOISE / spread) ** 2
    product = [inverse[place][place] * slope for place, slope in enumerate(SLOPES)]
    squares = SPREADS * NOISE**2 + _dot(product, SLOPES)
    free, usual = SPREADS, sqrt(USUAL_SHARE)
    for row, root, weight, _ in known:
        for i in range(3):
            product[i] += weight * row[i] * (root - usual)
            for j in range(3):
                inverse[i][j] += weight * row[i] * row[j]
        squares, free = squares + weight * (root - usual) ** 2, free + weight
    slopes = _solved(inverse, product)
    squares -= _dot(slopes, product)
    row = _row(began)
    width = sqrt(max(squares, _TINY) / free * (1.0 + _dot(row, _solved(inverse, row))))
    middle = usual + _dot(row, slopes)
    values = [(middle + width * _student(deviate, free), PRIOR_CYCLES) for deviate in DEVIATES]
    for then, root, weight, likeness in known:
        away = root - usual - _dot(then, slopes)
        values += [(middle + away + ROOT_ERROR * deviate, weight * likeness) for deviate in DEVIATES]
    return [min(max(value, 0.0) ** 2, 1.0) for value in quantiles(values)]


def _dot(some: Sequence[float], others: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(some, others, strict=True))


def _likeness(one: Began, other: Began) -> float:
    """Return how similar the beginnings of two cycles are, from 0 to 1."""
    far = (sqrt(one.hits) - sqrt(other.hits)) ** 2 + (sqrt(one.believed) - sqrt(other.believed)) ** 2
    return exp(-far / 2 / ALIKE**2)


def _row(began: Began) -> list[float]:
    return [1.0, sqrt(began.hits) - sqrt(USUAL_HITS), sqrt(began.believed) - sqrt(USUAL_SHARE)]


def blended(laws: Sequence[Sequence[float]], losses: Sequence[float]) -> list[float]:
    """Return one distribution, blended from several; a distribution with a smaller loss has a larger weight."""
    least = min(losses)
    weights = [exp(-RATE * (loss - least)) for loss in losses]
    return quantiles([(value, weight) for law, weight in zip(laws, weights, strict=True) for value in law])


def outlook_of(points: Sequence[float], *, cycles: int) -> Outlook:
    low, middle, high = quantiles([(point, 1.0) for point in points], parts=INTERVAL)
    return Outlook(middle, 0.0 if low < LEAST else low, high, cycles, sum(points) / len(points))


def faded_losses(losses: Sequence[float], laws: Sequence[Sequence[float]], share: float) -> list[float]:
    """Return the losses of the two forecasting laws, updated for a cycle whose obsolete share was `share`."""
    scores = [crps(law, share) for law in laws]
    total = max(sum(scores), _TINY)
    return [FADE * loss + score / total for loss, score in zip(losses, scores, strict=True)]


def crps(points: Sequence[float], share: float) -> float:
    """Return the continuous ranked probability score of equally likely, ascending points; 0 is best."""
    count = len(points)
    away = sum(abs(point - share) for point in points) / count
    among = sum((2 * place - count + 1) * point for place, point in enumerate(points)) / count**2
    return away - among


def quantiles(values: Sequence[tuple[float, float]], *, parts: Sequence[float] = EVENLY) -> list[float]:
    """Return interpolated quantiles of `values`, which are pairs of a value and its weight."""
    ordered = sorted(values)
    total = sum(weight for _, weight in ordered)
    ends = [end / total for end in accumulate(weight for _, weight in ordered)]
    middles = [end - weight / total / 2 for end, (_, weight) in zip(ends, ordered, strict=True)]
    found, place = [], 0
    for part in parts:
        while place < len(middles) and middles[place] < part:
            place += 1
        if place in (0, len(middles)):
            found.append(ordered[min(place, len(ordered) - 1)][0])
        else:
            before, after = middles[place - 1], middles[place]
            share = (part - before) / max(after - before, _TINY)
            found.append(ordered[place - 1][0] + share * (ordered[place][0] - ordered[place - 1][0]))
    return found


def _law(logs: list[float], weights: list[float]) -> list[float]:
    """Return the distribution of the logarithm of the next share, as equally likely values."""
    seen, usual, known = sum(weights), log(USUAL_SHARE), (WITHIN / BETWEEN) ** 2
    mean = sum(w * each for w, each in zip(weights, logs, strict=True)) / max(seen, 1e-9)
    middle = (known * usual + seen * mean) / (known + seen)
    squares = SPREADS * WITHIN**2 + sum(w * (each - mean) ** 2 for w, each in zip(weights, logs, strict=True))
    squares += known * seen / (known + seen) * (mean - usual) ** 2
    free = SPREADS + seen
    width = sqrt(squares / free * (1.0 + 1.0 / (known + seen)))
    return [middle + width * _student(deviate, free) for deviate in DEVIATES]


def _student(deviate: float, free: float) -> float:
    """Return the quantile of Student's t with `free` degrees of freedom that corresponds to the normal quantile
    `deviate`.

    The error of the approximation is at most 1 % for `free` >= 3.

    Source: Abramowitz & Stegun 26.7.5.
    """
    square = deviate * deviate
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
    )
    return deviate * (1.0 + sum(term / free**power for power, term in enumerate(terms, start=1)))


def _solved(matrix: list[list[float]], right: Sequence[float]) -> list[float]:
    """Return the solution of three linear equations, by Gaussian elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place in range(3):
        for below in range(place + 1, 3):
            factor = rows[below][place] / rows[place][place]
            rows[below] = [each - factor * other for each, other in zip(rows[below], rows[place], strict=True)]
    found = [0.0] * 3
    for place in (2, 1, 0):
        known = sum(rows[place][other] * found[other] for other in range(place + 1, 3))
        found[place] = (rows[place][3] - known) / rows[place][place]
    return found
