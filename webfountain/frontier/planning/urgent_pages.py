"""What makes known pages due by their urgency: the active sites, each of which decides with its own pages at hand.

Place in the walk (DESIGN 4): settled visits -> the `UrgentSite` of their site; a site that is active is asked which of
its pages are worth the price of a fetch (`core.price`, which the loop adjusts) -> lane ADVANCED of its recrawl queue.
A site that has none waits, or is parked, until one is. Nothing is sorted over all sites; memory is for the active ones
alone, and what a site has learned is kept with it meanwhile, in the form in which it is reckoned with. Times are UTC
seconds, urgencies and prices seconds of obsolete time. The worker thread owns it; the loop is handed what it needs with
a batch's result.

What it costs: the sites of a batch are reckoned together (`core.site_urgency`), for most sites are small; a site only
when it is asked and a page of it may be worth the price by now. Each reckoning says before what time that is not so,
for a few prices (`RUNGS`), so that asking in between, for the price may have fallen, costs a look at these. Time is
counted in steps (a thirty-sixth of the time between two visits; each site has its own phase, so that not all come at
once). What is found is learned when the site is asked next and nothing of it waits; while something does now and then,
sooner when a change was found (`PAUSE`), for then others may outrank what waits. Where so many sites are asked that it
counts, each rests from one reckoning to the next (`LESSONS`), and sites are asked at the same moments (`TOGETHER`).
Of a very large site one window of its pages is in memory at a time (`urgent_site.Windows`), which `turn` changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from heapq import nlargest
from itertools import chain
from math import ceil, inf
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import numpy as np

from webfountain.core.activity import Signals
from webfountain.core.forecast import Believed, BelievedTotal, CycleForecast, Outlook, Published, published
from webfountain.core.site_urgency import Sites
from webfountain.frontier.planning.plan import bounds_of
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.frontier.planning.urgent_site import RUNGS, UrgencyTerms, UrgentSite, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy.files import Collection
    from webfountain.records import Outcome, PageRecord, Settled, SiteLease

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["PAUSE", "Shelf", "UrgentPages", "urgent_pages_of"]

FEWEST_CHOICES: Final = 2
"""Choices between two visits to a page, at least: with a budget that is larger there is no choice to make."""
PAUSE: Final = 0.25
"""Share of a step, or a check if that is longer, for which changes of a site are not learned from anew while pages of
it wait: they come one by one, and each lesson costs what all its pages cost."""
PAGES_TOGETHER: Final = 6000
"""Pages whose sites are reckoned at once."""
RELEASE: Final = 64
"""Pages of a site, at most, that go before what waits in one batch."""
OUTRANKS: Final = 2.0
"""A page that is so many times as urgent as one that waits goes before it."""
KEEP: Final = 0.002
"""Share of a site's pages whose visits may not have been kept with it yet: with up to 500 pages each visit is."""
SAMPLE: Final = 500
"""Sites whose pages that are worth the price are counted, at each check: with fewer, chance moved the price."""
WAKES: Final = 0.5
LEAST_WAKES: Final = 6000.0
"""Times that sites are asked although no page of theirs should be worth the price, for each fetch, and in a period at
least: the price may have fallen."""
LESSONS: Final = 0.25
REST: Final = 2.0
"""Times that sites are reckoned for each fetch: else a site rests from one to the next, so many steps at most."""
AT_LEAST: Final = 50.0
"""Times in a second, whatever the budget: so many cost a two-hundredth of a core, and few sites need not rest."""
TOGETHER: Final = 40
"""Sites that are asked at the same moment, if that delays none by more than a check: more gain little."""
RESTED: Final = 200_000
"""Pages, in all, of sites that left and are kept in memory all the same: many come back within their step, or sooner
than they were to, for the price has fallen."""
RECALLED: Final = 2.0
"""Checks' worth of fetches below which pages of sites that rest are called."""
NEARLY: Final = 0.9
"""Checks after which the batch that comes with the next check is not too soon."""
READY_S: Final = 1.0
"""What a site that is called takes until its pages are fetched, at most: where a check is shorter, none rests."""
COVERED: Final = 0.5
"""Share of the crawled pages that must have been reckoned before anything is said of all."""
_DAY_S: Final = 86_400.0


