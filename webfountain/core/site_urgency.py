"""Sites and their pages: what fetches taught (`core.activity`), how urgent each page is now, how many are obsolete.

Place in the walk (DESIGN 4): verdict -> **here** -> urgency -> the next choice. The live crawler (`urgent_pages`) and
`simulate revisit` ask the same objects. Time is counted in steps, whole numbers that grow; what a step is, the caller
knows. A `SiteUrgency` is what is kept of one site; `Sites` takes some of them together, for questions and for lessons,
so that a small site costs little. Pages are numbered as they are added, from 0, and among `Sites` one site after the
other.

The sections of a site: the tree of its URL directories, whose pages tend to change together. A page belongs to the
directory of its path; every directory is a section of its parent, the site the root of all. `activity` keeps its
statistics per section and lends from the parent where a section has few pages of its own.

The price of a fetch: the obsolete time that one must save, in expectation, to be made; the multiplier of the budget.
A page is due when its urgency reaches the price, so that each site decides with its own pages at hand and nothing is
sorted over all of them; pages that all sites fetch at one price divide the budget as one ranking would (the urgency
is the price at which a page would be refreshed at its present age, `urgency`). What price spends the budget is found
by trying: it falls while fetches are left unmade and nothing is due, and rises while more is due than can be fetched
soon.

Source: the Lagrange multiplier of "fetches <= budget": Azar et al., *Tractable near-optimal policies for crawling*,
PNAS 2018; Cho & Garcia-Molina, TODS 2003, section 4. The control is ours.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from webfountain.core.activity import (
    WEEK,
    WINDOW,
    Activity,
    Memory,
    Watch,
    chance_of_change,
    summed,
    urgency_and_slope,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.activity import Signals

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["SITE", "TOLERANCE", "Approach", "Found", "Past", "Price", "Reckoning", "Sections", "SiteUrgency", "Sites"]

SITE = 0
"""The section that holds all others."""
_COUNTED: Final = 20
"""Times as many directories as may be sections whose pages are counted."""


class Sections:
    """Numbers sections as they are first met; a number never changes and a parent's is below its children's."""

    def __init__(self, *, max_depth: int = 8, most: int = 1000) -> None:
        """Deeper directories than `max_depth` count as their ancestor at that depth; 0 knows only the site.

        Of more than `most` directories (some sites give each page one) those with the fewest pages count as the one
        above. What became a section stays one.
        """
        self._max_depth = max_depth
        self._most = most
        self._fewest = 1  # pages that make a section
        self._pages: dict[str, int] = {}
        self._number = {"": SITE}
        self._parent = [SITE]
        self._depth = [0]

    def __len__(self) -> int:
        return len(self._parent)

    def sections_of(self, paths: Sequence[str]) -> list[int]:
        """Section of the URL path of each new page, all of them counted before any is placed.

        What follows the last slash, a query or a fragment is no directory.
        """
        of_parent: dict[str, list[str]] = {}  # what the pages of a directory share is made once
        keys = []
        for path in paths:
            parent = path.split("?", 1)[0].split("#", 1)[0].rpartition("/")[0]
            if (found := of_parent.get(parent)) is None:
                found = of_parent[parent] = self._directories(parent)
            keys.append(found)
        for of_page in keys:
            for key in of_page:
                self._pages[key] = self._pages.get(key, 0) + 1
        if len(self._pages) > self._most:
            self._fewest = sorted(self._pages.values(), reverse=True)[self._most] + 1
        sections = [self._section(of_page) for of_page in keys]
        if len(self._pages) > _COUNTED * self._most:
            self._forget()
        return sections

    def _forget(self) -> None:
        """Half of the directories go, those with the fewest pages: a site may give each page one."""
        least = sorted(self._pages.values(), reverse=True)[_COUNTED * self._most // 2]
        self._pages = {key: pages for key, pages in self._pages.items() if pages > least or key in self._number}

    def encode(self) -> bytes:
        """All directories that were met, with their pages, and those that are sections, in the order of numbers."""
        return msgspec.msgpack.encode([self._pages, list(self._number)[1:], self._parent, self._depth, self._fewest])

    @classmethod
    def decode(cls, data: bytes) -> Sections:
        """What `encode` wrote, with the default bounds."""
        sections = cls()
        sections._pages, names, sections._parent, sections._depth, sections._fewest = msgspec.msgpack.decode(data)
        sections._number = {name: number for number, name in enumerate(["", *names])}
        return sections

    def _directories(self, parent: str) -> list[str]:
        names = [name for name in parent.split("/") if name]
        return ["/" + "/".join(names[: depth + 1]) for depth in range(min(len(names), self._max_depth))]

    def _section(self, directories: list[str]) -> int:
        section = SITE
        for key in directories:
            if self._pages[key] < self._fewest:
                break
            known = self._number.get(key)
            section = self._add(key, section) if known is None else known
        return section

    def parents(self) -> list[int]:
        """Parent of each section; the site is its own."""
        return self._parent

    def _add(self, key: str, parent: int) -> int:
        self._number[key] = section = len(self._parent)
        self._parent.append(parent)
        self._depth.append(self._depth[parent] + 1)
        return section


LEAST_AHEAD: Final = 0.5
MOST_AHEAD: Final = 3.0
"""Checks' worth of fetches that wait while the price is right."""
TOLERANCE: Final = 0.03
"""Share of the planned fetches that may be left unmade, besides one."""
_FALL: Final = 0.8
_STEEPEST_FALL: Final = 0.3
_EASE: Final = 0.97
_STEEPNESS: Final = 0.5
_STEEPEST_RISE: Final = 2.0
_LEAST: Final = 1e-6


