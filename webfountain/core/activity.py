"""What the fetches of a site tell about the pages not fetched: shared bursts, section rates, page histories.

Real pages are not independent: a release or a template change touches a whole directory at once. For each section of
a site (`site_urgency`) this keeps the changes per page and step as

    hazard of page j in step d  =  r_j * mean_g * u_g[d]

with mean_g the section's long-run rate, u_g[d] its activity in that step (1 = as always), and r_j the page's own rate
relative to its section. All three are shrunk: a section to its parent, its activity to the parent's, a page to its
section. A fetch that finds a change raises u over the page's unwatched steps, one that finds none lowers it, so that
siblings not fetched since become more or less urgent; what can be seen only by fetching (`changed`) is all that enters.
A change found in a window is an event at an unknown moment of it, spread by the current hazard, and what is learned
of the last `WINDOW` steps is spread again after each batch of fetches (expectation maximisation).

Many sites are reckoned at once, each the root of a tree of its own, as rows of the same arrays: a site costs what its
numbers cost, not what a hundred calls of numpy cost. Between two uses a site is a `Memory`, some 500 bytes a section.

Steps are whole numbers that grow with time; in the live crawler one is a share of the time between two visits. No
clock and no store here: the caller keeps per page its section, the step of its last fetch, `events` and `exposure`,
and what the section went through between that fetch and the window (`before`).

Source: interval-censored Poisson likelihood as in `change_rate`; gamma frailty: Vaupel, Manton & Stallard 1979; the
combination is ours.

What is listened to (`Signals`), and how strongly prior beliefs hold: every signal can be switched off alone, so that
its worth can be measured (`simulate revisit`, `bench_live`). The strengths are in periods (the simulation's day, the
policy file's ``cycle.period``); `spread` gives them in steps.

Urgency: how much freshness a fetch now would buy, in obsolete time saved, for a page of uncertain change rate. The
greedy rule of every policy that knows or learns rates: fetch the pages of the greatest urgency. A page that changes
slowly and may be obsolete is worth most (a fetch repairs it for long); one that changes faster than it can be
followed is given up.

The week of a site: people publish on weekdays. For each of seven days the changes found are counted, and those
expected without it; its factor tells how many times as busy as the average a step is believed to be before any change
of it is found, shrunk towards 1. Step 0 begins the first day; a step must be no longer than a day.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = [
    "VISITS",
    "WEEK",
    "WINDOW",
    "Activity",
    "Memory",
    "Signals",
    "Watch",
    "chance_of_change",
    "factors_of_steps",
    "factors_of_week",
    "summed",
    "summed_by_day",
    "urgency",
    "urgency_and_slope",
    "urgency_of_known_rate",
]

VISITS = 12
"""Visits to a page for which evidence lasts: where pages are seen but four times a year, 250 days hold too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What `activity` listens to, and the strengths of its priors."""

    siblings: bool = True
    """Activity of the section in each step; off: every step is like every other."""
    sections: bool = True
    """Rates per section; off: one rate for the site."""
    history: bool = True
    """The page's own checks; off: every page has its section's rate."""
    forgetting: bool = True
    """Old evidence fades with `memory`; off: it stays for ever."""
    weekdays: bool = False
    """Each day of the week has a learned factor; off, as it gained nothing: all days are alike."""
    memory: float = 250.0
    """Steps after which evidence counts 1/e."""
    prior_rate: float = 1 / 120
    """Changes per page and step before anything is known: that of the sources, one in four months."""
    prior_exposure: float = 50.0
    """Page-steps that `prior_rate` is worth."""
    section_steps: float = 120.0
    """Steps of watching the whole section that the parent's rate is worth to it."""
    step_events: float = 0.3
    """Expected changes in a step that the parent's activity is worth; the smaller, the burstier."""
    page_events: float = 0.5
    """Changes that the section's rate is worth to a page: as skewed as rates on the web are."""
    visit: float = 0.01
    """Steps from one visit to a page to the next, in the mean; far below one: all rates can be told."""
    day: float = 1.0
    """Steps in a day, for `weekdays`."""

    def lasting(self, interval: float) -> Signals:
        """At one visit to a page every `interval` steps: with a memory of `VISITS` visits at least."""
        return replace(self, memory=max(self.memory, VISITS * interval), visit=interval)

    def spread(self, steps: float) -> Signals:
        """The same beliefs where a period has `steps` steps in place of one."""
        return replace(
            self,
            memory=self.memory * steps,
            prior_rate=self.prior_rate / steps,
            prior_exposure=self.prior_exposure * steps,
            section_steps=self.section_steps * steps,
            step_events=self.step_events / steps,
            visit=self.visit * steps,
            day=self.day * steps,
        )


