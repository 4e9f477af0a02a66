"""The order of leases for the hands of the active sites.

Place in the walk: in each batch, unless the worker is too far behind. Guests, of which only files are needed, are named
too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.orders.order import Order

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["Refills"]


class Refills(Order):
    """The order of refills for all hands that are nearly empty."""

    def __init__(self, sites: ActiveList, progress: Progress) -> None:
        self._sites = sites
        self._progress = progress

    def add(self, batch: Batch) -> None:
        if not self._progress.congested():
            self._sites.sites.refill(batch)
        batch.holds_sites = bool(self._sites.sites)
        batch.guests = self._sites.file_requests.hosts()
