"""Continue an active site from the data saved with it in the store, and save its new data there.

A site in memory continues as it is, unless another ant has saved the site since. In that case, and for a site that is
not in memory, the saved data are decoded. If that is not possible, the site begins again from its pages. Each window of
a very large site is saved separately, in one step with the site's data (`take_windows`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from webfountain.core.forecast import Belief
from webfountain.frontier.planning import window_turns
from webfountain.frontier.planning.begin_site import begin_site
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgent_site import UrgentSite, resume_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.frontier.planning.collection_forecast import CollectionForecast
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms
    from webfountain.frontier.planning.window_turns import KeptSite
    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.contract import FrontierStore

__all__ = ["KeptSites"]


class KeptSites:
    """The saved sites of a store."""

    def __init__(self, store: FrontierStore | None, forecast: CollectionForecast) -> None:
        """Without a store for windows, each site is in memory as a whole, whatever its size."""
        self._store = store
        self._forecast = forecast
        self._windows: list[tuple[SiteLease, int, bytes]] = []

    def open(
        self,
        lease: SiteLease,
        kept: bytes,
        held: UrgentSite | None,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        """Return a site that becomes active: the one `held` in memory, or made from `kept` or from `records`."""
        if held is not None and kept and held.kept == kept and held.follow(terms):
            return held
        windows = None if self._store is None else Windows.decode(kept)
        if windows is not None or (held is not None and not held.windows.is_whole):
            return self._open_windows(lease, held, windows, records, terms, at=at)
        site, believed = resume_site(lease.site, kept, terms) if kept else (None, None)
        if site is None:
            site = self._begin(lease, records(), terms, at=at, believed=believed)
        # The saved data may be older than the forecast's.
        if held is not None and held.believed is not None:
            site.believe(held.believed)
        return site

    def _open_windows(
        self,
        lease: SiteLease,
        held: UrgentSite | None,
        windows: Windows | None,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        """Return a site that has windows, or had windows when it was `held`."""
        site = None
        if windows is not None:
            site = window_turns.resume(lease.site, windows, terms, partial(self._read, lease.site))
        before = held.beliefs() if held is not None else [] if windows is None else windows.beliefs()
        if site is None:
            known = [each for each in (windows, None if held is None else held.windows) if each is not None]
            return self._begin_anew(lease, before, known, records(), terms, at=at)
        if held is not None:
            self._count_anew(before, site, at)
        return site

    def _begin_anew(
        self,
        lease: SiteLease,
        before: list[Belief],
        known: Iterable[Windows],
        records: Iterable[PageRecord],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        """Return a site that begins from its records, without any of its `known` windows."""
        site = self._begin(lease, records, terms, at=at)
        numbers = {number for each in known if not each.is_whole for number in each.numbers}
        for number in numbers - set([] if site.windows.is_whole else site.windows.numbers):
            self._put(lease, number, b"", at=at)
        self._count_anew(before, site, at)
        return site

    def _count_anew(self, before: list[Belief], site: UrgentSite, at: float) -> None:
        """Replace the forecast's beliefs about the site with its current ones."""
        nothing = Belief(at, 0, 0.0, 0.0, 0.0)
        self._forecast.replace(at, [(each, nothing) for each in before] + [(None, each) for each in site.beliefs()])

    def _begin(
        self,
        lease: SiteLease,
        records: Iterable[PageRecord],
        terms: UrgencyTerms,
        *,
        at: float,
        believed: Belief | None = None,
    ) -> UrgentSite:
        put = None if self._store is None else partial(self._put, lease, at=at)
        return begin_site(lease.site, records, terms.rounded(), at=at, believed=believed, put=put)

    def _put(self, lease: SiteLease, number: int, part: bytes, *, at: float) -> None:
        if self._store is not None:
            self._store.queues.settle([], at=at, parts=[(lease, number, part)])

    def _read(self, site: str, number: int) -> bytes | None:
        return None if self._store is None else self._store.sites.part(site, number)

    def keep(self, lease: SiteLease, site: UrgentSite) -> bytes:
        """Return the data to save with a site."""
        return self._kept(lease, window_turns.keep(site))

    def turn(
        self,
        lease: SiteLease,
        site: UrgentSite,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> tuple[UrgentSite, bytes]:
        """Load another window of a site. Return the site to use from then on, and the data to save with it.

        If its windows cannot be read, the site begins again from its `records`.
        """
        turn = window_turns.turn(lease.site, site, terms, partial(self._read, lease.site), at)
        if turn.site is not None:
            return turn.site, self._kept(lease, turn.kept)
        anew = self._begin_anew(lease, site.windows.beliefs(), [site.windows], records(), terms, at=at)
        return anew, self.keep(lease, anew)

    def _kept(self, lease: SiteLease, kept: KeptSite) -> bytes:
        self._windows += [(lease, number, data) for number, data in kept.windows]
        return kept.with_site

    def take_windows(self) -> list[tuple[SiteLease, int, bytes]]:
        """Return the windows to save, in one step with the sites' data that `keep` or `turn` last returned."""
        windows, self._windows = self._windows, []
        return windows
