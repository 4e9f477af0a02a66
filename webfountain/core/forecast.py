"""How fresh a collection is and will be, from what its own fetches found; with an interval, and on how much it rests.

A model of pages that change alone foresees no release: its forecasts are wrong by ten where a site changes in bursts.
So nothing here is predicted from rates. While a crawl goes on, three things are known: pages that are believed to be
obsolete now and how long they have been so (`BelievedTotal`, from the belief of each site, in which what siblings
showed is counted), how long those had been so that a fetch found changed, and pages without a copy. In the end each
obsolete page is found by a fetch, and then the cycles are told in which it was obsolete; so

    obsolete page-time of a cycle = what fetches found of it, in it or later + what is still open of it

where of what is still open as much is taken for true as was of what was open when cycles before ended. Beliefs that
were too dark or too bright take themselves back. One cycle is one witness, however many pages changed in it: a burst
counts once. What is foretold of the next cycle is the spread of those before, of which the recent count more, each as
sharp as what fetches find is; beside them stands a law that any collection's cycles may follow, which has as many of
them as are known to tell where it lies and how wide it is. What is told is the share that will most often be right;
what is shown of the present is the belief, put right by how beliefs and findings of the cycles before differed. Times
are UTC seconds. Pure arithmetic without numpy: a command that only counts starts at once. No clock, no store.

Source: renewal-reward, as Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section
2, measures freshness over time. Logarithms of shares: a normal law of unknown mean and variance, whose prediction is
Student's t (Gelman et al., *Bayesian data analysis*, 3rd ed., 2013, section 3.3), as the base measure of a Dirichlet
process with a kernel (Escobar & West, *Bayesian density estimation and inference using mixtures*, JASA 1995). That
recent cycles weigh more is ours.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import ceil, erf, exp, inf, log, sqrt
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Believed", "BelievedTotal", "Cycle", "CycleForecast", "Outlook", "Published", "holds", "published"]

HALF: Final = 12.0
"""Cycles after which one counts half."""
KEPT: Final = 64
"""Cycles that are remembered."""
PRIOR_CYCLES: Final = 2.0
"""Cycles that the law of any collection is worth beside those that were seen."""
USUAL_SHARE: Final = 0.003
BETWEEN: Final = 1.4
WITHIN: Final = 1.9
"""The middle of a collection's shares lies so far from `USUAL_SHARE`, and a cycle's from that: standard deviations of
logarithms, of kafka, flink, druid and timeweb with any change and with changes above .05, rounded."""
SPREADS: Final = 3.0
"""Cycles that `WITHIN` is worth, of those that tell how wide a collection's own law is."""
ERROR: Final = 0.35
"""Standard deviation of the logarithm of a cycle's share as known beside the true one; three of four are nearer."""
BELIEF_ERROR: Final = 0.6
"""The same of what is believed of the present, before any cycle tells."""
STEPS_OF_FACTOR: Final = 12
STEPS: Final = 150
STEP: Final = 2.0 ** (1 / STEPS_OF_FACTOR)
"""Shares of which one is told: from `LEAST` on, each so many times the one before, to beyond 1."""
MARGIN: Final = 1.3
"""Factor by which the interval of the present reaches beyond the ratios that were seen, for they are estimates."""
LEAST: Final = 2e-4
"""Share below which nothing is told apart, and an interval reaches down to 0."""
FACTOR: Final = 2.0
NEGLIGIBLE: Final = 0.005
"""A forecast holds that is within `FACTOR` of what comes, or where both are below `NEGLIGIBLE`."""
_TENTH, _NINTH_TENTH = 0.1, 0.9
_UPPER: Final = (0.063, 0.189, 0.319, 0.454, 0.598, 0.755, 0.935, 1.150, 1.440, 1.960)
_DEVIATES: Final = (*(-each for each in reversed(_UPPER)), *_UPPER)
"""Standard normal, at .025, .075, … .975."""
_REACH: Final = ceil(4.0 * ERROR / log(STEP))
_KERNEL: Final = tuple(
    0.5 * (erf(step * log(STEP) / ERROR / sqrt(2.0)) - erf((step - 1) * log(STEP) / ERROR / sqrt(2.0)))
    for step in range(-_REACH, _REACH + 1)
)
"""Chance that a share is so many steps beside what is known of it, or up to one less."""


class Outlook(msgspec.Struct, frozen=True, array_like=True):
    """An obsolete share: what is told, the interval in which it lies four times of five, and the evidence."""

    share: float
    low: float
    high: float
    cycles: int
    """Whole cycles that it rests on; 0: on what is believed of any web."""


