"""Settle the leases of a batch, in an order in which a crash loses nothing (DESIGN.md section 3).

Bodies are written first (`copies`), links are discovered next (`Discovery`), and leases are settled last. Data about
sites are saved together with the leases (`LearnedSites`). An unexpected error affects only the item that caused it
(`act_on`). If the store's server lost data, outdated results are dropped (`LossRecovery`).
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.core.topics import HOT
from webfountain.errors import WebfountainError
from webfountain.frontier.batch import LeaseEnd, NamedSitemap, SavedSiteData
from webfountain.frontier.planning.collection_forecast import count_failing
from webfountain.frontier.stage import Stage
from webfountain.frontier.visit import unkept
from webfountain.records import FetchResult, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.stage import Stages
    from webfountain.frontier.visit import Visit
    from webfountain.frontier.worker.copies import CopyWriter, Takedowns
    from webfountain.policy.collection import Collection
    from webfountain.records import Copy, Lease, Outcome, SiteLease, SiteState
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Lives

__all__ = ["Discovery", "LearnedSites", "LossRecovery", "Settlement", "act_on"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")
MAX_LINKS: Final = 5000
"""Maximum number of links in one call to the store; such a call takes some tens of milliseconds."""


def act_on(
    items: Sequence[_T],
    act: Callable[[Sequence[_T]], object],
    result: BatchResult,
    instead: Callable[[_T], object] = lambda _: None,
) -> None:
    """Process all items with one call of `act`. After an unexpected error, process each item alone, and call `instead`
    for each item that fails again.

    Errors of the store and the disk (`WebfountainError`) are raised.
    """
    try:
        act(items)
    except WebfountainError:
        raise
    except Exception as error:
        if len(items) > 1:
            for item in items:
                act_on([item], act, result, instead)
            return
        logger.error("An item could not be processed (%r): %s", error, _url_of(items[0]), extra={"event": "ant/broken"})
        result.counts["ant/broken"] += 1
        instead(items[0])


def _url_of(item: object) -> str:
    """Return the URL of an item, to be logged."""
    match item:
        case LeaseEnd(lease=lease):
            return lease.record.url
        case NamedSitemap(fetched=fetched) | (FetchResult() as fetched):
            return fetched.fetch.url
        case Link(url=url):
            return url
    return ""


class Discovery(Stage):
    """The stage that adds links, and the requests of a Scrapy project's spider, to the store."""

    def __init__(self, due: DuplicateEliminator) -> None:
        self._due = due
        self._counted: Counter[str] = Counter()

    def discover(self, links: Sequence[Link], result: BatchResult) -> list[Link]:
        """Add links to the store, and return those that are new."""
        new: list[Link] = []
        for first in range(0, len(links), MAX_LINKS):
            new += self._due.discover(links[first : first + MAX_LINKS], at=result.batch.at)
        result.new_pages.update(link.site for link in new)
        result.hot.update(link.site for link in new if link.scores and link.importance >= HOT)
        return new

    def under_policy(self, lease: Lease, outcome: Outcome) -> Outcome:
        """Return an outcome with its page's current policy, because a new link may have changed the policy during the
        lease.
        """
        record = self._due.overtaken(lease, outcome.record)
        return outcome if record is outcome.record else msgspec.structs.replace(outcome, record=record)

    def discover_more(self, batch: Batch, result: BatchResult) -> None:
        if batch.offers:
            act_on(batch.offers, partial(self._offer, result), result)

    def adopt(self, collection: Collection) -> None:
        self._due.adopt(collection)

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Count the new and the known links since the last batch."""
        before, self._counted = self._counted, self._due.counts.copy()
        result.counts.update({name: many - before[name] for name, many in self._counted.items()})

    def _offer(self, result: BatchResult, links: Sequence[Link]) -> None:
        known = self._due.offer(links, at=result.batch.at)
        result.known += known
        if len(known) < len(links):
            result.new_pages.update(link.site for link in links)


class LearnedSites(Stage):
    """The stage that collects data about active sites and saves them with the next settlement."""

    def __init__(self) -> None:
        self._learned: dict[str, SavedSiteData] = {}
        self._changed: dict[str, SiteLease] = {}
        self._parts: list[tuple[SiteLease, int, bytes]] = []

    def urgency_of(self, lease: SiteLease) -> bytes:
        """Return the saved urgency data of a site's pages, or b""."""
        return self._of(lease).urgency

    def set_state(self, lease: SiteLease, state: SiteState) -> None:
        """Replace a site's state at the next settlement."""
        self._change(lease, msgspec.structs.replace(self._of(lease), state=state))

    def set_urgency(self, lease: SiteLease, urgency: bytes) -> None:
        """Replace the urgency data of a site's pages at the next settlement."""
        self._change(lease, msgspec.structs.replace(self._of(lease), urgency=urgency))

    def add_parts(self, parts: Sequence[tuple[SiteLease, int, bytes]]) -> None:
        """At the next settlement, save urgency data of windows (parts of very large sites)."""
        self._parts += parts

    def take_changes(self) -> tuple[list[tuple[SiteLease, bytes]], list[tuple[SiteLease, int, bytes]]]:
        """Return the data that changed since the last call, of sites and of parts of very large sites."""
        changed, self._changed = self._changed, {}
        parts, self._parts = self._parts, []
        return [(lease, self._learned[name].encode()) for name, lease in changed.items()], parts

    def lost(self, sites: Sequence[str]) -> None:
        for site in sites:
            self._learned.pop(site, None)
            self._changed.pop(site, None)

    def before_park(self, batch: Batch) -> None:
        self.lost([parked.lease.site for parked in batch.parked])

    def _of(self, lease: SiteLease) -> SavedSiteData:
        return self._learned.get(lease.site) or SavedSiteData.of(lease.record)

    def _change(self, lease: SiteLease, learned: SavedSiteData) -> None:
        self._learned[lease.site] = learned
        self._changed[lease.site] = lease


