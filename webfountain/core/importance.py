"""Importance of a page, from a ranking, from links found since the ranking, or from several scores.

Scores are multiples of the mean score of the known pages: an average page has score 1. Between two rankings,
`OnlineImportance` credits the targets of fetched pages. `location` computes importance from the URL alone.

Source: Abiteboul, Preda, Cobena, *Adaptive on-line page importance computation*, 2003 (credit while crawling); Policies
2006 (several scores, weighed by the page's policy); Cho 1998, section 2 (combined metrics, location).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.key_rows import KeyRows
from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.arrays import Array
    from webfountain.core.key_rows import Keys, Rows
    from webfountain.core.order_blend import OrderBlend

    Pages = Keys | Sequence[int]

__all__ = [
    "METRICS",
    "MOST_OF_TRUST",
    "PRIOR",
    "OnlineImportance",
    "bounded_by_trust",
    "importance_by_depth",
    "is_home",
    "location",
]

METRICS: Final = ("pagerank", "trust", "backlinks", "topic", "location")
"""Names of the scores that a policy can weigh, in the order of the page record."""
PRIOR: Final = 0.1
"""Score of a page with unknown in-links."""
MOST_OF_TRUST: Final = 4.0
"""The rank of a page is limited to this multiple of its trust; both are relative to their means."""
RISE: Final = 1.5
"""A waiting page is queued again when its importance has grown by this factor."""

_FIRST_ROOM: Final = 1000
_NEXT_RISE: Final = 2.0
"""When a page's importance reaches its bound, the next bound is this multiple of the importance."""
_EMPTY_ROW: Final = np.array([0.0, 0.0, np.nan, 0.0, np.inf, 0.0])
"""Row of a page to which no fetched page links yet. Columns:

- rank gained
- backlinks gained
- rank handed on
- rank in the last ranking
- bound
- backlinks in the last ranking
"""
_SHARE: Final = 0.5
"""Importance of a page relative to a page in the directory above."""
_HOME: Final = 2.0
"""Importance of a home page relative to another page of its directory."""
_HOMES: Final = frozenset({"", "index", "home", "default", "welcome"})


def bounded_by_trust(ranks: Array, trusts: Array) -> Array:
    """Return the (n,) ranks, each at most `MOST_OF_TRUST` times the page's trust. If the trust is unknown (below 0),
    the rank stays unchanged.

    Pages of a link farm can give each other any rank, but their trust comes from the seeds.

    Source: Gyongyi, Berkhin, Garcia-Molina, Pedersen, *Link spam detection based on mass estimation*, 2006. Deviation:
    a page with much spam mass is not removed; only its rank is limited.
    """
    return np.where(trusts < 0, ranks, np.minimum(ranks, MOST_OF_TRUST * trusts))


