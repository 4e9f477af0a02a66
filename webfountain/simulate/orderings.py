"""The orderings of `simulate ordering`: which known page a virtual crawler takes next.

Each is told what a crawled page links to and says what comes next; those that rank do so at each hundredth of the
web. `Fountain` is ours and rests on `core.importance` and `core.rank`, as the crawl does.

Source: Cho 1998, section 4 (breadth first, backlinks, PageRank); Abiteboul, Preda, Cobena 2003 (OPIC).
"""

from __future__ import annotations

__all__ = ["ORDERINGS", "Ordering", "Seen", "ordering"]

import heapq
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from webfountain.core.importance import OnlineImportance
from webfountain.core.link_graph import LinkGraph
from webfountain.core.rank import pagerank, wander

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

_TOLERANCE: Final = 1e-3
"""Of the rankings of the PageRank order; a finer one orders no better."""

_STEPS: Final = 10
"""Links that a surfer of the fountain order follows from a page found since the last ranking."""

_RETURNED: Final = 0.7
"""Part of its score that a page whose links are unknown is taken to give back to those that link to it."""


class Seen:
    """What is known (n,) and what was crawled (n,) of a graph; the lists of pages not crawled must not be read."""

    def __init__(self, indptr: npt.NDArray[np.int32], indices: npt.NDArray[np.int32]) -> None:
        self.indptr, self.indices = indptr, indices
        self.graph = LinkGraph.from_csr(indptr, indices)
        self.known = np.zeros(self.graph.nodes, dtype=np.bool_)
        self.crawled = np.zeros(self.graph.nodes, dtype=np.bool_)


class Ordering(Protocol):
    """Which page is next. `seconds` is the time spent on rankings."""

    seconds: float

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        """`page` was crawled and links to `targets`, of which `new` were unknown; the start is its own target."""

    def next(self) -> int | None:
        """A known page that was not crawled, None when there is none."""

    def rank(self) -> None:
        """Another hundredth of the web was crawled."""

    def estimates(self) -> Array:
        """(n,) estimated importance of the pages, for a limited buffer."""


class _Unranked:
    """What the orderings without rankings share."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self.seconds = 0.0

    def rank(self) -> None:
        """There is nothing to rank."""


class BreadthFirst(_Unranked):
    """First come, first served."""

    def __init__(self, seen: Seen) -> None:
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


class Random(_Unranked):
    """Any known page."""

    def __init__(self, seen: Seen, rng: random.Random) -> None:
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


class Ideal(_Unranked):
    """The most important known page by the truth."""

    def __init__(self, seen: Seen, importance: Array) -> None:
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


class Backlinks(_Unranked):
    """Most links from crawled pages first; among equals the one known longest."""

    def __init__(self, seen: Seen) -> None:
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


class Opic(_Unranked):
    """Most cash first: the start has one unit, a crawled page hands all it has to its targets in equal parts."""

    def __init__(self, seen: Seen) -> None:
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
    """By PageRank of the graph seen so far, made anew at each hundredth of the web; pages found since come last."""

    def __init__(self, seen: Seen) -> None:
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
        self._scores = _ranked(self._seen, self._seen.graph.crawled_only(self._seen.crawled), self._scores)
        self.seconds += time.process_time() - begin
        waiting = np.flatnonzero(self._seen.known & ~self._seen.crawled)
        self._queue = deque(waiting[np.argsort(-self._scores[waiting], kind="stable")].tolist())

    def estimates(self) -> Array:
        return self._scores if self._scores is not None else np.zeros(self._seen.graph.nodes)


class Fountain:
    """Ours: two queues in turn, by importance and by cash alone; breadth first until the first ranking.

    *Importance* is cash and estimated rank together. The rank is where surfers are who set out ten links ago from
    what was found since the last ranking, and it takes pages not crawled to link back: so the menu of a site of which
    many pages are known ranks high before they are crawled, and what is new counts more than what the crawl has long
    been among. *Cash* leads where the crawl has not been: a ranking alone stays in the large sites it knows and finds
    the others' hot pages late.
    """

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._online = OnlineImportance()
        self._first: deque[int] = deque()
        self._ranked = False
        self._scores = np.zeros(seen.graph.nodes)
        self._met = np.zeros(seen.graph.nodes, dtype=np.bool_)
        self._by_importance: list[tuple[float, int]] = []
        self._by_cash: list[tuple[float, int]] = []
        self._turn = 1
        self.seconds = 0.0

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        crawled, online = self._seen.crawled, self._online
        if not crawled[page]:
            online.seed(page, float(self._seen.graph.nodes))
            self._first.append(page)
            return
        online.credit(page, targets)
        if not self._ranked:
            self._first.extend(new)
            return
        for each in targets:
            if not crawled[each]:
                cash = online.cash(each)
                heapq.heappush(self._by_importance, (-online.rank(each) - cash, each))
                heapq.heappush(self._by_cash, (-cash, each))

    def next(self) -> int | None:
        if not self._ranked:
            return self._first.popleft() if self._first else None
        self._turn ^= 1
        queues = (self._by_cash, self._by_importance) if self._turn else (self._by_importance, self._by_cash)
        page = _pop(queues[0], self._seen)
        return page if page is not None else _pop(queues[1], self._seen)

    def rank(self) -> None:
        begin = time.process_time()
        seen, online = self._seen, self._online
        graph = seen.graph.crawled_only(seen.crawled).returning(seen.indptr, seen.indices, seen.crawled, _RETURNED)
        known = np.flatnonzero(seen.known)
        found = known[~self._met[known]]
        self._met[found] = True
        start = np.zeros(graph.nodes)
        start[found] = [online.rank(page) for page in found.tolist()]
        everywhere = seen.known.astype(np.float64)
        setting_out = start if len(found) else self._scores
        self._scores = wander(graph, setting_out, teleport=everywhere, steps=_STEPS)
        self.seconds += time.process_time() - begin
        online.publish(
            known.tolist(), (self._scores[known] * len(known)).tolist(), np.flatnonzero(seen.crawled).tolist()
        )
        waiting = known[~seen.crawled[known]].tolist()
        self._by_cash = [(-online.cash(page), page) for page in waiting]
        self._by_importance = [(cash - online.rank(page), page) for cash, page in self._by_cash]
        heapq.heapify(self._by_cash)
        heapq.heapify(self._by_importance)
        self._ranked = True

    def estimates(self) -> Array:
        return self._scores


ORDERINGS = ("breadth-first", "random", "backlinks", "opic", "pagerank", "ideal", "fountain")
"""Every name that ``--orderings`` takes."""


def ordering(name: str, seen: Seen, *, importance: Array | None, seed: int) -> Ordering:
    """The ordering of a name of `ORDERINGS`; `importance` (n,) is the truth, which the ideal one needs."""
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


def _ranked(seen: Seen, graph: LinkGraph, last: Array | None) -> Array:
    """(n,) PageRank of the known pages, from the last one; a page found since starts with an average score."""
    known = seen.known.astype(np.float64)
    start = None if last is None else np.where(seen.known & (last == 0), 1.0 / known.sum(), last)
    return pagerank(graph, teleport=known, start=start, tolerance=_TOLERANCE).scores


def _pop(heap: list[Any], seen: Seen) -> int | None:
    """The page of the least entry (…, page) that was not crawled; a page's entries of lower worth come later."""
    while heap:
        page = int(heapq.heappop(heap)[-1])
        if not seen.crawled[page]:
            return page
    return None
