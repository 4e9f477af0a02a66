"""What each step of the embedded store changes: links come in, leases end, pages and sites go, a ranking comes in.

A step is staged into a batch with the counts that it moves; leases and fronts are the caller's to follow once the
batch is written. What is noted of active sites before that only errs towards looking too early.

The embedded store's change log: entries by number, made in the step that they tell of. The numbers run without a gap
from the first entry that is kept to the last; both ends stand with the counts. Reading takes them from the disk, for
who reads is mostly another process.

What must always hold between the keys of an embedded store; read by tests after each step, and after a crash. It
reads the whole store: for stores of tests, not for one of 10^7 pages.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import CursorLost
from webfountain.records import STATES, Change
from webfountain.store.contract import AT_ONCE, Reassigned, Regraded, class_of
from webfountain.store.embedded.disk import (
    CHANGE,
    DUE,
    NAME,
    NEVER,
    PAGE,
    RECRAWL,
    REGRADE,
    after,
    arrival_of,
    due_key,
    number,
    place_of,
    site_id,
)
from webfountain.store.embedded.rows import BARRED_SITE, EPOCH_AT, Counts, PagePlace, PageRows, log_bounds
from webfountain.store.rules import (
    BEGIN_ANEW,
    Counted,
    count_arrivals,
    count_outcome,
    cursor_at,
    entry_of,
    evicted,
    first_record,
    is_held,
    parting,
    period_of,
    sequence_of,
    without_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from webfountain.records import ChangeVerdict, LeaseId, Link, Move, Outcome, PageRecord
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.leases import Held, LeasedSite, Leases
    from webfountain.store.embedded.rows import SiteRow, SiteRows

__all__ = ["LocalChangeLog", "Steps", "check_disk"]

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


class LocalChangeLog:
    """Stages entries into a step's batch, and reads them. `log` names the log in its cursors."""

    def __init__(self, disk: Disk, counts: Counts, log: str) -> None:
        self._disk = disk
        self._counts = counts
        self._log = log

    def note_outcome(
        self, batch: WriteBatch, before: PageRecord, outcome: Outcome, *, site: str, key: bytes, at: float
    ) -> None:
        """Write the entry of a settled fetch, where its consumers are to know of it."""
        entry = entry_of(before, outcome, site=site, key=key, at=at, sequence=self._counts.changes + 1)
        if entry is not None:
            self._put(batch, entry)

    def note_parting(self, batch: WriteBatch, place: PagePlace, verdict: ChangeVerdict, at: float) -> None:
        """Write the entry of a page that is taken out, where it was held."""
        if is_held(place.record):
            sequence = self._counts.changes + 1
            self._put(batch, parting(place.record, verdict, site=place.site, key=place.key, at=at, sequence=sequence))

    def erase(self, batch: WriteBatch, site: str, key: bytes | None = None) -> None:
        """Take what a page, or all of a site, said out of its entries. One scan of the log: forgetting is rare."""
        for name, value in self._disk.scan(CHANGE, after(CHANGE)):
            entry = _entry.decode(value)
            if entry.site == site and key in (None, entry.key):
                batch.put(name, _encode(without_text(entry)))

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Up to `n` entries after a cursor, each after its own."""
        dropped, last = log_bounds(self._disk)
        behind = dropped if cursor is None else sequence_of(cursor, self._log, first=dropped + 1, last=last)
        found = islice(self._disk.scan(CHANGE + number(behind + 1), after(CHANGE)), n)
        return [(cursor_at(self._log, entry.sequence), entry) for entry in (_entry.decode(value) for _, value in found)]

    def end(self) -> str:
        """The cursor behind the newest entry."""
        return cursor_at(self._log, log_bounds(self._disk)[1])

    def since(self, at: float) -> str:
        """The cursor before the first entry at or after a time."""
        dropped, last = log_bounds(self._disk)
        earlier = self._last_before(at, dropped, last)
        if earlier == dropped > 0:
            raise CursorLost(f"the change log does not reach back so far; {BEGIN_ANEW}")
        return cursor_at(self._log, earlier)

    def last_to_drop(self, before: float, most: int) -> int:
        """The newest entry that is too old, or one too many."""
        dropped, last = self._counts.dropped, self._counts.changes
        return max(self._last_before(before, dropped, last), last - most)

    def drop(self, batch: WriteBatch, last: int) -> None:
        """Remove the entries up to one."""
        batch.delete_range(CHANGE + number(self._counts.dropped), CHANGE + number(last + 1))
        self._counts.dropped = last

    def _last_before(self, at: float, low: int, high: int) -> int:
        """The newest entry, of those after `low` up to `high`, that is older than a time; `low` when none is."""
        while low < high:
            middle = (low + high + 1) // 2
            value = self._disk.get(CHANGE + number(middle))
            if value is not None and _entry.decode(value).at < at:
                low = middle
            else:
                high = middle - 1
        return low

    def _put(self, batch: WriteBatch, entry: Change) -> None:
        self._counts.changes = entry.sequence
        batch.put(CHANGE + number(entry.sequence), _encode(entry))


_ENTRY_PREFIX = 9
"""Bytes of a queue entry's key before its suffix: family and site."""


