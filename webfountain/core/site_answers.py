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
    """Changes per page and step, over the long run."""


class SiteBeliefs(NamedTuple):
    """What is believed about the pages of sites at one step; arrays have one element per site."""

    obsolete: Array
    """Number of pages expected to be obsolete."""
    so_far: Array
    """Time for which the site's pages are expected to have been obsolete so far, page-steps."""
    growing: Array
    """Number of pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """The urgency of each page, and bounds on its growth until a change is found; one element per page."""

    urgency: Array
    """Urgency, steps."""
    slope: Array
    """Upper bound of the slope of ln(urgency) over ln(`lasted`)."""
    lasted: Array
    """Number of steps in which the section's long-run rate alone would give the hazard since the last fetch."""
    elapsed: Array
    """`lasted`. If a page may change independently, its value is at least the number of steps since the last fetch."""
    least: Array
    """A page reaches an urgency u at the earliest `least` times √u steps after its last fetch."""

    def times(self, factor: Array) -> Approach:
        """Return a copy in which all urgencies are multiplied by `factor`."""
        return self._replace(urgency=factor * self.urgency, least=self.least / factor**0.5)


class FetchEvidence(NamedTuple):
    """Results of fetches, and what was expected before the fetches."""

    expected: Array
    """(sites,) number of fetched pages that were expected to be obsolete."""
    changed: Array
    """(sites,) number of pages that were found changed."""
    lasted: Array
    """(pages found changed,) number of steps for which each page is believed to have been obsolete."""
