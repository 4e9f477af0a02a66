"""Carry out batches on the store and the repository, in one worker thread.

For each batch, the worker settles ended leases (`settlement`), parks and activates sites, and then leases pages
(`Leasing`). A crash loses no data, but some pages are fetched again (DESIGN.md section 3).
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.core.forecast import published
from webfountain.errors import PolicyError
from webfountain.frontier.batch import BatchResult, CensusSnapshot
from webfountain.frontier.planning.collection_forecast import fresh_share
from webfountain.frontier.progress import IDLE_S, LIMIT, RateLimit
from webfountain.frontier.sites.domain_shares import SHARES
from webfountain.frontier.stage import Stage
from webfountain.policy.collection_file import CollectionInForce
from webfountain.records import STATES
from webfountain.store.answers import Refill, Statistics
from webfountain.store.contract import COLLECTION, FORECAST, PLAN, PRICE
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.core.forecast import Outlook
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.inbox.seeds import Entrance
    from webfountain.frontier.stage import Stages
    from webfountain.frontier.worker.settlement import LossRecovery, Settlement
    from webfountain.policy.collection import Collection
    from webfountain.policy.tables import ChangesTable
    from webfountain.records import SiteLease
    from webfountain.store.answers import Claim, LeaseBatch
    from webfountain.store.contract import Board, CensusReader, Changes, FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = [
    "IMMEDIATE_BATCH",
    "ChangeLogTrim",
    "Leasing",
    "Publisher",
    "SharedCounts",
    "StoreCounts",
    "StoreWorker",
    "counts_of",
    "never_crawled_due",
    "take_census",
]

logger = logging.getLogger(__name__)
IMMEDIATE_BATCH: Final = 100
"""Maximum number of sites that one batch activates for immediate URLs, and maximum number of such URLs per site."""
_T = TypeVar("_T")
_NEVER_CRAWLED: Final = STATES.index("never-crawled")
_SITES: Final = 10_000
COUNTS: Final = "role/counts"
"""Name of the claim whose note contains the store's counts, owned by the ant that last computed them."""
_BUSY_AGE_S: Final = 1.0
_IDLE_AGE_S: Final = 2.0
"""Maximum age of stored counts that an ant without sites uses, in seconds. For an ant with sites, the maximum age of
stored counts is `_BUSY_AGE_S`.
"""


class Leasing:
    """Leases sites and pages for the process `owner`.

    `lease_pages` leases the pages that refills request, or returns None for a site that this process no longer holds.
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        stages: Stages,
        lease_pages: Callable[[Sequence[Refill], float], Sequence[LeaseBatch | None]],
        owner: str,
        lease_s: float,
    ) -> None:
        self._store = store
        self._stages = stages
        self._lease_pages = lease_pages
        self._owner = owner
        self._lease_s = lease_s

    def renew(self, batch: Batch, result: BatchResult) -> None:
        """Renew site leases. Call this method before pages are settled, because pages of a lost site must not be
        settled.
        """
        result.renewed = self._store.sites.renew(batch.renewals, until=batch.at + self._lease_s)
        kept = {lease.site for lease in result.renewed}
        result.lost = [lease.site for lease in batch.renewals if lease.site not in kept]
        for lost in self._stages.lost:
            lost(result.lost)

    def activate(self, batch: Batch, result: BatchResult) -> bool:
        """Activate sites with new immediate URLs, and other due sites if there is room.

        Return whether `result.next_site_due` is already known.
        """
        if batch.immediate:
            result.next_site_due = self._store.sites.next_due()
        if result.next_site_due == AT_ONCE:
            result.activated += self._activated(IMMEDIATE_BATCH, batch.at, due=AT_ONCE)
        if batch.room > 0:
            self._fill(batch, result)
        is_asked = batch.immediate and not result.activated
        if result.activated:
            for activated in self._stages.activated:
                result.activated = activated(result.activated, batch.at)
        return is_asked

    def lease(self, batch: Batch, result: BatchResult) -> None:
        """Lease immediate URLs, then the pages that sites request."""
        # A site that was activated for its immediate URLs gets them now; later it might have been parked for lack of
        # URLs.
        if batch.immediate or any(lease.record.immediate for lease in result.activated):
            self._lease_immediate(batch, result)
        for before_lease in self._stages.before_lease:
            before_lease(batch, result)
        found = self._lease_pages(batch.refills, batch.at) if batch.refills else ()
        for refill, dealt in zip(batch.refills, found, strict=True):
            if dealt is None:
                result.lost.append(refill.lease.site)
            else:
                allowed = self._allowed(dealt, batch.at)
                result.dealt.append(allowed)
                result.counts["ant/leased"] += len(allowed.never_crawled) + len(allowed.recrawl)

    def _activated(self, many: int, at: float, *, due: float) -> list[SiteLease]:
        return self._store.sites.activate(many, owner=self._owner, until=at + self._lease_s, at=due)

    def _fill(self, batch: Batch, result: BatchResult) -> None:
        """Activate sites until the active list is full: first the sites that a stage chooses, then those that have been
        due longest.
        """
        room, until = batch.room, batch.at + self._lease_s
        for choose in self._stages.choose:
            if chosen := choose(room):
                leases = self._store.sites.enlist(chosen, owner=self._owner, until=until, at=batch.at)
                result.activated += leases
                room -= len(leases)
        if room > 0:
            result.activated += self._activated(room, batch.at, due=batch.at)

    def _lease_immediate(self, batch: Batch, result: BatchResult) -> None:
        sites = self._store.sites.urgent(self._owner) if batch.holds_sites or result.activated else []
        refills = [Refill(lease, immediate=IMMEDIATE_BATCH) for lease in sites]
        for dealt in self._store.queues.lease(refills):
            if dealt is not None:
                leases = dealt.immediate
                for hurried in self._stages.hurried:
                    leases = hurried(leases)
                result.immediate[dealt.site] = leases
        result.immediate_left = bool(refills) and bool(self._store.sites.urgent(self._owner))

    def _allowed(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Return the leases of `dealt` that no stage withholds, and the number of withheld pages."""
        allowed = dealt
        for leased in self._stages.leased:
            allowed = leased(allowed, at)
        withheld = len(dealt.never_crawled) + len(dealt.recrawl) - len(allowed.never_crawled) - len(allowed.recrawl)
        return msgspec.structs.replace(allowed, withheld=withheld) if withheld else allowed


