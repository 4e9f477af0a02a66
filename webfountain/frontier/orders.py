"""Fill each batch with work for the worker thread, and apply the batch's result in the loop thread.

Life of an order
----------------
Events write into the open batch (`OpenBatch`). Before `WorkExchange.take` returns the batch, each due order
(`stage.Order`) adds work for its part of the crawl. Examples of orders are leases and sites (`SiteSupply`), periodic
work (`Chores`) and polls for messages (`Polls`). After the worker has carried out the batch, each order reads the
result. `assembly` lists the orders.

A busy process polls the store twice per second. If several processes share a store, idle processes poll less often, to
reduce the server's load (`PollTimer`).
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.batch import Batch
from webfountain.frontier.sites.site_files import ROBOTS_LIFE_S
from webfountain.frontier.sites.site_table import BLOCKED_S, is_busy
from webfountain.frontier.stage import Order

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from webfountain.clock import Clock
    from webfountain.frontier.batch import BatchResult
    from webfountain.frontier.cluster.membership import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.sites.domain_shares import DomainShares
    from webfountain.frontier.stage import Orders
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.ranking.policy_weights import PolicyWeights

__all__ = [
    "COUNT_EACH_S",
    "COUNT_LONGEST_S",
    "POLL_EACH_S",
    "POLL_INTERVAL_S",
    "POLL_LONGEST_S",
    "Chores",
    "IdleCheck",
    "LimitReport",
    "OpenBatch",
    "PollTimer",
    "Polls",
    "RankTurns",
    "ShareCheck",
    "SiteSupply",
    "WorkExchange",
    "chores_of",
]

_LIMIT_FIRST_S: Final = 0.5
_LIMIT_EVERY_S: Final = 10.0
"""Shortest and longest interval between two reports of what limits the rate of fetches, in seconds."""
_SHARES_EVERY_S: Final = 5.0
_IDLE_CHECK_EVERY_S: Final = 2.0
POLL_INTERVAL_S: Final = 0.5
"""Interval at which a busy process polls the store for messages, in seconds."""
POLL_EACH_S: Final = 1 / 8
POLL_LONGEST_S: Final = 10.0
"""Longest interval between two polls of an idle process, in seconds. With few processes, the longest interval is only
POLL_EACH_S times their number. Together, up to 80 idle processes send the server about eight polls per second.
"""
COUNT_EACH_S: Final = 1 / 16
COUNT_LONGEST_S: Final = 60.0
"""Limits on the interval between two reads of the counts of a shared store, in seconds. COUNT_EACH_S is multiplied by
the number of processes.
"""
_RANKS_EVERY_S: Final = 2.0


class OpenBatch:
    """The batch that the loop thread is filling and has not sent yet."""

    def __init__(self, clock: Clock) -> None:
        self.now: Callable[[], float] = clock.now
        """Function that returns the clock's time, UTC seconds."""
        self._batch = Batch(clock.now())

    def gather(self) -> Batch:
        """Return the open batch, into which the caller may write."""
        self._batch.at = self.now()
        return self._batch

    def send(self) -> Batch | None:
        """Return the open batch and begin a new one; return None if the open batch contains no work."""
        if not self._batch.is_needed():
            return None
        sent = self._batch
        self._batch = Batch(sent.at, schedule=sent.schedule)
        return sent


