"""Virtual crawlers over a recorded link graph: which find the important pages soon, and what caches their links meet.

`simulate ordering`: a crawler starts at one page, knows of the graph what the pages it crawled link to, and takes the
next page by its ordering until none is left. How well they do is told by one of the models of Cho 1998: *threshold*
(PST, share of the hot pages crawled so far), *crawl-and-stop* (PCS, share of the K most important pages among the
first K) and *limited-buffer* (PBC, share of the hot pages in a buffer from which the page of least estimated
importance goes first).

Source: Cho 1998, sections 3 and 4.

The orderings of `simulate ordering`: which known page a virtual crawler takes next. Each is told what a crawled page
links to and says what comes next; those that rank do so at each hundredth of the web. `Fountain` is ours and rests on
`core.rank`, as the crawl does.

Source: Cho 1998, section 4 (breadth first, backlinks, PageRank); Abiteboul, Preda, Cobena 2003 (OPIC).

`simulate urlcache`: the links of a virtual crawl, in the order they are met, through caches of URLs seen lately. Each
page's links are asked for in a batch, as the crawl does. The full trace holds every link; the trace *between ants*
only those that lead from one ant's site to another ant's, each ant with a cache of its own, as the host splitter has
(Broder 2003, section 6). STATIC is learnt from a crawl of the same graph from another start. A graph without URLs has
no sites: runs of consecutive page numbers stand for them.

Source: Broder 2003, sections 4 to 6, Figures 2 to 5.
"""

from __future__ import annotations

import heapq
import random
import time
import zipfile
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from webfountain.core.rank import PRIOR, LinkGraph, LinksSeen, OnlineImportance, pagerank
from webfountain.core.url_cache import (
    ClockCache,
    LruCache,
    MinCache,
    RandomCache,
    StaticCache,
    UrlCache,
    next_requests,
)
from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]
    from collections.abc import Iterator, Mapping

    Requests = npt.NDArray[np.int64]

__all__ = [
    "MODELS",
    "ORDERINGS",
    "POLICIES",
    "Crawl",
    "GraphFile",
    "GraphSeen",
    "LinkTrace",
    "Ordering",
    "between_ants",
    "crawl",
    "crawl_trace",
    "hot_pages",
    "load_graph",
    "miss_rate",
    "ordering",
    "shares",
    "simulate_ordering",
    "simulate_urlcache",
]

_TOLERANCE: Final = 1e-3
"""Of the rankings of the PageRank order; a finer one orders no better."""

_STEPS: Final = 10
"""Links that a surfer of the fountain order follows from a page found since the last ranking."""

_WARM_STEPS: Final = 5
"""Steps from the last scores to the next ones of the fountain order."""

_RETURNED: Final = 0.7
"""Part of its score that a page whose links are unknown is taken to give back to those that link to it."""

_FIRST: Final = 0.0005
_GROWTH: Final = 0.1
"""The fountain order ranks first after this part of the web, then whenever the crawl has grown by this part of itself,
at the latest by a hundredth of the web."""

_PART_OF_CASH: Final = 0.5
"""What cash counts beside rank in the fountain order's importance."""

_TURNS: Final = (0, 1, 2, 0, 1, 2, 3)
"""Whose turn it is in the fountain order: likeness, importance, cash, backlinks."""


class GraphSeen:
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

    def __init__(self, seen: GraphSeen) -> None:
        self._seen = seen
        self.seconds = 0.0

    def rank(self) -> None:
        """There is nothing to rank."""


