"""Pausing: a paused crawl sends no requests until it is resumed.

The pause is a published value, so it applies to every process of the crawl and survives restarts. Fetches under way
are still processed. Leases are kept, and sites wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webfountain.store.contract import Board

__all__ = ["PAUSED", "is_paused", "set_paused"]

PAUSED: Final = "paused"
"""Name of the published value: b"1" while the crawl is paused."""


def is_paused(board: Board) -> bool:
    """Return whether the crawl of a store is paused."""
    return board.value(PAUSED) == b"1"


def set_paused(board: Board, *, paused: bool) -> None:
    """Pause or resume the crawl of a store."""
    board.put_value(PAUSED, b"1" if paused else b"")
