"""The default store: RocksDB in one folder, one writer, no server. The steps of the contract, each one batch.

Leases live in memory only: a URL lease hides its queue entry and settle removes it, so after a crash nothing has to
be returned. A step that cannot be written is undone by reading the counts anew. Round trips cost nothing here;
the methods tell what a step reads and writes. One thread takes steps; `statistics`, `site`, `page`, `census` may be
asked from another meanwhile. Opened for reading, the store answers every question from an up-to-date view and refuses
every step; of leases it knows nothing.
"""

from __future__ import annotations

import heapq
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import STATES, Discovered, Settled, SiteLease
from webfountain.store.contract import AT_ONCE, Dealt, Regraded, Statistics
from webfountain.store.embedded.change_log import ChangeLog
from webfountain.store.embedded.check import check_disk
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.keys import CLOCK, VALUE, pack_time, site_id
from webfountain.store.embedded.leases import ActiveSite, Leases
from webfountain.store.embedded.pages import Pages, Place
from webfountain.store.embedded.queues import SiteQueues
from webfountain.store.embedded.sites import EPOCH_AT, IMMEDIATE_AT, Sites
from webfountain.store.embedded.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.records import (
        CensusRow,
        Change,
        Lease,
        LeaseId,
        Link,
        Move,
        Outcome,
        PageRecord,
        SiteRecord,
        State,
    )
    from webfountain.store.contract import BucketCensus, Parked, Refill
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.queues import Waiting
    from webfountain.store.embedded.sites import SiteRow

__all__ = ["EmbeddedStore"]


