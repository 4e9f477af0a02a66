"""The ant: the active list of one crawling process, what its sites need next, and who leaves.

Where the sites stand and who is polite to ask now is kept by `addresses`; each site holds its own hand (`site`). The
ant never touches store, disk or network: it hands out fetches, hears how they landed, and writes orders that the
clerk (`work`) carries out. All of it is cheap enough for the loop thread: O(log sites) a fetch.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain.frontier.sites.addresses import Addresses
from webfountain.frontier.sites.site import LARGEST_HAND, ActiveSite
from webfountain.records import Fetch
from webfountain.store.contract import Parked, Refill

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.sites.site import Group
    from webfountain.metrics import Metrics
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import Fetched, FetchKind, Lease, LeaseId, SiteLease

__all__ = ["Ant", "Left"]

_PATIENCE_S: Final = 1.0
"""A dry site whose next page comes due within this time stays active; parking it would cost more."""
_BLOCKED_S: Final = 10.0
"""A site that may not be asked for longer than this gives its place in a full active list to another."""
_HAIR_S: Final = 1e-3
"""A site is looked at this much after a page comes due: `at - interval` may round to before the page's last crawl."""


class Left(NamedTuple):
    """A site that left: what the store must remember, and its unused leases."""

    parked: Parked
    unused: list[LeaseId]


