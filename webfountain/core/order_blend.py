"""A blend of the orders in which waiting pages can be fetched, with weights learned from replays.

Breadth-first order takes pages in the order in which they were found. Backlink order takes pages with the most in-links
first. PageRank order takes pages with the highest rank first; pages that the last ranking did not contain come last.
The best order depends on the web, so `order_replay` simulates a crawl of the known web in each order.

The waiting page at place r of an order gets a value proportional to 1/r. The importance of a page is the weighted mean
of its values in the three orders, relative to the mean over all pages.

Let l(t, k) be the loss of order k in replay t, and w(k) the weight of order k before replay t. The loss of the blend is
L(t) = -ln(sum of w(k) exp(-RATE l(t, k))) / RATE. Over all replays, the sum of L exceeds the sum of l for any order k
by at most ln(1 / PRIOR(k)) / RATE.

Source: Cho 1998, section 4 (the orders); Vovk, *A game of prediction with expert advice*, 1998 (the bound).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.arrays import Array


__all__ = ["ORDERS", "OrderBlend", "weights_by_losses"]

ORDERS: Final = ("breadth-first", "backlinks", "pagerank")
_PRIOR: Final = np.array([1.0, 1.0, 10.0]) / 12.0
"""Weights of the three crawl orders until the first replay. On most webs studied, PageRank order was the best (Cho
1998).
"""
_RATE: Final = 20.0
"""Learning rate: the larger this number is, the more the weights follow the losses in replays."""
_LEAST: Final = 0.1
"""An order is left out if its weight is below this share of the largest weight."""


def weights_by_losses(losses: Sequence[float]) -> Array:
    """Return the (3,) weights of `ORDERS` from the sums of their losses. If there was no replay yet, `losses` is
    empty."""
    weights = _posterior(losses)
    weights = np.where(weights < _LEAST * weights.max(), 0.0, weights)
    return np.asarray(weights / weights.sum())


def _posterior(losses: Sequence[float]) -> Array:
    weights = _PRIOR * np.exp(-_RATE * (np.array(losses) - min(losses))) if losses else _PRIOR
    return np.asarray(weights / weights.sum())


class OrderBlend:
    """Weights of the orders, and the waiting pages' scores at the last ranking."""

    def __init__(self) -> None:
        self.weights: Array = np.array([1.0, 0.0, 0.0])
        """(3,) weights, which sum to 1."""
        self._tables: list[tuple[Array, Array]] = []

    def rank(self, losses: Sequence[float], *, waiting: int, backlinks: Array, ranks: Array) -> None:
        """Compute new weights from losses in replays, and new score tables from a sample of the waiting pages.

        Parameters
        ----------
        losses : sum of each order's losses
        waiting : number of waiting pages
        backlinks, ranks : (s,) scores of the pages of the sample
        """
        self.weights = weights_by_losses(losses)
        self._tables = [_table(backlinks, waiting), _table(ranks, waiting)]

    def importance(self, backlinks: Array, ranks: Array) -> Array:
        """Return the (n,) importance of waiting pages; its mean over all waiting pages is about 1.

        If a page's score exceeds all scores of the sample, its importance grows in proportion to the score.

        Parameters
        ----------
        backlinks : (n,) number of known pages that link to each page
        ranks : (n,) ranks by the last ranking, 0 for pages found since
        """
        total = np.full(len(ranks), self.weights[0])  # equal for all: a lane serves pages by arrival
        for weight, scores, table in zip(self.weights[1:], (backlinks, ranks), self._tables, strict=False):
            if weight:
                top = table[0][-1]
                found = np.interp(scores, *table, left=0.5 * table[1][0])
                total += weight * found * np.maximum(scores / top if top > 0 else 1.0, 1.0)
        return total


def _table(sample: Array, waiting: int) -> tuple[Array, Array]:
    """Return the distinct scores of sampled waiting pages, ascending, and 1/r for each score, where r is its estimated
    place.
    """
    if not len(sample):
        return np.zeros(1), np.ones(1)
    scores, counts = np.unique(sample, return_counts=True)
    better = len(sample) - np.cumsum(counts)
    chances = 1.0 / (1.0 + (better + 0.5 * counts) * (waiting / len(sample)))
    return scores.astype(np.float64), chances * (len(sample) / (chances @ counts))
