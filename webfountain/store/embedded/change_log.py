"""The change log of the embedded store. Each entry is written in the same write batch as the change that it reports.

Entries have consecutive numbers. The numbers of the first and the last kept entry are stored with the counts.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import CursorLost
from webfountain.records import Change
from webfountain.store.change_log import BEGIN_ANEW, cursor_at, entry_of, is_held, parting, sequence_of, without_text
from webfountain.store.embedded.counts import log_bounds
from webfountain.store.embedded.keys import CHANGE, after, number

if TYPE_CHECKING:
    from webfountain.records import ChangeVerdict, Outcome, PageRecord
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.page_rows import PagePlace
    from webfountain.store.embedded.steps import Steps

__all__ = ["LocalChangeLog"]

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


class LocalChangeLog:
    """Implementation of `Changes` in the embedded store, which also writes the entries of each step. `log` is the name
    of the log, which its cursors contain."""

    def __init__(self, steps: Steps, log: str) -> None:
        self._steps = steps
        self._log = log

    def note_outcome(
        self, batch: WriteBatch, before: PageRecord, outcome: Outcome, *, site: str, key: bytes, at: float
    ) -> None:
        """Write the entry of a settled fetch, if something changed for consumers."""
        entry = entry_of(before, outcome, site=site, key=key, at=at, sequence=self._steps.counts.changes + 1)
        if entry is not None:
            self._put(batch, entry)

    def note_parting(self, batch: WriteBatch, place: PagePlace, verdict: ChangeVerdict, at: float) -> None:
        """Write the entry of a removed page, if the page was held."""
        if is_held(place.record):
            sequence = self._steps.counts.changes + 1
            self._put(batch, parting(place.record, verdict, site=place.site, key=place.key, at=at, sequence=sequence))

    def erase(self, batch: WriteBatch, site: str, key: bytes | None = None) -> None:
        """Remove the content of a page or of all pages of a site from the log, by a scan."""
        for name, value in self._steps.disk.scan(CHANGE, after(CHANGE)):
            entry = _entry.decode(value)
            if entry.site == site and key in (None, entry.key):
                batch.put(name, _encode(without_text(entry)))

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Return up to `n` entries after a cursor, by one get and a scan of `n` entries."""
        self._steps.disk.refresh()
        dropped, last = log_bounds(self._steps.disk)
        behind = dropped
        if cursor is not None:
            behind = sequence_of(cursor, self._log, first=dropped + 1, last=last, time_of=self._time_of)
        found = islice(self._steps.disk.scan(CHANGE + number(behind + 1), after(CHANGE)), n)
        entries = [_entry.decode(value) for _, value in found]
        return [(cursor_at(self._log, entry.sequence, entry.at), entry) for entry in entries]

    def end(self) -> str:
        """Return the cursor after the newest entry, by two gets."""
        self._steps.disk.refresh()
        return self._cursor(log_bounds(self._steps.disk)[1])

    def since(self, at: float) -> str:
        """Return the cursor just before the first entry whose time is `at` or later, by a binary search."""
        self._steps.disk.refresh()
        dropped, last = log_bounds(self._steps.disk)
        earlier = self._last_before(at, dropped, last)
        if earlier == dropped > 0:
            raise CursorLost(f"the change log does not reach back that far; {BEGIN_ANEW}")
        return self._cursor(earlier)

    def trim(self, *, before: float, most: int) -> int:
        """Drop old entries, by a binary search and one range delete."""
        dropped, newest = self._steps.counts.dropped, self._steps.counts.changes
        last = max(self._last_before(before, dropped, newest), newest - most)
        if last <= dropped:
            return 0
        with self._steps.begin() as batch:
            batch.delete_range(CHANGE + number(dropped), CHANGE + number(last + 1))
            self._steps.counts.dropped = last
        return last - dropped

    def _cursor(self, sequence: int) -> str:
        return cursor_at(self._log, sequence, self._time_of(sequence))

    def _time_of(self, sequence: int) -> float | None:
        """Return the time of an entry, or None if it is no longer kept."""
        value = self._steps.disk.get(CHANGE + number(sequence))
        return None if value is None else _entry.decode(value).at

    def _last_before(self, at: float, low: int, high: int) -> int:
        """Return the number of the newest entry whose time is before `at`. Only entries from `low` + 1 to `high` are
        searched; if none of them is from before `at`, return `low`.
        """

        def is_later(sequence: int) -> bool:
            value = self._steps.disk.get(CHANGE + number(sequence))
            return value is None or _entry.decode(value).at >= at

        return low + bisect_left(range(low + 1, high + 1), True, key=is_later)

    def _put(self, batch: WriteBatch, entry: Change) -> None:
        self._steps.counts.changes = entry.sequence
        self._steps.sites.ranks.note(entry.site, entry.at)
        batch.put(CHANGE + number(entry.sequence), _encode(entry))
