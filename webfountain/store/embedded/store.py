"""The default store: RocksDB in one folder, one writer, no server. The steps of the contract, each one batch.

Leases live in memory only: a URL lease hides its queue entry and settle removes it, so after a crash nothing has to
be returned. A step that cannot be written is undone by reading the counts anew. Round trips cost nothing here;
the methods tell what a step reads and writes. One thread takes steps; `statistics`, `site`, `page`, `census` may be
asked from another meanwhile. Opened for reading, the store answers every question from an up-to-date view and refuses
every step; of leases it knows nothing.

`disk_rows` and `load_folder`: a store as rows, and rows as a store, for export, import and the way into another format.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError
from webfountain.records import STATES, Change, Discovered, Settled, SiteLease
from webfountain.store import transfer
from webfountain.store.contract import AT_ONCE, Dealt, Reassigned, Regraded, Statistics, class_of, recrawl_place
from webfountain.store.embedded.disk import (
    BAR,
    BARRED,
    CHANGE,
    CLOCK,
    FORMAT,
    IMMEDIATE_NEVER,
    IMPORTING,
    LEARNED,
    META,
    NAME,
    NEVER,
    PAGE,
    REGRADE,
    STATE,
    VALUE,
    Meta,
    WriteBatch,
    after,
    arrival_of,
    due_key,
    never_suffix,
    number,
    open_writing,
    pack_time,
    pack_waiting,
    place_of,
    pointer,
    recrawl_key,
    site_id,
)
from webfountain.store.embedded.leases import LeasedSite, Leases, SiteQueues
from webfountain.store.embedded.rows import (
    EPOCH_AT,
    IMMEDIATE_AT,
    Counts,
    PagePlace,
    PageRows,
    SiteRows,
    counted_rows,
    log_bounds,
)
from webfountain.store.embedded.steps import LocalChangeLog, Steps, check_disk
from webfountain.store.rules import check_settled, encode_page, encode_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from webfountain.records import (
        CensusRow,
        Lease,
        LeaseId,
        Link,
        Move,
        Outcome,
        PageRecord,
        SiteRecord,
        State,
    )
    from webfountain.store.contract import BucketCensus, FeedForm, Parked, Refill
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import Entry
    from webfountain.store.embedded.rows import SiteRow
    from webfountain.store.transfer import Row

__all__ = ["EmbeddedStore", "disk_rows", "load_folder"]


class EmbeddedStore:
    """`FrontierStore` on an open disk.

    `period_s`: length of a census period; `fastest_s`: mean change interval of bucket 0; `generation`: number of the
    opening; `log`: name of the change log.
    """

    def __init__(self, disk: Disk, *, period_s: float, fastest_s: float, generation: int, log: str) -> None:
        self.claims = None  # one process's alone
        self._disk = disk
        self._period_s = period_s
        self._fastest_s = fastest_s
        self._counts = Counts(disk)
        self._sites = SiteRows(disk)
        self._pages = PageRows(disk)
        self._leases = Leases(generation)
        self._changes = LocalChangeLog(disk, self._counts, log)
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
            staged, repeated = self._steps.discover(batch, links, at)
        return Discovered(len(staged), len(repeated), tuple(repeated))

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
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> Settled:
        """See `UrlQueues.settle`. Reads nothing; a delete and two puts a page."""
        check_settled(outcomes)
        kept = [(lease.site, state) for lease, state in learned if self._leases.under(lease) is not None]
        pieces = [(lease.site, of, part) for lease, of, part in parts if self._leases.under(lease) is not None]
        if not outcomes and not kept and not pieces:
            return Settled(0, 0)
        with self._step() as batch:
            batch.put(CLOCK, pack_time(at))
            ended = self._steps.settle(batch, outcomes, at)
            for site, state in kept:
                self._sites.put_learned(batch, site, state)
            for site, of, part in pieces:
                self._sites.put_part(batch, site, of, part)
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

    def reassign(
        self, site: str, keys: Sequence[bytes], revised: Callable[[PageRecord], PageRecord | None]
    ) -> Reassigned:
        """See `UrlQueues.reassign`. One or two multi-gets; up to three writes a page that is put."""
        if not keys:
            return Reassigned()
        with self._step() as batch:
            return self._steps.reassign(batch, site, keys, revised)

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.activate`. A short scan; two writes and three gets a site."""
        available = heapq.merge(self._sites.due(n, at), sorted(self._leases.ran_out(at)))
        return self._take([site for _, site in available][:n], owner, until, at)

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.enlist`. As `activate`."""
        active = self._leases.active
        known = [site for site in dict.fromkeys(sites) if self._sites.row(site)]
        return self._take([s for s in known if s not in active or active[s].until <= at], owner, until, at)

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """See `SiteList.renew`. Touches no disk."""
        held = [(lease, active) for lease in leases if (active := self._leases.under(lease)) is not None]
        for _, active in held:
            active.until = until
        return [msgspec.structs.replace(lease, until=until) for lease, _ in held]

    def park(self, parked: Sequence[Parked], *, at: float) -> int:
        """See `SiteList.park`. Four writes a site."""
        leaving: dict[str, tuple[Parked, LeasedSite]] = {}
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

    def part(self, site: str, number: int) -> bytes | None:
        """See `SiteList.part`. A get."""
        self._refresh()
        return self._sites.part(site, number)

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `SiteList.sites`. A scan, and a multi-get a site."""
        self._refresh()
        return self._sites.after(after, n)

    # ------------------------------------------------------------------ pages

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `PageRows.page`. A get, another for a page that was never crawled."""
        self._refresh()
        place = self._pages.place(site, key)
        return None if place is None else place.record

    def records(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """See `PageReader.records`. As `page` for each."""
        self._refresh()
        places = (self._pages.place(site, key) for key in keys)
        return [None if place is None else place.record for place in places]

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `PageRows.pages`. One scan."""
        self._refresh()
        return ((place.site, place.record) for place in self._pages.listed(site, state))

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `PageRows.forget`. A site's pages are read once for the counts, and go in three range deletes."""
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
        """See `PageRows.evict`. One multi-get; four writes a page."""
        if self._leases.under(lease) is None:
            return None
        if not keys:
            return 0
        with self._step() as batch:
            return self._steps.evict(batch, lease.site, keys, at)

    def regrade(
        self, lease: SiteLease, importance: Callable[[Sequence[PageRecord]], Sequence[float]], *, epoch: int, n: int
    ) -> Regraded | None:
        """See `Scores.regrade`. One scan of `n` entries; three writes for each that moves."""
        active = self._leases.under(lease)
        if active is None:
            return None
        if self._row(lease.site)[EPOCH_AT] == epoch:
            return Regraded(0, 0, done=True)
        with self._step() as batch:
            return self._steps.regrade(batch, lease.site, active, importance, epoch=epoch, n=n)

    def reweigh(
        self, lease: SiteLease, keys: Sequence[bytes], importance: Callable[[Sequence[PageRecord]], Sequence[float]]
    ) -> int | None:
        """See `Scores.reweigh`. Two multi-gets; three writes for each that moves."""
        if self._leases.under(lease) is None:
            return None
        with self._step() as batch:
            return self._steps.reweigh(batch, lease.site, keys, importance)

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

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """See `Feeds.feed`: there is no server."""

    def rows(self) -> Iterator[Row]:
        """See `Portable.rows`. One scan; opened for reading, of the view that it began with."""
        self._refresh()
        return disk_rows(self._disk)

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
            waiting, lanes = queues.recrawl(refill.recrawl, refill.horizon)
            recrawl = self._hold(site, active, waiting)
        active.hurried = active.hurried and len(urgent) >= refill.immediate
        overtaken = active.overtaken and refill.immediate > 0
        active.overtaken = active.overtaken and not overtaken
        active.fresh = active.fresh if len(never) >= refill.never_crawled else math.inf
        return Dealt(site, urgent, never, recrawl, lanes, overtaken)

    def _hold(self, site: str, active: LeasedSite, waiting: Sequence[Entry]) -> list[Lease]:
        """Lease entries; the records of pages that were tried are read in one go."""
        tried = [one.key for one in waiting if one.record is None]
        records = {place.key: place.record for place in self._pages.places(site, tried) if place is not None}
        return [
            self._leases.hold(active, PagePlace(site, one.key, one.entry, one.record or records[one.key]))
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

    def _take(self, names: Sequence[str], owner: str, until: float, at: float) -> list[SiteLease]:
        """Put sites on the owner's active list."""
        if not names:
            return []
        lost_by = {site: active.owner for site in names if (active := self._leases.active.get(site)) is not None}
        with self._step() as batch:
            for site in names:
                self._sites.wake(batch, site, self._row(site), at, owner)
        for site in names:
            self._leases.enter(site, owner, until, SiteQueues(self._disk, site, site_id(site), self._leases.hidden))
        return [msgspec.structs.replace(self._lease_of(site), lost_by=lost_by.get(site)) for site in names]

    def _lease_of(self, site: str) -> SiteLease:
        active = self._leases.active[site]
        return SiteLease(site, active.token, active.until, self._sites.record(site, self._row(site)))


_AT_ONCE: Final = 5000
_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)
logger = logging.getLogger(__name__)


def disk_rows(disk: Disk) -> Iterator[Row]:
    """See `Portable.rows`: the whole disk in one pass, sites in order of name."""
    value = disk.get(META)
    if value is None:
        raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection makes one")
    meta = msgspec.msgpack.decode(value, type=Meta)
    if meta.unit is not None:
        raise InputError(f"{disk.folder}: its bucket bytes are being made anew; let a crawl open it once")
    dropped, _ = log_bounds(disk)
    yield transfer.Head(meta.collection, meta.period_s, meta.fastest_s, meta.log, dropped)
    for key, value in disk.scan(VALUE, after(VALUE)):
        yield transfer.Value(key[1:].decode(), value)
    for (period, bucket), counts in counted_rows(disk):
        yield transfer.Counted(period, bucket, tuple(map(float, counts)))
    for key, _ in disk.scan(BARRED, after(BARRED)):
        yield transfer.Barred(key[1:].decode())
    yield from _barred_pages(disk)
    sites, pages, active = SiteRows(disk), PageRows(disk), set(SiteRows(disk).active_on_disk())
    name = ""
    while found := sites.after(name, _AT_ONCE):
        for record in found:
            name = record.site
            due = AT_ONCE if name in active and record.immediate else record.due
            yield transfer.Site(
                name, record.first_seen, due, record.state, record.epoch, record.learned, _regrading(disk, name)
            )
            for of, part in sites.parts(name):
                yield transfer.Part(name, of, part)
            for place in pages.listed(name, None):
                waits = place.record.state == "never-crawled" and place.record.immediate is None
                yield transfer.Page(name, place.key, place.record, arrival_of(place.entry) if waits else None)
    for _, value in disk.scan(CHANGE, after(CHANGE)):
        yield transfer.Logged(_entry.decode(value))


def _barred_pages(disk: Disk) -> Iterator[Row]:
    unnamed = 0
    for key, value in disk.scan(PAGE, after(PAGE)):
        if value[:1] == BAR:
            name = value[1:] or disk.get(NAME + key[1:9])
            if name:
                yield transfer.Barred(name.decode(), key[9:])
            unnamed += not name
    if unnamed:
        logger.warning("%s: %d forgotten pages of unknown sites are left out", disk.folder, unnamed)


def _regrading(disk: Disk, site: str) -> tuple[int, int, int] | None:
    kept = disk.get(REGRADE + site_id(site))
    return None if kept is None else (place_of(kept[:8]), kept[8], place_of(kept))


def load_folder(folder: Path, rows: Iterator[Row]) -> None:
    """Make an embedded store of rows in a folder that has none; killed, it is no store and may be begun again.

    Raises
    ------
    InputError
        when there is a store in the folder.
    StoreHeld, StoreError
        when the folder is another process's, or cannot be written.
    """
    head = transfer.head_of(rows)
    with contextlib.closing(open_writing(folder)) as disk:
        value = disk.get(META)
        if value is not None and msgspec.msgpack.decode(value)[0] != IMPORTING:
            raise InputError(f"{folder}: there is a store already; an import needs a new one")
        meta = Meta(IMPORTING, head.collection, head.period_s, head.fastest_s, log=head.log)
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(b"", b"\xff")
        batch.put(META, _encode(meta))
        disk.write(batch)
        loading = _Loading(disk, head.dropped)
        while some := list(itertools.islice(rows, _AT_ONCE)):
            loading.take(some)
        batch = WriteBatch(raw_mode=True)
        batch.put(META, _encode(msgspec.structs.replace(meta, format=FORMAT)))
        disk.write(batch)


class _Loading:
    """A store that is filled with rows, in batches. A site whose pages stand in several is counted in each."""

    def __init__(self, disk: Disk, dropped: int) -> None:
        self._disk = disk
        self._sites = SiteRows(disk)
        self._counts = Counts(disk)
        self._counts.changes = self._counts.dropped = dropped
        self._row: SiteRow = []
        self._sid = b""

    def take(self, rows: Sequence[Row]) -> None:
        """Write some rows and their counts."""
        batch = WriteBatch(raw_mode=True)
        for row in rows:
            match row:
                case transfer.Page():
                    self._put_page(batch, row)
                case transfer.Site():
                    self._put_site(batch, row)
                case transfer.Part(site, of, part):
                    self._sites.put_part(batch, site, of, part)
                case transfer.Logged(change):
                    batch.put(CHANGE + number(change.sequence), _encode(change))
                    self._counts.changes = change.sequence
                case transfer.Barred(site, None):
                    batch.put(BARRED + site.encode(), b"")
                case transfer.Barred(site, bytes(key)):
                    batch.put(PAGE + site_id(site) + key, BAR + site.encode())
                case transfer.Counted(period, bucket, counts):
                    self._counts.count({(period, bucket): list(counts)})
                case transfer.Value(name, value):
                    batch.put(VALUE + name.encode(), value)
        self._sites.stage(batch)
        self._counts.stage(batch)
        self._disk.write(batch)

    def _put_site(self, batch: WriteBatch, site: transfer.Site) -> None:
        name, self._sid = site.site, site_id(site.site)
        self._row = [0] * len(STATES) + [site.due, site.first_seen, 0, site.epoch]
        self._sites.touch(name, self._row)
        self._counts.sites += 1
        batch.put(NAME + self._sid, name.encode())
        batch.put(due_key(site.due, name), b"")
        batch.put(STATE + self._sid, encode_state(site.state))
        if site.learned:
            batch.put(LEARNED + self._sid, site.learned)
        if site.regrading is not None:
            epoch, lane, arrival = site.regrading
            batch.put(REGRADE + self._sid, number(epoch) + never_suffix(lane, arrival))

    def _put_page(self, batch: WriteBatch, page: transfer.Page) -> None:
        record, key = page.record, page.key
        self._counts.add(self._row, record)
        self._sites.touch(page.site, self._row)
        self._counts.arrivals = max(self._counts.arrivals, page.arrival or 0, record.immediate or 0)
        if record.state == "never-crawled":
            hurries = record.immediate is not None
            turn = record.immediate if hurries else page.arrival
            suffix = never_suffix(IMMEDIATE_NEVER if hurries else class_of(record.importance), turn or 0)
            batch.put(PAGE + self._sid + key, pointer(suffix))
            batch.put(NEVER + self._sid + suffix, pack_waiting(page.site, key, record))
        else:
            batch.put(PAGE + self._sid + key, encode_page(record))
            batch.put(recrawl_key(self._sid, *recrawl_place(record), key), b"")