class Price:
    """The price in force, `value`, s; held to how the budget was spent often in a period."""

    __slots__ = ("_fall", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self._fall = 1.0

    def adjust(
        self, *, planned: float, waiting: float, owed: float, short: bool, top: float = inf, level: float = 0.0
    ) -> None:
        """Follow the budget; a price that falls does so faster each time, for urgencies lie decades apart.

        Parameters
        ----------
        planned : fetches that the plan means to be made from one check to the next
        waiting : pages that are due and wait to be fetched
        owed : fetches that were planned and not made, of earlier checks too; below 0 where more were made
        short : fetches were left unmade because nothing was due
        top : what no other page is worth, s, as far as is known: it rises no higher
        level : what so many others are worth as are missing, s: it falls no lower at once; 0 where there are not so
            many. Where fetches were left unmade it falls to that whatever waits, for that cannot be fetched soon
        """
        room = MOST_AHEAD * planned + owed
        crowd = waiting / max(room, 2.0)
        self._fall = max(self._fall * _FALL, _STEEPEST_FALL) if short else 1.0
        if crowd > 1.0 and not (short and level > 0.0):
            self.value = max(min(self.value * min(float(crowd**_STEEPNESS), _STEEPEST_RISE), top), self.value)
        elif short:
            self.value = max(self.value * self._fall, min(level, self.value), _LEAST)
        elif waiting < room and level > 0.0:
            self.value = max(self.value * _FALL, min(level, self.value))
        elif waiting < LEAST_AHEAD * planned and owed > -1.0:
            self.value = max(self.value * _EASE, _LEAST)


_FARTHEST: Final = 4096.0
"""Steps: a page that reaches a price later than in a hundred visits is taken never to."""
_TINY: Final = 1e-30
_NEVER: Final = 2**53
"""No step is later."""
_SLICE: Final = 50_000
"""Pages of which all is in memory at once that is needed to reckon them."""
_EVENTS, _EXPOSURE, _BEFORE, _IMPORTANCE = range(4)
"""Columns of a page: changes found, in the activity's time; that time; what its section went through between its last
fetch and the window; factor of its urgency."""


class Reckoning(NamedTuple):
    """What is believed of pages that were not fetched since; one element per site. Of the site's age at a step."""

    obsolete: Array
    """Pages expected to be obsolete."""
    so_far: Array
    """Page-steps for which they are expected to have been so, since the last fetch of each."""
    growing: Array
    """Pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """How urgent pages are, and what bounds how urgent they become if nothing is found; one element per page."""

    urgency: Array
    """Steps."""
    slope: Array
    """Of the logarithm of the urgency over that of `lasted`; it only falls."""
    lasted: Array
    """Steps that as much as the section went through since the page's last fetch takes in the long run."""
    least: Array
    """After so many steps times the square root of an urgency, or later, a page has it."""


class Found(NamedTuple):
    """What fetches showed of what was believed."""

    expected: Array
    """(sites,) pages that were believed obsolete when they were fetched."""
    changed: Array
    """(sites,) pages that were found changed."""
    lasted: Array
    """(pages found changed,) steps for which each is believed to have been so."""


class SiteUrgency:
    """Pages of one site, which is told only what fetches found."""

    __slots__ = ("_page", "_section", "_sections", "_since", "memory", "signals")

    def __init__(self, *, signals: Signals, step: int = 0) -> None:
        """Start knowing nothing at `step`."""
        self.signals = signals
        self.memory = Memory.begun(signals=signals, step=step)
        self._sections: Sections | bytes = Sections()
        self._section = np.zeros(0, dtype=np.int32)
        self._since = np.zeros(0, dtype=np.int64)
        self._page = np.zeros((4, 0), dtype=np.float32)

    @classmethod
    def resumed(
        cls,
        paths: Sequence[str],
        *,
        since: Ints,
        events: Array,
        watched: Array,
        importance: Array,
        signals: Signals,
        step: int,
    ) -> SiteUrgency:
        """Begin at `step` with pages whose past is known.

        Parameters
        ----------
        paths : (pages,) URL paths; pages are numbered in this order
        since : (pages,) step of the last fetch
        events, watched : (pages,) changes found so far, and steps in which none was overlooked
        """
        past = Past(signals=signals)
        section = past.add(paths, since=since, events=events, watched=watched)
        return past.site(section, since=since, events=events, watched=watched, importance=importance, step=step)

    def __len__(self) -> int:
        return len(self._section)

    def some(self, pages: Flags) -> SiteUrgency:
        """Some of the pages, numbered anew in their order, and all that is known of the site's sections."""
        found = SiteUrgency.__new__(SiteUrgency)
        found.signals, found.memory, found._sections = self.signals, self.memory, self._sections
        found._section, found._since, found._page = self._section[pages], self._since[pages], self._page[:, pages]
        return found

    def follow(self, other: SiteUrgency) -> None:
        """Go on with what is known of the site's sections by other pages of it, if they learned later.

        The steps that passed since left the window, for the pages of this one, as they were believed to be then.
        """
        if other.memory.step >= self.memory.step:
            Sites([self], step=other.memory.step).keep()
            self.memory, self._sections = other.memory, other._sections

    def believe(self, signals: Signals) -> None:
        """Other strengths of beliefs from now on, as long as a step is as long as before."""
        self.signals = signals

    def add(self, paths: Sequence[str], *, since: Ints, importance: Array) -> Ints:
        """Pages were met; returns their numbers.

        Parameters
        ----------
        paths, since, importance : (pages,) URL path, step of the first, or last, fetch, factor of the urgency
        """
        if not isinstance(self._sections, Sections):
            self._sections = Sections.decode(self._sections)
        known = len(self)
        section = np.array(self._sections.sections_of(paths), dtype=np.int32)
        if more := self._sections.parents()[len(self.memory.rows) :]:
            self.memory = self.memory.grown(more)
        page = np.zeros((4, len(section)), dtype=np.float32)
        page[_IMPORTANCE] = importance
        self._section = np.concatenate([self._section, section])
        self._since = np.concatenate([self._since, since])
        self._page = np.concatenate([self._page, page], axis=1)
        return np.arange(known, len(self))

    def renew(self, pages: Ints, *, step: int) -> None:
        """Pages were fetched that tell nothing of change: there was no copy before."""
        together = Sites([self], step=step)
        together.renew(pages, step=step)
        together.keep()

    def observe(self, pages: Ints, changed: Flags, *, step: int) -> Found:
        """Pages were fetched in `step` and compared with our copies; each at most once in a call."""
        together = Sites([self], step=step)
        found = together.observe(pages, changed, np.full(len(pages), step))
        together.keep()
        return found

    def urgency(self, pages: Ints, *, step: int) -> Array:
        """How much freshness a fetch in `step` would buy, weighted with the page's importance; steps."""
        return Sites([self], step=step).urgency(pages)

    def steps_until(self, pages: Ints, price: float, *, step: int) -> float:
        """Steps from `step` before which none of `pages` reaches a price, as `Sites.steps_until`."""
        wanted = np.zeros(len(self), dtype=np.bool_)
        wanted[pages] = True
        sites = Sites([self], step=step)
        return float(sites.steps_until(sites.approach(), wanted, np.array([price]))[0, 0])

    def fresh_time(self, pages: Ints) -> Array:
        """Steps that these pages may be expected to stay as they are: what a fetch buys that surely repairs one."""
        together = Sites([self], step=self.memory.step)
        return together.activity.fresh_time(
            together.watch.section[pages], together.page[_EVENTS, pages], together.page[_EXPOSURE, pages]
        )

    def encode(self) -> bytes:
        """All that is known of the site, to go on from; about 28 bytes a page and 500 a section."""
        memory = self.memory
        parts = [
            memory.step,
            memory.tree.astype("<i4").tobytes(),
            memory.rows.astype("<f4").tobytes(),
            memory.changes.astype("<f8").tobytes(),
            memory.week.astype("<f8").tobytes() if self.signals.weekdays else b"",
            self._section.astype("<i4").tobytes(),
            (self._since - memory.step).astype("<i4").tobytes(),
            self._page.astype("<f4").tobytes(),
            self._sections.encode() if isinstance(self._sections, Sections) else self._sections,
        ]
        return msgspec.msgpack.encode(parts)

    @classmethod
    def decode(cls, data: bytes, *, signals: Signals) -> SiteUrgency:
        """The site that `encode` wrote, with the same signals. The bytes are looked at in place, nothing is unpacked.

        Raises
        ------
        ValueError
            when it was written by another version, or is damaged.
        """
        try:
            step, tree, rows, changes, week, section, since, page, sections = _PARTS.decode(data)
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
                np.frombuffer(week, dtype="<f8").reshape(3, WEEK) if week else _FLAT_WEEK,
            )
            if not site.memory.is_sound():
                raise ValueError("a site's urgency was written by another version")
            site._since = np.frombuffer(since, dtype="<i4").astype(np.int64) + step
            site._page = np.frombuffer(page, dtype="<f4").reshape(4, count)
        except (msgspec.DecodeError, TypeError) as error:
            raise ValueError(f"a site's urgency cannot be read: {error}") from error
        return site


