"""Forecast, during a crawl, what share of a collection's pages is obsolete.

For each site, the crawl estimates how many pages are obsolete (`Belief`). When a fetch finds a change, the crawl
estimates how long the page had been obsolete. `core.forecast` forecasts what share of the pages will be obsolete during
the cycle. The store keeps the forecast for the next crawl. The display of a crawl shows the share of fresh pages
(`fresh_share`).

If the last fetch of a page failed, its copy may be obsolete, so such pages are counted separately. The count of pages
whose last fetch failed is not exact, because ants that settle pages at the same moment may lose an update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.change_rate import freshness
from webfountain.core.forecast import BeliefTotal, CycleForecast, SavedForecast, published

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.core.forecast import Belief, Outlook
    from webfountain.records import PageRecord
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import Board, FrontierStore

__all__ = ["FAILING", "CollectionForecast", "count_failing", "failing_pages", "fresh_share"]

COVERED: Final = 0.5
"""A forecast is made only if there are estimates for at least this share of the crawled pages."""
FAILING: Final = "failing-pages"
"""Name of the value in the store that counts crawled pages whose last fetch failed."""


class CollectionForecast:
    """Estimates what share of a collection's pages is obsolete, now and in the coming cycles."""

    def __init__(self, cycle_s: float) -> None:
        self._cycle_s = cycle_s
        self.saved: SavedForecast | None = None
        """The saved form of the forecast and of the estimates of all sites together; None before the first update."""

    def add(
        self, at: float, lasted_s: Sequence[float], changed: Iterable[tuple[Belief | None, Belief]], *, fetches: int
    ) -> None:
        """Add the results of fetches to the forecast, and replace the old estimates of the fetched sites.

        Parameters
        ----------
        lasted_s : seconds for which each page that was found changed is believed to have been obsolete
        fetches : number of visits that were compared with a copy
        """
        self._begin(at).forecast.visit(at, lasted_s, fetches=fetches)
        self.replace(at, changed)

    def replace(self, at: float, changed: Iterable[tuple[Belief | None, Belief]]) -> None:
        total = self._begin(at).standing
        for old, new in changed:
            total.replace(old, new)

    def update(self, at: float, *, crawled: int, never_crawled: int) -> None:
        """Update the forecast from the numbers of crawled and never-crawled pages. Call `update` several times per
        period.
        """
        saved = self._begin(at)
        total = saved.standing
        if total.pages > COVERED * crawled:
            all_of = crawled / total.pages
            saved.forecast.observe(
                at,
                obsolete=all_of * total.obsolete(at),
                so_far=all_of * total.so_far(at),
                missing=float(never_crawled),
                known=float(crawled + never_crawled),
            )

    def _begin(self, at: float) -> SavedForecast:
        if self.saved is None:
            self.saved = SavedForecast(CycleForecast.begun(self._cycle_s, at=at), BeliefTotal(at))
        return self.saved

    def outlook(self) -> Outlook | None:
        """Return the share of obsolete pages at the last update, or None if the estimates cover too few pages."""
        return None if self.saved is None else self.saved.forecast.now()

    def encode(self) -> bytes | None:
        """Return the forecast as bytes for the store, or None before the first update."""
        return None if self.saved is None else msgspec.msgpack.encode(self.saved)

    def resume(self, data: bytes | None) -> None:
        """Restore a forecast that `encode` wrote. Ignore the data if another version of webfountain wrote them, or if
        the length of a cycle has changed since.
        """
        kept = published(data)
        if kept is not None and kept.forecast.cycle_s == self._cycle_s:
            self.saved = kept


def fresh_share(store: FrontierStore, counted: Statistics, outlook: Outlook | None, at: float) -> float | None:
    """Return the estimated share of known pages with a fresh copy, or None if unknown.

    If there is no forecast, compute the share of fresh pages from the store's counts per bucket. `counted` contains the
    last known numbers of pages by state.
    """
    pages = counted.pages
    missing = pages["never-crawled"] + pages["failed"]  # a failed page without a copy is not fresh
    failing = failing_pages(store.board) / max(1, missing + pages["crawled"])
    if outlook is not None:
        return max(0.0, 1.0 - outlook.median - failing)
    census = store.census
    found = freshness(census.buckets(), never_crawled=missing, at=at, fastest_s=census.fastest_s)
    return None if found is None else max(0.0, found - failing)


def failing_pages(board: Board) -> int:
    """Return the number of crawled pages whose last fetch failed."""
    value = board.value(FAILING)
    return 0 if value is None else msgspec.msgpack.decode(value, type=int)


def count_failing(board: Board, settled: Iterable[tuple[PageRecord, PageRecord]]) -> None:
    """Update the number of pages whose last fetch failed. `settled` contains the records of each page before and after
    a fetch.
    """
    change = sum(_is_failing(after) - _is_failing(before) for before, after in settled)
    if change:
        board.put_value(FAILING, msgspec.msgpack.encode(max(0, failing_pages(board) + change)))


def _is_failing(record: PageRecord) -> bool:
    return record.state == "crawled" and record.failures > 0
