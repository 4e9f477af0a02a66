"""The change rate of the pages of one site, from the pages observed so far.

Place in the walk: the examiner uses it as the prior of a page whose own history is short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.core.change_rate import Prior

if TYPE_CHECKING:
    from webfountain.frontier.visit import Visit
    from webfountain.records import SiteState

__all__ = ["PRIOR_PERIODS", "SiteChanges"]

PRIOR_PERIODS: Final = 10.0
"""Assumed mean change interval, in periods, of the pages of a site without observations."""
PRIOR_CHANGES: Final = 2.0
"""Weight of this assumption, as a number of observed changes."""


class SiteChanges:
    """Number of changes found on one site, and the time during which its pages were observed."""

    __slots__ = ("count", "observed_s")

    def __init__(self, state: SiteState) -> None:
        self.count = state.changes
        self.observed_s = state.observed_time

    def restore(self, state: SiteState) -> None:
        """Continue from the counts of an earlier activation of the site."""
        self.count, self.observed_s = state.changes, state.observed_time

    def add(self, visit: Visit) -> None:
        """Count a check of a page that had been crawled before."""
        self.count += visit.kind == "changed"
        self.observed_s += visit.observed_time

    def prior(self, believed: Prior) -> Prior:
        """Return the mean change interval so far, drawn towards the assumption if few changes were observed."""
        return Prior((self.observed_s + PRIOR_CHANGES * believed.interval) / (self.count + PRIOR_CHANGES))
