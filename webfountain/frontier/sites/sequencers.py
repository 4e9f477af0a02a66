"""Sequencers: small objects that choose the next item (Edwards 2001 section 3, Figure 1).

A sequencer offers at most one item at a time, and `times` says when this item can be taken. Sequencers form a tree,
whose leaves are the hands of sites (`hand`). `RoundRobin` serves its members in turn. In a crawl that ranks its pages
(`ranking.ranker`), `ByWorth` serves the member with the most valuable item first. In the active list, the addresses
form one ring. Each address is a ring of its sites, with a gate (`addresses`, `Tier`). A sequencer also says when its
next urgent item can be taken, so every ring serves immediate URLs first.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from webfountain.frontier.sites.politeness import Gate

__all__ = [
    "ByWorth",
    "RoundRobin",
    "Sequencer",
    "Tier",
    "Turns",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Sequencer(Protocol[T_co]):
    """The interface of all sequencers. `at` is the current time in UTC seconds."""

    def times(self) -> tuple[float, float]:
        """Return when the next item and the next urgent item can be taken.

        If an item can be taken only after another event, such as the end of a fetch, its time is inf. If another item
        of the member must be taken before its urgent item, both items count as urgent.
        """

    def worth(self) -> float:
        """Return the worth of the next item. The worth is inf if other items wait for this item, and -inf if there is
        no item.
        """

    def next(self, at: float) -> T_co | None:
        """Remove and return the next item, or None if no item is available at `at`."""


class RoundRobin(Generic[T]):
    """A ring that takes the next item from its members in turn, in O(log n) per turn. Members with an urgent item are
    served first.

    A member is ready, waits for a time, or has no item. If a member's urgent item is taken, the member keeps its place
    in the ring. The owner must call `wake(member)` after an event that may make an item available earlier, such as the
    end of a fetch.
    """

    __slots__ = ("_at", "_hurried", "_members", "_ready", "_waiting")

    def __init__(self) -> None:
        self._members: dict[Sequencer[T], None] = {}
        self._ready: Turns[T] = Turns()
        self._waiting: _WaitQueue[T] = _WaitQueue()
        self._hurried: _WaitQueue[T] = _WaitQueue()
        self._at = -inf  # time of the last `next`

    def add(self, member: Sequencer[T]) -> None:
        """Add a member. No item is taken from the member until `wake` is called."""
        self._members[member] = None

    def remove(self, member: Sequencer[T]) -> None:
        """Remove a member, without changing its items."""
        del self._members[member]
        self._ready.drop(member)
        self._waiting.drop(member)
        self._hurried.drop(member)

    def wake(self, member: Sequencer[T]) -> None:
        """Update the times of a member's next items. Do nothing if the sequencer is not a member."""
        if member in self._members:
            self._place(member)

    def wake_at(self) -> float:
        """Return the time from which `next` returns an item."""
        return -inf if self._ready else self._waiting.soonest()

    def times(self) -> tuple[float, float]:
        return self.wake_at(), self._hurried.soonest()

    def worth(self) -> float:
        """Return the worth of the next item. If no member is ready, use the member that will be ready first."""
        if self._ready:
            return self._ready.worth()
        first = self._waiting.first()
        return -inf if first is None else first.worth()

    def next(self, at: float) -> T | None:
        self._at = at
        while (ripe := self._waiting.pop(at)) is not None:
            self._ready.put(ripe)
        while (member := self._turn(at)) is not None:
            item = member.next(at)
            self._place(member)
            if item is not None:
                return item
        return None

    def _turn(self, at: float) -> Sequencer[T] | None:
        """Remove and return the first member with an urgent item, or else the first member of the ring."""
        while (member := self._hurried.pop(at)) is not None:
            if member.times()[1] <= at:
                return member
            self._place(member)  # The urgent item has left the member.
        return self._ready.take() if self._ready else None

    def _place(self, member: Sequencer[T]) -> None:
        """Put a member into the queues of ready or waiting members, depending on the times of its items."""
        due, hurry = member.times()
        if due <= self._at:
            self._waiting.drop(member)
            self._ready.put(member)
        else:
            self._ready.drop(member)
            self._waiting.put(member, due)
        if hurry < inf or self._hurried.times:
            self._hurried.put(member, hurry)


class Tier(Generic[T]):
    """A ring of members behind a gate. The tier is itself a member of the ring `above`. Each item uses a slot of the
    gate until its fetch ends.

    `wake` also updates the ring `above`, which the tier joins at once unless `joins` is False.
    """

    __slots__ = ("_above", "_ring", "gate")

    def __init__(self, above: RoundRobin[T], concurrency: int, *, joins: bool = True) -> None:
        self._above = above
        if joins:
            above.add(self)
        self._ring = type(above)()
        self.gate = Gate(concurrency)

    def add(self, member: Sequencer[T]) -> None:
        """Add a member. No item is taken from the member until `wake` is called."""
        self._ring.add(member)

    def remove(self, member: Sequencer[T]) -> None:
        """Remove a member, without changing its items."""
        self._ring.remove(member)

    def wake(self, member: Sequencer[T]) -> None:
        """Update the times of a member's next items."""
        self._ring.wake(member)
        self._above.wake(self)

    def times(self) -> tuple[float, float]:
        due, hurry = self._ring.times()
        return max(self.gate.opens_at, due), max(self.gate.opens_at, hurry)

    def worth(self) -> float:
        return self._ring.worth()

    def next(self, at: float) -> T | None:
        item = None if self.gate.opens_at > at else self._ring.next(at)
        if item is not None:
            self.gate.take()
        return item


