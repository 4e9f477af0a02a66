"""Snapshots of the active list and its sites, for reports, tests and decisions."""

from __future__ import annotations

from enum import Enum

import msgspec

__all__ = ["ActiveListStatistics", "SiteStatistics", "State"]


class State(Enum):
    """State of an active site. The docstring of the module `site` has a table of the states."""

    RESOLVING = "resolving"
    ROBOTS = "robots"
    OPEN = "open"
    EMPTY = "empty"
    SHUT = "shut"
    LOST = "lost"

    @property
    def is_preparing(self) -> bool:
        """Return whether the site waits for an address or a robots.txt."""
        return self is State.RESOLVING or self is State.ROBOTS


class SiteStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot of one site."""

    state: State
    barred: str | None
    address: str | None
    opens_at: float
    failures: int
    hand: int
    """Number of leased pages in the hand, in the two queues."""
    immediate: int
    """Number of immediate fetches that are ready; `held` wait for robots.txt or an address."""
    held: int
    files: int
    under_way: int


class ActiveListStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot of the active list."""

    sites: int
    guests: int
    """Number of sites without a lease, which only serve files."""
    preparing: int
    """Number of sites whose pages wait for an address or a robots.txt."""
    in_flight: int
    quiet: int
    timers: int
    addresses: int
    """Number of addresses that are known."""
