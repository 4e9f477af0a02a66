"""Forecast the obsolete share of a collection, with an interval and its evidence, from what the fetches found.

A model in which each page changes at its own rate cannot foresee a release: for a site that changes in bursts, its
forecasts are wrong by a factor of ten. So this module predicts nothing from rates. While a crawl runs, three things
are known. First, which pages are believed to be obsolete now, and for how long (`BeliefTotal`: the sum over the sites,
including the evidence of sibling pages). Second, how long pages had been obsolete when a fetch found them changed.
Third, which pages have no copy. Sooner or later a fetch finds each obsolete page. Then it is known in which cycles the
page was obsolete:

    obsolete page-time of a cycle = found by fetches, in it or later + still open

The open part is corrected by a factor: the share of the part open at the end of earlier cycles that fetches later
confirmed. So beliefs that are too high or too low correct themselves. One cycle is one observation, however many pages
changed in it, so a burst counts once.

The forecast of the next cycle is the distribution of the earlier cycles' shares. Recent cycles have more weight, and
each share is treated as uncertain by its error (`ERROR`). A prior distribution is mixed in with the weight of
`PRIOR_CYCLES`; its centre and width adapt to the known cycles. The forecast is the share that is most probably right
(`holds`). The present share is the belief, multiplied by the usual ratio of found to believed shares in earlier
cycles.

Times are UTC seconds. The module uses no clock, no store and no numpy, so a command that only counts starts at once.

Source: renewal-reward, as Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section
2, measures freshness over time. Logarithms of shares: a normal distribution of unknown mean and variance, whose
prediction is Student's t (Gelman et al., *Bayesian data analysis*, 3rd ed., 2013, section 3.3), as the base measure of
a Dirichlet process with a kernel (Escobar & West, *Bayesian density estimation and inference using mixtures*, JASA
1995). The larger weight of recent cycles is ours.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import ceil, erf, exp, inf, log, sqrt
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Belief", "BeliefTotal", "Cycle", "CycleForecast", "Outlook", "SavedForecast", "holds", "published"]

HALF: Final = 12.0
"""Number of cycles after which the weight of a cycle is one half."""
KEPT: Final = 64
"""Number of stored cycles."""
PRIOR_CYCLES: Final = 2.0
"""Weight of the prior distribution against the known cycles, in cycles."""
USUAL_SHARE: Final = 0.003
BETWEEN: Final = 1.4
WITHIN: Final = 1.9
"""Standard deviations of logarithms. `BETWEEN`: of the typical share of a collection around `USUAL_SHARE`. `WITHIN`:
of one cycle's share around the typical share of its collection. Rounded from the collections kafka, flink, druid and
timeweb, counting all changes and counting changes above .05.
"""
SPREADS: Final = 3.0
"""Weight of `WITHIN` against the known cycles when the width for one collection is estimated, in cycles."""
ERROR: Final = 0.35
"""Standard deviation, in logarithms, of the error of a cycle's known share. Three quarters of the measured errors are
smaller.
"""
BELIEF_ERROR: Final = 0.6
"""The same for the share that is believed now, before any cycle is known."""
STEPS_OF_FACTOR: Final = 12
STEPS: Final = 150
STEP: Final = 2.0 ** (1 / STEPS_OF_FACTOR)
"""Ratio between neighbouring candidates for the forecast; they range from `LEAST` to beyond 1."""
MARGIN: Final = 1.3
"""Factor by which the interval of the present share is widened, because the known ratios are only estimates."""
LEAST: Final = 2e-4
"""Shares below this are not distinguished; an interval that reaches it extends to 0."""
FACTOR: Final = 2.0
NEGLIGIBLE: Final = 0.005
"""A forecast is right if it is within `FACTOR` of the later value, or if both are below `NEGLIGIBLE`."""
_TENTH, _NINTH_TENTH = 0.1, 0.9
_UPPER: Final = (0.063, 0.189, 0.319, 0.454, 0.598, 0.755, 0.935, 1.150, 1.440, 1.960)
_DEVIATES: Final = (*(-each for each in reversed(_UPPER)), *_UPPER)
"""Quantiles of the standard normal distribution at .025, .075, … .975."""
_REACH: Final = ceil(4.0 * ERROR / log(STEP))
_KERNEL: Final = tuple(
    0.5 * (erf(step * log(STEP) / ERROR / sqrt(2.0)) - erf((step - 1) * log(STEP) / ERROR / sqrt(2.0)))
    for step in range(-_REACH, _REACH + 1)
)
"""For each n, the probability that the true share is between n - 1 and n steps above the known one."""


class Outlook(msgspec.Struct, frozen=True, array_like=True):
    """An obsolete share: the forecast, an interval that contains it in four of five cases, and the evidence."""

    share: float
    low: float
    high: float
    cycles: int
    """Number of complete cycles used; 0: the prior distribution alone."""


class Cycle(msgspec.Struct, frozen=True, array_like=True):
    """A complete cycle: its forecast, the mean share believed while it ran, and the share that fetches found."""

    begin: float
    foretold: Outlook
    shown: float
    found: float
    """Share found, as known when the last cycle ended."""
    lasted: float = 0.0
    """Page-seconds of all known pages in the cycle."""
    settled: float = 0.0
    """Obsolete page-seconds in the cycle that fetches have found until now, plus those of pages without a copy."""
    left: float = 0.0
    """Page-seconds until its end that were then believed obsolete and not yet found."""
    late: float = 0.0
    """Obsolete page-seconds until its end that fetches found later."""


class Belief(msgspec.Struct, frozen=True, array_like=True):
    """Belief about the pages of one site at a time, if none of them is fetched later."""

    at: float
    pages: float
    obsolete: float
    """Number of pages expected to be obsolete."""
    so_far: float
    """Page-seconds for which these pages have been obsolete, since the last fetch of each."""
    growing: float
    """Number of pages that become obsolete per second."""


class BeliefTotal(msgspec.Struct, array_like=True):
    """The sum of the beliefs of all sites, each extrapolated from its own time. It is a parabola in the time since
    `origin`.
    """

    origin: float
    pages: float = 0.0
    constant: float = 0.0
    linear: float = 0.0
    square: float = 0.0

    def replace(self, old: Belief | None, new: Belief) -> None:
        """Replace the belief of a site by a new one; `old` is None for a new site."""
        if old is not None:
            self._add(old, -1.0)
        self._add(new, 1.0)

    def _add(self, site: Belief, sign: float) -> None:
        # so_far + obsolete (t - at) + growing (t - at)^2 / 2, in powers of t - origin
        ago = site.at - self.origin
        self.pages += sign * site.pages
        self.constant += sign * (site.so_far - site.obsolete * ago + site.growing * ago * ago / 2)
        self.linear += sign * (site.obsolete - site.growing * ago)
        self.square += sign * site.growing / 2

    def obsolete(self, at: float) -> float:
        """Return the number of pages that are believed obsolete."""
        return min(max(self.linear + 2 * self.square * (at - self.origin), 0.0), max(self.pages, 0.0))

    def so_far(self, at: float) -> float:
        """Return the page-seconds for which the pages believed obsolete have been obsolete."""
        since = at - self.origin
        return max(self.constant + self.linear * since + self.square * since * since, 0.0)


class CycleForecast(msgspec.Struct, array_like=True):
    """All complete cycles of a collection, and the running one."""

    cycle_s: float
    begin: float
    """Start of the running cycle."""
    foretold: Outlook
    cycles: list[Cycle] = msgspec.field(default_factory=list)
    observed_at: float = -inf
    """Time of the last call of `observe`."""
    believed: float = 0.0
    """Pages believed obsolete at that time, including those without a copy; `known` are all known pages."""
    known: float = 0.0
    is_begun: bool = False
    """True after the first call of `observe`."""
    found: float = 0.0
    """Obsolete page-seconds in this cycle that fetches found, plus those of pages without a copy."""
    shown: float = 0.0
    """Page-seconds in this cycle that were believed obsolete."""
    lasted: float = 0.0
    """Page-seconds of all known pages in this cycle."""
    waited: float = 0.0
    """Share of the pages that had no copy when this cycle began."""

    @classmethod
    def begun(cls, cycle_s: float, *, at: float) -> CycleForecast:
        """Return a record without complete cycles, which begins at `at`."""
        return cls(cycle_s, at, _spread([], []))

    def visit(self, at: float, lasted: Sequence[float]) -> None:
        """Add the pages that fetches found changed by `at`. `lasted` is the time in s for which each had been
        obsolete.
        """
        after, whole = _since(self.begin, at, lasted), sum(lasted)
        self.found += after
        for number in range(len(self.cycles) - 1, -1, -1):
            if after >= whole:
                return
            cycle = self.cycles[number]
            since = _since(cycle.begin, at, lasted)
            settled, late = cycle.settled + since - after, cycle.late + whole - after
            self.cycles[number] = msgspec.structs.replace(cycle, settled=settled, late=late)
            after = since

    def observe(self, at: float, *, obsolete: float, so_far: float, missing: float, known: float) -> None:
        """Update the running cycle with the present belief: pages, of which `missing` have no copy, and page-seconds.

        Call it often during a cycle, each time after the calls of `visit`.
        """
        if not self.is_begun or self._is_built(missing, known):
            self.begin, self.is_begun, self.waited = at, True, missing / max(known, 1.0)
            self.found = self.shown = self.lasted = 0.0
        elif at > self.observed_at:
            passed = at - self.observed_at
            self.found += missing * passed
            self.shown += (obsolete + missing) * passed
            self.lasted += known * passed
        self.observed_at, self.believed, self.known = at, obsolete + missing, known
        if at >= self.begin + self.cycle_s:
            self._close(at, obsolete, so_far)

    def _is_built(self, missing: float, known: float) -> bool:
        """Return whether half of the pages that had no copy when the first cycle began have one now; then that cycle
        starts again.

        So the first cycle starts when nearly all pages have a copy: the time before is no evidence for later cycles.
        If the cycle ends before that, it counts as it is.
        """
        return not self.cycles and self.waited > NEGLIGIBLE and missing <= self.waited / 2 * known

    def _close(self, at: float, obsolete: float, so_far: float) -> None:
        if self.lasted > 0:
            shown = self.shown / self.lasted
            self.cycles.append(Cycle(self.begin, self.foretold, shown, 0.0, self.lasted, self.found, so_far))
            del self.cycles[:-KEPT]
            self._reckon(at, obsolete, so_far)
        self.begin, self.found, self.shown, self.lasted = at, 0.0, 0.0, 0.0
        self.foretold = self.next_cycle()

    def _reckon(self, at: float, obsolete: float, so_far: float) -> None:
        """Compute what is known now about each cycle. Pages still believed obsolete are assumed to have become
        obsolete evenly until `at`.
        """
        *before, last = self.cycles
        least = NEGLIGIBLE * last.lasted
        found = left = least
        for cycle, weight in zip(before, _recent(len(before)), strict=True):
            found, left = found + weight * cycle.late, left + weight * cycle.left
        span = 2.0 * so_far / obsolete if obsolete > 0 else 0.0
        end = at
        for number in range(len(self.cycles) - 1, -1, -1):
            cycle = self.cycles[number]
            if cycle.lasted > 0:
                ends, begins = (max(moment - at + span, 0.0) for moment in (end, cycle.begin))
                still = (ends**2 - begins**2) / span**2 * so_far if span > 0 else 0.0
                share = (cycle.settled + found / left * still) / cycle.lasted
                self.cycles[number] = msgspec.structs.replace(cycle, found=min(share, 1.0))
            end = cycle.begin

    def next_cycle(self) -> Outlook:
        """Forecast the mean obsolete share of a cycle that begins now, from the shares of earlier cycles."""
        return _spread([cycle.found for cycle in self.cycles], _recent(len(self.cycles)))

    def now(self) -> Outlook | None:
        """Return the present obsolete share as of the last `observe`, or None before the first."""
        if not self.known:
            return None
        share = self.believed / self.known
        weights = _recent(len(self.cycles))
        off = [max(cycle.found, LEAST) / max(cycle.shown, LEAST) for cycle in self.cycles]
        prior = [exp(BELIEF_ERROR * deviate) for deviate in _DEVIATES]
        values, ends = _ordered(off + prior, weights + [PRIOR_CYCLES / len(prior)] * len(prior))
        low, middle, high = (_quantile(values, ends, part) * share for part in (_TENTH, 0.5, _NINTH_TENTH))
        low = 0.0 if low * self.known < 1.0 else low / MARGIN  # pages are whole numbers: less than one may mean none
        return Outlook(min(middle, 1.0), min(low, 1.0), min(high * MARGIN, 1.0), len(self.cycles))


class SavedForecast(msgspec.Struct, frozen=True, array_like=True):
    """Forecast as a crawl stores it, to continue from it later and to show it."""

    forecast: CycleForecast
    standing: BeliefTotal


def published(data: bytes | None) -> SavedForecast | None:
    """Return the forecast in a store, or None if there is none or another version wrote it."""
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=SavedForecast)
    except msgspec.DecodeError:
        return None


def _since(moment: float, at: float, lasted: Sequence[float]) -> float:
    """Return the part, s, that lies after a moment, of periods that ended at `at` and lasted `lasted` seconds."""
    reach = max(at - moment, 0.0)
    return sum(min(each, reach) for each in lasted)


def _recent(count: int) -> list[float]:
    """Return the weights of `count` cycles, newest last."""
    return [0.5 ** ((count - 1 - number) / HALF) for number in range(count)]


def _spread(shares: Sequence[float], weights: list[float]) -> Outlook:
    """Return the predicted distribution of the next share, given these shares, as a forecast and an interval."""
    logs = [log(max(share, LEAST)) for share in shares]
    prior = _law(logs, weights)
    parts = weights + [PRIOR_CYCLES / len(prior)] * len(prior)
    steps = [LEAST * STEP**number for number in range(-STEPS_OF_FACTOR, STEPS + STEPS_OF_FACTOR)]
    falls = [0.0] * len(steps)  # probability that the share is between the previous step and this one
    for middle, part in zip(logs + prior, parts, strict=True):
        first = round((middle - log(steps[0])) / log(STEP)) - _REACH
        for number, chance in enumerate(_KERNEL, start=first):
            falls[min(max(number, 0), len(steps) - 1)] += part * chance
    total = sum(falls)
    chances = [chance / total for chance in accumulate(falls)]
    low = steps[max(bisect_left(chances, _TENTH) - 1, 0)]
    high = steps[min(bisect_left(chances, _NINTH_TENTH), len(steps) - 1)]
    low = 0.0 if low < LEAST else low
    share = min(max(_most_often_near(steps, chances), low), high)
    return Outlook(min(share, 1.0), min(low, 1.0), min(high, 1.0), len(shares))


def _law(logs: list[float], weights: list[float]) -> list[float]:
    """Return equally likely logarithms of the next cycle's share, by a normal distribution fitted to the known cycles
    and the prior.
    """
    seen, usual, known = sum(weights), log(USUAL_SHARE), (WITHIN / BETWEEN) ** 2
    mean = sum(w * each for w, each in zip(weights, logs, strict=True)) / max(seen, 1e-9)
    middle = (known * usual + seen * mean) / (known + seen)
    squares = SPREADS * WITHIN**2 + sum(w * (each - mean) ** 2 for w, each in zip(weights, logs, strict=True))
    squares += known * seen / (known + seen) * (mean - usual) ** 2
    free = SPREADS + seen
    width = sqrt(squares / free * (1.0 + 1.0 / (known + seen)))
    return [middle + width * _student(deviate, free) for deviate in _DEVIATES]


def _student(deviate: float, free: float) -> float:
    """Return the quantile of Student's t for the standard normal quantile `deviate`; the error is within 1 % from 3
    degrees of freedom on.

    Source: Abramowitz & Stegun 26.7.5.
    """
    square = deviate * deviate
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
    )
    return deviate * (1.0 + sum(term / free**power for power, term in enumerate(terms, start=1)))


def _ordered(values: list[float], weights: list[float]) -> tuple[list[float], list[float]]:
    """Return the values in ascending order, with the share of all weight up to and including each."""
    pairs = sorted(zip(values, weights, strict=True))
    total = sum(weights)
    return [value for value, _ in pairs], [end / total for end in accumulate(weight for _, weight in pairs)]


def _quantile(values: list[float], ends: list[float], part: float) -> float:
    return values[min(bisect_left(ends, part), len(values) - 1)]


def _most_often_near(steps: list[float], chances: list[float]) -> float:
    """Return the share that is most probably within `FACTOR` of the true one, or negligible together with it.

    `chances` are the cumulative probabilities: of a share up to each step. `steps` grow by the factor `STEP`; the
    first and last `STEPS_OF_FACTOR` steps are no candidates for the forecast.
    """
    negligible = chances[bisect_left(steps, NEGLIGIBLE)]
    best, reported = -1.0, LEAST
    for first in range(len(steps) - 2 * STEPS_OF_FACTOR):
        share, reach = steps[first + STEPS_OF_FACTOR], chances[first + 2 * STEPS_OF_FACTOR]
        hit = max(reach, negligible) if share < NEGLIGIBLE else reach - chances[first]
        if hit > best:
            best, reported = hit, share
    return reported


def holds(reported: float, came: float) -> bool:
    """Return whether a forecast was right, given the later share."""
    if reported < NEGLIGIBLE and came < NEGLIGIBLE:
        return True
    return abs(log(max(reported, 1e-9) / max(came, 1e-9))) <= log(FACTOR)
