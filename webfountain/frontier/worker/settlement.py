"""Settle leases in the order of durability.

Bodies are written, then links are discovered, then leases are settled (DESIGN.md section 3). A crash between two steps
repeats fetches and loses nothing.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.batch import LeaseEnd
from webfountain.frontier.pages.examiner import JudgedVisit
from webfountain.frontier.planning.freshness_estimate import count_failing
from webfountain.frontier.worker.item_by_item import act_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.loss_recovery import LossRecovery
    from webfountain.frontier.visit import Visit
    from webfountain.frontier.worker.copies import CopyWriter, Takedowns
    from webfountain.frontier.worker.discovery import Discovery
    from webfountain.frontier.worker.learned_sites import LearnedSites
    from webfountain.frontier.worker.stage import Stages
    from webfountain.records import Copy, Lease, Outcome
    from webfountain.store.contract import FrontierStore

__all__ = ["Settlement"]


class Settlement:
    """Settles the leases of a batch. `unkept` returns the outcome of a page whose own outcome cannot be stored."""

    def __init__(
        self,
        store: FrontierStore,
        *,
        stages: Stages,
        copies: CopyWriter,
        discovery: Discovery,
        learned: LearnedSites,
        takedowns: Takedowns,
        recovery: LossRecovery,
        unkept: Callable[[Lease, float], Outcome],
    ) -> None:
        self._store = store
        self._stages = stages
        self._copies = copies
        self._discovery = discovery
        self._learned = learned
        self._takedowns = takedowns
        self._recovery = recovery
        self._unkept = unkept

    def settle(self, batch: Batch, result: BatchResult) -> None:
        """Settle the ended leases of a batch. Save what was learned about sites in the same step.

        If a page was forgotten while it was fetched, its body is not written to the disk.
        """
        if batch.answers:
            act_on(batch.answers, self._copies.record, result)
        kept = [ended for ended in batch.ended if ended.visit is None or not self._takedowns.holds(ended.lease)]
        if kept:
            act_on(kept, partial(self._settle, batch, result), result, partial(self._fail, batch, result))
        else:
            self._end_leases(batch, result, (), ())
        result.settled.update((ended.lease.site, ended.lease.id.token) for ended in batch.ended)

    def _fail(self, batch: Batch, result: BatchResult, ended: LeaseEnd) -> None:
        """Settle a page whose own outcome cannot be stored."""
        outcome = self._unkept(ended.lease, batch.at)
        self._settle(batch, result, [LeaseEnd(ended.lease, outcome, asked=ended.asked)])

    def _settle(self, batch: Batch, result: BatchResult, ends: Sequence[LeaseEnd]) -> None:
        """Write copies, discover links and settle leases."""
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

    def _judge(self, visits: Sequence[Visit], at: float) -> Sequence[JudgedVisit]:
        """Return for each visit the record to settle and the links to follow."""
        judged: Sequence[JudgedVisit] = [JudgedVisit(visit.record, visit.reading.links) for visit in visits]
        for judge in self._stages.judge:
            judged = judge(visits, judged)
        for visited in self._stages.visited:
            visited(visits, judged, at)
        return judged

    def _discover(self, judged: Sequence[JudgedVisit], result: BatchResult) -> Counter[str]:
        """Discover the links of all pages at once. Return the number of new links per source page.

        Links are discovered before their pages are settled, so that no link of a settled page can be lost. One step of
        the store, with one look-up of scores, costs about the same for the links of one page as for those of many.
        """
        links = [link for _, links in judged for link in links]
        found = self._discovery.discover(links, result)
        while self._recovery.apply(result):  # links that the cache had found may be lost in the store
            found += self._discovery.discover(links, result)
        return Counter(link.source for link in found)

    def _outcomes(
        self, ends: Sequence[LeaseEnd], judged: Sequence[JudgedVisit], copies: Sequence[Copy | None], new: Counter[str]
    ) -> list[Outcome]:
        """Return the outcomes with their copies, the number of new links, and the present policies."""
        visited = iter(zip(judged, copies, strict=True))
        outcomes = []
        for ended in ends:
            outcome = ended.outcome
            if ended.visit is not None:
                (record, _), copy = next(visited)
                if copy is not None:
                    record = msgspec.structs.replace(record, copy=copy, copied=ended.visit.fetched.at)
                outcome = msgspec.structs.replace(outcome, record=record, links_new=new[ended.visit.fetch.url])
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
