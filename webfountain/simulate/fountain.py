"""Our own policy in the simulation: `core.activity` on the sections of one site, told only what fetches found.

Two more of its signals need what a bare trace does not have, and are policies of their own here: the importance of
pages, and a sitemap.
"""

from __future__ import annotations

__all__ = ["ABLATIONS", "IMPORTANCE", "SITEMAP", "Fountain", "SitemapReader"]

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.activity import Activity, Signals
from webfountain.core.sections import Sections

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.simulate.rivals import Fetches
    from webfountain.simulate.sitemap import Sitemap

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]

ABLATIONS = {
    "fountain": Signals(),
    "fountain-siblings": Signals(siblings=False),
    "fountain-sections": Signals(sections=False),
    "fountain-history": Signals(history=False),
    "fountain-forgetting": Signals(forgetting=False),
    "fountain+weekdays": Signals(weekdays=True),
}
"""The policy as it is, with each signal switched off, "fountain-siblings" being fountain without siblings, and with
that switched on which is off by default."""

IMPORTANCE = "fountain+importance"
"""Its urgency is weighted with the importance of the page."""

SITEMAP = "fountain+sitemap"
"""It reads a sitemap once a day, in place of a page."""


class Fountain:
    """Greatest expected index first; a day is a step."""

    def __init__(self, urls: list[str], *, signals: Signals, importance: Array | None = None) -> None:
        """`importance` is (n,), a factor of each page's urgency; None: all pages are as important."""
        self._urls, self._sections = urls, Sections()
        self._importance = np.ones(len(urls)) if importance is None else importance
        self._section = np.full(len(urls), -1, dtype=np.int64)  # of the pages met so far
        self._activity = Activity(self._sections, signals=signals)
        self._events, self._exposure = np.zeros(len(urls)), np.zeros(len(urls))

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        sections = self._sections_of(pages)
        self._activity.advance(day)
        urgency = self._activity.urgency(sections, day - tau, self._events[pages], self._exposure[pages])
        return self._importance[pages] * urgency

    def learn(self, day: int, fetches: Fetches) -> None:
        seen = ~fetches.first & ~fetches.gone
        pages = fetches.pages[seen]
        sections = self._sections_of(pages)
        self._activity.advance(day)
        self._events[pages], self._exposure[pages] = self._activity.observe(
            sections,
            day - fetches.tau[seen],
            fetches.changed[seen],
            self._events[pages],
            self._exposure[pages],
        )

    def fresh_time(self, pages: Pages) -> Array:
        """Days that these pages may be expected to stay as they are: what a fetch buys that surely repairs one."""
        sections = self._sections_of(pages)
        return self._activity.fresh_time(sections, self._events[pages], self._exposure[pages])

    def _sections_of(self, pages: Pages) -> Pages:
        for page in pages[self._section[pages] < 0].tolist():
            self._section[page] = self._sections.section_of(self._urls[page])
        return self._section[pages]


class SitemapReader:
    """Fountain with a sitemap: a listed page is as urgent as its time of freshness when it changed, else not at all."""

    def __init__(self, fountain: Fountain, sitemap: Sitemap) -> None:
        self._fountain, self._sitemap = fountain, sitemap

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        scores = self._fountain.score(day, pages, tau)
        listed = self._sitemap.listed(pages)
        changed = self._sitemap.modified(day, pages) >= day - tau
        scores[listed & ~changed] = 0.0
        struck = listed & changed
        scores[struck] = self._fountain.fresh_time(pages[struck])
        return scores

    def learn(self, day: int, fetches: Fetches) -> None:
        self._fountain.learn(day, fetches)
