"""Compute the urgency of each page of a site, and how many pages are obsolete (`core.activity`).

Time is counted in whole steps; the caller chooses the length of a step. A `SiteUrgency` stores what fetches have shown
about one site. `Sites` processes many sites in one call, because a call per small site would be slow. Pages are
numbered from 0 in the order of `add`.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.activity import WINDOW, Activity, Memory, UncheckedPages, chance_of_change, summed
from webfountain.core.explanations import Explanations, Predictions, TrustInSections
from webfountain.core.independent_pages import COLUMNS, PageRates, evidence_of, is_in_sample
from webfountain.core.sections import Sections, run_begins
from webfountain.core.site_answers import Approach, FetchEvidence, SectionRate, SiteBeliefs
from webfountain.core.urgency import urgency_and_slope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.arrays import Array, Flags, Ints
    from webfountain.core.signals import Signals


__all__ = ["Approach", "FetchEvidence", "Past", "SiteBeliefs", "SiteUrgency", "Sites"]

_FARTHEST: Final = 4096.0
"""A page that needs more steps than this to reach a price counts as never reaching it."""
_TINY: Final = 1e-30
_NEVER: Final = 2**53
"""A step number larger than any other."""
_SLICE: Final = 50_000
"""Number of pages that are processed at a time, to save memory."""
_EVENTS, _EXPOSURE, _BEFORE, _IMPORTANCE = range(4)
"""The data of a page begin with four numbers:

