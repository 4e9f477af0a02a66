"""Visit a page again after some seconds (an extra visit), to see which parts of the page are noise.

`noise_learner` can request an extra visit while a page is examined. When the visit is due, this stage puts the page on
its site's immediate queue. The immediate queue is used because its URLs do not wait for the site's leased URLs, and a
late extra visit would be useless. If the process ends before the visit, the page stays due, because its record has the
due time.
"""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Stage
from webfountain.records import Link

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

__all__ = ["ExtraVisits", "extra_visits_of"]

_LEAD_S: Final = 0.5
"""A page is put on the immediate queue this long before its extra visit is due, in seconds."""


class ExtraVisits(Stage):
    """The stage that makes the extra visits of one process."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._waiting: list[tuple[float, str, bytes]] = []  # a heap: due time, site, key

    def order(self, fetch: Fetch, due: float) -> None:
        """Request an extra visit to a fetched page at the time `due`. Any thread may call this method."""
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
        """Return a link to the page that gets an extra visit. Return None if the page was removed from the store or
        fetched for another reason.
        """
        record = self._store.pages.get(site, key)
        return Link(record.url, site, key) if record is not None and record.due == due else None


def extra_visits_of(store: FrontierStore, judge: Judge) -> ExtraVisits | None:
    """Return the stage for extra visits, or None if no policy learns noise."""
    return ExtraVisits(store) if judge.policies.learns else None
