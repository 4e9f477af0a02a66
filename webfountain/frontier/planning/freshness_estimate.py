"""The estimate of how much of the collection is fresh, for the display of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.core.change_rate import freshness
from webfountain.frontier.pages.failing_pages import failing_pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.core.forecast import Outlook
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import FrontierStore

__all__ = ["FreshnessEstimate"]


class FreshnessEstimate:
    """The estimate from what was learned of fetches (`outlook`), or else from the buckets of the census.

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
