"""Publish values other than pages: the plan, the price, what limits the rate, shares of domains.

Place in the walk: near the end of each batch. Other processes and the next crawl read these values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.sites.domain_shares import SHARES
from webfountain.policy.edits import CollectionInForce
from webfountain.store.contract import COLLECTION, PLAN, PRICE

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.policy.collection import Collection
    from webfountain.store.contract import Board

__all__ = ["Publisher"]


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
            batch.limit.publish(self._board)
        if batch.shares is not None:
            self._board.put_value(SHARES, msgspec.msgpack.encode(batch.shares))
