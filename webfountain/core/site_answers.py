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
    """Beliefs about a site's pages at one step; one element per site."""

    obsolete: Array
    """Number of pages expected to be obsolete."""
    so_far: Array
    """Expected page-steps for which pages have been obsolete."""
    growing: Array
    """Number of pages expected to become obsolete in the next step."""


class Approach(NamedTuple):
    """Urgency of pages, and how it can grow until a change is found; one element per page."""

    urgency: Array
    """Urgency, steps."""
    slope: Array
    """Upper bound of the slope of ln(urgency) over ln(`lasted`)."""
    lasted: Array
    """Number of steps that would give the hazard since the last fetch at the long-run rate."""
    elapsed: Array
    """`lasted`, or the steps since the last fetch if they count and are more."""
    least: Array
    """Lower bound of the time, steps since the last fetch, at which the page has an urgency, divided by the urgency's
    square root.
    """

    def times(self, factor: Array) -> Approach:
        """Return the approach with all urgencies multiplied by `factor`."""
        return self._replace(urgency=factor * self.urgency, least=self.least / factor**0.5)


class FetchEvidence(NamedTuple):
    """Results of fetches, compared with the beliefs before them."""

    expected: Array
    """(sites,) number of fetched pages that were expected to be obsolete."""
    changed: Array
    """(sites,) number of pages that were found changed."""
    lasted: Array
    """(pages found changed,) number of steps for which each page is believed to have been obsolete."""
