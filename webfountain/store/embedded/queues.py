"""The URL queues of the embedded store. A URL lease only hides the page's queue entry, in memory. When a page's fetch
is settled, its queue entry moves.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import DiscoverResult, SettleResult
from webfountain.store.answers import LeaseBatch, ReassignResult, RegradeResult
from webfountain.store.change_log import check_settled
from webfountain.store.codec import first_record
from webfountain.store.embedded.keys import CLOCK, arrival_of, lane_of, pack_time, site_id
from webfountain.store.embedded.page_rows import PagePlace
from webfountain.store.embedded.site_rows import BARRED_SITE, EPOCH_AT
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Lease, LeaseId, Link, Outcome, PageRecord, SiteLease
    from webfountain.store.answers import ImportanceOf, Refill, RevisedBy
    from webfountain.store.embedded.census import EmbeddedCensus
    from webfountain.store.embedded.change_log import LocalChangeLog
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.leases import LeasedSite
    from webfountain.store.embedded.site_queues import Entry
    from webfountain.store.embedded.site_rows import SiteRow
    from webfountain.store.embedded.steps import Steps

__all__ = ["Arrivals", "EmbeddedQueues"]


class Arrivals:
    """Adds new URLs to a write batch."""

    def __init__(self, steps: Steps, census: EmbeddedCensus) -> None:
        self._steps = steps
        self._census = census

    def discover(
        self, batch: WriteBatch, links: Sequence[Link], at: float
    ) -> tuple[dict[bytes, tuple[Link, bytes]], list[int]]:
        """Add the links with unknown URLs to the batch, by one multi-get and two puts per new URL.

        Return the (link, queue entry) of each new URL by page key, and the positions of links to known or forgotten
        URLs.
        """
        sids = {site: site_id(site) for site in {link.site for link in links}}
        rows = {site: self._steps.sites.row(site) for site in sids}
        fresh: dict[bytes, Link] = {}
        repeated: list[int] = []
        for nth, (link, (key, value)) in enumerate(zip(links, self._steps.pages.values(links, sids), strict=True)):
            if value is None and key not in fresh and rows[link.site] is not BARRED_SITE:
                fresh[key] = link
            else:
                repeated.append(nth)
        staged = self._put_new(batch, fresh, at)
        for site, pages in Counter([link.site for link in fresh.values()]).items():
            self._count_new(batch, site, rows[site], pages, at)
        self._census.count_arrivals(sum(not link.source for link in fresh.values()), at)
        return staged, repeated

    def immediate(self, batch: WriteBatch, links: Sequence[Link], at: float) -> tuple[int, list[PagePlace]]:
        """Add URLs to the immediate lanes of their sites, by one get per URL.

        Return the number of added URLs. Also return those of them that are leased, each with its queue entry.
        """
        staged, _ = self.discover(batch, links, at)
        new = {
            (link.site, link.key): PagePlace(link.site, link.key, entry, first_record(link, at))
            for link, entry in staged.values()
        }
        put: set[tuple[str, bytes]] = set()
        overtaken: list[PagePlace] = []
        for link in links:
            name = link.site, link.key
            place = new.get(name) or self._steps.pages.place(*name)
            if place is not None and name not in put and place.record.immediate is None:
                put.add(name)
                leased = self._steps.is_leased(place)
                turn = self._steps.counts.next_arrival()
                record = msgspec.structs.replace(place.record, immediate=turn)
                place = self._steps.replace(batch, place, record, arrival=turn)
                if leased:
                    overtaken.append(place)
                else:
                    self._call_site(batch, place.site)
        return len(put), overtaken

    def _put_new(self, batch: WriteBatch, fresh: dict[bytes, Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        entries = self._steps.pages.put_new(batch, fresh, arrival=self._steps.counts.skip_arrivals(len(fresh)), at=at)
        staged = dict(zip(fresh, zip(fresh.values(), entries, strict=True), strict=True))
        active = self._steps.leases.active
        for link, entry in staged.values():
            if link.site in active:
                active[link.site].queues.note(entry)
        return staged

    def _count_new(self, batch: WriteBatch, site: str, row: SiteRow | None, pages: int, at: float) -> None:
        if row is None:
            row = self._steps.sites.add(batch, site, at)
            self._steps.counts.add_sites(1)
        self._steps.counts.add_new(row, pages)
        self._steps.sites.touch(site, row)
        active = self._steps.leases.active.get(site)
        if active is None:
            self._steps.sites.due_sooner(batch, site, row, at)
        else:
            active.note_new(at)

    def _call_site(self, batch: WriteBatch, site: str) -> None:
        """Make the site of an immediate URL due at once, or record the URL's arrival if the site is active."""
        active = self._steps.leases.active.get(site)
        if active is None:
            self._steps.sites.due_sooner(batch, site, self._steps.site_row(site), AT_ONCE)
        else:
            active.hurried = True


