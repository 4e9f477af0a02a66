"""Estimate what the first fetch of a URL is worth, from first fetches on the same site.

Dead links often share a source or a directory, so the chance that a URL has a page is estimated per class of URLs. URLs
with the same source and the same first directory form a class. The prior of a class is the chance over all URLs of the
site.

A page counts as obsolete until its first fetch, and as fresh from then until the page changes. If a first fetch is
expected to save less than the price, the never-crawled queue gets a smaller share of the fetches.

Source: the mean of a beta distribution; its use is ours.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FirstFetches", "part_of_share"]

PRIOR_FETCHES: Final = 4.0
"""The prior chance counts as much as this many first fetches."""
MOST: Final = 200.0
"""If a site has more first fetches than this, older ones lose weight."""


class FirstFetches:
    """Results of the first fetches of a site, or of a class of its URLs."""

    __slots__ = ("lived", "made")

    def __init__(self, made: float = 0.0, lived: float = 0.0) -> None:
        self.made, self.lived = made, lived
        """Number of first fetches, and how many of them found a page."""

    def count(self, *, lived: bool) -> None:
        """Count one more first fetch."""
        self.made += 1.0
        self.lived += lived
        if self.made > MOST:
            self.made, self.lived = MOST, self.lived * MOST / self.made

    def chance(self, prior: float = 1.0) -> float:
        """Return the chance that a URL has a page; before any fetch, the chance is `prior`."""
        return (self.lived + PRIOR_FETCHES * prior) / (self.made + PRIOR_FETCHES)


def part_of_share(chance: float, *, change_s: float, price_s: float) -> float:
    """Return the factor, at most 1, by which to multiply the planned share of first fetches.

    If every URL has a page (`chance` is 1), the factor is 1.

    Parameters
    ----------
    change_s : mean time for which a page of the site stays unchanged, s
    price_s : obsolete time that a fetch must save, s
    """
    return min(1.0, chance * max(1.0, change_s / max(price_s, 1e-9)))
