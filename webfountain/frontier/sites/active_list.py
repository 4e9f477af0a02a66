"""The active list: the sites that this process crawls now.

The parts of the list are the table of sites (`site_table`), addresses (`addresses`), fetches in flight (`flights`) and
departures of sites (`departures`). Ants that share a store claim addresses (`cluster.claims`) and lend each other slots
(`slot_lending`). The list does not use the store, the disk or the network: it writes work for the store into a batch.
The loop thread makes all calls, at a cost of O(log sites) per fetch.
"""

from __future__ import annotations

import itertools
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.core.topics import HOT
from webfountain.frontier.batch import remembered
from webfountain.frontier.cluster.ant_notes import GUEST
from webfountain.frontier.cluster.claims import AddressClaims
from webfountain.frontier.sites.addresses import Addresses
from webfountain.frontier.sites.departures import Departures
from webfountain.frontier.sites.flights import Flights
from webfountain.frontier.sites.site import ActiveSite, state_of
from webfountain.frontier.sites.site_table import BLOCKED_S, SiteTable, may_rest
from webfountain.frontier.sites.slot_lending import SlotLending
from webfountain.public_addresses import is_private_host
from webfountain.records import SiteState
from webfountain.store.answers import ParkRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.membership import Membership
    from webfountain.frontier.sites.site import SiteStatistics
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_files import FileRequest
    from webfountain.records import SiteLease, SiteRecord

__all__ = ["ActiveList", "ActiveListStatistics"]


class ActiveListStatistics(msgspec.Struct, frozen=True):
    """Counts of the active list."""

    sites: int
    preparing: int
    """Number of sites whose pages wait until an address or robots.txt is known."""
    in_flight: int
    quiet: int


