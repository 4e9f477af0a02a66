"""The embedded store's change log: entries by number, made in the step that they tell of.

The numbers run without a gap from the first entry that is kept to the last; both ends stand with the counts. Reading
takes them from the disk, for who reads is mostly another process.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import CursorLost
from webfountain.records import Change
from webfountain.store.changes import BEGIN_ANEW, cursor_at, entry_of, parting, sequence_of, without_text
from webfountain.store.embedded.counts import log_bounds
from webfountain.store.embedded.keys import CHANGE, after, number

if TYPE_CHECKING:
    from webfountain.records import ChangeVerdict, Outcome, PageRecord
    from webfountain.store.embedded.counts import Counts
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.pages import Place

__all__ = ["ChangeLog"]

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


class ChangeLog:
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

    def note_parting(self, batch: WriteBatch, place: Place, verdict: ChangeVerdict, at: float) -> None:
        """Write the entry of a page that is taken out, where it was held."""
        if place.record.state == "crawled":
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