class BreadthFirst(_Unranked):
    """First come, first served."""

    def __init__(self, seen: GraphSeen) -> None:
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

    def __init__(self, seen: GraphSeen, rng: random.Random) -> None:
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

    def __init__(self, seen: GraphSeen, importance: Array) -> None:
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

    def __init__(self, seen: GraphSeen) -> None:
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

    def __init__(self, seen: GraphSeen) -> None:
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

    def __init__(self, seen: GraphSeen) -> None:
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
    """Ours: four orders in turn; breadth first until the first ranking.

    Each sees hot pages that the others are blind for, so that taking turns is a hedge: *importance*, cash and estimated
    rank together; *likeness*, the rank where pages not crawled are taken to link as those that are linked beside them;
    *cash* (OPIC), which leads where the crawl has not been, while a ranking alone stays in the large sites it knows;
    and, half as often, *backlinks*. The rank within importance is the mean of two. One is where surfers are who set
    out ten links ago from what was found since the last ranking, and it takes pages not crawled to link back, so that
    what is new counts more than what the crawl has long been among. The other is PageRank of what is known.

    Rankings read the crawled pages' links alone and cost the less the earlier they are: the first comes after
    `_FIRST` of the web, the next whenever the crawl has grown by `_GROWTH` or a hundredth of the web.
    """

    def __init__(self, seen: GraphSeen) -> None:
        self._seen = seen
        self._online: OnlineImportance[int] = OnlineImportance()
        self._waiting: deque[int] = deque()
        self._crawled = 0
        self._due = max(1.0, _FIRST * seen.graph.nodes)
        self._scores = np.zeros(seen.graph.nodes)
        self._roaming, self._pagerank, self._alike = self._scores, self._scores, self._scores
        self._rank: list[float] = []  # of the last ranking, relative to the mean; PRIOR of what it did not know
        self._likeness: list[float] = []  # the same
        self._more = [0.0] * seen.graph.nodes  # likeness gained since the last ranking
        self._backlinks = [0] * seen.graph.nodes
        self._met = np.zeros(seen.graph.nodes, dtype=np.bool_)
        self._linked = seen.crawled  # what was crawled at the last ranking
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
        """It ranks by a clock of its own."""

    def estimates(self) -> Array:
        return self._scores

    def _worths(self, page: int) -> tuple[float, float, float, float]:
        """Of a page by each order: likeness, importance, cash, backlinks."""
        cash, gain = self._online.cash(page), self._online.gain(page)
        importance = self._rank[page] + gain + _PART_OF_CASH * cash
        return self._likeness[page] + self._more[page], importance, cash, self._backlinks[page]

    def _rerank(self) -> None:
        begin = time.process_time()
        seen, online = self._seen, self._online
        links = LinksSeen(seen.indptr, seen.indices, seen.known, seen.crawled)
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
        """(n,) where to go on from: the last scores, and an average one of each page found since."""
        known = self._seen.known
        return np.where(known & (last == 0), 1.0 / np.count_nonzero(known), last)


ORDERINGS = ("breadth-first", "random", "backlinks", "opic", "pagerank", "ideal", "fountain")
"""Every name that ``--orderings`` takes."""


def ordering(name: str, seen: GraphSeen, *, importance: Array | None, seed: int) -> Ordering:
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


def _ranked(seen: GraphSeen, graph: LinkGraph, last: Array | None) -> Array:
    """(n,) PageRank of the known pages, from the last one; a page found since starts with an average score."""
    known = seen.known.astype(np.float64)
    start = None if last is None else np.where(seen.known & (last == 0), 1.0 / known.sum(), last)
    return pagerank(graph, teleport=known, start=start, tolerance=_TOLERANCE).scores


def _pop(heap: list[Any], seen: GraphSeen) -> int | None:
    """The page of the least entry (…, page) that was not crawled; a page's entries of lower worth come later."""
    while heap:
        page = int(heapq.heappop(heap)[-1])
        if not seen.crawled[page]:
            return page
    return None


MODELS = ("threshold", "crawl-and-stop", "limited-buffer")
PERCENTS: Final = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""Shares of the crawl, per cent, of which the document tells."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """Successor lists of n pages: (n+1,) starts and (m,) targets."""

    indptr: npt.NDArray[np.int32]
    indices: npt.NDArray[np.int32]

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, slots=True)
class Crawl:
    """Pages (k,) in the order they were crawled; a buffer's at each hundredth of the web; CPU seconds of ranking."""

    order: Pages
    buffers: list[Pages]
    seconds: float


def load_graph(file: Path) -> GraphFile:
    """Read `indptr` and `indices` of an npz file; InputError when it has none or they are no successor lists."""
    try:
        with np.load(file) as arrays:
            graph = GraphFile(arrays["indptr"], arrays["indices"])
    except OSError as error:
        raise InputError(f"--graph: {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--graph: {file}: no npz with the arrays indptr and indices ({error})") from error
    starts, targets = graph.indptr, graph.indices
    if starts.ndim != 1 or targets.ndim != 1 or not len(starts) or starts[0] != 0 or starts[-1] != len(targets):
        raise InputError(f"--graph: {file}: indptr and indices are no successor lists")
    if (np.diff(starts) < 0).any() or (len(targets) and not 0 <= targets.min() <= targets.max() < graph.nodes):
        raise InputError(f"--graph: {file}: indptr must not fall, indices lie within 0..{graph.nodes - 1}")
    return graph


