"""The data saved with active sites in addition to their pages: a state that must survive a kill, and the urgency of
their pages.

Place in the walk: it is filled while visits are settled. The store saves it in the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.batch import SavedSiteData
from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.records import SiteLease, SiteState

__all__ = ["LearnedSites"]


class LearnedSites(Stage):
    """Keeps what was learned about the active sites. It drops the data of a site that leaves, because the store has
    them.
    """

    def __init__(self) -> None:
        self._learned: dict[str, SavedSiteData] = {}
        self._changed: dict[str, SiteLease] = {}
        self._parts: list[tuple[SiteLease, int, bytes]] = []

    def urgency_of(self, lease: SiteLease) -> bytes:
        """Return the saved urgency data of a site's pages; b"" if there is none yet."""
        return self._of(lease).urgency

    def set_state(self, lease: SiteLease, state: SiteState) -> None:
        """Save a site's state with the next step."""
        self._change(lease, msgspec.structs.replace(self._of(lease), state=state))

    def set_urgency(self, lease: SiteLease, urgency: bytes) -> None:
        """Save the urgency of a site's pages with the next step."""
        self._change(lease, msgspec.structs.replace(self._of(lease), urgency=urgency))

    def add_parts(self, parts: Sequence[tuple[SiteLease, int, bytes]]) -> None:
        """Save windows of very large sites with the next step."""
        self._parts += parts

    def take_changes(self) -> tuple[list[tuple[SiteLease, bytes]], list[tuple[SiteLease, int, bytes]]]:
        """Return the changed data of sites and the changed windows. Each change is returned once."""
        changed, self._changed = self._changed, {}
        parts, self._parts = self._parts, []
        return [(lease, self._learned[name].encode()) for name, lease in changed.items()], parts

    def lost(self, sites: Sequence[str]) -> None:
        for site in sites:
            self._learned.pop(site, None)
            self._changed.pop(site, None)

    def before_park(self, batch: Batch) -> None:
        self.lost([parked.lease.site for parked in batch.parked])

    def _of(self, lease: SiteLease) -> SavedSiteData:
        return self._learned.get(lease.site) or SavedSiteData.of(lease.record)

    def _change(self, lease: SiteLease, learned: SavedSiteData) -> None:
        self._learned[lease.site] = learned
        self._changed[lease.site] = lease
