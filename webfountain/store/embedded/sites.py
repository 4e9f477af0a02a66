"""The embedded store's sites: a row each, the inactive ones by due time, the active list.

A site stands either under DUE or under ACTIVE. A reopened store finds under ACTIVE those that a crash left
there and makes them due again, in one scan. Bounded: `ROWS_KEPT` rows in memory, objects only for active sites.
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
    REGRADE,
    SITE,
    STATE,
    after,
    due_key,
    site_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["BARRED_SITE", "EPOCH_AT", "IMMEDIATE_AT", "SiteRow", "Sites"]

ROWS_KEPT: Final = 32_768

SiteRow = list[float]
"""Pages by state (STATES order), when the site is due and was first seen, URLs in the immediate lane, epoch."""
_DUE: Final = len(STATES)
_FIRST_SEEN: Final = len(STATES) + 1
IMMEDIATE_AT: Final = len(STATES) + 2
EPOCH_AT: Final = len(STATES) + 3
BARRED_SITE: Final[SiteRow] = []
"""Stands for the row of a site that was forgotten as a whole."""
_row = struct.Struct(f">{len(STATES)}IddII")


class Sites:
    """Rows, due times and the active list on disk; `stage` writes what a step changed, `load` drops it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Forget what is held in memory; it is read again when it is asked for."""
        self._rows: OrderedDict[str, SiteRow | None] = OrderedDict()
        self._touched: dict[str, SiteRow] = {}
        # No entry stands before it: entries that were deleted at the front are not walked over again.
        self._due_front = DUE

    def row(self, site: str) -> SiteRow | None:
        """A site's row, BARRED_SITE when the site was forgotten, None when it is unknown; shared, see `touch`."""
        rows = self._rows
        if site in rows:
            rows.move_to_end(site)
            return rows[site]
        rows[site] = row = self.read_row(site)
        return row

    def read_row(self, site: str) -> SiteRow | None:
        """The same from disk, changing nothing in memory: any thread may ask."""
        name = site.encode()
        value, barred = self._disk.get_many([SITE + name, BARRED + name])
        if barred is not None:
            return BARRED_SITE
        return None if value is None else list(_row.unpack(value))

    def touch(self, site: str, row: SiteRow) -> None:
        """The caller changed counts in this row."""
        self._touched[site] = row

    def add(self, batch: WriteBatch, site: str, at: float) -> SiteRow:
        """Make a site known, inactive and due at once."""
        row: SiteRow = [0] * len(STATES) + [at, at, 0, 0]
        self._rows[site] = self._touched[site] = row
        batch.put(NAME + site_id(site), site.encode())
        self._put_due(batch, site, at)
        return row

    def due_sooner(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Bring an inactive site's due time forward, never back."""
        if due < row[_DUE]:
            batch.delete(due_key(row[_DUE], site))
            self._set_due(batch, site, row, due)

    def set_back(self, batch: WriteBatch, site: str, row: SiteRow, *, at: float, ahead: float) -> None:
        """The clock was `ahead` seconds ahead of `at`: what it put off is due so much sooner."""
        row[_FIRST_SEEN] = min(row[_FIRST_SEEN], at)
        self._touched[site] = row
        if at < row[_DUE] < inf:
            self.due_sooner(batch, site, row, max(at, row[_DUE] - ahead))

    def wake(self, batch: WriteBatch, site: str, row: SiteRow, at: float, owner: str) -> None:
        """Put a site on the active list, also one that another has there."""
        batch.delete(due_key(row[_DUE], site))
        batch.put(ACTIVE + site.encode(), owner.encode())
        row[_DUE] = min(row[_DUE], at)
        self._touched[site] = row

    def sleep(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Take a site off the active list, to be due at `due`."""
        batch.delete(ACTIVE + site.encode())
        self._set_due(batch, site, row, due)

    def drop(self, batch: WriteBatch, site: str, row: SiteRow) -> None:
        """Forget all that is kept of a site besides its pages."""
        name, sid = site.encode(), site_id(site)
        of_name = (SITE + name, due_key(row[_DUE], site), ACTIVE + name)
        for key in (*of_name, STATE + sid, NAME + sid, LEARNED + sid, REGRADE + sid):
            batch.delete(key)
        self._touched.pop(site, None)

    def bar(self, batch: WriteBatch, site: str) -> None:
        """Refuse links to the site from now on."""
        self._rows[site] = BARRED_SITE
        batch.put(BARRED + site.encode(), b"")

    def put_state(self, batch: WriteBatch, site: str, state: SiteState) -> None:
        """Keep what the ant must remember of a site."""
        batch.put(STATE + site_id(site), encode_state(state))

    def put_learned(self, batch: WriteBatch, site: str, learned: bytes) -> None:
        """Keep what was learned of a site."""
        batch.put(LEARNED + site_id(site), learned)

    def due_of(self, row: SiteRow) -> float:
        """When the site of a row is due."""
        return row[_DUE]

    def due(self, n: int, at: float) -> list[tuple[float, str]]:
        """Up to `n` inactive sites due at or before `at`, each after its time, longest due first."""
        found: list[tuple[float, str]] = []
        for key, _ in self._disk.scan(self._due_front, after(DUE + to_sortable(at + 0.0))):
            if not found:
                self._due_front = key
            if len(found) == n:
                break
            found.append((from_sortable(key[1:9]), key[9:].decode()))
        return found

    def next_due(self) -> float:
        """When the first inactive site is due; inf when none ever is."""
        for key, _ in self._disk.scan(self._due_front, after(DUE)):
            self._due_front = key
            return from_sortable(key[1:9])
        return float("inf")

    def active_on_disk(self) -> list[str]:
        """The sites under ACTIVE: those of a crawl that runs, or of one that was killed."""
        return [key[1:].decode() for key, _ in self._disk.scan(ACTIVE, after(ACTIVE))]

    def record(self, site: str, row: SiteRow) -> SiteRecord:
        """The site record of a row."""
        sid = site_id(site)
        state, learned, owner = self._disk.get_many([STATE + sid, LEARNED + sid, ACTIVE + site.encode()])
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
        )

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Up to `n` sites in order of name, from the first after `name`."""
        found: list[SiteRecord] = []
        for key, value in self._scan_rows(name):
            if len(found) == n:
                break
            site = key[1:].decode()
            found.append(self.record(site, list(_row.unpack(value))))
        return found

    def stage(self, batch: WriteBatch) -> None:
        """Add the rows that changed to the batch."""
        for site, row in self._touched.items():
            batch.put(SITE + site.encode(), _row.pack(*row))
        self._touched = {}
        while len(self._rows) > ROWS_KEPT:
            self._rows.popitem(last=False)

    def _scan_rows(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        # A zero byte added is the first key after a name.
        return self._disk.scan(SITE + name.encode() + b"\x00" if name else SITE, after(SITE))

    def _set_due(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        row[_DUE] = due
        self._touched[site] = row
        self._put_due(batch, site, due)

    def _put_due(self, batch: WriteBatch, site: str, due: float) -> None:
        key = due_key(due, site)
        batch.put(key, b"")
        self._due_front = min(self._due_front, key)
