"""Report what the store contains at the end of a batch: its counts, its census for a plan, and when a new page is due.

The counts of a shared store are sums over its shards, which take 256 reads. So the ant that computed the sums last
stores them as the note of a claim, and other ants read the note while it is recent.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.forecast import published
from webfountain.frontier.batch import CensusSnapshot
from webfountain.frontier.progress import IDLE_S
from webfountain.records import STATES
from webfountain.store.answers import Statistics
from webfountain.store.contract import FORECAST
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.store.answers import Claim
    from webfountain.store.contract import CensusReader, FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["SharedCounts", "Stocktaking", "StoreCounts", "counts_of", "never_crawled_due", "take_census"]

_NEVER_CRAWLED: Final = STATES.index("never-crawled")
_SITES: Final = 10_000
COUNTS: Final = "role/counts"
"""Claim of the ant that computed the counts last, with the counts as its note."""
_BUSY_AGE_S: Final = 1.0
_IDLE_AGE_S: Final = 2.0
"""Largest age of stored counts for an ant without sites, s; `_BUSY_AGE_S` is for an ant with sites."""


class Stocktaking:
    """Reports what the store contains after a batch."""

    def __init__(self, store: FrontierStore, counts: StoreCounts) -> None:
        self._store = store
        self._counts = counts

    def report(self, batch: Batch, result: BatchResult, *, is_asked: bool) -> None:
        """Record what the store contains now. Unless the batch requests counts, the last known counts are used.

        `is_asked` is True if the result already contains the due time of the next site.
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
    """Return the census, by reading a few hundred rows."""
    waiting = store.census.statistics().pages["never-crawled"]
    kept = published(store.board.value(FORECAST))
    found = kept.forecast.cycles[-1].found if kept is not None and kept.forecast.cycles else None
    return CensusSnapshot(at, store.census.buckets(), store.census.rows(since=since), waiting, found)


def never_crawled_due(store: FrontierStore, at: float) -> float:
    """Return the earliest due time of a site with never-crawled pages, or inf if no site has such pages.

    If no site is active or due soon, return the due time of the first site instead, which avoids a scan of all sites.
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


class StoreCounts:
    """The counts of a store that only one process uses."""

    def __init__(self, census: CensusReader) -> None:
        self._census = census

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the current counts."""
        del at, idle
        return self._census.statistics()

    def last(self) -> Statistics:
        """Return the current counts."""
        return self._census.statistics()


class SharedCounts(StoreCounts):
    """The counts of a store that many ants share. `owner` is the name of this ant."""

    def __init__(self, census: CensusReader, claims: Claims, *, owner: str) -> None:
        super().__init__(census)
        self._claims = claims
        self._owner = owner
        self._known: Statistics | None = None

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the stored counts in one round trip, or compute old counts again in three."""
        [claim] = self._claim(at, idle=idle)
        if claim.owner != self._owner and claim.note:
            self._known = Statistics(**msgspec.msgpack.decode(claim.note))
            return self._known
        self._known = self._census.statistics()
        self._claim(at, idle=idle, note=msgspec.msgpack.encode(self._known))
        return self._known

    def last(self) -> Statistics:
        """Return the counts that `take` returned last. Before its first call, read them from the store."""
        if self._known is None:
            self._known = self._census.statistics()
        return self._known

    def _claim(self, at: float, *, idle: bool, note: bytes = b"") -> list[Claim]:
        if not note and self._known is not None:
            note = msgspec.msgpack.encode(self._known)  # for ants that read it before the sum is computed
        until = at + (_IDLE_AGE_S if idle else _BUSY_AGE_S)
        return self._claims.claim([COUNTS], owner=self._owner, until=until, at=at, notes={COUNTS: note})


def counts_of(store: FrontierStore, *, owner: str) -> StoreCounts:
    return StoreCounts(store.census) if store.claims is None else SharedCounts(store.census, store.claims, owner=owner)
