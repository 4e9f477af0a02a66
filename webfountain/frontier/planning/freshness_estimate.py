"""Estimate how much of the collection is fresh, for the display of a crawl.

If the last fetch of a page failed, its copy may be obsolete, and no check can show it. The store counts such a page as
crawled, so this module counts these pages separately. The worker counts after each settle. If several ants settle at
the same moment, one may overwrite the other's update. So the number is an estimate, like the freshness that it
corrects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.change_rate import freshness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.core.forecast import Outlook
    from webfountain.records import PageRecord
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import Board, FrontierStore

__all__ = ["FAILING", "FreshnessEstimate", "count_failing", "failing_pages"]

FAILING: Final = "failing-pages"
"""Name of the published value."""


class FreshnessEstimate:
    """The estimate from the forecast that was learned from fetches, or else from the buckets of the census.

    Parameters
    ----------
    counted : returns the last known counts of the store
    outlook : returns the forecast that was learned from fetches; None: there is none
    now : returns UTC seconds
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        counted: Callable[[], Statistics],
        outlook: Callable[[], Outlook | None],
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._counted = counted
        self._outlook = outlook
        self._now = now

    def share(self) -> float | None:
        """Return the estimated share of known pages with a fresh copy; None if unknown. For the worker thread."""
        pages = self._counted().pages
        missing = pages["never-crawled"] + pages["failed"]  # a failed page without a copy is not fresh
        failing = failing_pages(self._store.board) / max(1, missing + pages["crawled"])
        if (believed := self._outlook()) is not None:
            return max(0.0, 1.0 - believed.median - failing)
        census = self._store.census
        found = freshness(census.buckets(), never_crawled=missing, at=self._now(), fastest_s=census.fastest_s)
        return None if found is None else max(0.0, found - failing)


def failing_pages(board: Board) -> int:
    """Return for how many pages of the collection the last fetch failed."""
    value = board.value(FAILING)
    return 0 if value is None else msgspec.msgpack.decode(value, type=int)


def count_failing(board: Board, settled: Iterable[tuple[PageRecord, PageRecord]]) -> None:
    """Update the count from settled pages, each given as its record before and after. It costs a get and a put if the
    number changes.
    """
    change = sum(_is_failing(after) - _is_failing(before) for before, after in settled)
    if change:
        board.put_value(FAILING, msgspec.msgpack.encode(max(0, failing_pages(board) + change)))


def _is_failing(record: PageRecord) -> bool:
    return record.state == "crawled" and record.failures > 0