def urgency_of_known_rate(rate: Array, elapsed: Array) -> Array:
    """(1 - e^-x (1 + x)) / rate with x = rate * elapsed: the index of a page that changes by a Poisson process.

    It is the price of a fetch at which the page would be refreshed every `elapsed`; fetching the greatest first
    equalises these prices, which is the optimal allocation. A page that never changes has none.

    Parameters
    ----------
    rate : changes per unit of time, >= 0
    elapsed : time since the last fetch

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4 (the
    marginal freshness of a visit); Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018.
    """
    x = rate * elapsed
    return np.where(rate > 0, (1 - np.exp(-x) * (1 + x)) / np.maximum(rate, np.finfo(np.float64).tiny), 0.0)


def urgency(hazard: Array, rate: Array, events: Array, exposure: Array) -> Array:
    """Expected index of a page whose rate, relative to its section's, is r ~ Gamma(`events`, `exposure`).

    The section's changes arrive unevenly: `hazard` is what an average page of it has gone through since the page's
    last fetch, `rate` what it goes through per step in the long run. With H = hazard, A = events, b = exposure and
    q = b/(b + H), the mean over r of (1 - e^-rH (1 + rH)) / (r rate) is

        (b (1 - q^(A-1))/(A - 1) - H q^A) / rate

    It is larger than the index at the mean rate where little is known: the value of finding out, for free.
    """
    return urgency_and_slope(hazard, rate, events, exposure)[0]


def urgency_and_slope(hazard: Array, rate: Array, events: Array, exposure: Array) -> tuple[Array, Array]:
    """The `urgency`, and its slope over the hazard with both on logarithmic scales: at most 2, and ever less steep.

    (1 - e^-y (1 + y)) and the gamma density are log-concave on such a scale, and so is the mean of the one over the
    other (Prekopa, *On logarithmic concave measures and functions*, 1973). Its derivative is H (A/b) q^(A+1) / rate.
    """
    grown = 1.0 + hazard / exposure  # 1/q; a logarithm and a power are all that costs
    log_grown = np.log(grown)
    power = np.exp(-events * log_grown)
    order = events - 1.0
    middle = np.abs(order) < 1e-7
    order[middle] = 1.0
    tail = (1.0 - power * grown) / order
    tail[middle] = log_grown[middle]
    index = exposure * tail - hazard * power
    # The difference loses its digits where the expected changes are few; the first term of its series does not.
    few = hazard * np.maximum(events, 1.0) < 1e-4 * exposure
    square = events * hazard**2 / exposure
    index[few] = square[few] / 2
    slope = np.full_like(index, 2.0)
    np.divide(square * power, grown * index, out=slope, where=index > 0.0)
    np.minimum(slope, 2.0, out=slope)
    return np.asarray(index / rate), slope


WEEK: Final = 7
"""Days in a week."""
_PRIOR: Final = 5.0
"""Expected changes on a day of the week that "as busy as the average" is worth to it."""


def summed(place: Ints, amounts: Array, size: int) -> Array:
    """(size,) sums of the amounts that go to each place."""
    return np.asarray(np.bincount(place, amounts, minlength=size), dtype=np.float64)


def summed_by_day(steps: Ints, amounts: Array, *, day: float) -> Array:
    """(sites, WEEK) sums of the amounts of steps, both (sites, steps); `day` is the number of steps in a day."""
    place = np.arange(len(steps))[:, None] * WEEK + _days(steps, day)
    return summed(place.ravel(), amounts.ravel(), WEEK * len(steps)).reshape(len(steps), WEEK)


def factors_of_week(found: Array, expected: Array) -> Array:
    """(sites, WEEK) how busy each day is believed to be, 1 = as the average."""
    return np.asarray((found + _PRIOR) / (expected + _PRIOR))


