"""The gate of a site or an address: when it may receive the next request."""

from __future__ import annotations

import heapq
from math import inf

__all__ = ["Gate"]


class Gate:
    """Politeness towards one site or one address: `concurrency` slots, each with its own delay.

    Invariant: used slots + free slots = concurrency, so at most `concurrency` requests are in flight. Slots that are
    lent to another ant count as used.
    """

    __slots__ = ("_free", "_is_closed", "_shut_until", "in_flight", "lent_until", "opens_at")

    def __init__(self, concurrency: int = 1, *, open_at: float = 0.0) -> None:
        self._free = [open_at] * concurrency
        self._shut_until = open_at
        self._is_closed = False
        self.lent_until = 0.0
        """Latest time until which another ant may use slots of this gate."""
        self.in_flight = 0
        self.opens_at = open_at
        """When the next slot may be taken, UTC seconds; inf while all are used or the gate is closed. It is read ten
        times for each request, so it is not computed then.
        """

    def take(self) -> None:
        """Take the slot that has waited longest. The caller has checked that `opens_at` is past."""
        heapq.heappop(self._free)
        self.in_flight += 1
        self._note_change()

    def give(self, open_at: float) -> None:
        """Give a slot back, which opens again at `open_at`."""
        self.in_flight -= 1
        heapq.heappush(self._free, max(open_at, self._shut_until))
        self._note_change()

    def hold(self, until: float) -> None:
        """Keep every slot shut at least until `until` (back-off); this includes used slots once they are given back."""
        self._shut_until = max(self._shut_until, until)
        self._free = sorted(max(slot, until) for slot in self._free)
        self._note_change()

    # ------------------------------------------- while a request is in a downloader's queue

    def close(self) -> None:
        """Release nothing until `reopen`, because the last request waits in a queue after the gate."""
        self._is_closed = True
        self._note_change()

    def reopen(self, open_at: float) -> None:
        """Allow the next request from `open_at` on, because the queue after the gate is empty again."""
        self._is_closed = False
        self.hold(open_at)

    def widen(self) -> None:
        """Add a slot, because a request in flight must not count at this gate."""
        heapq.heappush(self._free, self._shut_until)
        self._note_change()

    def narrow(self) -> None:
        """Remove a slot that `widen` added, after the request has given its slot back."""
        self._free.remove(max(self._free))
        heapq.heapify(self._free)
        self._note_change()

    # ------------------------------------------------------ lending to another ant

    def spare(self, since: float) -> int:
        """Return the number of free slots that are open since a time or longer. With inf, count all free slots."""
        return sum(slot <= since for slot in self._free)

    def lend(self, many: int, *, until: float) -> float:
        """Lend `many` free slots to another ant until a time. Return the time from which it may use them all."""
        self._free.sort()
        lent = [self._free.pop() for _ in range(many)]
        self._note_change()
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

    def _note_change(self) -> None:
        self.opens_at = self._free[0] if self._free and not self._is_closed else inf
