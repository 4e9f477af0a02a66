"""The sites that have due pages and wait to be crawled, sorted by importance."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.importance import PRIOR
from webfountain.core.pagerank import DAMPING
from webfountain.ranking.scores import EpochScores
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from webfountain.records import Link

__all__ = ["KEPT", "WaitingSites"]

_SITE: Final = attrgetter("site")

KEPT: Final = 500_000
"""Maximum number of waiting sites in memory, and maximum number of links between sites."""


class WaitingSites:
    """Sites that have due pages but that this process is not crawling, sorted by importance.

    The importance of a site is its PageRank in the last ranking, plus an amount for each link found since that ranking.
    A site begins to wait when new pages of it are found, or when its crawl stops while pages are due.

    Source: Cho 2000, section 2.1 (sites chosen by the PageRank of the graph of sites).

    Parameters
    ----------
    scores : folder with the ranking of sites; None: there are no rankings

    To save memory, all sites or all links are dropped when their number exceeds `KEPT`.
    """

    def __init__(self, scores: Path | None) -> None:
        self._scores = None if scores is None else EpochScores(scores)
        self._waiting: dict[str, None] = {}
        self._active: set[str] = set()
        self._gained: dict[str, float] = {}
        self._linked: dict[str, set[str]] = {}
        self._links = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def refresh(self) -> None:
        """Load the scores of a new ranking, and drop the importance that links have added since the last one."""
        if self._scores is not None and self._scores.refresh():
            self._gained.clear()

    def credit(self, site: str, links: Sequence[Link]) -> None:
        """Increase the importance of sites to which a site links for the first time."""
        linked = self._linked.get(site, {site})
        if linked.issuperset(map(_SITE, links)):
            return
        others = set(map(_SITE, links)) - linked
        self._linked[site] = linked = linked | others
        self._links += len(others)
        part = DAMPING * self._worth([site])[0] / (len(linked) - 1)
        for other in others:
            self._gained[other] = self._gained.get(other, 0.0) + part
        if max(self._links, len(self._gained)) > KEPT:
            self._linked, self._gained, self._links = {}, {}, 0

    def joined(self, sites: Iterable[str]) -> None:
        """Record that the crawl of `sites` has started."""
        for site in sites:
            self._active.add(site)
            self._waiting.pop(site, None)

    def left(self, sites: Iterable[str]) -> None:
        """Record that the crawl of `sites` has stopped."""
        self._active.difference_update(sites)

    def wait(self, sites: Iterable[str]) -> None:
        """Record that sites have due pages."""
        self._waiting.update(dict.fromkeys(site for site in sites if site not in self._active))
        if len(self._waiting) > KEPT:
            self._waiting.clear()

    def take(self, most: int) -> list[str]:
        """Remove the most important waiting sites, and return them."""
        names = list(self._waiting)
        if most <= 0 or not names:
            return []
        worth = np.array(self._worth(names))
        best = [names[place] for place in np.argsort(-worth, kind="stable")[:most].tolist()]
        for site in best:
            del self._waiting[site]
        return best

    def _worth(self, sites: Sequence[str]) -> list[float]:
        gained = [self._gained.get(site, 0.0) for site in sites]
        if self._scores is None or not self._scores.epoch:
            return [PRIOR + gain for gain in gained]
        keys = np.frombuffer(b"".join(map(fingerprint, sites)), dtype=">u8").astype(np.uint64)
        return list((self._scores.lookup("pagerank", keys, absent=PRIOR) + np.array(gained)).tolist())
