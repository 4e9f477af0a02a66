"""The forecast for a collection during a crawl: the beliefs about all sites, updated each time a site is computed.

When a site is computed, its new beliefs replace its earlier ones, and its visits show how long pages had been obsolete.
From both, `core.forecast` forecasts the obsolete share for the cycle. The forecast is published in the store, and the
next crawl continues it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.forecast import BeliefTotal, CycleForecast, SavedForecast, published

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.core.forecast import Belief, Outlook

__all__ = ["CollectionForecast"]

COVERED: Final = 0.5
"""There is no forecast until the computed sites contain this share of the crawled pages."""


class CollectionForecast:
    """The obsolete share of a collection, now and in the coming cycles."""

    def __init__(self, cycle_s: float) -> None:
        self._cycle_s = cycle_s
        self.saved: SavedForecast | None = None
        """The complete cycles, the running one, and the sum of the beliefs; None before anything was learned."""

    def add(
        self, at: float, lasted_s: Sequence[float], changed: Iterable[tuple[Belief | None, Belief]], *, fetches: int
    ) -> None:
        """Add the results of visits, and replace the beliefs about sites.

        Parameters
        ----------
        lasted_s : seconds for which each page that was found changed is believed to have been obsolete
        fetches : number of visits that were compared with a copy
        """
        self._begin(at).forecast.visit(at, lasted_s, fetches=fetches)
        self.replace(at, changed)

    def replace(self, at: float, changed: Iterable[tuple[Belief | None, Belief]]) -> None:
        """Replace the beliefs about sites."""
        total = self._begin(at).standing
        for old, new in changed:
            total.replace(old, new)

    def update(self, at: float, *, crawled: int, never_crawled: int) -> None:
        """Update the forecast with the numbers of known pages with and without a copy. Call it several times per
        period."""
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
        """Return the obsolete share of the collection at the last update, or None while too little is known."""
        return None if self.saved is None else self.saved.forecast.now()

    def encode(self) -> bytes | None:
        """Return the forecast as it is published, or None before there is one."""
        return None if self.saved is None else msgspec.msgpack.encode(self.saved)

    def resume(self, data: bytes | None) -> None:
        """Continue from the output of `encode`. The output of another version or for another length of cycle is
        ignored."""
        kept = published(data)
        if kept is not None and kept.forecast.cycle_s == self._cycle_s:
            self.saved = kept
