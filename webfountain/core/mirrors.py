"""Test whether a site repeats another site.

Source: Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*, 2000.
"""

from __future__ import annotations

from typing import Final

__all__ = ["is_mirror"]

_MIRRORED_SHARE: Final = 0.5
_MIRRORED_PAGES: Final = 10
"""`_MIRRORED_PAGES`: least number of duplicates that make a site a mirror. `_MIRRORED_SHARE`: their least share of the
judged pages.
"""


def is_mirror(duplicates: int, pages: int) -> bool:
    """Return whether a site is a mirror: at least ten of its judged pages, and at least half, are duplicates of the
    other site's pages.
    """
    return duplicates >= _MIRRORED_PAGES and duplicates >= _MIRRORED_SHARE * pages
