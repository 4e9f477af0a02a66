"""The pace of a site: the number of simultaneous requests, and which answers make the crawl wait.

In a collection the politeness table decides, and the crawl obeys every delay that a site requests; this is the default
here. With the add-on and without a collection file, the project's own settings decide. Then its downloader keeps the
time between requests (`crawl.project_pace`). Place in the walk: each site of the active list reads the pace when it is
created and when a fetch has landed (`standing.SitePoliteness`). This module has no state and measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BY_POLICY", "HoldRule", "SitePace"]

HoldRule = Literal["Crawl-delay", "Retry-After", "back-off", "robots.txt"]
"""A rule that makes a crawl leave a site alone for longer than its delay."""


def _no_slots(_: str) -> int | None:
    return None


def _no_report(_site: str, _rule: HoldRule, _seconds: float) -> None:
    return None


@dataclass(slots=True, frozen=True)
class SitePace:
    """Rules of pace that apply to all sites of a crawl."""

    slots: Callable[[str], int | None] = _no_slots
    """Returns the number of simultaneous requests for a site; None: `politeness.concurrency`."""
    keeps_delay: bool = True
    """True if a gate stays shut for `politeness.min_delay` after each request; False if the downloader keeps the
    delay."""
    crawl_delay: bool = True
    """True if the Crawl-delay of a robots.txt is obeyed."""
    retry_after: bool = True
    """True if the Retry-After header of 429 and 503 answers is obeyed."""
    back_off: bool = True
    """True if a site that answers 429 or 503, or not at all, is left alone for longer each time."""
    lends: bool = True
    """True if other ants may use some of a site's slots."""
    report: Callable[[str, HoldRule, float], None] = _no_report
    """Called with site, rule and seconds whenever a rule delays a site."""


BY_POLICY: Final = SitePace()
"""The pace of a collection, which follows its politeness table."""
