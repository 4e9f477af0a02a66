"""One site: what its fetches taught (`core.activity`), and how urgent each of its pages is now.

Place in the walk (DESIGN 4): verdict -> **here** -> urgency -> the next choice. The live crawler (`urgent_pages`) and
`simulate revisit` ask the same object. Time is counted in steps, whole numbers that grow; what a step is, the caller
knows. Pages are numbers that `add` gives, in order from 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    def fresh_time(self, pages: Ints) -> Array:
        """Steps that these pages may be expected to stay as they are: what a fetch buys that surely repairs one."""
        return self._activity.fresh_time(self._section[pages], self._events[pages], self._exposure[pages])

    def _grow(self) -> None:
        for name in ("_section", "_since", "_events", "_exposure", "_importance"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.ones_like(array) if name == "_importance" else array * 0]))