class Steps:
    """Stages steps into batches. `period_s`: length of a census period."""

    def __init__(
        self,
        disk: Disk,
        *,
        pages: PageRows,
        sites: SiteRows,
        counts: Counts,
        leases: Leases,
        changes: LocalChangeLog,
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

    def discover(
        self, batch: WriteBatch, links: Sequence[Link], at: float
    ) -> tuple[dict[bytes, tuple[Link, bytes]], list[int]]:
        """The links that are new, page key -> link, queue entry; and the places of the others among the links.

        One multi-get, two puts a new URL.
        """
        sids = {site: site_id(site) for site in {link.site for link in links}}
        rows = {site: self._sites.row(site) for site in sids}
        fresh: dict[bytes, Link] = {}
        repeated: list[int] = []
        for nth, (link, (key, value)) in enumerate(zip(links, self._pages.values(links, sids), strict=True)):
            if value is None and key not in fresh and rows[link.site] is not BARRED_SITE:
                fresh[key] = link
            else:
                repeated.append(nth)
        staged = self._put_new(batch, fresh, at)
        for site, pages in Counter([link.site for link in fresh.values()]).items():
            self._arrived(batch, site, rows[site], pages, at)
        counted: Counted = {}
        count_arrivals(counted, period_of(at, self._period_s), sum(not link.source for link in fresh.values()))
        self._counts.count(counted)
        return staged, repeated

    def immediate(self, batch: WriteBatch, links: Sequence[Link], at: float) -> tuple[int, list[PagePlace]]:
        """Put URLs on the immediate lanes of their sites; how many were not there before, which of them are leased.

        A get a URL.
        """
        staged, _ = self.discover(batch, links, at)
        new = {(link.site, link.key): _new_place(link, entry, at) for link, entry in staged.values()}
        put: set[tuple[str, bytes]] = set()
        overtaken: list[PagePlace] = []
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
        active = self._leases.active
        for link, entry in staged.values():
            if link.site in active:
                active[link.site].queues.note(entry)
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

    def _hurry(self, batch: WriteBatch, place: PagePlace) -> PagePlace:
        """Move a page to the immediate lane; where it stands now."""
        self._counts.arrivals += 1
        record = msgspec.structs.replace(place.record, immediate=self._counts.arrivals)
        self._recount(place, record)
        if record.state == "never-crawled":
            entry = self._pages.replace_waiting(batch, place, record, self._counts.arrivals)
        else:
            entry = self._pages.replace(batch, place, record)
        self._note(place.site, entry)
        return PagePlace(place.site, place.key, entry, record)

    def _summon(self, batch: WriteBatch, place: PagePlace) -> None:
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

    def relocate(self, batch: WriteBatch, moves: Sequence[Move]) -> tuple[int, list[PagePlace]]:
        """The moves of copies that are still where they were: how many, the pages as they are now."""
        followed: dict[tuple[str, bytes], PagePlace] = {}
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

    def reassign(
        self, batch: WriteBatch, site: str, keys: Sequence[bytes], revised: Callable[[PageRecord], PageRecord | None]
    ) -> Reassigned:
        """Put pages under other policies, each where it stands but for the lane of its importance."""
        put, leased = 0, []
        for place in self._pages.places(site, list(dict.fromkeys(keys))):
            record = None if place is None else revised(place.record)
            if place is None or record is None:
                continue
            if self._is_hidden(place):
                leased.append(place.key)
                continue
            if record.state == "never-crawled":
                self._note(site, self._pages.replace_waiting(batch, place, record, arrival_of(place.entry)))
            else:
                self._note(site, self._pages.replace(batch, place, record))
            put += 1
        return Reassigned(put, tuple(leased))

    def _advances(self, place: PagePlace, due: float) -> bool:
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
        active: LeasedSite,
        importance: Callable[[Sequence[PageRecord]], Sequence[float]],
        *,
        epoch: int,
        n: int,
    ) -> Regraded:
        """Move the next of a site's never-crawled URLs to the lanes of their classes. One scan, three writes a move."""
        row, name = self._row(site), REGRADE + site_id(site)
        kept = self._disk.get(name)
        come_to = kept[8:] if kept is not None and place_of(kept[:8]) == epoch else b""
        entries = active.queues.after(come_to, n)
        places = []
        for one in entries:
            assert one.record is not None, "a never-crawled entry holds its record"
            places.append(PagePlace(site, one.key, one.entry, one.record))
        moved = self._weigh(batch, places, importance)
        done = len(entries) < n
        if done:
            row[EPOCH_AT] = epoch
            self._sites.touch(site, row)
            batch.delete(name)
        else:
            batch.put(name, number(epoch) + entries[-1].entry[_ENTRY_PREFIX:])
        return Regraded(len(entries), moved, done)

    def reweigh(
        self,
        batch: WriteBatch,
        site: str,
        keys: Sequence[bytes],
        importance: Callable[[Sequence[PageRecord]], Sequence[float]],
    ) -> int:
        """Move those of some never-crawled URLs that stand in another class now."""
        places = [
            place
            for place in self._pages.places(site, keys)
            if place is not None
            and place.record.state == "never-crawled"
            and place.record.immediate is None
            and not self._is_hidden(place)
        ]
        return self._weigh(batch, places, importance)

    def _weigh(
        self,
        batch: WriteBatch,
        places: Sequence[PagePlace],
        importance: Callable[[Sequence[PageRecord]], Sequence[float]],
    ) -> int:
        moved = 0
        for place, value in zip(places, importance([place.record for place in places]), strict=True):
            if class_of(value) != class_of(place.record.importance):
                record = msgspec.structs.replace(place.record, importance=value)
                self._note(place.site, self._pages.replace_waiting(batch, place, record, arrival_of(place.entry)))
                moved += 1
        return moved

    # ---------------------------------------------------------------- private

    def _recount(self, place: PagePlace, record: PageRecord) -> SiteRow:
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

    def _is_hidden(self, place: PagePlace) -> bool:
        return place.entry in self._leases.hidden


