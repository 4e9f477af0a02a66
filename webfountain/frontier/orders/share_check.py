"""The check of how many domains have reached their share of the fetches (`sites.domain_shares`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.order import Order
from webfountain.frontier.orders.chores import ChoreTimer

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.sites.domain_shares import DomainShares

__all__ = ["ShareCheck"]

_PUBLISHED_EVERY_S: Final = 5.0


class ShareCheck(Order):
    """The check with each batch. The result is published for readers of the store from time to time."""

    def __init__(self, shares: DomainShares, sites: ActiveList, *, start: float) -> None:
        self._shares = shares
        self._sites = sites
        self._timer = ChoreTimer(_PUBLISHED_EVERY_S, start=start)

    def add(self, batch: Batch) -> None:
        self._sites.divide(self._shares, batch.at)
        if self._timer.take(batch.at):
            batch.shares = self._shares.published()
