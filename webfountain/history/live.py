"""A live snapshot: the current state of one crawling process, in bounded size.

The crawl's loop makes a snapshot every two seconds (`recorder`) and stores it for other processes (`publishing`). A
snapshot older than `STALE_S` means that its process has ended or hangs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webfountain.frontier.sites.site import SiteStatistics

__all__ = ["EVERY_S", "MAX_SITES", "STALE_S", "LiveSite", "LiveSnapshot", "WaitReason", "live_site", "live_sites"]

EVERY_S: Final = 2.0
"""Interval between two snapshots, in seconds."""
STALE_S: Final = 30.0
"""A process counts as dead if its last snapshot is older than this, in seconds."""
MAX_SITES: Final = 200
"""Maximum number of active sites that a snapshot describes; further active sites are only counted."""

WaitReason = Literal[
    "in flight", "polite", "back-off", "robots.txt", "no robots.txt", "address", "barred", "leasing", "not due", "ready"
]
"""Reasons why the crawl now requests no page from an active site."""


class LiveSite(msgspec.Struct, frozen=True):
    """An active site and the reason why it waits."""

    site: str
    reason: WaitReason
    until: float | None
    """Time at which the site's wait ends, UTC seconds; None if the site waits for an answer."""
    in_flight: int
    hand: int
    """Number of the site's leased pages that wait in the process to be fetched."""
    immediate: int
    files: int
    """Number of robots.txt files, sitemaps and similar files that wait to be fetched."""
    failures: int
    """Consecutive refusals."""
    address: str | None
    word: str | None = None
    """Reason why no page of the site may be requested."""


class LiveSnapshot(msgspec.Struct, frozen=True):
    """State of a crawling process."""

    owner: str
    """Name of the process, as in leases."""
    pid: int
    began: float
    """Time at which the process began to crawl, UTC seconds."""
    at: float
    """Time of the snapshot, UTC seconds."""
    lag_s: float
    """Delay of the process's event loop, in seconds; above one second, the process is overloaded."""
    fetched: int
    """Number of fetches that the process has settled since it began."""
    pages_per_second: float
    """Mean crawl rate over the last ten seconds."""
    limit: str
    """What limits the crawl rate now, in words."""
    pages: dict[str, int]
    """Number of known URLs in the whole store, by state."""
    sites: int
    active_sites: int
    in_flight: int
    pending_visits: int
    """Number of fetched pages that are not yet written to disk."""
    pending_bytes: int
    immediate: int
    leased: int
    price: float | None
    plan: str | None
    """The current plan, in words."""
    waits: dict[str, int]
    """Number of sites in `live` for each wait reason."""
    live: list[LiveSite]
    """The active sites of the process, at most MAX_SITES of them."""
    counts: dict[str, float]
    """Counts of `webfountain.metrics` in this process."""


def live_sites(found: Mapping[str, SiteStatistics], *, at: float) -> Iterator[LiveSite]:
    """Return active sites as entries of a snapshot."""
    return (live_site(name, each, at=at) for name, each in found.items())


def live_site(name: str, found: SiteStatistics, *, at: float) -> LiveSite:
    """Return an active site, and the reason why it waits at the time `at`."""
    reason, until = _reason(found, at)
    return LiveSite(
        site=name,
        reason=reason,
        until=until if until is not None and math.isfinite(until) else None,
        in_flight=found.under_way,
        hand=found.hand,
        immediate=found.immediate + found.held,
        files=found.files,
        failures=found.failures,
        address=found.address,
        word=found.barred,
    )


def _reason(found: SiteStatistics, at: float) -> tuple[WaitReason, float | None]:
    """Return the first reason why a site waits, and the end of the wait."""
    from webfountain.frontier.sites.site import State  # noqa: PLC0415  (numpy; readers of snapshots do not need it)

    rests = found.opens_at > at
    reasons: tuple[tuple[bool, WaitReason, float | None], ...] = (
        (bool(found.under_way), "in flight", None),
        (found.barred is not None, "barred", None),
        (found.state is State.RESOLVING, "address", None),
        (found.state is State.ROBOTS, "robots.txt", found.opens_at if rests else None),
        (found.state is State.SHUT, "no robots.txt", found.opens_at),
        (rests, "back-off" if found.failures else "polite", found.opens_at),
        (bool(found.hand or found.immediate or found.files), "ready", None),
        (found.is_empty, "not due", None),
        (True, "leasing", None),
    )
    return next((reason, until) for holds, reason, until in reasons if holds)