class Past:
    """What earlier fetches told of a site's pages, added some at a time; then `site` begins with any of them."""

    def __init__(self, *, signals: Signals) -> None:
        self._signals = signals
        self._sections = Sections()
        self._told = np.zeros((3, 1))  # (., sections) changes found, steps watched, pages
        self._first = float(_NEVER)
        self._begun: tuple[int, Memory, Array] | None = None

    def add(self, paths: Sequence[str], *, since: Ints, events: Array, watched: Array) -> Ints:
        """Pages, as for `SiteUrgency.resumed`; returns the section of each."""
        section = np.array(self._sections.sections_of(paths), dtype=np.int64)
        self._told = np.pad(self._told, ((0, 0), (0, len(self._sections) - self._told.shape[1])))
        for row, amounts in enumerate((events, watched, np.ones(len(section)))):
            np.add.at(self._told[row], section, amounts)
        self._first = min(self._first, float(np.min(since, initial=_NEVER)))
        return section

    def site(
        self, section: Ints, *, since: Ints, events: Array, watched: Array, importance: Array, step: int
    ) -> SiteUrgency:
        """Begin at `step` with pages of the given sections; nothing is added from then on."""
        if self._begun is None:
            self._begun = self._begin(step)
        begin, memory, rate = self._begun
        site = SiteUrgency(signals=self._signals)
        site.memory, site._sections = memory, self._sections
        site._section, site._since = section.astype(np.int32), since
        site._page = np.zeros((4, len(section)), dtype=np.float32)
        site._page[_IMPORTANCE] = importance
        if self._signals.history:
            site._page[_EVENTS], site._page[_EXPOSURE] = events, watched * rate[section]
        # Before the window the section was as active as in the long run, for all that is known.
        site._page[_BEFORE] = rate[section] * np.maximum(begin - WINDOW - since, 0)
        Sites([site], step=step).keep()
        return site

    def _begin(self, step: int) -> tuple[int, Memory, Array]:
        begin = int(max(min(self._first, step), step - WINDOW))
        memory = Memory.begun(signals=self._signals, step=begin).grown(self._sections.parents()[1:])
        activity = Activity([memory], signals=self._signals)
        activity.begin_with(*self._told)
        return begin, activity.memories()[0], activity.mean_rate(np.arange(len(self._sections)))