class WorkExchange:
    """Exchanges batches with the worker. `is_unfinished` is True if an earlier process has left a pass over the store
    unfinished.
    """

    def __init__(
        self,
        batches: OpenBatch,
        *,
        sites: ActiveList,
        progress: Progress,
        others: Others,
        orders: Orders,
        metrics: Metrics,
        judge: Judge,
        is_unfinished: bool,
    ) -> None:
        self.batches = batches
        """The open batch, into which events write."""
        self._sites = sites
        self._progress = progress
        self._others = others
        self.orders = orders
        """The orders of the crawl."""
        self._metrics = metrics
        self._judge = judge
        self._is_unfinished = is_unfinished

    def take(self) -> Batch | None:
        """Return the next batch for the worker, or None if there is nothing to do or the worker has a batch."""
        if self._progress.working:
            return None
        batch = self.batches.gather()
        if not (self._progress.stopped or any(has_lapsed() for has_lapsed in self.orders.has_lapsed)):
            batch.rules, batch.unfinished = self._others.rules, self._is_unfinished
            for order, add in self.orders.add:
                if order.due <= batch.at:
                    add(batch)
        for before_send in self.orders.before_send:
            before_send(batch)
        sent = self.batches.send()
        self._progress.working = sent is not None
        return sent

    def absorb(self, result: BatchResult) -> None:
        """Apply the result of a batch."""
        self._progress.absorb(result)
        self._metrics.add(result.counts)
        self._is_unfinished = result.unfinished
        for absorb in self.orders.absorb:
            absorb(result)
        self._sites.take_in(result, self.batches.gather())
        for absorbed in self.orders.absorbed:
            absorbed(result)

    def adopt(self, collection: Collection) -> None:
        """Adopt an edited policy file. The caller must load the seeds of the edited file."""
        self._judge.adopt(collection)
        for adopt in self.orders.adopt:
            adopt(collection)
        batch = self.batches.gather()
        batch.collection = collection
        self._sites.judge_again(batch)


class Chores(Order):
    """The chores of one process, each with its interval in seconds."""

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


def chores_of(
    sites: ActiveList, others: Others, shares: DomainShares | None, period_s: float
) -> list[tuple[float, Callable[[Batch], None]]]:
    """Return the periodic chores, each with its interval, in seconds. A lone ant has one more chore, which renews its
    site leases. If several ants share the store, heartbeats renew the leases.
    """
    publish = [] if shares is None else [(_SHARES_EVERY_S, partial(_publish_shares, shares))]
    renewals = [] if others.shared else [(others.lease_s / 3, partial(_renew_leases, sites))]
    return [
        *renewals,
        *publish,
        (ROBOTS_LIFE_S / 100, sites.renew_robots),
        (period_s, _tidy),
    ]


def _renew_leases(sites: ActiveList, batch: Batch) -> None:
    batch.renewals = sites.leases()


def _tidy(batch: Batch) -> None:
    batch.tidy = True


def _publish_shares(shares: DomainShares, batch: Batch) -> None:
    batch.shares = shares.published()


class LimitReport(Order):
    """Reports to the store what limits the rate of fetches: often in the first seconds of a crawl, when the limit
    changes with each step, and later every `_LIMIT_EVERY_S`.
    """

    def __init__(self, progress: Progress, *, start: float) -> None:
        self._progress = progress
        self._start = start

    def add(self, batch: Batch) -> None:
        batch.limit = self._progress.limit(batch.at)
        self.due = batch.at + min(max(batch.at - self._start, _LIMIT_FIRST_S), _LIMIT_EVERY_S)


class ShareCheck(Order):
    """Compares the numbers of busy and blocked domains that have leased pages."""

    def __init__(self, shares: DomainShares, sites: ActiveList) -> None:
        self._shares = shares
        self._sites = sites

    def add(self, batch: Batch) -> None:
        at, sites = batch.at, self._sites
        idle = not len(sites.flights) and sites.addresses.ring.wake_at() == inf
        found = (
            (site.domain, is_busy(site, at + BLOCKED_S))
            for site in sites.sites
            if site.domain is not None and site.pages.has_leased()
        )
        sites.flights.wake(self._shares.check(at, found, idle=idle))


class IdleCheck(Order):
    """Looks for never-crawled pages that are due soon, while all processes are idle. A crawl with `--until-idle` ends
    if no never-crawled page is due soon.
    """

    def __init__(self, progress: Progress, others: Others) -> None:
        self._progress = progress
        self._others = others

    def add(self, batch: Batch) -> None:
        if self._progress.is_resting(batch) and self._others.idle_since() is not None:
            batch.count_waiting = True
            self.due = batch.at + _IDLE_CHECK_EVERY_S


