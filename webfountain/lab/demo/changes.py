"""Changes of generated pages: each page changes by a Poisson process at its own rate.

A major change replaces a third of the text and its links. A minor change replaces a short note. A trivial change
replaces a number in an HTML comment; only some pages, the stamped pages, have such a comment.
"""

from __future__ import annotations

from bisect import bisect_right
from math import log
from typing import TYPE_CHECKING, Final

from webfountain.lab.demo.draws import TO_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.lab.demo.draws import Draws
    from webfountain.lab.demo.site import WebPage, WebSite

__all__ = ["MAJOR", "MINOR", "RATES", "TRIVIAL", "PageChanges", "state_after"]

TRIVIAL, MINOR, MAJOR = 0, 1, 2
RATES: Final = ((0.03, 4.0), (0.05, 1.0), (0.1, 1 / 3), (0.17, 0.1), (0.2, 1 / 30), (0.2, 0.01), (0.25, 0.0))
"""Pairs (share, rate): this share of the pages changes at this rate, in changes per period."""


class PageChanges:
    """The random changes of all pages, each drawn when it is first needed."""

    def __init__(self, draw: Draws, rates: Sequence[tuple[float, float]]) -> None:
        self._draw = draw
        self._rates = rates

    def set_habits(self, site: WebSite, *, sitemap_share: float) -> None:
        """Draw how often each page of a site changes, and whether a sitemap lists it."""
        for page in site.pages:
            rate, stamped, listed, made = (n * TO_UNIT for n in self._draw(1, site.number, page.number))
            page.rate = self._rate_at(rate)
            page.stamped = stamped < 0.2
            page.listed = listed < sitemap_share
            page.made = page.birth if page.birth else -50.0 * made

    def _rate_at(self, u: float) -> float:
        for share, rate in self._rates:
            if u < share:
                return rate
            u -= share
        return self._rates[-1][1]

    def until(self, page: WebPage, t: float) -> int:
        if not page.rate:
            return 0
        times = page.times
        last = times[-1] if times else page.birth
        while last <= t:
            gap, kind, third, _ = self._draw(2, page.site, page.number, len(times))
            last -= log((gap + 1) * TO_UNIT) / page.rate
            times.append(last)
            page.kinds.append(_kind(kind * TO_UNIT, page.stamped))
            page.thirds.append(third % 3)
        return bisect_right(times, t)


def _kind(u: float, stamped: bool) -> int:
    """Return the kind of a change. On stamped pages, six of ten changes replace only the number in the HTML comment."""
    if stamped and u < 0.6:
        return TRIVIAL
    return MAJOR if u * 97 % 1 < 0.6 else MINOR


def state_after(page: WebPage, own: int) -> tuple[list[int], int, int]:
    """Return the last change of each third of the text, the last change of the note, and the number in the HTML
    comment.
    """
    texts, note, stamp = [0, 0, 0], 0, 0
    for change in range(own):
        kind = page.kinds[change]
        if kind == MAJOR:
            texts[page.thirds[change]] = change + 1
        elif kind == MINOR:
            note = change + 1
        else:
            stamp += 1
    return texts, note, stamp
