"""One site: what its fetches taught (`core.activity`), and how urgent each of its pages is now.

Place in the walk (DESIGN 4): verdict -> **here** -> urgency -> the next choice. The live crawler (`urgent_pages`) and
`simulate revisit` ask the same object. Time is counted in steps, whole numbers that grow; what a step is, the caller
knows. Pages are numbers that `add` gives, in order from 0.
"""

from __future__ import annotations

import zlib
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.activity import WINDOW, Activity
from webfountain.core.sections import Sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.signals import Signals

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["SiteUrgency"]

_FARTHEST: Final = 4096.0
"""Steps: a page that reaches a price later than in a hundred visits is taken never to."""


class SiteUrgency:
    """Pages of one site, one array element each; which observes only what fetches found."""

    def __init__(self, *, signals: Signals, step: int = 0) -> None:
        """Start knowing nothing at `step`."""
        self._sections = Sections()
        self._activity = Activity(self._sections, signals=signals, step=step)
        self._section = np.zeros(64, dtype=np.int64)
        self._since = np.zeros(64, dtype=np.int64)
        self._events, self._exposure, self._importance = np.zeros(64), np.zeros(64), np.ones(64)
        self._pages = 0

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
        begin = int(since.min(initial=step))
        site = cls(signals=signals, step=max(begin, step - WINDOW))
        known = site.add(paths, since=since, importance=importance)
        exposure = site._activity.begin_with(site._section[known], events, watched)
        if signals.history:
            site._events[known], site._exposure[known] = events, exposure
        site._activity.advance(step)
        return site

    def __len__(self) -> int:
        return self._pages

    def add(self, paths: Sequence[str], *, since: Ints, importance: Array) -> Ints:
        """Pages were met; returns their numbers.

        Parameters
        ----------
        paths, since, importance : (pages,) URL path, step of the first, or last, fetch, factor of the urgency
        """
        pages = np.arange(self._pages, self._pages + len(paths))
        self._pages += len(paths)
        while self._pages > len(self._section):
            self._grow()
        self._section[pages] = self._sections.sections_of(paths)
        self._since[pages], self._importance[pages] = since, importance
        return pages

    def renew(self, pages: Ints, *, step: int) -> None:
        """Pages were fetched that tell nothing of change: there was no copy before."""
        self._since[pages] = step

    def observe(self, pages: Ints, changed: Flags, *, step: int) -> None:
        """Pages were fetched in `step` and compared with our copies; each at most once in a call."""
        self._activity.advance(step)
        self._events[pages], self._exposure[pages] = self._activity.observe(
            self._section[pages], self._since[pages], changed, self._events[pages], self._exposure[pages]
        )
        self._since[pages] = step

    def urgency(self, pages: Ints, *, step: int) -> Array:
        """How much freshness a fetch in `step` would buy, weighted with the page's importance; steps."""
        self._activity.advance(step)
        evidence = self._events[pages], self._exposure[pages]
        return self._importance[pages] * self._activity.urgency(self._section[pages], self._since[pages], *evidence)

    def due(self, pages: Ints, price: float, *, step: int, most: int) -> tuple[Ints, Array]:
        """Those of `pages` whose urgency in `step` is at least `price`, at most `most`, the most urgent first.

        Returns their numbers and their urgencies, steps. Of equal ones the lower numbers go first.
        """
        urgency = self.urgency(pages, step=step)
        worth = np.flatnonzero(urgency >= price)
        order = worth[np.argsort(-urgency[worth], kind="stable")][:most]
        return pages[order], urgency[order]

    def steps_until(self, pages: Ints, price: float, *, step: int) -> float:
        """Steps from `step` until the first of `pages` reaches a price if nothing is found meanwhile; inf: none does.

        Sections are taken to be as active as in the long run. Within a tenth of the time, rather too early.
        """
        if not len(pages):
            return inf
        self._activity.advance(step)
        low, high = 0.0, 1.0
        while not self._any_worth(pages, price, ahead=high):
            low, high = high, 2.0 * high
            if high > _FARTHEST:
                return inf
        while high - low > max(0.1 * high, 0.25):
            middle = (low + high) / 2
            if self._any_worth(pages, price, ahead=middle):
                high = middle
            else:
                low = middle
        return low

    def _any_worth(self, pages: Ints, price: float, *, ahead: float) -> bool:
        """Whether one of `pages` is worth the price so many steps from now."""
        evidence = self._events[pages], self._exposure[pages]
        found = self._activity.urgency(self._section[pages], self._since[pages], *evidence, ahead=ahead)
        return bool((self._importance[pages] * found >= price).any())

    def encode(self) -> bytes:
        """All that is known of the site, to go on from; about 20 bytes a page and 1 kB a section."""
        count = self._pages
        pages = [array[:count].astype("<f4").tobytes() for array in (self._events, self._exposure, self._importance)]
        numbers = [array[:count].astype("<i4").tobytes() for array in (self._section, self._since)]
        oldest = int(self._since[:count].min(initial=2**31))
        parts = [count, pages, numbers, self._sections.encode(), self._activity.encode(oldest=oldest)]
        return zlib.compress(msgspec.msgpack.encode(parts), 1)

    @classmethod
    def decode(cls, data: bytes, *, signals: Signals) -> SiteUrgency:
        """The site that `encode` wrote, with the same signals.

        Raises
        ------
        ValueError
            when it was written by another version, or is damaged.
        """
        try:
            count, pages, numbers, sections, activity = msgspec.msgpack.decode(zlib.decompress(data))
            site = cls(signals=signals)
            site._pages = count
            site._events, site._exposure, site._importance = (
                np.frombuffer(each, dtype="<f4").astype(np.float64) for each in pages
            )
            site._section, site._since = (np.frombuffer(each, dtype="<i4").astype(np.int64) for each in numbers)
            site._sections.decode(sections)
            site._activity = Activity.decode(activity, site._sections, signals=signals)
        except (zlib.error, msgspec.DecodeError, TypeError) as error:
            raise ValueError(f"a site's urgency cannot be read: {error}") from error
        return site

    def fresh_time(self, pages: Ints) -> Array:
        """Steps that these pages may be expected to stay as they are: what a fetch buys that surely repairs one."""
        return self._activity.fresh_time(self._section[pages], self._events[pages], self._exposure[pages])

    def _grow(self) -> None:
        for name in ("_section", "_since", "_events", "_exposure", "_importance"):
            array = getattr(self, name)
            room = np.zeros(max(64, len(array)), dtype=array.dtype)
            setattr(self, name, np.concatenate([array, room + 1 if name == "_importance" else room]))
