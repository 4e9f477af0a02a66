"""Estimate what the first fetch of a URL is worth, from the first fetches of other URLs of its site.

Many links are dead, and the dead links of a site often have a common source or directory. So the chance that a URL has
a page is estimated for its class (its source and first directory), with the site's chance as the prior. The site's own
prior is that a URL has a page.

A first copy saves the time for which a page of the site stays unchanged, if there is a page. A fetch of a known page
that waits saves at least the price. If the expected saving of a first fetch is below the price, the never-crawled queue
of the site gets the same part of its planned share.

Source: the mean of a beta distribution; its use is ours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FirstFetches", "part_of_share"]

PRIOR_FETCHES: Final = 4.0
"""Weight of the prior chance, in first fetches."""
MOST: Final = 200.0
"""If there are more first fetches than this, older ones fade, because a site changes."""


class FirstFetches(NamedTuple):
    """The first fetches of a site's URLs, or of one class of them, that showed whether there is a page."""

    made: float = 0.0
    lived: float = 0.0
    """How many found a page."""

    def add(self, *, lived: bool) -> FirstFetches:
        """Return the counts with one more fetch."""
        fade = min(1.0, MOST / (self.made + 1.0))
        return FirstFetches(fade * (self.made + 1.0), fade * (self.lived + lived))

    def chance(self, prior: float = 1.0) -> float:
        """Return the chance that a URL has a page; `prior` is the chance assumed without evidence."""
        return (self.lived + PRIOR_FETCHES * prior) / (self.made + PRIOR_FETCHES)


def part_of_share(chance: float, *, change_s: float, price_s: float) -> float:
    """Return the part of the planned share that first fetches of such URLs are worth, at most 1.

    URLs that surely have a page always get their share: a page without a copy counts as obsolete, however often it
    changes.

    Parameters
    ----------
    change_s : mean time for which a page of the site stays unchanged, s
    price_s : obsolete time that a fetch must save, s
    """
    return min(1.0, chance * max(1.0, change_s / max(price_s, 1e-9)))
