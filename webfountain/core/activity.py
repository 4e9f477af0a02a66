"""What the fetches of a site tell about the pages not fetched: shared bursts, section rates, page histories.

Real pages are not independent: a release or a template change touches a whole directory at once. For each section of
a site (`sections`) this keeps the changes per page and step as

    hazard of page j in step d  =  r_j * mean_g * u_g[d]

with mean_g the section's long-run rate, u_g[d] its activity in that step (1 = as always), and r_j the page's own rate
relative to its section. All three are shrunk: a section to its parent, its activity to the parent's, a page to its
section. A fetch that finds a change raises u over the page's unwatched steps, one that finds none lowers it, so that
siblings not fetched since become more or less urgent; what can be seen only by fetching (`changed`) is all that enters.
A change found in a window is an event at an unknown moment of it, spread by the current hazard, and what is learned
of the last `WINDOW` steps is spread again after each batch of fetches (expectation maximisation).

Steps are whole numbers that grow with time; in the live crawler one is a period. No clock and no store here: the
caller keeps per page its section, the step of its last fetch, `events` and `exposure`.

Source: interval-censored Poisson likelihood as in `change_rate`; gamma frailty: Vaupel, Manton & Stallard 1979; the
combination is ours.
"""

from __future__ import annotations

__all__ = ["WINDOW", "Activity"]

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from webfountain.core.rhythm import Week
from webfountain.core.urgency import urgency

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.sections import Sections
    from webfountain.core.signals import Signals

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

WINDOW = 60
"""Steps whose activity is still being revised; older steps keep what was last believed of them."""

TELLABLE = 4.0
"""Changes from one visit to the next, at most, that a mean rate is believed to bring: then all but one check in fifty
finds one. Faster rates cannot be told apart, and the slowest by chance would have all of a small budget."""
_SWEEPS = 2
_STEPS_KEPT = 512
_TINY = 1e-12


class _Checks(NamedTuple):
    """Fetches that found a living page, one array element each; they left the page's steps `since`..`step`-1 seen."""

    section: Ints
    since: Ints
    step: Ints
    changed: Flags

    def where(self, keep: Flags) -> _Checks:
        return _Checks(self.section[keep], self.since[keep], self.step[keep], self.changed[keep])

    def and_then(self, later: _Checks) -> _Checks:
        joined = [np.concatenate(pair) for pair in zip(self, later, strict=True)]
        return _Checks(joined[0], joined[1], joined[2], joined[3].astype(np.bool_))


