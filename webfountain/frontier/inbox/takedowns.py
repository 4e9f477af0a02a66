"""Pages that are forgotten while this crawl runs.

A body that is being fetched at that moment must not be written to the disk. Place in the walk: the inbox and the
letters of other ants report such pages, and the worker checks visits before it writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.inbox.notes import ForgetNote
    from webfountain.frontier.worker.copies import CopyWriter
    from webfountain.records import Lease
    from webfountain.store.contract import FrontierStore

__all__ = ["Takedowns"]


class Takedowns:
    """Remembers whether any page was forgotten. Before the first one, no check reads the store."""

    def __init__(self, store: FrontierStore, copies: CopyWriter) -> None:
        self._store = store
        self._copies = copies
        self._any = False

    def note(self) -> None:
        """Record that pages were forgotten in the store."""
        self._any = True

    def erase(self, barred: Sequence[ForgetNote]) -> None:
        """Remove the local copies of pages that another process has forgotten."""
        self._any = True
        self._copies.erase(barred)

    def holds(self, lease: Lease) -> bool:
        """Return whether the leased page was forgotten since it was leased."""
        return self._any and self._store.pages.get(lease.site, lease.key) is None
