"""The policy file in force, and the review of the pages that were judged by the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.orders.order import Order

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge

__all__ = ["PolicyInForce"]


class PolicyInForce(Order):
    """The judge of the policy file. `is_reviewing`: some pages were judged by an earlier file."""

    def __init__(self, judge: Judge, *, is_reviewing: bool) -> None:
        self._judge = judge
        self._is_reviewing = is_reviewing

    def add(self, batch: Batch) -> None:
        batch.review = self._is_reviewing

    def absorb(self, result: BatchResult) -> None:
        self._is_reviewing = result.reviewing

    def adopt(self, collection: Collection) -> None:
        """Switch the judge. Pages that it refuses are not requested from now on."""
        self._judge.adopt(collection)
