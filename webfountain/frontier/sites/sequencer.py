"""What comes next: sequencers, and the rings that take turns among many (Edwards 2001, Figure 1).

Sequencers: small objects that say what comes next; they compose and cascade (Edwards 2001 section 3, Figure 1). A
sequencer knows its backlog, from when on it has something, and its next item; it is loaded and flushed. Leaves are
queues; combiners join sequencers; politeness is a combiner that opens and shuts. `Fifo`, `Valued` and
`Immediate` are leaves, `FirstOf` (the immediate queue before all others) and `WeightedRandom` (never-crawled
against recrawl) combine, `Polite` gates, and `RoundRobin` combines many (the active list). Each tells from when on it
is in a hurry, so that what an `Immediate` holds goes first through every tier. None of them knows a URL, reads a
clock, or does I/O.

Turns: which of many sequencers is next, without asking each (Edwards 2001 section 3, Figure 1). The active list is
two tiers of rings, of addresses and of the sites at one address (`politeness`). A member tells when it
is available and from when on it is in a hurry, and is looked at again when its owner says so: a step costs O(log n)
for n members. Like every sequencer a ring knows no URL, reads no clock and does no I/O. `RoundRobin` serves all evenly,
`ByWorth` the worthiest first, as a crawl does that weighs its pages (`ranking.live`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict, deque
from math import inf
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "ByWorth",
    "Fifo",
    "FirstOf",
    "Gate",
    "Immediate",
    "Polite",
    "RoundRobin",
    "Sequencer",
    "Tier",
    "Valued",
    "WeightedRandom",
]

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

    def worth(self) -> float:
        """What the next item is worth; inf of one that others wait for, -inf while there is none. O(1)."""
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

    def worth(self) -> float:
        return inf if self._items else -inf

    def next(self, at: float) -> T | None:
        return self._items.popleft() if self._items else None

    def flush(self) -> list[T]:
        held = list(self._items)
        self._items.clear()
        return held


class Valued(Fifo[T]):
    """First come, first served, of items that are worth more or less (`value`)."""

    __slots__ = ("_value",)

    def __init__(self, value: Callable[[T], float]) -> None:
        super().__init__()
        self._value = value

    def worth(self) -> float:
        return self._value(self._items[0]) if self._items else -inf


class Immediate(Fifo[T]):
    """First come, first served, and while it holds anything all that it stands behind goes before all others."""

    __slots__ = ()

    def hurry_at(self) -> float:
        return -inf if self._items else inf


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


class Gate:
    """Politeness towards one site or one address: `concurrency` slots, each of which waits out its own delay.

    Invariant: slots out + slots here = concurrency, so never more than `concurrency` requests are under way; slots that
    are lent to another ant are out.
    """

    __slots__ = ("_free", "_shut_until", "in_flight", "lent_until")

    def __init__(self, concurrency: int = 1, *, open_at: float = 0.0) -> None:
        self._free = [open_at] * concurrency
        self._shut_until = open_at
        self.lent_until = 0.0
        """Until when, at most, another ant uses slots of it."""
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
        heapq.heappush(self._free, max(open_at, self._shut_until))

    def hold(self, until: float) -> None:
        """Keep every slot shut at least until `until` (back-off), those that are out now when they are back."""
        self._shut_until = max(self._shut_until, until)
        self._free = sorted(max(slot, until) for slot in self._free)

    # ------------------------------------------------------ to another ant

    def spare(self, since: float) -> int:
        """How many slots are here, and open since a time at least; inf: also those that open yet."""
        return sum(slot <= since for slot in self._free)

    def lend(self, many: int, *, until: float) -> float:
        """Let that many of the slots here be another ant's until a time; from when on that may use them all."""
        self._free.sort()
        lent = [self._free.pop() for _ in range(many)]
        self.in_flight += many
        self.prolong(until)
        return max(lent)

    def prolong(self, until: float) -> None:
        """What is lent is the other's until then."""
        self.lent_until = max(self.lent_until, until)

    def take_back(self, many: int, open_at: float) -> None:
        """Lent slots are here again, and open at a time."""
        for _ in range(many):
            self.give(open_at)

    def next_for_others(self, at: float, delay_s: float) -> float:
        """From when on another process may use all slots, if this one ends `at`; those that are out wait too."""
        opens = max(self._free, default=0.0)
        return max(opens, at + delay_s, self.lent_until + delay_s) if self.in_flight else opens


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
        self._ready: _Turns[T] = _Turns()
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
        self._ready.drop(member)
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

    def worth(self) -> float:
        """Of the next in turn, or while none is ready of whoever will be first."""
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
        return self._ready.take() if self._ready else None

    def _place(self, member: Sequencer[T]) -> None:
        """Put a member where its `wake_at` and `hurry_at` say."""
        due = member.wake_at()
        if due <= self._at:
            self._waiting.drop(member)
            self._ready.put(member)
        else:
            self._ready.drop(member)
            self._waiting.put(member, due)
        hurry = inf if due == inf else member.hurry_at()
        if hurry < inf or self._hurried.times:
            self._hurried.put(member, hurry)


