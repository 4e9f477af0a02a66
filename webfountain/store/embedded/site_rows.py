"""The sites on disk: the row and the learned data of each site, the inactive sites by due time, and the active list.

An inactive site has a key under DUE, an active site under ACTIVE. When the store is opened after a crash, the sites
under ACTIVE become due again. Up to `_ROWS_KEPT` rows are kept in memory.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.records import STATES, SiteRecord, SiteState
from webfountain.store.codec import decode_state, encode_state, from_sortable, to_sortable
from webfountain.store.embedded.keys import (
    ACTIVE,
    BARRED,
    DUE,
    LEARNED,
    NAME,
    PART,
    RANKED,
    REGRADE,
    SITE,
    STATE,
    after,
    due_key,
    number,
    place_of,
    site_id,
)
from webfountain.store.embedded.site_ranks import SiteRanks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["BARRED_SITE", "EPOCH_AT", "IMMEDIATE_AT", "DueSites", "SiteNotes", "SiteRow", "SiteRows", "site_row_codec"]

_ENTRY_PREFIX: Final = 9
"""Length in bytes of the prefix of a queue entry's key: family and site."""

_ROWS_KEPT: Final = 32_768

SiteRow = list[float]
"""A site's row: pages by state (in the order of STATES), due time, time of discovery, number of URLs in the immediate
lane, epoch.
"""
_DUE: Final = len(STATES)
_FIRST_SEEN: Final = len(STATES) + 1
IMMEDIATE_AT: Final = len(STATES) + 2
EPOCH_AT: Final = len(STATES) + 3
BARRED_SITE: Final[SiteRow] = []
"""Row of a site that was forgotten as a whole."""
site_row_codec = struct.Struct(f">{len(STATES)}IddII")


class DueSites:
    """The keys of inactive sites, which sort by due time.

    A scan begins at `_front`, because all keys before `_front` are deleted. Otherwise each scan would read the deleted
    keys again."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Let the next scan begin at the first key of the inactive sites."""
        self._front = DUE

    def put(self, batch: WriteBatch, site: str, due: float) -> None:
        key = due_key(due, site)
        batch.put(key, b"")
        self._front = min(self._front, key)

    def first(self, n: int, at: float) -> list[tuple[float, str]]:
        """Return (due time, name) of up to `n` sites that are due at or before `at`, the longest overdue first."""
        found: list[tuple[float, str]] = []
        for key, _ in self._disk.scan(self._front, after(DUE + to_sortable(at + 0.0))):
            if not found:
                self._front = key
            if len(found) == n:
                break
            found.append((from_sortable(key[1:9]), key[9:].decode()))
        return found

    def next(self) -> float:
        """Return the earliest due time of a site, or inf if no site will be due."""
        for key, _ in self._disk.scan(self._front, after(DUE)):
            self._front = key
            return from_sortable(key[1:9])
        return inf


class SiteNotes:
    """The state, the learned data and the ranking progress of sites, on disk. Each method that changes data adds its
    writes to a batch.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def put_state(self, batch: WriteBatch, site: str, state: SiteState) -> None:
        """Write the state of a site for its next ant."""
        batch.put(STATE + site_id(site), encode_state(state))

    def put_learned(self, batch: WriteBatch, site: str, learned: bytes) -> None:
        """Write the learned data of a site."""
        batch.put(LEARNED + site_id(site), learned)

    def put_part(self, batch: WriteBatch, site: str, of: int, part: bytes) -> None:
        """Write a numbered part of a site's learned data; an empty part deletes the stored one."""
        key = PART + site_id(site) + number(of)
        if part:
            batch.put(key, part)
        else:
            batch.delete(key)

    def part(self, site: str, of: int) -> bytes | None:
        """Return the part that `put_part` stored under a number, or None."""
        return self._disk.get(PART + site_id(site) + number(of))

    def parts(self, site: str) -> Iterator[tuple[int, bytes]]:
        """Yield all parts that `put_part` stored, in order of number."""
        prefix = PART + site_id(site)
        return ((place_of(key), part) for key, part in self._disk.scan(prefix, after(prefix)))

    def regraded(self, site: str, epoch: int) -> bytes:
        """Return the suffix of the last queue entry to which a ranking was applied, or b"" if the ranking was not
        applied yet.
        """
        kept = self._disk.get(REGRADE + site_id(site))
        return kept[8:] if kept is not None and place_of(kept[:8]) == epoch else b""

    def put_regraded(self, batch: WriteBatch, site: str, epoch: int, entry: bytes) -> None:
        """Write the progress of a ranking: the last queue entry that was processed."""
        batch.put(REGRADE + site_id(site), number(epoch) + entry[_ENTRY_PREFIX:])

    def drop_regraded(self, batch: WriteBatch, site: str) -> None:
        """Delete the progress of a ranking."""
        batch.delete(REGRADE + site_id(site))

    def drop(self, batch: WriteBatch, site: str) -> None:
        """Delete the state, the learned data and the ranking progress of a site."""
        sid = site_id(site)
        for family in (STATE, LEARNED, REGRADE):
            batch.delete(family + sid)
        batch.delete_range(PART + sid, after(PART + sid))


