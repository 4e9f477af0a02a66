"""Importance of a page: from a ranking, between two rankings, or from several scores.

Scores are multiples of the mean of the known pages: a page of score 1 is an average page. So a score keeps its meaning
when a larger web is ranked. `ranking` publishes the scores of a ranking. Between two rankings, `OnlineImportance`
credits the targets of each fetched page. The store decides in which lane of its site a page waits
(`store.lanes.class_of`). `location` computes importance from a page's place in the site alone.

Source: Abiteboul, Preda, Cobena, *Adaptive on-line page importance computation*, 2003 (cash); Policies 2006 (several
scores, weighed by the page's policy); Cho 1998, section 2 (combined metrics, location).
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


__all__ = [
    "METRICS",
    "MOST_OF_TRUST",
    "PRIOR",
    "Array",
    "OnlineImportance",
    "bounded_by_trust",
    "importance_by_depth",
    "is_home",
    "location",
    "worth_of_waiting",
]

_Page = TypeVar("_Page", bound="Hashable")
METRICS: Final = ("pagerank", "trust", "backlinks", "topic", "location")
"""Names of the scores that a policy can weigh, in the order in which a page's record stores them."""
PRIOR: Final = 0.1
"""Score of a page whose in-links are unknown: what every page has without links, 1 - d at d = 0.9."""
MOST_OF_TRUST: Final = 4.0
"""Largest rank of a page as a multiple of its trust from the seeds; both are relative to their means."""
_FEW: Final = 500
_AGAIN: Final = 4.0
_EMPTY_ROW: Final = np.array([0.0, np.nan, np.nan, np.nan, np.inf, 0.0])
"""Row of an unknown page: gained, cash, handed on, rank, bound, backlinks."""
_SHARE: Final = 0.5
"""Importance of a page relative to a page one directory above."""
_HOME: Final = 2.0
"""Importance of a home page relative to another page of its directory."""
_HOMES: Final = frozenset({"", "index", "home", "default", "welcome"})


def bounded_by_trust(ranks: Array, trusts: Array) -> Array:
    """Return the (n,) ranks, each limited to `MOST_OF_TRUST` times the page's trust. Where the trust is unknown (below
    0) the rank stays.

    Pages of a link farm give each other any amount of rank. Trust comes from the seeds and is divided at each link. A
    good page has about as much rank as trust.

    Source: Gyongyi, Berkhin, Garcia-Molina, Pedersen, *Link spam detection based on mass estimation*, 2006. Deviation:
    a page with much spam mass is not removed; it keeps the bounded rank.
    """
    return np.where(trusts < 0, ranks, np.minimum(ranks, MOST_OF_TRUST * trusts))


def worth_of_waiting(rank: Array, cash: Array) -> Array:
    """Return the (n,) worth of waiting pages: the geometric mean of rank and cash, both (n,) relative to their means.

    An order by rank alone stays in the large sites that are already known. An order by cash alone leads to unknown
    parts of the web, whether they are important or not. The product prefers pages for which both are high, whatever
    the scale of either. Of the single orders that `bench_ordering` compares on all graphs, this one was the best. A
    page with unknown cash (nan) is worth its rank.
    """
    return np.where(np.isnan(cash), rank, np.sqrt(rank * cash))


