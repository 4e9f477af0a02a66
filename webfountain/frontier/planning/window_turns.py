"""Turns of a very large site's windows: the current one is saved, and another is loaded in its place.

`Windows` determines which window is next. The next window continues with what the current window learned about the
site's sections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgent_site import UrgentSite, resume_site

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.core.site_urgency import SiteUrgency
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms

    ReadWindow = Callable[[int], bytes | None]
    """Returns the saved data of a window by its number."""

__all__ = ["KeptSite", "Turn", "halves", "is_turn", "keep", "resume", "turn"]

_MOST: Final = 1 << 32
"""A window with a higher number is not split."""


class KeptSite(NamedTuple):
    """The data of a site to save in one step."""

    with_site: bytes
    windows: list[tuple[int, bytes]]
    """The saved data by the window's number; empty bytes for a window that no longer exists."""


class Turn(NamedTuple):
    """The result of a turn."""

    site: UrgentSite | None
    """The site to use after the turn; None if its windows cannot be read, so that it must begin again."""
    kept: KeptSite


def is_turn(site: UrgentSite, price: float, at: float, pause: float) -> bool:
    """Return whether another window should be loaded: it is time, or this one has no urgent pages or grew too large."""
    windows = site.windows
    if windows.is_whole or len(site) > site_windows.WINDOW:
        return len(site) > site_windows.WINDOW
    if windows.is_time(site.terms, at):
        return True
    return at >= windows.early_at(site.terms) and price > site.ranking.most and not site.is_stale(price, at, pause)


def turn(name: str, site: UrgentSite, terms: UrgencyTerms, read: ReadWindow, at: float) -> Turn:
    """Load another window. A window that grew too large is split into two."""
    windows = Windows.begun(0, terms, at) if site.windows.is_whole else site.windows
    left, parts = windows.hand, [(windows.hand, site)]
    while len(parts[0][1]) > site_windows.WINDOW and parts[0][0] < _MOST:
        parts = [half for number, part in parts for half in halves(part, number)]
    kept = [(number, part.encode()) for number, part in parts]
    waits = {site.pages.key(page): since for page, since in site.ranking.waits.items()}
    hand = windows.turn({number: part.believed for number, part in parts}, waits, terms, at)
    data = dict(kept).get(hand)
    turned = _at_hand(name, windows, data or read(hand), terms, site.urgencies)
    if len(parts) > 1:
        kept.append((left, b""))
    return Turn(turned, KeptSite(b"" if turned is None else turned.encode_windows(), kept))


def halves(site: UrgentSite, number: int) -> list[tuple[int, UrgentSite]]:
    """Return the two halves of a window, by number. Until both are computed, the first half has the whole window's
    beliefs.
    """
    upper = site.pages.in_upper_half(number)
    return [
        (2 * number, site.some(~upper, believed=site.believed)),
        (2 * number + 1, site.some(upper, believed=None)),
    ]


def resume(name: str, windows: Windows, terms: UrgencyTerms, read: ReadWindow) -> UrgentSite | None:
    """Return the site of these saved windows; None if they cannot be read."""
    newest = None
    if windows.newest != windows.hand:
        newest = resume_site(name, read(windows.newest) or b"", terms)[0]
        if newest is None:
            return None
    site = _at_hand(name, windows, read(windows.hand), terms, None if newest is None else newest.urgencies)
    if site is not None:
        site.encode_windows()
    return site


def keep(site: UrgentSite) -> KeptSite:
    """Return the data of a site to save: the whole site, or the list of its windows with the current window."""
    data = site.encode()
    if site.windows.is_whole:
        return KeptSite(data, [])
    site.windows.keep_hand()
    return KeptSite(site.encode_windows(), [(site.windows.hand, data)])


def _at_hand(
    name: str, windows: Windows, data: bytes | None, terms: UrgencyTerms, newest: SiteUrgency | None
) -> UrgentSite | None:
    site = resume_site(name, data, terms)[0] if data else None
    if site is not None:
        site.join(windows, newest)
    return site
