"""The stage of the worker thread that sorts waiting pages and sites by importance."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Stage
from webfountain.frontier.visit import NOTHING, leased
from webfountain.records import COPIED, LinkedPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.visit import Visit
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.records import SiteLease
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import FrontierStore

__all__ = ["ImportanceStage"]

GRADED: Final = 2000
"""After a new ranking, each batch updates the importance of at most this number of waiting URLs."""
RISEN: Final = 64
"""When the crawl leases URLs of a site, it updates the importance of at most this number of waiting URLs."""
_LINKING: Final = COPIED | {"redirected", "gone"}
"""Outcomes of fetches that may have found new links."""


class ImportanceStage(Stage):
    """Keeps the importance of pages in the store up to date. `known` returns the number of pages in each state."""

    def __init__(self, importance: LiveImportance, store: FrontierStore, known: Callable[[], Statistics]) -> None:
        self._importance = importance
        self._store = store
        self._known = known
        self._graded: dict[str, int] = {}  # active sites, with the ranking by which their queues are ordered
        importance.share_words(store.board, at=-inf)

    def lost(self, sites: Sequence[str]) -> None:
        for site in sites:
            self._graded.pop(site, None)

    def visited(self, visits: Sequence[Visit], at: float) -> None:
        """Log the links of fetched pages, and increase the importance of the linked pages."""
        del at
        self._importance.record([_linked(visit) for visit in visits if _has_links(visit)])

    def before_park(self, batch: Batch) -> None:
        self.lost([parked.lease.site for parked in batch.parked])

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Record which sites left the active list, and which waiting sites have due pages."""
        sites = self._importance.sites
        sites.left([*(each.lease.site for each in batch.parked), *result.lost, *(site for site, _ in result.voided)])
        sites.wait(each.lease.site for each in batch.parked if each.due <= batch.at)
        sites.wait(result.new_pages)

    def choose(self, room: int) -> list[str]:
        """Choose the most important sites to crawl, if more sites wait than `room`.

        The most important sites fill half of `room`; the sites that have been due for longest get the other half.
        """
        sites = self._importance.sites
        return [] if len(sites) <= room else sites.take((room + 1) // 2)

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        del at
        self._importance.sites.joined(lease.site for lease in leases)
        return leases

    def before_lease(self, batch: Batch, result: BatchResult) -> None:
        """Before URLs of a site are leased, update the importance of its waiting URLs."""
        left, importance = GRADED, self._importance
        epoch = importance.epoch
        for lease, room in [(refill.lease, refill.never_crawled) for refill in batch.refills if refill.never_crawled]:
            if epoch and self._graded.get(lease.site, lease.record.epoch) != epoch and left > 0:
                graded = self._store.queues.regrade(lease, importance.importance, epoch=epoch, n=left)
                if graded is None:
                    continue
                left -= graded.seen
                result.counts["ranking/moved"] += graded.moved
                if graded.done:
                    self._graded[lease.site] = epoch
            if keys := importance.risen.take(lease.site, min(room, RISEN)):
                result.counts["ranking/risen"] += self._store.queues.reweigh(lease, keys, importance.importance) or 0

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Start a ranking if one is due, load the scores of a finished ranking, and exchange word counts with other
        ants."""
        if batch.rank:
            known = sum(self._known().pages.values())
            result.counts["ranking/epochs"] += self._importance.tend(batch.at, known=known)
            self._importance.share_words(self._store.board, at=batch.at)

    def close(self) -> None:
        self._importance.share_words(self._store.board, at=inf)
        self._importance.close()


def _has_links(visit: Visit) -> bool:
    """Return whether a fetched page may have links that must be logged."""
    return visit.kind in _LINKING or (visit.kind == "same" and visit.reading is not NOTHING)


def _linked(visit: Visit) -> LinkedPage:
    again, redirected, reading = leased(visit.fetch).last_crawled is not None, visit.kind == "redirected", visit.reading
    fetch, at = visit.fetch, visit.fetched.at
    return LinkedPage(
        visit.record, fetch.site, reading.links, at, again, redirected, reading.nofollow, reading.unfollowed
    )
