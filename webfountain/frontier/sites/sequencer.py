"""Sequencers: small objects that say what comes next; they compose and cascade (Edwards 2001 section 3, Figure 1).

A sequencer knows its backlog, from when on it has something, and its next item; it is loaded and flushed.
Leaves are queues; combiners join sequencers; politeness is a combiner that opens and shuts. `Fifo`, `Immediate` and
`Priority` are leaves, `FirstOf` (the immediate queue before all others) and `WeightedRandom` (never-crawled against
recrawl) combine, `Polite` gates, and `ring` has the combiner of many (the active list). Each tells from when on it is
in a hurry, so that what an `Immediate` holds goes first through every tier. None of them knows a URL, reads a clock,
or does I/O.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Fifo", "FirstOf", "Gate", "Immediate", "Polite", "Priority", "Sequencer", "WeightedRandom"]

T = TypeVar("T")


class Sequencer(Protocol[T]):
    """What all sequencers answer. `at` is the time now, in UTC seconds."""

    def backlog(self) -> int:
        """How many items are held."""
        ...

    def wake_at(self) -> float:
        """From when on `next` has an item, as things stand; inf when only new items or a landing can change that."""
        ...

    def hurry_at(self) -> float:
        """From when on `next` serves an `Immediate`, not before `wake_at`; inf when none holds anything."""
        ...

    def next(self, at: float) -> T | None:
        """The next item, which leaves the sequencer; None when none is available at `at`."""
        ...

    def flush(self) -> list[T]:
        """Everything held, in order; the sequencer is empty afterwards."""
        ...


class Fifo(Generic[T]):
    """First come, first served."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = deque(items)

    def load(self, items: Iterable[T]) -> None:
        """Append items."""
        self._items.extend(items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def backlog(self) -> int:
        return len(self._items)

    def wake_at(self) -> float:
        return -inf if self._items else inf

    def hurry_at(self) -> float:
        return inf

    def next(self, at: float) -> T | None:
        return self._items.popleft() if self._items else None

    def flush(self) -> list[T]:
        held = list(self._items)
        self._items.clear()
        return held


class Immediate(Fifo[T]):
    """First come, first served, and while it holds anything all that it stands behind goes before all others."""

    __slots__ = ()

    def hurry_at(self) -> float:
        return -inf if self._items else inf


class Priority(Generic[T]):
    """Greatest priority first, then first come."""

    __slots__ = ("_heap", "_order", "_priority")

    def __init__(self, priority: Callable[[T], float]) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._order = itertools.count()
        self._priority = priority

    def load(self, items: Iterable[T]) -> None:
        """Add items, each at its priority now."""
        for item in items:
            heapq.heappush(self._heap, (-self._priority(item), next(self._order), item))

    def backlog(self) -> int:
        return len(self._heap)

    def wake_at(self) -> float:
        return -inf if self._heap else inf

    def hurry_at(self) -> float:
        return inf

    def next(self, at: float) -> T | None:
        return heapq.heappop(self._heap)[2] if self._heap else None

    def flush(self) -> list[T]:
        held = [entry[2] for entry in sorted(self._heap)]
        self._heap.clear()
        return held


def _soonest_wake(members: Iterable[Sequencer[T]]) -> float:
    """When the first of the members has something. Asked twice a fetch: a loop takes half as long as `min`."""
    soonest = inf
    for member in members:
        due = member.wake_at()
        soonest = min(soonest, due)
    return soonest


class FirstOf(Generic[T]):
    """The first member that has something available: strict precedence."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Sequencer[T]]) -> None:
        self._members = members

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members)

    def wake_at(self) -> float:
        return _soonest_wake(self._members)

    def hurry_at(self) -> float:
        # Also while an earlier member has something: that is in the way of the hurried, so it is in a hurry too.
        soonest = inf
        for member in self._members:
            hurry = member.hurry_at()
            soonest = min(soonest, hurry)
        return soonest

    def next(self, at: float) -> T | None:
        for member in self._members:
            if member.wake_at() <= at:
                return member.next(at)
        return None

    def flush(self) -> list[T]:
        return [item for member in self._members for item in member.flush()]


class WeightedRandom(Generic[T]):
    """One of the available members, drawn by weight: the aggregator that joins a site's two queues.

    `weights` is asked at every choice, so a new plan takes effect at once and no queue is rebuilt. A member
    of weight 0 is served only while no other has anything.
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
        return inf  # the draw may choose another than the member in a hurry

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


class Gate:
    """Politeness towards one site or one address: `concurrency` slots, each of which waits out its own delay.

    Invariant: slots out + slots here = concurrency, so never more than `concurrency` requests are under way.
    """

    __slots__ = ("_free", "in_flight")

    def __init__(self, concurrency: int = 1, *, open_at: float = 0.0) -> None:
        self._free = [open_at] * concurrency
        self.in_flight = 0

    def open_at(self) -> float:
        """From when on a slot may be taken; inf while all are out."""
        return self._free[0] if self._free else inf

    def take(self) -> None:
        """Take the slot that has waited longest; the caller saw `open_at` in the past."""
        heapq.heappop(self._free)
        self.in_flight += 1

    def give(self, open_at: float) -> None:
        """Bring a slot back; it opens again at `open_at`."""
        self.in_flight -= 1
        heapq.heappush(self._free, open_at)

    def hold(self, until: float) -> None:
        """Keep every free slot shut at least until `until` (back-off)."""
        self._free = sorted(max(slot, until) for slot in self._free)


class Polite(Generic[T]):
    """A sequencer behind a gate. Whoever takes an item takes a slot; the landing gives it back."""

    __slots__ = ("_inner", "gate")

    def __init__(self, inner: Sequencer[T], gate: Gate) -> None:
        self._inner = inner
        self.gate = gate

    def backlog(self) -> int:
        return self._inner.backlog()

    def wake_at(self) -> float:
        opens = self.gate.open_at()
        return opens if opens == inf else max(opens, self._inner.wake_at())

    def hurry_at(self) -> float:
        hurry = self._inner.hurry_at()
        return hurry if hurry == inf else max(hurry, self.gate.open_at())

    def next(self, at: float) -> T | None:
        if self.gate.open_at() > at:
            return None
        item = self._inner.next(at)
        if item is not None:
            self.gate.take()
        return item

    def flush(self) -> list[T]:
        return self._inner.flush()
