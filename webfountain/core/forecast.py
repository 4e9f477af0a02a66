"""Forecast the obsolete share of a collection, with an interval, from the results of its fetches.

On sites that change in bursts, forecasts from change rates are wrong by a factor of ten. The forecast rests on three
facts:

- for how long pages are now believed obsolete (`BeliefTotal`)
- for how long pages had been obsolete when a fetch found them changed
- which pages have no copy

A fetch that finds an obsolete page shows in which cycles the page was obsolete:

    obsolete page-time of a cycle = found by fetches (in the cycle or later) + not found yet

Obsolete page-time that no fetch has found yet must be estimated. Later fetches confirm only part of an estimate, so
each new estimate is multiplied by the share that is usually confirmed. Each cycle counts as one observation, so a burst
counts once.

`next_share` makes the forecast of the next cycle. The current obsolete share is estimated as the believed share times
the usual ratio of the found share to the believed share.

Times are UTC seconds.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 2 (mean freshness
over time, by renewal-reward).
"""

from __future__ import annotations

from math import exp, inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.next_share import (
    DEVIATES,
    INTERVAL,
    KEPT,
    LEAST,
    POINTS,
    PRIOR_CYCLES,
    USUAL_HITS,
    Began,
    Outlook,
    PastCycle,
    blended,
    by_past,
    by_present,
    faded_losses,
    outlook_of,
    quantiles,
    recent,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Belief", "BeliefTotal", "Cycle", "CycleForecast", "Outlook", "SavedForecast", "published"]

NEGLIGIBLE: Final = 0.005
"""A collection counts as complete if less than this share of its pages has no copy."""
BELIEF_ERROR: Final = 0.6
"""Standard deviation of ln(true share / believed share), assumed before the first complete cycle."""
MARGIN: Final = 1.3
"""Factor by which the interval around the current obsolete share is widened."""
LATELY: Final = 0.1
"""In the counts `fetches` and `changes`, the weight of a fetch falls to 1/e after this many cycles."""
HITS_WEIGHT: Final = 2.0
"""Weight, in fetches, of the prior `USUAL_HITS`, the usual share of fetches that find a change."""


class Cycle(msgspec.Struct, frozen=True, array_like=True):
    """A complete cycle: its forecast, the share believed obsolete, and the share that fetches found obsolete."""

    begin: float
    foretold: Outlook
    shown: float
    found: float
    """Obsolete share of this cycle, from all fetches up to the end of the latest complete cycle."""
    lasted: float = 0.0
    """Number of known pages, integrated over the cycle, in page-seconds."""
    settled: float = 0.0
    """Obsolete page-seconds of this cycle that are certain: fetches found them, or the page had no copy."""
    left: float = 0.0
    """At the end of the cycle, the estimate of its obsolete page-seconds that no fetch has confirmed yet."""
    late: float = 0.0
    """Obsolete page-seconds of this cycle that were found only by fetches after the cycle."""
    began: Began | None = None
    """What was known when this cycle began; None if an earlier version of webfountain wrote the record."""


class Belief(msgspec.Struct, frozen=True, array_like=True):
    """Estimates for the pages of one site at the time `at`, valid until one of its pages is fetched."""

    at: float
    pages: float
    obsolete: float
    """Number of pages expected to be obsolete."""
    so_far: float
    """Expected time, in page-seconds, for which the site's obsolete pages have been obsolete so far."""
    growing: float
    """Expected number of pages that become obsolete per second."""


class BeliefTotal(msgspec.Struct, array_like=True):
    """Sums of the estimates for all sites."""

    origin: float
    pages: float = 0.0
    constant: float = 0.0
    linear: float = 0.0
    square: float = 0.0

    def replace(self, old: Belief | None, new: Belief) -> None:
        """Replace the estimates for a site in the sums; `old` is None for a new site."""
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
        """Return the total time, in page-seconds, for which the pages believed obsolete at `at` have been obsolete."""
        since = at - self.origin
        return max(self.constant + self.linear * since + self.square * since * since, 0.0)


class CycleForecast(msgspec.Struct, array_like=True):
    """All complete cycles of a collection, and the running cycle."""

    cycle_s: float
    begin: float
    foretold: Outlook
    cycles: list[Cycle] = msgspec.field(default_factory=list)
    observed_at: float = -inf
    believed: float = 0.0
    """Number of pages believed obsolete at `observed_at`, including pages without a copy."""
    known: float = 0.0
    is_begun: bool = False
    found: float = 0.0
    """Obsolete page-seconds of this cycle that are certain: fetches found them, or the page had no copy."""
    shown: float = 0.0
    """Number of pages believed obsolete, integrated over the running cycle, in page-seconds."""
    lasted: float = 0.0
    """Number of known pages, integrated over the running cycle, in page-seconds."""
    waited: float = 0.0
    """Share of pages without a copy at the beginning of this cycle."""
    began: Began | None = None
    """What was known when this cycle began; None if nothing was known."""
    points: list[float] = msgspec.field(default_factory=list)
    """Forecast of this cycle's obsolete share, made when the cycle began, as equally likely values."""
    laws: list[list[float]] = msgspec.field(default_factory=list)
    """The two distributions that were blended into the forecast of this cycle (`next_share`)."""
    losses: list[float] = msgspec.field(default_factory=lambda: [0.0, 0.0])
    """Loss of each of the two forecasting laws in earlier cycles; older losses count less."""
    fetches_at: float = 0.0
    """Time at which `fetches` and `changes` were last updated, in UTC seconds."""
    fetches: float = 0.0
    changes: float = 0.0

    @classmethod
    def begun(cls, cycle_s: float, *, at: float) -> CycleForecast:
        """Return the forecast of a store whose first cycle begins at `at`."""
        points = by_past([])
        return cls(cycle_s, at, outlook_of(points, cycles=0), points=points, fetches_at=at)

    def visit(self, at: float, lasted: Sequence[float], *, fetches: int) -> None:
        """Count `fetches` that were made by the time `at` and compared with a copy.

        For each page found changed, `lasted` is the number of seconds for which the page had been obsolete.
        """
        faded = exp(-max(at - self.fetches_at, 0.0) / (LATELY * self.cycle_s))
        self.fetches_at = max(at, self.fetches_at)
        self.fetches, self.changes = faded * self.fetches + fetches, faded * self.changes + len(lasted)
        after, whole = _since(self.begin, at, lasted), sum(lasted)
        self.found += after
        for number in range(len(self.cycles) - 1, -1, -1):
            if after >= whole:
                return
            cycle = self.cycles[number]
            since = _since(cycle.begin, at, lasted)
            settled, late = cycle.settled + since - after, cycle.late + since - after
            self.cycles[number] = msgspec.structs.replace(cycle, settled=settled, late=late)
            after = since

    def observe(self, at: float, *, obsolete: float, so_far: float, missing: float, known: float) -> None:
        """Update the running cycle with the current numbers of obsolete and known pages. Call `observe` often, after
        the calls of `visit`.

        Parameters
        ----------
        obsolete : number of pages believed obsolete
        so_far : for how long they have been obsolete, page-seconds
        missing : number of known pages without a copy
        known : number of all known pages
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
        """Return whether the first cycle must restart, as it does whenever the share of pages without a copy has
        halved.
        """
        return not self.cycles and self.waited > NEGLIGIBLE and missing <= self.waited / 2 * known

    def _close(self, at: float, obsolete: float, so_far: float) -> None:
        if self.lasted > 0:
            shown = self.shown / self.lasted
            cycle = Cycle(self.begin, self.foretold, shown, 0.0, self.lasted, self.found, began=self.began)
            self.cycles.append(cycle)
            del self.cycles[:-KEPT]
            self._reckon(at, obsolete, so_far)
            if self.laws:
                self.losses = faded_losses(self.losses, self.laws, self.cycles[-1].found)
        self.begin, self.found, self.shown, self.lasted = at, 0.0, 0.0, 0.0
        self.foretold = self._next_cycle()

    def _next_cycle(self) -> Outlook:
        """Forecast the mean obsolete share of the cycle that begins now."""
        hits = (self.changes + HITS_WEIGHT * USUAL_HITS) / (self.fetches + HITS_WEIGHT)
        self.began = Began(min(hits, 1.0), min(self.believed / max(self.known, 1.0), 1.0))
        past = [PastCycle(cycle.began, cycle.found) for cycle in self.cycles]
        self.laws = [by_past([cycle.share for cycle in past]), by_present(past, self.began)]
        self.points = blended(self.laws, self.losses)
        return outlook_of(self.points, cycles=len(past))

    def _reckon(self, at: float, obsolete: float, so_far: float) -> None:
        """Recompute the obsolete share of each cycle from all fetches until `at`. Pages still believed obsolete are
        assumed to have become obsolete at a constant rate.
        """
        span = 2.0 * so_far / obsolete if obsolete > 0 else 0.0

        def open_until(moment: float) -> float:
            return (max(moment - at + span, 0.0) / span) ** 2 * so_far if span > 0 else 0.0

        ends = [cycle.begin for cycle in self.cycles[1:]] + [at]
        open_s = [open_until(end) - open_until(cycle.begin) for cycle, end in zip(self.cycles, ends, strict=True)]
        *before, last = self.cycles
        self.cycles[-1] = msgspec.structs.replace(last, left=open_s[-1])
        found = settled = NEGLIGIBLE * last.lasted
        for cycle, still, weight in zip(before, open_s, recent(len(before)), strict=False):
            found += weight * cycle.late
            settled += weight * max(cycle.left - still, 0.0)
        for number, (cycle, still) in enumerate(zip(self.cycles, open_s, strict=True)):
            if cycle.lasted > 0:
                share = (cycle.settled + found / settled * still) / cycle.lasted
                self.cycles[number] = msgspec.structs.replace(cycle, found=min(share, 1.0))

    def now(self) -> Outlook | None:
        """Return the obsolete share that was estimated at the last call of `observe`; None before the first call."""
        if not self.known:
            return None
        share = self.believed / self.known
        ratios = [max(cycle.found, LEAST) / max(cycle.shown, LEAST) for cycle in self.cycles]
        values = list(zip(ratios, recent(len(ratios)), strict=True))
        values += [(exp(BELIEF_ERROR * deviate), PRIOR_CYCLES / POINTS) for deviate in DEVIATES]
        low, middle, high = (ratio * share for ratio in quantiles(values, parts=INTERVAL))
        low = 0.0 if low * self.known < 1.0 else low / MARGIN  # less than one whole page may mean none
        mean = share * sum(ratio * weight for ratio, weight in values) / sum(weight for _, weight in values)
        return Outlook(min(middle, 1.0), min(low, 1.0), min(high * MARGIN, 1.0), len(ratios), min(mean, 1.0))


class SavedForecast(msgspec.Struct, frozen=True, array_like=True):
    """The forecast and the estimates that a crawl stores."""

    forecast: CycleForecast
    standing: BeliefTotal


def published(data: bytes | None) -> SavedForecast | None:
    """Return the forecast of a store; None if there is none or another version of webfountain wrote it."""
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=SavedForecast)
    except msgspec.DecodeError:
        return None


def _since(moment: float, at: float, lasted: Sequence[float]) -> float:
    """Return how many seconds of the periods that end at `at` lie after `moment`, summed over the periods. The lengths
    of the periods, in seconds, are `lasted`.
    """
    reach = max(at - moment, 0.0)
    return sum(min(each, reach) for each in lasted)
