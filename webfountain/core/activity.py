"""Model how the pages of a site change: a rate per section, bursts, and a history per page.

Pages of a site are not independent: a release or a template change affects a whole directory at once. This module
models the number of changes of each page per step:

    hazard of page j in step d  =  r_j * mean_g * u_g[d]

The term mean_g is the long-run rate of section g. The activity u_g[d] of section g in step d is 1 at the long-run
level. The factor r_j is the rate of page j relative to its section. A new section starts with the rate and activity of
its parent section, and a new page with the rate of its section. A fetch that finds a change raises the section's
activity since the page's previous fetch; a fetch that finds none lowers it. One fetch changes the activity of its
section, and thereby the urgency of every page of the section. The exact step of a change is unknown, so the change is
divided among the steps between two fetches, in proportion to the hazard. After each batch of fetches, the changes of
the last `WINDOW` steps are divided anew, by expectation maximisation.

Between two batches of fetches, a `Memory` stores the state of a site, in about 500 bytes per section.

Time is counted in whole steps; in a crawl, a step is a fraction of the time between two visits. For each page the
caller stores five values: its section, the step of its last fetch, `events`, `exposure` and `before`.

Source: interval-censored Poisson likelihood as in `change_rate`; gamma frailty: Vaupel, Manton & Stallard 1979; the
combination is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.sections import SectionTree, run_begins

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.arrays import Array, Flags, Ints
    from webfountain.core.signals import Signals


__all__ = ["TELLABLE", "WINDOW", "Activity", "Memory", "UncheckedPages", "chance_of_change", "summed"]

WINDOW: Final = 60
"""Number of recent steps for which activity is re-estimated after each batch of fetches."""
TELLABLE: Final = 4.0
"""Largest mean rate, in expected changes between two visits. A rate at which more than 49 of 50 checks find a change
cannot be measured. If rates had no limit, one overestimated site could use up a small budget.
"""
_SWEEPS: Final = 2
_TINY: Final = 1e-12
_FACTS: Final = 5
_MEAN, _SIZE, _EVENTS, _EXPOSURE, _OPEN = range(_FACTS)
"""Each section has five columns:

- mean rate
- largest number of pages observed at once, weighted by relative rate
- changes before the window
- exposure before the window
- exposure that is open when the window begins
"""
_WIDTH: Final = _FACTS + WINDOW + WINDOW + 1


def summed(place: Ints, amounts: Array, size: int) -> Array:
    """Return (size,) sums: element k adds up every `amounts[i]` for which `place[i]` is k."""
    return np.asarray(np.bincount(place, amounts, minlength=size), dtype=np.float64)


class UncheckedPages(NamedTuple):
    """The section and the last fetch of each page; one element per page."""

    section: Ints
    since: Ints
    before: Array
    """Hazard of the section between the page's last fetch and the start of the window."""

    def of(self, keep: Flags | Ints | slice) -> UncheckedPages:
        return UncheckedPages(self.section[keep], self.since[keep], self.before[keep])


@dataclass(slots=True)
class Memory:
    """State of the sections of one site."""

    step: int
    """Current step; the window is the `WINDOW` steps before it."""
    tree: npt.NDArray[np.int32]
    """(2, sections) parent (0 for the site itself) and depth of each section."""
    rows: npt.NDArray[np.float32]
    """(sections, `_WIDTH`) Each section has a row with these columns:

    - `_MEAN` to `_OPEN`
    - the hazard in each step of the window
    - the exposure that begins (negative: ends) in each of these steps and in the current step
    """
    changes: Array
    """(changes in the window, 4) Each change has a row with four columns:

    - section
    - step of the previous fetch
    - step of the fetch that found the change
    - hazard between the previous fetch and the start of the window
    """

    @classmethod
    def begun(cls, *, signals: Signals, step: int) -> Memory:
        """Return the state of a new site at `step`, computed from the priors alone."""
        rows = np.zeros((1, _WIDTH), dtype=np.float32)
        rows[0, _MEAN] = rows[0, _FACTS : _FACTS + WINDOW] = signals.prior_rate
        rows[0, _SIZE] = 1.0
        return cls(step, np.zeros((2, 1), dtype=np.int32), rows, np.zeros((0, 4)))

    def grown(self, parents: Sequence[int]) -> Memory:
        """Return the state extended by new sections, each with the rate and the past activity of its parent."""
        tree, rows = self.tree, self.rows
        more = np.array(parents, dtype=np.int32)
        for parent in more.tolist():
            row = rows[parent].copy()
            row[_SIZE], row[_EVENTS : _OPEN + 1], row[_FACTS + WINDOW :] = 1.0, 0.0, 0.0
            rows = np.concatenate([rows, row[None]])
            tree = np.concatenate([tree, [[parent], [tree[1, parent] + 1]]], axis=1, dtype=np.int32)
        return Memory(self.step, tree, rows, self.changes)

    def mean_rates(self) -> npt.NDArray[np.float32]:
        """Return the long-run rate of each section, changes per page and step."""
        return self.rows[:, _MEAN]

    def is_sound(self) -> bool:
        return self.rows.shape == (self.tree.shape[1], _WIDTH)


