"""Replay the crawl of the known web, to see how early each order finds the important pages.

Each simulated crawl starts at the first page, and follows stored links until it has visited all crawled pages. The loss
of an order is the mean logarithm of the places at which its simulated crawl visits the important pages.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.link_graph import in_links
from webfountain.core.sparse_product import add_product

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.core.arrays import Array


__all__ = ["Links", "replay_losses"]

_HOT: Final = 0.02
"""Share of the pages that count as important."""
_FEWEST_HOT: Final = 10
_RANKINGS: Final = 50
"""Number of rankings in a simulated crawl in PageRank order."""
_STEPS: Final = 10
"""Number of power-iteration steps per ranking."""
_DAMPING: Final = 0.9
_NUMBER_BITS: Final = 32
_NUMBERS: Final = (1 << _NUMBER_BITS) - 1

Links = list[list[int]]
"""The links of each page, in the order in which the pages were fetched; only links to crawled pages count."""


def replay_losses(links: Links, *, ranks: Array, backlinks: Array) -> list[float]:
    """Return the loss of each of `order_blend.ORDERS`.

    Parameters
    ----------
    links : links of n pages; the crawl began at page 0
    ranks, backlinks : (n,) current importance of the pages by two measures
    """
    pages = len(links)
    many = min(pages, max(_FEWEST_HOT, round(_HOT * pages)))
    hot = np.concatenate([np.argsort(-values, kind="stable")[:many] for values in (ranks, backlinks)])
    losses = []
    for order in (_breadth_first, _by_backlinks, _by_rank):
        places = np.empty(pages, dtype=np.int64)
        places[list(order(links))] = np.arange(pages)
        losses.append(float(np.log1p(places[hot]).mean()))
    return losses


def _breadth_first(links: Links) -> Iterator[int]:
    queue: deque[int] = deque()
    return _crawl(links, lambda _, new: queue.extend(new), lambda: queue.popleft() if queue else None)


def _by_backlinks(links: Links) -> Iterator[int]:
    """Yield the pages by number of backlinks, highest first. Among pages with equally many backlinks, the page found
    first comes first.
    """
    counts, found, crawled = [0] * len(links), [0] * len(links), bytearray(len(links))
    page_of = [0]  # by the number with which a page was found
    # An entry is one number, because a heap of tuples takes twice the time.
    heap: list[int] = []

    def add(page: int, new: Sequence[int]) -> None:
        crawled[page] = True
        for each in new:
            found[each] = len(page_of)
            page_of.append(each)
        for each in links[page]:
            if not crawled[each]:
                counts[each] += 1
                heapq.heappush(heap, found[each] - (counts[each] << _NUMBER_BITS))

    return _crawl(links, add, lambda: page_of[heapq.heappop(heap) & _NUMBERS] if heap else None)


def _by_rank(links: Links) -> Iterator[int]:
    """Yield the pages in the order of the latest ranking; pages that it does not contain come last."""
    pages = len(links)
    degree = np.array(list(map(len, links)), dtype=np.float64)
    targets = np.array([each for row in links for each in row], dtype=np.int32)
    ends = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    starts, sources = in_links(ends, targets, pages)
    ones = np.ones(len(sources))
    share = np.divide(_DAMPING, degree, out=np.zeros(pages), where=degree > 0)
    known, crawled = np.zeros((2, pages), dtype=np.bool_)
    ranks = np.zeros(pages)
    queue: deque[int] = deque()
    done, seen = list[int](), list[int]()  # pages crawled and found since the last ranking
    step = max(1, pages // _RANKINGS)

    def add(page: int, new: Sequence[int]) -> None:
        nonlocal ranks
        done.append(page)
        seen.extend(new)
        queue.extend(new)
        if len(done) == step:
            crawled[done] = known[done] = known[seen] = True
            done.clear()
            seen.clear()
            many = known.sum()
            ranks[known & (ranks == 0)] = 1.0 / many
            ranks /= ranks.sum()
            given = share * crawled
            for _ in range(_STEPS):
                passed, ranks = ranks * given, np.zeros(pages)
                add_product(starts, sources, ones, passed, ranks)
                ranks += (1.0 - ranks.sum()) / many * known
            waiting = np.flatnonzero(known & ~crawled)
            queue.clear()
            queue.extend(waiting[np.argsort(-ranks[waiting], kind="stable")].tolist())

    return _crawl(links, add, lambda: queue.popleft() if queue else None)


def _crawl(links: Links, add: Callable[[int, Sequence[int]], None], take: Callable[[], int | None]) -> Iterator[int]:
    """Yield the pages in the order in which `take` returns them. A page without in-links, such as a second seed, is
    visited only when no other page waits.
    """
    known, crawled = bytearray(len(links)), bytearray(len(links))
    seeds = iter(range(len(links)))
    for _ in links:
        page = take()
        while page is not None and crawled[page]:
            page = take()
        if page is None:
            page = next(each for each in seeds if not known[each])
            known[page] = True
        crawled[page] = True
        new = list(dict.fromkeys([each for each in links[page] if not known[each]]))
        for each in new:
            known[each] = True
        yield page
        add(page, new)