- changes found
- exposure
- hazard of the section between the page's last fetch and the start of the window
- factor of the page's urgency
"""
_PAST: Final = slice(4, 4 + COLUMNS)
_WIDTH: Final = 4 + COLUMNS

_Part = memoryview  # into the decoded data, because copies of the parts would take longer than the rest of `decode`
_PARTS: Final = msgspec.msgpack.Decoder(tuple[int, _Part, _Part, _Part, _Part, _Part, _Part, _Part, _Part])


class SiteUrgency:
    """State of the pages of one site, learned only from the results of fetches."""

    __slots__ = ("_page", "_section", "_sections", "_since", "memory", "signals", "trust")

    def __init__(self, *, signals: Signals, step: int = 0) -> None:
        """Create the `SiteUrgency` of a site at `step`, without pages."""
        self.signals = signals
        self.memory = Memory.begun(signals=signals, step=step)
        self._sections: Sections | memoryview = Sections()
        self._section = np.zeros(0, dtype=np.int32)
        self._since = np.zeros(0, dtype=np.int64)
        self._page = np.zeros((_WIDTH, 0), dtype=np.float32)
        self.trust = TrustInSections.begun()

    @classmethod
    def resumed(
        cls,
        paths: Sequence[str],
        *,
        since: Ints,
        events: Array,
        observed_time: Array,
        importance: Array,
        signals: Signals,
        step: int,
        alone: Array | float = 0.0,
    ) -> SiteUrgency:
        """Create the `SiteUrgency` of a site at `step`, with pages whose past is known.

        Parameters
        ----------
        paths : (pages,) URL paths; pages are numbered in this order
        since : (pages,) step of the last fetch
        events : (pages,) number of changes found so far
        observed_time : (pages,) number of steps in which every change would have been found
        alone : (`COLUMNS`, pages) the past as the explanation by independent pages needs it (`independent_pages`)
        """
        past = Past(signals=signals)
        section = past.add(paths, since=since, events=events, observed_time=observed_time)
        return past.site(
            section,
            since=since,
            events=events,
            observed_time=observed_time,
            importance=importance,
            step=step,
            alone=alone,
        )

    def __len__(self) -> int:
        return len(self._section)

    def some(self, pages: Flags) -> SiteUrgency:
        """Return a copy of the site with only the chosen pages, but all statistics of its sections."""
        found = SiteUrgency.__new__(SiteUrgency)
        found.signals, found.memory, found._sections = self.signals, self.memory, self._sections
        found.trust = self.trust
        found._section, found._since, found._page = self._section[pages], self._since[pages], self._page[:, pages]
        return found

    def follow(self, other: SiteUrgency) -> None:
        """Take over the section statistics of `other`, an object of the same site, unless they are older."""
        if other.memory.step >= self.memory.step:
            Sites([self], step=other.memory.step).keep()
            self.memory, self._sections, self.trust = other.memory, other._sections, other.trust

    def believe(self, signals: Signals) -> None:
        """Use new signals, in which a step must be as long as in the old signals."""
        self.signals = signals

    def add(self, paths: Sequence[str], *, since: Ints, importance: Array) -> Ints:
        """Add pages and return their numbers.

        Parameters
        ----------
        since, importance : (pages,) step of the first or last fetch; factor of the urgency
        """
        if not isinstance(self._sections, Sections):
            self._sections = Sections.decode(self._sections)
        known = len(self)
        section = np.array(self._sections.sections_of(paths), dtype=np.int32)
        if more := self._sections.parents()[len(self.memory.rows) :]:
            self.memory = self.memory.grown(more)
        page = np.zeros((_WIDTH, len(section)), dtype=np.float32)
        page[_IMPORTANCE] = importance
        self._section = np.concatenate([self._section, section])
        self._since = np.concatenate([self._since, since])
        self._page = np.concatenate([self._page, page], axis=1)
        return np.arange(known, len(self))

    def renew(self, pages: Ints, *, step: int) -> None:
        """Record the first fetches of pages; a first fetch shows nothing about changes."""
        together = Sites([self], step=step)
        together.renew(pages, step=step)
        together.keep()

    def observe(self, pages: Ints, changed: Flags, *, step: int) -> FetchEvidence:
        """Learn from pages that were fetched in `step` and compared with our copies. A page may occur only once per
        call."""
        together = Sites([self], step=step)
        found = together.observe(pages, changed, np.full(len(pages), step))
        together.keep()
        return found

    def urgency(self, pages: Ints, *, step: int) -> Array:
        """Return the urgency of each page for a fetch in `step`, weighted by the page's importance."""
        return Sites([self], step=step).urgency(pages)

    def section_rates(self) -> list[SectionRate]:
        """Return the change rate of each section, the site itself first."""
        sections = self._sections if isinstance(self._sections, Sections) else Sections.decode(self._sections)
        pages = np.bincount(self._section, minlength=len(sections))
        known = zip(sections.names(), pages.tolist(), self.memory.mean_rates().tolist(), strict=False)
        return [SectionRate(*each) for each in known]

    def encode(self) -> bytes:
        """Serialise the site, in about 40 bytes per page and 500 per section."""
        memory = self.memory
        parts = [
            memory.step,
            memory.tree.astype("<i4").tobytes(),
            memory.rows.astype("<f4").tobytes(),
            memory.changes.astype("<f8").tobytes(),
            self.trust.encode(),
            self._section.astype("<i4").tobytes(),
            (self._since - memory.step).astype("<i4").tobytes(),
            self._page.astype("<f4").tobytes(),
            self._sections.encode() if isinstance(self._sections, Sections) else self._sections,
        ]
        return msgspec.msgpack.encode(parts)

    @classmethod
    def decode(cls, data: bytes | memoryview, *, signals: Signals) -> SiteUrgency:
        """Restore the result of `encode`, given the same signals. The arrays are views of `data`.

        Raises
        ------
        ValueError
            if another version wrote the data, or if they are damaged.
        """
        try:
            step, tree, rows, changes, trust, section, since, page, sections = _PARTS.decode(data)
            site = cls.__new__(cls)
            site.signals, site._sections = signals, sections
            site._section = np.frombuffer(section, dtype="<i4")
            count = len(site._section)
            known = np.frombuffer(tree, dtype="<i4").reshape(2, -1)
            site.memory = Memory(
                step,
                known,
                np.frombuffer(rows, dtype="<f4").reshape(known.shape[1], -1),
                np.frombuffer(changes, dtype="<f8").reshape(-1, 4),
            )
            if not site.memory.is_sound():
                raise ValueError("the stored urgencies of a site were written by another version")
            site._since = np.frombuffer(since, dtype="<i4").astype(np.int64) + step
            if len(page) == 16 * count:  # an earlier version did not store the columns for `independent_pages`
                page = _Part(bytes(page) + bytes(4 * COLUMNS * count))
            site._page = np.frombuffer(page, dtype="<f4").reshape(_WIDTH, count)
            site.trust = TrustInSections.decode(trust)
        except (msgspec.DecodeError, TypeError) as error:
            raise ValueError(f"the stored urgencies of a site cannot be read: {error}") from error
        return site


