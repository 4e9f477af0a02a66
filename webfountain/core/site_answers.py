"""Results that `Sites` returns about its pages and sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webfountain.core.arrays import Array


__all__ = ["Approach", "FetchEvidence", "SectionRate", "SiteBeliefs"]


class SectionRate(NamedTuple):
    """A section of a site, and how often its pages change."""

    path: str
    """Directory; "" for the site itself."""
    pages: int
    """Number of pages in the section itself, without subsections."""
    rate: float
    """Long-run number of changes per page and step."""


class SiteBeliefs(NamedTuple):
    """Estimates for the pages of several sites at one step; arrays have one element per site."""

    obsolete: Array
    """Number of pages expected to be obsolete."""
    so_far: Array
    """Expected time, in page-steps, for which the site's obsolete pages have been obsolete so far."""
    growing: Array
    """Number of pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """The urgency of each page, and bounds on its growth until a change is found; one element per page."""

    urgency: Array
    """Urgency, steps."""
    slope: Array
    """Upper bound of the slope of ln(urgency) over ln(`lasted`)."""
    lasted: Array
    """Hazard of the page (expected changes since its last fetch), divided by the long-run rate of its section, in
    steps.
    """
    elapsed: Array
    """Equal to `lasted`, except for a page that may change independently: at least the steps since its last fetch."""
    least: Array
    """A page reaches an urgency u no earlier than `least` times √u steps after its last fetch."""

    def times(self, factor: Array) -> Approach:
        """Return a copy in which all urgencies are multiplied by `factor`."""
        return self._replace(urgency=factor * self.urgency, least=self.least / factor**0.5)


class FetchEvidence(NamedTuple):
    """Results of fetches, and the results that were expected before the fetches."""

    expected: Array
    """(sites,) number of fetched pages that were expected to be obsolete."""
    changed: Array
    """(sites,) number of pages that were found changed."""
    lasted: Array
    """(pages found changed,) number of steps for which each page is believed to have been obsolete."""