class EmbeddedStore:
    """`FrontierStore` on an open disk.

    `period_s`: length of a census period; `fastest_s`: mean change interval of bucket 0; `generation`: number of the
    opening; `log`: name of the change log.
    """

    def __init__(self, disk: Disk, *, period_s: float, fastest_s: float, generation: int, log: str) -> None:
        self._disk = disk
        self._period_s = period_s
        self._fastest_s = fastest_s
        self._counts = Counts(disk)
        self._sites = Sites(disk)
        self._pages = Pages(disk)
        self._leases = Leases(generation)
        self._changes = ChangeLog(disk, self._counts, log)
        self._steps = Steps(
            disk,
            pages=self._pages,
            sites=self._sites,
            counts=self._counts,
            leases=self._leases,
            changes=self._changes,
            period_s=period_s,
        )
        self._settle_lost = 0

    def recover(self) -> None:
        """Make due again what a killed process had active."""
        sites = self._sites.active_on_disk()
        if sites:
            with self._step() as batch:
                for site in sites:
                    row = self._row(site)
                    due = AT_ONCE if row[IMMEDIATE_AT] else self._sites.due_of(row)
                    self._sites.sleep(batch, site, row, due)

    # ------------------------------------------------------------------- URLs

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """See `UrlQueues.discover`. One multi-get; two puts a new URL."""
        if not links:
            return Discovered(0, 0)
        with self._step() as batch:
            new = len(self._steps.discover(batch, links, at))
        return Discovered(new, len(links) - new)

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """See `UrlQueues.immediate`. A get and at most four writes a URL."""
        if not links:
            return 0
        with self._step() as batch:
            put, overtaken = self._steps.immediate(batch, links, at)
        for place in overtaken:
            self._leases.overtake(place)
        return put

    def lease(self, refills: Sequence[Refill]) -> list[Dealt | None]:
        """See `UrlQueues.lease`. Reads a short range of each lane; writes nothing."""
        return [self._deal(refill) for refill in refills]

    def settle(
        self, outcomes: Sequence[Outcome], *, at: float, learned: Sequence[tuple[SiteLease, bytes]] = ()
    ) -> Settled:
        """See `UrlQueues.settle`. Reads nothing; a delete and two puts a page."""
        for outcome in outcomes:
            if outcome.record.state == "never-crawled":
                raise ValueError(f"{outcome.record.url}: a settled record's state must say what became of the fetch")
        kept = [(lease.site, state) for lease, state in learned if self._leases.under(lease) is not None]
        if not outcomes and not kept:
            return Settled(0, 0)
        with self._step() as batch:
            batch.put(CLOCK, pack_time(at))
            ended = self._steps.settle(batch, outcomes, at)
            for site, state in kept:
                self._sites.put_learned(batch, site, state)
        for lease in ended:
            self._leases.end(lease)
        lost = len(outcomes) - len(ended)
        self._settle_lost += lost
        return Settled(len(ended), lost)

    def release(self, leases: Sequence[LeaseId]) -> int:
        """See `UrlQueues.release`. Touches no disk."""
        return sum(self._leases.end(one) for one in leases)

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """See `UrlQueues.advance`. One multi-get; a delete and two puts a page that moves."""
        if not keys:
            return 0
        with self._step() as batch:
            return self._steps.advance(batch, site, keys, due)

    def recrawl_due(self, site: str) -> list[tuple[int, float]]:
        """See `UrlQueues.recrawl_due`. One seek a non-empty lane."""
        self._refresh()
        return self._queues(site).recrawl_due()

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.activate`. A short scan; two writes and three gets a site."""
        available = heapq.merge(self._sites.due(n, at), sorted(self._leases.ran_out(at)))
        names = [site for _, site in available][:n]
        if not names:
            return []
        with self._step() as batch:
            for site in names:
                self._sites.wake(batch, site, self._row(site), at, owner)
        for site in names:
            self._leases.enter(site, owner, until, SiteQueues(self._disk, site, site_id(site), self._leases.hidden))
        return [self._lease_of(site) for site in names]

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """See `SiteList.renew`. Touches no disk."""
        held = [(lease, active) for lease in leases if (active := self._leases.under(lease)) is not None]
        for _, active in held:
            active.until = until
        return [msgspec.structs.replace(lease, until=until) for lease, _ in held]

    def park(self, parked: Sequence[Parked], *, at: float) -> int:
        """See `SiteList.park`. Four writes a site."""
        leaving: dict[str, tuple[Parked, ActiveSite]] = {}
        for one in parked:
            if one.lease.site in leaving:
                self._leases.fenced += 1
            elif (active := self._leases.under(one.lease)) is not None:
                leaving[one.lease.site] = one, active
        if not leaving:
            return 0
        with self._step() as batch:
            batch.put(CLOCK, pack_time(at))
            for site, (one, active) in leaving.items():
                returned = at if active.out else math.inf
                due = AT_ONCE if active.hurried else min(one.due, active.fresh, returned)
                self._sites.sleep(batch, site, self._row(site), due)
                self._sites.put_state(batch, site, one.state)
        for site in leaving:
            self._leases.leave(site)
        return len(leaving)

    def next_site_due(self) -> float | None:
        """See `SiteList.next_site_due`. One seek, and a look at each active site."""
        self._refresh()
        until = min((active.until for active in self._leases.active.values()), default=math.inf)
        due = min(self._sites.next_due(), until)
        return None if due == math.inf else due

    def urgent(self, owner: str) -> list[SiteLease]:
        """See `SiteList.urgent`. A look at each active site."""
        waits = self._counts.immediate > self._leases.immediate_out
        return [
            self._lease_of(site)
            for site, active in sorted(self._leases.active.items())
            if active.owner == owner
            and (active.overtaken or (waits and self._row(site)[IMMEDIATE_AT] > active.immediate_out))
        ]

    def site(self, site: str) -> SiteRecord | None:
        """See `SiteList.site`. Two multi-gets."""
        self._refresh()
        row = self._sites.read_row(site)
        return self._sites.record(site, row) if row else None

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `SiteList.sites`. A scan, and a multi-get a site."""
        self._refresh()
        return self._sites.after(after, n)

    # ------------------------------------------------------------------ pages

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `Pages.page`. A get, another for a page that was never crawled."""
        self._refresh()
        place = self._pages.place(site, key)
        return None if place is None else place.record

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `Pages.pages`. One scan."""
        self._refresh()
        return ((place.site, place.record) for place in self._pages.listed(site, state))

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `Pages.forget`. A site's pages are read once for the counts, and go in three range deletes."""
        with self._step() as batch:
            steps = self._steps
            removed = steps.forget_site(batch, site, at) if key is None else steps.forget_page(batch, site, key, at)
        if key is None:
            self._leases.leave(site)
        else:
            for lease in self._leases.of_page(site, key):
                self._leases.end(lease)
        return removed

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """See `Pages.evict`. One multi-get; four writes a page."""
        if self._leases.under(lease) is None:
            return None
        if not keys:
            return 0
        with self._step() as batch:
            return self._steps.evict(batch, lease.site, keys, at)

    def regrade(
        self, lease: SiteLease, importance: Callable[[Sequence[bytes]], Sequence[float]], *, epoch: int, n: int
    ) -> Regraded | None:
        """See `Scores.regrade`. One scan of `n` entries; three writes for each that moves."""
        active = self._leases.under(lease)
        if active is None:
            return None
        if self._row(lease.site)[EPOCH_AT] == epoch:
            return Regraded(0, 0, done=True)
        with self._step() as batch:
            return self._steps.regrade(batch, lease.site, active, importance, epoch=epoch, n=n)

    # ----------------------------------------------------------------- counts

    @property
    def period_s(self) -> float:
        """Length of a census period, s."""
        return self._period_s

    @property
    def fastest_s(self) -> float:
        """Mean change interval of bucket 0, s."""
        return self._fastest_s

    def census(self) -> dict[int, BucketCensus]:
        """See `Census.census`."""
        return self._read_counts().census()

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """See `Census.census_rows`. One short scan."""
        return self._read_counts().census_rows(since)

    def statistics(self) -> Statistics:
        """See `Census.statistics`. What is leased only the writing process knows."""
        counts = self._read_counts()
        active = len(self._sites.active_on_disk()) if self._disk.read_only else len(self._leases.active)
        return Statistics(
            pages=dict(zip(STATES, counts.pages, strict=True)),
            sites=counts.sites,
            active_sites=active,
            leased=len(self._leases),
            immediate=counts.immediate - self._leases.immediate_out,
            settle_lost=self._settle_lost,
            fenced=self._leases.fenced,
        )

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """See `Copies.copies`."""
        return self._read_counts().copies(repository)

    def relocate(self, moves: Sequence[Move]) -> int:
        """See `Copies.relocate`. A get and a put a move."""
        if not moves:
            return 0
        with self._step() as batch:
            count, followed = self._steps.relocate(batch, moves)
        for place in followed:
            self._leases.follow(place.entry, place.record)
        return count

    def changes(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """See `Changes.changes`. One get and a scan of `n` entries."""
        self._disk.refresh()
        return self._changes.after(cursor, n)

    def changes_end(self) -> str:
        """See `Changes.changes_end`. One get."""
        self._disk.refresh()
        return self._changes.end()

    def changes_from(self, at: float) -> str:
        """See `Changes.changes_from`. A get for each halving of the log."""
        self._disk.refresh()
        return self._changes.since(at)

    def trim_changes(self, *, before: float, most: int) -> int:
        """See `Changes.trim_changes`. Some gets, and one range delete where entries go."""
        last = self._changes.last_to_drop(before, most)
        dropped = self._counts.dropped
        if last <= dropped:
            return 0
        with self._step() as batch:
            self._changes.drop(batch, last)
        return last - dropped

    def value(self, name: str) -> bytes | None:
        """See `Board.value`. One get."""
        self._refresh()
        return self._disk.get(VALUE + name.encode())

    def put_value(self, name: str, value: bytes) -> None:
        """See `Board.put_value`. One put."""
        with self._step() as batch:
            batch.put(VALUE + name.encode(), value)

    def close(self) -> None:
        """See `FrontierStore.close`. A clean end also survives a power cut."""
        self._disk.close()

    def check_valid(self) -> None:
        """Assert what must hold between two steps (`check`)."""
        check_disk(self._disk, self._sites, self._leases)

    # ---------------------------------------------------------------- private

    @contextmanager
    def _step(self) -> Iterator[WriteBatch]:
        """One atomic step: what the body puts into the batch and the counts it changed, or nothing."""
        batch = WriteBatch(raw_mode=True)
        try:
            yield batch
            self._sites.stage(batch)
            self._counts.stage(batch)
            self._disk.write(batch)
        except BaseException:
            self._sites.load()
            self._counts.load()
            raise

    def _deal(self, refill: Refill) -> Dealt | None:
        active = self._leases.under(refill.lease)
        if active is None:
            return None
        site, queues = refill.lease.site, active.queues
        urgent = self._hold(site, active, queues.immediate(refill.immediate)) if refill.immediate else []
        never: list[Lease] = []
        if refill.never_crawled:
            never = self._hold(site, active, queues.never_crawled(refill.never_crawled, refill.classes))
        recrawl: list[Lease] = []
        lanes: list[tuple[int, float]] = []
        if refill.recrawl:
            recrawl = self._hold(site, active, queues.recrawl(refill.recrawl, refill.horizon))
            lanes = queues.recrawl_due()
        active.hurried = active.hurried and len(urgent) >= refill.immediate
        overtaken = active.overtaken and refill.immediate > 0
        active.overtaken = active.overtaken and not overtaken
        active.fresh = active.fresh if len(never) >= refill.never_crawled else math.inf
        return Dealt(site, urgent, never, recrawl, lanes, overtaken)

    def _hold(self, site: str, active: ActiveSite, waiting: Sequence[Waiting]) -> list[Lease]:
        """Lease entries; the records of pages that were tried are read in one go."""
        tried = [one.key for one in waiting if one.record is None]
        records = {place.key: place.record for place in self._pages.places(site, tried) if place is not None}
        return [
            self._leases.hold(active, Place(site, one.key, one.entry, one.record or records[one.key]))
            for one in waiting
        ]

    def _read_counts(self) -> Counts:
        """The counts in memory; opened for reading, those that the writing process wrote last."""
        if not self._disk.read_only:
            return self._counts
        self._disk.refresh()
        return Counts(self._disk)

    def _refresh(self) -> None:
        """Opened for reading: what was read before may have changed."""
        if self._disk.read_only:
            self._disk.refresh()
            self._sites.load()

    def _row(self, site: str) -> SiteRow:
        row = self._sites.row(site)
        assert row, f"{site} is in use and has no row"
        return row

    def _queues(self, site: str) -> SiteQueues:
        active = self._leases.active.get(site)
        return SiteQueues(self._disk, site, site_id(site), self._leases.hidden) if active is None else active.queues

    def _lease_of(self, site: str) -> SiteLease:
        active = self._leases.active[site]
        return SiteLease(site, active.token, active.until, self._sites.record(site, self._row(site)))