class Cycle(msgspec.Struct, frozen=True, array_like=True):
    """A cycle that is over: what was foretold, what was shown in the mean while it ran, what fetches found of it."""

    begin: float
    foretold: Outlook
    shown: float
    found: float
    """As known when the last cycle ended."""
    lasted: float = 0.0
    """Page-seconds that passed in it, of all known pages."""
    settled: float = 0.0
    """Page-seconds of these that fetches showed until now, or that pages without a copy stood."""
    left: float = 0.0
    """Page-seconds until its end that were believed then to be still open."""
    late: float = 0.0
    """Page-seconds until its end that fetches found after it."""


class Believed(msgspec.Struct, frozen=True, array_like=True):
    """What is believed of the pages of one site at a time, if none is fetched since."""

    at: float
    pages: float
    obsolete: float
    """Pages."""
    so_far: float
    """Page-seconds for which they have been so, since the last fetch of each."""
    growing: float
    """Pages that become obsolete in a second."""


class BelievedTotal(msgspec.Struct, array_like=True):
    """The sum of what is believed of all sites, each as of its own time: a parabola in the time since `origin`."""

    origin: float
    pages: float = 0.0
    constant: float = 0.0
    linear: float = 0.0
    square: float = 0.0

    def replace(self, old: Believed | None, new: Believed) -> None:
        """A site was reckoned again."""
        if old is not None:
            self._add(old, -1.0)
        self._add(new, 1.0)

    def _add(self, site: Believed, sign: float) -> None:
        # so_far + obsolete (t - at) + growing (t - at)^2 / 2, in powers of t - origin
        ago = site.at - self.origin
        self.pages += sign * site.pages
        self.constant += sign * (site.so_far - site.obsolete * ago + site.growing * ago * ago / 2)
        self.linear += sign * (site.obsolete - site.growing * ago)
        self.square += sign * site.growing / 2

    def obsolete(self, at: float) -> float:
        """Pages believed obsolete."""
        return min(max(self.linear + 2 * self.square * (at - self.origin), 0.0), max(self.pages, 0.0))

    def so_far(self, at: float) -> float:
        """Page-seconds for which pages that were not fetched since are believed to have been so."""
        since = at - self.origin
        return max(self.constant + self.linear * since + self.square * since * since, 0.0)


