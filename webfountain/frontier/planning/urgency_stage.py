"""Urgency in the store worker: pages of active sites become due when they are worth the price of a fetch.

Place in the walk: a stage of the store worker; `urgent_pages` decides which pages. What the stage learns about a site
is saved with the site.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.stage import Stage
from webfountain.store.contract import FORECAST
from webfountain.store.lanes import ADVANCED
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.planning.urgent_pages import UrgentPages
    from webfountain.frontier.visit import Visit
    from webfountain.frontier.worker.settlement import LearnedSites
    from webfountain.policy.collection import Collection
    from webfountain.records import Outcome, PageRecord, SiteLease
    from webfountain.store.answers import LeaseBatch, Statistics
    from webfountain.store.contract import FrontierStore

__all__ = ["UrgencyStage"]


class UrgencyStage(Stage):
    """Makes pages due by their urgency.

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
        """Make pages due that are worth the price. Leased pages are not moved, so leases were released before this."""
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
        """Add to a site's leases the time at which to ask the site again."""
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
        """Return the pages of a site that are fetched to find changes: no duplicates, which have their own due time."""
        found = self._store.pages.records(site=site, state="crawled")
        return self._weighed(record for _, record in found if record.duplicate_of is None)

    def _advance(self, site: str, keys: Sequence[bytes], due: float, result: BatchResult) -> int:
        """Make pages due. Return how many of the given pages are no longer known."""
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
