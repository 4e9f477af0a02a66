"""Report what the store contains at the end of a batch: its census for a plan, and when a new page becomes due.

Place in the walk: the last reads of the store before a batch goes back to the loop thread.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.batch import CensusSnapshot
from webfountain.frontier.progress import IDLE_S
from webfountain.records import STATES
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.store_counts import StoreCounts
    from webfountain.store.contract import FrontierStore

__all__ = ["Stocktaking", "never_crawled_due", "take_census"]

_NEVER_CRAWLED: Final = STATES.index("never-crawled")
_SITES: Final = 10_000


class Stocktaking:
    """The report of one store worker. `counts` are the counts of its store."""

    def __init__(self, store: FrontierStore, counts: StoreCounts) -> None:
        self._store = store
        self._counts = counts

    def report(self, batch: Batch, result: BatchResult, *, is_asked: bool) -> None:
        """Record what the store holds now. Unless the batch requests counts, the last known counts are used.

        `is_asked`: the result already has the due time of the next site.
        """
        if batch.census_since is not None:
            result.census = take_census(self._store, since=batch.census_since, at=batch.at)
        if batch.count_waiting:
            result.never_crawled_due = never_crawled_due(self._store, batch.at)
        if not is_asked or batch.refills:
            result.next_site_due = self._store.sites.next_due()
        result.immediate_left |= batch.immediate and result.next_site_due == AT_ONCE
        counts = self._counts
        result.statistics = counts.take(batch.at, idle=not batch.holds_sites) if batch.count else counts.last()


def take_census(store: FrontierStore, *, since: int, at: float) -> CensusSnapshot:
    """Return the census. The store keeps it up to date, so this reads a few hundred rows at any size."""
    waiting = store.census.statistics().pages["never-crawled"]
    return CensusSnapshot(at, store.census.buckets(), store.census.rows(since=since), waiting)


def never_crawled_due(store: FrontierStore, at: float) -> float:
    """Return when the first site without an owner that has never-crawled pages is due. If a site without such pages is
    due earlier, but not soon, it may be returned instead.

    Return inf if there is none. The sites are scanned only if the counts do not give the answer.
    """
    counts = store.census.statistics()
    if not counts.pages["never-crawled"]:
        return inf
    soonest = store.sites.next_due()
    if not counts.active_sites and soonest is not None and soonest > at + IDLE_S:
        return soonest
    first, after = inf, ""
    while sites := store.sites.after(after, _SITES):
        after = sites[-1].site
        first = min([first] + [each.due for each in sites if each.pages[_NEVER_CRAWLED]])
    return first
