"""The ordering `fountain`: the order in which the live crawl takes waiting pages, in a simulated crawl.

The crawl's own objects decide which page is next: `LiveImportance`, `Rankings`, `replayed_orders` and `class_of`.
"""

from __future__ import annotations

import heapq
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.policy.collection_file import parse_collection
from webfountain.ranking.importance_stage import GRADED, RISEN
from webfountain.ranking.link_importance import LiveImportance
from webfountain.ranking.ranker import RankedLog, is_small, replayed_orders
from webfountain.ranking.ranker_process import LEAST_COST_S
from webfountain.ranking.rankings import Rankings
from webfountain.ranking.scores import publish_scores
from webfountain.records import Link, LinkedPage, PageRecord
from webfountain.store.lanes import class_of
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.lab.simulate.crawled_graph import CrawledGraph
    from webfountain.ranking.ranker_process import Job

    Array = npt.NDArray[np.float64]

__all__ = ["LiveOrder"]

_SITE: Final = "http://127.0.0.1"
_POLICY: Final = (
    f'[collection]\nname = "graph"\nseeds = ["{_SITE}/"]\n[network]\nallow_private = true\n[ranking]\nevery = "1000d"\n'
)
_PAGE_CPU_S: Final = 1.3e-3
"""CPU time, in seconds, that a crawl is assumed to need per page. The ranker may use only a share of the crawl's CPU
time, and therefore ranks rarely.
"""
_LINK_CPU_S: Final = 1.2e-6
"""CPU time of the ranker per link, in seconds."""
_POLLED: Final = 16
"""Number of fetched pages after which the simulated crawl checks whether a new ranking is due."""
_TOLERANCE: Final = 1e-4


