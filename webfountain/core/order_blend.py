"""A blend of the orders in which waiting pages can be fetched, with weights learned from replays of the known web.

Breadth-first order takes pages as they were found, backlink order those that most pages link to, PageRank order those
of the best rank; pages found since the last ranking come last in it. Which of them finds the important pages early
depends on the web. `order_replay` plays all three over the known part of it, from the same start, and measures the mean
logarithm of the places at which they fetch the pages that are important now. The weights are the posterior that takes
an order's place r of an important page as a forecast with the chance 1/r.

An order gives each waiting page a chance that falls with its place as 1/r. The importance of a page is the mean of
these chances by weight, relative to a mean page.

Bound: let l(t, k) be the loss of order k in replay t, and L(t) = -ln(sum of w(k) exp(-RATE l(t, k))) / RATE that of the
blend with the weights before it. Then over all replays the sum of L exceeds the sum of l of order k by at most
ln(1 / PRIOR(k)) / RATE, however the web is linked: .01 for PageRank order, .12 for the others. A page at place r of an
order with weight w is at most at place 2 r / w of those that the blended orders put before it.

Source: Cho 1998, section 4 (the orders); Vovk, *A game of prediction with expert advice*, 1998 (the bound).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

__all__ = ["ORDERS", "Array", "OrderBlend", "weights_by_losses"]

ORDERS: Final = ("breadth-first", "backlinks", "pagerank")
"""The blended orders."""
_PRIOR: Final = np.array([1.0, 1.0, 10.0]) / 12.0
"""Weights before the first replay. PageRank order was the best of the three on most webs that are known (Cho 1998)."""
_RATE: Final = 20.0
"""Weight of a replay: it counts as this number of important pages. The least number in a replay is about that."""
_LEAST: Final = 0.1
"""Orders with less than this part of the largest weight are left out: each takes the first pages of its own."""


def weights_by_losses(losses: Sequence[float]) -> Array:
    """Return the (3,) weights of `ORDERS` after replays with these sums of losses; none: before the first replay."""
    weights = _PRIOR * np.exp(-_RATE * (np.array(losses) - min(losses))) if losses else _PRIOR
    weights = np.where(weights < _LEAST * weights.max(), 0.0, weights)
    return np.asarray(weights / weights.sum())


class OrderBlend:
    """The weights of the orders, and how the waiting pages were distributed over them at the last ranking."""

    def __init__(self) -> None:
        self.weights: Array = np.array([1.0, 0.0, 0.0])
        """(3,) weights, which sum to 1. Before the first ranking pages are taken in the order in which they were found.
        """
        self._tables: list[tuple[Array, Array]] = []

    def rank(self, losses: Sequence[float], *, waiting: int, backlinks: Array, ranks: Array) -> None:
        """Use the replays of a new ranking, and the backlinks and ranks (s,) of a sample of the `waiting` pages."""
        self.weights = weights_by_losses(losses)
        self._tables = [_table(backlinks, waiting), _table(ranks, waiting)]

    def importance(self, backlinks: Array, ranks: Array) -> Array:
        """Return the (n,) importance of waiting pages, relative to a mean page.

        Above the scores of the last ranking the chance grows with the score. Below them it is half that of the least,
        so pages found since a ranking have a lane of their own.

        Parameters
        ----------
        backlinks : (n,) known pages that link to them
        ranks : (n,) by the last ranking, 0 for pages found since
        """
        total = np.full(len(ranks), self.weights[0])  # who came first is first within a lane
        for weight, scores, table in zip(self.weights[1:], (backlinks, ranks), self._tables, strict=False):
            if weight:
                top = table[0][-1]
                found = np.interp(scores, *table, left=0.5 * table[1][0])
                total += weight * found * np.maximum(scores / top if top > 0 else 1.0, 1.0)
        return total


def _table(sample: Array, waiting: int) -> tuple[Array, Array]:
    """Return the scores of a sample of the waiting pages, ascending, and the chances of a page with each score."""
    if not len(sample):
        return np.zeros(1), np.ones(1)
    scores, counts = np.unique(sample, return_counts=True)
    better = len(sample) - np.cumsum(counts)
    chances = 1.0 / (1.0 + (better + 0.5 * counts) * (waiting / len(sample)))
    return scores.astype(np.float64), chances * (len(sample) / (chances @ counts))
