"""The order to bring new importances of pages into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.orders.order import Order
from webfountain.frontier.timers import ChoreTimer

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.orders.polls import Polls
    from webfountain.policy.collection import Collection
    from webfountain.ranking.policy_weights import PolicyWeights

__all__ = ["RankTurns"]

_EVERY_S: Final = 2.0


class RankTurns(Order):
    """The turns of ranking. An idle ant ranks only when it reads its inbox. `weights` follow the policy file."""

    def __init__(self, weights: PolicyWeights, polls: Polls, *, start: float) -> None:
        self._weights = weights
        self._polls = polls
        self._timer = ChoreTimer(_EVERY_S, start=start)

    def add(self, batch: Batch) -> None:
        batch.rank = (batch.inbox or not self._polls.is_idle) and self._timer.take(batch.at)

    def adopt(self, collection: Collection) -> None:
        self._weights.adopt(collection)