class LiveOrder:
    """Takes the first page of the best lane, as the live crawl does."""

    def __init__(self, seen: CrawledGraph) -> None:
        self._seen = seen
        folder = Path(tempfile.mkdtemp(prefix="order-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._ranker = _GraphRanker(seen, folder / "scores")
        rankings = Rankings(
            str(folder / "links"), folder / "scores", every=1e9, log=_UnreadLog(), ranker=self._ranker, at=0.0,
            cpu=lambda: self._crawled * _PAGE_CPU_S,
        )  # fmt: skip
        self._importance = LiveImportance(parse_collection(_POLICY, Path("graph.toml")), rankings=rankings)
        self._queue: list[tuple[int, int, int]] = []  # class, arrival, page; stale if the page is in another class
        self._waiting: dict[int, PageRecord] = {}
        self._arrivals: dict[int, int] = {}
        self._links: dict[int, Link] = {}
        self._page_of: dict[bytes, int] = {}
        self._regrading: list[int] = []  # the last ones come first
        self._graded = 0
        self._crawled = 0
        self.seconds = 0.0

    def add(self, page: int, targets: Sequence[int], new: Sequence[int]) -> None:
        if not self._seen.crawled[page]:  # the start
            self._discover([page], depth=0)
            return
        record = self._waiting.pop(page)
        for each in new:
            self._links[each] = self._link(each, record.depth + 1)
        links = [self._links[each] for each in targets]
        self._importance.record([LinkedPage(record, _SITE, links, float(self._crawled), again=False)])
        self._discover(new, depth=record.depth + 1)
        self._ranker.crawled.append(page)
        self._crawled += 1
        if self._crawled % _POLLED == 0:
            self._importance.tend(float(self._crawled), known=len(self._links))
            self.seconds = self._ranker.seconds

    def next(self) -> int | None:
        self._regrade()
        risen = self._importance.risen.take(_SITE, RISEN)
        self._weigh([page for key in risen if (page := self._page_of[key]) in self._waiting])
        while self._queue:
            lane, _, page = heapq.heappop(self._queue)
            if page in self._waiting and class_of(self._waiting[page].importance) == lane:
                return page
        return None

    def rank(self) -> None:
        """Do nothing, because the live crawl decides when to rank."""

    def estimates(self) -> Array:
        return self._ranker.ranks

    # ---------------------------------------------------------------- private

    def _link(self, page: int, depth: int) -> Link:
        url = self._ranker.urls[page]
        key = fingerprint(url)
        self._page_of[key] = page
        return Link(url, _SITE, key, depth=depth)

    def _discover(self, pages: Sequence[int], *, depth: int) -> None:
        for page in pages:
            self._links.setdefault(page, self._link(page, depth))
        for page, link in zip(pages, self._importance.weigh([self._links[page] for page in pages]), strict=True):
            self._arrivals[page] = len(self._arrivals)
            self._put(page, link.importance)

    def _put(self, page: int, importance: float) -> None:
        link = self._links[page]
        self._waiting[page] = PageRecord(link.url, depth=link.depth, importance=importance)
        heapq.heappush(self._queue, (class_of(importance), self._arrivals[page], page))

    def _weigh(self, pages: Sequence[int]) -> None:
        """Move waiting pages to the lanes of their current importance."""
        found = self._importance.importance([self._waiting[page] for page in pages]) if pages else []
        for page, importance in zip(pages, found, strict=True):
            if class_of(importance) != class_of(self._waiting[page].importance):
                self._put(page, importance)

    def _regrade(self) -> None:
        """After a ranking, move some waiting pages to the lanes of the queue for their new importance, best lanes
        first.
        """
        if self._graded != self._importance.epoch:
            self._graded = self._importance.epoch
            waiting = ((class_of(one.importance), self._arrivals[page], page) for page, one in self._waiting.items())
            self._regrading = [page for _, _, page in sorted(waiting, reverse=True)]
        if self._regrading:
            batch = reversed(self._regrading[-GRADED:])
            del self._regrading[-GRADED:]
            self._weigh([page for page in batch if page in self._waiting])


class _UnreadLog:
    """A link log that stores nothing, for a ranker that reads the graph."""

    is_new = False
    complete_since = 0.0

    def append(self, *_: object, **__: object) -> None:
        """Do nothing."""

    def commit(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class _GraphRanker:
    """Ranks the known part of a graph, and publishes the scores as the live ranker does."""

    def __init__(self, seen: CrawledGraph, folder: Path) -> None:
        self._seen = seen
        self._folder = folder
        nodes = seen.graph.nodes
        self.urls = [f"{_SITE}/{page}" for page in range(nodes)]
        self.crawled: list[int] = []
        keys = np.frombuffer(b"".join(map(fingerprint, self.urls)), dtype=">u8").astype(np.uint64)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self.ranks: Array = np.zeros(nodes)
        self.seconds = 0.0
        self._cost_s = LEAST_COST_S

    def start(self, job: Job) -> None:
        begin = time.process_time()
        seen = self._seen
        known = seen.known.astype(np.float64)
        graph = LinkGraph(seen.graph.nodes, seen.graph.blocks, np.where(seen.crawled, seen.graph.share, 0.0))
        start = np.where(seen.known & (self.ranks == 0), 1.0 / known.sum(), self.ranks) if self.ranks.any() else None
        self.ranks = pagerank(graph, teleport=known, start=start, tolerance=_TOLERANCE).scores
        pairs = self._pairs()
        linked = np.bincount(pairs[:, 1], minlength=seen.graph.nodes) / max(len(pairs), 1)
        shown = seen.known[self._order]
        scores = {
            "pagerank": self.ranks * known.sum(),
            "backlinks": linked * known.sum(),
            "crawled": seen.crawled * 1.0,
        }
        replayed, losses = replayed_orders(self._folder, self._ranked(pairs), self.ranks, linked)
        publish_scores(
            self._folder, self._keys[shown], {name: each[self._order][shown] for name, each in scores.items()},
            at=job.at, links=len(pairs), replayed=replayed, losses=losses,
        )  # fmt: skip
        self.seconds += time.process_time() - begin
        self._cost_s = LEAST_COST_S + len(pairs) * _LINK_CPU_S

    def _pairs(self) -> npt.NDArray[np.int32]:
        pages = np.array(self.crawled)
        starts, degree = self._seen.indptr[pages], np.diff(self._seen.indptr)[pages]
        before = np.cumsum(degree) - degree
        at = np.arange(degree.sum()) + np.repeat(starts - before, degree)
        return np.stack([np.repeat(pages, degree), self._seen.indices[at]], axis=1).astype(np.int32)

    def _ranked(self, pairs: npt.NDArray[np.int32]) -> RankedLog:
        times = np.full(self._seen.graph.nodes, np.inf)
        times[self.crawled] = np.arange(len(self.crawled))
        few = pairs if is_small(len(self.crawled), len(pairs)) else None
        return RankedLog(self._keys, self._seen.graph, self._seen.crawled, times, few)

    def failed(self) -> str | None:
        return None

    def is_busy(self) -> bool:
        return False

    def cost_s(self) -> float:
        return self._cost_s

    def stop(self) -> None:
        """Do nothing."""
