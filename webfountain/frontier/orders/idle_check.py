"""The order to count what waits, by which a crawl with `--until-idle` finds its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.orders.order import Order
from webfountain.frontier.timers import ChoreTimer

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["IdleCheck"]

_EVERY_S: Final = 2.0


class IdleCheck(Order):
    """The count, ordered from time to time while this process and all others are idle."""

    def __init__(self, progress: Progress, sites: ActiveList, others: Others, *, start: float) -> None:
        self._progress = progress
        self._sites = sites
        self._others = others
        self._timer = ChoreTimer(_EVERY_S, start=start)

    def add(self, batch: Batch) -> None:
        if self._progress.is_resting(batch.at, self._sites, batch) and self._others.idle_since() is not None:
            batch.count_waiting = self._timer.take(batch.at)
