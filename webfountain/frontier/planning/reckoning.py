"""Compute the urgencies of the pages of many sites at once.

Because most sites are small, the pages of several sites form one array (`core.site_urgency`), which saves time. Before
each computation, the results of the last fetches update the sites' change rates and the collection's forecast.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.forecast import Belief
from webfountain.core.site_urgency import Sites
from webfountain.frontier.planning.site_ranking import RUNGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from webfountain.core.site_answers import Approach
    from webfountain.frontier.planning.collection_forecast import CollectionForecast
    from webfountain.frontier.planning.urgency_terms import UrgencyPace
    from webfountain.frontier.planning.urgent_site import UrgentSite

    Array = npt.NDArray[np.float64]

__all__ = ["Reckoner", "SitesTogether"]

PAGES_TOGETHER: Final = 6000
"""Approximate number of pages whose urgencies are computed together, so that the arrays fit into the processor's
cache.
"""


class SitesTogether:
    """Several sites whose urgencies are computed together. All pages are numbered in one sequence, site after site."""

    def __init__(self, sites: list[UrgentSite], at: float) -> None:
        self.sites = sites
        self.step_s = sites[0].terms.step_s
        self.at = at
        steps = np.array([site.ranking.steps.step(at) for site in sites], dtype=np.int64)
        self.urgencies = Sites([site.urgencies for site in sites], step=steps)

    def learn(self) -> list[float]:
        """Update the change rates of the sites from their fetches. For each page that had changed, return how long it
        had probably been obsolete, in seconds.
        """
        begins = self.urgencies.offset.tolist()
        found = [
            (begin + page, step, changed)
            for begin, site in zip(begins, self.sites, strict=False)
            for page, (step, changed) in site.observed.items()
        ]
        pages, steps, changed = (np.array(each) for each in zip(*found, strict=True))
        showed = self.urgencies.observe(pages, changed, steps)
        self.urgencies.keep()
        for site in self.sites:
            site.learned(self.at)
        lasted: list[float] = (showed.lasted * self.step_s).tolist()
        return lasted

    def reckon(self, price: float, *, rest_s: float) -> None:
        """Compute the ranking of each site. Allow the next computation of a ranking only after `rest_s` seconds."""
        approach = self.urgencies.approach()
        worth = approach.urgency * self.step_s
        approach = self._weigh_dates(worth, approach)
        wanted = np.isfinite(np.concatenate([site.ranking.candidate_since for site in self.sites]))
        begins = self.urgencies.offset.tolist()
        worth[~wanted] = 0.0
        wanted &= worth < price
        waits = [begin + page for begin, site in zip(begins, self.sites, strict=False) for page in site.ranking.waits]
        wanted[waits] = False
        ahead = self.urgencies.steps_until(approach, wanted, np.array(RUNGS) * price / self.step_s)
        begun = np.array([site.ranking.steps.begin_of(site.ranking.steps.step(self.at)) for site in self.sites])
        reaches = (begun + np.maximum(np.ceil(ahead), 1.0) * self.step_s).T.tolist()
        for i, site in enumerate(self.sites):
            own = worth[begins[i] : begins[i + 1]].copy()
            site.ranking.replace(own, self.at, price, reaches[i], rests_until=self.at + rest_s)

    def _weigh_dates(self, worth: Array, approach: Approach) -> Approach:
        """Adjust the urgencies `worth`, in place, by the dates in sitemaps and feeds. Return `approach`, the growth of
        the urgencies with time, after the same adjustment.
        """
        dated = [number for number, site in enumerate(self.sites) if site.ranking.dates]
        if not dated:
            return approach
        still, chance = self.urgencies.unchanged()
        factor = np.ones_like(worth)
        for number in dated:
            own = slice(self.urgencies.offset[number], self.urgencies.offset[number + 1])
            factor[own] = self.sites[number].ranking.dates.weigh(worth[own], still[own] * self.step_s, chance[own])
        return approach.times(factor)

    def believed(self) -> list[Belief]:
        candidates = np.isfinite(np.concatenate([site.ranking.candidate_since for site in self.sites]))
        pages = np.bincount(self.urgencies.site[candidates], minlength=len(self.sites))
        rows = zip(pages.tolist(), *(each.tolist() for each in self.urgencies.reckon(candidates)), strict=True)
        return [
            Belief(self.at, count, obsolete, so_far * self.step_s, growing / self.step_s)
            for count, obsolete, so_far, growing in rows
        ]


class Reckoner:
    """Keeps the rankings of sites and the collection's forecast up to date."""

    def __init__(self, pace: UrgencyPace, forecast: CollectionForecast) -> None:
        self._pace = pace
        self._forecast = forecast

    def reckon(self, sites: Iterable[UrgentSite], price: float, at: float) -> None:
        """Compute the rankings of the sites that may have a page whose urgency reaches the price."""
        pause = self._pace.pause_s
        stale = [site for site in sites if site.is_stale(price, at, pause)]
        for group in _groups([site for site in stale if site.observed], at):
            self._learn(group)
            group.reckon(price, rest_s=self._pace.rest_s)
        for group in _groups([site for site in stale if not site.is_reckoned(at)], at):
            group.reckon(price, rest_s=self._pace.rest_s)

    def learn(self, site: UrgentSite, at: float) -> None:
        if site.observed:
            self._learn(SitesTogether([site], at))

    def _learn(self, group: SitesTogether) -> None:
        fetches = sum(len(site.observed) for site in group.sites)
        lasted_s = group.learn()
        new = [(site.believe(believed), believed) for site, believed in zip(group.sites, group.believed(), strict=True)]
        self._forecast.add(group.at, lasted_s, new, fetches=fetches)


def _groups(sites: list[UrgentSite], at: float) -> Iterator[SitesTogether]:
    """Divide the sites into groups whose urgencies are computed together. A group has about `PAGES_TOGETHER` pages, and
    its sites have the same rounded interval between visits.
    """
    by_interval: dict[float, list[UrgentSite]] = {}
    pages: Counter[float] = Counter()
    for site in sites:
        interval = site.terms.interval
        by_interval.setdefault(interval, []).append(site)
        pages[interval] += len(site)
        if pages[interval] >= PAGES_TOGETHER:
            del pages[interval]
            yield SitesTogether(by_interval.pop(interval), at)
    for group in by_interval.values():
        yield SitesTogether(group, at)
