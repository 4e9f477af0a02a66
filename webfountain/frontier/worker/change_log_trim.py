"""Remove old entries from the change log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.tables import ChangesTable
    from webfountain.store.contract import Changes

__all__ = ["ChangeLogTrim"]


class ChangeLogTrim(Stage):
    """Keeps the change log within the age and the number of entries that the collection allows."""

    def __init__(self, changes: Changes, rules: ChangesTable) -> None:
        self._changes = changes
        self._rules = rules

    def chores(self, batch: Batch, result: BatchResult) -> None:
        if batch.tidy:
            self._changes.trim(before=batch.at - self._rules.keep, most=self._rules.max_entries)