class OnlineImportance(Generic[_Page]):
    """Importance gained since the last ranking: rank from new links, and cash that flows to pages not yet crawled.

    *Rank*: a fetched page credits its dampened score to its targets in equal parts, in addition to their rank by the
    last ranking. *Cash*: a seed starts with some. A fetch moves all cash of the page to its targets, so cash collects
    at pages that few crawled paths lead out of. A page that is fetched again passes on only the cash that it received
    since its last fetch. So frequent fetches inflate no score. *Backlinks*: the number of pages that credited a page
    since the last ranking, without links that the ranking contained.

    Each page is a row in a few arrays: crediting a page's links costs a few array operations and one dict look-up per
    link.

    Parameters
    ----------
    most : largest number of pages that are kept. Beyond it, four groups of a quarter of `most` each stay: pages with
        most cash, pages that gained most, and of the fetched pages those found last. None: keep all
    by_rank : order waiting pages by rank alone; the square of the rank is compared with the bound
    """

    def __init__(self, *, damping: float = 0.9, most: int | None = None, by_rank: bool = False) -> None:
        self._damping = damping
        self._by_rank = by_rank
        self._most = most
        self._row_of: dict[_Page, int] = {}
        self.links = 0
        """Number of backlinks counted since the last ranking."""
        self._use(np.empty((len(_EMPTY_ROW), 0)))

    def __len__(self) -> int:
        return len(self._row_of)

    def seed(self, page: _Page, cash: float) -> None:
        """Add cash to a page."""
        [row] = self._rows([page])
        self._cash[row] = self.cash(page) + cash

    def rank(self) -> None:
        """Reset the gains, because a new ranking includes all that was credited. Cash stays."""
        self._gained[:] = 0.0
        self._handed_on[:] = np.nan
        self._bounds[:] = np.inf
        self._backlinks[:] = 0.0
        self.links = 0

    def credit(
        self,
        page: _Page,
        targets: Sequence[_Page],
        *,
        score: float,
        linked: bool,
        endowed: float = 0.0,
        scale: float = 1.0,
    ) -> dict[int, float]:
        """Credit the targets of a fetched page; `targets` has no duplicates. Return the outgrown targets: a dict from
        their place in `targets` to their product.

        A target is outgrown when its product of rank and cash (`by_rank`: the square of the rank) reaches its bound.
        Its bound is then set to `_AGAIN` times the product.

        Parameters
        ----------
        score : of the page in the last ranking; PRIOR if that ranking did not contain the page
        linked : the page's links were in that ranking, so its targets already have their parts of that score
        endowed : cash of the page if it has received none
        scale : factor of the cash in the product of rank and cash that is compared with a bound (`expect`)
        """
        own, *named = self._rows([page, *targets])
        cash, gained, handed_on = float(self._cash[own]), float(self._gained[own]), float(self._handed_on[own])
        spent = endowed if isnan(cash) else cash
        self._cash[own] = np.nan
        self._handed_on[own] = score + gained
        outgrown: dict[int, float] = {}
        if named:
            before = (score if linked else 0.0) if isnan(handed_on) else handed_on
            rows = np.array(named, dtype=np.intp)
            if isnan(handed_on) and not linked:
                self._backlinks[rows] += 1.0
                self.links += len(named)
            held = np.fmax(self._cash.take(rows), 0.0)
            held += spent / len(named)
            self._cash[rows] = held
            worth = self._gained.take(rows)
            worth += self._damping * (score + gained - before) / len(named)
            self._gained[rows] = worth
            worth += self._ranks.take(rows)
            worth *= worth if self._by_rank else held * scale
            places = (worth >= self._bounds.take(rows)).nonzero()[0]
            if len(places):
                products = worth[places]
                self._bounds[rows[places]] = _AGAIN * products
                outgrown = dict(zip(places.tolist(), products.tolist(), strict=True))
        if self._most is not None and len(self._row_of) > self._most:
            self._forget(self._most // 4)
        return outgrown

    def gain(self, page: _Page) -> float:
        """Return the score that a page gained since the last ranking."""
        return float(self._gained[self._row_of.get(page, 0)])

    def cash(self, page: _Page, absent: float = 0.0) -> float:
        """Return the cash that a page received since its last fetch. If it received none, or was forgotten, return
        `absent`.
        """
        found = float(self._cash[self._row_of.get(page, 0)])
        return absent if isnan(found) else found

    def gains_and_cash(self, pages: Sequence[_Page]) -> tuple[Array, Array]:
        """Return the (n,) gains and the (n,) cash of pages. Cash is nan for pages that received none."""
        row_of = self._row_of
        rows = np.array([row_of.get(page, 0) for page in pages], dtype=np.intp)
        return self._gained[rows], self._cash[rows]

    def backlinks(self, pages: Sequence[_Page]) -> Array:
        """Return the (n,) number of pages that link to each page and were found to do so since the last ranking."""
        row_of = self._row_of
        return np.asarray(self._backlinks[[row_of.get(page, 0) for page in pages]])

    def expect(self, pages: Sequence[_Page], ranks: Array, bounds: Array) -> None:
        """Store the last ranking's rank and a bound of the product of rank and cash for waiting pages, (n,) each."""
        rows = np.array(self._rows(pages), dtype=np.intp)
        self._ranks[rows], self._bounds[rows] = ranks, bounds

    def _rows(self, pages: Sequence[_Page]) -> list[int]:
        """Return the rows of the pages; pages without a row get one at the end. Row 0 stands for unknown pages."""
        row_of = self._row_of
        # Most pages are known, and these look-ups are the largest cost of a credit.
        rows: list[int] = list(map(row_of.get, pages))  # type: ignore[arg-type]
        if None in rows:
            for place, row in enumerate(rows):
                if row is None:
                    rows[place] = row_of.setdefault(pages[place], len(row_of) + 1)
        if len(row_of) >= len(self._cash):
            self._use(self._columns)
        return rows

    def _use(self, columns: Array) -> None:
        """Keep only these rows, and allocate room for as many more."""
        known = columns.shape[1]
        room = np.repeat(_EMPTY_ROW[:, np.newaxis], 2 * max(known, len(self._row_of) + 1, _FEW), axis=1)
        room[:, :known] = columns
        self._columns = room
        self._gained, self._cash, self._handed_on, self._ranks, self._bounds, self._backlinks = room

    def _forget(self, part: int) -> None:
        """Forget all pages but the `part` best of each group."""
        pages = list(self._row_of)
        keep = np.zeros(len(pages) + 1, dtype=np.bool_)
        columns = self._columns[:, : len(keep)]
        for least_first in (np.argsort(columns[0]), np.argsort(np.fmax(columns[1], -1.0))):
            keep[least_first[-part:]] = True
        keep[np.flatnonzero(~np.isnan(columns[2]))[-part:]] = True
        keep[0] = True
        kept = np.flatnonzero(keep)
        self._row_of = {pages[old - 1]: new for new, old in enumerate(kept.tolist()) if old}
        self._use(columns[:, kept])


def importance_by_depth(paths: Sequence[str]) -> Array:
    """Return the (n,) importances by depth: 1 for a page in the root directory, half for each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))


def is_home(url: str) -> bool:
    """Return whether a canonical URL is the home page of its site."""
    return path_start(url) == len(url) - 1


def location(urls: Sequence[str]) -> Array:
    """Return the (n,) importances by URL alone: halved for each directory, doubled for the index page of a directory.

    `urls` are canonical. The importance of a page with a query is halved.

    Source: Cho 1998, section 2 (IL: fewer slashes, "home"). Deviation: all top-level domains count alike.
    """
    paths = [url[path_start(url) :] for url in urls]
    asks = np.array(["?" in path for path in paths])
    homes = np.array([path.split("?", 1)[0].rpartition("/")[2].split(".")[0] in _HOMES for path in paths])
    return importance_by_depth(paths) * np.where(homes, _HOME, 1.0) * np.where(asks, _SHARE, 1.0)
