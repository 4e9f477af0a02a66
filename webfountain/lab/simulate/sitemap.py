"""A site's sitemap in the simulation: it gives the time of the last change for half of the pages.

The half is drawn once. The sitemap is correct and exact: it shows the changes that count and no others, and a day's
events from the next day on. Real sitemaps are worse, so the gain measured here is the largest possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.lab.simulate.trace import ChangeTrace

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["Flags", "Pages", "Sitemap"]

_LISTED = 0.5


class Sitemap:
    """What the sitemap contains on each day."""

    def __init__(self, trace: ChangeTrace, *, seed: int) -> None:
        self._trace = trace
        self._listed = np.random.default_rng(seed).random(len(trace.urls)) < _LISTED
        self._modified = np.full(len(trace.urls), -1, dtype=np.int64)
        self._read = 0

    def listed(self, pages: Pages) -> Flags:
        """Return whether the sitemap lists these pages."""
        return self._listed[pages]

    def modified(self, day: int, pages: Pages) -> Pages:
        """Return the day of each page's last event before `day`, -1 for none; days must not decrease between calls."""
        until = int(np.searchsorted(self._trace.day, day))
        span = slice(self._read, until)
        # Fancy assignment keeps the last value of a repeated page: its newest event.
        self._modified[self._trace.page[span]] = self._trace.day[span]
        self._read = until
        return self._modified[pages]