class OnlineImportance:
    """Importance gained since the last ranking, from the links of fetched pages.

    - Rank: a fetched page credits its dampened score to its targets in equal parts. At its next fetch, it credits only
      what it gained meanwhile.
    - Backlinks: the number of pages that credited a page.

    Parameters
    ----------
    most : largest number of pages that are kept. When it is exceeded, three groups of a quarter of `most` each stay:
        pages that gained most rank, pages that gained most backlinks, and the fetched pages found last. None: keep all
    blend : gives waiting pages their importance; None: their rank is their importance
    """

    def __init__(self, *, damping: float = 0.9, most: int | None = None, blend: OrderBlend | None = None) -> None:
        self._damping = damping
        self._blend = blend
        self._most = most
        self._pages = KeyRows()
        self.links = 0
        """Number of backlinks counted since the last ranking."""
        self._use(np.empty((len(_EMPTY_ROW), 0)))

    def __len__(self) -> int:
        return len(self._pages)

    def rank(self) -> None:
        """Reset all gains, because a new ranking includes them."""
        self._gained[:] = 0.0
        self._handed_on[:] = np.nan
        self._bounds[:] = np.inf
        self._backlinks[:] = 0.0
        self.links = 0

    def credit(
        self,
        pages: Pages,
        targets: Pages,
        *,
        degrees: Sequence[int],
        scores: Array,
        linked: npt.NDArray[np.bool_],
    ) -> dict[int, float]:
        """Pass importance to the link targets of all fetched pages of a batch. Return the importance of each target
        that reached its bound (`weigh`), keyed by the target's position in `targets`.

        Parameters
        ----------
        pages : n different pages
        targets : the targets of the first page, then those of the second page, and so on. A page has no target twice
        degrees : (n,) number of targets of each page
        scores : (n,) score of each page in the last ranking; PRIOR if this ranking did not contain the page
        linked : (n,) True if the page's links were in this ranking, so that its targets already have their parts of its
            score
        """
        own, rows = self._rows(pages), self._rows(targets)
        handed_on, total = self._handed_on[own], scores + self._gained[own]
        is_first = np.isnan(handed_on)
        before = np.where(is_first, np.where(linked, scores, 0.0), handed_on)
        self._handed_on[own], self._bounds[own] = total, np.inf  # the pages no longer wait
        parts = self._damping * (total - before) / np.maximum(degrees, 1)
        np.add.at(self._gained, rows, np.repeat(parts, degrees))
        new = rows[np.repeat(is_first & ~linked, degrees)]
        np.add.at(self._backlinks, new, 1.0)
        self.links += len(new)
        outgrown = self._outgrown(rows)
        if self._most is not None and len(self._pages) > self._most:
            self._forget(self._most // 4)
        return outgrown

    def _outgrown(self, rows: Rows) -> dict[int, float]:
        """Set a new bound for each page that reached its bound. Return the importance of each page with a new bound,
        keyed by its position in `rows`.
        """
        bounds = self._bounds.take(rows)
        waiting = (bounds < np.inf).nonzero()[0]
        importance = self._importance(rows[waiting])
        risen = (importance >= bounds[waiting]).nonzero()[0]
        places, importance = waiting[risen], importance[risen]
        self._bounds[rows[places]] = _NEXT_RISE * importance
        found = zip(places.tolist(), importance.tolist(), strict=True)
        return dict(dict(zip(rows[places].tolist(), found, strict=True)).values())

    def gains(self, pages: Pages) -> Array:
        """Return the (n,) ranks that pages gained since the last ranking."""
        return np.asarray(self._gained[self._known_rows(pages)])

    def backlinks(self, pages: Pages) -> Array:
        """Return the (n,) numbers of backlinks that pages gained since the last ranking."""
        return np.asarray(self._backlinks[self._known_rows(pages)])

    def weigh(self, pages: Pages, *, ranks: Array, backlinks: Array) -> Array:
        """Return the (n,) importance of waiting pages.

        Set the bound of each page to `RISE` times its importance.

        Parameters
        ----------
        ranks : (n,) ranks by the last ranking, 0 for pages that it did not contain
        backlinks : (n,) number of pages that link to each, by the last ranking, 0 for pages that it did not contain
        """
        rows = self._rows(pages)
        self._ranks[rows], self._ranked_backlinks[rows] = ranks, backlinks
        importance = self._importance(rows)
        self._bounds[rows] = RISE * importance
        return importance

    def _importance(self, rows: Rows) -> Array:
        ranks = self._ranks.take(rows)
        if self._blend is None:
            return np.asarray(np.maximum(ranks, PRIOR) + self._gained.take(rows))
        return self._blend.importance(self._ranked_backlinks.take(rows) + self._backlinks.take(rows), ranks)

    def _known_rows(self, pages: Pages) -> Rows:
        return self._pages.find(np.asarray(pages, np.uint64))

    def _rows(self, pages: Pages) -> Rows:
        """Return the rows of the pages. New pages get rows at the end; row 0 means unknown."""
        rows = self._pages.rows(np.asarray(pages, np.uint64))
        if len(self._pages) >= len(self._gained):
            self._use(self._columns)
        return rows

    def _use(self, columns: Array) -> None:
        known = columns.shape[1]
        room = np.repeat(_EMPTY_ROW[:, np.newaxis], max(2 * known, 2 * len(self._pages) + 2, _FIRST_ROOM), axis=1)
        room[:, :known] = columns
        self._columns = room
        self._gained, self._backlinks, self._handed_on, self._ranks, self._bounds, self._ranked_backlinks = room

    def _forget(self, part: int) -> None:
        keep = np.zeros(len(self._pages) + 1, dtype=np.bool_)
        columns = self._columns[:, : len(keep)]
        for least_first in (np.argsort(columns[0]), np.argsort(columns[1])):
            keep[least_first[-part:]] = True
        keep[np.flatnonzero(~np.isnan(columns[2]))[-part:]] = True
        keep[0] = True
        kept = np.flatnonzero(keep)
        self._pages = KeyRows(self._pages.keys[kept[1:] - 1])
        self._use(columns[:, kept])


def importance_by_depth(paths: Sequence[str]) -> Array:
    """Return the (n,) importances by depth: 1 in the root directory, halved by each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))


def is_home(url: str) -> bool:
    """Return whether a canonical URL is the home page of its site."""
    return path_start(url) == len(url) - 1


def location(urls: Sequence[str]) -> Array:
    """Return the (n,) importances computed from canonical URLs alone. Each directory in the URL halves the importance,
    as does a query; an index page doubles it.

    Source: Cho 1998, section 2 (IL: fewer slashes, "home"). Deviation: all top-level domains count alike.
    """
    paths = [url[path_start(url) :] for url in urls]
    asks = np.array(["?" in path for path in paths])
    homes = np.array([path.split("?", 1)[0].rpartition("/")[2].split(".")[0] in _HOMES for path in paths])
    return importance_by_depth(paths) * np.where(homes, _HOME, 1.0) * np.where(asks, _SHARE, 1.0)
