"""Count the pages in memory whose urgency reaches the price of a fetch.

The active sites and some recently parked sites are in memory. When the price falls, pages of a parked site in memory
can be made due without reading the site from the store.
"""

from __future__ import annotations

from heapq import nlargest
from itertools import chain
from math import ceil, inf
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.frontier.planning.urgency_terms import LESSONS, NEARLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webfountain.frontier.planning.reckoning import Reckoner
    from webfountain.frontier.planning.urgency_terms import UrgencyPace
    from webfountain.frontier.planning.urgent_site import UrgentSite
    from webfountain.records import SiteLease

__all__ = ["PageSupply", "SitesInMemory"]

SAMPLE: Final = 500
"""Number of active sites in a sample, from which the number of due and urgent pages of all active sites is estimated.
"""
RECALLED: Final = 2.0
"""If fewer pages are due than can be fetched in this many intervals between price checks, urgent pages in memory are
made due.
"""
RESTED: Final = 200_000
"""Largest number of pages of parked sites in memory."""


class PageSupply:
    """Counts the pages in memory whose urgency reaches the price."""

    def __init__(self, sites: SitesInMemory, reckoner: Reckoner, pace: UrgencyPace) -> None:
        self._sites = sites
        self._reckoner = reckoner
        self._pace = pace
        self._demand, self._demand_at, self._sampled = 0, 0.0, 0
        self._best, self._best_at = (inf, 0.0), 0.0
        self._called_at = 0.0

    def count_again(self) -> None:
        """Forget the results of `demand` and `best`, so that the next call computes them again."""
        self._demand_at = self._best_at = 0.0

    def demand(self, price: float, at: float) -> int:
        """Return how many pages are due, or urgent enough to be made due.

        If there are many active sites, only the pages of `SAMPLE` sites are counted, as a sample.
        """
        if at < self._demand_at:
            return self._demand
        self._demand_at = at + NEARLY * self._pace.check_s
        active, names = self._sites.active, list(self._sites.active)
        begin = self._sampled % max(len(names), 1)
        sample = [active[name] for name in (names[begin:] + names[:begin])[:SAMPLE]]
        self._sampled = begin + len(sample)
        self._reckoner.reckon([site for site in sample if not site.ranking.is_known], price, at)
        found = sum(site.demand(price, at) for site in sample)
        called = sum(len(site.ranking.waits) for site in self._sites.rested.values())
        self._demand = round(found * len(names) / max(len(sample), 1)) + called
        return self._demand

    def best(self, pages: int, at: float) -> tuple[float, float]:
        """Return two urgencies, in seconds: an upper bound for pages that are not due, and the `pages`-th highest
        urgency on sites without due pages.
        """
        if at >= self._best_at:
            self._best_at = at + NEARLY * self._pace.check_s
            rankings = [site.ranking for _, site in self._sites.items()]
            rankings = [each for each in rankings if each.is_known and each.most > 0.0]
            first = nlargest(pages, [each for each in rankings if not each.waits], key=attrgetter("most"))
            worth = np.concatenate([np.zeros(0), *(each.worth for each in first)])
            level = float(np.partition(worth, -pages)[-pages]) if 0 < pages <= len(worth) else 0.0
            self._best = max((each.most for each in rankings), default=inf), level
        return self._best

    def call(self, price: float, *, at: float) -> dict[str, list[bytes]]:
        """If few pages are due, make urgent pages in memory due, as far as the budget allows. Return the keys of the
        pages that were made due, by site.
        """
        if at < self._called_at:
            return {}
        self._called_at = at + NEARLY * self._pace.check_s
        waiting = sum(site.waiting for _, site in self._sites.items())
        room = round(self._pace.fetches(RECALLED)) + 1 - waiting
        if room <= 0:
            return {}
        least = 0.0 if self._pace.rest_s else price  # if no site rests, each is computed often enough
        known = [
            (name, site)
            for name, site in self._sites.items()
            if site.ranking.most >= least and site.ranking.may_be_worth(price, at)
        ]
        known.sort(key=lambda each: -each[1].ranking.most)
        sure = [each for each in known if each[1].ranking.most >= price]
        due = _make_due(sure, price, room, at)
        room -= sum(map(len, due.values()))
        if room > 0:
            perhaps = known[len(sure) : len(sure) + ceil(LESSONS * room)]
            self._reckoner.reckon([site for _, site in perhaps], price, at)
            due |= _make_due(perhaps, price, room, at)
        return due


class SitesInMemory:
    """The sites in memory, by name."""

    def __init__(self) -> None:
        self.active: dict[str, UrgentSite] = {}
        self.leases: dict[str, SiteLease] = {}
        self.rested: dict[str, UrgentSite] = {}
        """Parked sites, in the order in which they were parked."""
        self._rested_pages = 0

    def items(self) -> Iterator[tuple[str, UrgentSite]]:
        """Return all sites by name, active sites first."""
        return chain(self.active.items(), self.rested.items())

    def put(self, lease: SiteLease, site: UrgentSite) -> None:
        self.active[lease.site], self.leases[lease.site] = site, lease

    def wake(self, name: str) -> UrgentSite | None:
        """Return a site that becomes active, or None if the site is not in memory."""
        found = self.rested.pop(name, None)
        if found is not None:
            self._rested_pages -= len(found)
        return found or self.active.get(name)

    def rest(self, name: str) -> None:
        """Record that a site was parked. If the parked sites in memory have more than `RESTED` pages together, drop
        those that were parked first.
        """
        site = self.active.pop(name)
        self.leases.pop(name, None)
        site.rest()
        self.wake(name)
        self.rested[name] = site
        self._rested_pages += len(site)
        while self._rested_pages > RESTED:
            self.wake(next(iter(self.rested)))


def _make_due(sites: Iterable[tuple[str, UrgentSite]], price: float, room: int, at: float) -> dict[str, list[bytes]]:
    due: dict[str, list[bytes]] = {}
    for name, site in sites:
        if room <= 0:
            break
        pages, urgency = site.urgent(price, at)
        if len(pages):
            due[name] = site.make_due(pages[np.argsort(-urgency, kind="stable")[:room]], at)
            room -= len(due[name])
    return due