def simulate_ordering(
    graph: Path,
    *,
    start: int,
    orderings: Sequence[str],
    hot_share: float | None = None,
    hot_backlinks: int | None = None,
    model: str = "threshold",
    buffer_share: float = 0.1,
    seed: int = 0,
    plot: Path | None = None,
) -> dict[str, Any]:
    """Crawl a graph by each ordering; returns the JSON document of `simulate ordering` (DESIGN section 7).

    Parameters
    ----------
    graph : an npz file with `indptr` and `indices`
    start : the page that is known first
    hot_share : the hot pages are this share of all, by PageRank (0.01 unless given) ...
    hot_backlinks : ... or those with as many backlinks
    buffer_share : pages that a limited buffer holds, as a share of all
    plot : folder for the curves as PNG and SVG

    `nodes` counts the pages of the graph, `seconds` the time an ordering spent on ranking, `area` is the mean of the
    curve over the crawl, 0..1.

    Raises InputError for an argument or a file that cannot be used, before anything is crawled.
    """
    web = load_graph(graph)
    names = _chosen("--orderings", orderings, ORDERINGS)
    if not 0 <= start < web.nodes:
        raise InputError(f"--start: {start} is not within 0..{web.nodes - 1}")
    if model not in MODELS:
        raise InputError(f"--model: {model!r} is none of {', '.join(MODELS)}")
    if not 0 < buffer_share <= 1:
        raise InputError(f"--buffer-share: {buffer_share} is not within (0, 1]")
    importance = _importance(web, hot_backlinks)
    hot = hot_pages(importance, hot_share=hot_share, hot_backlinks=hot_backlinks)
    curves: dict[str, Array] = {}
    document: dict[str, Any] = {"nodes": web.nodes, "hot": len(hot), "orderings": {}}
    for name in names:
        buffer = round(buffer_share * web.nodes) if model == "limited-buffer" else 0
        done = crawl(web, start, name, importance=importance, seed=seed, buffer=buffer)
        curve = shares(done, importance, hot, model)
        curves[name] = curve
        document["orderings"][name] = {
            "area": float(curve.mean()),
            "share_at": {str(each): float(curve[max(0, len(curve) * each // 100 - 1)]) for each in PERCENTS},
            "seconds": done.seconds,
        }
    if plot is not None:
        from webfountain.report.evolution import draw_hot_pages  # noqa: PLC0415  (matplotlib)

        draw_hot_pages(curves, plot, model)
    return document


def crawl(
    web: GraphFile, start: int, name: str, *, importance: Array | None = None, seed: int = 0, buffer: int = 0
) -> Crawl:
    """Crawl all that can be reached from `start` by one ordering.

    Parameters
    ----------
    importance : (n,) the truth, which only the ideal ordering asks for
    buffer : pages of a limited buffer, 0 for none
    """
    seen = GraphSeen(web.indptr, web.indices)
    chosen: Ordering = ordering(name, seen, importance=importance, seed=seed)
    starts, targets = web.indptr.tolist(), web.indices.tolist()
    chosen.add(start, [start], [start])
    step = max(1, web.nodes // 100)
    order: list[int] = []
    kept: list[int] = []
    buffers: list[Pages] = []
    seen.known[start] = True
    while (page := chosen.next()) is not None:
        order.append(page)
        seen.crawled[page] = True
        found = targets[starts[page] : starts[page + 1]]
        new = []
        for target in found:
            if not seen.known[target]:
                seen.known[target] = True
                new.append(target)
        chosen.add(page, found, new)
        if len(order) % step == 0:
            chosen.rank()
            if buffer:
                kept = _best(kept + order[-step:], chosen.estimates(), buffer)
                buffers.append(np.array(kept, dtype=np.int64))
    return Crawl(np.array(order, dtype=np.int64), buffers, chosen.seconds)


def hot_pages(importance: Array, *, hot_share: float | None = None, hot_backlinks: int | None = None) -> Pages:
    """The most important pages, or all with as many backlinks when `importance` counts those; best first.

    Raises InputError when both are given, one is out of range, or no page is hot.
    """
    if hot_share is not None and hot_backlinks is not None:
        raise InputError("--hot-share and --hot-backlinks exclude each other")
    order = np.argsort(-importance, kind="stable")
    if hot_backlinks is not None:
        found = order[importance[order] >= hot_backlinks]
        if hot_backlinks < 1 or not len(found):
            raise InputError(
                f"--hot-backlinks: no page is hot with {hot_backlinks}, allowed: 1..{int(max(importance))}"
            )
        return found
    share = 0.01 if hot_share is None else hot_share
    if not 0 < share <= 1:
        raise InputError(f"--hot-share: {share} is not within (0, 1]")
    return order[: max(1, round(share * len(importance)))]


def shares(done: Crawl, importance: Array, hot: Pages, model: str) -> Array:
    """(k,) the curve of a model: one value after each page crawled."""
    if model == "threshold":
        return np.cumsum(np.isin(done.order, hot)) / len(hot)
    if model == "limited-buffer":
        held = [float(np.isin(each, hot).sum()) / len(hot) for each in done.buffers]
        return np.interp(np.arange(1, len(done.order) + 1), np.arange(1, len(held) + 1) * _step(importance), held)
    place = np.empty(len(importance), dtype=np.int64)
    place[np.argsort(-importance, kind="stable")] = np.arange(len(importance))
    # The page of place p crawled as the q-th counts from K = max(p, q) on.
    counts = np.bincount(np.maximum(place[done.order], np.arange(len(done.order))), minlength=len(importance))
    return (np.cumsum(counts) / np.arange(1, len(importance) + 1))[: len(done.order)]


def _step(importance: Array) -> int:
    return max(1, len(importance) // 100)


def _importance(web: GraphFile, hot_backlinks: int | None) -> Array:
    links = LinkGraph.from_csr(web.indptr, web.indices)
    return pagerank(links).scores if hot_backlinks is None else links.in_degree().astype(np.float64)


def _chosen(option: str, given: Sequence[str], known: Sequence[str]) -> list[str]:
    names = [name for each in given for name in (known if each == "all" else [each])]
    for name in names:
        if name not in known:
            raise InputError(f"{option}: {name!r} is none of all, {', '.join(known)}")
    if not names:
        raise InputError(f"{option}: none given; choose from all, {', '.join(known)}")
    return list(dict.fromkeys(names))


def _best(pages: list[int], estimates: Array, count: int) -> list[int]:
    worth = estimates[pages]
    best = np.argsort(-worth, kind="stable")[:count]
    return [pages[each] for each in best.tolist()]


POLICIES = ("infinite", "min", "lru", "clock", "random", "static")
"""Every name that ``--policies`` takes."""

SITE_PAGES: Final = 1000
"""Consecutive page numbers that stand for a site."""

_BATCH: Final = 4096


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """Links in the order they are met.

    Attributes
    ----------
    urls : (m,) page asked for
    ant : (m,) whose cache is asked
    """

    urls: Requests
    ant: Requests

    @property
    def distinct(self) -> int:
        """Pairs of ant and URL: the misses of caches that let nothing go."""
        return len(np.unique(self.ant * (1 + int(self.urls.max(initial=0))) + self.urls))

    def by_ant(self) -> Iterator[Requests]:
        """The trace of each ant."""
        for ant in np.unique(self.ant):
            yield self.urls[self.ant == ant]


def simulate_urlcache(
    graph: Path,
    *,
    start: int,
    sizes: Sequence[int],
    policies: Sequence[str],
    ordering: str = "breadth-first",
    ants: int = 1,
    static_start: int | None = None,
    seed: int = 0,
    plot: Path | None = None,
) -> dict[str, Any]:
    """Miss rate of each policy at each size; returns the JSON document of `simulate urlcache` (DESIGN section 7).

    Parameters
    ----------
    sizes : entries of a cache (of each ant's)
    ordering : of the virtual crawl, out of `orderings.ORDERINGS`
    ants : 1 for the full trace; more: only the links that lead from one ant to another
    static_start : where the crawl began whose most frequent URLs STATIC holds; None: another page drawn by `seed`
    plot : folder for the miss rates, and those relative to MIN, as PNG and SVG

    Raises InputError for an argument or a file that cannot be used, before anything is crawled.
    """
    web = load_graph(graph)
    names = _chosen("--policies", policies, POLICIES)
    _check(web, sizes, ordering=ordering, ants=ants, starts={"--start": start, "--static-start": static_start})
    source, urls = crawl_trace(web, start, ordering, seed=seed)
    trace = LinkTrace(urls, np.zeros(len(urls), dtype=np.int64)) if ants == 1 else between_ants(source, urls, ants)
    if not len(trace.urls):
        raise InputError(f"--start: from page {start} no link is met")
    popular = np.zeros(0, dtype=np.int64)
    if "static" in names:
        elsewhere = int(np.random.default_rng(seed).integers(web.nodes)) if static_start is None else static_start
        popular = _most_frequent(crawl_trace(web, elsewhere, ordering, seed=seed)[1])
    rates = {
        name: {str(size): miss_rate(trace, name, size, popular=popular, seed=seed) for size in sizes} for name in names
    }
    if plot is not None:
        from webfountain.report.evolution import draw_miss_rates  # noqa: PLC0415  (matplotlib)

        draw_miss_rates(rates, plot)
    return {"requests": len(trace.urls), "distinct": trace.distinct, "policies": rates}


def crawl_trace(web: GraphFile, start: int, ordering: str, *, seed: int = 0) -> tuple[Requests, Requests]:
    """(source page, target page) of each link (m,), in the order a virtual crawl meets them."""
    order = crawl(web, start, ordering, seed=seed).order
    starts = web.indptr.astype(np.int64)
    degree = starts[order + 1] - starts[order]
    first = np.repeat(starts[order] - np.concatenate([[0], np.cumsum(degree)[:-1]]), degree)
    return np.repeat(order, degree), web.indices[first + np.arange(len(first))].astype(np.int64)


def between_ants(source: Requests, urls: Requests, ants: int) -> LinkTrace:
    """Of a trace the links whose target belongs to another ant than their source; a site goes to any ant alike."""
    owner, target = _ant_of(source, ants), _ant_of(urls, ants)
    across = owner != target
    return LinkTrace(urls[across], owner[across])


def miss_rate(trace: LinkTrace, policy: str, size: int, *, popular: Requests, seed: int = 0) -> float:
    """Misses over requests, each ant with a cache of `size` entries; `popular` are STATIC's candidates, best first."""
    missed = 0
    for urls in trace.by_ant():
        if policy == "infinite" or (policy != "static" and size >= len(urls)):
            missed += len(np.unique(urls))
            continue
        cache = _cache(policy, size, urls, popular, seed)
        requests = urls.tolist()
        for begin in range(0, len(requests), _BATCH):
            missed += len(cache.missing(requests[begin : begin + _BATCH]))
    return missed / len(trace.urls)


def _cache(policy: str, size: int, urls: Requests, popular: Requests, seed: int) -> UrlCache:
    if policy == "min":
        return MinCache(size, next_requests(urls))
    if policy == "random":
        return RandomCache(size, random.Random(seed))
    if policy == "static":
        return StaticCache(popular[:size].tolist())
    return LruCache(size) if policy == "lru" else ClockCache(size)


def _most_frequent(urls: Requests) -> Requests:
    counts = np.bincount(urls)
    return np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]


def _ant_of(pages: Requests, ants: int) -> Requests:
    """The ant of each page's site, by a hash of the site's number (Fibonacci hashing, high bits)."""
    mixed = (pages // SITE_PAGES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(ants)).astype(np.int64)


def _check(web: GraphFile, sizes: Sequence[int], *, ordering: str, ants: int, starts: Mapping[str, int | None]) -> None:
    for option, page in starts.items():
        if page is not None and not 0 <= page < web.nodes:
            raise InputError(f"{option}: {page} is not within 0..{web.nodes - 1}")
    allowed = [name for name in ORDERINGS if name != "ideal"]
    if ordering not in allowed:
        raise InputError(f"--ordering: {ordering!r} is none of {', '.join(allowed)}")
    if not sizes or min(sizes) < 1:
        raise InputError(f"--sizes: {','.join(map(str, sizes)) or 'none given'}; each must be at least 1")
    if ants < 1:
        raise InputError(f"--ants: {ants} is below 1")
