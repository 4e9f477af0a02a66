"""Find the urgent pages of the active sites, and make them due.

A page is urgent if its urgency reaches the price of a fetch. An urgent page is moved to the front of its site's recrawl
queue (the lane ADVANCED). The loop thread adjusts the price (`core.fetch_price`). Urgencies and prices are in seconds,
and times in UTC seconds. `UrgencyStage` is a stage of the store worker.

Usually the results of fetches wait until their site is next searched for urgent pages. If a fetch finds a change, the
urgencies of its site are computed even while the site has due pages.
"""

from __future__ import annotations

from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.page_dates import distinguishing
from webfountain.core.signals import Signals
from webfountain.frontier.planning.collection_forecast import CollectionForecast
from webfountain.frontier.planning.kept_sites import KeptSites, is_turn
from webfountain.frontier.planning.page_supply import PageSupply, SitesInMemory
from webfountain.frontier.planning.plan import bounds_of
from webfountain.frontier.planning.reckoning import Reckoner
from webfountain.frontier.planning.urgency_terms import UrgencyPace, UrgencyTerms
from webfountain.frontier.stage import Stage
from webfountain.store.contract import FORECAST
from webfountain.store.lanes import ADVANCED
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.visit import Visit
    from webfountain.frontier.worker.settlement import LearnedSites
    from webfountain.policy.collection import Collection
    from webfountain.records import Outcome, PageRecord, SiteLease
    from webfountain.store.answers import LeaseBatch, Statistics
    from webfountain.store.contract import FrontierStore

__all__ = [
    "UrgencyStage",
    "UrgentPages",
    "urgent_pages_of",
]

RELEASE: Final = 64
"""Maximum number of pages, per site and batch, that overtake due pages of their site."""
OUTRANKS: Final = 2.0
"""A page overtakes a due page of its site if it is more than this many times as urgent."""
KEEP: Final = 0.002
"""A site is saved when the number of unsaved fetches reaches this share of its pages. Sites with up to 500 pages are
saved after every fetch.
"""


def urgent_pages_of(
    collection: Collection, *, recrawl: bool, windows: FrontierStore | None = None, signals: Signals | None = None
) -> UrgentPages | None:
    """Return an object that finds the urgent pages of a collection. Return None if the collection has no budget, or a
    strategy other than `fountain`.

    `webfountain.lab` passes other `signals` to measure the benefit of each signal.
    """
    cycle = collection.cycle
    if not recrawl or cycle.capacity_pages_per_period is None or cycle.strategy != "fountain":
        return None
    return UrgentPages(
        signals=signals or Signals(),
        period=cycle.period_s,
        capacity=float(cycle.capacity_pages_per_period),
        periods=cycle.periods,
        shortest=bounds_of(collection).shortest,
        rests=_rests_of(collection),
        weighed=collection.signals.importance,
        windows=windows,
    )


def _rests_of(collection: Collection) -> dict[str, float]:
    shortest = bounds_of(collection).shortest
    rests = ((name, table.revisit.min_interval - shortest) for name, table in collection.policies.items())
    return {name: rest for name, rest in rests if rest > 0.0}


