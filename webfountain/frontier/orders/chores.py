"""Chores: what a crawl does from time to time, each at its own interval."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.order import Order
from webfountain.frontier.rate_limit import RateLimit
from webfountain.frontier.sites.robots_state import ROBOTS_LIFE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.sites.domain_shares import DomainShares

__all__ = ["ChoreTimer", "Chores", "chores_of"]

_LIMIT_EVERY_S: Final = 10.0
_SHARES_EVERY_S: Final = 5.0


class Chores(Order):
    """The chores of one process, each with its interval in seconds. All are due at `start` first."""

    def __init__(self, chores: Sequence[tuple[float, Callable[[Batch], None]]], *, start: float) -> None:
        self._chores = tuple(chores)
        self._due = [start] * len(self._chores)
        self.due = start

    def add(self, batch: Batch) -> None:
        at = batch.at
        for i, (every_s, act) in enumerate(self._chores):
            if self._due[i] <= at:
                self._due[i] = at + every_s
                act(batch)
        self.due = min(self._due, default=inf)


class ChoreTimer:
    """The timer of one periodic chore, which is due every `every_s` seconds from `start` on."""

    __slots__ = ("_due", "_every_s")

    def __init__(self, every_s: float, *, start: float) -> None:
        self._every_s = every_s
        self._due = start

    def take(self, at: float) -> bool:
        """Return whether the chore is due. If so, it counts as done now."""
        if self._due > at:
            return False
        self._due = at + self._every_s
        return True

    def hasten(self) -> None:
        """Make the chore due now."""
        self._due = -inf


def chores_of(
    sites: ActiveList, progress: Progress, others: Others, shares: DomainShares | None, period_s: float
) -> list[tuple[float, Callable[[Batch], None]]]:
    """Return what is ordered from time to time, with the seconds between two times. Members renew with heartbeats."""
    publish = [] if shares is None else [(_SHARES_EVERY_S, partial(_publish_shares, shares))]
    renewals = [] if others.shared else [(others.term.lease_s / 3, partial(_renew_leases, sites))]
    return [
        *renewals,
        *publish,
        (ROBOTS_LIFE_S / 100, sites.renew_robots),
        (period_s, _tidy),
        (_LIMIT_EVERY_S, partial(_report_limit, progress, sites)),
    ]


def _renew_leases(sites: ActiveList, batch: Batch) -> None:
    batch.renewals = sites.leases()


def _tidy(batch: Batch) -> None:
    batch.tidy = True


def _report_limit(progress: Progress, sites: ActiveList, batch: Batch) -> None:
    batch.limit = RateLimit(batch.at, progress.limit(sites, batch.at))


def _publish_shares(shares: DomainShares, batch: Batch) -> None:
    batch.shares = shares.published()
