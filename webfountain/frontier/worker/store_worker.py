"""The store worker: carry out batches on the store and the repository, in one worker thread.

The order of steps is the order of durability (DESIGN.md section 3). Bodies are written, then links are discovered,
then leases are settled. Only then are sites parked and activated, and new leases taken. A crash between two steps
repeats fetches and loses nothing. Each optional feature is a `Stage`. This module does not know which stages exist.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

import msgspec

from webfountain.frontier.batch import BatchResult
from webfountain.frontier.rate_limit import LIMIT
from webfountain.frontier.sites.domain_shares import SHARES
from webfountain.policy.edits import CollectionInForce
from webfountain.store.contract import COLLECTION, PLAN, PRICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.inbox.seeds import Entrance
    from webfountain.frontier.loss_recovery import LossRecovery
    from webfountain.frontier.planning.freshness_estimate import FreshnessEstimate
    from webfountain.frontier.worker.leasing import Leasing
    from webfountain.frontier.worker.settlement import Settlement
    from webfountain.frontier.worker.stage import Stages
    from webfountain.frontier.worker.stocktaking import Stocktaking
    from webfountain.policy.collection import Collection
    from webfountain.store.contract import Board, FrontierStore

__all__ = ["Publisher", "StoreWorker"]

_T = TypeVar("_T")


class StoreWorker:
    """Carries out batches on the store and the repository. Only one thread may use it at a time."""

    def __init__(
        self,
        store: FrontierStore,
        *,
        stages: Stages,
        settlement: Settlement,
        leasing: Leasing,
        stocktaking: Stocktaking,
        recovery: LossRecovery,
        freshness: FreshnessEstimate,
        entrance: Entrance,
    ) -> None:
        self._store = store
        self._stages = stages
        self._settlement = settlement
        self._leasing = leasing
        self._publisher = Publisher(store.board)
        self._stocktaking = stocktaking
        self._recovery = recovery
        self.freshness = freshness
        """Estimate of how much of the collection is fresh."""
        self.entrance = entrance
        """Entrance of URLs that come from outside: seeds, the links of a caller."""

    def run(self, batch: Batch) -> BatchResult:
        """Carry out a batch. Errors of the store and the repository are raised; work that was not done is not
        acknowledged.
        """
        result = BatchResult(batch)
        self._recovery.apply(result)
        if batch.renewals:
            self._leasing.renew(batch, result)
        self._settlement.settle(batch, result)
        for after_settle in self._stages.after_settle:
            after_settle(batch, result)
        if batch.released:
            result.counts["ant/released"] += self._store.queues.release(batch.released)
        if batch.parked:
            for before_park in self._stages.before_park:
                before_park(batch)
            self._store.sites.park(batch.parked, at=batch.at)
        self._adopt_collection(batch)
        for before_activate in self._stages.before_activate:
            before_activate(batch, result)
        is_asked = self._leasing.activate(batch, result)
        self._leasing.lease(batch, result)
        for welcome in self._stages.welcome if batch.guests else ():
            welcome(batch, result)
        for chores in self._stages.chores:
            chores(batch, result)
        for tidy in self._stages.tidy if batch.tidy else ():
            tidy(batch)
        self._publisher.publish(batch)
        self._stocktaking.report(batch, result, is_asked=is_asked)
        self._recovery.apply(result)
        return result

    def _adopt_collection(self, batch: Batch) -> None:
        """Adopt a policy file that was edited."""
        if batch.collection is not None:
            self._publisher.publish_collection(batch.collection)
            for adopt in self._stages.adopt:
                adopt(batch.collection)

    def on_store(self, function: Callable[[FrontierStore], _T]) -> _T:
        """Call a function with the store and return its result. It must not interfere with batches."""
        return function(self._store)

    def give_back(self, batch: Batch) -> None:
        """Give back the sites and leases of the last batch. No other batch follows."""
        self._store.queues.release(batch.released)
        self._store.sites.park(batch.parked, at=batch.at)
        for sign_off in self._stages.sign_off:
            sign_off(batch)

    def close(self) -> None:
        """Close all stages and the store, even if one of them raises an error. The error then passes through."""
        with ExitStack() as closing:
            closing.callback(self._store.close)
            for close in self._stages.close:
                closing.callback(close)


class Publisher:
    """Writes published values to the store. The price and the rate limit are written only when they change."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._price: float | None = None
        self._limit: str | None = None

    def publish_collection(self, collection: Collection) -> None:
        """Publish the policy file that was adopted."""
        self._board.put_value(COLLECTION, CollectionInForce.encode(collection))

    def publish(self, batch: Batch) -> None:
        """Publish the other values of a batch."""
        if batch.plan is not None:
            self._board.put_value(PLAN, batch.plan)
        if batch.price is not None and batch.price != self._price and batch.rules:
            self._price = batch.price
            self._board.put_value(PRICE, msgspec.msgpack.encode(batch.price))
        if batch.limit is not None and batch.limit.words != self._limit:
            self._limit = batch.limit.words
            self._board.put_value(LIMIT, msgspec.msgpack.encode(batch.limit))
        if batch.shares is not None:
            self._board.put_value(SHARES, msgspec.msgpack.encode(batch.shares))