class Past:
    """The results of a site's earlier fetches; the method `site` creates a `SiteUrgency` from them."""

    def __init__(self, *, signals: Signals) -> None:
        self._signals = signals
        self._sections = Sections()
        self._reported = np.zeros((3, 1))  # (., sections) changes found, observed steps, pages
        self._first = float(_NEVER)
        self._begun: tuple[int, Memory, Array] | None = None

    def add(self, paths: Sequence[str], *, since: Ints, events: Array, observed_time: Array) -> Ints:
        """Add pages as in `SiteUrgency.resumed`, and return their sections."""
        section = np.array(self._sections.sections_of(paths), dtype=np.int64)
        self._reported = np.pad(self._reported, ((0, 0), (0, len(self._sections) - self._reported.shape[1])))
        for row, amounts in enumerate((events, observed_time, np.ones(len(section)))):
            np.add.at(self._reported[row], section, amounts)
        self._first = min(self._first, float(np.min(since, initial=_NEVER)))
        return section

    def site(
        self,
        section: Ints,
        *,
        since: Ints,
        events: Array,
        observed_time: Array,
        importance: Array,
        step: int,
        alone: Array | float = 0.0,
    ) -> SiteUrgency:
        """Create the `SiteUrgency` of a site at `step`, with some of the pages that were added. After the first call of
        `site`, no more pages may be added.
        """
        if self._begun is None:
            self._begun = self._begin(step)
        begin, memory, rate = self._begun
        site = SiteUrgency(signals=self._signals)
        site.memory, site._sections = memory, self._sections
        site._section, site._since = section.astype(np.int32), since
        site._page = np.zeros((_WIDTH, len(section)), dtype=np.float32)
        site._page[_IMPORTANCE] = importance
        site._page[_PAST] = alone
        if self._signals.history:
            site._page[_EVENTS], site._page[_EXPOSURE] = events, observed_time * rate[section]
        # Before the window only the section's long-run rate is known.
        site._page[_BEFORE] = rate[section] * np.maximum(begin - WINDOW - since, 0)
        Sites([site], step=step).keep()
        return site

    def _begin(self, step: int) -> tuple[int, Memory, Array]:
        begin = int(max(min(self._first, step), step - WINDOW))
        memory = Memory.begun(signals=self._signals, step=begin).grown(self._sections.parents()[1:])
        activity = Activity([memory], signals=self._signals)
        activity.begin_with(*self._reported)
        return begin, activity.memories()[0], activity.mean_rate(np.arange(len(self._sections)))