class ActiveList:
    """The active list of one crawling process: at most `size` sites, and any number of guests.

    `lends` is True if ants may lend each other slots.
    """

    def __init__(
        self, context: SiteContext, *, size: int, others: Membership | None = None, lends: bool = False
    ) -> None:
        self._context = context
        self._others = others
        self._size = size
        self.sites = SiteTable()
        rules = context.collection.politeness
        self.addresses = Addresses(rules, shared=others is not None, by_worth=context.importance is not None)
        parts = (context, self.sites, self.addresses)
        self.lending = SlotLending(*parts, others) if lends and others is not None else None
        self.flights = Flights(*parts, self.lending)
        self.departures = Departures(*parts, flights=self.flights, lending=self.lending, shared=others is not None)
        self.claims = None if others is None else AddressClaims(*parts, departures=self.departures, others=others)
        """The claims on addresses and guests, or None if no other ant uses the store."""

    # ------------------------------------------------------------ who joins

    def room(self) -> int:
        """Return how many more sites the list may take."""
        return max(self._size - len(self.sites) + len(self.sites.guests) + self.flights.kept_sites(), 0)

    def resolved(self, host: str, addresses: Sequence[str], error: str, batch: Batch) -> None:
        """Give the sites of a host one of its addresses, a public one if possible. If there is no address, `error` says
        why.
        """
        if len(addresses) > 1 and not self._context.collection.network.allow_private:
            addresses = [address for address in addresses if not is_private_host(address)] or addresses
        for place, group in self.addresses.resolved(host, addresses):
            site = self.sites.by_name[place.name]
            self._follow(site, site.unreachable(error, batch) if group is None else site.resolved(group, batch), batch)

    def _activate(self, lease: SiteLease, batch: Batch) -> None:
        """Add an activated site. If the site is already in the list as a guest, turn it into an ordinary site."""
        if self._others is not None and not self._others.term.hold_until(lease.until, at=batch.at):
            return  # The answer took longer than the lease lasts. The lease expires, and another ant can take the site.
        site = self.sites.by_name.get(lease.site)
        if site is not None and site.is_borrowed:
            if site.is_under_way():  # A site cannot be active under two leases.
                batch.park(ParkRequest(lease, batch.at + BLOCKED_S, remembered(lease.record)))
                return
            self.departures.lose(lease.site, batch)
            site = None
        if site is not None:
            if lease.site in self.sites.guests and self._others is not None:
                batch.freed[GUEST + lease.site] = batch.at
            self.sites.adopted(lease.site)
            self._follow(site, site.adopt(lease, batch), batch)
        else:
            state = state_of(lease, self._context.collection.politeness, batch.at)
            if lease.lost_by is not None:
                batch.remember(lease, state)
            self._enter(ActiveSite(lease.site, state, self._context, lease=lease), batch)
        self._context.metrics.inc("ant/sites_activated")

    def _welcome(self, name: str, record: SiteRecord | None, batch: Batch) -> None:
        """Add a guest, whose state has arrived from the store, and request the files that other sites need from it."""
        requests = self.sites.file_requests.take_host(name)
        if not requests:
            return
        if name not in self.sites.by_name:
            if record is not None and record.owner is not None:
                self.sites.file_requests.route([request._replace(error="busy") for request in requests], batch)
                return
            state = SiteState() if record is None else remembered(record)
            self._enter(ActiveSite(name, state, self._context, lease=None), batch)
        for request in requests:
            self.sites.file_requests.ask(request, batch)

    def _enter(self, site: ActiveSite, batch: Batch) -> None:
        self.sites.enter(site)
        group = self.addresses.enter(site.place)
        if group is not None:
            self._follow(site, site.resolved(group, batch), batch)

    def _follow(self, site: ActiveSite, requests: Sequence[FileRequest], batch: Batch) -> None:
        """After an event, request the files that a site needs from other sites, and update its entry in the table."""
        if requests:
            self.sites.file_requests.route(requests, batch)
        self.sites.note(site, batch.at)

    # ------------------------------------------------------ results of the store

    def take_in(self, result: BatchResult, batch: Batch) -> None:
        """Apply the result of a batch: drop lost sites, add new sites, and give each site its leases and other
        results.
        """
        if result.blocks is not None and self._context.blocked.adopt(result.blocks):
            self.judge_again(batch)
        for name in result.lost:
            self.departures.lose(name, batch)
        for name, token in sorted(result.voided):
            self.departures.lose_lease(name, token, batch)
        sites = self.sites.by_name
        for (name, token), many in result.settled.items():
            # A site that was lost and has returned does not count fetches that were sent under the previous lease.
            site = sites.get(name)
            if site is not None and site.lease is not None and site.lease.token == token:
                site.pages.settled(many)
                self.sites.note(site, batch.at)
        self.renew(result.renewed)
        self._take_shared(result, batch)
        self._take_leases(result, batch)
        # Sorted by name, because the order of a set must not decide the order of turns.
        for name in sorted(result.hurried & sites.keys()):
            sites[name].pages.recall(batch)
            self.sites.note(sites[name], batch.at)
        best: dict[str, float] = dict.fromkeys(result.hot, HOT)
        for link in itertools.chain(result.batch.offers, batch.offers):
            best[link.site] = max(link.importance, best.get(link.site, -inf))
        self.outrank(best, batch)
        if result.new_pages:
            self.sites.refresh(result.new_pages, batch.at)
        for read in result.sitemaps:
            if (site := sites.get(read.site)) is not None:
                self._follow(site, site.files.sitemap_read(read, batch), batch)

    def _take_shared(self, result: BatchResult, batch: Batch) -> None:
        """Process the letters from other ants, the activated sites, the answers to claims, and the states of guests."""
        if self.lending is not None:
            for letter in result.returned:
                self.lending.returned(letter, batch)
        for lease in result.activated:
            self._activate(lease, batch)
        if self.claims is not None:
            for claim in result.claims:
                self.claims.answered(claim, batch)
        for name, record in result.guests:
            self._welcome(name, record, batch)

    def _take_leases(self, result: BatchResult, batch: Batch) -> None:
        """Give each site its new leases. If a site has left the list, release its leases."""
        for name, leases in result.immediate.items():
            if (site := self.sites.by_name.get(name)) is None:
                batch.release(lease.id for lease in leases)
            else:
                site.add_immediate(leases, batch)
                self.sites.note(site, batch.at)
        for dealt in result.dealt:
            if (site := self.sites.by_name.get(dealt.site)) is None:
                batch.release(lease.id for lease in dealt.never_crawled + dealt.recrawl)
            else:
                site.pages.dealt(dealt, batch)
                self.sites.note(site, batch.at)

    def outrank(self, best: Mapping[str, float], batch: Batch) -> None:
        """Give back the leases of pages that are less important than the best new page of their site. `best` contains,
        for each site, the importance of its best new page.
        """
        for name, importance in sorted(best.items()):
            if (site := self.sites.by_name.get(name)) is not None and site.pages.outrank(importance, batch):
                self.sites.note(site, batch.at)

    def renew(self, leases: Sequence[SiteLease]) -> None:
        """Extend the leases of sites. A lease that is older than the site's current lease is ignored."""
        for lease in leases:
            if (site := self.sites.by_name.get(lease.site)) is not None:
                site.renew(lease)

    def leases(self) -> list[SiteLease]:
        """Return the leases of all sites except borrowed ones."""
        return [site.lease for site in self.sites if site.lease is not None and not site.is_borrowed]

    # ------------------------------------------------------------------- chores

    def judge_again(self, batch: Batch) -> None:
        """After an edit of the policy file or the blocks, give back all leases: each page must be judged again."""
        for site in self.sites:
            site.pages.judge_again(batch)
            self.sites.note(site, batch.at)

    def renew_robots(self, batch: Batch) -> None:
        """Fetch expired robots.txt files again."""
        if self._context.obey_robots:
            for site in [site for site in self.sites if site.must_renew_robots(batch.at)]:
                self._follow(site, site.renew_robots(batch), batch)

    def is_starved(self) -> bool:
        """Return whether every site could have taken more due pages at its last request for leases, if the store had
        had more.
        """
        return all(site.hand.is_short for site in self.sites.by_name.values())

    def has_before(self, until: float) -> bool:
        """Return whether a request to any site may be sent before the time `until`."""
        return bool(self.sites.file_requests.by_host) or any(_has_before(site, until) for site in self.sites)

    def statistics(self) -> ActiveListStatistics:
        return ActiveListStatistics(
            sites=len(self.sites) - len(self.sites.guests),
            preparing=sum(site.state.is_preparing for site in self.sites),
            in_flight=len(self.flights),
            quiet=len(self.sites.quiet),
        )

    def site_statistics(self, most: int) -> dict[str, SiteStatistics]:
        """Return statistics of the `most` sites that have been active longest, by name."""
        return {site.name: site.statistics() for site in islice(self.sites, most)}


def _has_before(site: ActiveSite, until: float) -> bool:
    """Return whether a request to a site may be sent before the time `until`."""
    waits = site.pages.is_ordered or site.standing.gate.in_flight > 0
    return not may_rest(site) or waits or site.hand.times()[0] <= until
