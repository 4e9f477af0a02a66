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

__all__ = ["SITE", "UNFETCHED", "FirstFetches", "part_of_share"]

PRIOR_FETCHES: Final = 4.0
"""The prior chance counts as much as this many first fetches."""
MOST: Final = 200.0
"""If a site has more first fetches than this, older ones lose weight."""
SITE: Final = ""
"""Name of the class that contains all URLs of the site."""
UNFETCHED: Final = (0.0, 0.0)


class FirstFetches(dict[str, tuple[float, float]]):
    """Results of a site's first fetches: for each class of its URLs, the number of first fetches, and how many of them
    found a page.
    """

    def count(self, name: str | None, *, lived: bool) -> None:
        """Count one more first fetch, of a URL of the class `name`. If `name` is None, only the site counts it."""
        for each in (SITE,) if name is None else (SITE, name):
            made, found = self.get(each, UNFETCHED)
            made, found = made + 1.0, found + lived
            self[each] = (made, found) if made <= MOST else (MOST, found * MOST / made)

    def chance(self, name: str | None) -> float:
        """Return the chance that a URL of the class `name` has a page; before any fetch, the chance is 1."""
        chance = 1.0
        for each in (SITE,) if name is None else (SITE, name):
            made, found = self.get(each, UNFETCHED)
            chance = (found + PRIOR_FETCHES * chance) / (made + PRIOR_FETCHES)
        return chance


def part_of_share(chance: float, *, change_s: float, price_s: float) -> float:
    """Return the factor, at most 1, by which to multiply the planned share of first fetches.

    If every URL has a page (`chance` is 1), the factor is 1.

    Parameters
    ----------
    change_s : mean time for which a page of the site stays unchanged, s
    price_s : obsolete time that a fetch must save, s
    """
    return min(1.0, chance * max(1.0, change_s / max(price_s, 1e-9)))
