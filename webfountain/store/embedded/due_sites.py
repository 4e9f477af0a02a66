"""The inactive sites by due time, on disk."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.store.codec import from_sortable, to_sortable
from webfountain.store.embedded.keys import DUE, after, due_key

if TYPE_CHECKING:
    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["DueSites"]


class DueSites:
    """The keys of inactive sites, which sort by due time.

    Deleted keys at the front are scanned only once: there are no keys before `_front`.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Forget the front that is in memory."""
        self._front = DUE

    def put(self, batch: WriteBatch, site: str, due: float) -> None:
        """Add a site."""
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
        """Return the due time of the first site, or inf if no site will be due."""
        for key, _ in self._disk.scan(self._front, after(DUE)):
            self._front = key
            return from_sortable(key[1:9])
        return inf
