"""Housekeeping: keep the disk of the copies and the change log within their bounds.

Place in the walk: these stages of the store worker run near the end of a batch.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Stage

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.tables import ChangesTable
    from webfountain.repository.repository import Repository
    from webfountain.store.contract import Changes, FrontierStore

__all__ = ["ChangeLogTrim", "DiskRoom"]

logger = logging.getLogger(__name__)
_SHORT: Final = (
    "Fetching stops: the disk of the copies has %.0f MB left, and the limit is %.0f MB (WEBFOUNTAIN_LEAST_FREE_BYTES)"
)
_ROOM: Final = 1.1
"""Factor: fetching resumes when the free space is this many times the limit at which it stopped."""


class DiskRoom(Stage):
    """Keeps `least_free` bytes of the disk free, and removes superseded copies."""

    def __init__(self, repository: Repository, store: FrontierStore, *, least_free: int) -> None:
        self._repository = repository
        self._store = store
        self._least_free = least_free
        self._lacks_room = False

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Remove superseded copies when it is time, then check the free space. Each change of state is logged once."""
        repository = self._repository
        if batch.tidy or repository.is_untidy():
            self._tidy(result)
        if repository.free_bytes() < self._least_free:
            if not self._lacks_room:
                self._tidy(result)
                logger.warning(_SHORT, repository.free_bytes() / 1e6, self._least_free / 1e6)
            self._lacks_room = True
        elif self._lacks_room and repository.free_bytes() >= _ROOM * self._least_free:
            logger.warning("Fetching resumes: the disk of the copies has room again")
            self._lacks_room = False
        result.lacks_room = self._lacks_room

    def _tidy(self, result: BatchResult) -> None:
        result.counts["repository/deleted"] += self._repository.tidy(self._store.pages).files


class ChangeLogTrim(Stage):
    """Keeps the change log within the age and the number of entries that the collection allows."""

    def __init__(self, changes: Changes, rules: ChangesTable) -> None:
        self._changes = changes
        self._rules = rules

    def tidy(self, batch: Batch) -> None:
        self._changes.trim(before=batch.at - self._rules.keep, most=self._rules.max_entries)