def factors_of_steps(steps: Ints, factors: Array, *, day: float) -> Array:
    """(sites, steps) the factors of each step's day."""
    return np.take_along_axis(factors, _days(steps, day), axis=1)


def _days(steps: Ints, day: float) -> Ints:
    return np.asarray((steps / day).astype(np.int64) % WEEK)


WINDOW: Final = 60
"""Steps whose activity is still being revised; older steps keep what was last believed of them."""
TELLABLE: Final = 4.0
"""Changes from one visit to the next, at most, that a mean rate is believed to bring: then all but one check in fifty
finds one. Faster rates cannot be told apart, and the slowest by chance would have all of a small budget."""
_SWEEPS: Final = 2
_TINY: Final = 1e-12
_FACTS: Final = 5
_MEAN, _SIZE, _EVENTS, _EXPOSURE, _OPEN = range(_FACTS)
"""Columns of a section: mean rate; pages under watch at once, at most so far, weighted with their relative rates;
changes and exposure of the steps before the window; exposure that is open when it begins."""
_WIDTH: Final = _FACTS + WINDOW + WINDOW + 1


class Watch(NamedTuple):
    """Pages and since when nobody has looked at them, one array element each."""

    section: Ints
    since: Ints
    """Step of the last fetch."""
    before: Array
    """What the section went through between that fetch and the window."""

    def of(self, keep: Flags | Ints | slice) -> Watch:
        """Some of the pages."""
        return Watch(self.section[keep], self.since[keep], self.before[keep])


@dataclass(slots=True)
class Memory:
    """What is remembered of the sections of one site. It is replaced when something was learned, never changed."""

    step: int
    """Its window is the `WINDOW` steps before this one."""
    tree: npt.NDArray[np.int32]
    """(2, sections) parent, of the site itself 0, and depth."""
    rows: npt.NDArray[np.float32]
    """(sections, `_WIDTH`) the facts; the hazard of an average page in each step of the window; the exposure that
    begins (or, negative, ends) with each of these steps and with the present one."""
    changes: Array
    """(changes found within the window, 4) section, steps of the fetch before and of the one that found it, and what
    the section went through from that fetch before to the window."""
    week: Array
    """(3, `WEEK`) changes found, changes expected, and factor, on each day."""

    @classmethod
    def begun(cls, *, signals: Signals, step: int) -> Memory:
        """Of a site of which nothing is known at `step` but that it has one section."""
        rows = np.zeros((1, _WIDTH), dtype=np.float32)
        rows[0, _MEAN] = rows[0, _FACTS : _FACTS + WINDOW] = signals.prior_rate
        rows[0, _SIZE] = 1.0
        week = np.zeros((3, WEEK))
        week[2] = 1.0
        return cls(step, np.zeros((2, 1), dtype=np.int32), rows, np.zeros((0, 4)), week)

    def grown(self, parents: Sequence[int]) -> Memory:
        """With more sections, each of which begins with its parent's rate and past activity."""
        tree, rows = self.tree, self.rows
        more = np.array(parents, dtype=np.int32)
        for parent in more.tolist():
            row = rows[parent].copy()
            row[_SIZE], row[_EVENTS : _OPEN + 1], row[_FACTS + WINDOW :] = 1.0, 0.0, 0.0
            rows = np.concatenate([rows, row[None]])
            tree = np.concatenate([tree, [[parent], [tree[1, parent] + 1]]], axis=1, dtype=np.int32)
        return Memory(self.step, tree, rows, self.changes, self.week)

    def is_sound(self) -> bool:
        """Whether its parts fit each other."""
        return self.rows.shape == (self.tree.shape[1], _WIDTH)


