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
    """Pages of the section that belong to none of its parts."""
    rate: float
    """Changes per page and step, over the long run."""


class SiteBeliefs(NamedTuple):
    """Beliefs about pages since their last fetch at a step, one element per site."""

    obsolete: Array
    """Number of pages expected to be obsolete."""
    so_far: Array
    """Page-steps for which they are expected to have been obsolete, since the last fetch of each."""
    growing: Array
    """Number of pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """Urgency of pages, with bounds of its growth while no change is found; one element per page."""

    urgency: Array
    """Urgency, steps."""
    slope: Array
    """Upper bound of the slope of the logarithm of the urgency over the logarithm of `lasted`; the slope only falls."""
    lasted: Array
    """Time in steps in which the section's long-run rate gives the hazard since the page's last fetch."""
    elapsed: Array
    """The larger of `lasted` and the steps since the page's last fetch; `lasted` alone where those steps do not count.
    """
    least: Array
    """Factor of the square root of an urgency: the product is the earliest time, in steps, at which the page can have
    it. `elapsed` steps of this time are over.
    """


class FetchEvidence(NamedTuple):
    """Results of fetches compared with the beliefs before them."""

    expected: Array
    """(sites,) pages that were believed obsolete when they were fetched."""
    changed: Array
    """(sites,) pages that were found changed."""
    lasted: Array
    """(pages found changed,) steps for which each is believed to have been obsolete."""
