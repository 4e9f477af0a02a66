"""Urgent pages of the active sites of this process.

Each active site is asked for the pages that are worth the price of a fetch. These pages enter lane ADVANCED of the
site's recrawl queue. A site without pages worth the price waits or is parked. The loop adjusts the price
(`core.fetch_price`). Urgencies and prices are in seconds, and times in UTC seconds. `UrgencyStage` is a stage of the
store worker.

If no page of a site waits, the site learns from its visits when the site is next asked. While pages wait, the site
learns from changes at intervals, because other pages may now be more urgent.
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
"""Largest number of a site's pages that one batch puts before its waiting pages."""
OUTRANKS: Final = 2.0
"""A page that is this many times as urgent as a waiting page comes before the waiting page."""
KEEP: Final = 0.002
"""Share of a site's pages that unsaved visits may reach before the site is saved. Sites with up to 500 pages are saved
at every visit."""


def urgent_pages_of(
    collection: Collection, *, recrawl: bool, windows: FrontierStore | None = None, signals: Signals | None = None
) -> UrgentPages | None:
    """Return the urgent pages of a collection, or None without a budget or under another strategy.

    The laboratory passes other `signals`, to measure what each signal gains.
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
    """The urgent pages of the active sites of this process; other sites are ignored."""

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
        """`capacity` is in fetches per `period` (s).

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
        """Return whether a site must be admitted, because the site is new here or its steps no longer fit."""
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
        """Admit an active site, from its saved data or from its pages in the store."""
        held = self.sites.wake(lease.site)
        self.sites.put(lease, self.kept.open(lease, learned, held, records, self.pace.terms, at=at))

    def leave(self, site: str) -> bytes | None:
        """Record that a site is no longer active. Return the data to save with the site, or None if nothing is new."""
        found = self.sites.active.get(site)
        if found is None:
            return None
        learned = self.kept.keep(self.sites.leases[site], found) if found.news else None
        self.sites.rest(site)
        return learned

    def turn(
        self, names: Iterable[str], price: float, records: Callable[[str], Iterable[PageRecord]], *, at: float
    ) -> list[tuple[SiteLease, bytes]]:
        """Load another window of very large sites whose turn has ended. Return the data to save with these sites."""
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
        """Receive the results of visits. Return the data to save with the sites when the visits are settled.

        Large sites are saved only at intervals (`KEEP`), so a crash may lose a few visits.
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
        """Receive the pages of a site that have a date in a sitemap or feed, and whether the date is later than our
        copy.

        Return the keys of pages with later dates that are not in memory, to make them due. No key is returned if the
        site's dates were not reliable, or if half of the dates are later. If pages are not chosen by urgency, all pages
        with later dates are returned.
        """
        if not self.pace.ranks:
            return [key for key, is_later in later.items() if is_later]
        if site not in self.sites.active:
            return distinguishing(later)
        return self.sites.active[site].receive_dates(later)

    def refuse(self, site: str, key: bytes) -> None:
        """Record that a page may not be fetched."""
        if site in self.sites.active:
            self.sites.active[site].drop(key)

    # ------------------------------------------------------------ choosing

    def reckon(self, names: Iterable[str], price: float, at: float) -> None:
        """Compute the rankings of active sites that may have a page worth the price."""
        self._reckoner.reckon([self.sites.active[name] for name in names], price, at)

    def prepare(self, names: Iterable[str], changed: Iterable[str], price: float, *, at: float) -> None:
        """Compute the rankings that this batch will need, all together.

        `names` names sites with pages that may become due. `changed` names sites with pages that were found changed.
        """
        self.reckon(dict.fromkeys([*names, *self._should_learn(changed, at)]), price, at)

    def _should_learn(self, names: Iterable[str], at: float) -> list[str]:
        return [name for name in names if self.sites.active[name].should_learn(at, self.pace.pause_s)]

    def due(self, rooms: Mapping[str, int], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Make pages of active sites due that are worth the price, at most `rooms` per site.

        Return the keys of these pages by site, most urgent first.
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
        """If changes show a release, make pages of active sites due that should come before waiting pages.

        In each site, the most urgent page must be more than `OUTRANKS` times as urgent as the least urgent waiting
        page. The second page is compared with the second least urgent waiting page, and so on.
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
        """Return when to ask sites again: when a page may be worth the price, or the price may have fallen."""
        self.reckon(names, price, at)
        latest, found = at + self.pace.sleep_s, dict[str, float]()
        for name in names:
            due = min(latest, self.sites.active[name].ask_at(price, at))
            found[name] = at if due <= at else ceil(due / self.pace.round_s) * self.pace.round_s
        return found


class UrgencyStage(Stage):
    """The stage that makes pages due by their urgency.

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
        """Save what was learned about sites that are no longer active."""
        left = [(parked.lease, self._urgent.leave(parked.lease.site)) for parked in batch.parked]
        self._keep([(lease, urgency) for lease, urgency in left if urgency is not None], batch.at)

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Make pages due that are worth the price. Leases must be released before, because leased pages are not
        moved.
        """
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
        """Add the time at which to ask the site again."""
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
        """Return the crawled pages of a site without duplicates, which have their own due time."""
        found = self._store.pages.records(site=site, state="crawled")
        return self._weighed(record for _, record in found if record.duplicate_of is None)

    def _advance(self, site: str, keys: Sequence[bytes], due: float, result: BatchResult) -> int:
        """Make pages due, and return how many of the pages are no longer known."""
        moved = self._store.queues.advance(site, keys, due=due, at=result.batch.at)
        result.counts["controller/made_due"] += moved
        # A page that was forgotten since the site became active needs no fetch.
        lost = [key for key in keys if self._store.pages.get(site, key) is None] if moved < len(keys) else []
        for key in lost:
            self._urgent.refuse(site, key)
        return len(lost)

    def _keep(self, urgencies: Sequence[tuple[SiteLease, bytes]], at: float) -> None:
        """Save the data of sites, and their changed windows, in one step."""
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
