"""A site's sitemap in the simulation: it names the last modification of half of the pages.

Which half is drawn once per page. It is honest and exact: it tells of the changes that count and of no others, and of
a day's events from the next day on. Real ones are worse, so what it gains here is the most that one can.
"""

from __future__ import annotations

__all__ = ["Sitemap"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.simulate.trace import Trace

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

_LISTED = 0.5


class Sitemap:
    """The server's side: what the file says on each day."""

    def __init__(self, trace: Trace, *, seed: int) -> None:
        self._trace = trace
        self._listed = np.random.default_rng(seed).random(len(trace.urls)) < _LISTED
        self._modified = np.full(len(trace.urls), -1, dtype=np.int64)
        self._read = 0

    def listed(self, pages: Pages) -> Flags:
        """Whether the sitemap tells of these pages."""
        return self._listed[pages]

    def modified(self, day: int, pages: Pages) -> Pages:
        """Day of each page's last event before `day`, -1 for none; days must not decrease."""
        until = int(np.searchsorted(self._trace.day, day))
        span = slice(self._read, until)
        # Fancy assignment keeps the last value of a repeated page: its newest event.
        self._modified[self._trace.page[span]] = self._trace.day[span]
        self._read = until
        return self._modified[pages]
