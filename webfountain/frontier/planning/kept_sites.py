"""Continue an active site from the data saved with it in the store, and save its new data there.

A site in memory continues as it is, unless another ant has saved the site since. In that case, and for a site that is
not in memory, the saved data are decoded. If that is not possible, the site begins again from its pages. Each window of
a very large site is saved separately, in one step with the site's data (`take_windows`). At a turn the current window
is saved and another is loaded in its place, which continues with what the current one learned about the site's
sections. `site_windows` determines which window is next.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from webfountain.core.forecast import Belief
from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.begin_site import begin_site
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgent_site import UrgentSite, resume_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.core.site_urgency import SiteUrgency
    from webfountain.frontier.planning.collection_forecast import CollectionForecast
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms
    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.contract import FrontierStore

__all__ = ["KeptSites", "halves", "is_turn"]

_MOST: Final = 1 << 32
"""A window with a higher number is not split."""


class KeptSites:
    """The data of active sites that are saved in a store."""

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
        site = None if windows is None else self._resume(lease.site, windows, terms)
        before = held.beliefs() if held is not None else [] if windows is None else windows.beliefs()
        if site is None:
            known = [each for each in (windows, None if held is None else held.windows) if each is not None]
            return self._begin_anew(lease, before, known, records(), terms, at=at)
        if held is not None:
            self._count_anew(before, site, at)
        return site

    def _resume(self, name: str, windows: Windows, terms: UrgencyTerms) -> UrgentSite | None:
        """Return the site of these saved windows; None if they cannot be read."""
        newest = None
        if windows.newest != windows.hand:
            newest = resume_site(name, self._read(name, windows.newest) or b"", terms)[0]
            if newest is None:
                return None
        data = self._read(name, windows.hand)
        site = _at_hand(name, windows, data, terms, None if newest is None else newest.urgencies)
        if site is not None:
            site.encode_windows()
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
        data = site.encode()
        if site.windows.is_whole:
            return data
        site.windows.keep_hand()
        self._windows.append((lease, site.windows.hand, data))
        return site.encode_windows()

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

        A window that grew too large is split into two. If the windows of the site cannot be read, the site begins again
        from its `records`.
        """
        windows = Windows.begun(0, terms, at) if site.windows.is_whole else site.windows
        left, parts = windows.hand, [(windows.hand, site)]
        while len(parts[0][1]) > site_windows.WINDOW and parts[0][0] < _MOST:
            parts = [half for number, part in parts for half in halves(part, number)]
        kept = {number: part.encode() for number, part in parts}
        waits = {site.pages.key(page): since for page, since in site.ranking.waits.items()}
        hand = windows.turn({number: part.believed for number, part in parts}, waits, terms, at)
        data = kept.get(hand) or self._read(lease.site, hand)
        turned = _at_hand(lease.site, windows, data, terms, site.urgencies)
        if turned is None:
            turned = self._begin_anew(lease, site.windows.beliefs(), [site.windows], records(), terms, at=at)
            return turned, self.keep(lease, turned)
        if len(parts) > 1:
            kept[left] = b""  # it no longer exists
        self._windows += [(lease, number, part) for number, part in kept.items()]
        return turned, turned.encode_windows()

    def take_windows(self) -> list[tuple[SiteLease, int, bytes]]:
        """Return the windows to save, in one step with the sites' data that `keep` or `turn` last returned."""
        windows, self._windows = self._windows, []
        return windows


def is_turn(site: UrgentSite, price: float, at: float, pause: float) -> bool:
    """Return whether another window should be loaded: it is time, or this one has no urgent pages or grew too large."""
    windows = site.windows
    if windows.is_whole or len(site) > site_windows.WINDOW:
        return len(site) > site_windows.WINDOW
    if windows.is_time(site.terms, at):
        return True
    return at >= windows.early_at(site.terms) and price > site.ranking.most and not site.is_stale(price, at, pause)


def halves(site: UrgentSite, number: int) -> list[tuple[int, UrgentSite]]:
    """Return the two halves of a window, by number. Until both are computed, the first half has the whole window's
    beliefs.
    """
    upper = site.pages.in_upper_half(number)
    return [
        (2 * number, site.some(~upper, believed=site.believed)),
        (2 * number + 1, site.some(upper, believed=None)),
    ]


def _at_hand(
    name: str, windows: Windows, data: bytes | None, terms: UrgencyTerms, newest: SiteUrgency | None
) -> UrgentSite | None:
    site = resume_site(name, data, terms)[0] if data else None
    if site is not None:
        site.join(windows, newest)
    return site
