"""The current importance of pages, from the last ranking, from links found since that ranking, and from policies.

This module logs and counts the links of a fetched page before the store adds their URLs. The importance of a new URL
decides its place in the queue of its site. Waiting pages that became much more important move forward in the queue
(`risen`). Before URLs of a site are leased, its waiting URLs are sorted by the newest ranking (`importance`). If the
policy file sets neither ``ranking.every`` nor ``score``, the crawl does not use this module.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.importance import PRIOR, OnlineImportance, bounded_by_trust, is_home
from webfountain.core.key_rows import keys_of
from webfountain.core.order_blend import OrderBlend
from webfountain.ranking.policy_weights import PolicyWeights
from webfountain.ranking.ranker_process import RankerProcess
from webfountain.ranking.rankings import Rankings
from webfountain.ranking.topic_words import TopicWords
from webfountain.ranking.waiting_sites import KEPT, WaitingSites
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from webfountain.core.arrays import Array
    from webfountain.core.key_rows import Keys
    from webfountain.policy.collection import Collection
    from webfountain.ranking.ranker_process import Ranker
    from webfountain.records import Link, LinkedPage, PageRecord
    from webfountain.store.contract import Board


__all__ = ["PROMISE", "SAMPLE", "LiveImportance", "RisenPages", "live_importance"]

PROMISE: Final = 2.0
"""Expected rank of a waiting home page before the first ranking."""
SAMPLE: Final = 1000
"""The expected rank of a waiting home page is the mean rank of this number of recently fetched home pages."""
_SAMPLED: Final = 40_000
_KEY: Final = attrgetter("key")


class RisenPages:
    """Waiting pages whose importance has grown, by site, in order of importance.

    To limit memory, all pages are removed when their number exceeds `most`. A removed page is added again when its
    importance grows.
    """

    def __init__(self, *, most: int = KEPT) -> None:
        self._most = most
        self._count = 0
        self._worth: dict[str, dict[bytes, float]] = {}
        # An entry is stale if its importance differs from the page's current one.
        self._heaps: dict[str, list[tuple[float, bytes]]] = {}

    def add(self, site: str, key: bytes, worth: float) -> None:
        """Add a page, or change its importance."""
        self._count += 1
        if self._count > self._most:
            self.clear()
        self._worth.setdefault(site, {})[key] = worth
        heappush(self._heaps.setdefault(site, []), (-worth, key))

    def drop(self, site: str, key: bytes) -> None:
        """Remove a page that is no longer waiting to be crawled."""
        self._worth.get(site, {}).pop(key, None)

    def take(self, site: str, most: int) -> list[bytes]:
        """Remove and return the most important pages of a site."""
        worth, heap = self._worth.get(site, {}), self._heaps.get(site, [])
        taken: list[bytes] = []
        while heap and len(taken) < most:
            value, key = heappop(heap)
            self._count -= 1
            if worth.get(key) == -value:
                del worth[key]
                taken.append(key)
        if not heap:
            self._worth.pop(site, None)
            self._heaps.pop(site, None)
        return taken

    def clear(self) -> None:
        self._worth, self._heaps, self._count = {}, {}, 0


def live_importance(
    collection: Collection, folder: Path, *, writer: str, at: float, ranker: Ranker | None = None
) -> LiveImportance | None:
    """Return a `LiveImportance`, or None if the policies need no importance other than trust.

    Parameters
    ----------
    folder : folder of the store, or of the repository if the store has none; it contains `links` and `scores`
    writer : unique name of the process that writes the log
    ranker : runs the rankings; None: a process of its own
    """
    if not collection.is_ranking:
        return None
    if collection.ranking.every is None:
        return LiveImportance(collection)
    from webfountain.ranking.link_log import LinkLog  # noqa: PLC0415  (pyarrow, for those who log links only)

    links = collection.ranking.links or str(folder / "links")
    scores = folder / "scores"
    rankings = Rankings(
        links,
        scores,
        every=collection.ranking.every,
        log=LinkLog(links, writer=writer, period=collection.cycle.period_s, journal=folder / "link-journal", at=at),
        ranker=RankerProcess() if ranker is None else ranker,
        at=at,
    )
    return LiveImportance(collection, rankings=rankings, sites=WaitingSites(scores / "sites"))


class LiveImportance:
    """The importance of pages. Only the worker thread may use this object.

    Parameters
    ----------
    collection : the collection whose policies weigh the metrics
    rankings : source of rankings; None: there are no rankings, so only credit since the start counts
    sites : waiting sites and their order; None: sites are ordered by credit since the start
    """

    def __init__(
        self, collection: Collection, *, rankings: Rankings | None = None, sites: WaitingSites | None = None
    ) -> None:
        self.sites = sites or WaitingSites(None)
        """The waiting sites, the most important first."""
        self.words = TopicWords()
        self.weights = PolicyWeights(collection, self.words.topics)
        """The weight of each score in each policy."""
        self.risen = RisenPages()
        self._rankings = rankings
        self._is_bounded = collection.limits.pages is not None
        self._blend = OrderBlend() if rankings is not None and collection.is_blending else None
        self._online: OnlineImportance = OnlineImportance(most=KEPT, blend=self._blend)
        self._homes: deque[bytes] = deque(maxlen=SAMPLE)  # ranks of the home pages fetched last
        self._promise = PROMISE
        self._known = 0  # number of pages
        self._blend_orders()

    @property
    def epoch(self) -> int:
        """Return the number of the ranking in use, or 0 before the first ranking."""
        return 0 if self._rankings is None else self._rankings.scores.epoch

    def is_unlogged(self, record: PageRecord) -> bool:
        """Return whether a fetched page may be missing from the link log, so that its links must be read again."""
        last = record.last_crawled
        return self._rankings is not None and last is not None and last < self._rankings.complete_since

    # ------------------------------------------------------------- crediting

    def record(self, fetched: Sequence[LinkedPage]) -> None:
        """Log the links of fetched pages, and increase the importance of the linked pages."""
        if self._rankings is not None:
            self._rankings.log(fetched, anchors=self.weights.have_topics)
        if not fetched:
            return
        keys = [fingerprint(one.page.url) for one in fetched]
        for one, key in zip(fetched, keys, strict=True):
            if not one.again and is_home(one.page.url):
                self._homes.append(key)
            self.sites.credit(one.site, one.links)
            self.risen.drop(one.site, key)
        pages = keys_of(b"".join(keys))
        scores, linked = self._published(pages, pagerank=PRIOR, crawled=0.0)
        links = [link for one in fetched for link in one.links]
        targets, degrees = _keys_of(links), [len(one.links) for one in fetched]
        # Their current importance is computed when their site's hand is refilled.
        outgrown = self._online.credit(pages, targets, degrees=degrees, scores=scores, linked=linked > 0)
        for place, worth in outgrown.items():
            self.risen.add(links[place].site, links[place].key, worth)

    # -------------------------------------------------------------- weighing

    def weigh(self, links: Sequence[Link]) -> list[Link]:
        """Return links to new pages, each with the importance of its target."""
        if not links:
            return []
        made = self._of_waiting(links, _keys_of(links))
        return [
            msgspec.structs.replace(link, importance=importance)
            for link, importance in zip(links, made.tolist(), strict=True)
        ]

    def importance(self, records: Sequence[PageRecord]) -> list[float]:
        """Return the current importance of waiting pages."""
        found: list[float] = self._of_waiting(records, _keys_of_urls(records)).tolist()
        return found

    def worth_of_holding(self, records: Sequence[PageRecord]) -> list[float]:
        """Return importances on one scale for fetched and waiting pages, so that a collection of fixed size can compare
        them."""
        found: list[float] = self.weights.with_hot_first(records, self._of_held(records)).tolist()
        return found

    def weighed(self, records: Iterable[PageRecord]) -> list[PageRecord]:
        """Return the records of fetched pages with their current importance."""
        records = list(records)
        found = self._of_held(records).tolist()
        return [msgspec.structs.replace(record, importance=value) for record, value in zip(records, found, strict=True)]

    def _of_waiting(self, pages: Sequence[Link | PageRecord], keys: Keys) -> Array:
        return self.weights.with_hot_first(pages, self._combined(pages, keys, self._worths_of_waiting(keys, pages)))

    def _of_held(self, records: Sequence[PageRecord]) -> Array:
        keys = _keys_of_urls(records)
        [ranks] = self._published(keys, pagerank=PRIOR)
        return self._combined(records, keys, self._bounded(keys, ranks + self._online.gains(keys)))

    def _combined(self, pages: Sequence[Link | PageRecord], keys: Keys, ranks: Array) -> Array:
        wanted, scores = self.weights.wanted(pages), {"pagerank": ranks}
        if "backlinks" in wanted:
            scores["backlinks"] = self._backlinks(keys)
        if "trust" in wanted:
            [scores["trust"]] = self._published(keys, trust=-1.0)
        return self.weights.combine(pages, scores)

    def _bounded(self, keys: Keys, ranks: Array) -> Array:
        """Return the (n,) ranks of pages. In a collection of fixed size, a page's trust limits its rank, to keep link
        farms out.
        """
        if not self._is_bounded:
            return np.asarray(ranks)
        [trusts] = self._published(keys, trust=-1.0)
        return bounded_by_trust(ranks, trusts)

    def _worths_of_waiting(self, keys: Keys, pages: Sequence[Link | PageRecord]) -> Array:
        """Return the (n,) importances of waiting pages.

        In a collection of fixed size, waiting home pages get no expected rank, because pages could then evict each
        other endlessly.
        """
        ranks, backlinks = self._published(keys, pagerank=0.0, backlinks=0.0)
        worths = self._online.weigh(keys, ranks=ranks, backlinks=backlinks * self._mean_backlinks())
        if self._is_bounded:  # a home page would lose the bonus at its first fetch
            return self._bounded(keys, worths)
        return np.where([is_home(page.url) for page in pages], np.maximum(worths, self._promise), worths)

    def _backlinks(self, keys: Keys) -> Array:
        """Return the (n,) numbers of links to pages, divided by the mean number of links to a page."""
        ranked, pages = (0, 0) if self._rankings is None else (self._rankings.scores.links, len(self._rankings.scores))
        mean = (ranked + self._online.links) / max(self._known, pages, len(self._online), 1)
        [backlinks] = self._published(keys, backlinks=0.0)
        counted = self._online.backlinks(keys) + backlinks * self._mean_backlinks()
        return np.asarray(counted / mean) if mean > 0 else counted

    def _mean_backlinks(self) -> float:
        if self._rankings is None or not len(self._rankings.scores):
            return 0.0
        return self._rankings.scores.links / len(self._rankings.scores)

    def _published(self, keys: Keys, **absent: float) -> list[Array]:
        """Return the (n,) scores of pages in the last ranking. Each keyword argument has the name of a score. Its value
        is the score of pages that the ranking does not know."""
        if self._rankings is None:
            return [np.full(len(keys), each) for each in absent.values()]
        return self._rankings.published(keys, absent)

    # ----------------------------------------------------------------- chores

    def share_words(self, board: Board, *, at: float) -> None:
        """Exchange word counts with other ants, if a policy has a topic."""
        if self.weights.have_topics:
            self.words.share(board, at=at)

    def tend(self, at: float, *, known: int) -> bool:
        """Start a ranking if one is due, and return whether the scores of a new ranking were loaded.

        `known` is the number of pages in the store.

        Raises
        ------
        RepositoryError
            if the log or the scores cannot be read or written.
        """
        self._known = known
        if self._rankings is None or not self._rankings.tend(at, self.weights.trusted_seeds):
            return False
        # The mean rank of home pages that were fetched together with the pages around them. For a waiting home page,
        # fewer links are known, because the links from its own site are still missing.
        if self._homes:
            [ranks] = self._published(keys_of(b"".join(self._homes)), pagerank=PRIOR)
            self._promise = float(ranks.mean())
        self.sites.refresh()
        self._online.rank()
        self._blend_orders()
        self.risen.clear()
        return True

    def _blend_orders(self) -> None:
        if self._blend is None or self._rankings is None:
            return
        scores = self._rankings.scores
        if not {"backlinks", "pagerank", "crawled"} <= set(scores.names):
            return
        waiting, (backlinks, ranks) = scores.waiting(("backlinks", "pagerank"), most=_SAMPLED)
        counts = backlinks * self._mean_backlinks()
        self._blend.rank(scores.losses, waiting=waiting, backlinks=counts, ranks=ranks)

    def close(self) -> None:
        """Write the remaining rows of the log, and stop a running ranking."""
        if self._rankings is not None:
            self._rankings.close()


def _keys_of(links: Sequence[Link]) -> Keys:
    return keys_of(b"".join(map(_KEY, links)))


def _keys_of_urls(records: Sequence[PageRecord]) -> Keys:
    return keys_of(b"".join([fingerprint(record.url) for record in records]))
