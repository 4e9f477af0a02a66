"""Delay suspects: pages on which a process died are requested last.

Place in the walk: a stage of the store worker, where leases are passed to their site (`sandbox.crash_guard`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from webfountain.sandbox.crash_guard import CrashSuspects
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["SuspectStage"]


class SuspectStage(Stage):
    """Gives suspects back while their site has other pages."""

    def __init__(self, suspects: CrashSuspects, store: FrontierStore) -> None:
        self._suspects = suspects
        self._store = store

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        del at
        if not len(self._suspects):
            return dealt
        never, recrawl, back = self._suspects.put_last(dealt.never_crawled, dealt.recrawl)
        self._store.queues.release([lease.id for lease in back])
        return msgspec.structs.replace(dealt, never_crawled=never, recrawl=recrawl)