class SiteRows:
    """The rows of all sites, the active list, and the due times of the inactive sites (`due`).

    `stage` adds the changes of a step to its batch, and `load` drops unwritten changes.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.due = DueSites(disk)
        self.notes = SiteNotes(disk)
        self.ranks = SiteRanks(disk)
        self.load()

    def load(self) -> None:
        """Drop all rows in memory and all unwritten changes."""
        self._rows: OrderedDict[str, SiteRow | None] = OrderedDict()
        self._touched: dict[str, SiteRow] = {}
        self.due.load()
        self.ranks.load()

    def refresh(self) -> None:
        """If the store was opened for reading, load the latest changes of the process that writes it."""
        if self._disk.read_only:
            self._disk.refresh()
            self.load()

    def row(self, site: str) -> SiteRow | None:
        """Return a site's row, BARRED_SITE for a forgotten site, or None for an unknown site. A caller that changes the
        row must call `touch`.
        """
        rows = self._rows
        if site in rows:
            rows.move_to_end(site)
            return rows[site]
        rows[site] = row = self.read_row(site)
        return row

    def read_row(self, site: str) -> SiteRow | None:
        """Read a site's row from disk and return it as `row` does. Any thread may call this method."""
        name = site.encode()
        value, barred = self._disk.get_many([SITE + name, BARRED + name])
        if barred is not None:
            return BARRED_SITE
        return None if value is None else list(site_row_codec.unpack(value))

    def end_regrade(self, batch: WriteBatch, site: str, row: SiteRow, epoch: int) -> None:
        """Record that a ranking was applied to all queue entries of a site."""
        row[EPOCH_AT] = epoch
        self._touched[site] = row
        self.notes.drop_regraded(batch, site)

    def touch(self, site: str, row: SiteRow) -> None:
        """Record that the caller has changed a row."""
        self._touched[site] = row

    def add(self, batch: WriteBatch, site: str, at: float) -> SiteRow:
        """Add an inactive site that is due at the time `at`; return its row."""
        row: SiteRow = [0] * len(STATES) + [at, at, 0, 0]
        self._rows[site] = self._touched[site] = row
        batch.put(NAME + site_id(site), site.encode())
        self.due.put(batch, site, at)
        return row

    def due_sooner(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Make an inactive site due at `due`. A site that is already due earlier does not change."""
        if due < row[_DUE]:
            batch.delete(due_key(row[_DUE], site))
            self._set_due(batch, site, row, due)

    def revise(self, batch: WriteBatch, row: SiteRow, record: SiteRecord) -> None:
        """Replace an inactive site's times, state and learned data by those of a record, and delete its numbered
        parts."""
        site, sid = record.site, site_id(record.site)
        self.notes.put_state(batch, site, record.state)
        batch.delete(LEARNED + sid)
        if record.learned:
            self.notes.put_learned(batch, site, record.learned)
        batch.delete_range(PART + sid, after(PART + sid))
        row[_FIRST_SEEN] = record.first_seen
        self.ranks.set_back(site, record.changed)
        self._touched[site] = row
        self.due_sooner(batch, site, row, record.due)

    def wake(self, batch: WriteBatch, site: str, row: SiteRow, at: float, owner: str) -> None:
        """Put a site on the active list under an owner, who replaces a previous owner."""
        batch.delete(due_key(row[_DUE], site))
        batch.put(ACTIVE + site.encode(), owner.encode())
        row[_DUE] = min(row[_DUE], at)
        self._touched[site] = row

    def sleep(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Take a site off the active list, and make it due at `due`."""
        batch.delete(ACTIVE + site.encode())
        self._set_due(batch, site, row, due)

    def drop(self, batch: WriteBatch, site: str, row: SiteRow) -> None:
        """Delete all data of a site except its pages."""
        name, sid = site.encode(), site_id(site)
        of_name = (SITE + name, due_key(row[_DUE], site), ACTIVE + name)
        for key in (*of_name, NAME + sid):
            batch.delete(key)
        self.notes.drop(batch, site)
        self.ranks.drop(batch, site)
        self._touched.pop(site, None)

    def bar(self, batch: WriteBatch, site: str) -> None:
        """Refuse all further links to a site."""
        self._rows[site] = BARRED_SITE
        batch.put(BARRED + site.encode(), b"")

    def due_of(self, row: SiteRow) -> float:
        return row[_DUE]

    def active_on_disk(self) -> list[str]:
        """Return the sites under ACTIVE, which belong to a running or a killed crawl."""
        return [key[1:].decode() for key, _ in self._disk.scan(ACTIVE, after(ACTIVE))]

    def record(self, site: str, row: SiteRow) -> SiteRecord:
        sid = site_id(site)
        name = site.encode()
        state, learned, owner, ranked = self._disk.get_many([STATE + sid, LEARNED + sid, ACTIVE + name, RANKED + name])
        return SiteRecord(
            site=site,
            pages=tuple(int(count) for count in row[: len(STATES)]),
            due=row[_DUE],
            first_seen=row[_FIRST_SEEN],
            state=SiteState() if state is None else decode_state(state),
            owner=None if owner is None else owner.decode(),
            immediate=int(row[IMMEDIATE_AT]),
            epoch=int(row[EPOCH_AT]),
            learned=learned or b"",
            changed=self.ranks.changed(ranked),
        )

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return the next `n` sites after `name`, in order of name."""
        found: list[SiteRecord] = []
        for key, value in self._scan_rows(name):
            if len(found) == n:
                break
            site = key[1:].decode()
            found.append(self.record(site, list(site_row_codec.unpack(value))))
        return found

    def stage(self, batch: WriteBatch) -> None:
        """Add the changed rows to the batch."""
        self.ranks.stage(batch, self._touched)
        for site, row in self._touched.items():
            batch.put(SITE + site.encode(), site_row_codec.pack(*row))
        self._touched = {}
        while len(self._rows) > _ROWS_KEPT:
            self._rows.popitem(last=False)

    def _scan_rows(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        # The first possible key after a name is the name and a zero byte.
        return self._disk.scan(SITE + name.encode() + b"\x00" if name else SITE, after(SITE))

    def _set_due(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        row[_DUE] = due
        self._touched[site] = row
        self.due.put(batch, site, due)
