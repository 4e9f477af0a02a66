"""The timers of the active sites: those that are due are processed before a batch goes to the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.orders.order import Order

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["SiteTimers"]


class SiteTimers(Order):
    """The timers of all sites of a list. What a site then needs is written into the batch."""

    def __init__(self, sites: ActiveList) -> None:
        self._sites = sites

    def add(self, batch: Batch) -> None:
        self._sites.process_timers(batch)
