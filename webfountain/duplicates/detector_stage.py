"""The duplicate detector as a stage of the store worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.stage import Stage
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.duplicates.detector import DuplicateDetector
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["DetectorStage"]


class DetectorStage(Stage):
    """Finds duplicates among visited pages, and refuses pages of mirrors."""

    def __init__(self, detector: DuplicateDetector, store: FrontierStore) -> None:
        self._detector = detector
        self._store = store
        self._outranked: list[str] = []  # representatives to fetch again once the batch is settled

    def judge(self, visits: Sequence[Visit]) -> Sequence[Visit]:
        found, outranked = self._detector.judge(visits)
        self._outranked += outranked
        return found

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        """Request a new fetch of replaced representatives."""
        for url in self._outranked:
            self._store.queues.advance(site_of(url), [fingerprint(url)], due=batch.at, at=batch.at)
            result.new_pages.add(site_of(url))
        self._outranked.clear()

    def adopt(self, collection: Collection) -> None:
        self._detector.precedence.adopt(collection)

    def before_lease(self, batch: Batch, result: BatchResult) -> None:
        """Queue the unfetched pages of a site again if the site was wrongly taken for a mirror."""
        detector = self._detector
        if not detector.reopening:
            return
        detector.left([*result.lost, *(parked.lease.site for parked in batch.parked)])
        leases = {refill.lease.site: refill.lease for refill in batch.refills}
        for site in detector.reopening:
            result.new_pages.add(site)
            if site in leases:
                self._store.pages.evict(leases[site], detector.reopen(site), at=batch.at)

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """End the leases of a mirror's pages if the original site has the same pages, and return all other leases."""
        never, recrawl = (self._asked(leases, at) for leases in (dealt.never_crawled, dealt.recrawl))
        return msgspec.structs.replace(dealt, never_crawled=never, recrawl=recrawl)

    def chores(self, batch: Batch, result: BatchResult) -> None:
        result.counts.update(self._detector.counts)
        self._detector.counts.clear()

    def close(self) -> None:
        self._detector.close()

    def _asked(self, leases: list[Lease], at: float) -> list[Lease]:
        ends = [self._detector.unasked(lease, at=at) for lease in leases]
        self._store.queues.settle([end for end in ends if end is not None], at=at)
        return [lease for lease, end in zip(leases, ends, strict=True) if end is None]