class SiteSupply(Order):
    """Takes sites from the store, parks sites, and removes unused addresses. If there are several ants, no ant takes
    many more sites than the others.
    """

    def __init__(self, sites: ActiveList, progress: Progress, others: Others) -> None:
        self._sites = sites
        self._progress = progress
        self._others = others
        self._due = -inf  # when the first site without an owner is due, as the store last reported

    def add(self, batch: Batch) -> None:
        sites, addresses = self._sites.sites, self._sites.addresses
        if addresses.empty:
            addresses.sweep(batch.at)
        if sites.hungry and not self._progress.congested():
            sites.refill(batch)
        batch.holds_sites = bool(sites.by_name)
        batch.immediate = bool(self._progress.stored.immediate)
        batch.guests = [*sites.file_requests.by_host]
        if self._due <= batch.at:
            batch.room = self._room()

    def before_send(self, batch: Batch) -> None:
        """Park the sites that have nothing due or must be left alone. If the active list is full and other sites are
        due, park sites that have had many fetches.
        """
        sites = self._sites.sites
        is_full = self._due <= batch.at and not self._sites.room()
        if is_full or sites.quiet or sites.resting or self._others.shared:
            self._due = min(self._due, self._sites.departures.park_idle(batch, is_full=is_full))

    def absorb(self, result: BatchResult) -> None:
        self._due = inf if result.next_site_due is None else result.next_site_due

    def _room(self) -> int:
        """Return how many more sites this process may take from the store."""
        if self._progress.lacks_room:
            return 0
        room, most = self._sites.room(), self._others.most_sites(self._progress.stored.sites)
        return room if most is None else max(min(room, most - len(self._sites.leases())), 0)


class PollTimer:
    """A timer for polls of the store, twice per second while the process is busy.

    While the process is idle, the interval doubles with each poll. The longest interval is `longest_s`, or `each_s`
    times the number of processes if that is less. Each interval is partly random, so that processes that became idle at
    the same time do not poll at the same time.
    """

    __slots__ = ("_due", "_each_s", "_last", "_longest_s", "_pause", "_rng")

    def __init__(self, each_s: float, longest_s: float, *, rng: random.Random, start: float) -> None:
        self._each_s = each_s
        self._longest_s = longest_s
        self._rng = rng
        self._pause = POLL_INTERVAL_S
        self._last = -inf
        self._due = start

    def due(self, at: float, *, idle: bool, processes: int) -> bool:
        """Return whether a poll is due, and if so record the poll. If the process is no longer idle, the next poll
        becomes due earlier.
        """
        if not idle:
            self._pause = POLL_INTERVAL_S
            self._due = min(self._due, self._last + POLL_INTERVAL_S)
        if self._due > at:
            return False
        more = self._pause - POLL_INTERVAL_S
        self._last, self._due = at, at + POLL_INTERVAL_S + (more * self._rng.uniform(0.5, 1.0) if more else 0.0)
        longest = max(min(self._each_s * processes, self._longest_s), POLL_INTERVAL_S)
        self._pause = min(2 * self._pause, longest)
        return True


class Polls(Order):
    """Decides when a batch makes the worker read the inbox, the counts and the immediate URLs."""

    def __init__(self, others: Others, progress: Progress, *, rng: random.Random, start: float) -> None:
        self._others = others
        self._progress = progress
        self._inbox = PollTimer(POLL_EACH_S, POLL_LONGEST_S, rng=rng, start=start)
        self._counts = PollTimer(COUNT_EACH_S, COUNT_LONGEST_S, rng=rng, start=start)
        self.is_idle = False
        """True if several processes share the store and this one has nothing to do."""

    def add(self, batch: Batch) -> None:
        at, others = batch.at, self._others
        self.is_idle = others.shared and not batch.holds_sites and not self._progress.is_busy(batch)
        batch.inbox = self._inbox.due(at, idle=self.is_idle, processes=others.ants)
        batch.count = batch.inbox and self._counts.due(at, idle=self.is_idle, processes=others.ants)
        batch.immediate |= batch.inbox
        if not others.shared:  # then it is never idle
            self.due = at + POLL_INTERVAL_S


class RankTurns(Order):
    """Asks the worker every two seconds to compute importances of pages."""

    def __init__(self, weights: PolicyWeights, polls: Polls) -> None:
        self._weights = weights
        self._polls = polls

    def add(self, batch: Batch) -> None:
        if batch.inbox or not self._polls.is_idle:
            batch.rank = True
            self.due = batch.at + _RANKS_EVERY_S

    def adopt(self, collection: Collection) -> None:
        self._weights.adopt(collection)
