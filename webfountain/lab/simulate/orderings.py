"""The orderings of `simulate ordering`, which choose the next page of a virtual crawler.

Each ordering receives the links of a crawled page and returns the next page. Orderings that use rankings compute a new
one whenever another hundredth of the web has been crawled.

Source: Cho 1998, section 4 (breadth first, backlinks, PageRank); Abiteboul, Preda, Cobena 2003 (OPIC).
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.lab.simulate.live_order import LiveOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.lab.simulate.crawled_graph import CrawledGraph

    Array = npt.NDArray[np.float64]

__all__ = [
    "ORDERINGS",
    "Array",
    "Backlinks",
    "BreadthFirst",
    "Ideal",
    "LiveOrder",
    "Opic",
    "Ordering",
    "PageRank",
    "Random",
    "ordering",
]

_TOLERANCE: Final = 1e-3
"""Tolerance of the rankings in PageRank order."""

ORDERINGS = ("breadth-first", "random", "backlinks", "opic", "pagerank", "ideal", "fountain")
"""All names that ``--orderings`` accepts."""


class Ordering(Protocol):
    """An ordering decides which page is crawled next."""

    seconds: float

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        """Record a crawled `page` with its `targets`, of which `new` were unknown."""

    def next(self) -> int | None:
        """Return a known page that was not crawled, or None if there is none."""

    def rank(self) -> None:
        """Compute a new ranking; called whenever another hundredth of the web has been crawled."""

    def estimates(self) -> Array:
        """Return the (n,) estimated importance of the pages."""


class _UnrankedOrdering:
    """Base class of the orderings that compute no ranking."""

    def __init__(self, seen: CrawledGraph) -> None:
        self._seen = seen
        self.seconds = 0.0

    def rank(self) -> None:
        """Do nothing."""


class BreadthFirst(_UnrankedOrdering):
    """Takes pages in the order in which they were found."""

    def __init__(self, seen: CrawledGraph) -> None:
        super().__init__(seen)
        self._queue: deque[int] = deque()
        self._arrivals = np.zeros(seen.graph.nodes)
        self._count = 0

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        self._queue.extend(new)
        self._arrivals[list(new)] = -np.arange(self._count, self._count + len(new))
        self._count += len(new)

    def next(self) -> int | None:
        return self._queue.popleft() if self._queue else None

    def estimates(self) -> Array:
        return self._arrivals


class Random(_UnrankedOrdering):
    """Takes a random known page."""

    def __init__(self, seen: CrawledGraph, rng: random.Random) -> None:
        super().__init__(seen)
        self._rng, self._pages = rng, list[int]()
        self._luck = np.random.default_rng(rng.getrandbits(63)).random(seen.graph.nodes)

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        self._pages.extend(new)

    def next(self) -> int | None:
        if not self._pages:
            return None
        place = self._rng.randrange(len(self._pages))
        self._pages[place], self._pages[-1] = self._pages[-1], self._pages[place]
        return self._pages.pop()

    def estimates(self) -> Array:
        return self._luck


class Ideal(_UnrankedOrdering):
    """Takes the known page with the greatest true importance."""

    def __init__(self, seen: CrawledGraph, importance: Array) -> None:
        super().__init__(seen)
        self._importance = importance
        self._heap: list[tuple[float, int]] = []

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        for each in new:
            heapq.heappush(self._heap, (-float(self._importance[each]), each))

    def next(self) -> int | None:
        return heapq.heappop(self._heap)[1] if self._heap else None

    def estimates(self) -> Array:
        return self._importance


class Backlinks(_UnrankedOrdering):
    """Takes the page with the most links from crawled pages. Among pages with equally many links, the page known for
    longest comes first.
    """

    def __init__(self, seen: CrawledGraph) -> None:
        super().__init__(seen)
        self._counts = [0] * seen.graph.nodes
        self._arrival: dict[int, int] = {}
        self._heap: list[tuple[int, int, int]] = []

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        arrival = self._arrival
        for each in new:
            arrival[each] = len(arrival)
        counts, crawled = self._counts, self._seen.crawled
        for each in targets:
            counts[each] += 1
            if not crawled[each]:
                heapq.heappush(self._heap, (-counts[each], arrival[each], each))

    def next(self) -> int | None:
        return _pop(self._heap, self._seen)

    def estimates(self) -> Array:
        return np.array(self._counts, dtype=np.float64)


class Opic(_UnrankedOrdering):
    """Takes the page with the most cash. At the beginning, the start page has one unit of cash. A crawled page gives
    all its cash to its targets in equal parts.
    """

    def __init__(self, seen: CrawledGraph) -> None:
        super().__init__(seen)
        self._cash = [0.0] * seen.graph.nodes
        self._heap: list[tuple[float, int, int]] = []

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        cash, crawled = self._cash, self._seen.crawled
        part = cash[page] / len(targets) if crawled[page] and targets else 1.0
        for each in targets:
            cash[each] += part
            if not crawled[each]:
                heapq.heappush(self._heap, (-cash[each], each, each))

    def next(self) -> int | None:
        return _pop(self._heap, self._seen)

    def estimates(self) -> Array:
        return np.array(self._cash)


class PageRank:
    """Takes the page with the highest PageRank in the known graph. Pages that were found after the last ranking come
    last.
    """

    def __init__(self, seen: CrawledGraph) -> None:
        self._seen = seen
        self._queue: deque[int] = deque()
        self._scores: Array | None = None
        self.seconds = 0.0

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        self._queue.extend(new)

    def next(self) -> int | None:
        return self._queue.popleft() if self._queue else None

    def rank(self) -> None:
        begin = time.process_time()
        self._scores = _ranked(self._seen, _crawled_only(self._seen.graph, self._seen.crawled), self._scores)
        self.seconds += time.process_time() - begin
        waiting = np.flatnonzero(self._seen.known & ~self._seen.crawled)
        self._queue = deque(waiting[np.argsort(-self._scores[waiting], kind="stable")].tolist())

    def estimates(self) -> Array:
        return self._scores if self._scores is not None else np.zeros(self._seen.graph.nodes)


def ordering(name: str, seen: CrawledGraph, *, importance: Array | None, seed: int) -> Ordering:
    """Return the ordering called `name`, one of `ORDERINGS`. The ideal ordering needs the true `importance` (n,)."""
    if name == "ideal":
        if importance is None:
            raise ValueError("the ideal ordering needs the importance of the pages")
        return Ideal(seen, importance)
    if name == "random":
        return Random(seen, random.Random(seed))
    plain: dict[str, type[BreadthFirst | Backlinks | Opic | PageRank | LiveOrder]] = {
        "breadth-first": BreadthFirst,
        "backlinks": Backlinks,
        "opic": Opic,
        "pagerank": PageRank,
        "fountain": LiveOrder,
    }
    return plain[name](seen)


def _crawled_only(graph: LinkGraph, crawled: npt.NDArray[np.bool_]) -> LinkGraph:
    return LinkGraph(graph.nodes, graph.blocks, np.where(crawled, graph.share, 0.0))


def _ranked(seen: CrawledGraph, graph: LinkGraph, last: Array | None) -> Array:
    """Return the (n,) PageRank of the known pages."""
    known = seen.known.astype(np.float64)
    start = None if last is None else np.where(seen.known & (last == 0), 1.0 / known.sum(), last)
    return pagerank(graph, teleport=known, start=start, tolerance=_TOLERANCE).scores


def _pop(heap: list[Any], seen: CrawledGraph) -> int | None:
    """Remove and return the first uncrawled page of a heap, dropping the crawled pages before it; None if all were
    crawled.
    """
    while heap:
        page = int(heapq.heappop(heap)[-1])
        if not seen.crawled[page]:
            return page
    return None