def urgent_pages_of(collection: Collection, *, recrawl: bool, shelf: Shelf | None = None) -> UrgentPages | None:
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
        periods=cycle.periods,
        shortest=bounds_of(collection).shortest,
        rests={name: float(table.revisit.min_interval) for name, table in collection.policies.items()},
        weighed=signals.importance,
        shelf=shelf,
    )


class Shelf(Protocol):
    """Where the windows of very large sites are kept: what this module needs of `store.contract.FrontierStore`."""

    def part(self, site: str, number: int) -> bytes | None:
        """See `SiteList.part`."""
        ...

    def settle(
        self, outcomes: Sequence[Outcome], *, at: float, parts: Sequence[tuple[SiteLease, int, bytes]] = ()
    ) -> Settled:
        """See `UrlQueues.settle`."""
        ...


class _Together:
    """Active sites of like terms at one time: their pages are numbered one site after the other."""

    def __init__(self, sites: Mapping[str, UrgentSite], at: float) -> None:
        self.sites = list(sites.values())
        self.names = list(sites)
        self.step_s = self.sites[0].terms.step_s
        self.at = at
        steps = np.array([site.step(at) for site in self.sites], dtype=np.int64)
        self.urgencies = Sites([site.urgencies for site in self.sites], step=steps)

    def learn(self) -> list[float]:
        """Take in what was observed; seconds for which each page that was found changed is believed to have been so."""
        begins = self.urgencies.offset.tolist()
        found = [
            (begin + page, step, changed)
            for begin, site in zip(begins, self.sites, strict=False)
            for page, (step, changed) in site.observed.items()
        ]
        pages, steps, changed = (np.array(each) for each in zip(*found, strict=True))
        told = self.urgencies.observe(pages, changed, steps)
        self.urgencies.keep()
        for site in self.sites:
            site.learned(self.at)
        lasted: list[float] = (told.lasted * self.step_s).tolist()
        return lasted

    def reckon(self, price: float, *, rest_s: float) -> None:
        """How urgent each page of each site is now, and before when no other is worth the price or some less.

        Only with a new step are pages more urgent. The sites rest for `rest_s` from now on.
        """
        approach = self.urgencies.approach()
        worth = approach.urgency * self.step_s
        wanted = np.isfinite(np.concatenate([site.candidate_since for site in self.sites]))
        begins = self.urgencies.offset.tolist()
        worth[~wanted] = 0.0
        wanted &= worth < price
        wanted[[begin + page for begin, site in zip(begins, self.sites, strict=False) for page in site.waits]] = False
        ahead = self.urgencies.steps_until(approach, wanted, np.array(RUNGS) * price / self.step_s)
        begun = np.array([site.begin_of(site.step(self.at)) for site in self.sites])
        reaches = (begun + np.maximum(np.ceil(ahead), 1.0) * self.step_s).T.tolist()
        for i, site in enumerate(self.sites):
            site.reckoned(
                worth[begins[i] : begins[i + 1]].copy(), self.at, price, reaches[i], rests_until=self.at + rest_s
            )

    def believed(self) -> list[Believed]:
        """What is believed of each site."""
        candidates = np.isfinite(np.concatenate([site.candidate_since for site in self.sites]))
        pages = np.bincount(self.urgencies.site[candidates], minlength=len(self.sites))
        rows = zip(pages.tolist(), *(each.tolist() for each in self.urgencies.reckon(candidates)), strict=True)
        return [
            Believed(self.at, count, obsolete, so_far * self.step_s, growing / self.step_s)
            for count, obsolete, so_far, growing in rows
        ]


def _groups(sites: Mapping[str, UrgentSite], at: float) -> Iterator[_Together]:
    """Sites of like terms, as they stand now; not so many at once that numpy's arrays leave the processor's cache."""
    by_interval: dict[float, dict[str, UrgentSite]] = {}
    pages: Counter[float] = Counter()
    for name, site in sites.items():
        interval = site.terms.interval
        by_interval.setdefault(interval, {})[name] = site
        pages[interval] += len(site)
        if pages[interval] >= PAGES_TOGETHER:
            del pages[interval]
            yield _Together(by_interval.pop(interval), at)
    for group in by_interval.values():
        yield _Together(group, at)


