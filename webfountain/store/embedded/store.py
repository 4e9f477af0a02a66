"""The default store: RocksDB in one folder, one writer, no server. The steps of the contract, each one batch.

Leases and the deadlines of active sites live in memory only: a lease hides its queue entry and settle removes
it, so after a crash nothing has to be returned. A step that cannot be written is undone by reading the counts anew.
One thread takes steps; `statistics`, `site`, `page`, `census` may be asked from another meanwhile. Opened for
reading, the store answers every question from an up-to-date view and refuses every step.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import STATES, Discovered, Lease, Settled
from webfountain.store.codec import first_record
from webfountain.store.contract import Statistics
from webfountain.store.embedded.arrivals import ActiveSite, Arrivals
from webfountain.store.embedded.check import check_disk
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.endings import Endings
from webfountain.store.embedded.forgetting import Forgetting
from webfountain.store.embedded.keys import IMMEDIATE, PLAN, after, number, place_of, site_id
from webfountain.store.embedded.keys import waiting_record as waiting_record_of
from webfountain.store.embedded.leases import Leases
from webfountain.store.embedded.ledger import Ledger
from webfountain.store.embedded.pages import Pages, Place
from webfountain.store.embedded.queues import SiteQueues
from webfountain.store.embedded.sites import BARRED_SITE, Sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import CensusRow, Link, Move, Outcome, PageRecord, Queue, SiteRecord, State
    from webfountain.store.contract import BucketCensus, Parked
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.sites import SiteRow

__all__ = ["EmbeddedStore"]

_encode = msgspec.msgpack.Encoder().encode
_name = msgspec.msgpack.Decoder(tuple[str, bytes])


class EmbeddedStore:
    """`FrontierStore` on an open disk. `period_s`: length of a census period; `generation`: number of the opening."""

    def __init__(self, disk: Disk, *, period_s: float, generation: int) -> None:
        self._disk = disk
        self._period_s = period_s
        self._ledger = Ledger(disk)
        self._sites = Sites(disk)
        self._pages = Pages(disk)
        self._leases = Leases(generation)
        self._active: dict[str, ActiveSite] = {}
        self._arrivals = Arrivals(self._pages, self._sites, self._ledger, self._active, period_s)
        self._forgetting = Forgetting(disk, self._pages, self._sites, self._ledger, self._leases)
        self._endings = Endings(self._pages, self._sites, self._ledger, self._leases, period_s)
        self._settle_lost = 0

    def recover(self) -> None:
        """Make due again what a killed process had active; put its immediate queue, leased or not, in order."""
        for key, value in self._disk.scan(IMMEDIATE, after(IMMEDIATE)):
            place = self._pages.place(*_name.decode(value))
            assert place is not None, "the immediate queue names a page that is not there"
            self._leases.wait(place_of(key), place)
        with self._step() as batch:
            self._sleep(batch, self._sites.active_on_disk())

    # ------------------------------------------------------------------ links

    @property
    def period_s(self) -> float:
        """Length of a census period, s."""
        return self._period_s

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """See `FrontierStore.discover`. One multi-get; two puts a new URL."""
        with self._step() as batch:
            new = len(self._arrivals.stage(batch, links, at))
        return Discovered(new, len(links) - new)

    def known(self, site: str, keys: Sequence[bytes]) -> list[bool]:
        """See `FrontierStore.known`."""
        self._refresh()
        if self._sites.read_row(site) is BARRED_SITE:
            return [True] * len(keys)
        return self._pages.known(site, keys)

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """See `FrontierStore.immediate`."""
        waiting: dict[int, Place] = {}
        hidden = set(self._leases.hidden)
        with self._step() as batch:
            staged = self._arrivals.stage(batch, links, at).values()
            new = {(link.site, link.key): _new_place(link, entry, at) for link, entry in staged}
            for link in links:
                place = new.get((link.site, link.key)) or self._pages.place(link.site, link.key)
                if place is not None and place.entry not in hidden:
                    hidden.add(place.entry)
                    self._ledger.arrivals += 1
                    waiting[self._ledger.arrivals] = place
                    batch.put(IMMEDIATE + number(self._ledger.arrivals), _encode((link.site, link.key)))
        for place_number, place in waiting.items():
            self._leases.wait(place_number, place)
        return len(waiting)

    # ----------------------------------------------------------------- leases

    def lease(
        self,
        site: str,
        n: int,
        *,
        queue: Queue,
        owner: str,
        until: float,
        at: float,
        horizon: Sequence[float] | None = None,
    ) -> list[Lease]:
        """See `FrontierStore.lease`. Reads a short range; writes nothing while the site is active."""
        if queue == "never-crawled":
            places = self._first_never(site, n)
        elif horizon is None:
            raise ValueError("a recrawl lease needs a horizon")
        else:
            keys = [key for _, key in self._queues(site).first_due(n, horizon)]
            places = [place for place in self._pages.places(site, keys) if place is not None]
        return self._hold([(None, place) for place in places], until)

    def lease_immediate(self, n: int, *, owner: str, until: float, at: float) -> list[Lease]:
        """See `FrontierStore.lease_immediate`."""
        return self._hold(self._leases.first_waiting(n), until)

    def settle(self, outcomes: Sequence[Outcome], *, at: float) -> Settled:
        """See `FrontierStore.settle`. Reads nothing; a delete and two puts a page."""
        for outcome in outcomes:
            if outcome.record.state == "never-crawled":
                raise ValueError(f"{outcome.record.url}: a settled record's state must say what became of the fetch")
        with self._step() as batch:
            ended = self._endings.stage(batch, outcomes, at)
        for token, (site, entry) in ended.items():
            self._leases.end(token)
            self._note(site, entry)
        lost = len(outcomes) - len(ended)
        self._settle_lost += lost
        return Settled(len(ended), lost)

    def release(self, tokens: Sequence[int]) -> None:
        """See `FrontierStore.release`. Touches no disk."""
        for token in tokens:
            self._leases.give_back(token)

    def reclaim(self, *, at: float) -> int:
        """See `FrontierStore.reclaim`. Touches the disk only for sites."""
        late = self._leases.late(at)
        self.release(late)
        sites = [site for site, active in self._active.items() if active.until <= at]
        if sites:
            with self._step() as batch:
                self._sleep(batch, sites)
            for site in sites:
                del self._active[site]
        return len(late)

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteRecord]:
        """See `FrontierStore.activate`."""
        names = self._sites.due(n, at)
        return self._wake(names, until, at) if names else []

    def activate_site(self, site: str, *, owner: str, until: float, at: float) -> SiteRecord | None:
        """See `FrontierStore.activate_site`."""
        if site in self._active or not self._sites.row(site):
            return None
        return self._wake([site], until, at)[0]

    def park(self, parked: Sequence[Parked], *, at: float) -> None:
        """See `FrontierStore.park`."""
        untils = self._leases.first_until()
        leaving = {one.site: one for one in reversed(parked) if one.site in self._active}
        with self._step() as batch:
            for site, one in leaving.items():
                due = min(one.due, self._active[site].fresh, untils.get(site, math.inf))
                self._sites.sleep(batch, site, self._row(site), due)
                self._sites.put_state(batch, site, one.state)
        for site in leaving:
            del self._active[site]

    def next_site_due(self) -> float | None:
        """See `FrontierStore.next_site_due`."""
        self._refresh()
        due = self._sites.next_due()
        return None if due == math.inf else due

    def recrawl_due(self, site: str) -> list[tuple[int, float]]:
        """See `FrontierStore.recrawl_due`. One seek a non-empty lane."""
        self._refresh()
        return self._queues(site).recrawl_due()

    def site(self, site: str) -> SiteRecord | None:
        """See `FrontierStore.site`."""
        self._refresh()
        row = self._sites.read_row(site)
        return self._sites.record(site, row) if row else None

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `FrontierStore.sites`."""
        self._refresh()
        return self._sites.after(after, n)

    # ------------------------------------------------------------------ pages

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """See `FrontierStore.advance`."""
        places = self._pages.places(site, list(dict.fromkeys(keys)))
        moving = [place for place in places if place is not None and self._advances(place, due)]
        with self._step() as batch:
            entries = [
                self._pages.replace(batch, place, msgspec.structs.replace(place.record, due=due)) for place in moving
            ]
            if moving and site not in self._active:
                self._sites.due_sooner(batch, site, self._row(site), due)
        for entry in entries:
            self._note(site, entry)
        return len(moving)

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `FrontierStore.page`."""
        self._refresh()
        place = self._pages.place(site, key)
        return None if place is None else place.record

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `FrontierStore.pages`."""
        self._refresh()
        return ((place.site, place.record) for place in self._pages.listed(site, state))

    def relocate(self, moves: Sequence[Move]) -> int:
        """See `FrontierStore.relocate`."""
        with self._step() as batch:
            count, followed = self._endings.stage_moves(batch, moves)
        for place in followed:
            self._leases.follow(place.entry, place.record)
        return count

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `FrontierStore.forget`. A site's pages are read once for the counts, and go in three range deletes."""
        with self._step() as batch:
            if key is None:
                removed = self._forgetting.stage_site(batch, site)
            else:
                removed = self._forgetting.stage_page(batch, site, key)
        self._leases.drop(site, key)
        if key is None:
            self._active.pop(site, None)
        return removed

    # ----------------------------------------------------------------- counts

    def census(self) -> dict[int, BucketCensus]:
        """See `FrontierStore.census`."""
        return self._counts().census()

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """See `FrontierStore.census_rows`."""
        return self._counts().census_rows(since)

    def copies(self) -> dict[int, int]:
        """See `FrontierStore.copies`."""
        return self._counts().copies()

    def statistics(self) -> Statistics:
        """See `FrontierStore.statistics`. What is leased only the writing process knows."""
        counts = self._counts()
        active, waiting = len(self._active), self._leases.waiting
        if self._disk.read_only:
            active = len(self._sites.active_on_disk())
            waiting = sum(1 for _ in self._disk.scan(IMMEDIATE, after(IMMEDIATE)))
        pages = dict(zip(STATES, counts.pages, strict=True))
        return Statistics(pages, counts.sites, active, len(self._leases), waiting, self._settle_lost)

    def plan(self) -> bytes | None:
        """See `FrontierStore.plan`."""
        self._refresh()
        return self._disk.get(PLAN)

    def put_plan(self, plan: bytes) -> None:
        """See `FrontierStore.put_plan`."""
        with self._step() as batch:
            batch.put(PLAN, plan)

    def close(self) -> None:
        """See `FrontierStore.close`. A clean end also survives a power cut."""
        self._disk.close()

    def check_valid(self) -> None:
        """Assert what must hold between two steps (`embedded_check`)."""
        check_disk(self._disk, self._sites, active=self._active, leases=self._leases)

    # ---------------------------------------------------------------- private

    @contextmanager
    def _step(self) -> Iterator[WriteBatch]:
        """One atomic step: what the body puts into the batch and the counts it changed, or nothing."""
        batch = WriteBatch(raw_mode=True)
        try:
            yield batch
            self._sites.stage(batch)
            self._ledger.stage(batch)
            self._disk.write(batch)
        except BaseException:
            self._sites.load()
            self._ledger.load()
            raise

    def _counts(self) -> Ledger:
        """The counts in memory; opened for reading, those that the writing process wrote last."""
        if not self._disk.read_only:
            return self._ledger
        self._disk.refresh()
        return Ledger(self._disk)

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
        active = self._active.get(site)
        return SiteQueues(self._disk, site_id(site), self._leases.hidden) if active is None else active.queues

    def _note(self, site: str, entry: bytes) -> None:
        active = self._active.get(site)
        if active is not None:
            active.queues.note(entry)

    def _first_never(self, site: str, n: int) -> list[Place]:
        found = self._queues(site).first_never(n)
        active = self._active.get(site)
        if active is not None and len(found) < n:
            active.fresh = math.inf
        return [
            Place(site, key, entry, record)
            for entry, value in found
            for key, record in [waiting_record_of(site, entry, value)]
        ]

    def _hold(self, places: Sequence[tuple[int | None, Place]], until: float) -> list[Lease]:
        """Lease pages; a site that is not active comes due when they run out, lest a crash strands them."""
        asleep = {place.site for _, place in places if place.site not in self._active}
        if asleep:
            with self._step() as batch:
                for site in asleep:
                    self._sites.due_sooner(batch, site, self._row(site), until)
        return [self._leases.hold(place, until, immediate=number) for number, place in places]

    def _advances(self, place: Place, due: float) -> bool:
        record = place.record
        sooner = record.due is not None and record.due <= due
        return record.state == "crawled" and not sooner and place.entry not in self._leases.hidden

    def _wake(self, names: Sequence[str], until: float, at: float) -> list[SiteRecord]:
        with self._step() as batch:
            for site in names:
                self._sites.wake(batch, site, self._row(site), at)
        for site in names:
            self._active[site] = ActiveSite(until, SiteQueues(self._disk, site_id(site), self._leases.hidden))
        return [self._sites.record(site, self._row(site)) for site in names]

    def _sleep(self, batch: WriteBatch, sites: Sequence[str]) -> None:
        """Stage the end of sites' activity that nobody ended: they are due as they were when it began."""
        for site in sites:
            row = self._row(site)
            self._sites.sleep(batch, site, row, self._sites.due_of(row))


def _new_place(link: Link, entry: bytes, at: float) -> Place:
    return Place(link.site, link.key, entry, first_record(link, at))