class Sites:
    """Sites whose urgencies are computed together. The pages of all sites are numbered in one sequence."""

    def __init__(self, sites: Sequence[SiteUrgency], *, step: int | Ints) -> None:
        """Combine sites with equal signals. `step` is the current step, one number or (sites,). The objects in `sites`
        change only when `keep` is called.
        """
        self._sites = sites
        self._step = np.full(len(sites), step, dtype=np.int64)
        self.activity = Activity([site.memory for site in sites], signals=sites[0].signals)
        counts = [len(site) for site in sites]
        self.offset = np.cumsum([0, *counts])
        """(sites + 1,) number of the first page of each site."""
        self.site = np.repeat(np.arange(len(sites)), counts)
        """(pages,) site of each page."""
        self.page = np.concatenate([site._page for site in sites], axis=1, dtype=np.float64)
        section = np.concatenate([site._section for site in sites]) + np.repeat(self.activity.offset[:-1], counts)
        since = np.concatenate([site._since for site in sites])
        self.unchecked = self.activity.advance(step, UncheckedPages(section, since, self.page[_BEFORE]))
        self._signals = sites[0].signals
        self.explanations = Explanations([site.trust for site in sites], signals=self._signals)

    def keep(self) -> None:
        """Store the new state in the `SiteUrgency` objects."""
        self.page[_BEFORE] = self.unchecked.before
        page = self.page.astype(np.float32)
        for number, (site, memory) in enumerate(zip(self._sites, self.activity.memories(), strict=True)):
            begin, end = self.offset[number], self.offset[number + 1]
            site.memory, site.trust = memory, self.explanations.trusts[number]
            site._since, site._page = self.unchecked.since[begin:end].copy(), page[:, begin:end].copy()

    def renew(self, pages: Ints, *, step: int) -> None:
        """Record the first fetches of pages; a first fetch shows nothing about changes."""
        self.unchecked.since[pages], self.unchecked.before[pages] = step, 0.0

    def observe(self, pages: Ints, changed: Flags, steps: Ints) -> FetchEvidence:
        """Learn from pages that were fetched and compared with our copies. A page may occur only once per call.

        Parameters
        ----------
        steps : (pages,) step of each fetch, not after the current step
        """
        unchecked, events, exposure = self.unchecked.of(pages), self.page[_EVENTS, pages], self.page[_EXPOSURE, pages]
        belief = np.stack(self.activity.weights(unchecked, events, exposure))
        believed = chance_of_change(self.activity.hazard(unchecked), *belief)
        if self._signals.independent:
            by_sections = self.activity.predictions(unchecked, steps, *belief)
            self._learn_alone(pages, changed, (steps - unchecked.since).astype(np.float64), by_sections)
        self.page[_EVENTS, pages], self.page[_EXPOSURE, pages] = self.activity.observe(
            unchecked, steps, changed, events=events, exposure=exposure
        )
        lasted = self.activity.since_change(unchecked.of(changed), steps[changed], *belief[:, changed])
        self.unchecked.since[pages], self.unchecked.before[pages] = steps, 0.0
        sites, count = self.site[pages], len(self._sites)
        return FetchEvidence(summed(sites, believed, count), summed(sites, changed.astype(np.float64), count), lasted)

    def _rates(self, pages: Ints) -> PageRates:
        prior = self.explanations.prior[self.site[pages]]
        return PageRates(self.page[_PAST, pages], prior, usual_rate=self._signals.prior_rate)

    def _mixed(self, pages: Ints) -> tuple[Ints, Ints, Array, Array]:
        places = np.flatnonzero(self.explanations.share[self.site[pages]] < 1.0)
        some = pages[places]
        age = (self._step[self.site[some]] - self.unchecked.since[some]).astype(np.float64)
        return places, some, self.explanations.share[self.site[some]], np.maximum(age, 0.0)

    def _learn_alone(self, pages: Ints, changed: Flags, age: Array, by_sections: Array) -> None:
        """Record visits for the explanation by independent pages, and update the weights of both explanations."""
        seen = age > 0.0  # a second fetch in the same step shows nothing
        pages, changed, age = pages[seen], changed[seen], age[seen]
        active, even = by_sections[:, seen]
        predicted = Predictions(active, even, self._rates(pages).changed(age))
        self.page[_PAST, pages] += evidence_of(age, changed)
        pasts = [self.page[_PAST, begin:end] for begin, end in pairwise(self.offset.tolist())]
        self.explanations.learn(self.site[pages], predicted, changed, pasts)

    def urgency(self, pages: Ints) -> Array:
        """Return the urgency of each page for a fetch now, weighted by the page's importance."""
        return self._approach(pages).urgency

    def unchanged(self) -> tuple[Array, Array]:
        """Return two (pages,) arrays: `still` and the probability that each page has changed. `still` is the
        probability that a page is unchanged, times the steps since its last fetch, times its importance.
        """
        known = self.page[_EVENTS], self.page[_EXPOSURE]
        chance = chance_of_change(self.activity.hazard(self.unchecked), *self.activity.weights(self.unchecked, *known))
        passed = self.activity.passed(self.unchecked, self.explanations.share_of_activity)
        still = passed / self.activity.mean_rate(self.unchecked.section) * (1.0 - chance)
        places, some, share, age = self._mixed(np.arange(len(self.site)))
        changed = self._rates(some).changed(age)
        still[places] = share * still[places] + (1.0 - share) * age * (1.0 - changed)
        chance[places] = share * chance[places] + (1.0 - share) * changed
        return np.asarray(self.page[_IMPORTANCE] * still), chance

    def approach(self) -> Approach:
        """Return the `urgency` of every page now, with bounds on its growth."""
        if len(self.site) <= _SLICE:
            return self._approach(np.arange(len(self.site)))
        # It is computed in slices, because the intermediate arrays need several times the memory of the result.
        slices = (np.arange(begin, min(begin + _SLICE, len(self.site))) for begin in range(0, len(self.site), _SLICE))
        parts = [self._approach(pages) for pages in slices]
        return Approach(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _approach(self, pages: Ints) -> Approach:
        unchecked, known = self.unchecked.of(pages), self.page[:, pages]
        mean = self.activity.mean_rate(unchecked.section)
        passed = self.activity.passed(unchecked, self.explanations.share_of_activity)
        events, exposure = self.activity.weights(unchecked, known[_EVENTS], known[_EXPOSURE])
        found, slope = urgency_and_slope(passed, mean, events, exposure)
        lasted, elapsed = passed / mean, passed / mean
        square = events * mean / exposure  # (1 - e^-y (1 + y))/r with y = r H is at most r H^2/2
        places, some, share, age = self._mixed(pages)
        if len(some):
            sample = is_in_sample(some - self.offset[self.site[some]], np.diff(self.offset)[self.site[some]])
            alone = self._rates(some).alone(age, sample=sample, tellable=self.explanations.tellable)
            found[places] = share * found[places] + (1.0 - share) * alone.urgency
            square[places] = share * square[places] + (1.0 - share) * alone.rate
            slope[places], lasted[places] = 2.0, np.minimum(lasted[places], age)
            elapsed[places] = np.maximum(elapsed[places], age)
        least = np.sqrt(2.0 / (np.maximum(known[_IMPORTANCE], _TINY) * square))
        return Approach(found * known[_IMPORTANCE], slope, lasted, elapsed, least)

    def steps_until(self, approach: Approach, wanted: Flags, prices: Array) -> Array:
        """Return (prices, sites) lower bounds on the steps until a `wanted` page reaches a price, provided that no
        fetch finds a change.

        For a page whose urgency is close to the price, the bound is nearly exact. The bound is inf if no page ever
        reaches the price.
        """
        until = np.full((len(prices), len(self._sites)), inf)
        pages = np.flatnonzero(wanted)
        for begin in range(0, len(pages), _SLICE):
            np.minimum(until, self._steps_until(approach, pages[begin : begin + _SLICE], prices), out=until)
        return until

    def _steps_until(self, approach: Approach, pages: Ints, prices: Array) -> Array:
        until = np.full((len(prices), len(self._sites)), inf)
        urgency, slope, lasted, elapsed, least = (each[pages] for each in approach)
        asked = np.maximum(prices, _TINY)[:, None]
        by_slope = (np.log(asked) - np.log(np.maximum(urgency, _TINY))) / np.maximum(slope, _TINY)
        steps = (np.exp(np.minimum(by_slope, 100.0)) - 1.0) * lasted  # `expm1` takes four times as long
        np.maximum(steps, np.sqrt(asked) * least - elapsed, out=steps)
        begins = run_begins(self.site[pages])
        soonest = np.maximum(np.minimum.reduceat(steps, begins, axis=1), 0.0)
        until[:, self.site[pages[begins]]] = np.where(soonest > _FARTHEST, inf, soonest)
        return until

    def reckon(self, wanted: Flags) -> SiteBeliefs:
        """Return the estimates for the `wanted` pages of each site."""
        pages = np.flatnonzero(wanted)
        parts = [self._reckon(pages[begin : begin + _SLICE]) for begin in range(0, max(len(pages), 1), _SLICE)]
        return SiteBeliefs(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))

    def _reckon(self, pages: Ints) -> SiteBeliefs:
        count = len(self._sites)
        unchecked, site = self.unchecked.of(pages), self.site[pages]
        passed = self.activity.hazard(unchecked)
        events, exposure = self.activity.weights(unchecked, self.page[_EVENTS, pages], self.page[_EXPOSURE, pages])
        obsolete = chance_of_change(passed, events, exposure)
        age = self._step[site] - unchecked.since
        halfway = self.activity.halfway(unchecked, unchecked.since + age // 2)
        # Simpson's rule; no page was obsolete at its last fetch.
        so_far = age * (4.0 * chance_of_change(halfway, events, exposure) + obsolete) / 6.0
        growing = (1.0 - obsolete) * self.activity.mean_rate(unchecked.section) * events / (exposure + passed)
        places, some, share, since = self._mixed(pages)
        if len(some):
            rates = self._rates(some)
            halfway = 4.0 * rates.changed(since / 2)
            alone = rates.changed(since)
            others = alone, since * (halfway + alone) / 6.0, rates.growing(since)
            for found, other in zip((obsolete, so_far, growing), others, strict=True):
                found[places] = share * found[places] + (1.0 - share) * other
        return SiteBeliefs(*(summed(site, each, count) for each in (obsolete, so_far, growing)))