class Activity:
    """The sections of some sites together, numbered one site after the other from `offset`; all at one step."""

    def __init__(self, memories: Sequence[Memory], *, signals: Signals) -> None:
        self._signals = signals
        sizes = [len(memory.rows) for memory in memories]
        self.offset = np.cumsum([0, *sizes])
        """(sites + 1,) number of each site's first section."""
        self.site = np.repeat(np.arange(len(memories)), sizes)
        """(sections,) site of each section."""
        begins = np.repeat(self.offset[:-1], sizes)
        tree = np.concatenate([memory.tree for memory in memories], axis=1)
        self._grow_tree(tree[0] + begins, tree[1])
        rows = np.concatenate([memory.rows for memory in memories], dtype=np.float64)
        self._facts = rows[:, :_FACTS].T.copy()
        self._hazard = rows[:, _FACTS : _FACTS + WINDOW].copy()
        self._opened = rows[:, _FACTS + WINDOW :].copy()
        self._total = np.zeros((len(rows), WINDOW + 1))
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])
        self._week = np.stack([memory.week for memory in memories])
        found = [memory.changes for memory in memories]
        changes = np.concatenate(found)
        changes[:, 0] += np.repeat(self.offset[:-1], [len(each) for each in found])
        self._changed = changes[:, :3].astype(np.int64)  # section, since, step
        self._changed_before = changes[:, 3]
        self._steps = np.array([memory.step for memory in memories], dtype=np.int64)  # (sites,)

    def memories(self) -> list[Memory]:
        """What is to be remembered of each site: copies, for a view would keep what belongs to all of them."""
        rows = np.concatenate([self._facts.T, self._hazard, self._opened], axis=1, dtype=np.float32)
        order = np.argsort(self._changed[:, 0], kind="stable")
        changes = np.concatenate([self._changed[order], self._changed_before[order, None]], axis=1)
        ends = np.searchsorted(changes[:, 0], self.offset)
        found = []
        for number, step in enumerate(self._steps.tolist()):
            begin, end = self.offset[number], self.offset[number + 1]
            own = changes[ends[number] : ends[number + 1]].copy()
            own[:, 0] -= begin
            tree = np.array([self._parent[begin:end] - begin, self._depth[begin:end]], dtype=np.int32)
            found.append(Memory(step, tree, rows[begin:end].copy(), own, self._week[number].copy()))
        return found

    # ------------------------------------------------------------------ time

    def advance(self, step: int | Ints, watch: Watch) -> Watch:
        """Let time pass up to `step`, of all or (sites,) of each.

        Steps in between are as active as the sections' long-run rates. Returns the watch with what has passed before
        the window now.
        """
        passed = np.maximum(step - self._steps, 0)
        if not passed.any():
            return watch
        by_section = passed[self.site]
        most = int(min(passed.max(), WINDOW))
        events, exposure = self._spread(most), self._exposure(most)
        before = watch.before + self._closing(watch.section, watch.since, passed)
        self._changed_before = self._changed_before + self._closing(self._changed[:, 0], self._changed[:, 1], passed)
        self._close(by_section, events, exposure)
        self._shift(passed, by_section)
        kept = self._changed[:, 2] > self._first()[self._changed[:, 0]]
        self._changed, self._changed_before = self._changed[kept], self._changed_before[kept]
        return watch._replace(before=before)

    def _first(self) -> Ints:
        """(sections,) first step of the window."""
        return np.asarray((self._steps - WINDOW)[self.site])

    def _closing(self, section: Ints, since: Ints, passed: Ints) -> Array:
        """What sections go through, since a step, in the steps that are about to leave the window."""
        steps = passed[self.site[section]]
        end = np.minimum(steps, WINDOW)
        begin = np.clip(since - self._first()[section], 0, end)
        closing = self._total[section, end] - self._total[section, begin]
        return np.asarray(closing + self._facts[_MEAN, section] * np.maximum(steps - WINDOW, 0))

    def _close(self, passed: Ints, events: Array, exposure: Array) -> None:
        """The oldest steps leave the window, as last believed, for the long-run sums."""
        ago = passed[:, None] - 1 - np.arange(events.shape[1])
        kept = np.where(ago >= 0, 1.0, 0.0)
        fade = np.ones(len(passed))
        if self._signals.forgetting:
            kept *= np.exp(-np.maximum(ago, 0) / self._signals.memory)
            fade = np.exp(-passed / self._signals.memory)
        self._facts[_EVENTS] = fade * self._facts[_EVENTS] + (events * kept).sum(axis=1)
        self._facts[_EXPOSURE] = fade * self._facts[_EXPOSURE] + (exposure * kept).sum(axis=1)
        if self._signals.weekdays:
            root = self.offset[:-1]
            expected = exposure[root] * self._facts[_MEAN, root, None]
            for row, amounts in enumerate((events[root], expected)):
                steps = self._window_steps()[:, : events.shape[1]]
                sums = summed_by_day(steps, amounts * kept[root], day=self._signals.day)
                self._week[:, row] = fade[root, None] * self._week[:, row] + sums

    def _window_steps(self) -> Ints:
        """(sites, WINDOW) the steps of each site's window."""
        return np.asarray(self._steps[:, None] - WINDOW + np.arange(WINDOW))

    def _shift(self, passed: Ints, by_section: Ints) -> None:
        """Move the window on; what comes into it is as active as in the long run."""
        self._steps = self._steps + passed
        ends = np.append(np.flatnonzero(np.diff(by_section)) + 1, len(by_section)).tolist()
        begin, usual = 0, self._weeks()
        for end in ends:  # by runs of sections for which as much time passes: slices cost a fifth of gathering
            gone = int(min(by_section[begin], WINDOW + 1))
            opened, hazard = self._opened[begin:end], self._hazard[begin:end]
            if gone:
                self._facts[_OPEN, begin:end] += opened[:, :gone].sum(axis=1)
                stays = max(WINDOW - gone, 0)
                opened[:, : WINDOW + 1 - gone] = opened[:, gone:].copy()
                opened[:, WINDOW + 1 - gone :] = 0.0
                hazard[:, :stays] = hazard[:, WINDOW - stays :].copy()
                week = usual if isinstance(usual, float) else usual[begin:end, stays:]
                hazard[:, stays:] = self._facts[_MEAN, begin:end, None] * week
            begin = end
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])

    def _weeks(self) -> Array | float:
        """(sections, WINDOW) how busy each step is believed to be because of its day; 1 where nobody listens."""
        if not self._signals.weekdays:
            return 1.0
        return factors_of_steps(self._window_steps(), self._week[:, 2], day=self._signals.day)[self.site]

    # ------------------------------------------------------------- questions

    def mean_rate(self, section: Ints) -> Array:
        """Long-run changes of an average page of a section per step."""
        return np.asarray(self._facts[_MEAN, section])

    def hazard(self, watch: Watch, *, until: Ints | None = None) -> Array:
        """(pages,) expected changes of an average page of each section since the last fetch, up to now or `until`."""
        section, since, before = watch
        first = self._first()[section]
        end = WINDOW if until is None else np.clip(until - first, 0, WINDOW)
        begin = np.clip(since - first, 0, end)
        return np.asarray(before + self._total[section, end] - self._total[section, begin])

    def halfway(self, watch: Watch, middle: Ints) -> Array:
        """The hazard up to a step that may lie before the window: there it is taken as even."""
        section, since, before = watch
        first = self._first()[section]
        share = np.clip((middle - since) / np.maximum(first - since, 1), 0.0, 1.0)
        begin, end = np.clip(since - first, 0, WINDOW), np.clip(middle - first, 0, WINDOW)
        return np.asarray(before * share + self._total[section, end] - self._total[section, begin])

    def weights(self, watch: Watch, events: Array, exposure: Array) -> tuple[Array, Array]:
        """Parameters of the gamma belief of each page's relative rate, its evidence faded since its last fetch."""
        fade, weight = self._fade(watch), self._signals.page_events
        return weight + fade * events, weight + fade * exposure

    def passed(self, watch: Watch) -> Array:
        """The `hazard` that is listened to: without siblings every step is like every other."""
        if self._signals.siblings:
            return self.hazard(watch)
        return np.asarray(self._facts[_MEAN, watch.section] * (self._steps[self.site[watch.section]] - watch.since))

    def urgency(self, watch: Watch, events: Array, exposure: Array) -> Array:
        """Urgency of pages (see `urgency`); greater is more urgent.

        `events` and `exposure`, (pages,), are what `observe` returned at a page's last fetch; zeros where it had none.
        """
        mean = self._facts[_MEAN, watch.section]
        return urgency(self.passed(watch), mean, *self.weights(watch, events, exposure))

    def fresh_time(self, section: Ints, events: Array, exposure: Array) -> Array:
        """Mean change interval of pages, in steps: the urgency of one that is known to have changed.

        It is the limit of `urgency` where a change is certain, at the page's mean rate.
        """
        weight = self._signals.page_events
        return np.asarray((weight + exposure) / (weight + events) / self._facts[_MEAN, section])

    def since_change(self, watch: Watch, step: Ints, events: Array, exposure: Array) -> Array:
        """Expected steps for which pages that were found changed in `step` had been so: since the first change.

        Parameters
        ----------
        events, exposure : (pages,) the gamma belief of each page's relative rate before the fetch, as of `weights`
        """
        section, since, before = watch
        first = self._first()[section]
        end, begin = np.clip(step - first, 0, WINDOW), np.clip(since - first, 0, WINDOW)
        risk = before[:, None] + self._total[section] - self._total[section, begin][:, None]
        chance = chance_of_change(np.maximum(risk, 0.0), events[:, None], exposure[:, None])
        place = np.arange(WINDOW)
        within = (place >= begin[:, None]) & (place < end[:, None])
        stood = ((chance[:, :-1] + chance[:, 1:]) / 2 * within).sum(axis=1)
        # Before the window nothing is known but how much there was: taken as even, by Simpson's rule.
        early = np.maximum(np.minimum(first, step) - since, 0)
        halfway, whole = (chance_of_change(before * part, events, exposure) for part in (0.5, 1.0))
        stood += early * (4.0 * halfway + whole) / 6.0
        known = chance[np.arange(len(end)), end]
        return np.asarray(np.where(known > _TINY, stood / np.maximum(known, _TINY), (step - since) / 2))

    # -------------------------------------------------------------- learning

    def begin_with(self, events: Array, watched: Array, pages: Array) -> None:
        """Enter what earlier fetches told of pages.

        Parameters
        ----------
        events, watched, pages : (sections,) changes found, steps in which none was overlooked, and of how many pages,
            those of subsections not among them
        """
        told = np.stack([events, watched, pages], axis=1)
        self._roll_up(told)
        self._facts[_EVENTS] += told[:, 0]
        self._facts[_EXPOSURE] += told[:, 1]
        nothing = np.zeros(len(told))
        self._estimate_means(nothing, nothing, told[:, 2])
        self._hazard[:] = self._facts[_MEAN][:, None] * self._weeks()
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])

    def observe(
        self, watch: Watch, step: Ints, changed: Flags, *, events: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Learn from pages that were fetched and found alive; returns their new `events` and `exposure`.

        Parameters
        ----------
        step : (pages,) of the fetch, none later than the present one
        changed : (pages,) whether a change that counts was found
        events, exposure : (pages,) as for `urgency`
        """
        fade = self._fade(watch, until=step)
        weight = self._signals.page_events
        relative = (weight + fade * events) / (weight + fade * exposure)
        self._record(watch, step, changed, relative)
        self._revise()
        if not self._signals.history:
            return events, exposure
        passed = self.hazard(watch, until=step)
        watched = np.where(changed, passed * _observed_share(relative * passed), passed)
        return fade * events + changed, fade * exposure + watched

    def _fade(self, watch: Watch, *, until: Ints | None = None) -> Array | float:
        """(pages,) what a page's evidence counts, now or at `until`."""
        if not self._signals.forgetting:
            return 1.0
        now = self._steps[self.site[watch.section]] if until is None else until
        return np.asarray(np.exp(-(now - watch.since) / self._signals.memory))

    def _record(self, watch: Watch, step: Ints, changed: Flags, relative: Array) -> None:
        """Enter checks: their exposure ends, for changed pages, at the unknown moment of the first change."""
        seen = step > watch.since  # a page fetched twice in a step shows nothing
        watch, step, changed = watch.of(seen), step[seen], changed[seen]
        section, since, before = watch
        risk = relative[seen] * self.hazard(watch, until=step)
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
        """Spread the found changes over the steps of the window, and re-estimate rates and activity, twice."""
        exposure = self._exposure()
        watched, size = exposure.sum(axis=1), exposure.max(axis=1)
        for _ in range(_SWEEPS):
            events = self._spread()
            self._estimate_means(events.sum(axis=1), watched, size)
            if self._signals.siblings:
                self._estimate_activity(events, exposure)

    def _exposure(self, steps: int = WINDOW) -> Array:
        """(sections, steps) pages under watch in each of the first steps, those of subsections included."""
        exposure = np.cumsum(self._opened[:, :steps], axis=1)
        exposure += self._facts[_OPEN][:, None]
        self._roll_up(exposure)
        return exposure

    def _spread(self, steps: int = WINDOW) -> Array:
        """(sections, steps) expected first changes in each of the first steps, those of subsections included."""
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
        self._roll_up(events)
        return events

    def _estimate_means(self, events: Array, exposure: Array, size: Array) -> None:
        """From changes and exposure of the window's steps, (sections,), and pages under watch at once."""
        signals, mean = self._signals, self._facts[_MEAN]
        seen, watched = self._facts[_EVENTS] + events, self._facts[_EXPOSURE] + exposure
        prior, root = signals.prior_exposure, self.offset[:-1]
        mean[root] = (seen[root] + prior * signals.prior_rate) / (watched[root] + prior)
        # A burst changes a whole section: its pages are no independent witnesses, so the prior grows with them.
        # Its size is kept when nobody fetches, or a section given up for its rate would never be forgiven.
        self._facts[_SIZE] = np.maximum(self._facts[_SIZE], size)
        lent = signals.section_steps * self._facts[_SIZE]
        for level, parents, _, _ in self._levels:
            inherited = mean[parents]
            own = (seen[level] + lent[level] * inherited) / (watched[level] + lent[level])
            mean[level] = own if signals.sections else inherited
        if signals.visit > 0:  # a web without pages has no visits
            np.minimum(mean, TELLABLE / signals.visit, out=mean)

    def _estimate_activity(self, events: Array, exposure: Array) -> None:
        """u = (found + s u_parent)/(expected + s), from the site down; the site's own parent is its week."""
        strength, root = self._signals.step_events, self.offset[:-1]
        mean = self._facts[_MEAN][:, None]
        expected = exposure * mean
        week: Array | float = 1.0
        if self._signals.weekdays:
            steps, day = self._window_steps(), self._signals.day
            found = self._week[:, 0] + summed_by_day(steps, events[root], day=day)
            self._week[:, 2] = factors_of_week(found, self._week[:, 1] + summed_by_day(steps, expected[root], day=day))
            week = factors_of_steps(steps, self._week[:, 2], day=day)
        activity = np.empty_like(expected)
        activity[root] = (events[root] + strength * week) / (expected[root] + strength)
        for level, parents, _, _ in self._levels:
            activity[level] = (events[level] + strength * activity[parents]) / (expected[level] + strength)
        np.multiply(activity, mean, out=self._hazard)
        np.cumsum(self._hazard, axis=1, out=self._total[:, 1:])

    # ------------------------------------------------------------------ tree

    def _grow_tree(self, parent: Ints, depth: Ints) -> None:
        """Sections of each depth below, siblings side by side; their parents; each parent once, and where it begins."""
        self._parent, self._depth = parent, depth
        self._levels: list[tuple[Ints, Ints, Ints, Ints]] = []
        for number in range(1, int(depth.max(initial=0)) + 1):
            level = np.flatnonzero(depth == number)
            level = level[np.argsort(parent[level], kind="stable")]
            parents = parent[level]
            begins = np.flatnonzero(np.diff(parents, prepend=-1))
            self._levels.append((level, parents, parents[begins], begins))

    def _roll_up(self, amounts: Array) -> None:
        """Add each section's amounts to all its ancestors', in place, from the deepest level up."""
        for level, _, parents, begins in reversed(self._levels):
            amounts[parents] += np.add.reduceat(amounts[level], begins, axis=0)


def chance_of_change(hazard: Array, events: Array, exposure: Array) -> Array:
    """Mean over r ~ Gamma(`events`, `exposure`) of 1 - e^-rH."""
    return np.asarray(1.0 - np.exp(-events * np.log(1.0 + hazard / exposure)))


def _observed_share(risk: Array) -> Array:
    """Expected share of a window before its first change, given that there is one: 1/x - 1/(e^x - 1), at most 1/2."""
    x = np.maximum(risk, 1e-4)
    with np.errstate(over="ignore"):
        return np.asarray(1 / x - 1 / np.expm1(x))
