"""An order: what one feature of the loop thread puts into a batch, and what it learns from the result.

Place in the walk: in the loop thread, around the way of a batch to the worker thread. It is the counterpart of a
`worker.stage`. `assembly` makes one list of orders. A feature that is off is not in the list.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.collection import Collection

__all__ = ["Order", "Orders", "methods_at"]

_Part = TypeVar("_Part")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Order:
    """An order that does nothing. A feature overrides the points at which it acts. They are listed in order of time."""

    due = -inf
    """Time from which `add` is called, UTC seconds. An order that acts from time to time sets it."""

    def add(self, batch: Batch) -> None:
        """Add to a batch what the store must do. Not called before `due`, once the crawl stops, or after the term."""

    def before_send(self, batch: Batch) -> None:
        """Add what must not be missing from any batch."""

    def absorb(self, result: BatchResult) -> None:
        """Apply the result of a batch, before the sites do."""

    def absorbed(self, result: BatchResult) -> None:
        """Apply the result of a batch, after the sites did."""

    def adopt(self, collection: Collection) -> None:
        """Switch to an edited policy file."""


class Orders:
    """The orders of one process. For each point it lists, in order, the methods of those that define that point."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.add = [(order, order.add) for order in orders if type(order).add is not Order.add]
        """Those that add to a batch; each is called if it is due."""
        self.before_send = methods_at(orders, Order.before_send)
        self.absorb = methods_at(orders, Order.absorb)
        self.absorbed = methods_at(orders, Order.absorbed)
        self.adopt = methods_at(orders, Order.adopt)


def methods_at(parts: Sequence[_Part], point: Callable[Concatenate[_Part, _P], _R]) -> list[Callable[_P, _R]]:
    """Return, in order, the methods that parts define for a point. A part that inherits `point` does nothing there."""
    name = point.__name__
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not point]
