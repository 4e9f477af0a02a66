"""Sequencers: small objects that choose the next item (Edwards 2001 section 3, Figure 1).

A sequencer has a backlog, a time from which on it has an item, and a next item. It can be loaded and flushed.
Sequencers combine into trees. Leaves are queues: `Fifo`, `ValueQueue` and `Immediate`. Combiners join sequencers:
`FirstOf` (the immediate queue before all others), `WeightedRandom` (never-crawled against recrawl) and `RoundRobin`
(many members, the active list). `GatedSequencer` adds politeness (`ring`). Each sequencer also states from when on it
has an urgent item, so that items of an `Immediate` come first through every tier. None of them knows URLs, reads a
clock, or does I/O.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Fifo", "FirstOf", "Immediate", "Sequencer", "ValueQueue", "WeightedRandom"]

T = TypeVar("T")


class Sequencer(Protocol[T]):
    """The interface of all sequencers. `at` is the present time in UTC seconds."""

    def backlog(self) -> int:
        """Return how many items it holds."""
        ...

    def wake_at(self) -> float:
        """Return from when on `next` has an item; inf if that needs new items or a landing."""
        ...

    def hurry_at(self) -> float:
        """Return from when on `next` serves an `Immediate`, not before `wake_at`; inf if none holds an item."""
        ...

    def worth(self) -> float:
        """Return the worth of the next item; inf for an item for which others wait, -inf if there is none. O(1)."""
        ...

    def next(self, at: float) -> T | None:
        """Remove and return the next item; None if none is available at `at`."""
        ...

    def flush(self) -> list[T]:
        """Remove and return all items, in order."""
        ...


class Fifo(Generic[T]):
    """Queue, first come, first served."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.items = deque(items)

    def load(self, items: Iterable[T]) -> None:
        """Append items."""
        self.items.extend(items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def backlog(self) -> int:
        return len(self.items)

    def wake_at(self) -> float:
        return -inf if self.items else inf

    def hurry_at(self) -> float:
        return inf

    def worth(self) -> float:
        return inf if self.items else -inf

    def next(self, at: float) -> T | None:
        return self.items.popleft() if self.items else None

    def flush(self) -> list[T]:
        held = list(self.items)
        self.items.clear()
        return held


class ValueQueue(Fifo[T]):
    """Queue, first come, first served, of items that have a worth (`value`)."""

    __slots__ = ("_value",)

    def __init__(self, value: Callable[[T], float]) -> None:
        super().__init__()
        self._value = value

    def worth(self) -> float:
        return self._value(self.items[0]) if self.items else -inf


class Immediate(Fifo[T]):
    """Queue, first come, first served, of urgent items: while it holds any, the sequencers that contain it come before
    all others.
    """

    __slots__ = ()

    def hurry_at(self) -> float:
        return -inf if self.items else inf


def _soonest_wake(members: Iterable[Sequencer[T]]) -> float:
    """Return when the first of the members has an item. It runs twice per fetch, and a loop takes half as long as
    `min`.
    """
    soonest = inf
    for member in members:
        due = member.wake_at()
        soonest = min(soonest, due)
    return soonest


class FirstOf(Generic[T]):
    """Serves the first member with an available item: strict precedence."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Sequencer[T]]) -> None:
        self._members = members

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members)

    def wake_at(self) -> float:
        return _soonest_wake(self._members)

    def hurry_at(self) -> float:
        # This applies also while an earlier member has an item: it blocks the urgent item, so it is urgent, too.
        soonest = inf
        for member in self._members:
            hurry = member.hurry_at()
            soonest = min(soonest, hurry)
        return soonest

    def worth(self) -> float:
        return next((worth for member in self._members if (worth := member.worth()) > -inf), -inf)

    def next(self, at: float) -> T | None:
        for member in self._members:
            if member.wake_at() <= at:
                return member.next(at)
        return None

    def flush(self) -> list[T]:
        return [item for member in self._members for item in member.flush()]


class WeightedRandom(Generic[T]):
    """Draws one of the available members by weight. It joins a site's two queues.

    `weights` is called at every choice, so a new plan takes effect at once and no queue is rebuilt. A member of weight
    0 is served only while no other member has an item.
    """

    __slots__ = ("_members", "_rng", "_weights")

    def __init__(
        self, members: Sequence[Sequencer[T]], weights: Callable[[], Sequence[float]], rng: random.Random
    ) -> None:
        self._members = members
        self._weights = weights
        self._rng = rng

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members)

    def wake_at(self) -> float:
        return _soonest_wake(self._members)

    def hurry_at(self) -> float:
        return inf  # The draw may choose a member other than the urgent one.

    def worth(self) -> float:
        return max(member.worth() for member in self._members)

    def next(self, at: float) -> T | None:
        open_members = [i for i, member in enumerate(self._members) if member.wake_at() <= at]
        if not open_members:
            return None
        if len(open_members) == 1:
            return self._members[open_members[0]].next(at)
        weights = self._weights()
        chosen = [weights[i] for i in open_members]
        if not any(chosen):
            chosen = [1.0] * len(chosen)
        return self._members[self._rng.choices(open_members, chosen)[0]].next(at)

    def flush(self) -> list[T]:
        return [item for member in self._members for item in member.flush()]