class StoreWorker:
    """Carries out batches on the store and the repository. Only one thread may use the worker at a time."""

    def __init__(
        self,
        store: FrontierStore,
        *,
        stages: Stages,
        settlement: Settlement,
        leasing: Leasing,
        counts: StoreCounts,
        recoveries: Sequence[LossRecovery],
        outlook: Callable[[], Outlook | None],
        entrance: Entrance,
    ) -> None:
        self._store = store
        self._stages = stages
        self._settlement = settlement
        self._leasing = leasing
        self.publisher = Publisher(store.board)
        self._counts = counts
        self._recoveries = recoveries
        self._outlook = outlook
        self.entrance = entrance

    def run(self, batch: Batch) -> BatchResult:
        """Carry out a batch. Errors of the store and the repository are raised."""
        result = BatchResult(batch)
        for recovery in self._recoveries:
            recovery.apply(result)
        if batch.renewals:
            self._leasing.renew(batch, result)
        if batch.ended or batch.learned or batch.answers:
            self._settlement.settle(batch, result)
        for discover_more in self._stages.discover_more if batch.offers or batch.sitemaps else ():
            discover_more(batch, result)
        for after_settle in self._stages.after_settle:
            after_settle(batch, result)
        self._leave(batch, result)
        self._adopt_collection(batch)
        for before_activate in self._stages.before_activate:
            before_activate(batch, result)
        is_asked = self._leasing.activate(batch, result)
        self._leasing.lease(batch, result)
        for welcome in self._stages.welcome if batch.guests else ():
            welcome(batch, result)
        for chores in self._stages.chores:
            chores(batch, result)
        for tidy in self._stages.tidy if batch.tidy else ():
            tidy(batch)
        self.publisher.publish(batch)
        self._take_stock(batch, result, is_asked=is_asked)
        for recovery in self._recoveries:
            recovery.apply(result)
        return result

    def _leave(self, batch: Batch, result: BatchResult) -> None:
        """Release the leases in the batch, and park its sites."""
        if batch.released:
            result.counts["ant/released"] += self._store.queues.release(batch.released)
        if batch.parked:
            for before_park in self._stages.before_park:
                before_park(batch)
            self._store.sites.park(batch.parked, at=batch.at)

    def _adopt_collection(self, batch: Batch) -> None:
        """Adopt an edited policy file."""
        if batch.collection is not None:
            self.publisher.publish_collection(batch.collection)
            for adopt in self._stages.adopt:
                try:
                    adopt(batch.collection)
                except PolicyError as error:  # the file changed after its check, so this edit is followed by another
                    logger.error("The edited seeds file could not be adopted completely: %s", error)

    def _take_stock(self, batch: Batch, result: BatchResult, *, is_asked: bool) -> None:
        """Add counts of the store's pages and sites to the result.

        If the batch does not request counts, use the last known counts.
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

    def fresh_share(self, counted: Statistics, at: float) -> float | None:
        """Return the estimated share of known pages whose copies are fresh, or None if this is unknown."""
        return fresh_share(self._store, counted, self._outlook(), at)

    def on_store(self, function: Callable[[FrontierStore], _T]) -> _T:
        """Call `function` with the store, and return the result. `function` must not interfere with the worker's
        batches.
        """
        return function(self._store)

    def give_back(self, batch: Batch) -> None:
        """Release all leases and park all sites at the end of the crawl."""
        self._store.queues.release(batch.released)
        self._store.sites.park(batch.parked, at=batch.at)
        for sign_off in self._stages.sign_off:
            sign_off(batch)

    def close(self) -> None:
        """Close the store and all stages, even if one of them raises an error."""
        with ExitStack() as closing:
            closing.callback(self._store.close)
            for close in self._stages.close:
                closing.callback(close)


class Publisher:
    """Publishes in the store the values that batches contain."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._price: float | None = None
        self._limit: str | None = None

    def publish_collection(self, collection: Collection) -> None:
        """Publish an adopted policy file."""
        self._board.put_value(COLLECTION, CollectionInForce.encode(collection))

    def publish(self, batch: Batch) -> None:
        """Publish the plan, the price and other values of a batch."""
        if batch.plan is not None:
            self._board.put_value(PLAN, batch.plan)
        if batch.price is not None and batch.price != self._price and batch.rules:
            self._price = batch.price
            self._board.put_value(PRICE, msgspec.msgpack.encode(batch.price))
        if batch.limit is not None:
            self.publish_limit(batch.limit, at=batch.at)
        if batch.shares is not None:
            self._board.put_value(SHARES, msgspec.msgpack.encode(batch.shares))

    def publish_limit(self, words: str, *, at: float) -> None:
        """Publish what limits the rate of fetches at the time `at`, UTC seconds."""
        if words != self._limit:
            self._limit = words
            self._board.put_value(LIMIT, msgspec.msgpack.encode(RateLimit(at, words)))