class Ant:
    """The active list of one crawling process."""

    def __init__(
        self,
        *,
        politeness: PolitenessTable,
        schedule: Callable[[], Schedule],
        now: Callable[[], float],
        rng: random.Random,
        metrics: Metrics,
        active_sites: int,
        hand: int,
        largest_hand: int = LARGEST_HAND,
        quantum: int = 1000,
    ) -> None:
        self._politeness = politeness
        self._schedule = schedule
        self._now = now
        self.rng = rng
        self._metrics = metrics
        self._hand = hand
        self._largest_hand = largest_hand
        self._quantum = quantum
        self.active_sites = active_sites
        self.sites: dict[str, ActiveSite] = {}
        self._addresses = Addresses(politeness, rng=rng, metrics=metrics)
        self._hungry: dict[str, ActiveSite] = {}
        self._quiet: dict[str, ActiveSite] = {}
        self._blocked: dict[str, ActiveSite] = {}
        self._timers: list[tuple[float, str]] = []
        self._in_flight: dict[int, tuple[ActiveSite, Group]] = {}
        self._numbers = 0
        self.kept: dict[LeaseId, str] = {}
        """Leases that are not settled for a while, by token, and their sites (`Frontier.keep`)."""

    # ------------------------------------------------------------ hot path

    def next(self, at: float) -> Fetch | None:
        """The next fetch that politeness allows; None when there is none at `at`."""
        fetch = self._addresses.ring.next(at)
        if fetch is None:
            return None
        site = self.sites[fetch.site]
        site.expected += 1
        site.served += 1
        assert site.group is not None
        self._in_flight[fetch.id] = (site, site.group)
        if fetch.address != site.group.address:  # the site has moved since
            fetch = msgspec.structs.replace(fetch, address=site.group.address, fallbacks=site.fallbacks)
        if site.hungry():
            self._hungry[site.site] = site
        return fetch

    def wake_at(self) -> float:
        """When `next` may have something without any landing or work; inf: never."""
        return min(self._addresses.ring.wake_at(), self._timers[0][0] if self._timers else inf)

    @property
    def in_flight(self) -> int:
        """Fetches handed out that have not landed."""
        return len(self._in_flight)

    def landed(self, fetched: Fetched) -> ActiveSite:
        """A fetch ended, however: its site's and address's gates open again when politeness says.

        Returns the site. Call exactly once per fetch that `next` gave.
        """
        site, group = self._in_flight.pop(fetched.fetch.id)
        if self._addresses.landed(site, group, fetched):
            self._blocked[site.site] = site
        return site

    def detour(self, fetch: Fetch, address: str, at: float) -> float:
        """Seconds that a fetch under way must wait before it may ask another address; see `Addresses.detour`."""
        site, group = self._in_flight[fetch.id]
        wait = self._addresses.detour(site, group, address, at)
        if wait <= 0.0:
            assert site.group is not None
            self._in_flight[fetch.id] = (site, site.group)
        return wait

    def unasked(self, fetch: Fetch, at: float) -> None:
        """A fetch that `next` gave was not requested: the gates it passed are open as before."""
        self._addresses.unasked(*self._in_flight.pop(fetch.id), at)

    def _weights(self) -> Sequence[float]:
        return self._schedule().weights(self._now())

    # ---------------------------------------------------------- active list

    def room(self) -> int:
        """How many more sites the active list takes."""
        return max(self.active_sites + len(set(self.kept.values())) - len(self.sites), 0)

    def admit(self, leases: Iterable[SiteLease]) -> list[ActiveSite]:
        """Make sites active that the store gave; each still needs its address (`unresolved`)."""
        admitted = []
        for lease in leases:
            site = ActiveSite(
                lease,
                concurrency=self._politeness.concurrency,
                weights=self._weights,
                rng=self.rng,
                hand=self._hand,
            )
            self.sites[site.site] = site
            self._metrics.inc("ant/sites_activated")
            admitted.append(site)
            self._addresses.enter(site)
            self.look(site)
        return admitted

    def unresolved(self) -> list[str]:
        """Hosts whose address is needed; each is told once until `resolved` answers."""
        return self._addresses.unresolved()

    def resolved(self, host: str, addresses: Sequence[str]) -> list[ActiveSite]:
        """The addresses of a host, best first; none: it cannot be reached. Returns the sites that waited for it."""
        sites = self._addresses.resolved(host, addresses)
        for site in sites:
            self.look(site)
        return sites

    def leave(self, site: ActiveSite, due: float) -> Left:
        """Take an idle or blocked site off the active list."""
        for fetch in site.errands.flush():
            site.sitemaps.pop(fetch.url, None)  # sent for, not read
        unused = _leases(site.immediate.flush() + site.held) + self.empty_hand(site)
        del self.sites[site.site]
        self._metrics.inc("ant/sites_parked")
        self._hungry.pop(site.site, None)
        self._quiet.pop(site.site, None)
        self._addresses.leave(site)
        opens = site.gate.open_at()
        return Left(Parked(site.lease, max(due, opens), site.remember(opens)), unused)

    def sweep(self, at: float) -> None:
        """Forget addresses that no site needs any more."""
        self._addresses.sweep(at)

    # ------------------------------------------------------------- the hand

    def fetch_of(self, site: ActiveSite, lease: Lease) -> Fetch:
        """The request for a leased page, conditional when our copy has validators."""
        record = lease.record
        has_copy = record.state == "crawled" and record.digest is not None
        return self.errand(
            site,
            "page",
            record.url,
            lease=lease,
            etag=record.etag if has_copy else None,
            last_modified=record.last_modified if has_copy else None,
        )

    def errand(self, site: ActiveSite, kind: FetchKind, url: str, **more: Any) -> Fetch:
        """A numbered fetch for a site."""
        self._numbers += 1
        address = None if site.group is None else site.group.address
        return Fetch(self._numbers, kind, url, site.site, address, fallbacks=site.fallbacks, **more)

    def look(self, site: ActiveSite) -> None:
        """Note what a site needs after anything about it changed, and when it is available again."""
        if site.hungry():
            self._hungry[site.site] = site
        if site.dry and site.idle():
            self._quiet[site.site] = site
        self._addresses.wake(site)

    def hurry(self, site: ActiveSite) -> None:
        """An immediate URL arrived: until it is asked the site goes before all others that politeness allows."""
        self._addresses.wake(site)

    def remind(self, site: ActiveSite, at: float) -> None:
        """Look at a dry site again at a time."""
        heapq.heappush(self._timers, (at, site.site))
        if len(self._timers) > 1000 + 4 * len(self.sites):
            # Sites that left would be remembered here until their pages are due, in months.
            held = self.sites.get
            self._timers = [each for each in self._timers if (of := held(each[1])) and of.recrawl_at == each[0]]
            heapq.heapify(self._timers)

    def ripen(self, at: float) -> None:
        """Make dry sites hungry again whose next recrawl has come."""
        while self._timers and self._timers[0][0] <= at:
            site = self.sites.get(heapq.heappop(self._timers)[1])
            if site is not None and site.recrawl_at <= at:
                site.dry = False
                self.look(site)

    def freshen(self, names: Iterable[str]) -> None:
        """These sites got new URLs; in whatever order they are named, so that a set's order decides no turn."""
        for name in sorted(name for name in names if name in self.sites):
            site = self.sites[name]
            site.dry = False
            self.look(site)

    def orders(self, at: float) -> list[Refill]:
        """What the hungry sites want; each is ordered for once until it is dealt."""
        orders = []
        horizon = self._schedule().horizon
        for site in self._hungry.values():
            if site.hungry():
                site.ordered = True
                site.recrawl_at = inf  # learned anew: from the deal, and from what is settled meanwhile
                orders.append(
                    Refill(
                        site.lease,
                        never_crawled=site.hand - site.never.backlog(),
                        recrawl=site.hand - site.recrawl.backlog(),
                        horizon=horizon(site.site, at),
                    )
                )
        self._hungry.clear()
        return orders

    def deal(self, site: ActiveSite, never: list[Fetch], recrawl: list[Fetch], *, full: bool) -> None:
        """Put leased pages into a site's hand. `full`: the store gave some, so it may have more."""
        room = site.hand
        site.ordered = False
        if full:
            # A hand that is used up whole grows, so that a fast site needs few orders and a slow one holds few leases.
            site.hand = min(2 * site.hand, self._largest_hand)
        site.never.load(never)
        site.recrawl.load(recrawl)
        site.short = site.recrawl.backlog() < room
        site.dry = not full
        self.look(site)

    def due_again(self, site: ActiveSite, due: float) -> None:
        """A page of the site comes due then."""
        due += _HAIR_S
        if due < site.recrawl_at:
            site.recrawl_at = due
            self.remind(site, due)

    def recall(self, site: ActiveSite) -> list[LeaseId]:
        """Some pages of a site go before all others: those in its hand are given back, which are returned."""
        held = _leases(site.recrawl.flush())
        site.dry = False
        self.look(site)
        return held

    def empty_hand(self, site: ActiveSite) -> list[LeaseId]:
        """Take the leased pages out of a site's hand; their leases, to be given back."""
        return _leases(site.never.flush() + site.recrawl.flush())

    def starved(self) -> bool:
        """Whether the store has no due page that the hands have room for."""
        return all(site.short for site in self.sites.values())

    def soon(self, until: float) -> bool:
        """Whether any active site has something that may be asked before `until`."""
        return any(
            site.ordered or site.robots_pending or site.resolving or not site.dry or site.sequencer.wake_at() <= until
            for site in self.sites.values()
        )

    # ------------------------------------------------------------ who leaves

    def leavers(self, at: float, *, others_wait: bool) -> list[tuple[ActiveSite, float]]:
        """Sites to park and when each should come back: the quiet, and when others wait the blocked and well served."""
        leaving = [(site, site.recrawl_at) for site in self._quiet.values() if self._is_done(site, at)]
        self._quiet = {name: site for name, site in self._quiet.items() if site.dry and site.idle()}
        if self._blocked:
            leaving += self._refusing(at, {id(site) for site, _ in leaving})
        if others_wait and not self.room():
            others = {id(site) for site, _ in leaving}
            leaving += [(site, at) for site in self.sites.values() if self._may_go(site, at) and id(site) not in others]
        return leaving

    def _refusing(self, at: float, gone: set[int]) -> list[tuple[ActiveSite, float]]:
        """Sites that asked to be left alone for long: parked, so that the store keeps that through a kill."""
        self._blocked = {
            name: site
            for name, site in self._blocked.items()
            if self.sites.get(name) is site and site.gate.open_at() > at + _BLOCKED_S and id(site) not in gone
        }
        return [(site, at) for site in self._blocked.values() if self._may_go(site, at)]

    def _is_done(self, site: ActiveSite, at: float) -> bool:
        """Nothing to do here for long enough that parking pays, or nothing that may be done."""
        return site.dry and site.idle() and (site.shut or site.recrawl_at > at + _PATIENCE_S)

    def _may_go(self, site: ActiveSite, at: float) -> bool:
        """Whether a busy site gives its place to one that waits."""
        bound = site.expected or site.ordered or site.robots_pending or site.resolving
        return not bound and (site.gate.open_at() > at + _BLOCKED_S or site.served >= self._quantum)


def _leases(fetches: Iterable[Fetch]) -> list[LeaseId]:
    """The leases of pages."""
    return [fetch.lease.id for fetch in fetches if fetch.lease is not None]
