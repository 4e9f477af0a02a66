"""The orderings of `simulate ordering`: which known page a virtual crawler takes next.

Each ordering receives the links of a crawled page and returns the next page; those that rank do so at each hundredth
of the web. `Fountain` is our own and uses `core.rank`, as the crawl does.

Source: Cho 1998, section 4 (breadth first, backlinks, PageRank); Abiteboul, Preda, Cobena 2003 (OPIC).
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from webfountain.core.importance import PRIOR, OnlineImportance
from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.lab.simulate.crawled_links import CrawledLinks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

__all__ = [
    "ORDERINGS",
    "Array",
    "Backlinks",
    "BreadthFirst",
    "CrawledGraph",
    "Fountain",
    "Ideal",
    "Opic",
    "Ordering",
    "PageRank",
    "Random",
    "ordering",
]

_TOLERANCE: Final = 1e-3
"""Tolerance of the rankings of the PageRank order; a smaller one gives no better order."""

_STEPS: Final = 10
"""Number of links that a surfer of the fountain order follows from a page found since the last ranking."""

_WARM_STEPS: Final = 5
"""Number of steps from the last scores to the next ones in the fountain order."""

_RETURNED: Final = 0.7
"""Share of its score that a page with unknown links is assumed to return to the pages that link to it."""

_FIRST: Final = 0.0005
_GROWTH: Final = 0.1
"""The fountain order first ranks after this share of the web, then whenever the crawl has grown by this share of
itself or by a hundredth of the web."""

_PART_OF_CASH: Final = 0.5
"""Weight of cash relative to rank in the fountain order's importance."""

_TURNS: Final = (0, 1, 2, 0, 1, 2, 3)
"""Order of turns in the fountain order: likeness, importance, cash, backlinks."""

ORDERINGS = ("breadth-first", "random", "backlinks", "opic", "pagerank", "ideal", "fountain")
"""All names that ``--orderings`` accepts."""


class CrawledGraph:
    """Which pages of a graph are known (n,) and which were crawled (n,); the lists of the other pages must not be
    read."""

    def __init__(self, indptr: npt.NDArray[np.int32], indices: npt.NDArray[np.int32]) -> None:
        self.indptr, self.indices = indptr, indices
        self.graph = LinkGraph.from_csr(indptr, indices)
        self.known = np.zeros(self.graph.nodes, dtype=np.bool_)
        self.crawled = np.zeros(self.graph.nodes, dtype=np.bool_)


class Ordering(Protocol):
    """Decides which page is next. `seconds` is the time spent on rankings."""

    seconds: float

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        """Record that `page` was crawled and links to `targets`, of which `new` were unknown; the start page is its
        own target."""

    def next(self) -> int | None:
        """Return a known page that was not crawled, None if there is none."""

    def rank(self) -> None:
        """Rank, because another hundredth of the web was crawled."""

    def estimates(self) -> Array:
        """Return the (n,) estimated importance of the pages, for a limited buffer."""


class _UnrankedOrdering:
    """The common part of orderings without rankings."""

    def __init__(self, seen: CrawledGraph) -> None:
        self._seen = seen
        self.seconds = 0.0

    def rank(self) -> None:
        """Do nothing: this ordering does not rank."""


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
    """Takes any known page."""

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
    """Takes the known page of greatest true importance."""

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
    """Takes the page with most links from crawled pages; among equals, the one known for longest."""

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
    """Takes the page with most cash: the start has one unit, and a crawled page gives all it has to its targets in
    equal parts."""

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
    """Takes pages by PageRank of the graph seen so far, computed at each hundredth of the web; pages found since then
    come last."""

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


