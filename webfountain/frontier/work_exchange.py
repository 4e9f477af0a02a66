"""The exchange of work with the worker thread: a batch goes out, its result comes back.

Place in the walk: in the loop thread, between two batches. Only one batch is out at a time. The orders add to it what
the crawl needs next (`order`), and read in the result what to order again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult, OpenBatch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.order import Orders
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge

__all__ = ["WorkExchange"]


class WorkExchange:
    """The exchange of one process. `is_reviewing`: some pages were judged by an earlier policy file than `judge`."""

    def __init__(
        self,
        batches: OpenBatch,
        *,
        sites: ActiveList,
        progress: Progress,
        others: Others,
        orders: Orders,
        metrics: Metrics,
        judge: Judge,
        is_reviewing: bool,
    ) -> None:
        self.batches = batches
        """The batch that events write into."""
        self._sites = sites
        self._progress = progress
        self._others = others
        self._orders = orders
        self._metrics = metrics
        self._judge = judge
        self._is_reviewing = is_reviewing

    def take(self) -> Batch | None:
        """Return the next batch for the worker; None if there is nothing to do or the worker has a batch."""
        if self._progress.working:
            return None
        batch = self.batches.gather()
        if not self._progress.stopped and self._others.term.left_s() > 0.0:
            self._sites.process_timers(batch)
            batch.review = self._is_reviewing
            for order, add in self._orders.add:
                if order.due <= batch.at:
                    add(batch)
        for before_send in self._orders.before_send:
            before_send(batch)
        sent = self.batches.send()
        self._progress.working = sent is not None
        return sent

    def absorb(self, result: BatchResult) -> None:
        """Apply the result of a batch."""
        self._progress.absorb(result)
        self._metrics.add(result.counts)
        self._is_reviewing = result.reviewing
        for absorb in self._orders.absorb:
            absorb(result)
        self._sites.take_in(result, self.batches.gather())
        for absorbed in self._orders.absorbed:
            absorbed(result)

    def adopt(self, collection: Collection) -> None:
        """Adopt an edited policy file. From the next request on, pages that its judge refuses are not requested.

        The caller loads its seeds, as at the start.
        """
        self._judge.adopt(collection)
        for adopt in self._orders.adopt:
            adopt(collection)
        batch = self.batches.gather()
        batch.collection = collection
        self._sites.judge_again(batch)
