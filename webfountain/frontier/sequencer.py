"""Sequencers: small objects that say what comes next; they compose and cascade (Edwards 2001 section 3, Figure 1).

A sequencer knows its backlog, from when on it has something, and its next item; it is loaded and flushed.
Leaves are queues; combiners join sequencers; politeness is a combiner that opens and shuts. `Fifo` and `Priority`
are leaves, `FirstOf` (the immediate queue before all others), `WeightedRandom` (never-crawled against recrawl) and
`RoundRobin` (the active list) combine, `Polite` gates. None of them knows a URL, reads a clock, or does I/O.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Fifo", "FirstOf", "Gate", "Polite", "Priority", "RoundRobin", "Sequencer", "WeightedRandom"]

T = TypeVar("T")


class Sequencer(Protocol[T]):
    """What all sequencers answer. `at` is the time now, in UTC seconds."""

    def backlog(self) -> int:
        """How many items are held."""
        ...

    def wake_at(self) -> float:
        """From when on `next` has an item, as things stand; inf when only new items or a landing can change that."""
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

    def backlog(self) -> int:
        return len(self._items)

    def wake_at(self) -> float:
        return -inf if self._items else inf

    def next(self, at: float) -> T | None:
        return self._items.popleft() if self._items else None

    def flush(self) -> list[T]:
        held = list(self._items)
        self._items.clear()
        return held


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

    def next(self, at: float) -> T | None:
        return heapq.heappop(self._heap)[2] if self._heap else None

    def flush(self) -> list[T]:
        held = [entry[2] for entry in sorted(self._heap)]
        self._heap.clear()
        return held


class FirstOf(Generic[T]):
    """The first member that has something available: strict precedence."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Sequencer[T]]) -> None:
        self._members = members

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members)

    def wake_at(self) -> float:
        return min(member.wake_at() for member in self._members)

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
        return min(member.wake_at() for member in self._members)

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
        return max(self._inner.wake_at(), self.gate.open_at())

    def next(self, at: float) -> T | None:
        if self.gate.open_at() > at:
            return None
        item = self._inner.next(at)
        if item is not None:
            self.gate.take()
        return item

    def flush(self) -> list[T]:
        return self._inner.flush()


class RoundRobin(Generic[T]):
    """Members in turn, skipping those that are not available, in O(log n) a step.

    A member stands in the ring of the ready, in the heap of those that wait for a time, or in neither (nothing to
    give until `wake` is called for it). The owner calls `wake(member)` after whatever may make a member available
    earlier than it said: new items, a landing. Entries are checked when they come up, so a stale one does no harm.
    """

    __slots__ = ("_members", "_order", "_ready", "_ties", "_waiting")

    def __init__(self) -> None:
        self._members: dict[int, Sequencer[T]] = {}
        self._ready: deque[int] = deque()
        # (time, tie, id): entries may be stale, `_order` says who waits for what now; ties go by who came first.
        self._waiting: list[tuple[float, int, int]] = []
        self._order: dict[int, float] = {}
        self._ties = itertools.count()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Sequencer[T]) -> None:
        """Join the ring at its end."""
        self._members[id(member)] = member
        self.wake(member)

    def remove(self, member: Sequencer[T]) -> None:
        """Leave; what the member holds stays with it."""
        del self._members[id(member)]
        self._order.pop(id(member), None)

    def wake(self, member: Sequencer[T], *, first: bool = False) -> None:
        """Look again when `member` is available; `first` puts it ahead of the ring (an immediate URL)."""
        self._place(id(member), member, first=first)

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members.values())

    def wake_at(self) -> float:
        if self._ready:
            return -inf
        return self._waiting[0][0] if self._waiting else inf

    def next(self, at: float) -> T | None:
        self._ripen(at)
        while self._ready:
            key = self._ready.popleft()
            member = self._members.get(key)
            if member is None or self._order.pop(key, None) != -inf:
                continue
            item = member.next(at)
            self._place(key, member, after=at)
            if item is not None:
                return item
        return None

    def flush(self) -> list[T]:
        held = [item for member in self._members.values() for item in member.flush()]
        self._ready.clear()
        self._waiting.clear()
        self._order.clear()
        return held

    def _ripen(self, at: float) -> None:
        """Move members whose time has come into the ring."""
        while self._waiting and self._waiting[0][0] <= at:
            due, _, key = heapq.heappop(self._waiting)
            if key in self._members and self._order.get(key) == due:
                self._order[key] = -inf
                self._ready.append(key)

    def _place(self, key: int, member: Sequencer[T], *, first: bool = False, after: float = -inf) -> None:
        """Put a member where its `wake_at` says. Times up to `after` (now) count as ready."""
        due = member.wake_at()
        place = -inf if due <= after or due == -inf else due
        if self._order.get(key) == place and not first:
            return
        if due == inf:
            self._order.pop(key, None)
        elif place == -inf:
            self._order[key] = -inf
            (self._ready.appendleft if first else self._ready.append)(key)
        else:
            self._order[key] = due
            heapq.heappush(self._waiting, (due, next(self._ties), key))