class Fountain:
    """Our ordering: four orders in turn; breadth first until the first ranking.

    Each order finds hot pages that the others miss, so taking turns limits the risk: *importance*, from cash and
    estimated rank; *likeness*, the rank if uncrawled pages are assumed to link to the same pages as those that are
    linked beside them; *cash* (OPIC), which leads to parts not crawled yet, while a ranking alone stays in the large
    sites that are known; and, half as often, *backlinks*. The rank in importance is the mean of two ranks. One is the
    distribution of surfers who started ten links ago from the pages found since the last ranking. It assumes that
    uncrawled pages link back, so recent pages count more than those that have been crawled around for long. The other
    is PageRank of the known pages.

    Rankings read only the links of crawled pages, so early ones are cheap: the first is made after `_FIRST` of the
    web, the next whenever the crawl has grown by `_GROWTH` or a hundredth of the web.
    """

    def __init__(self, seen: CrawledGraph) -> None:
        self._seen = seen
        self._online: OnlineImportance[int] = OnlineImportance()
        self._waiting: deque[int] = deque()
        self._crawled = 0
        self._due = max(1.0, _FIRST * seen.graph.nodes)
        self._scores = np.zeros(seen.graph.nodes)
        self._roaming, self._pagerank, self._alike = self._scores, self._scores, self._scores
        self._rank: list[
            float
        ] = []  # in the last ranking, relative to the mean; PRIOR for pages that it did not contain
        self._likeness: list[float] = []  # the same
        self._more = [0.0] * seen.graph.nodes  # likeness gained since the last ranking
        self._backlinks = [0] * seen.graph.nodes
        self._met = np.zeros(seen.graph.nodes, dtype=np.bool_)
        self._linked = seen.crawled  # number of crawled pages at the last ranking
        self._heaps: tuple[list[tuple[float, int]], ...] = ([], [], [], [])
        self._turn = 0
        self.seconds = 0.0

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        crawled, online = self._seen.crawled, self._online
        if not crawled[page]:
            online.seed(page, float(self._seen.graph.nodes))
            self._waiting.append(page)
            return
        rank = self._rank
        for each in targets:
            self._backlinks[each] += 1
        if rank:
            part = 0.9 * (self._likeness[page] + self._more[page]) / max(1, len(targets))
            for each in targets:
                self._more[each] += part
            online.credit(page, targets, score=rank[page], linked=bool(self._linked[page]))
            for each in targets:
                if not crawled[each]:
                    for heap, worth in zip(self._heaps, self._worths(each), strict=True):
                        heapq.heappush(heap, (-worth, each))
        else:
            online.credit(page, targets, score=PRIOR, linked=False)
            self._waiting.extend(new)
        self._crawled += 1
        if self._crawled >= self._due:
            self._due = self._crawled + max(1.0, min(_GROWTH * self._crawled, 0.01 * self._seen.graph.nodes))
            self._rerank()

    def next(self) -> int | None:
        if not self._rank:
            return self._waiting.popleft() if self._waiting else None
        self._turn = (self._turn + 1) % len(_TURNS)
        for heap in (self._heaps[_TURNS[self._turn]], *self._heaps):
            page = _pop(heap, self._seen)
            if page is not None:
                return page
        return None

    def rank(self) -> None:
        """Do nothing: this ordering decides itself when to rank."""

    def estimates(self) -> Array:
        return self._scores

    def _worths(self, page: int) -> tuple[float, float, float, float]:
        """Return the worth of a page in each order: likeness, importance, cash, backlinks."""
        cash, gain = self._online.cash(page), self._online.gain(page)
        importance = self._rank[page] + gain + _PART_OF_CASH * cash
        return self._likeness[page] + self._more[page], importance, cash, self._backlinks[page]

    def _rerank(self) -> None:
        begin = time.process_time()
        seen, online = self._seen, self._online
        links = CrawledLinks(seen.indptr, seen.indices, seen.known, seen.crawled)
        known = np.flatnonzero(seen.known)
        found = known[~self._met[known]]
        self._met[found] = True
        if len(found):
            self._roaming = np.zeros(seen.graph.nodes)
            self._roaming[found] = PRIOR + online.gains_and_cash(found.tolist())[0]
        self._roaming = links.wander(self._roaming, steps=_STEPS, returned=_RETURNED)
        self._pagerank = links.wander(self._begun(self._pagerank), steps=_WARM_STEPS)
        self._alike = links.wander_alike(self._begun(self._alike), steps=_WARM_STEPS)
        self._scores = 0.5 * (self._roaming + self._pagerank)
        self.seconds += time.process_time() - begin
        online.rank()
        self._rank = np.where(seen.known, self._scores * len(known), PRIOR).tolist()
        self._likeness = np.where(seen.known, self._alike * len(known), PRIOR).tolist()
        self._more = [0.0] * seen.graph.nodes
        self._linked = seen.crawled.copy()
        waiting = known[~seen.crawled[known]].tolist()
        worths = zip(*map(self._worths, waiting), strict=True) if waiting else ((),) * len(self._heaps)
        self._heaps = tuple([(-each, page) for each, page in zip(order, waiting, strict=True)] for order in worths)
        for heap in self._heaps:
            heapq.heapify(heap)

    def _begun(self, last: Array) -> Array:
        """Return (n,) the scores to continue from: the last ones, and an average one for each page found since."""
        known = self._seen.known
        return np.where(known & (last == 0), 1.0 / np.count_nonzero(known), last)


def ordering(name: str, seen: CrawledGraph, *, importance: Array | None, seed: int) -> Ordering:
    """Return the ordering of a name in `ORDERINGS`; `importance` (n,) is the true one, which the ideal ordering
    needs.
    """
    if name == "ideal":
        if importance is None:
            raise ValueError("the ideal ordering needs the importance of the pages")
        return Ideal(seen, importance)
    if name == "random":
        return Random(seen, random.Random(seed))
    plain: dict[str, type[BreadthFirst | Backlinks | Opic | PageRank | Fountain]] = {
        "breadth-first": BreadthFirst,
        "backlinks": Backlinks,
        "opic": Opic,
        "pagerank": PageRank,
        "fountain": Fountain,
    }
    return plain[name](seen)


def _crawled_only(graph: LinkGraph, crawled: npt.NDArray[np.bool_]) -> LinkGraph:
    """Return the graph as a crawler knows it after crawling only some pages. The others have no links in it."""
    return LinkGraph(graph.nodes, graph.blocks, np.where(crawled, graph.share, 0.0))


def _ranked(seen: CrawledGraph, graph: LinkGraph, last: Array | None) -> Array:
    """Return (n,) PageRank of the known pages, started from the last one; a page found since starts with an average
    score."""
    known = seen.known.astype(np.float64)
    start = None if last is None else np.where(seen.known & (last == 0), 1.0 / known.sum(), last)
    return pagerank(graph, teleport=known, start=start, tolerance=_TOLERANCE).scores


def _pop(heap: list[Any], seen: CrawledGraph) -> int | None:
    """Return the page of the least entry (…, page) that was not crawled; entries of lower worth for the same page come
    later."""
    while heap:
        page = int(heapq.heappop(heap)[-1])
        if not seen.crawled[page]:
            return page
    return None
