"""What each step of the embedded store changes: links come in, leases end, pages and sites go, a ranking comes in.

A step is staged into a batch with the counts that it moves; leases and fronts are the caller's to follow once the
batch is written. What is noted of active sites before that only errs towards looking too early.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from webfountain.store.codec import evicted, first_record
from webfountain.store.contract import AT_ONCE, Regraded, class_of
from webfountain.store.counting import Counted, count_arrivals, count_outcome, period_of
from webfountain.store.embedded.keys import (
    NEVER,
    PAGE,
    RECRAWL,
    REGRADE,
    after,
    arrival_of,
    number,
    place_of,
    site_id,
)
from webfountain.store.embedded.pages import Place
from webfountain.store.embedded.sites import BARRED_SITE, EPOCH_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import LeaseId, Link, Move, Outcome, PageRecord
    from webfountain.store.embedded.change_log import ChangeLog
    from webfountain.store.embedded.counts import Counts
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.leases import ActiveSite, Held, Leases
    from webfountain.store.embedded.pages import Pages
    from webfountain.store.embedded.sites import SiteRow, Sites

__all__ = ["Steps"]

_ENTRY_PREFIX = 9
"""Bytes of a queue entry's key before its suffix: family and site."""


class Steps:
    """Stages steps into batches. `period_s`: length of a census period."""

    def __init__(
        self,
        disk: Disk,
        *,
        pages: Pages,
        sites: Sites,
        counts: Counts,
        leases: Leases,
        changes: ChangeLog,
        period_s: float,
    ) -> None:
        self._disk = disk
        self._pages = pages
        self._sites = sites
        self._counts = counts
        self._leases = leases
        self._changes = changes
        self._period_s = period_s

    # ------------------------------------------------------------------ links

    def discover(self, batch: WriteBatch, links: Sequence[Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        """The links that are new: page key -> link, queue entry. One multi-get, two puts a new URL."""
        sids = {site: site_id(site) for site in {link.site for link in links}}
        rows = {site: self._sites.row(site) for site in sids}
        fresh: dict[bytes, Link] = {}
        for link, (key, value) in zip(links, self._pages.values(links, sids), strict=True):
            if value is None and key not in fresh and rows[link.site] is not BARRED_SITE:
                fresh[key] = link
        staged = self._put_new(batch, fresh, at)
        for site, pages in Counter([link.site for link in fresh.values()]).items():
            self._arrived(batch, site, rows[site], pages, at)
        counted: Counted = {}
        count_arrivals(counted, period_of(at, self._period_s), sum(not link.source for link in fresh.values()))
        self._counts.count(counted)
        return staged

    def immediate(self, batch: WriteBatch, links: Sequence[Link], at: float) -> tuple[int, list[Place]]:
        """Put URLs on the immediate lanes of their sites; how many were not there before, which of them are leased.

        A get a URL.
        """
        staged = self.discover(batch, links, at).values()
        new = {(link.site, link.key): _new_place(link, entry, at) for link, entry in staged}
        put: set[tuple[str, bytes]] = set()
        overtaken: list[Place] = []
        for link in links:
            name = link.site, link.key
            place = new.get(name) or self._pages.place(*name)
            if place is not None and name not in put and place.record.immediate is None:
                put.add(name)
                leased = self._is_hidden(place)
                place = self._hurry(batch, place)
                if leased:
                    overtaken.append(place)
                else:
                    self._summon(batch, place)
        return len(put), overtaken

    def _put_new(self, batch: WriteBatch, fresh: dict[bytes, Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        entries = self._pages.put_new(batch, fresh, arrival=self._counts.arrivals + 1, at=at)
        self._counts.arrivals += len(fresh)
        staged = dict(zip(fresh, zip(fresh.values(), entries, strict=True), strict=True))
        for link, entry in staged.values():
            self._note(link.site, entry)
        return staged

    def _arrived(self, batch: WriteBatch, site: str, row: SiteRow | None, pages: int, at: float) -> None:
        if row is None:
            row = self._sites.add(batch, site, at)
            self._counts.sites += 1
        self._counts.add_new(row, pages)
        self._sites.touch(site, row)
        active = self._leases.active.get(site)
        if active is None:
            self._sites.due_sooner(batch, site, row, at)
        else:
            active.fresh = min(active.fresh, at)

    def _hurry(self, batch: WriteBatch, place: Place) -> Place:
        """Move a page to the immediate lane; where it stands now."""
        self._counts.arrivals += 1
        record = msgspec.structs.replace(place.record, immediate=self._counts.arrivals)
        self._recount(place, record)
        if record.state == "never-crawled":
            entry = self._pages.replace_waiting(batch, place, record, self._counts.arrivals)
        else:
            entry = self._pages.replace(batch, place, record)
        self._note(place.site, entry)
        return Place(place.site, place.key, entry, record)

    def _summon(self, batch: WriteBatch, place: Place) -> None:
        """The site of an immediate URL is due at once, or its ant is to see it."""
        active = self._leases.active.get(place.site)
        if active is None:
            self._sites.due_sooner(batch, place.site, self._row(place.site), AT_ONCE)
        else:
            active.hurried = True

    # ---------------------------------------------------------------- endings

    def settle(self, batch: WriteBatch, outcomes: Sequence[Outcome], at: float) -> list[LeaseId]:
        """The first outcome of every lease that is out; which they are. A delete and two puts a page, no read.

        One put more for a page that changed: its entry of the change log.
        """
        ended: dict[int, LeaseId] = {}
        counted: Counted = {}
        for outcome in outcomes:
            held = None if outcome.lease.number in ended else self._leases.get(outcome.lease)
            if held is not None:
                place = held.place
                count_outcome(counted, period_of(at, self._period_s), place.record, outcome)
                self._changes.note_outcome(batch, place.record, outcome, site=place.site, key=place.key, at=at)
                self._settle_one(batch, held, outcome.record)
                ended[outcome.lease.number] = outcome.lease
        self._counts.count(counted)
        return list(ended.values())

    def _settle_one(self, batch: WriteBatch, held: Held, record: PageRecord) -> None:
        place = held.place
        if record.copy == held.handed.copy != place.record.copy:
            # The fetch left the copy alone, so a move of it meanwhile stands.
            record = msgspec.structs.replace(record, copy=place.record.copy)
        self._recount(place, record)
        self._note(place.site, self._pages.replace(batch, place, record))

    def relocate(self, batch: WriteBatch, moves: Sequence[Move]) -> tuple[int, list[Place]]:
        """The moves of copies that are still where they were: how many, the pages as they are now."""
        followed: dict[tuple[str, bytes], Place] = {}
        count = 0
        for move in moves:
            place = followed.get((move.site, move.key)) or self._pages.place(move.site, move.key)
            if place is not None and place.record.copy == move.old:
                place.record = msgspec.structs.replace(place.record, copy=move.new)
                self._pages.replace(batch, place, place.record)
                self._counts.move_copy(move.old, move.new)
                followed[move.site, move.key] = place
                count += 1
        return count, list(followed.values())

    def advance(self, batch: WriteBatch, site: str, keys: Sequence[bytes], due: float) -> int:
        """Make crawled pages due; how many moved. One multi-get, a delete and two puts a page that moves."""
        moved = 0
        for place in self._pages.places(site, list(dict.fromkeys(keys))):
            if place is not None and self._advances(place, due):
                record = msgspec.structs.replace(place.record, due=due)
                self._note(site, self._pages.replace(batch, place, record))
                moved += 1
        if moved and site not in self._leases.active:
            self._sites.due_sooner(batch, site, self._row(site), due)
        return moved

    def _advances(self, place: Place, due: float) -> bool:
        record = place.record
        if record.state != "crawled" or record.immediate is not None or self._is_hidden(place):
            return False
        return record.due is None or record.due > due

    # ------------------------------------------------------------------ going

    def forget_page(self, batch: WriteBatch, site: str, key: bytes, at: float) -> int:
        """Bar one page and remove it if it is there; how many records go. What the change log says of it goes too."""
        place = self._pages.place(site, key)
        if place is not None:
            row = self._row(site)
            self._pages.remove(batch, place)
            self._changes.erase(batch, site, key)
            self._changes.note_parting(batch, place, "forgotten", at)
            self._counts.remove(row, place.record)
            self._sites.touch(site, row)
        self._pages.bar(batch, site, key)
        return int(place is not None)

    def forget_site(self, batch: WriteBatch, site: str, at: float) -> int:
        """Bar a site and remove its pages: read once for the counts and the log, gone in three range deletes."""
        row, removed = self._sites.row(site), 0
        if row:
            self._changes.erase(batch, site)
            for place in self._pages.listed(site, None):
                self._counts.remove(row, place.record)
                self._changes.note_parting(batch, place, "forgotten", at)
                removed += 1
            self._sites.drop(batch, site, row)
            self._counts.sites -= 1
        for family in (PAGE, NEVER, RECRAWL):
            batch.delete_range(family + site_id(site), after(family + site_id(site)))
        self._sites.bar(batch, site)
        return removed

    def evict(self, batch: WriteBatch, site: str, keys: Sequence[bytes], at: float) -> int:
        """Make pages as if never crawled; how many. One multi-get, a delete and three puts a page."""
        gone = 0
        for place in self._pages.places(site, list(dict.fromkeys(keys))):
            if place is not None and place.record.state != "never-crawled" and not self._is_hidden(place):
                record = evicted(place.record)
                self._changes.note_parting(batch, place, "evicted", at)
                self._counts.arrivals += 1
                self._recount(place, record)
                self._note(site, self._pages.replace_waiting(batch, place, record, self._counts.arrivals))
                gone += 1
        return gone

    # ---------------------------------------------------------------- ranking

    def regrade(
        self,
        batch: WriteBatch,
        site: str,
        active: ActiveSite,
        importance: Callable[[Sequence[bytes]], Sequence[float]],
        *,
        epoch: int,
        n: int,
    ) -> Regraded:
        """Move the next of a site's never-crawled URLs to the lanes of their classes. One scan, three writes a move."""
        row, name = self._row(site), REGRADE + site_id(site)
        kept = self._disk.get(name)
        come_to = kept[8:] if kept is not None and place_of(kept[:8]) == epoch else b""
        entries = active.queues.after(come_to, n)
        moved = 0
        for one, value in zip(entries, importance([each.key for each in entries]), strict=True):
            assert one.record is not None, "a never-crawled entry holds its record"
            if class_of(value) != class_of(one.record.importance):
                place = Place(site, one.key, one.entry, one.record)
                record = msgspec.structs.replace(one.record, importance=value)
                self._note(site, self._pages.replace_waiting(batch, place, record, arrival_of(one.entry)))
                moved += 1
        done = len(entries) < n
        if done:
            row[EPOCH_AT] = epoch
            self._sites.touch(site, row)
            batch.delete(name)
        else:
            batch.put(name, number(epoch) + entries[-1].entry[_ENTRY_PREFIX:])
        return Regraded(len(entries), moved, done)

    # ---------------------------------------------------------------- private

    def _recount(self, place: Place, record: PageRecord) -> SiteRow:
        """Count a page's new record instead of the one it has."""
        row = self._row(place.site)
        self._counts.remove(row, place.record)
        self._counts.add(row, record)
        self._sites.touch(place.site, row)
        return row

    def _row(self, site: str) -> SiteRow:
        row = self._sites.row(site)
        assert row, f"{site} is in use and has no row"
        return row

    def _note(self, site: str, entry: bytes) -> None:
        active = self._leases.active.get(site)
        if active is not None:
            active.queues.note(entry)

    def _is_hidden(self, place: Place) -> bool:
        return place.entry in self._leases.hidden


def _new_place(link: Link, entry: bytes, at: float) -> Place:
    return Place(link.site, link.key, entry, first_record(link, at))