class ChangeLogTrim(Stage):
    """Removes old entries from the change log."""

    def __init__(self, changes: Changes, rules: ChangesTable) -> None:
        self._changes = changes
        self._rules = rules

    def tidy(self, batch: Batch) -> None:
        self._changes.trim(before=batch.at - self._rules.keep, most=self._rules.max_entries)


def take_census(store: FrontierStore, *, since: int, at: float) -> CensusSnapshot:
    """Count the pages in the store, by reading a few hundred rows."""
    waiting = store.census.statistics().pages["never-crawled"]
    kept = published(store.board.value(FORECAST))
    found = kept.forecast.cycles[-1].found if kept is not None and kept.forecast.cycles else None
    return CensusSnapshot(at, store.census.buckets(), store.census.rows(since=since), waiting, found)


def never_crawled_due(store: FrontierStore, at: float) -> float:
    """Return the earliest due time of a site with never-crawled pages, or inf if no site has such pages.

    If no site is active or due soon, return the due time of the next site, without a scan of all sites.
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
    """The counts of a store that many ants share.

    To compute the counts of all shards, a process needs 256 reads. One ant stores the counts with a claim, and all
    other ants use the stored counts while they are recent.
    """

    def __init__(self, census: CensusReader, claims: Claims, *, owner: str) -> None:
        super().__init__(census)
        self._claims = claims
        self._owner = owner
        self._known: Statistics | None = None

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the stored counts in one round trip if they are recent, or else compute the counts in three round
        trips.
        """
        [claim] = self._claim(at, idle=idle)
        if claim.owner != self._owner and claim.note:
            self._known = Statistics(**msgspec.msgpack.decode(claim.note))
            return self._known
        self._known = self._census.statistics()
        self._claim(at, idle=idle, note=msgspec.msgpack.encode(self._known))
        return self._known

    def last(self) -> Statistics:
        """Return the last known counts of pages and sites, or compute these counts if none are known."""
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