class LossRecovery:
    """Lets an ant continue after the store's server lost data (`store/shared/lives.py`).

    The cache of known URLs is emptied, because the store may have lost URLs. Sites whose leases ended are listed in the
    batch's result, so that the active list drops them.
    """

    def __init__(self, lives: Lives, due: DuplicateEliminator, stages: Stages) -> None:
        self._lives = lives
        self._due = due
        self._stages = stages

    def apply(self, result: BatchResult) -> bool:
        """Return whether the store's server lost data since the last call, and if so drop outdated data."""
        found = self._lives.take_set_back()
        if found is None:
            return False
        self._due.begin_anew()
        result.voided |= found.voided
        result.set_backs += 1
        for lost in self._stages.lost:
            lost(sorted(site for site, _ in found.voided))
        return True


class Settlement:
    """Settles the leases of a batch."""

    def __init__(
        self,
        store: FrontierStore,
        *,
        stages: Stages,
        copies: CopyWriter,
        discovery: Discovery,
        learned: LearnedSites,
        takedowns: Takedowns,
        recoveries: Sequence[LossRecovery],
        period_s: float,
    ) -> None:
        self._store = store
        self._stages = stages
        self._copies = copies
        self._discovery = discovery
        self._learned = learned
        self._takedowns = takedowns
        self._recoveries = recoveries
        self._period_s = period_s

    def settle(self, batch: Batch, result: BatchResult) -> None:
        """Settle the ended leases of a batch, and save data about their sites in the same call to the store."""
        if batch.answers:
            act_on(batch.answers, self._copies.record, result)
        kept = batch.ended
        if self._takedowns.happened:
            kept = [ended for ended in kept if ended.visit is None or not self._takedowns.holds(ended.lease)]
        if kept:
            act_on(kept, partial(self._settle, batch, result), result, partial(self._fail, batch, result))
        else:
            self._end_leases(batch, result, (), ())
        result.settled.update((ended.lease.site, ended.lease.id.token) for ended in batch.ended)

    def _fail(self, batch: Batch, result: BatchResult, ended: LeaseEnd) -> None:
        """Settle a page as failed, because its outcome could not be stored."""
        outcome = unkept(ended.lease, batch.at, period_s=self._period_s)
        self._settle(batch, result, [LeaseEnd(ended.lease, outcome, asked=ended.asked)])

    def _settle(self, batch: Batch, result: BatchResult, ends: Sequence[LeaseEnd]) -> None:
        visits = [ended.visit for ended in ends if ended.visit is not None]
        copies = self._copies.write(visits)
        try:
            judged = self._judge(visits, batch.at)
            new = self._discover(judged, result)
            outcomes = self._outcomes(ends, judged, copies, new)
            self._end_leases(batch, result, ends, outcomes)
        finally:
            self._copies.settled(copies)
        healed = (copy is not None and visit.kind == "same" for visit, copy in zip(visits, copies, strict=True))
        result.counts["repository/healed"] += sum(healed)

    def _judge(self, visits: Sequence[Visit], at: float) -> Sequence[Visit]:
        """Return the visits, each with the record to settle and with the links to follow."""
        for judge in self._stages.judge:
            visits = judge(visits)
        if moved := [visit for visit in visits if visit.kind == "redirected"]:
            for redirected in self._stages.redirected:
                redirected(moved)
        for visited in self._stages.visited:
            visited(visits, at)
        return visits

    def _discover(self, visits: Sequence[Visit], result: BatchResult) -> Counter[str]:
        """Add the links of all pages to the store, and return the number of new links of each page."""
        # Before the pages are settled, so that no link of a settled page can be lost.
        links = [link for visit in visits for link in visit.reading.links]
        found = self._discovery.discover(links, result)
        while any(recovery.apply(result) for recovery in self._recoveries):
            # The store may have lost links that the cache knew.
            found += self._discovery.discover(links, result)
        return Counter(link.source for link in found)

    def _outcomes(
        self, ends: Sequence[LeaseEnd], judged: Sequence[Visit], copies: Sequence[Copy | None], new: Counter[str]
    ) -> list[Outcome]:
        """Return the outcomes, with their copies, numbers of new links, and current policies."""
        visited = iter(zip(judged, copies, strict=True))
        outcomes = []
        for ended in ends:
            outcome = ended.outcome
            if ended.visit is not None:
                visit, copy = next(visited)
                record = visit.record
                if copy is not None:
                    record = msgspec.structs.replace(record, copy=copy, copied=visit.fetched.at)
                outcome = msgspec.structs.replace(outcome, record=record, links_new=new[visit.fetched.fetch.url])
            outcomes.append(self._discovery.under_policy(ended.lease, outcome))
        return outcomes

    def _end_leases(
        self, batch: Batch, result: BatchResult, ends: Sequence[LeaseEnd], outcomes: Sequence[Outcome]
    ) -> None:
        for lease, state in batch.learned.values():
            self._learned.set_state(lease, state)
        visits = [ended.visit for ended in ends if ended.visit is not None]
        for settling in self._stages.settling:
            settling(visits, outcomes, batch)
        learned, parts = self._learned.take_changes()
        if not (outcomes or learned):
            return
        settled = self._store.queues.settle(outcomes, at=batch.at, learned=learned, parts=parts)
        pairs = [(ended.lease.record, outcome.record) for ended, outcome in zip(ends, outcomes, strict=True)]
        count_failing(self._store.board, pairs)
        result.counts["ant/settled"] += settled.applied
        result.counts["ant/settle_lost"] += settled.lost
