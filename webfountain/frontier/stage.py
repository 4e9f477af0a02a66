"""A stage: one optional feature of the crawl, with its action at each point of a batch.

`Stage` is in the worker thread. `worker_assembly` makes one list of stages, and `StoreWorker.run` reaches the points of
`Stage` in a fixed order. `Order` is its counterpart in the loop thread: it adds what a feature needs to a batch, and
learns from the result. `assembly` makes one list of orders, and `orders.WorkExchange` reaches their points. At each
point the stages (or orders) that define it are called, in the order of the list. A feature that is off is in neither
list. Stages do not know each other. No stage changes the order of durability.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.pages.examiner import JudgedVisit
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Outcome, SiteLease
    from webfountain.store.answers import LeaseBatch

__all__ = ["Order", "Orders", "Stage", "Stages", "methods_at"]

_Part = TypeVar("_Part")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Order:
    """An order that does nothing. A feature overrides the points at which it acts. They are listed in order of time."""

    due = -inf
    """Time from which `add` is called, UTC seconds. An order that acts from time to time sets it."""

    def add(self, batch: Batch) -> None:
        """Add to a batch what the store must do. It is called only once `due` is reached, while the crawl runs and its
        term lasts.
        """

    def before_send(self, batch: Batch) -> None:
        """Add what must not be missing from any batch."""

    def absorb(self, result: BatchResult) -> None:
        """Apply the result of a batch, before the sites do."""

    def absorbed(self, result: BatchResult) -> None:
        """Apply the result of a batch, after the sites did."""

    def adopt(self, collection: Collection) -> None:
        """Switch to an edited policy file."""


class Orders:
    """The orders of one process. For each point it lists, in order, the methods of the orders that define the point."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.add = [(order, order.add) for order in orders if type(order).add is not Order.add]
        """The orders that add to a batch, each with its method. An order is called if it is due."""
        self.before_send = methods_at(orders, Order.before_send)
        self.absorb = methods_at(orders, Order.absorb)
        self.absorbed = methods_at(orders, Order.absorbed)
        self.adopt = methods_at(orders, Order.adopt)


def methods_at(parts: Sequence[_Part], point: Callable[Concatenate[_Part, _P], _R]) -> list[Callable[_P, _R]]:
    """Return, in order, the methods that parts define for a point. A part that only inherits `point` is left out."""
    name = point.__name__
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not point]


class Stage:
    """A stage that does nothing. A feature overrides the points at which it acts, which are listed in order of time."""

    def lost(self, sites: Sequence[str]) -> None:
        """Remove sites that this process no longer holds."""

    # ---------------------------------------------- visits, before they are settled

    def judge(self, visits: Sequence[Visit], judged: Sequence[JudgedVisit]) -> Sequence[JudgedVisit]:
        """Return for each visit the record to settle and the links to follow."""
        del visits
        return judged

    def visited(self, visits: Sequence[Visit], judged: Sequence[JudgedVisit], at: float) -> None:
        """Store what the pages brought. Their copies are already written, but their links are not discovered yet."""

    def settling(self, visits: Sequence[Visit], outcomes: Sequence[Outcome], batch: Batch) -> None:
        """Learn from pages that are about to be settled."""

    # ---------------------------------------------- the store's pages and sites

    def discover_more(self, batch: Batch, result: BatchResult) -> None:
        """Discover what the batch brought besides visits: offers, sitemaps. It is not called if the batch brought
        neither offers nor sitemaps."""

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        """Carry out the rest of what the batch brought. At this point, all pages of the batch are settled."""

    def before_park(self, batch: Batch) -> None:
        """Save what is known about the sites that leave. It is not called if no site leaves."""

    def adopt(self, collection: Collection) -> None:
        """Adopt an edited policy file."""

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Make pages and sites due. At this point, sites that leave are already parked."""

    # ---------------------------------------------- sites and leases

    def choose(self, room: int) -> list[str]:
        """Return sites to activate before those that have been due longest. `room` is the number of free places."""
        del room
        return []

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        """Return the activated sites that may stay active."""
        del at
        return leases

    def before_lease(self, batch: Batch, result: BatchResult) -> None:
        """Prepare the queues, because pages are leased from them next."""

    def hurried(self, leases: list[Lease]) -> list[Lease]:
        """Return those leases of immediate pages that may be passed to their sites."""
        return leases

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Return those leased pages that their site may request."""
        del at
        return dealt

    # ---------------------------------------------- the end

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        """Read the guests of the batch from the store. It is not called if the batch has no guests."""

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Do what every batch needs, and count."""

    def tidy(self, batch: Batch) -> None:
        """Remove what is too old. It is called once per period or once per minute, whichever is longer."""

    def sign_off(self, batch: Batch) -> None:
        """Carry out the work that the last events requested. No other batch follows."""

    def close(self) -> None:
        """Release files and the store. No other method is called after this."""


class Stages:
    """The stages of one worker. For each point it lists, in order, the methods of the stages that define that point."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.lost = methods_at(stages, Stage.lost)
        self.judge = methods_at(stages, Stage.judge)
        self.visited = methods_at(stages, Stage.visited)
        self.settling = methods_at(stages, Stage.settling)
        self.discover_more = methods_at(stages, Stage.discover_more)
        self.after_settle = methods_at(stages, Stage.after_settle)
        self.before_park = methods_at(stages, Stage.before_park)
        self.adopt = methods_at(stages, Stage.adopt)
        self.before_activate = methods_at(stages, Stage.before_activate)
        self.choose = methods_at(stages, Stage.choose)
        self.activated = methods_at(stages, Stage.activated)
        self.before_lease = methods_at(stages, Stage.before_lease)
        self.hurried = methods_at(stages, Stage.hurried)
        self.leased = methods_at(stages, Stage.leased)
        self.welcome = methods_at(stages, Stage.welcome)
        self.chores = methods_at(stages, Stage.chores)
        self.tidy = methods_at(stages, Stage.tidy)
        self.sign_off = methods_at(stages, Stage.sign_off)
        self.close = methods_at(stages, Stage.close)
