"""Replace pages in a collection of a fixed size.

If a collection is full, a more important known page replaces its least important page (the refinement decision of Cho
2000).

A *sweep* reads all records, a few with each batch. A sweep counts the known pages in each class of importance, and
finds the least important pages with a copy. Two conditions decide whether a class is *admitted*. One of the
`limits.pages` most important known pages belongs to it, and the page to be evicted belongs to a lower class. For each
leased new page of an admitted class, one page is evicted (the store's `evict`). An ant can evict only pages of its
active sites. If a page of an inactive site must be evicted, the page is made due, so that the site becomes active.

Importances of one class differ by at most the factor √2. A page never replaces a page of the same class, because
equally important pages could then displace each other without end. A never-crawled page is ranked as if the repository
already had a copy of it (`worth_of_holding`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.frontier.stage import Stage
from webfountain.store.lanes import ADVANCED, CLASSES, class_of
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.collection import Collection
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.records import Lease, PageRecord, SiteLease
    from webfountain.store.answers import LeaseBatch, Refill
    from webfountain.store.contract import FrontierStore

__all__ = ["CANDIDATES", "SWEEPS_PER_PERIOD", "SWEPT", "Replacement", "replacement_of"]

SWEPT: Final = 500
"""Number of records that a sweep reads per batch."""
SWEEPS_PER_PERIOD: Final = 100
CANDIDATES: Final = 10_000
"""Maximum number of candidates for eviction that a sweep collects."""
_NEAR: Final = 0.9
"""Sweeps begin when the collection has reached this share of its full size."""
_SUMMONED: Final = 64
"""Maximum number of pages that are made due at a time, so that their sites become active and the pages can be
evicted.
"""
_SOON: Final = 0.05
"""A site with new pages that wait for evictions is checked again after this share of the time between two sweeps."""
_DUPLICATE: Final = -inf
"""Importance of a duplicate, lower than that of every other page."""


class _Candidate(NamedTuple):
    """A page that has a copy and may be evicted. In sorted order, the least important page comes first."""

    importance: float
    site: str
    key: bytes


class Replacement(Stage):
    """The stage that limits the collection to `most` pages. `weigh` returns the importance of each record.

    Each process counts only its own leases, even if several processes share a store.
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        most: int,
        period_s: float,
        weigh: Callable[[Sequence[PageRecord]], Sequence[float]] | None = None,
    ) -> None:
        self._store = store
        self._most = most
        self._weigh = weigh
        self._pause_s = period_s / SWEEPS_PER_PERIOD
        self._sweep: Iterator[tuple[str, PageRecord]] | None = None
        self._next_sweep = -inf
        self._known: Counter[int] = Counter()  # pages by class, in the current sweep
        self._heap: list[tuple[float, str, bytes]] = []  # candidates of the sweep, the most important on top
        self._bar: int | None = None  # class that contains the last of the best `most` known pages
        self._candidates: list[_Candidate] = []  # the least important last
        self._summoned: set[bytes] = set()
        self._demand, self._demanded = 0, 0  # number of new pages that wait for evictions, and their worst class
        self._gone = CLASSES + 1  # the best class that lost a page to an eviction since the last sweep
        self._held: dict[str, SiteLease] = {}  # leases of the active sites
        self._out: dict[str, set[int]] = {}  # numbers of the leased new pages, by active site
        self.counts: Counter[str] = Counter()

    # ------------------------------------------------------- events

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Process ended leases, parked sites and lost sites, and continue the sweep."""
        for lease in (*(ended.lease.id for ended in batch.ended), *batch.released):
            if (out := self._out.get(lease.site)) is not None:
                out.discard(lease.number)
        for site in (*result.lost, *(parked.lease.site for parked in batch.parked)):
            self._held.pop(site, None)
            self._out.pop(site, None)
        self.sweep(batch.at)

    def chores(self, batch: Batch, result: BatchResult) -> None:
        result.counts.update(self.counts)
        self.counts.clear()

    # ------------------------------------------------------------- the sweep

    def sweep(self, at: float) -> None:
        """Read the next records if a sweep is due or has begun."""
        if self._sweep is None:
            if at < self._next_sweep or self._store.census.statistics().pages["crawled"] < _NEAR * self._most:
                return
            self._sweep = iter(self._store.pages.records())
            self._known, self._heap = Counter(), []
        found = list(islice(self._sweep, SWEPT))
        records = [record for _, record in found if record.state in ("crawled", "never-crawled")]
        weights = [record.importance for record in records] if self._weigh is None else self._weigh(records)
        worth = dict(zip(map(id, records), weights, strict=True))
        for site, record in found:
            if id(record) in worth:
                self._consider(site, record, worth[id(record)])
        if len(found) < SWEPT:
            self._take_stock(at)

    def _consider(self, site: str, record: PageRecord, importance: float) -> None:
        if record.duplicate_of is not None:
            importance = _DUPLICATE
        self._known[_class(importance)] += 1
        if record.state != "crawled":
            return
        entry = (-importance, site, fingerprint(record.url))
        if len(self._heap) < CANDIDATES:
            heapq.heappush(self._heap, entry)
        elif entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    def _take_stock(self, at: float) -> None:
        """End a sweep, and compute which classes are admitted and which pages may be evicted until the next
        sweep ends.
        """
        self._sweep, self._next_sweep = None, at + self._pause_s
        self._summoned.clear()
        self._demand, self._gone = 0, CLASSES + 1
        self._candidates = [_Candidate(-worth, site, key) for worth, site, key in sorted(self._heap)]
        self._bar, better = CLASSES - 1, 0
        for number in range(CLASSES):
            better += self._known[number]
            if better >= self._most:
                self._bar = number
                break

    # --------------------------------------------------------------- leasing

    def lease(self, refills: Sequence[Refill], at: float) -> list[LeaseBatch | None]:
        """Lease the pages that the refills request. A new page can be leased only if the collection has room, or has a
        less important page that can be evicted.
        """
        self._held.update((refill.lease.site, refill.lease) for refill in refills)
        room = self._most - self._store.census.statistics().pages["crawled"] - sum(map(len, self._out.values()))
        if room < self._demand:
            room += self._evict(self._demand - room, better=self._demanded if self._demand else -1, at=at)
        first = self._lease_new(refills, room) if room > 0 else self._exchange(refills, at=at)
        for dealt in first:
            if dealt is not None and dealt.never_crawled:
                self._out.setdefault(dealt.site, set()).update(one.id.number for one in dealt.never_crawled)
        known = self._store.queues.lease([msgspec.structs.replace(refill, never_crawled=0) for refill in refills])
        return [self._joined(*both, is_full=room <= 0, at=at) for both in zip(first, known, strict=True)]

    def _lease_new(self, refills: Sequence[Refill], room: int) -> list[LeaseBatch | None]:
        """Lease up to `room` new pages. If `room` is too small for all `refills`, the refills that come first in the
        list get the pages.
        """
        bar = CLASSES if self._bar is None else self._bar
        classes = [inf if number <= bar and number < self._gone else -inf for number in range(CLASSES)]
        asked = [msgspec.structs.replace(refill, recrawl=0, classes=classes) for refill in refills]
        together = sum(refill.never_crawled for refill in asked) <= room
        found: list[LeaseBatch | None] = self._store.queues.lease(asked) if together else []
        for refill in [] if together else asked:
            share = min(refill.never_crawled, room)
            [dealt] = self._store.queues.lease([msgspec.structs.replace(refill, never_crawled=share)])
            room -= 0 if dealt is None else len(dealt.never_crawled)
            found.append(dealt)
        self._demand = max(0, self._demand - sum(len(dealt.never_crawled) for dealt in found if dealt is not None))
        return found

    def _exchange(self, refills: Sequence[Refill], *, at: float) -> list[LeaseBatch | None]:
        """Lease new pages for a full collection, and evict a less important page for each new page.

        If too few pages can be evicted now, give the leases of some new pages back. Make pages of inactive sites due,
        so that these sites become active.
        """
        least = _class(self._candidates[-1].importance) if self._candidates else 0
        bar = CLASSES if self._bar is None else self._bar
        classes = [inf if number < least and number <= bar else -inf for number in range(CLASSES)]
        found = self._store.queues.lease(
            [msgspec.structs.replace(refill, recrawl=0, classes=classes) for refill in refills]
        )
        new = [class_of(one.record.importance) for dealt in found if dealt is not None for one in dealt.never_crawled]
        lacking = len(new) - self._evict(len(new), better=max(new, default=0), at=at)
        self._demand, self._demanded = lacking, max(new, default=0)
        if lacking:
            self._summon(lacking, at=at)
        return self._without(found, lacking)

    def _without(self, dealt: Sequence[LeaseBatch | None], many: int) -> list[LeaseBatch | None]:
        """Give the leases of `many` new pages back to the store."""
        left: list[LeaseBatch | None] = []
        for one in dealt:
            back = [] if one is None else one.never_crawled[:many]
            many -= len(back)
            self._store.queues.release([lease.id for lease in back])
            left.append(
                None if one is None else msgspec.structs.replace(one, never_crawled=one.never_crawled[len(back) :])
            )
        return left

    def _evict(self, many: int, *, better: int, at: float) -> int:
        """Evict up to `many` pages of active sites, the least important first, to make room for pages of the class
        `better`. Return the number of evicted pages.
        """
        going: dict[str, list[bytes]] = {}
        kept: list[_Candidate] = []
        while self._candidates and many > 0 and _class(self._candidates[-1].importance) > better:
            one = self._candidates.pop()
            if one.site in self._held:
                going.setdefault(one.site, []).append(one.key)
                self._gone = _class(one.importance)
                many -= 1
            else:
                kept.append(one)
        self._candidates += reversed(kept)
        gone = sum(self._store.pages.evict(self._held[site], keys, at=at) or 0 for site, keys in going.items())
        self.counts["collection/evicted"] += gone
        return gone

    def _summon(self, many: int, *, at: float) -> None:
        """Make pages due that must be evicted but belong to inactive sites."""
        going: dict[str, list[bytes]] = {}
        for one in islice(reversed(self._candidates), min(many, _SUMMONED)):
            if one.site not in self._held and one.key not in self._summoned:
                self._summoned.add(one.key)
                going.setdefault(one.site, []).append(one.key)
        for site, keys in going.items():
            self._store.queues.advance(site, keys, due=at, at=at)

    def _joined(
        self, first: LeaseBatch | None, known: LeaseBatch | None, *, is_full: bool, at: float
    ) -> LeaseBatch | None:
        """Combine a site's leases of new and of known pages. If the collection is full, the result says when the site
        should request leases of new pages again.
        """
        if first is None or known is None:
            return None
        again = at + (max(1.0, _SOON * self._pause_s) if self._demand else self._pause_s)
        lanes = [*known.lanes, (ADVANCED, again)] if is_full else known.lanes
        overtaken = first.overtaken or known.overtaken
        return msgspec.structs.replace(known, never_crawled=first.never_crawled, lanes=lanes, overtaken=overtaken)

    def hurried(self, leases: list[Lease]) -> list[Lease]:
        """Count the never-crawled pages among immediate leases, which are granted even if the collection is full."""
        for lease in leases:
            if lease.record.state == "never-crawled":
                self._out.setdefault(lease.site, set()).add(lease.id.number)
        return leases

    def close(self) -> None:
        """Stop the sweep before the store is closed."""
        self._sweep = None


def _class(importance: float) -> int:
    """Return the class to which an importance belongs. Duplicates belong to the class of least importance."""
    return CLASSES if importance == _DUPLICATE else class_of(importance)


def replacement_of(
    collection: Collection, store: FrontierStore, importance: LiveImportance | None
) -> Replacement | None:
    """Return the stage that keeps a collection at its fixed size, or None if the collection has no fixed size."""
    most = collection.limits.pages
    if most is None:
        return None
    weigh = None if importance is None else importance.worth_of_holding
    return Replacement(store, most=most, period_s=collection.cycle.period_s, weigh=weigh)