class EmbeddedQueues:
    """Implementation of `UrlQueues` in the embedded store."""

    def __init__(self, steps: Steps, *, census: EmbeddedCensus, changes: LocalChangeLog) -> None:
        self._steps = steps
        self._arrivals = Arrivals(steps, census)
        self._census = census
        self._changes = changes

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        """Add unknown URLs, by one multi-get and two puts per new URL."""
        if not links:
            return DiscoverResult(0, 0)
        with self._steps.begin() as batch:
            staged, repeated = self._arrivals.discover(batch, links, at)
        return DiscoverResult(len(staged), len(repeated), tuple(repeated))

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Add URLs to the immediate lanes of their sites, by one get and at most four writes per URL."""
        if not links:
            return 0
        with self._steps.begin() as batch:
            put, overtaken = self._arrivals.immediate(batch, links, at)
        for place in overtaken:
            self._steps.leases.overtake(place)
        return put

    def lease(self, refills: Sequence[Refill]) -> list[LeaseBatch | None]:
        """Lease URLs of active sites, by reading a short range of each lane, without writes."""
        return [self._deal(refill) for refill in refills]

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        """End leases with the outcomes of their fetches, by one delete and two puts per page, without reads."""
        check_settled(outcomes)
        kept = [(lease.site, state) for lease, state in learned if self._steps.leases.under(lease) is not None]
        pieces = [(lease.site, of, part) for lease, of, part in parts if self._steps.leases.under(lease) is not None]
        if not outcomes and not kept and not pieces:
            return SettleResult(0, 0)
        with self._steps.begin() as batch:
            batch.put(CLOCK, pack_time(at))
            ended = self._settle_all(batch, outcomes, at)
            for site, state in kept:
                self._steps.sites.notes.put_learned(batch, site, state)
            for site, of, part in pieces:
                self._steps.sites.notes.put_part(batch, site, of, part)
        for lease in ended:
            self._steps.leases.end(lease)
        return SettleResult(len(ended), self._steps.leases.count_lost(len(outcomes) - len(ended)))

    def release(self, leases: Sequence[LeaseId]) -> int:
        """Release unused leases, without disk access."""
        return sum(self._steps.leases.end(one) for one in leases)

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due, by one multi-get, and one delete and two puts per page that moves."""
        if not keys:
            return 0
        moved = 0
        with self._steps.begin() as batch:
            for place in self._steps.free(site, keys):
                if _is_later(place.record, due):
                    self._steps.move(batch, place, msgspec.structs.replace(place.record, due=due))
                    moved += 1
            if moved and site not in self._steps.leases.active:
                self._steps.sites.due_sooner(batch, site, self._steps.site_row(site), due)
        return moved

    def reassign(self, site: str, keys: Sequence[bytes], revised: RevisedBy) -> ReassignResult:
        """Assign known pages to other policies, by one or two multi-gets and up to three writes per changed page."""
        if not keys:
            return ReassignResult()
        put, leased = 0, []
        with self._steps.begin() as batch:
            for place in self._steps.pages.places(site, list(dict.fromkeys(keys))):
                record = None if place is None else revised(place.record)
                if place is None or record is None:
                    continue
                if self._steps.is_leased(place):
                    leased.append(place.key)
                else:
                    self._steps.move(batch, place, record, arrival=_turn_of(place))
                    put += 1
        return ReassignResult(put, tuple(leased))

    def regrade(self, lease: SiteLease, importance: ImportanceOf, *, epoch: int, n: int) -> RegradeResult | None:
        """Apply a ranking to the next never-crawled URLs of a site, by one scan and three writes per URL that moves."""
        active, site = self._steps.leases.under(lease), lease.site
        if active is None:
            return None
        row = self._steps.site_row(site)
        if row[EPOCH_AT] == epoch:
            return RegradeResult(0, 0, done=True)
        with self._steps.begin() as batch:
            entries = active.queues.after(self._steps.sites.notes.regraded(site, epoch), n)
            places = [PagePlace(site, one.key, one.entry, one.record) for one in entries if one.record is not None]
            moved = self._reweigh(batch, active, site, places, importance)
            done = len(entries) < n
            if done:
                self._steps.sites.end_regrade(batch, site, row, epoch)
            else:
                self._steps.sites.notes.put_regraded(batch, site, epoch, entries[-1].entry)
        return RegradeResult(len(entries), moved, done)

    def reweigh(self, lease: SiteLease, keys: Sequence[bytes], importance: ImportanceOf) -> int | None:
        """Move never-crawled URLs to the lanes of their classes, by two multi-gets and three writes per URL that
        moves.
        """
        active = self._steps.leases.under(lease)
        if active is None:
            return None
        with self._steps.begin() as batch:
            places = [
                place
                for place in self._steps.free(lease.site, keys)
                if place.record.state == "never-crawled" and place.record.immediate is None
            ]
            return self._reweigh(batch, active, lease.site, places, importance)

    # ---------------------------------------------------------------- private

    def _deal(self, refill: Refill) -> LeaseBatch | None:
        active = self._steps.leases.under(refill.lease)
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
        overtaken = active.note_refill(refill, immediate=len(urgent), never_crawled=len(never))
        return LeaseBatch(site, urgent, never, recrawl, lanes, overtaken)

    def _hold(self, site: str, active: LeasedSite, waiting: Sequence[Entry]) -> list[Lease]:
        tried = [one.key for one in waiting if one.record is None]
        records = {place.key: place.record for place in self._steps.pages.places(site, tried) if place is not None}
        return [
            self._steps.leases.hold(active, PagePlace(site, one.key, one.entry, one.record or records[one.key]))
            for one in waiting
        ]

    def _settle_all(self, batch: WriteBatch, outcomes: Sequence[Outcome], at: float) -> list[LeaseId]:
        """Settle the outcomes that still have an open lease; return these leases."""
        ended: dict[int, LeaseId] = {}
        settled: list[tuple[PageRecord, Outcome]] = []
        for outcome in outcomes:
            held = None if outcome.lease.number in ended else self._steps.leases.get(outcome.lease)
            if held is not None:
                place, record = held.place, outcome.record
                settled.append((place.record, outcome))
                self._changes.note_outcome(batch, place.record, outcome, site=place.site, key=place.key, at=at)
                if record.copy == held.handed.copy != place.record.copy:
                    # The fetch did not change the copy, so if the copy moved meanwhile, its new location stays.
                    record = msgspec.structs.replace(record, copy=place.record.copy)
                self._steps.replace(batch, place, record)
                ended[outcome.lease.number] = outcome.lease
        self._census.count_outcomes(settled, at)
        return list(ended.values())

    def _reweigh(
        self, batch: WriteBatch, active: LeasedSite, site: str, places: Sequence[PagePlace], importance: ImportanceOf
    ) -> int:
        made = importance([place.record for place in places])
        entries = self._steps.pages.regrade(batch, site, places, made)
        for entry in {lane_of(entry): entry for entry in reversed(entries)}.values():  # the first entry of each lane
            active.queues.note(entry)  # before the write: if that fails, the lane's front is too early, without harm
        return len(entries)


def _is_later(record: PageRecord, due: float) -> bool:
    if record.state != "crawled" or record.immediate is not None:
        return False
    return record.due is None or record.due > due


def _turn_of(place: PagePlace) -> int:
    return arrival_of(place.entry) if place.record.state == "never-crawled" else 0
