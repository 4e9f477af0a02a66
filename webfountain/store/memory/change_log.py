"""The change log of the reference store."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from typing import TYPE_CHECKING

from webfountain.errors import CursorLost
from webfountain.store.change_log import BEGIN_ANEW, cursor_at, entry_of, is_held, parting, sequence_of, without_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import Change, ChangeVerdict, Outcome, PageRecord
    from webfountain.store.memory.sites import MemorySites

__all__ = ["MemoryChangeLog"]


class MemoryChangeLog:
    """Implementation of `Changes` in the reference store, as a list."""

    def __init__(self, sites: MemorySites) -> None:
        self._sites = sites
        self.name = secrets.token_hex(4)
        """Name of the log, which its cursors contain."""
        self.dropped = 0
        """Number of entries that are no longer kept."""
        self._entries: list[Change] = []

    def add(self, entry: Change) -> None:
        self._entries.append(entry)

    def date(self, entry: Change) -> None:
        """Record the time of an entry as the last change of its site, if the site is known."""
        home = self._sites.get(entry.site)
        if home is not None:
            home.changed = max(home.changed, entry.at)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._entries)

    def note_outcome(self, before: PageRecord, outcome: Outcome, *, site: str, key: bytes, at: float) -> None:
        """Append the entry of a settled fetch, if something changed for consumers."""
        entry = entry_of(before, outcome, site=site, key=key, at=at, sequence=self._last() + 1)
        if entry is not None:
            self.add(entry)
            self.date(entry)

    def note_parting(self, record: PageRecord, verdict: ChangeVerdict, *, site: str, key: bytes, at: float) -> None:
        """Append the entry of a removed page, if the page was held."""
        if is_held(record):
            entry = parting(record, verdict, site=site, key=key, at=at, sequence=self._last() + 1)
            self.add(entry)
            self.date(entry)

    def erase(self, site: str, key: bytes) -> None:
        """Remove a page's content from its entries."""
        self._entries = [
            without_text(entry) if (entry.site, entry.key) == (site, key) else entry for entry in self._entries
        ]

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        first, last = self.dropped + 1, self._last()
        after = self.dropped
        if cursor is not None:
            after = sequence_of(cursor, self.name, first=first, last=last, time_of=self._time_of)
        found = self._entries[after - self.dropped :][:n]
        return [(cursor_at(self.name, entry.sequence, entry.at), entry) for entry in found]

    def end(self) -> str:
        return self._cursor(self._last())

    def since(self, at: float) -> str:
        earlier = bisect_left(self._entries, at, key=lambda entry: entry.at)
        if not earlier and self.dropped:
            raise CursorLost(f"the change log does not reach back that far; {BEGIN_ANEW}")
        return self._cursor(self.dropped + earlier)

    def trim(self, *, before: float, most: int) -> int:
        went = max(bisect_left(self._entries, before, key=lambda entry: entry.at), len(self._entries) - most, 0)
        del self._entries[:went]
        self.dropped += went
        return went

    def _last(self) -> int:
        return self.dropped + len(self._entries)

    def _cursor(self, sequence: int) -> str:
        return cursor_at(self.name, sequence, self._time_of(sequence))

    def _time_of(self, sequence: int) -> float | None:
        return self._entries[sequence - self.dropped - 1].at if sequence > self.dropped else None
