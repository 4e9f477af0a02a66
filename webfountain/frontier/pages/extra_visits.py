"""Extra visits of pages, seconds after a visit.

`noise_learner` orders an extra visit while a page is examined. When the visit is due, this stage of the store worker
puts the page on the immediate lane of its site. In another lane, the page would wait for all leased URLs of its site,
and a visit minutes later would prove nothing. If the process ends first, the page is still due by its record.
"""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Stage
from webfountain.records import Link

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

__all__ = ["ExtraVisits", "extra_visits_of"]

_LEAD_S: Final = 0.5
"""Time before the due time at which a page becomes immediate, s."""


class ExtraVisits(Stage):
    """The stage with the extra visits of one process that are not due yet."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._waiting: list[tuple[float, str, bytes]] = []  # a heap: due time, site, key

    def order(self, fetch: Fetch, due: float) -> None:
        """Order an extra visit of a fetched page. Any thread may call this method."""
        assert fetch.lease is not None
        with self._guard:
            heapq.heappush(self._waiting, (due, fetch.site, fetch.lease.key))

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        del result
        links = [link for each in self._take_due(batch.at + _LEAD_S) if (link := self._link(*each)) is not None]
        if links:
            self._store.queues.immediate(links, at=batch.at)
            batch.immediate = True

    def _take_due(self, at: float) -> list[tuple[float, str, bytes]]:
        found = []
        with self._guard:
            while self._waiting and self._waiting[0][0] <= at:
                found.append(heapq.heappop(self._waiting))
        return found

    def _link(self, due: float, site: str, key: bytes) -> Link | None:
        """Return a link to a page, or None if the page was visited or forgotten meanwhile."""
        record = self._store.pages.get(site, key)
        return Link(record.url, site, key) if record is not None and record.due == due else None


def extra_visits_of(collection: Collection, store: FrontierStore, judge: Judge) -> ExtraVisits | None:
    """Return the extra visits of a crawl, or None if no policy learns noise."""
    learns = any(judge.counting(policy).learns for policy in collection.policies_in_use)
    return ExtraVisits(store) if learns else None
