"""Deliver the notes that other processes leave: pages to fetch now, pages to forget, pauses, blocks, ends.

Place in the walk: a stage of the store worker, after the pages of a batch are settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from webfountain.frontier.inbox.blocks import blocks_of
from webfountain.frontier.inbox.notes import is_paused
from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.inbox.notes import CopyEraser, ForgetNote, Notes
    from webfountain.frontier.worker.copies import Takedowns
    from webfountain.store.contract import FrontierStore

__all__ = ["InboxStage"]

PAUSE_POLLS: Final = 4
"""Number of polls of the inbox between two checks of pause and blocks, if several processes share a store."""


class Colleagues(Protocol):
    """The other ants, as the inbox uses them."""

    def announce(self, barred: Sequence[ForgetNote]) -> None:
        """Tell them which pages were forgotten."""

    def drain(self, ants: Sequence[str]) -> None:
        """Tell some of them to give up their sites and end."""


class InboxStage(Stage):
    """Stage of the process `owner` that delivers the notes of an inbox. `others` are the other ants; None: there are
    none.
    """

    def __init__(
        self,
        inbox: Notes,
        store: FrontierStore,
        repository: CopyEraser | None,
        takedowns: Takedowns,
        *,
        owner: str,
        others: Colleagues | None = None,
    ) -> None:
        self._inbox = inbox
        self._store = store
        self._repository = repository
        self._takedowns = takedowns
        self._owner = owner
        self._others = others
        self._is_paused = is_paused(store.board)
        self._blocks = blocks_of(store.board)
        self._polls = 0

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        if batch.inbox:
            self._deliver(batch, result)
            # Another process of the crawl may have taken the note.
            if self._store.claims is None or self._polls % PAUSE_POLLS == 0:
                self._is_paused = is_paused(self._store.board)
                self._blocks = blocks_of(self._store.board)
            self._polls += 1
        result.is_paused = self._is_paused
        result.blocks = self._blocks

    def _deliver(self, batch: Batch, result: BatchResult) -> None:
        delivered = self._inbox.deliver(self._store, self._repository, at=batch.at)
        result.counts["ant/immediate"] += delivered.immediate
        if delivered.forgotten:
            self._takedowns.note()
        if delivered.barred and self._others is not None:
            self._others.announce(delivered.barred)
        result.is_drained |= self._owner in delivered.drained
        if self._others is not None:
            self._others.drain([ant for ant in delivered.drained if ant != self._owner])
