"""Our own policy in the simulation: the live crawler's urgency of a site's pages, from what fetches found.

Two more of its signals need what a bare trace does not have, and are policies of their own here: the importance of
pages, and a sitemap.
"""

from __future__ import annotations

__all__ = ["ABLATIONS", "IMPORTANCE", "SITEMAP", "SitemapReader", "UrgencyPolicy"]

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.signals import Signals
from webfountain.core.site_urgency import SiteUrgency

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


class UrgencyPolicy:
    """The live crawler's urgency of one site's pages (`core.site_urgency`), a day being a step; the greatest first."""

    def __init__(self, urls: list[str], *, signals: Signals, importance: Array | None = None) -> None:
        """`importance` is (n,), a factor of each page's urgency; None: all pages are as important."""
        self._urls = urls
        self._importance = np.ones(len(urls)) if importance is None else importance
        self._urgencies = SiteUrgency(signals=signals)
        self._number = np.full(len(urls), -1, dtype=np.int64)  # in `_urgencies`, of the pages met so far

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return self._urgencies.urgency(self._numbers(pages, day - tau), step=day)

    def learn(self, day: int, fetches: Fetches) -> None:
        numbers = self._numbers(fetches.pages, day - fetches.tau)
        self._urgencies.renew(numbers[fetches.first], step=day)
        seen = ~fetches.first & ~fetches.gone
        self._urgencies.observe(numbers[seen], fetches.changed[seen], step=day)

    def fresh_time(self, pages: Pages) -> Array:
        """Days that these pages, met before, may be expected to stay as they are."""
        return self._urgencies.fresh_time(self._number[pages])

    def _numbers(self, pages: Pages, since: Pages) -> Pages:
        new = pages[self._number[pages] < 0]
        self._number[new] = self._urgencies.add(
            [self._urls[page] for page in new.tolist()],
            since=since[self._number[pages] < 0],
            importance=self._importance[new],
        )
        return self._number[pages]


class SitemapReader:
    """Fountain with a sitemap: a listed page is as urgent as its time of freshness when it changed, else not at all."""

    def __init__(self, fountain: UrgencyPolicy, sitemap: Sitemap) -> None:
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