class UrgentPages:
    """Finds the urgent pages of the sites that are active in this process."""

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
        windows: FrontierStore | None = None,
    ) -> None:
        """`capacity` is the number of fetches per period, and `period` the length of a period, in seconds.

        Parameters
        ----------
        periods : number of periods of a cycle, for the forecast
        shortest : shortest time between two fetches of a page, s
        rests : by policy, the shortest time between two fetches of its pages, minus `shortest`, s
        weighed : True if a page's importance counts, or the depth of a page without importance
        windows : stores windows of very large sites; with None, every site is in memory as a whole
        """
        self.pace = UrgencyPace(UrgencyTerms(signals, period, 0.0, shortest, weighed, rests or {}), capacity=capacity)
        self.sites = SitesInMemory()
        self.forecast = CollectionForecast(periods * period)
        self.kept = KeptSites(windows, self.forecast)
        self._has_windows = windows is not None
        self._reckoner = Reckoner(self.pace, self.forecast)
        self.supply = PageSupply(self.sites, self._reckoner, self.pace)

    def __contains__(self, site: str) -> bool:
        return site in self.sites.active

    def adopt(self, collection: Collection) -> None:
        self.pace.adopt(shortest=bounds_of(collection).shortest, rests=_rests_of(collection))

    # ------------------------------------------------------------ start and end of sites

    def wants(self, lease: SiteLease) -> bool:
        """Return whether a site must be loaded (`admit`): it is not in memory, or the interval between visits has
        changed much.
        """
        if not self.pace.ranks:
            return False
        site = self.sites.active.get(lease.site)
        if site is None:
            return True
        self.sites.leases[lease.site] = lease
        return not site.follow(self.pace.terms)

    def admit(
        self, lease: SiteLease, learned: bytes, records: Callable[[], Iterable[PageRecord]], *, at: float
    ) -> None:
        """Load an active site from its saved data, or from the records of its pages."""
        held = self.sites.wake(lease.site)
        self.sites.put(lease, self.kept.open(lease, learned, held, records, self.pace.terms, at=at))

    def leave(self, site: str) -> bytes | None:
        """Record that a site is no longer active. Return the data that the store must save with the site, or None if
        nothing is new.
        """
        found = self.sites.active.get(site)
        if found is None:
            return None
        learned = self.kept.keep(self.sites.leases[site], found) if found.news else None
        self.sites.rest(site)
        return learned

    def turn(
        self, names: Iterable[str], price: float, records: Callable[[str], Iterable[PageRecord]], *, at: float
    ) -> list[tuple[SiteLease, bytes]]:
        """Load the next window of each very large site whose current window has been in memory long enough. Return the
        data that the store must save with the changed sites.
        """
        kept = []
        for name in names if self._has_windows else ():
            site, lease = self.sites.active[name], self.sites.leases[name]
            if is_turn(site, price, at, self.pace.pause_s):
                self._reckoner.learn(site, at)  # other windows continue with what this one learned
                turned, learned = self.kept.turn(lease, site, partial(records, name), self.pace.terms, at=at)
                self.sites.put(lease, turned)
                self.supply.count_again()
                kept.append((lease, learned))
        return kept

    # ------------------------------------------------------------ visits

    def observe(self, visits: Sequence[Visit]) -> list[tuple[SiteLease, bytes]]:
        """Record the results of fetches, to update the urgencies of their sites. Return the data that the store must
        save when it settles the fetches.

        Large sites are saved only after several fetches (`KEEP`), so a crash may lose the newest changes of their
        urgencies.
        """
        active = self.sites.active
        visited = dict.fromkeys(visit.fetch.site for visit in visits if visit.fetch.site in active)
        for visit in visits:
            if visit.fetch.site in active:
                key = fingerprint(visit.record.url)
                active[visit.fetch.site].receive(key, visit.record, visit.kind, visit.fetched.at)
        for name in visited:
            active[name].number_new_pages()
        changed = [name for name in visited if active[name].news >= KEEP * len(active[name])]
        leases = self.sites.leases
        return [(leases[name], self.kept.keep(leases[name], active[name])) for name in changed]

    def receive_dates(self, site: str, later: Mapping[bytes, bool]) -> list[bytes]:
        """Adjust the urgencies of a site's pages by their dates in a sitemap or feed. `later` says for each page
        whether its date is later than the time of the stored copy.

        Return the keys of the pages that the caller must make due: pages outside memory with dates later than their
        copies. Return no key if earlier dates of the site were not reliable, or if half of the dates are later than the
        copies. If pages are not chosen by urgency, return the keys of all pages with dates later than their copies.
        """
        if not self.pace.ranks:
            return [key for key, is_later in later.items() if is_later]
        if site not in self.sites.active:
            return distinguishing(later)
        return self.sites.active[site].receive_dates(later)

    def refuse(self, site: str, key: bytes) -> None:
        """Record that a page must not be fetched, for example because it is gone."""
        if site in self.sites.active:
            self.sites.active[site].drop(key)

    # ------------------------------------------------------------ choosing

    def reckon(self, names: Iterable[str], price: float, at: float) -> None:
        """Compute the rankings of those active sites that may have an urgent page."""
        self._reckoner.reckon([self.sites.active[name] for name in names], price, at)

    def prepare(self, names: Iterable[str], changed: Iterable[str], price: float, *, at: float) -> None:
        """Compute all rankings that a batch needs, in one computation.

        `names` are the sites whose pages may become due. `changed` are the sites on which a fetch has found a change.
        """
        self.reckon(dict.fromkeys([*names, *self._should_learn(changed, at)]), price, at)

    def _should_learn(self, names: Iterable[str], at: float) -> list[str]:
        pause = self.pace.pause_s
        return [name for name in names if self.sites.active[name].should_learn(at, pause)]

    def due(self, rooms: Mapping[str, int], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Make urgent pages of active sites due. `rooms` maps each site to the maximum number of its pages.

        Return the keys of the pages that were made due, by site, most urgent first.
        """
        self.reckon(rooms, price, at)
        due: dict[str, list[bytes]] = {}
        for name, room in rooms.items():
            site = self.sites.active[name]
            site.give_up(at)
            if not room or price > site.ranking.most:
                continue
            pages, urgency = site.urgent(price, at)
            if len(pages):
                due[name] = site.make_due(pages[np.argsort(-urgency, kind="stable")[:room]], at)
        return due

    def outranking(self, names: Sequence[str], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Make pages due ahead of due pages of their site if changes have made them more than `OUTRANKS` times as
        urgent.
        """
        self.reckon(self._should_learn(names, at), price, at)
        due: dict[str, list[bytes]] = {}
        for name in names:
            site = self.sites.active[name]
            if not site.ranking.waits or not site.is_reckoned(at):
                continue
            pages, urgency = site.urgent(price, at)
            waiting = np.sort(site.ranking.worth_of_waiting())
            best = np.argsort(-urgency, kind="stable")[: min(RELEASE, len(waiting))]
            first = best[urgency[best] > OUTRANKS * waiting[: len(best)]]
            if len(first):
                due[name] = site.make_due(pages[first], at)
        return due

    def next_at(self, names: Sequence[str], price: float, at: float) -> dict[str, float]:
        """Return when each site must be searched for urgent pages again."""
        self.reckon(names, price, at)
        latest, found = at + self.pace.sleep_s, dict[str, float]()
        for name in names:
            due = min(latest, self.sites.active[name].ask_at(price, at))
            found[name] = at if due <= at else ceil(due / self.pace.round_s) * self.pace.round_s
        return found


class UrgencyStage(Stage):
    """The stage of the store worker that makes urgent pages due.

    Parameters
    ----------
    learned : saves what is learned about sites
    known : returns the last known counts of the store
    weighed : returns records with their current importance
    """

    def __init__(
        self,
        urgent: UrgentPages,
        store: FrontierStore,
        *,
        learned: LearnedSites,
        known: Callable[[], Statistics],
        weighed: Callable[[Iterable[PageRecord]], Iterable[PageRecord]],
    ) -> None:
        self._urgent = urgent
        self._store = store
        self._learned = learned
        self._known = known
        self._weighed = weighed
        self._next_at: dict[str, float] = {}  # when to ask each site of the batch again
        self._forecast_at = -inf
        urgent.forecast.resume(store.board.value(FORECAST))

    def lost(self, sites: Sequence[str]) -> None:
        for site in sites:
            self._urgent.leave(site)
            self._urgent.kept.take_windows()  # another ant has the sites now, with the same data

    def settling(self, visits: Sequence[Visit], outcomes: Sequence[Outcome], batch: Batch) -> None:
        for ended in batch.ended:
            if ended.visit is None:
                self._urgent.refuse(ended.lease.site, ended.lease.key)
        for lease, urgency in self._urgent.observe(visits):
            self._learned.set_urgency(lease, urgency)
        for outcome in outcomes:
            if outcome.record.duplicate_of is not None:
                self._urgent.refuse(outcome.lease.site, fingerprint(outcome.record.url))
        self._learned.add_parts(self._urgent.kept.take_windows())

    def adopt(self, collection: Collection) -> None:
        self._urgent.adopt(collection)

    def before_park(self, batch: Batch) -> None:
        """Save the urgencies of sites that are no longer active."""
        left = [(parked.lease, self._urgent.leave(parked.lease.site)) for parked in batch.parked]
        self._keep([(lease, urgency) for lease, urgency in left if urgency is not None], batch.at)

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Make urgent pages due after ended leases have been released, because leased pages cannot be made due."""
        urgent, price = self._urgent, batch.price
        if price is None:
            return
        known = self._known()
        coming = known.pages["never-crawled"]
        urgent.pace.divide(known.pages["crawled"], known.sites, coming=coming, budget=batch.budget)
        self._admit(batch)
        ended = {each.lease.site for each in batch.ended if each.outcome.kind == "changed"}
        changed = sorted(site for site in ended if site in urgent)
        room = {refill.lease.site: refill.recrawl for refill in batch.refills if refill.lease.site in urgent}
        urgent.prepare(room, changed, price, at=batch.at)
        for site, keys in urgent.outranking(changed, price, at=batch.at).items():
            self._advance(site, keys, batch.at - urgent.pace.terms.interval, result)
            result.hurried.add(site)
            result.new_pages.add(site)
        self._keep(urgent.turn(room, price, self._crawled, at=batch.at), batch.at)
        while room:
            due = urgent.due(room, price, at=batch.at)
            lost = {site: self._advance(site, keys, batch.at, result) for site, keys in due.items()}
            room = {site: many for site, many in lost.items() if many}
        result.ranks, result.waiting = urgent.pace.ranks, urgent.supply.demand(price, batch.at)
        result.top, result.level = urgent.supply.best(batch.missing, batch.at)
        for site, keys in urgent.supply.call(price, at=batch.at).items():
            self._advance(site, keys, batch.at, result)
            if site in urgent:
                result.new_pages.add(site)
        self._publish_forecast(known, batch.at)

    def before_lease(self, batch: Batch, result: BatchResult) -> None:
        self._next_at = {}
        if batch.price is not None:
            names = [refill.lease.site for refill in batch.refills if refill.lease.site in self._urgent]
            self._next_at = self._urgent.next_at(names, batch.price, batch.at)

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Return the leases of a site, with the time of the site's next search for urgent pages."""
        del at
        if dealt.site not in self._next_at:
            return dealt
        return msgspec.structs.replace(dealt, lanes=[*dealt.lanes, (ADVANCED, self._next_at[dealt.site])])

    def _admit(self, batch: Batch) -> None:
        for refill in batch.refills:
            lease = refill.lease
            if self._urgent.wants(lease):
                learned = self._learned.urgency_of(lease)
                self._urgent.admit(lease, learned, partial(self._crawled, lease.site), at=batch.at)

    def _crawled(self, site: str) -> Iterable[PageRecord]:
        """Return the crawled pages of a site. Duplicates are left out, because each duplicate has its own due time."""
        found = self._store.pages.records(site=site, state="crawled")
        return self._weighed(record for _, record in found if record.duplicate_of is None)

    def _advance(self, site: str, keys: Sequence[bytes], due: float, result: BatchResult) -> int:
        """Make pages due, and return how many of them the store no longer knows."""
        moved = self._store.queues.advance(site, keys, due=due, at=result.batch.at)
        result.counts["controller/made_due"] += moved
        # A page that was forgotten since the site became active needs no fetch.
        lost = [key for key in keys if self._store.pages.get(site, key) is None] if moved < len(keys) else []
        for key in lost:
            self._urgent.refuse(site, key)
        return len(lost)

    def _keep(self, urgencies: Sequence[tuple[SiteLease, bytes]], at: float) -> None:
        """Save the data of sites and their changed windows in one transaction of the store."""
        if not urgencies:
            return
        for lease, urgency in urgencies:
            self._learned.set_urgency(lease, urgency)
        self._learned.add_parts(self._urgent.kept.take_windows())
        learned, parts = self._learned.take_changes()
        self._store.queues.settle([], at=at, learned=learned, parts=parts)

    def _publish_forecast(self, known: Statistics, at: float) -> None:
        if at < self._forecast_at:
            return
        self._forecast_at = at + self._urgent.pace.check_s
        missing = known.pages["never-crawled"] + known.pages["failed"]
        self._urgent.forecast.update(at, crawled=known.pages["crawled"], never_crawled=missing)
        if (forecast := self._urgent.forecast.encode()) is not None:
            self._store.board.put_value(FORECAST, forecast)