def _new_place(link: Link, entry: bytes, at: float) -> PagePlace:
    return PagePlace(link.site, link.key, entry, first_record(link, at))


def check_disk(disk: Disk, sites: SiteRows, leases: Leases) -> None:
    """Assert that every page is in exactly one queue, every site in one list, and that all counts are true."""
    places = list(PageRows(disk).listed(None, None))
    queued = {key for family in (NEVER, RECRAWL) for key, _ in disk.scan(family, after(family))}
    assert queued == {place.entry for place in places}, "a page stands in no queue, or an entry has no page"
    assert len(queued) == len(places), "two pages share a queue entry"
    assert leases.hidden <= queued, "a lease hides an entry that is not there"
    out = [number for active in leases.active.values() for number in active.out]
    assert len(out) == len(leases) == len(leases.hidden), "a lease has no site lease, or a URL is leased twice"
    _check_sites(disk, sites, leases.active, places)
    _check_counts(Counts(disk), places)


def _check_sites(disk: Disk, sites: SiteRows, active: Collection[str], places: list[PagePlace]) -> None:
    names = {value.decode() for _, value in disk.scan(NAME, after(NAME))}
    assert {place.site for place in places} <= names
    assert sorted(active) == sites.active_on_disk()
    due = {key for key, _ in disk.scan(DUE, after(DUE))}
    records = {record.site: record for record in sites.after("", len(names) + 1)}
    assert set(records) == names
    assert due == {due_key(record.due, name) for name, record in records.items() if name not in active}
    for name, record in records.items():
        states = [place.record.state for place in places if place.site == name]
        urgent = [place.record.immediate for place in places if place.site == name]
        assert record.immediate == sum(each is not None for each in urgent), f"{name}: wrong count of immediate URLs"
        assert record.pages == tuple(states.count(state) for state in STATES), f"{name}: wrong counts"
        sid = site_id(name)
        assert sum(1 for _ in disk.scan(PAGE + sid, after(PAGE + sid))) >= len(states)


def _check_counts(counts: Counts, places: list[PagePlace]) -> None:
    states = [place.record.state for place in places]
    assert counts.pages == [states.count(state) for state in STATES]
    buckets = [place.record.bucket for place in places if place.record.state == "crawled"]
    assert {bucket: row.pages for bucket, row in counts.census().items()} == {
        bucket: buckets.count(bucket) for bucket in buckets
    }
    assert counts.immediate == sum(place.record.immediate is not None for place in places)
    copies = [place.record.copy for place in places if place.record.copy is not None]
    for repository in {copy.repository for copy in copies} | {0}:
        files = [copy.file for copy in copies if copy.repository == repository]
        assert counts.copies(repository) == {file: files.count(file) for file in files}
