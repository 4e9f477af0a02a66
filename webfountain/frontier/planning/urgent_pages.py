"""What makes known pages due by their urgency: the active sites, each of which decides with its own pages at hand.

Place in the walk (DESIGN 4): settled visits -> `urgent_site` of their site; a site that is active is asked which of
its pages are worth the price of a fetch (`core.price`, which the loop adjusts) -> lane ADVANCED of its recrawl queue.
A site that has none waits, or is parked, until one is. Nothing is sorted over all sites; memory is for the active ones
alone, and what a site has learned is kept with it meanwhile. The worker thread owns it; the loop is handed what it
needs with a batch's result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webfountain.core.signals import Signals
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD, bounds_of
from webfountain.frontier.planning.urgent_site import Terms, UrgentSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy.files import Collection
    from webfountain.records import PageRecord, SiteLease

__all__ = ["UrgentPages", "urgent_pages_of"]

FEWEST_CHOICES: Final = 2
"""Choices between two visits to a page, at least: with a budget that is larger there is no choice to make."""
EARLY: Final = 0.8
"""A site comes back when a page reaches this share of the price, once: the price may have fallen meanwhile."""
RELEASE: Final = 64
"""Pages of a site, at most, that go before what waits in one batch."""
KEEP: Final = 0.002
"""Share of a site's pages whose visits may not have been kept with it yet: with up to 500 pages each visit is."""
SAMPLE: Final = 32
"""Sites that are asked how many of their pages are worth the price, at each check."""
WAKES: Final = 0.1
LEAST_WAKES: Final = 1000.0
"""Times that sites are asked although no page of theirs should be worth the price, for each fetch, and in a period at
least: the price may have fallen."""
_DAY_S: Final = 86_400.0


def urgent_pages_of(collection: Collection, *, recrawl: bool) -> UrgentPages | None:
    """What ranks the pages of a collection; None where nothing is to be ranked: no budget, another strategy."""
    cycle, signals = collection.cycle, collection.signals
    if not recrawl or cycle.capacity_pages_per_period is None or cycle.strategy != "fountain":
        return None
    return UrgentPages(
        signals=Signals(
            siblings=signals.siblings,
            sections=signals.sections,
            history=signals.history,
            forgetting=signals.forgetting,
            weekdays=signals.weekdays,
        ),
        period=cycle.period_s,
        capacity=float(cycle.capacity_pages_per_period),
        shortest=bounds_of(collection).shortest,
        weighed=signals.importance,
    )


class UrgentPages:
    """The active sites of this process; others are passed over."""

    def __init__(
        self, *, signals: Signals, period: float, capacity: float, shortest: float = 0.0, weighed: bool = False
    ) -> None:
        """`capacity` is fetches per `period` (s); no page is due within `shortest` seconds of its last fetch.

        `weighed`: urgency counts a page's importance, or where it has none its depth.
        """
        day = _DAY_S / period
        signals = replace(signals, day=day, weekdays=signals.weekdays and day >= 1.0)
        self._terms = Terms(signals, period, 0.0, shortest, weighed)
        self._capacity = capacity
        self._demand, self._demand_at = 0, 0.0
        self._sleep_s = 0.0  # a site is asked again after so long at most
        self._sites: dict[str, UrgentSite] = {}
        self._leases: dict[str, SiteLease] = {}

    def __contains__(self, site: str) -> bool:
        return site in self._sites

    @property
    def ranks(self) -> bool:
        """Whether there is a choice to make, as things stand: else pages go by their buckets' intervals."""
        return self._terms.interval >= FEWEST_CHOICES * self._terms.period / CHECKS_PER_PERIOD

    @property
    def interval(self) -> float:
        """Time between two visits to a page that the budget allows in the mean, s."""
        return self._terms.interval

    def demand(self, price: float, at: float) -> int:
        """Pages of the active sites that are worth the price now; of many sites, as some of them in turn have it."""
        if at >= self._demand_at:
            self._demand_at = at + self._terms.period / CHECKS_PER_PERIOD
            asked = list(self._sites.values())[:SAMPLE]
            found = sum(site.demand(at, price) for site in asked)
            self._demand = round(found * len(self._sites) / max(len(asked), 1))
        return self._demand

    def divide(self, pages: int, sites: int) -> None:
        """The store holds so many crawled pages of so many sites: the budget is for all of them."""
        period = self._terms.period
        self._terms = self._terms._replace(interval=max(pages, 1) / self._capacity * period)
        self._sleep_s = period * max(1 / CHECKS_PER_PERIOD, sites / max(WAKES * self._capacity, LEAST_WAKES))

    def wants(self, lease: SiteLease) -> bool:
        """Whether a site should be taken in: it is not, or its steps no longer fit the interval between visits."""
        if not self.ranks:
            return False
        if lease.site in self._sites:
            self._leases[lease.site] = lease
            return not self._sites[lease.site].fits(self._terms)
        return True

    def admit(
        self, lease: SiteLease, learned: bytes, records: Callable[[], Iterable[PageRecord]], *, at: float
    ) -> None:
        """A site is active: go on from what was learned of it, or begin with its pages as the store holds them."""
        found = UrgentSite.decode(learned, self._terms) if learned else None
        self._sites[lease.site] = UrgentSite.begun(records(), self._terms, at=at) if found is None else found
        self._leases[lease.site] = lease

    def leave(self, site: str, at: float) -> bytes | None:
        """A site is not active any more: what is to be kept of it, None where nothing is new."""
        found = self._sites.pop(site, None)
        self._leases.pop(site, None)
        return found.encode(at) if found is not None and found.news else None

    def observe(self, visits: Sequence[Visit], *, at: float) -> list[tuple[SiteLease, bytes]]:
        """Pages were fetched; what is to be kept with their sites when they are settled.

        Of a large site that is now and then, for it costs what its pages cost; a crash then forgets few visits.
        """
        for visit in visits:
            site = self._sites.get(visit.fetch.site)
            if site is not None:
                site.observe(visit)
        learned = []
        for name in dict.fromkeys(visit.fetch.site for visit in visits):
            site = self._sites.get(name)
            if site is not None and site.news >= KEEP * len(site):
                learned.append((self._leases[name], site.encode(at)))
        return learned

    def refuse(self, site: str, key: bytes) -> None:
        """A page may not be fetched."""
        if site in self._sites:
            self._sites[site].drop(key)

    def due(self, site: str, price: float, *, most: int, at: float) -> list[bytes]:
        """Pages of an active site that are worth the price, at most `most`, the most urgent first."""
        return self._sites[site].due(at, price, most=most)

    def outranking(self, site: str, price: float, *, at: float) -> list[bytes]:
        """Pages of an active site that should go before those of it that wait, for a release has come to light."""
        return self._sites[site].outranking(at, price, most=RELEASE)

    def next_at(self, site: str, price: float, at: float) -> float:
        """When a site should be asked again: when a page is nearly worth the price, or if that is past, when one is.

        But not too late to hear that the price has fallen.
        """
        early = self._sites[site].next_at(at, EARLY * price)
        return min(early if early > at else self._sites[site].next_at(at, price), at + self._sleep_s)
