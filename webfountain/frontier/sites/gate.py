"""The gate of a site or an address: when it may receive the next request.

`GatedSequencer` is a sequencer that waits for its gate.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from webfountain.frontier.sites.sequencers import Sequencer

__all__ = ["Gate", "GatedSequencer"]

T = TypeVar("T")


class Gate:
    """Politeness towards one site or one address: `concurrency` slots, each with its own delay.

    Invariant: used slots + free slots = concurrency, so at most `concurrency` requests are in flight. Slots that are
    lent to another ant count as used.
    """

    __slots__ = ("_free", "_is_closed", "_shut_until", "in_flight", "lent_until")

    def __init__(self, concurrency: int = 1, *, open_at: float = 0.0) -> None:
        self._free = [open_at] * concurrency
        self._shut_until = open_at
        self._is_closed = False
        self.lent_until = 0.0
        """Latest time until which another ant may use slots of this gate."""
        self.in_flight = 0

    def open_at(self) -> float:
        """Return when the next slot may be taken; inf while all are used or the gate is closed."""
        return self._free[0] if self._free and not self._is_closed else inf

    def take(self) -> None:
        """Take the slot that has waited longest. The caller has checked that `open_at` is past."""
        heapq.heappop(self._free)
        self.in_flight += 1

    def give(self, open_at: float) -> None:
        """Give a slot back, which opens again at `open_at`."""
        self.in_flight -= 1
        heapq.heappush(self._free, max(open_at, self._shut_until))

    def hold(self, until: float) -> None:
        """Keep every slot shut at least until `until` (back-off); this includes used slots once they are given back."""
        self._shut_until = max(self._shut_until, until)
        self._free = sorted(max(slot, until) for slot in self._free)

    # ------------------------------------------- while a request is in a downloader's queue

    def close(self) -> None:
        """Release nothing until `reopen`, because the last request waits in a queue after the gate."""
        self._is_closed = True

    def reopen(self, open_at: float) -> None:
        """Allow the next request from `open_at` on, because the queue after the gate is empty again."""
        self._is_closed = False
        self.hold(open_at)

    def widen(self) -> None:
        """Add a slot, because a request in flight must not count at this gate."""
        heapq.heappush(self._free, self._shut_until)

    def narrow(self) -> None:
        """Remove a slot that `widen` added, after the request has given its slot back."""
        self._free.remove(max(self._free))
        heapq.heapify(self._free)

    # ------------------------------------------------------ lending to another ant

    def spare(self, since: float) -> int:
        """Return how many free slots have been open at least since a time; inf: also count those that are not open
        yet.
        """
        return sum(slot <= since for slot in self._free)

    def lend(self, many: int, *, until: float) -> float:
        """Lend `many` free slots to another ant until a time. Return the time from which it may use them all."""
        self._free.sort()
        lent = [self._free.pop() for _ in range(many)]
        self.in_flight += many
        self.prolong(until)
        return max(lent)

    def prolong(self, until: float) -> None:
        """Extend the time until which slots are lent."""
        self.lent_until = max(self.lent_until, until)

    def take_back(self, many: int, open_at: float) -> None:
        """Take lent slots back, which open at a time."""
        for _ in range(many):
            self.give(open_at)

    def next_for_others(self, at: float, delay_s: float) -> float:
        """Return when another process may use all slots if this one ends at `at`. Used slots count with their delay."""
        opens = max(self._free, default=0.0)
        return max(opens, at + delay_s, self.lent_until + delay_s) if self.in_flight else opens


class GatedSequencer(Generic[T]):
    """A sequencer behind a gate. Taking an item takes a slot, which is given back when the fetch lands."""

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

    def worth(self) -> float:
        return self._inner.worth()

    def next(self, at: float) -> T | None:
        if self.gate.open_at() > at:
            return None
        item = self._inner.next(at)
        if item is not None:
            self.gate.take()
        return item

    def flush(self) -> list[T]:
        return self._inner.flush()
