"""The supply of the active list: leases for its sites, and new sites for its free places.

Place in the walk: in each batch. Leases are ordered for hands that are nearly empty, unless the worker is too far
behind. The worker activates as many sites as the order has room for, if the store has any that are due. Sites that are
done or rest are parked with every batch. Guests, of which only files are needed, are named too.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.frontier.order import Order

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["SiteSupply"]


class SiteSupply(Order):
    """The supply of one process. With other ants, it takes not many more sites than this ant's part."""

    def __init__(self, sites: ActiveList, progress: Progress, others: Others) -> None:
        self._sites = sites
        self._progress = progress
        self._others = others
        self._due = -inf  # when the first site without an owner is due, as the store last reported

    def add(self, batch: Batch) -> None:
        if not self._progress.congested():
            self._sites.sites.refill(batch)
        batch.holds_sites = bool(self._sites.sites.by_name)
        batch.guests = [*self._sites.file_requests.by_host]
        if self._due <= batch.at:
            batch.room = self._room()

    def before_send(self, batch: Batch) -> None:
        """Park the sites that are done or resting. Sites that wait for a place take those of well served ones."""
        is_full = self._due <= batch.at and not self._sites.room()
        self._due = min(self._due, self._sites.departures.park_idle(batch, is_full=is_full))

    def absorb(self, result: BatchResult) -> None:
        self._due = inf if result.next_site_due is None else result.next_site_due

    def _room(self) -> int:
        """Return how many more sites to take."""
        if self._progress.lacks_room:
            return 0
        room, most = self._sites.room(), self._others.most_sites(self._progress.stored.sites)
        return room if most is None else max(min(room, most - len(self._sites.leases())), 0)
