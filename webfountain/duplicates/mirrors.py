"""Mirror sites: sites whose pages repeat the pages of another site.

A site is a *mirror* if at least half of its compared pages, and at least ten, repeat pages of one other site. A page of
a mirror is not fetched if the original site has a page with the same path. One in `SAMPLED` of the refused pages,
chosen by a secret key, is fetched as a sample. If too many samples differ from the original site (`TOLERATED`), the
site stops being a mirror, and its refused pages are fetched.

The counts of sites, and the mirrors that samples refuted, are kept only in memory.

Source: Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*, 2000 (mirrors by their share of
duplicates).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from xxhash import xxh3_64_intdigest

__all__ = ["SAMPLED", "TOLERATED", "Mirrors", "is_mirror"]

SAMPLED: Final = 10
"""One refused page in this many is fetched as a sample."""
TOLERATED: Final = 0.1
"""Maximum share of a mirror's samples that may differ from the original site."""
_LEAST_MISSES: Final = 2
_SITES: Final = 20_000
"""Largest number of sites whose pages are counted."""
_MIRRORED_SHARE: Final = 0.5
_MIRRORED_PAGES: Final = 10
"""A mirror has at least `_MIRRORED_PAGES` duplicates, and at least the share `_MIRRORED_SHARE` of its compared pages
are duplicates.
"""


class _SiteCounts:
    """Counts of one site, which decide whether the site is a mirror:

    - first copies that were compared
    - duplicates
    - duplicates and samples per other site
    - samples that did not repeat the other site
    """

    __slots__ = ("judged", "misses", "originals", "refuted", "repeats", "samples")

    def __init__(self) -> None:
        self.judged = 0
        self.repeats = 0
        self.originals: Counter[str] = Counter()
        self.samples: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()
        self.refuted: set[str] = set()


class Mirrors:
    """A detector of mirror sites that counts the duplicate pages of each site. `key` is the secret key that selects the
    samples.
    """

    def __init__(self, *, key: int = 0) -> None:
        self._key = key
        self._sites: dict[str, _SiteCounts] = {}

    def original_of(self, site: str) -> str | None:
        """Return the site that `site` mirrors; None if `site` is no mirror."""
        counted = self._sites.get(site)
        if counted is None or not counted.originals:
            return None
        original, pages = counted.originals.most_common(1)[0]
        return original if is_mirror(pages, counted.judged) and original not in counted.refuted else None

    def is_refuted(self, site: str, original: str) -> bool:
        """Return whether the samples showed that `site` does not mirror `original`."""
        counted = self._sites.get(site)
        return counted is not None and original in counted.refuted

    def is_sample(self, key: bytes, turn: int) -> bool:
        """Return whether a refused page is fetched as a sample. The choice depends on the page's key and on `turn`, the
        number of earlier attempts to fetch the page.
        """
        return xxh3_64_intdigest(key + turn.to_bytes(4, "little"), self._key) % SAMPLED == 0

    def count(self, site: str, original: str | None) -> None:
        """Count the first copy of a page; `original` is the site of the page that it repeats, or None."""
        counted = self._sites.pop(site, None) or _SiteCounts()
        self._sites[site] = counted
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        counted.judged += 1
        if original is not None:
            counted.repeats += 1
            counted.originals[original] += original != site

    def count_sample(self, site: str, original: str, *, repeats: bool) -> bool:
        """Count a sample of a mirror, and return whether the samples have just shown that the site is no mirror."""
        counted = self._sites.setdefault(site, _SiteCounts())
        counted.samples[original] += 1
        counted.misses[original] += not repeats
        misses = counted.misses[original]
        is_wrong = misses >= _LEAST_MISSES and misses > TOLERATED * counted.samples[original]
        ends = is_wrong and original not in counted.refuted
        if ends:
            counted.refuted.add(original)
        return ends

    def share_of(self, site: str) -> float:
        """Return the share of a site's pages that repeat other pages; 0.0 if no page was compared recently."""
        counted = self._sites.get(site)
        return counted.repeats / counted.judged if counted is not None and counted.judged else 0.0


def is_mirror(duplicates: int, pages: int) -> bool:
    """Return whether a site with this number of `duplicates` of another site is a mirror of that site."""
    return duplicates >= _MIRRORED_PAGES and duplicates >= _MIRRORED_SHARE * pages
