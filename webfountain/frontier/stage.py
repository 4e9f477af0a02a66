"""Base classes of stages and orders, through which an optional feature takes part in each batch.

A `Stage` acts in the worker thread. `worker_assembly` makes a list of stages, and `StoreWorker.run` calls the methods
of all stages at fixed points. An `Order` acts in the loop thread. `assembly` makes a list of orders, and
`orders.WorkExchange` calls their methods. A feature that is switched off has neither a stage nor an order. Stages do
not know each other.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Outcome, SiteLease
    from webfountain.store.answers import LeaseBatch

__all__ = ["Order", "Orders", "Stage", "Stages", "methods_at"]

_Part = TypeVar("_Part")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Order:
    """The base class of orders; a feature overrides the methods that it needs. `WorkExchange` calls the methods in the
    sequence in which the class lists them.
    """

    due = -inf
    """`add` is not called before this time, UTC seconds."""

    def has_lapsed(self) -> bool:
        """Return whether this ant's leases are invalid now, so that it may neither fetch nor take work."""
        return False

    def add(self, batch: Batch) -> None:
        """Add work for the store to a batch. The method is not called before `due`, after the crawl was stopped, or
        while this ant's leases are invalid.
        """

    def before_send(self, batch: Batch) -> None:
        """Add work to a batch just before it is sent to the worker, even if the crawl was stopped."""

    def absorb(self, result: BatchResult) -> None:
        """Apply a batch's result before the result is passed to the active sites."""

    def absorbed(self, result: BatchResult) -> None:
        """Apply a batch's result after the result was passed to the active sites."""

    def adopt(self, collection: Collection) -> None:
        """Switch to an edited policy file."""


class Orders:
    """The orders of a crawl. Each attribute lists the methods with the attribute's name, in the order in which they are
    called.
    """

    def __init__(self, orders: Sequence[Order]) -> None:
        self.has_lapsed = methods_at(orders, Order.has_lapsed)
        self.add = [(order, order.add) for order in orders if type(order).add is not Order.add]
        """The `add` methods, each with the `Order` to which it belongs."""
        self.before_send = methods_at(orders, Order.before_send)
        self.absorb = methods_at(orders, Order.absorb)
        self.absorbed = methods_at(orders, Order.absorbed)
        self.adopt = methods_at(orders, Order.adopt)


def methods_at(parts: Sequence[_Part], point: Callable[Concatenate[_Part, _P], _R]) -> list[Callable[_P, _R]]:
    """Return the method `point` of each part that overrides it, in the order of `parts`."""
    name = point.__name__
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not point]


class Stage:
    """The base class of stages; a feature overrides the methods that it needs. The worker calls the methods in the
    sequence in which the class lists them.
    """

    def lost(self, sites: Sequence[str]) -> None:
        """Remove sites that this process no longer holds."""

    # ---------------------------------------------- visits, before they are settled

    def judge(self, visits: Sequence[Visit]) -> Sequence[Visit]:
        """Return the visits, each with the record to settle and with the links to follow."""
        return visits

    def redirected(self, visits: Sequence[Visit]) -> None:
        """Save what was learned from redirects, before their pages are settled."""

    def visited(self, visits: Sequence[Visit], at: float) -> None:
        """Save what was learned from the fetched pages, after their copies are written and before their links are
        discovered.
        """

    def settling(self, visits: Sequence[Visit], outcomes: Sequence[Outcome], batch: Batch) -> None:
        """Learn from visits that are about to be settled."""

    # ---------------------------------------------- the store's pages and sites

    def discover_more(self, batch: Batch, result: BatchResult) -> None:
        """Add to the store the requests of a batch and the links in its sitemaps."""

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        """Do the work that must wait until all pages of the batch are settled."""

    def before_park(self, batch: Batch) -> None:
        """Save what is known about the sites that are about to be parked."""

    def adopt(self, collection: Collection) -> None:
        """Adopt an edited policy file."""

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Make pages and sites due. When this method is called, sites that leave the active list are already parked."""

    # ---------------------------------------------- sites and leases

    def choose(self, room: int) -> list[str]:
        """Return the sites that must be activated before all others. `room` is the number of free places in the active
        list.
        """
        del room
        return []

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        """Return the activated sites that may stay active."""
        del at
        return leases

    def before_lease(self, batch: Batch, result: BatchResult) -> None:
        """Prepare the store's queues before pages are leased."""

    def hurried(self, leases: list[Lease]) -> list[Lease]:
        """Return the leases of those immediate pages that may be fetched."""
        return leases

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Return the leased pages that may be requested."""
        del at
        return dealt

    # ---------------------------------------------- the end

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        """Read from the store the states of guests: sites from which other sites need a file."""

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Do work that every batch needs, such as counting."""

    def tidy(self, batch: Batch) -> None:
        """Remove old data from the store. The method is called once per period, or once per minute if periods are
        shorter.
        """

    def sign_off(self, batch: Batch) -> None:
        """Finish the feature's work with the last batch of the crawl."""

    def close(self) -> None:
        """Close files and connections at the end of the crawl."""


class Stages:
    """The stages of a crawl. Each attribute lists the methods with the attribute's name, in the order in which they are
    called.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.lost = methods_at(stages, Stage.lost)
        self.judge = methods_at(stages, Stage.judge)
        self.redirected = methods_at(stages, Stage.redirected)
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
