"""Count the held pages whose last fetch failed.

The copies of these pages may be obsolete, and no check can show it. Place in the walk: in the store worker, after the
settle. The store counts such a page as crawled, so the number is a separate published value. If several ants settle at
the same moment, one may overwrite the other's update, so the number is an estimate, like the freshness that it
corrects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.records import PageRecord
    from webfountain.store.contract import Board

__all__ = ["FAILING", "count_failing", "failing_pages"]

FAILING: Final = "failing-pages"
"""Name of the published value."""


def failing_pages(board: Board) -> int:
    """Return how many held pages failed at their last fetch."""
    value = board.value(FAILING)
    return 0 if value is None else msgspec.msgpack.decode(value, type=int)


def count_failing(board: Board, settled: Iterable[tuple[PageRecord, PageRecord]]) -> None:
    """Count settled pages, each given as its record before and after. It costs a get and a put if the number
    changes.
    """
    change = sum(_is_failing(after) - _is_failing(before) for before, after in settled)
    if change:
        board.put_value(FAILING, msgspec.msgpack.encode(max(0, failing_pages(board) + change)))


def _is_failing(record: PageRecord) -> bool:
    return record.state == "crawled" and record.failures > 0