class Activity:
    """The state of one site: arrays over sections and steps; `advance` once a step, then observe and ask."""

    def __init__(self, sections: Sections, *, signals: Signals, step: int = 0) -> None:
        """Start knowing nothing at `step`. Sections may be added to `sections` later on."""
        self._sections, self._signals = sections, signals
        self._start = self._step = step
        none = np.empty(0, dtype=np.int64)
        self._checks = _Checks(none, none, none, none.astype(np.bool_))
        self._hazard = np.zeros((0, 64))  # (sections, steps since start): hazard of an average page in a step
        self._total = np.zeros((0, 65))  # its running sum: [:, k] over the steps before start + k
        self._opened = np.zeros((0, 65))  # exposure that begins (or, negative, ends) at a step
        self._before = np.zeros(0)  # exposure open at the first step of the window
        self._old_events, self._old_exposure = (
            np.zeros(0),
            np.zeros(0),
        )  # summed over the steps before the window
        self._mean = np.zeros(0)
        self._week = Week(day=signals.day)
        self._size = np.zeros(0)  # pages under watch at once, at most so far, weighted with their relative rates
        self._grow_sections()

    def advance(self, step: int) -> None:
        """Let time pass up to `step`: the steps in between are as active as the sections' long-run rates."""
        self._grow_sections()
        while self._step < step:
            steps = min(step - self._step, WINDOW, self._closable())
            self._close_oldest(steps)
            self._make_room(steps)
            column = self._step - self._start
            hazard = self._mean[:, None] * self._week.factors(self._step, self._step + steps)
            self._hazard[:, column : column + steps] = hazard
            self._total[:, column + 1 : column + steps + 1] = self._total[:, column, None] + np.cumsum(hazard, axis=1)
            self._step += steps

    def begin_with(self, section: Ints, events: Array, watched: Array) -> Array:
        """Enter what earlier fetches told of pages, before the first `advance`; returns their `exposure`.

        Parameters
        ----------
        section, events, watched : (pages,) section, changes found, and steps in which none was overlooked
        """
        self._grow_sections()
        told = np.zeros((len(self._mean), 3))
        np.add.at(told, section, np.stack([events, watched, np.ones(len(section))], axis=1))
        self._roll_up(told)
        self._old_events += told[:, 0]
        self._old_exposure += told[:, 1]
        self._size = np.maximum(self._size, told[:, 2])
        nothing = np.zeros((len(self._mean), 1))
        self._estimate_means(nothing, nothing)
        return np.asarray(watched * self._mean[section])

    def encode(self, *, oldest: int) -> list[object]:
        """All that is known, as plain data and bytes; `oldest` is the first step from which a page may be asked for.

        Numbers are rounded to 32 bits, and no more than `_STEPS_KEPT` steps are kept.
        """
        self._grow_sections()
        now, first = self._step - self._start, max(self._step - self._start - WINDOW, 0)
        oldest = min(oldest, int(self._checks.since.min(initial=oldest)))
        begin = min(max(oldest - self._start, now - _STEPS_KEPT, 0), first)
        by_section = [self._mean, self._size, self._before, self._old_events, self._old_exposure]
        window, events, exposure = self._window
        return [
            [self._start + begin, self._start + first, self._step, window, events.shape[1], len(self._mean)],
            _packed(np.array(by_section), np.float32),
            _packed(self._hazard[:, begin:now], np.float32),
            _packed(self._opened[:, first : now + 1], np.float32),
            _packed(np.array([events, exposure]), np.float32),
            [_packed(each, np.int32) for each in self._checks],
            self._week.encode(),
        ]

    @classmethod
    def decode(cls, data: Sequence[Any], sections: Sections, *, signals: Signals) -> Activity:
        """What `encode` told, for the same sections and signals."""
        (start, first, step, window, width, count), by_section, hazard, opened, revised, checks, week = data
        site = cls(sections, signals=signals, step=start)
        site._make_room(step - start)
        site._step = step
        now, columns = step - start, slice(first - start, step - start + 1)
        rows = _unpacked(by_section, np.float32).reshape(5, count)
        site._mean, site._size, site._before, site._old_events, site._old_exposure = rows
        site._hazard[:, :now] = _unpacked(hazard, np.float32).reshape(count, now)
        np.cumsum(site._hazard[:, :now], axis=1, out=site._total[:, 1 : now + 1])
        site._opened[:, columns] = _unpacked(opened, np.float32).reshape(count, step - first + 1)
        site._window = (window, *_unpacked(revised, np.float32).reshape(2, count, width))
        section, since, at, changed = (np.frombuffer(each, dtype="<i4").astype(np.int64) for each in checks)
        site._checks = _Checks(section, since, at, changed.astype(np.bool_))
        site._week.decode(week)
        return site

    def mean_rate(self, section: int) -> float:
        """Long-run changes of an average page of a section per step."""
        return float(self._mean[section])

    def hazard(self, section: Ints, since: Ints) -> Array:
        """Expected changes of an average page of each section from step `since` on up to now."""
        kept = self._total[section, self._step - self._start] - self._total[section, self._column(since)]
        return np.asarray(kept + self._mean[section] * np.maximum(self._start - since, 0))

    def urgency(self, section: Ints, since: Ints, events: Array, exposure: Array, *, ahead: float = 0.0) -> Array:
        """Urgency of pages last fetched at `since` (see `urgency.urgency`); greater is more urgent.

        Parameters
        ----------
        events, exposure : (pages,) what `observe` returned at the page's last fetch; zeros for a page without checks
        ahead : steps from now, in which the sections are as active as in the long run
        """
        mean = self._mean[section]
        hazard = self.hazard(section, since) if self._signals.siblings else mean * (self._step - since)
        weight = self._signals.page_events
        fade = self._fade(since, ahead=ahead)
        return urgency(hazard + mean * ahead, mean, weight + fade * events, weight + fade * exposure)

    def fresh_time(self, section: Ints, events: Array, exposure: Array) -> Array:
        """Mean change interval of pages, in steps: the urgency of one that is known to have changed.

        It is the limit of `urgency` where a change is certain, at the page's mean rate.
        """
        weight = self._signals.page_events
        return np.asarray((weight + exposure) / (weight + events) / self._mean[section])

    def observe(
        self, section: Ints, since: Ints, changed: Flags, events: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Learn from pages fetched in this step and found alive; returns their new `events` and `exposure`.

        Parameters
        ----------
        section, since : (pages,) section, and step of the fetch before
        changed : (pages,) whether a change that counts was found
        events, exposure : (pages,) as for `urgency`
        """
        fade = self._fade(since)
        weight = self._signals.page_events
        relative = (weight + fade * events) / (weight + fade * exposure)
        self._record(section, since, changed, relative)
        self._revise()
        if not self._signals.history:
            return events, exposure
        passed = self.hazard(section, since)
        watched = np.where(changed, passed * _watched_share(relative * passed), passed)
        return fade * events + changed, fade * exposure + watched

    def _fade(self, since: Ints, *, ahead: float = 0.0) -> Array:
        """(pages,) what a page's evidence counts, `ahead` steps from now."""
        if not self._signals.forgetting:
            return np.ones(len(since))
        return np.asarray(np.exp(-(self._step + ahead - since) / self._signals.memory))

    def _record(self, section: Ints, since: Ints, changed: Flags, relative: Array) -> None:
        """Enter checks: their exposure ends, for changed pages, at the unknown moment of the first change."""
        now = np.full(len(section), self._step)
        seen = now > since  # a page fetched twice in a step shows nothing
        batch = _Checks(section, since, now, changed).where(seen)
        risk = relative[seen] * self.hazard(batch.section, batch.since)
        weight = relative[seen] * np.where(batch.changed, _watched_share(risk), 1.0)
        first = max(self._step - WINDOW, self._start)
        np.add.at(self._opened, (batch.section, self._column(np.maximum(batch.since, first))), weight)
        np.add.at(self._opened, (batch.section, self._column(batch.step)), -weight)
        self._checks = self._checks.where(self._checks.step > first).and_then(batch)

    def _revise(self) -> None:
        """Spread the found changes over the steps of the window, and re-estimate rates and activity, twice."""
        last = self._step - self._start
        first = max(last - WINDOW, 0)
        if last == first:
            return
        exposure = np.cumsum(self._opened[:, first:last], axis=1) + self._before[:, None]
        self._roll_up(exposure)
        for _ in range(_SWEEPS):
            events = self._spread_events(first, last)
            self._estimate_means(events, exposure)
            if self._signals.siblings:
                self._estimate_activity(events, exposure, first, last)
        self._window = (self._start + first, events, exposure)

    def _spread_events(self, first: int, last: int) -> Array:
        """(sections, window) expected first changes in each step, those of subsections included."""
        found = self._checks.changed
        section = self._checks.section[found]
        begin, end = self._column(self._checks.since[found]), self._column(self._checks.step[found])
        passed = self._total[section, end] - self._total[section, begin]
        share = 1.0 / np.maximum(passed, _TINY)
        opened = np.zeros((len(self._mean), last - first + 1))
        np.add.at(opened, (section, np.maximum(begin - first, 0)), share)
        np.add.at(opened, (section, np.maximum(end - first, 0)), -share)
        events = np.cumsum(opened[:, :-1], axis=1) * self._hazard[:, first:last]
        self._roll_up(events)
        return np.asarray(events)

    def _estimate_means(self, events: Array, exposure: Array) -> None:
        signals = self._signals
        seen = self._old_events + events.sum(axis=1)
        watched = self._old_exposure + exposure.sum(axis=1)
        prior = signals.prior_exposure
        self._mean[0] = (seen[0] + prior * signals.prior_rate) / (watched[0] + prior)
        # A burst changes a whole section: its pages are no independent witnesses, so the prior grows with them.
        # Its size is kept when nobody fetches, or a section given up for its rate would never be forgiven.
        self._size = np.maximum(self._size, exposure.max(axis=1))
        lent = signals.section_steps * self._size
        for level in self._levels[1:]:
            inherited = self._mean[self._parents[level]]
            own = (seen[level] + lent[level] * inherited) / (watched[level] + lent[level])
            self._mean[level] = own if signals.sections else inherited
        if signals.visit > 0:  # a web without pages has no visits
            np.minimum(self._mean, TELLABLE / signals.visit, out=self._mean)

    def _estimate_activity(self, events: Array, exposure: Array, first: int, last: int) -> None:
        """u = (found + s u_parent)/(expected + s), from the site down; the site's own parent is its week."""
        strength = self._signals.step_events
        expected = exposure * self._mean[:, None]
        if self._signals.weekdays:
            self._week.learn(self._start + first, events[0], expected[0])
        week = self._week.factors(self._start + first, self._start + last)
        activity = np.empty_like(expected)
        activity[0] = (events[0] + strength * week) / (expected[0] + strength)
        for level in self._levels[1:]:
            inherited = strength * activity[self._parents[level]]
            activity[level] = (events[level] + inherited) / (expected[level] + strength)
        hazard = activity * self._mean[:, None]
        self._hazard[:, first:last] = hazard
        self._total[:, first + 1 : last + 1] = self._total[:, first, None] + np.cumsum(hazard, axis=1)

    def _closable(self) -> int:
        """How many steps may pass at once: until the window is full, then as many as the last revision covers."""
        filling = WINDOW - (self._step - self._start)
        if filling > 0:
            return filling
        oldest, (begin, events, _) = self._step - WINDOW, self._window
        if not 0 <= oldest - begin < events.shape[1]:
            self._revise()
            return WINDOW
        return int(begin + events.shape[1] - oldest)

    def _close_oldest(self, steps: int) -> None:
        """The oldest steps leave a full window, as last believed, for the long-run sums."""
        first = max(self._step - WINDOW, self._start)
        closed = self._step + steps - WINDOW - first
        if closed <= 0:
            return
        begin, found, watched = self._window
        events, exposure = (each[:, first - begin : first - begin + closed] for each in (found, watched))
        keep = np.exp(-1 / self._signals.memory) if self._signals.forgetting else 1.0
        for step in range(closed):
            expected = float(exposure[0, step] * self._mean[0])
            self._week.close(first + step, float(events[0, step]), expected, keep=keep)
        fades = keep ** np.arange(closed - 1, -1, -1)
        self._old_events = keep**closed * self._old_events + events @ fades
        self._old_exposure = keep**closed * self._old_exposure + exposure @ fades
        column = first - self._start
        self._before += self._opened[:, column : column + closed].sum(axis=1)

    def _roll_up(self, amounts: Array) -> None:
        """Add each section's amounts to all its ancestors', in place, from the deepest level up."""
        for level, parents, first in self._families:
            amounts[parents] += np.add.reduceat(amounts[level], first, axis=0)

    def _column(self, step: Ints) -> Ints:
        return np.maximum(step - self._start, 0)

    def _grow_sections(self) -> None:
        """A new section begins with its parent's rate and past activity."""
        old, count = len(self._mean), len(self._sections)
        if count == old:
            return
        self._parents, self._levels = self._sections.parents(), self._sections.levels()
        # From the deepest level up: its sections, their parents, and where each parent's children begin.
        self._families = [(level, *np.unique(self._parents[level], return_index=True)) for level in self._levels[:0:-1]]
        # The last revision's first step, and (sections, steps) events and exposure: none for these sections.
        self._window = (self._step, np.zeros((count, 0)), np.zeros((count, 0)))
        more = count - old
        for name in ("_hazard", "_total", "_opened", "_before", "_old_events", "_old_exposure", "_mean", "_size"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((more, *array.shape[1:]))]))
        self._size[old:] = 1.0
        for section in range(old, count):
            if section == 0:
                self._mean[0] = self._signals.prior_rate
                continue
            parent = self._parents[section]
            for lent in (self._mean, self._hazard, self._total):
                lent[section] = lent[parent]

    def _make_room(self, steps: int) -> None:
        """Columns for more steps: twice as many, or, at `_STEPS_KEPT`, those of the older half again."""
        width = self._hazard.shape[1]
        if self._step - self._start + steps < width:
            return
        if width < _STEPS_KEPT:
            while self._step - self._start + steps >= width:
                width *= 2
            room = ((0, 0), (0, width - self._hazard.shape[1]))
            self._hazard, self._total = np.pad(self._hazard, room), np.pad(self._total, room)
            self._opened = np.pad(self._opened, room)
            return
        half = width // 2
        self._total -= self._total[:, half, None]
        for array in (self._hazard, self._total, self._opened):
            array[:, :-half] = array[:, half:].copy()
            array[:, -half:] = 0.0
        self._start += half


def _packed(values: npt.NDArray[Any], kind: type[np.float32 | np.int32]) -> bytes:
    return values.astype(np.dtype(kind).newbyteorder("<")).tobytes()


def _unpacked(data: bytes, kind: type[np.float32]) -> Array:
    return np.frombuffer(data, dtype=np.dtype(kind).newbyteorder("<")).astype(np.float64)


def _watched_share(risk: Array) -> Array:
    """Expected share of a window before its first change, given that there is one: 1/x - 1/(e^x - 1), at most 1/2."""
    x = np.maximum(risk, 1e-4)
    with np.errstate(over="ignore"):
        return np.asarray(1 / x - 1 / np.expm1(x))
