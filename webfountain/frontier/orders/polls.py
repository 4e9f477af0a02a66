"""The order to read notes, letters and counts: twice a second, and less often while this ant is idle.

Place in the walk: in each batch, after the refills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.orders.order import Order
from webfountain.frontier.timers import COUNTS, POLLS, PollTimer

if TYPE_CHECKING:
    import random

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["Polls"]


class Polls(Order):
    """The polls of one process."""

    def __init__(
        self, others: Others, sites: ActiveList, progress: Progress, *, rng: random.Random, start: float
    ) -> None:
        self._others = others
        self._sites = sites
        self._progress = progress
        self._inbox = PollTimer(POLLS, rng=rng, start=start)
        self._counts = PollTimer(COUNTS, rng=rng, start=start)
        self.is_idle = False
        """Whether this process, one of several, has nothing to do. It then polls less and less often."""

    def add(self, batch: Batch) -> None:
        at, others = batch.at, self._others
        self.is_idle = others.shared and not batch.holds_sites and not self._progress.is_busy(self._sites, batch)
        batch.inbox = self._inbox.due(at, idle=self.is_idle, processes=others.ants)
        batch.count = batch.inbox and self._counts.due(at, idle=self.is_idle, processes=others.ants)
