"""Results that `Sites` returns about its pages and sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

__all__ = ["Approach", "FetchEvidence", "SectionRate", "SiteBeliefs"]


class SectionRate(NamedTuple):
    """A section of a site, and how often its pages change."""

    path: str
    """Directory; "" for the site itself."""
    pages: int
    """Number of pages that belong to the section itself and to none of its subsections."""
    rate: float
    """Changes per page and step, over the long run."""


class SiteBeliefs(NamedTuple):
    """Beliefs, at one step, about pages since the last fetch of each; one element per site."""

    obsolete: Array
    """Number of pages expected to be obsolete."""
    so_far: Array
    """Expected page-steps for which pages have been obsolete, since the last fetch of each."""
    growing: Array
    """Number of pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """Urgency of pages, with bounds of its growth while no change is found; one element per page."""

    urgency: Array
    """Urgency, steps."""
    slope: Array
    """Upper bound of the slope of ln(urgency) over ln(`lasted`). The slope only falls with time."""
    lasted: Array
    """Number of steps in which the section's long-run rate would give the hazard since the page's last fetch."""
    elapsed: Array
    """The larger of `lasted` and the number of steps since the page's last fetch. If these steps do not count, it is
    `lasted`.
    """
    least: Array
    """Factor by which the square root of an urgency is multiplied to get the earliest time at which the page can have
    this urgency, in steps since its last fetch. `elapsed` steps of this time are over.
    """

    def times(self, factor: Array) -> Approach:
        """Return the approach of pages whose urgency is always `factor` times as large."""
        return self._replace(urgency=factor * self.urgency, least=self.least / factor**0.5)


class FetchEvidence(NamedTuple):
    """Results of fetches compared with the beliefs before them."""

    expected: Array
    """(sites,) expected number of fetched pages that were obsolete, by the beliefs before the fetches."""
    changed: Array
    """(sites,) number of pages that were found changed."""
    lasted: Array
    """(pages found changed,) steps for which each is believed to have been obsolete."""