class Activity:
    """The sections of several sites at one step, numbered in one sequence."""

    def __init__(self, memories: Sequence[Memory], *, signals: Signals) -> None:
        self._signals = signals
        sizes = [len(memory.rows) for memory in memories]
        self.offset = np.cumsum([0, *sizes])
        """(sites + 1,) number of each site's first section."""
        self.site = np.repeat(np.arange(len(memories)), sizes)
        """(sections,) site of each section."""
        begins = np.repeat(self.offset[:-1], sizes)
        tree = np.concatenate([memory.tree for memory in memories], axis=1)
        self._tree = SectionTree(tree[0] + begins, tree[1])
        rows = np.concatenate([memory.rows for memory in memories], dtype=np.float64)
        self._facts = rows[:, :_FACTS].T.copy()
        self._hazard = rows[:, _FACTS : _FACTS + WINDOW].copy()
        self._opened = rows[:, _FACTS + WINDOW :].copy()
        self._total = np.zeros((len(rows), WINDOW + 1))
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])
        found = [memory.changes for memory in memories]
        changes = np.concatenate(found)
        changes[:, 0] += np.repeat(self.offset[:-1], [len(each) for each in found])
        self._changed = changes[:, :3].astype(np.int64)  # section, since, step
        self._changed_before = changes[:, 3]
        self._steps = np.array([memory.step for memory in memories], dtype=np.int64)  # (sites,)

    def memories(self) -> list[Memory]:
        """Return the state of each site, with copied arrays: views would keep the arrays of all sites alive."""
        rows = np.concatenate([self._facts.T, self._hazard, self._opened], axis=1, dtype=np.float32)
        order = np.argsort(self._changed[:, 0], kind="stable")
        changes = np.concatenate([self._changed[order], self._changed_before[order, None]], axis=1)
        ends = np.searchsorted(changes[:, 0], self.offset)
        found = []
        for number, step in enumerate(self._steps.tolist()):
            begin, end = self.offset[number], self.offset[number + 1]
            own = changes[ends[number] : ends[number + 1]].copy()
            own[:, 0] -= begin
            tree = np.array([self._tree.parent[begin:end] - begin, self._tree.depth[begin:end]], dtype=np.int32)
            found.append(Memory(step, tree, rows[begin:end].copy(), own))
        return found

    # ------------------------------------------------------------------ time

    def advance(self, step: int | Ints, unchecked: UncheckedPages) -> UncheckedPages:
        """Advance all sites to `step`, which is one number or an array (sites,). Return `unchecked` with `before`
        recomputed for the new window.
        """
        passed = np.maximum(step - self._steps, 0)
        if not passed.any():
            return unchecked
        by_section = passed[self.site]
        most = int(min(passed.max(), WINDOW))
        events, exposure = self._spread(most), self._exposure(most)
        before = unchecked.before + self._closing(unchecked.section, unchecked.since, passed)
        self._changed_before = self._changed_before + self._closing(self._changed[:, 0], self._changed[:, 1], passed)
        self._close(by_section, events, exposure)
        self._shift(passed, by_section)
        kept = self._changed[:, 2] > self._first()[self._changed[:, 0]]
        self._changed, self._changed_before = self._changed[kept], self._changed_before[kept]
        return unchecked._replace(before=before)

    def _first(self) -> Ints:
        return np.asarray((self._steps - WINDOW)[self.site])

    def _closing(self, section: Ints, since: Ints, passed: Ints) -> Array:
        steps = passed[self.site[section]]
        end = np.minimum(steps, WINDOW)
        begin = np.clip(since - self._first()[section], 0, end)
        closing = self._total[section, end] - self._total[section, begin]
        return np.asarray(closing + self._facts[_MEAN, section] * np.maximum(steps - WINDOW, 0))

    def _close(self, passed: Ints, events: Array, exposure: Array) -> None:
        ago = passed[:, None] - 1 - np.arange(events.shape[1])
        kept = np.where(ago >= 0, 1.0, 0.0)
        fade = np.ones(len(passed))
        if self._signals.forgetting:
            kept *= np.exp(-np.maximum(ago, 0) / self._signals.memory)
            fade = np.exp(-passed / self._signals.memory)
        self._facts[_EVENTS] = fade * self._facts[_EVENTS] + (events * kept).sum(axis=1)
        self._facts[_EXPOSURE] = fade * self._facts[_EXPOSURE] + (exposure * kept).sum(axis=1)

    def _shift(self, passed: Ints, by_section: Ints) -> None:
        self._steps = self._steps + passed
        ends = [*run_begins(by_section)[1:].tolist(), len(by_section)]
        begin = 0
        for end in ends:  # Sections with equal elapsed time are neighbours: a slice costs a fifth of fancy indexing.
            gone = int(min(by_section[begin], WINDOW + 1))
            opened, hazard = self._opened[begin:end], self._hazard[begin:end]
            if gone:
                self._facts[_OPEN, begin:end] += opened[:, :gone].sum(axis=1)
                stays = max(WINDOW - gone, 0)
                opened[:, : WINDOW + 1 - gone] = opened[:, gone:].copy()
                opened[:, WINDOW + 1 - gone :] = 0.0
                hazard[:, :stays] = hazard[:, WINDOW - stays :].copy()
                hazard[:, stays:] = self._facts[_MEAN, begin:end, None]
            begin = end
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])

    # ------------------------------------------------------------- questions

    def mean_rate(self, section: Ints) -> Array:
        """Return the long-run changes per step of an average page of a section."""
        return np.asarray(self._facts[_MEAN, section])

    def hazard(self, unchecked: UncheckedPages, *, until: Ints | None = None) -> Array:
        """Return the hazard of each page: the expected number of changes of its section's average page from the last
        fetch to `until`.
        """
        section, since, before = unchecked
        first = self._first()[section]
        end = WINDOW if until is None else np.clip(until - first, 0, WINDOW)
        begin = np.clip(since - first, 0, end)
        return np.asarray(before + self._total[section, end] - self._total[section, begin])

    def halfway(self, unchecked: UncheckedPages, middle: Ints) -> Array:
        section, since, before = unchecked
        first = self._first()[section]
        share = np.clip((middle - since) / np.maximum(first - since, 1), 0.0, 1.0)
        begin, end = np.clip(since - first, 0, WINDOW), np.clip(middle - first, 0, WINDOW)
        return np.asarray(before * share + self._total[section, end] - self._total[section, begin])

    def weights(self, unchecked: UncheckedPages, events: Array, exposure: Array) -> tuple[Array, Array]:
        """Return the two parameters of each page's gamma distribution. This is the distribution of the page's change
        rate divided by that of its section."""
        fade, weight = self._fade(unchecked), self._signals.page_events
        return weight + fade * events, weight + fade * exposure

    def even(self, unchecked: UncheckedPages, *, until: Ints | None = None) -> Array:
        """Return what `hazard` would be if every section were equally active in all steps."""
        end = self._steps[self.site[unchecked.section]] if until is None else until
        return np.asarray(self._facts[_MEAN, unchecked.section] * np.maximum(end - unchecked.since, 0))

    def predictions(self, unchecked: UncheckedPages, until: Ints, events: Array, exposure: Array) -> Array:
        """Return the chance that each page changed before `until`, by `hazard` and by `even`, (2, pages)."""
        hazards = self.hazard(unchecked, until=until), self.even(unchecked, until=until)
        return np.stack([chance_of_change(each, events, exposure) for each in hazards])

    def passed(self, unchecked: UncheckedPages, share: Array) -> Array:
        """Return the expected number of changes of each page since its last fetch. `share` (sites,) is the weight of
        `hazard` against `even`.
        """
        if not self._signals.siblings:
            return self.even(unchecked)
        if (share == 1.0).all():
            return self.hazard(unchecked)
        trusted = share[self.site[unchecked.section]]
        return np.asarray(trusted * self.hazard(unchecked) + (1.0 - trusted) * self.even(unchecked))

    def since_change(self, unchecked: UncheckedPages, step: Ints, events: Array, exposure: Array) -> Array:
        """Return the expected number of steps between the first change of a page and the fetch in `step`.

        Parameters
        ----------
        events, exposure : (pages,) the gamma parameters of each page's relative rate before the fetch, from `weights`
        """
        section, since, before = unchecked
        first = self._first()[section]
        end, begin = np.clip(step - first, 0, WINDOW), np.clip(since - first, 0, WINDOW)
        risk = before[:, None] + self._total[section] - self._total[section, begin][:, None]
        chance = chance_of_change(np.maximum(risk, 0.0), events[:, None], exposure[:, None])
        place = np.arange(WINDOW)
        within = (place >= begin[:, None]) & (place < end[:, None])
        stood = ((chance[:, :-1] + chance[:, 1:]) / 2 * within).sum(axis=1)
        # Only the total hazard before the window is known. It is assumed to be even. The integral uses Simpson's rule.
        early = np.maximum(np.minimum(first, step) - since, 0)
        halfway, whole = (chance_of_change(before * part, events, exposure) for part in (0.5, 1.0))
        stood += early * (4.0 * halfway + whole) / 6.0
        known = chance[np.arange(len(end)), end]
        return np.asarray(np.where(known > _TINY, stood / np.maximum(known, _TINY), (step - since) / 2))

    # -------------------------------------------------------------- learning

    def begin_with(self, events: Array, observed_time: Array, pages: Array) -> None:
        """Add the results of fetches that were made before a site had statistics.

        Parameters
        ----------
        events, pages : (sections,) changes found and number of pages, without subsections
        observed_time : (sections,) steps in which every change would have been found, without subsections
        """
        reported = np.stack([events, observed_time, pages], axis=1)
        self._tree.roll_up(reported)
        self._facts[_EVENTS] += reported[:, 0]
        self._facts[_EXPOSURE] += reported[:, 1]
        nothing = np.zeros(len(reported))
        self._estimate_means(nothing, nothing, reported[:, 2])
        self._hazard[:] = self._facts[_MEAN][:, None]
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])

    def observe(
        self, unchecked: UncheckedPages, step: Ints, changed: Flags, *, events: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Learn from fetches of live pages. Return the new `events` and `exposure` of the fetched pages.

        Parameters
        ----------
        step : (pages,) step of each fetch, not after the current step
        changed : (pages,) True if a change that counts was found
        events, exposure : (pages,) what `observe` returned at a page's last fetch, or zeros
        """
        fade = self._fade(unchecked, until=step)
        weight = self._signals.page_events
        relative = (weight + fade * events) / (weight + fade * exposure)
        self._record(unchecked, step, changed, relative)
        self._revise()
        if not self._signals.history:
            return events, exposure
        passed = self.hazard(unchecked, until=step)
        observed_time = np.where(changed, passed * _observed_share(relative * passed), passed)
        return fade * events + changed, fade * exposure + observed_time

    def _fade(self, unchecked: UncheckedPages, *, until: Ints | None = None) -> Array | float:
        """Return, per page, the share of the weight of its earlier checks that remains at step `until` (by default,
        now).
        """
        if not self._signals.forgetting:
            return 1.0
        now = self._steps[self.site[unchecked.section]] if until is None else until
        return np.asarray(np.exp(-(now - unchecked.since) / self._signals.memory))

    def _record(self, unchecked: UncheckedPages, step: Ints, changed: Flags, relative: Array) -> None:
        seen = step > unchecked.since  # a second fetch in the same step shows nothing
        unchecked, step, changed = unchecked.of(seen), step[seen], changed[seen]
        section, since, before = unchecked
        risk = relative[seen] * self.hazard(unchecked, until=step)
        weight = relative[seen] * np.where(changed, _observed_share(risk), 1.0)
        first = self._first()[section]
        ends = np.clip(np.concatenate([since - first, step - first]), 0, WINDOW)
        place = np.concatenate([section, section]) * (WINDOW + 1) + ends
        opened = summed(place, np.concatenate([weight, -weight]), self._opened.size)
        self._opened += opened.reshape(self._opened.shape)
        found = np.stack([section[changed], since[changed], step[changed]], axis=1)
        self._changed = np.concatenate([self._changed, found])
        self._changed_before = np.concatenate([self._changed_before, before[changed]])

    def _revise(self) -> None:
        """Re-estimate rates and activity from the changes in the window."""
        exposure = self._exposure()
        observed_time, size = exposure.sum(axis=1), exposure.max(axis=1)
        for _ in range(_SWEEPS):
            events = self._spread()
            self._estimate_means(events.sum(axis=1), observed_time, size)
            if self._signals.siblings:
                self._estimate_activity(events, exposure)

    def _exposure(self, steps: int = WINDOW) -> Array:
        exposure = np.cumsum(self._opened[:, :steps], axis=1)
        exposure += self._facts[_OPEN][:, None]
        self._tree.roll_up(exposure)
        return exposure

    def _spread(self, steps: int = WINDOW) -> Array:
        if not len(self._changed):
            return np.zeros((len(self._hazard), steps))
        section, since, step = self._changed.T
        first = self._first()[section]
        begin, end = np.clip(since - first, 0, WINDOW), np.clip(step - first, 0, WINDOW)
        passed = self._changed_before + self._total[section, end] - self._total[section, begin]
        share = 1.0 / np.maximum(passed, _TINY)
        place = section * (steps + 1) + np.minimum([begin, end], steps)
        opened = summed(place.ravel(), np.concatenate([share, -share]), len(self._hazard) * (steps + 1))
        events = np.cumsum(opened.reshape(-1, steps + 1)[:, :steps], axis=1)
        events *= self._hazard[:, :steps]
        self._tree.roll_up(events)
        return events

    def _estimate_means(self, events: Array, exposure: Array, size: Array) -> None:
        signals, mean = self._signals, self._facts[_MEAN]
        seen, observed_time = self._facts[_EVENTS] + events, self._facts[_EXPOSURE] + exposure
        prior, root = signals.prior_exposure, self.offset[:-1]
        mean[root] = (seen[root] + prior * signals.prior_rate) / (observed_time[root] + prior)
        # A burst changes a whole section, so its pages are not independent evidence: the weight of the prior grows with
        # the number of pages. The largest number is kept while no page is fetched. Otherwise a section that is not
        # visited because of its high rate would never be visited again.
        self._facts[_SIZE] = np.maximum(self._facts[_SIZE], size)
        lent = signals.section_steps * self._facts[_SIZE]
        for level, parents, _, _ in self._tree.levels:
            inherited = mean[parents]
            own = (seen[level] + lent[level] * inherited) / (observed_time[level] + lent[level])
            mean[level] = own if signals.sections else inherited
        if signals.visit > 0:  # a web without pages has no visits
            np.minimum(mean, TELLABLE / signals.visit, out=mean)

    def _estimate_activity(self, events: Array, exposure: Array) -> None:
        strength, root = self._signals.step_events, self.offset[:-1]
        mean = self._facts[_MEAN][:, None]
        expected = exposure * mean
        activity = np.empty_like(expected)
        activity[root] = (events[root] + strength) / (expected[root] + strength)
        for level, parents, _, _ in self._tree.levels:
            activity[level] = (events[level] + strength * activity[parents]) / (expected[level] + strength)
        np.multiply(activity, mean, out=self._hazard)
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])


def chance_of_change(hazard: Array, events: Array, exposure: Array) -> Array:
    """Return the chance of a change, which is the mean of 1 - e^-rH over r ~ Gamma(`events`, `exposure`)."""
    return np.asarray(1.0 - np.exp(-events * np.log(1.0 + hazard / exposure)))


def _observed_share(risk: Array) -> Array:
    """Return the mean part of an interval between two fetches that precedes the first change: 1/x - 1/(e^x - 1)."""
    x = np.maximum(risk, 1e-4)
    with np.errstate(over="ignore"):
        return np.asarray(1 / x - 1 / np.expm1(x))