class Tier(Polite[T]):
    """A ring behind a gate of its own, for a place in the ring `above`, of whose kind it is.

    What changes in it is seen above at once, where it is a member there.
    """

    __slots__ = ("_above", "_ring")

    def __init__(self, above: RoundRobin[T], concurrency: int) -> None:
        self._above = above
        self._ring = type(above)()
        super().__init__(self._ring, Gate(concurrency))

    def add(self, member: Sequencer[T]) -> None:
        """Let a member join the ring at its end."""
        self._ring.add(member)
        self._above.wake(self)

    def remove(self, member: Sequencer[T]) -> None:
        """Let a member leave; what it holds stays with it."""
        self._ring.remove(member)

    def wake(self, member: Sequencer[T]) -> None:
        """Look again when a member is available, and whether it is in a hurry."""
        self._ring.wake(member)
        self._above.wake(self)


class _Turns(Generic[T]):
    """Those that are ready, first come, first served; who is ready already keeps its place."""

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
        """Of the next in turn; -inf while there is none."""
        first = self.first()
        return -inf if first is None else first.worth()

    def take(self) -> Sequencer[T]:
        return self._members.popitem(last=False)[0]


class _Worthiest(_Turns[T]):
    """Those that are ready, the worthiest first, in turn where they are worth the same.

    But each `EVEN`th turn is that of whoever is ready longest: what is worth little is not put off for ever, and what
    nobody knows to be worth much is found. The worthiest alone found less: with a tenth of the budget 0.75 to 0.82 of
    the ideal order's importance on generated sites, with every second turn even 0.90 to 0.95, all even 0.85 to 0.95.
    """

    __slots__ = ("_heap", "_numbers", "_taken", "_unvalued", "_worth")

    EVEN: Final = 2

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[float, int, Sequencer[T]]] = []
        self._worth: dict[Sequencer[T], tuple[float, int]] = {}
        self._unvalued: dict[Sequencer[T], None] = {}  # what they are worth is asked when there is a choice
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
                # Of equals the one goes first that was ready first, also where it was worth something else meanwhile.
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
        assert member is not None, "asked while some are ready"
        self.drop(member)
        return member


class ByWorth(RoundRobin[T]):
    """As `RoundRobin`, but the member is next whose next item is worth most: where the budget binds, little goes last.

    Members of equal worth take turns, and every second turn goes round evenly.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._ready = _Worthiest()


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

    def first(self) -> Sequencer[T] | None:
        """Who waits for the first time; None: nobody waits."""
        return self._holders[self._heap[0][1]] if self.soonest() < inf else None

    def pop(self, at: float) -> Sequencer[T] | None:
        """The first of those whose time has come, who waits no more; None: nobody's has."""
        while self._heap and self._heap[0][0] <= at:
            member = self._holders.pop(heapq.heappop(self._heap)[1], None)
            if member is not None:
                del self.times[member]
                return member
        return None