class _Rested:
    """Sites that left lately, the last the newest."""

    def __init__(self) -> None:
        self._sites: dict[str, UrgentSite] = {}
        self._pages = 0

    def items(self) -> ItemsView[str, UrgentSite]:
        """Each by its name."""
        return self._sites.items()

    def put(self, name: str, site: UrgentSite) -> None:
        """A site left; the oldest are forgotten."""
        self.take(name)
        site.rest()
        self._sites[name] = site
        self._pages += len(site)
        while self._pages > RESTED:
            self.take(next(iter(self._sites)))

    def take(self, name: str) -> UrgentSite | None:
        """A site comes back; None where it is not known here."""
        found = self._sites.pop(name, None)
        if found is not None:
            self._pages -= len(found)
        return found


class UrgentPages:
    """The active sites of this process; others are passed over."""

    def __init__(
        self,
        *,
        signals: Signals,
        period: float,
        capacity: float,
        periods: int = 14,
        shortest: float = 0.0,
        weighed: bool = False,
        rests: Mapping[str, float] | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """`capacity` is fetches per `period` (s); no page is due within `shortest` seconds of its last fetch, nor one
        of a policy within what `rests` says.

        `periods` make a cycle, of which the mean obsolete share is foretold. `weighed`: urgency counts a page's
        importance, or where it has none its depth. Without a `shelf` a site is in memory as a whole, whatever its size.
        """
        self._shelf = shelf
        self._parts: list[tuple[SiteLease, int, bytes]] = []
        day = _DAY_S / period
        signals = replace(signals, day=day, weekdays=signals.weekdays and day >= 1.0)
        self._terms = UrgencyTerms(signals, period, 0.0, shortest, weighed, rests or {})
        self._capacity = capacity
        self._demand, self._demand_at, self._sampled = 0, 0.0, 0
        self._sleep_s = 0.0  # a site is asked again after so long at most
        self._rest_s = 0.0  # and reckoned again after so long at least
        self._round_s = self.check_s  # sites are asked at multiples of this
        self._sites: dict[str, UrgentSite] = {}
        self._rested = _Rested()
        self._recalled_at = 0.0
        self._free, self._free_at = (inf, 0.0), 0.0  # what `free` answered last
        self._leases: dict[str, SiteLease] = {}
        self._cycle_s = periods * period
        self._forecast: CycleForecast | None = None
        self._standing: BelievedTotal | None = None

    def __contains__(self, site: str) -> bool:
        return site in self._sites

    @property
    def ranks(self) -> bool:
        """Whether there is a choice to make, as things stand: else pages go by their buckets' intervals."""
        return self._terms.interval >= FEWEST_CHOICES * self._terms.period / CHECKS_PER_PERIOD

    @property
    def check_s(self) -> float:
        """How often the price is held to the budget, and the forecast to what was found, s."""
        return self._terms.period / CHECKS_PER_PERIOD

    @property
    def interval(self) -> float:
        """Time between two visits to a page that the budget allows in the mean, s."""
        return self._terms.interval

    def demand(self, price: float, at: float) -> int:
        """Pages of the active sites that are worth the price, as each was reckoned last, and those that were called.

        Of many sites some in turn.
        """
        if at >= self._demand_at:
            self._demand_at = at + NEARLY * self.check_s
            names = list(self._sites)
            begin = self._sampled % max(len(names), 1)
            asked = (names[begin:] + names[:begin])[:SAMPLE]
            self._sampled = begin + len(asked)
            self._reckon([name for name in asked if not self._sites[name].is_known()], price, at)
            found = sum(self._sites[name].demand(price, at) for name in asked)
            called = sum(len(site.waits) for _, site in self._rested.items())
            self._demand = round(found * len(names) / max(len(asked), 1)) + called
        return self._demand

    def free(self, pages: int, at: float) -> tuple[float, float]:
        """What no page that does not wait is worth, s, and what so many of them are worth: of the sites in memory.

        The second of sites of which nothing waits, which could give them at once; 0 where there are not so many.
        """
        if at >= self._free_at:
            self._free_at = at + NEARLY * self.check_s
            sites = [
                site
                for site in map(itemgetter(1), chain(self._sites.items(), self._rested.items()))
                if site.is_known() and site.most > 0.0
            ]
            first = nlargest(pages, [site for site in sites if not site.waits], key=attrgetter("most"))
            worth = np.concatenate([np.zeros(0), *(site.worth for site in first)])
            level = float(np.partition(worth, -pages)[-pages]) if 0 < pages <= len(worth) else 0.0
            self._free = max((site.most for site in sites), default=inf), level
        return self._free

    def divide(self, pages: int, sites: int, *, coming: int = 0) -> None:
        """The store holds so many crawled pages of so many sites: the budget is for all of them.

        And for those that are still to be fetched first, `coming`, as far as a period has fetches for them: the steps
        of a site are not cut anew again and again while a young collection fills.
        """
        period = self._terms.period
        pages += min(coming, int(self._capacity))
        self._terms = self._terms._replace(interval=max(pages, 1) / self._capacity * period)
        rate = self._capacity / period
        self._sleep_s = max(self.check_s, sites / max(WAKES * rate, LEAST_WAKES / period))
        self._rest_s = 0.0
        if self.check_s >= READY_S:
            self._rest_s = min(sites / max(LESSONS * rate, AT_LEAST), REST * self._terms.step_s)
        self._round_s = min(self.check_s, TOGETHER / max(LESSONS * rate, AT_LEAST))

    def wants(self, lease: SiteLease) -> bool:
        """Whether a site should be taken in: it is not, or its steps no longer fit the interval between visits."""
        if not self.ranks:
            return False
        if lease.site in self._sites:
            self._leases[lease.site] = lease
            return not self._sites[lease.site].follow(self._terms)
        return True

    def admit(
        self, lease: SiteLease, learned: bytes, records: Callable[[], Iterable[PageRecord]], *, at: float
    ) -> None:
        """A site is active: go on from what was learned of it, or begin with its pages as the store holds them."""
        held = self._rested.take(lease.site) or self._sites.get(lease.site)
        found = held
        self._leases[lease.site] = lease
        if held is None or not learned or held.kept != learned or not held.follow(self._terms):
            windows = None if self._shelf is None else Windows.decode(learned)
            if windows is not None or (held is not None and held.windows is not None):
                found = self._admitted(lease, held, windows, records(), at)
            else:
                found, believed = UrgentSite.decode(lease.site, learned, self._terms) if learned else (None, None)
                if found is None:
                    found = self._begun(lease, records(), at, believed=believed)
                # What was kept may be older than what the forecast has.
                if held is not None and held.believed is not None:
                    found.believe(held.believed)
        assert found is not None
        self._sites[lease.site] = found

    def _begun(
        self, lease: SiteLease, records: Iterable[PageRecord], at: float, *, believed: Believed | None = None
    ) -> UrgentSite:
        put = None if self._shelf is None else partial(self._put, lease, at=at)
        return UrgentSite.begun(lease.site, records, self._terms.rounded(), at=at, believed=believed, put=put)

    def _admitted(
        self,
        lease: SiteLease,
        held: UrgentSite | None,
        windows: Windows | None,
        records: Iterable[PageRecord],
        at: float,
    ) -> UrgentSite:
        """A site that has windows, or had when it was `held`: from these, or anew where they cannot be read.

        What the forecast has of it gives way to what is believed of it now.
        """
        found = None
        if windows is not None:
            found = UrgentSite.resume(lease.site, windows, self._terms, partial(self._part, lease.site))
        if found is not None and held is None:
            return found
        before = held.beliefs() if held is not None else [] if windows is None else windows.beliefs()
        if found is None:
            found = self._begun(lease, records, at)
            left = set([] if windows is None else windows.numbers)
            left |= set([] if held is None or held.windows is None else held.windows.numbers)
            for number in left - set([] if found.windows is None else found.windows.numbers):
                self._put(lease, number, b"", at=at)
        _, standing = self._forecasting(at)
        for believed in before:
            standing.replace(believed, Believed(at, 0, 0.0, 0.0, 0.0))
        for believed in found.beliefs():
            standing.replace(None, believed)
        return found

    def _put(self, lease: SiteLease, number: int, part: bytes, *, at: float) -> None:
        if self._shelf is not None:
            self._shelf.settle([], at=at, parts=[(lease, number, part)])

    def _part(self, site: str, number: int) -> bytes | None:
        return None if self._shelf is None else self._shelf.part(site, number)

    def parts(self) -> list[tuple[SiteLease, int, bytes]]:
        """Windows of sites that are to be kept in one step with what was said last to be kept with the sites."""
        parts, self._parts = self._parts, []
        return parts

    def _keep(self, name: str) -> bytes:
        learned, parts = self._sites[name].keep()
        self._parts += [(self._leases[name], number, part) for number, part in parts]
        return learned

    def turn(
        self, names: Iterable[str], price: float, records: Callable[[str], Iterable[PageRecord]], *, at: float
    ) -> list[tuple[SiteLease, bytes]]:
        """Where it is time, another window of a very large site comes to hand; what is to be kept with these sites."""
        kept = []
        for name in [] if self._shelf is None else names:
            site, lease = self._sites[name], self._leases[name]
            if not site.may_turn(price, at, self._pause_s):
                continue
            if site.observed:  # others go on with what it learned
                for group in _groups({name: site}, at):
                    self._remember(group, group.learn())
            turned, learned, parts = site.turn(self._terms, partial(self._part, name), at)
            if turned is None:
                turned = self._admitted(lease, None, site.windows, records(name), at)
                learned, parts = turned.keep()
            self._parts += [(lease, number, part) for number, part in parts]
            self._sites[name] = turned
            self._demand_at = self._free_at = 0.0  # they were of the other's pages
            kept.append((lease, learned))
        return kept

    def leave(self, site: str) -> bytes | None:
        """A site is not active any more: what is to be kept of it, None where nothing is new."""
        learned = self._keep(site) if site in self._sites and self._sites[site].news else None
        found = self._sites.pop(site, None)
        self._leases.pop(site, None)
        if found is None:
            return None
        self._rested.put(site, found)
        return learned

    def recalled(self, price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of sites in memory that nobody asks for now and that are worth the price, where few others are.

        It has fallen since they were asked; sites that are not in memory come back in time (`next_at`).
        """
        if at < self._recalled_at:
            return {}
        self._recalled_at = at + NEARLY * self.check_s
        waiting = sum(site.waiting for _, site in chain(self._sites.items(), self._rested.items()))
        room = round(RECALLED * self._capacity / CHECKS_PER_PERIOD) + 1 - waiting
        if room <= 0:
            return {}
        least = 0.0 if self._rest_s else price  # where no site rests each is asked often enough
        known = [
            (name, site)
            for name, site in chain(self._sites.items(), self._rested.items())
            if site.most >= least and site.may_be_worth(price, at)
        ]
        known.sort(key=lambda each: -each[1].most)
        sure = [each for each in known if each[1].most >= price]
        due = self._called(sure, price, room, at)
        room -= sum(map(len, due.values()))
        if room > 0:
            perhaps = known[len(sure) : len(sure) + ceil(LESSONS * room)]
            self._reckon_those(dict(perhaps), price, at)
            due |= self._called(perhaps, price, room, at)
        return due

    def _called(
        self, sites: Iterable[tuple[str, UrgentSite]], price: float, room: int, at: float
    ) -> dict[str, list[bytes]]:
        due: dict[str, list[bytes]] = {}
        for name, site in sites:
            if room <= 0:
                break
            pages, urgency = site.urgent(price, at)
            if len(pages):
                due[name] = site.send(pages[np.argsort(-urgency, kind="stable")[:room]], at)
                room -= len(due[name])
        return due

    def observe(self, visits: Sequence[Visit], *, at: float) -> list[tuple[SiteLease, bytes]]:
        """Pages were fetched; what is to be kept with their sites when they are settled.

        Of a large site that is now and then, for it costs what its pages cost; a crash then forgets few visits.
        """
        visited: dict[str, UrgentSite] = {}
        for visit in visits:
            site = self._sites.get(visit.fetch.site)
            if site is not None:
                site.observe(visit)
                visited[visit.fetch.site] = site
        for site in visited.values():
            if site.met:
                site.take_in()
        return [
            (self._leases[name], self._keep(name)) for name, site in visited.items() if site.news >= KEEP * len(site)
        ]

    def _reckon(self, names: Iterable[str], price: float, at: float) -> None:
        """Of these sites those are reckoned of which a page may be worth the price; what was observed is learned."""
        self._reckon_those({name: self._sites[name] for name in names}, price, at)

    def _reckon_those(self, sites: Mapping[str, UrgentSite], price: float, at: float) -> None:
        pause = self._pause_s
        stale = {name: site for name, site in sites.items() if site.is_stale(price, at, pause)}
        if not stale:
            return
        for group in _groups({name: site for name, site in stale.items() if site.observed}, at):
            self._remember(group, group.learn())
            group.reckon(price, rest_s=self._rest_s)
        for group in _groups({name: site for name, site in stale.items() if not site.is_reckoned(at)}, at):
            group.reckon(price, rest_s=self._rest_s)

    @property
    def _pause_s(self) -> float:
        return max(self.check_s, PAUSE * self._terms.step_s)

    def _remember(self, group: _Together, lasted_s: Sequence[float]) -> None:
        """What is believed of sites now goes into the forecast, in place of what was, and what their visits found."""
        forecast, standing = self._forecasting(group.at)
        forecast.visit(group.at, lasted_s)
        for site, new in zip(group.sites, group.believed(), strict=True):
            standing.replace(site.believe(new), new)

    def _forecasting(self, at: float) -> tuple[CycleForecast, BelievedTotal]:
        if self._forecast is None or self._standing is None:
            self._forecast, self._standing = CycleForecast.begun(self._cycle_s, at=at), BelievedTotal(at)
        return self._forecast, self._standing

    def look(self, at: float, *, crawled: int, never_crawled: int) -> None:
        """Bring the forecast up to date: so many pages are known with and without a copy. Call it often in a period."""
        forecast, standing = self._forecasting(at)
        if standing.pages > COVERED * crawled:
            all_of = crawled / standing.pages
            forecast.look(
                at,
                obsolete=all_of * standing.obsolete(at),
                so_far=all_of * standing.so_far(at),
                missing=float(never_crawled),
                known=float(crawled + never_crawled),
            )

    def outlook(self) -> Outlook | None:
        """The obsolete share of the collection as last looked at; None while too little is known."""
        return None if self._forecast is None else self._forecast.now()

    def encode_forecast(self) -> bytes | None:
        """To be published and to go on from (`resume`); None before there is any."""
        if self._forecast is None or self._standing is None:
            return None
        return msgspec.msgpack.encode(Published(self._forecast, self._standing))

    def resume(self, data: bytes | None) -> None:
        """Go on with the forecast that `encode_forecast` wrote; another version's, or another cycle's, is left."""
        kept = published(data)
        if kept is not None and kept.forecast.cycle_s == self._cycle_s:
            self._forecast, self._standing = kept.forecast, kept.standing

    def refuse(self, site: str, key: bytes) -> None:
        """A page may not be fetched."""
        if site in self._sites:
            self._sites[site].drop(key)

    def prepare(self, names: Iterable[str], changed: Iterable[str], price: float, *, at: float) -> None:
        """All that this batch will ask of sites at once, for a reckoning costs little more of many than of one.

        Pages of `names` may become due; on those of `changed` something was found.
        """
        pause = self._pause_s
        pressing = [name for name in changed if self._sites[name].should_learn(at, pause)]
        self._reckon(dict.fromkeys([*names, *pressing]), price, at)

    def due(self, rooms: Mapping[str, int], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of active sites that are worth the price, of each at most what it has room for, most urgent first."""
        self._reckon(rooms, price, at)
        due: dict[str, list[bytes]] = {}
        for name, room in rooms.items():
            site = self._sites[name]
            site.give_up(at)
            if not room or price > site.most:
                continue
            pages, urgency = site.urgent(price, at)
            if len(pages):
                due[name] = site.send(pages[np.argsort(-urgency, kind="stable")[:room]], at)
        return due

    def outranking(self, names: Sequence[str], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of active sites that should go before those that wait, for a release has come to light.

        Of each site the first is `OUTRANKS` times as urgent as the least urgent that waits, the second as the next, and
        so on. Where what came to light is not learned yet (`UrgentSite.should_learn`) there are none.
        """
        pause = self._pause_s
        self._reckon([name for name in names if self._sites[name].should_learn(at, pause)], price, at)
        due: dict[str, list[bytes]] = {}
        for name in names:
            site = self._sites[name]
            if not site.waits or not site.is_reckoned(at):
                continue
            pages, urgency = site.urgent(price, at)
            waiting = np.sort(site.worth_of_waiting())
            best = np.argsort(-urgency, kind="stable")[: min(RELEASE, len(waiting))]
            first = best[urgency[best] > OUTRANKS * waiting[: len(best)]]
            if len(first):
                due[name] = site.send(pages[first], at)
        return due

    def next_at(self, names: Sequence[str], price: float, at: float) -> dict[str, float]:
        """When sites should be asked again: a page may be worth the price, or it should be heard that it has fallen."""
        self._reckon(names, price, at)
        latest, found = at + self._sleep_s, dict[str, float]()
        for name in names:
            site = self._sites[name]
            due = min(latest, site.asks_at(price, at))
            found[name] = at if due <= at else ceil(due / self._round_s) * self._round_s
        return found
