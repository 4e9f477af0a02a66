"""Polls of the store: how often one process reads notes, letters, counts and ranks.

A busy process polls twice per second. An idle one, among several, polls less and less often, because a thousand idle
processes would otherwise be most of the server's load. Place in the walk: these orders are called for each batch
(`orders`) that is due; the worker reads what they add.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Order

if TYPE_CHECKING:
    import random

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.membership import Others
    from webfountain.frontier.progress import Progress
    from webfountain.policy.collection import Collection
    from webfountain.ranking.policy_weights import PolicyWeights

__all__ = [
    "COUNT_EACH_S",
    "COUNT_LONGEST_S",
    "POLL_EACH_S",
    "POLL_INTERVAL_S",
    "POLL_LONGEST_S",
    "PollTimer",
    "Polls",
    "RankTurns",
]

POLL_INTERVAL_S: Final = 0.5
"""Interval, s, at which a busy process polls the store for messages from other processes."""
POLL_EACH_S: Final = 1 / 8
POLL_LONGEST_S: Final = 10.0
"""The longest interval of an idle process for notes, letters and sites, s: the first number times the number of
processes, but at most the second number. Up to 80 idle processes together poll eight times per second, so a note waits
for the same time, whether there are many processes or one.
"""
COUNT_EACH_S: Final = 1 / 16
COUNT_LONGEST_S: Final = 60.0
"""The same two numbers for the counts of a shared store, which are a sum over all its shards."""
_RANKS_EVERY_S: Final = 2.0


class PollTimer:
    """A timer for polls of the store: twice per second while busy; while idle, the interval doubles each time, with
    jitter, up to `each_s` times the number of processes and at most `longest_s`.

    The jitter keeps a thousand processes that became idle together from polling together.
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
        longest = max(min(self._each_s * processes, self._longest_s), POLL_INTERVAL_S)
        self._pause = min(2 * self._pause, longest)
        return True


class Polls(Order):
    """Decides with which batches the worker polls the inbox, the counts and the immediate URLs."""

    def __init__(self, others: Others, progress: Progress, *, rng: random.Random, start: float) -> None:
        self._others = others
        self._progress = progress
        self._inbox = PollTimer(POLL_EACH_S, POLL_LONGEST_S, rng=rng, start=start)
        self._counts = PollTimer(COUNT_EACH_S, COUNT_LONGEST_S, rng=rng, start=start)
        self.is_idle = False
        """Whether this process, one of several, has nothing to do. It then polls less and less often."""

    def add(self, batch: Batch) -> None:
        at, others = batch.at, self._others
        self.is_idle = others.shared and not batch.holds_sites and not self._progress.is_busy(batch)
        batch.inbox = self._inbox.due(at, idle=self.is_idle, processes=others.ants)
        batch.count = batch.inbox and self._counts.due(at, idle=self.is_idle, processes=others.ants)
        batch.immediate |= batch.inbox
        if not others.shared:  # then it is never idle
            self.due = at + POLL_INTERVAL_S


class RankTurns(Order):
    """The turns of ranking, which bring new importances of pages into the store.

    An idle ant ranks only when it reads its inbox. `weights` are replaced when the policy file is edited.
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
