"""Polls: how often a batch reads the store for news: notes, letters, counts, ranks, what still waits.

Place in the walk: in each batch. A busy process polls twice a second, an idle one less and less often.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.frontier.order import Order

if TYPE_CHECKING:
    import random

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy.collection import Collection
    from webfountain.ranking.policy_weights import PolicyWeights

__all__ = ["COUNTS", "POLLS", "POLL_INTERVAL_S", "IdleCheck", "IdleInterval", "PollTimer", "Polls", "RankTurns"]

POLL_INTERVAL_S: Final = 0.5
"""Interval, s, at which a busy process polls the store for messages from other processes."""
_RANKS_EVERY_S: Final = 2.0
_IDLE_CHECK_EVERY_S: Final = 2.0


class IdleInterval(NamedTuple):
    """The longest poll interval of an idle process: `each_s` times the number of processes, at most `longest_s`."""

    each_s: float
    longest_s: float


POLLS: Final = IdleInterval(1 / 8, 10.0)
"""Interval for notes, letters and sites. Up to 80 idle processes together poll eight times per second, so that a note
waits no longer with many processes than with one.
"""


COUNTS: Final = IdleInterval(1 / 16, 60.0)
"""Interval for the counts of a shared store, which are a sum over all its shards."""


class PollTimer:
    """A timer for polls of the store: twice per second while busy; while idle, the interval doubles each time, with
    jitter.

    The jitter keeps a thousand processes that became idle together from polling together.
    """

    __slots__ = ("_due", "_last", "_pause", "_rng", "_seldom")

    def __init__(self, seldom: IdleInterval, *, rng: random.Random, start: float) -> None:
        self._seldom = seldom
        self._rng = rng
        self._pause = POLL_INTERVAL_S
        self._last = -inf
        self._due = start

    def due(self, at: float, *, idle: bool, processes: int) -> bool:
        """Return whether to poll now; if so, the poll counts as done. A process that is no longer idle does not wait
        for the end of its pause.
        """
        if not idle:
            self._pause = POLL_INTERVAL_S
            self._due = min(self._due, self._last + POLL_INTERVAL_S)
        if self._due > at:
            return False
        more = self._pause - POLL_INTERVAL_S
        self._last, self._due = at, at + POLL_INTERVAL_S + (more * self._rng.uniform(0.5, 1.0) if more else 0.0)
        longest = max(min(self._seldom.each_s * processes, self._seldom.longest_s), POLL_INTERVAL_S)
        self._pause = min(2 * self._pause, longest)
        return True


class Polls(Order):
    """The polls of one process."""

    def __init__(
        self, others: Others, sites: ActiveList, progress: Progress, *, rng: random.Random, start: float
    ) -> None:
        self._others = others
        self._sites = sites
        self._progress = progress
        self._inbox = PollTimer(POLLS, rng=rng, start=start)
        self._counts = PollTimer(COUNTS, rng=rng, start=start)
        self.is_idle = False
        """Whether this process, one of several, has nothing to do. It then polls less and less often."""

    def add(self, batch: Batch) -> None:
        at, others = batch.at, self._others
        self.is_idle = others.shared and not batch.holds_sites and not self._progress.is_busy(self._sites, batch)
        batch.inbox = self._inbox.due(at, idle=self.is_idle, processes=others.ants)
        batch.count = batch.inbox and self._counts.due(at, idle=self.is_idle, processes=others.ants)
        batch.immediate = batch.inbox or bool(self._progress.stored.immediate)


class RankTurns(Order):
    """The turns of ranking, which bring new importances of pages into the store.

    An idle ant ranks only when it reads its inbox. `weights` follow the policy file.
    """

    def __init__(self, weights: PolicyWeights, polls: Polls) -> None:
        self._weights = weights
        self._polls = polls

    def add(self, batch: Batch) -> None:
        if batch.inbox or not self._polls.is_idle:
            batch.rank = True
            self.due = batch.at + _RANKS_EVERY_S

    def adopt(self, collection: Collection) -> None:
        self._weights.adopt(collection)


class IdleCheck(Order):
    """The count of what waits, by which a crawl with `--until-idle` finds its end, while all processes are idle."""

    def __init__(self, progress: Progress, sites: ActiveList, others: Others) -> None:
        self._progress = progress
        self._sites = sites
        self._others = others

    def add(self, batch: Batch) -> None:
        if self._progress.is_resting(batch.at, self._sites, batch) and self._others.idle_since() is not None:
            batch.count_waiting = True
            self.due = batch.at + _IDLE_CHECK_EVERY_S