class Turns(Generic[T]):
    """A first-in, first-out queue of ready members."""

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: OrderedDict[Sequencer[T], None] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._members)

    def put(self, member: Sequencer[T]) -> None:
        self._members.setdefault(member)

    def drop(self, member: Sequencer[T]) -> None:
        self._members.pop(member, None)

    def first(self) -> Sequencer[T] | None:
        return next(iter(self._members), None)

    def worth(self) -> float:
        """Return the worth of the next member, or -inf."""
        first = self.first()
        return -inf if first is None else first.worth()

    def take(self) -> Sequencer[T]:
        return self._members.popitem(last=False)[0]


class _WaitQueue(Generic[T]):
    """A queue of members that are not ready, ordered by the times at which they become ready."""

    __slots__ = ("_heap", "_holders", "_numbers", "times")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self.times: dict[Sequencer[T], tuple[float, int]] = {}
        self._holders: dict[int, Sequencer[T]] = {}
        self._numbers = itertools.count()

    def put(self, member: Sequencer[T], time: float) -> None:
        """Let a member wait until `time`, or remove it from the queue if `time` is inf."""
        entry = self.times.get(member)
        if entry is not None:
            if entry[0] == time:
                return
            self.drop(member)
        if time < inf:
            entry = self.times[member] = (time, next(self._numbers))
            self._holders[entry[1]] = member
            heapq.heappush(self._heap, entry)

    def drop(self, member: Sequencer[T]) -> None:
        """Remove a member from the queue."""
        entry = self.times.pop(member, None)
        if entry is not None:
            del self._holders[entry[1]]

    def soonest(self) -> float:
        """Return the time at which the first member becomes ready, or inf if no member waits."""
        while self._heap and self._heap[0][1] not in self._holders:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else inf

    def first(self) -> Sequencer[T] | None:
        """Return the member whose time comes first, or None."""
        return self._holders[self._heap[0][1]] if self.soonest() < inf else None

    def pop(self, at: float) -> Sequencer[T] | None:
        """Remove and return the first member whose time has come, or None."""
        while self._heap and self._heap[0][0] <= at:
            member = self._holders.pop(heapq.heappop(self._heap)[1], None)
            if member is not None:
                del self.times[member]
                return member
        return None


class _WorthQueue(Turns[T]):
    """A queue of ready members, sorted by worth. Members of equal worth take turns.

    Every `EVEN`-th turn goes to the member that has been ready longest, so that no member waits for ever. On generated
    sites, crawls with a tenth of the full budget found 90 to 95 % of the importance that the ideal order finds, but
    only 75 to 82 % if all turns went by worth.
    """

    __slots__ = ("_heap", "_numbers", "_taken", "_unvalued", "_worth")

    EVEN: Final = 2

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[float, int, Sequencer[T]]] = []
        self._worth: dict[Sequencer[T], tuple[float, int]] = {}
        self._unvalued: dict[Sequencer[T], None] = {}  # Their worth is read when there is a choice.
        self._numbers = itertools.count()
        self._taken = 0

    def put(self, member: Sequencer[T]) -> None:
        super().put(member)
        self._unvalued[member] = None

    def drop(self, member: Sequencer[T]) -> None:
        super().drop(member)
        self._worth.pop(member, None)
        self._unvalued.pop(member, None)

    def first(self) -> Sequencer[T] | None:
        if len(self._members) < 2:
            return super().first()
        for member in self._unvalued:
            worth = -member.worth()
            held = self._worth.get(member)
            if held is None or held[0] != worth:
                # Members of equal worth are ordered by when they became ready, even if their worth differed meanwhile.
                entry = self._worth[member] = (worth, next(self._numbers) if held is None else held[1])
                heapq.heappush(self._heap, (*entry, member))
        self._unvalued.clear()
        while self._heap:
            worth, number, member = self._heap[0]
            if self._worth.get(member) == (worth, number):
                return member
            heapq.heappop(self._heap)
        return None

    def take(self) -> Sequencer[T]:
        self._taken += 1
        longest = super().first() if self._taken % self.EVEN == 0 else None
        member = self.first() if longest is None else longest
        assert member is not None, "called while a member is ready"
        self.drop(member)
        return member


class ByWorth(RoundRobin[T]):
    """A `RoundRobin` that serves the member with the most valuable next item first, so that a small budget is spent on
    valuable pages.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._ready = _WorthQueue()
