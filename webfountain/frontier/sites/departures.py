"""Remove sites from the active list.

A site is parked if it has nothing due, must be left alone, or has had many fetches while other sites wait
(`park_idle`). A site that another process took over is dropped (`lose`). At the end of the crawl, all sites are parked
(`leave_all`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.cluster.ant_notes import GUEST
from webfountain.frontier.sites.site import State
from webfountain.frontier.sites.site_table import BLOCKED_S, is_busy
from webfountain.store.answers import ParkRequest

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.addresses import Addresses
    from webfountain.frontier.sites.flights import Flights
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_table import SiteTable
    from webfountain.frontier.sites.slot_lending import SlotLending

__all__ = ["Departures"]

_QUANTUM: Final = 1000
"""After this many fetches, a site may lose its place in a full active list to a waiting site."""
_PATIENCE_S: Final = 1.0
"""A site stays active if its next page is due within this time, in seconds."""
_FREED_S: Final = 0.5
"""If an ant gives up an address, the sites there become due this many seconds after other ants may use the address."""


class Departures:
    """Removes sites from the table. `shared` is True if other ants crawl from the same store."""

    def __init__(
        self,
        context: SiteContext,
        sites: SiteTable,
        addresses: Addresses,
        *,
        flights: Flights,
        lending: SlotLending | None,
        shared: bool,
    ) -> None:
        self._context = context
        self._sites = sites
        self._addresses = addresses
        self._flights = flights
        self._lending = lending
        self._shared = shared
        self._to_cut: set[str] = set()

    def park_idle(self, batch: Batch, *, is_full: bool) -> float:
        """Park the sites that have nothing due or must be left alone. Return the earliest due time of the parked sites.

        If the list is full and other sites are due (`is_full`), sites that are blocked or have had many fetches are
        parked.
        """
        at = batch.at
        quiet, resting = self._sites.idle(at)
        leaving = {site: site.pages.wake_at for site in quiet if _is_done(site, at)}
        if resting:
            leaving = self._resting(resting, batch) | leaving
        if is_full:
            leaving = {site: self._back_at(site, at) for site in self._sites if _may_go(site, at)} | leaving
        for group in self._addresses.leaving() if self._shared else ():
            there = [self._sites.by_name[place.name] for place in group.places]
            if not any(site.is_under_way() for site in there):
                # Another ant that activated the site before the address is free would give it back.
                free = max(at, group.gate.next_for_others(at, 0.0)) + _FREED_S
                leaving = dict.fromkeys((site for site in there if site.lease is not None), free) | leaving
        return min((self.leave(site, due, batch) for site, due in leaving.items()), default=inf)

    def leave_all(self, batch: Batch) -> None:
        """Remove every site at the end of the crawl."""
        for site in list(self._sites):
            self.leave(site, batch.at, batch)

    def _resting(self, resting: list[ActiveSite], batch: Batch) -> dict[ActiveSite, float]:
        """Return the sites that must be left alone for a long time, for example after a refusal. If a guest must be
        left alone, sites that wait for its files get the error "busy".
        """
        for site in [site for site in resting if site.lease is None]:
            self._sites.file_requests.route(site.files.give_up("busy"), batch)
        return {site: batch.at for site in resting if _may_go(site, batch.at)}

    def _back_at(self, site: ActiveSite, at: float) -> float:
        """Return when a parked site is due again: at once, or later if its domain has used its share of fetches."""
        shares = self._context.shares
        is_capped = site.domain is not None and not site.domain.is_open
        return at + shares.rest_s if shares is not None and is_capped else at

    def leave(self, site: ActiveSite, due: float, batch: Batch) -> float:
        """Remove a site from the list, and park it or return its borrowed slots. Return when a parked site is due
        again.
        """
        self._remove(site)
        given_up = site.files.give_up("busy")
        back = inf
        if site.is_borrowed:
            assert self._lending is not None
            self._lending.leave(site, batch)
        elif site.lease is not None:
            back = max(due, site.standing.next_at(batch.at))
            batch.release(site.hand.flush())
            batch.park(ParkRequest(site.lease, back, site.remember(batch.at)))
        self._sites.file_requests.route(given_up, batch)
        if site.lease is None:
            if self._shared:
                batch.freed[GUEST + site.name] = site.standing.next_at(batch.at)
        elif not site.is_borrowed:
            self._context.metrics.inc("ant/sites_parked")
        return back

    # ------------------------------------------------------------ sites that are lost

    def lose(self, name: str, batch: Batch) -> None:
        """Drop a site that another process took over. The results of a dropped site's fetches in flight are ignored."""
        site = self._sites.by_name.get(name)
        if site is not None:
            if self._flights.is_of(site):
                self._to_cut.add(name)
            self._remove(site)
            if self._lending is not None:
                self._lending.lose(site)
            self._sites.file_requests.route(site.lose(), batch)
            self._context.metrics.inc("ant/sites_lost")

    def lose_lease(self, name: str, token: int, batch: Batch) -> None:
        """Drop a site if its current lease has this token."""
        site = self._sites.by_name.get(name)
        if site is not None and site.lease is not None and site.lease.token == token:
            self.lose(name, batch)

    def take_lost(self) -> set[str]:
        """Return the sites that were lost since the last call and whose fetches must be cancelled."""
        taken, self._to_cut = self._to_cut, set()
        return taken

    def _remove(self, site: ActiveSite) -> None:
        self._sites.leave(site)
        if self._context.shares is not None and site.domain is not None:
            self._context.shares.leave(site.name, site.domain)
        self._addresses.leave(site.place)
        if self._lending is not None:
            self._lending.forget(site)


def _is_done(site: ActiveSite, at: float) -> bool:
    """Return whether a site has nothing to fetch for so long that it should be parked. A guest may be parked as soon as
    its gate is open.
    """
    if site.lease is None:
        return site.standing.gate.opens_at <= at
    return site.state is State.SHUT or site.pages.wake_at > at + _PATIENCE_S


def _may_go(site: ActiveSite, at: float) -> bool:
    """Return whether a site should make room for a waiting site, because its gate stays shut for a long time or it has
    had many fetches.
    """
    if site.lease is None or site.state.is_preparing or site.is_under_way():
        return False
    return not is_busy(site, at + BLOCKED_S) or site.pages.served >= _QUANTUM