class Sites:
    """Some sites as one, at one step: their pages' numbers go on from site to site. `keep` writes lessons back."""

    def __init__(self, sites: Sequence[SiteUrgency], *, step: int | Ints) -> None:
        """All must have the same signals. What was learned of them is not changed.

        `step` is the present one, of all or (sites,) of each.
        """
        self._sites = sites
        self._step = np.broadcast_to(np.asarray(step, dtype=np.int64), len(sites))
        self.activity = Activity([site.memory for site in sites], signals=sites[0].signals)
        counts = [len(site) for site in sites]
        self.offset = np.cumsum([0, *counts])
        """(sites + 1,) number of each site's first page."""
        self.site = np.repeat(np.arange(len(sites)), counts)
        """(pages,) site of each page."""
        self.page = np.concatenate([site._page for site in sites], axis=1, dtype=np.float64)
        section = np.concatenate([site._section for site in sites]) + np.repeat(self.activity.offset[:-1], counts)
        since = np.concatenate([site._since for site in sites])
        self.watch = self.activity.advance(step, Watch(section, since, self.page[_BEFORE]))

    def keep(self) -> None:
        """The sites know from now on what was learned."""
        self.page[_BEFORE] = self.watch.before
        page = self.page.astype(np.float32)
        for number, (site, memory) in enumerate(zip(self._sites, self.activity.memories(), strict=True)):
            begin, end = self.offset[number], self.offset[number + 1]
            site.memory = memory
            site._since, site._page = self.watch.since[begin:end].copy(), page[:, begin:end].copy()

    def renew(self, pages: Ints, *, step: int) -> None:
        """Pages were fetched that tell nothing of change: there was no copy before."""
        self.watch.since[pages], self.watch.before[pages] = step, 0.0

    def observe(self, pages: Ints, changed: Flags, steps: Ints) -> Found:
        """Pages were fetched and compared with our copies; each at most once in a call.

        Parameters
        ----------
        steps : (pages,) step of each fetch, none later than the present one
        """
        watch, events, exposure = self.watch.of(pages), self.page[_EVENTS, pages], self.page[_EXPOSURE, pages]
        belief = np.stack(self.activity.weights(watch, events, exposure))
        believed = chance_of_change(self.activity.hazard(watch), *belief)
        self.page[_EVENTS, pages], self.page[_EXPOSURE, pages] = self.activity.observe(
            watch, steps, changed, events=events, exposure=exposure
        )
        lasted = self.activity.since_change(watch.of(changed), steps[changed], *belief[:, changed])
        self.watch.since[pages], self.watch.before[pages] = steps, 0.0
        sites, count = self.site[pages], len(self._sites)
        return Found(summed(sites, believed, count), summed(sites, changed.astype(np.float64), count), lasted)

    def urgency(self, pages: Ints) -> Array:
        """How much freshness a fetch now would buy, weighted with importance; steps."""
        known = self.page[:, pages]
        found = self.activity.urgency(self.watch.of(pages), known[_EVENTS], known[_EXPOSURE])
        return np.asarray(known[_IMPORTANCE] * found)

    def approach(self) -> Approach:
        """The `urgency` of every page now, and how it goes on."""
        if len(self.site) <= _SLICE:
            return self._approach(slice(None))
        # What is needed in between takes several times the memory of what comes of it.
        parts = [self._approach(slice(begin, begin + _SLICE)) for begin in range(0, len(self.site), _SLICE)]
        return Approach(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _approach(self, pages: slice) -> Approach:
        watch, known = self.watch.of(pages), self.page[:, pages]
        mean, passed = self.activity.mean_rate(watch.section), self.activity.passed(watch)
        events, exposure = self.activity.weights(watch, known[_EVENTS], known[_EXPOSURE])
        found, slope = urgency_and_slope(passed, mean, events, exposure)
        found *= known[_IMPORTANCE]
        # (1 - e^-y (1 + y))/r with y = r H is at most r H^2/2.
        least = np.sqrt(2.0 * exposure / (np.maximum(known[_IMPORTANCE], _TINY) * events * mean))
        return Approach(found, slope, passed / mean, least)

    def steps_until(self, approach: Approach, wanted: Flags, prices: Array) -> Array:
        """(prices, sites) steps before which none of the `wanted` pages reaches a price if nothing is found meanwhile.

        Never late, for the urgency grows ever more slowly on logarithmic scales; the nearer the price, the less early.
        Sections are taken to be as active as in the long run, and evidence to last. inf where none of a site does.
        """
        until = np.full((len(prices), len(self._sites)), inf)
        pages = np.flatnonzero(wanted)
        for begin in range(0, len(pages), _SLICE):
            np.minimum(until, self._steps_until(approach, pages[begin : begin + _SLICE], prices), out=until)
        return until

    def _steps_until(self, approach: Approach, pages: Ints, prices: Array) -> Array:
        until = np.full((len(prices), len(self._sites)), inf)
        urgency, slope, lasted, least = (each[pages] for each in approach)
        asked = np.maximum(prices, _TINY)[:, None]
        by_slope = (np.log(asked) - np.log(np.maximum(urgency, _TINY))) / np.maximum(slope, _TINY)
        steps = (np.exp(np.minimum(by_slope, 100.0)) - 1.0) * lasted  # `expm1` takes four times as long
        np.maximum(steps, np.sqrt(asked) * least - lasted, out=steps)
        begins = np.flatnonzero(np.diff(self.site[pages], prepend=-1))
        soonest = np.maximum(np.minimum.reduceat(steps, begins, axis=1), 0.0)
        until[:, self.site[pages[begins]]] = np.where(soonest > _FARTHEST, inf, soonest)
        return until

    def reckon(self, wanted: Flags) -> Reckoning:
        """How many of the `wanted` pages of each site are believed to be obsolete."""
        pages = np.flatnonzero(wanted)
        parts = [self._reckon(pages[begin : begin + _SLICE]) for begin in range(0, max(len(pages), 1), _SLICE)]
        return Reckoning(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))

    def _reckon(self, pages: Ints) -> Reckoning:
        count = len(self._sites)
        watch, site = self.watch.of(pages), self.site[pages]
        passed = self.activity.hazard(watch)
        events, exposure = self.activity.weights(watch, self.page[_EVENTS, pages], self.page[_EXPOSURE, pages])
        obsolete = chance_of_change(passed, events, exposure)
        age = self._step[site] - watch.since
        halfway = self.activity.halfway(watch, watch.since + age // 2)
        # Simpson's rule; it was none at the last fetch.
        so_far = age * (4.0 * chance_of_change(halfway, events, exposure) + obsolete) / 6.0
        growing = (1.0 - obsolete) * self.activity.mean_rate(watch.section) * events / (exposure + passed)
        return Reckoning(*(summed(site, each, count) for each in (obsolete, so_far, growing)))


_PARTS: Final = msgspec.msgpack.Decoder(tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes])
_FLAT_WEEK: Final = np.stack([np.zeros(WEEK), np.zeros(WEEK), np.ones(WEEK)])