class CycleForecast(msgspec.Struct, array_like=True):
    """The record of a collection's cycles, and the one that runs."""

    cycle_s: float
    begin: float
    """Of the cycle that runs."""
    foretold: Outlook
    cycles: list[Cycle] = msgspec.field(default_factory=list)
    looked: float = -inf
    """When it was last brought up to date."""
    believed: float = 0.0
    """Pages believed obsolete then, those without a copy among them, and those known."""
    known: float = 0.0
    is_begun: bool = False
    """Whether it was looked at."""
    found: float = 0.0
    """Page-seconds in the cycle that fetches showed, or that pages without a copy stood."""
    shown: float = 0.0
    """Page-seconds in it that were believed."""
    lasted: float = 0.0
    """Page-seconds that have passed in it, of all known pages."""
    waited: float = 0.0
    """Share of the pages that had no copy when it began."""

    @classmethod
    def begun(cls, cycle_s: float, *, at: float) -> CycleForecast:
        """Nothing is known at `at`."""
        return cls(cycle_s, at, _spread([], []))

    def visit(self, at: float, lasted: Sequence[float]) -> None:
        """Fetches found pages changed by `at`, each of which had been so for so many seconds."""
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

    def look(self, at: float, *, obsolete: float, so_far: float, missing: float, known: float) -> None:
        """The collection as it is believed to stand: pages, of which `missing` have no copy, and page-seconds.

        Call it often in a cycle, and after the visits so far.
        """
        if not self.is_begun or self._is_built(missing, known):
            self.begin, self.is_begun, self.waited = at, True, missing / max(known, 1.0)
            self.found = self.shown = self.lasted = 0.0
        elif at > self.looked:
            passed = at - self.looked
            self.found += missing * passed
            self.shown += (obsolete + missing) * passed
            self.lasted += known * passed
        self.looked, self.believed, self.known = at, obsolete + missing, known
        if at >= self.begin + self.cycle_s:
            self._close(at, obsolete, so_far)

    def _is_built(self, missing: float, known: float) -> bool:
        """Whether the collection is still fetched for the first time: the first cycle begins when that is done.

        What it stood without a copy tells nothing of the next. Where that takes longer than cycles do, it is as it is.
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
        """What is known now of each cycle; pages that are open are taken to have become so evenly, to `at`."""
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
        """The mean obsolete share of a cycle that begins now, as the cycles before were found to be."""
        return _spread([cycle.found for cycle in self.cycles], _recent(len(self.cycles)))

    def now(self) -> Outlook | None:
        """The obsolete share as it stood when last looked at; None before."""
        if not self.known:
            return None
        share = self.believed / self.known
        weights = _recent(len(self.cycles))
        off = [max(cycle.found, LEAST) / max(cycle.shown, LEAST) for cycle in self.cycles]
        prior = [exp(BELIEF_ERROR * deviate) for deviate in _DEVIATES]
        values, ends = _ordered(off + prior, weights + [PRIOR_CYCLES / len(prior)] * len(prior))
        low, middle, high = (_quantile(values, ends, part) * share for part in (_TENTH, 0.5, _NINTH_TENTH))
        low = 0.0 if low * self.known < 1.0 else low / MARGIN  # pages are whole: less than one may be none
        return Outlook(min(middle, 1.0), min(low, 1.0), min(high * MARGIN, 1.0), len(self.cycles))


class Published(msgspec.Struct, frozen=True, array_like=True):
    """A forecast as a crawl keeps it in its store: to go on from, and to be shown."""

    forecast: CycleForecast
    standing: BelievedTotal


def published(data: bytes | None) -> Published | None:
    """What a store holds; None before there is any, and where another version wrote it."""
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=Published)
    except msgspec.DecodeError:
        return None


def _since(moment: float, at: float, lasted: Sequence[float]) -> float:
    """Of what had lasted so long at `at`, what was after a moment; s."""
    reach = max(at - moment, 0.0)
    return sum(min(each, reach) for each in lasted)


def _recent(count: int) -> list[float]:
    """Weights of so many cycles, the last the newest."""
    return [0.5 ** ((count - 1 - number) / HALF) for number in range(count)]


def _spread(shares: Sequence[float], weights: list[float]) -> Outlook:
    """What shares such as these lead one to expect."""
    logs = [log(max(share, LEAST)) for share in shares]
    prior = _law(logs, weights)
    parts = weights + [PRIOR_CYCLES / len(prior)] * len(prior)
    steps = [LEAST * STEP**number for number in range(-STEPS_OF_FACTOR, STEPS + STEPS_OF_FACTOR)]
    falls = [0.0] * len(steps)  # the chance that the share is between the step before and this one
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
    """Logarithms of shares, equally likely, of one more cycle if they follow a normal law of which these are known."""
    seen, usual, known = sum(weights), log(USUAL_SHARE), (WITHIN / BETWEEN) ** 2
    mean = sum(w * each for w, each in zip(weights, logs, strict=True)) / max(seen, 1e-9)
    middle = (known * usual + seen * mean) / (known + seen)
    squares = SPREADS * WITHIN**2 + sum(w * (each - mean) ** 2 for w, each in zip(weights, logs, strict=True))
    squares += known * seen / (known + seen) * (mean - usual) ** 2
    free = SPREADS + seen
    width = sqrt(squares / free * (1.0 + 1.0 / (known + seen)))
    return [middle + width * _student(deviate, free) for deviate in _DEVIATES]


def _student(deviate: float, free: float) -> float:
    """The quantile of Student's t where the standard normal's is `deviate`; within 1 % from 3 degrees of freedom on.

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
    """The values in ascending order, and the share of all weight up to and with each."""
    pairs = sorted(zip(values, weights, strict=True))
    total = sum(weights)
    return [value for value, _ in pairs], [end / total for end in accumulate(weight for _, weight in pairs)]


def _quantile(values: list[float], ends: list[float], part: float) -> float:
    return values[min(bisect_left(ends, part), len(values) - 1)]


def _most_often_near(steps: list[float], chances: list[float]) -> float:
    """The share that is most often within `FACTOR` of what comes, or negligible with it; `chances`: of less than each.

    `steps` go by `STEP`, `STEPS_OF_FACTOR` of them beyond what may be told at either end.
    """
    negligible = chances[bisect_left(steps, NEGLIGIBLE)]
    best, told = -1.0, LEAST
    for first in range(len(steps) - 2 * STEPS_OF_FACTOR):
        share, reach = steps[first + STEPS_OF_FACTOR], chances[first + 2 * STEPS_OF_FACTOR]
        hit = max(reach, negligible) if share < NEGLIGIBLE else reach - chances[first]
        if hit > best:
            best, told = hit, share
    return told


def holds(told: float, came: float) -> bool:
    """Whether a forecast was right."""
    if told < NEGLIGIBLE and came < NEGLIGIBLE:
        return True
    return abs(log(max(told, 1e-9) / max(came, 1e-9))) <= log(FACTOR)
