"""Turns: which of many sequencers is next, without asking each (`sequencer`; Edwards 2001 section 3, Figure 1).

The active list is two tiers of rings, of addresses and of the sites at one address (`addresses`). A member tells when
it is available and from when on it is in a hurry, and is looked at again when its owner says so: a step costs O(log n)
for n members. Like every sequencer a ring knows no URL, reads no clock and does no I/O.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from webfountain.frontier.sites.sequencer import Sequencer

__all__ = ["RoundRobin"]

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """Members in turn, skipping those that are not available, in O(log n) a step; those in a hurry before all others.

    A member stands in the ring of the ready, among those that wait for a time, or in neither (nothing to give until
    `wake` is called for it). One in a hurry also waits for the time when it may be served as such; that turn does not
    cost it its place in the ring. The owner calls `wake(member)` after whatever may make a member available earlier
    than it said: new items, a landing. `at` never grows less from call to call, but by a step of the clock.
    """

    __slots__ = ("_at", "_hurried", "_members", "_ready", "_waiting")

    def __init__(self) -> None:
        self._members: dict[Sequencer[T], None] = {}
        self._ready: OrderedDict[Sequencer[T], None] = OrderedDict()
        self._waiting: _Waiting[T] = _Waiting()
        self._hurried: _Waiting[T] = _Waiting()
        self._at = -inf  # of the last `next`: who was available then is ready and keeps its place when looked at again

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Sequencer[T]) -> None:
        """Join the ring at its end."""
        self._members[member] = None
        self._place(member)

    def remove(self, member: Sequencer[T]) -> None:
        """Leave; what the member holds stays with it."""
        del self._members[member]
        self._ready.pop(member, None)
        self._waiting.drop(member)
        self._hurried.drop(member)

    def wake(self, member: Sequencer[T]) -> None:
        """Look again when `member` is available; nothing where it is no member (any more)."""
        if member in self._members:
            self._place(member)

    def backlog(self) -> int:
        return sum(member.backlog() for member in self._members)

    def wake_at(self) -> float:
        return -inf if self._ready else self._waiting.soonest()

    def hurry_at(self) -> float:
        return self._hurried.soonest()

    def next(self, at: float) -> T | None:
        self._at = at
        while (ripe := self._waiting.pop(at)) is not None:
            self._ready[ripe] = None
        while (member := self._turn(at)) is not None:
            item = member.next(at)
            self._place(member)
            if item is not None:
                return item
        return None

    def flush(self) -> list[T]:
        held = [item for member in self._members for item in member.flush()]
        for member in self._members:
            self._place(member)
        return held

    def _turn(self, at: float) -> Sequencer[T] | None:
        """Whose turn it is: the first in a hurry, else the first of the ring, which leaves it."""
        while (member := self._hurried.pop(at)) is not None:
            if member.hurry_at() <= at:
                return member
            self._place(member)  # what was in a hurry left it since
        return self._ready.popitem(last=False)[0] if self._ready else None

    def _place(self, member: Sequencer[T]) -> None:
        """Put a member where its `wake_at` and `hurry_at` say."""
        due = member.wake_at()
        if due <= self._at:
            self._waiting.drop(member)
            self._ready.setdefault(member)
        else:
            self._ready.pop(member, None)
            self._waiting.put(member, due)
        hurry = inf if due == inf else member.hurry_at()
        if hurry < inf or self._hurried.times:
            self._hurried.put(member, hurry)


class _Waiting(Generic[T]):
    """Members that wait, each for one time: the soonest comes first, of equals who began to wait first.

    An entry of the heap holds a ticket, a number never used twice: who changes his mind gives his ticket back, and a
    ticket without a holder is passed over when it comes up. An `id()` would do for neither: memory is used again, so
    an old entry could name a new member, and the order of a crawl would hang on the allocator.
    """

    __slots__ = ("_heap", "_holders", "_numbers", "times")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self.times: dict[Sequencer[T], tuple[float, int]] = {}
        self._holders: dict[int, Sequencer[T]] = {}
        self._numbers = itertools.count()

    def put(self, member: Sequencer[T], time: float) -> None:
        """Let a member wait for a time, and no other; inf: for none."""
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
        """Let a member wait no more."""
        entry = self.times.pop(member, None)
        if entry is not None:
            del self._holders[entry[1]]

    def soonest(self) -> float:
        """The first time that anyone waits for; inf: nobody waits."""
        while self._heap and self._heap[0][1] not in self._holders:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else inf

    def pop(self, at: float) -> Sequencer[T] | None:
        """The first of those whose time has come, who waits no more; None: nobody's has."""
        while self._heap and self._heap[0][0] <= at:
            member = self._holders.pop(heapq.heappop(self._heap)[1], None)
            if member is not None:
                del self.times[member]
                return member
        return None
