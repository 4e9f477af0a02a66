"""The known links of a partial crawl, with models of the links that are not known.

Place in the walk: the orderings of a simulated crawl use it (`orderings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.link_graph import shares
from webfountain.core.pagerank import DAMPING

if TYPE_CHECKING:
    import numpy.typing as npt
    from scipy.sparse import csr_array

    from webfountain.core.link_graph import Ints
    from webfountain.core.model import Array

__all__ = ["CrawledLinks"]


class CrawledLinks:
    """The known links of a partial crawl, and models of how surfers continue at pages whose links are unknown.

    Most known pages are not crawled, and the result depends on what is assumed about their links. There are three
    assumptions: An uncrawled page links to all pages equally (`wander` with `returned` 0: PageRank). It links back to
    the pages that link to it (`wander`). It links to the same pages as those crawled pages that are linked from the
    same pages (`wander_alike`). Each costs as much as following the links of the crawled pages.

    Parameters
    ----------
    indptr, indices : successor lists of n pages; only those of `crawled` pages are read
    known, crawled : (n,) masks: the crawled pages with all pages that they link to; the crawled pages
    """

    def __init__(
        self, indptr: Ints, indices: Ints, known: npt.NDArray[np.bool_], crawled: npt.NDArray[np.bool_]
    ) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  (0.3 s at start)

        self._known = known
        self._rows = np.flatnonzero(crawled)
        degree = np.diff(indptr)[self._rows]
        starts = np.concatenate([[0], np.cumsum(degree)])
        targets = indices[np.arange(starts[-1]) + np.repeat(indptr[self._rows] - starts[:-1], degree)]
        ones = np.ones(len(targets))

        def rows_to(chosen: npt.NDArray[np.bool_]) -> csr_array[np.float64, tuple[int, int]]:
            ends = np.concatenate([[0], np.cumsum(chosen)])[starts]
            return csr_array((ones[: ends[-1]], targets[chosen], ends), shape=(len(self._rows), len(known)))

        inner = crawled[targets]
        self._inner, self._outer = rows_to(inner), rows_to(~inner)
        self._share = shares(degree)
        self._inner_share = shares(np.diff(self._inner.indptr))
        self._outer_share = shares(np.bincount(targets[~inner], minlength=len(known)))

    def wander(self, start: Array, *, steps: int, returned: float = 0.0) -> Array:
        """Return the (n,) distribution of random surfers who start from `start`. On an uncrawled page, the share
        `returned` of the surfers goes back to the pages that link to it.

        An uncrawled page is more likely to link to the page that links to it (home page, menu) than to any page: most
        links within a site are mutual. The result is a PageRank that still depends on the start. It depends on the
        start more, the fewer steps are made.

        Parameters
        ----------
        start : (n,) weights >= 0, not all 0; a surfer who follows no link continues at any known page
        returned : 0..1, split among the crawled pages that link to the page
        """
        at: Array = start / start.sum()
        for _ in range(steps):
            given = at[self._rows] * (DAMPING * self._share)
            back = (DAMPING * returned) * (self._outer @ (at * self._outer_share)) if returned else None
            at = self._follow(given)
            if back is not None:
                at[self._rows] += back
            self._go_on(at)
        return at

    def wander_alike(self, start: Array, *, steps: int) -> Array:
        """Return the same as `wander` under the third assumption. A surfer on an uncrawled page continues as if on a
        crawled page that is linked from the same page.

        Pages that are linked from one page, such as the articles of a list, mostly have similar links: the menu, that
        list, their neighbours, or none. If none of them was crawled, the page that links to them is used in their
        place.
        """
        at: Array = start / start.sum()
        alone = self._inner_share == 0
        for _ in range(steps):
            beside = self._outer @ (at * self._outer_share)
            acting = at[self._rows] + (self._inner.T @ (beside * self._inner_share))[self._rows]
            acting[alone] += beside[alone]
            at = self._follow(acting * (DAMPING * self._share))
            self._go_on(at)
        return at

    def _follow(self, given: Array) -> Array:
        """Return the (n,) amounts that targets receive if each crawled page gives `given` to each of its targets."""
        return np.asarray(self._inner.T @ given + self._outer.T @ given)

    def _go_on(self, at: Array) -> None:
        """Distribute the surfers who followed no link evenly over the known pages."""
        at[self._known] += (1.0 - at.sum()) / np.count_nonzero(self._known)
