"""One site's queues on disk, read from the front: what a lease takes and what is due.

Leased entries stay on disk and are only hidden, so a crash returns them. Entries that were settled leave
deleted keys behind at the front of their lane; a *front* is a place before which nothing stands, so that they are
walked over once and not at every lease. Fronts are kept for active sites and are only ever too early.
"""

from __future__ import annotations

import heapq
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.store.codec import from_sortable, to_sortable
from webfountain.store.contract import CLASSES, IMMEDIATE, LANES
from webfountain.store.embedded.keys import IMMEDIATE_NEVER, NEVER, RECRAWL, after, arrival_of, waiting_record
from webfountain.store.lanes import Candidate, choose

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from webfountain.records import PageRecord
    from webfountain.store.embedded.disk import Disk

__all__ = ["SiteQueues", "Waiting"]

_LANE_AT: Final = 9
_NEVER_WIDTH: Final = 1
_RECRAWL_WIDTH: Final = 2
_ORDER_AT: Final = _LANE_AT + _RECRAWL_WIDTH
_KEY_AT: Final = _ORDER_AT + 8

Item = tuple[bytes, bytes]
"""Key and value of an entry."""


class Waiting(NamedTuple):
    """An entry that may be leased: the page's key, and its record where the entry holds it (never-crawled)."""

    entry: bytes
    key: bytes
    record: PageRecord | None


class SiteQueues:
    """The fronts of one site's lanes. `hidden` holds the entries that are leased."""

    __slots__ = ("_never", "_recrawl", "_site")

    def __init__(self, disk: Disk, site: str, sid: bytes, hidden: Container[bytes]) -> None:
        self._site = site
        self._never = _Lanes(disk, NEVER + sid, _NEVER_WIDTH, hidden)
        self._recrawl = _Lanes(disk, RECRAWL + sid, _RECRAWL_WIDTH, hidden)

    def note(self, entry: bytes) -> None:
        """An entry was added: a front may not lie behind it."""
        (self._never if entry[:1] == NEVER else self._recrawl).note(entry)

    def immediate(self, n: int) -> list[Waiting]:
        """Up to `n` entries of the immediate lane, which lies half in either queue, in order of arrival."""
        new = [(float(arrival_of(item[0])), self._waiting(item)) for item in self._never.first(IMMEDIATE_NEVER, n)]
        tried = [
            (_order(entry), Waiting(entry, entry[_KEY_AT:], None)) for entry, _ in self._recrawl.first(IMMEDIATE, n)
        ]
        return [waiting for _, waiting in heapq.merge(new, tried)][:n]

    def never_crawled(self, n: int, horizon: Sequence[float] | None) -> list[Waiting]:
        """Up to `n` due entries of the never-crawled lanes, as `choose` takes them."""
        lanes = [lane for lane in self._never.lanes() if lane < CLASSES]
        if horizon is None:
            found: list[Item] = []
            for lane in lanes:
                found += self._never.first(lane, n - len(found))
                if len(found) == n:
                    break
            return [self._waiting(item) for item in found]
        _check(horizon, CLASSES)
        offered: dict[bytes, Waiting] = {}
        due: list[Candidate] = []
        for lane in lanes:
            entries = map(self._waiting, self._never.first(lane, n))
            for one in takewhile(lambda one: _first_seen(one) <= horizon[_lane(one)], entries):
                offered[one.key] = one
                due.append(Candidate(lane, _first_seen(one), arrival_of(one.entry), one.key))
        return [offered[one.key] for one in choose(due, n, horizon)]

    def recrawl(self, n: int, horizon: Sequence[float]) -> list[Waiting]:
        """Up to `n` due entries of the recrawl lanes, as `choose` takes them."""
        _check(horizon, LANES)
        entries: dict[tuple[int, bytes], bytes] = {}
        due: list[Candidate] = []
        for lane in self._recrawl.lanes():
            if lane < LANES and _order(self._recrawl.front(lane)) <= horizon[lane]:
                for entry, _ in self._recrawl.first(lane, n, until=to_sortable(horizon[lane] + 0.0)):
                    entries[lane, entry[_KEY_AT:]] = entry
                    due.append(Candidate(lane, _order(entry), 0, entry[_KEY_AT:]))
        return [Waiting(entries[one.lane, one.key], one.key, None) for one in choose(due, n, horizon)]

    def recrawl_due(self) -> list[tuple[int, float]]:
        """For each recrawl lane with an entry that is not hidden: (lane, order of the first)."""
        heads = ((lane, self._recrawl.first(lane, 1)) for lane in self._recrawl.lanes() if lane < LANES)
        return [(lane, _order(head[0][0])) for lane, head in heads if head]

    def after(self, suffix: bytes, n: int) -> list[Waiting]:
        """Up to `n` never-crawled entries of all classes behind the one with this suffix (b"": all), in order."""
        return [self._waiting(item) for item in self._never.walk(suffix, CLASSES, n)]

    def _waiting(self, item: Item) -> Waiting:
        key, record = waiting_record(self._site, *item)
        return Waiting(item[0], key, record)


class _Lanes:
    """The lanes of one queue of a site: their keys are `prefix`, the lane in `width` bytes, the order within it."""

    __slots__ = ("_disk", "_end", "_fronts", "_hidden", "_prefix", "_width")

    def __init__(self, disk: Disk, prefix: bytes, width: int, hidden: Container[bytes]) -> None:
        self._disk = disk
        self._prefix = prefix
        self._end = after(prefix)
        self._width = width
        self._hidden = hidden
        self._fronts: dict[int, bytes] | None = None

    def note(self, entry: bytes) -> None:
        """An entry was added."""
        if self._fronts is not None:
            lane = self._lane_of(entry)
            self._fronts[lane] = min(self._fronts.get(lane, entry), entry)

    def lanes(self) -> list[int]:
        """The lanes that may hold entries, in order; found by one seek a lane when first asked for."""
        return sorted(self._found())

    def front(self, lane: int) -> bytes:
        """A place in a lane that may hold entries, before which it has none."""
        return self._found()[lane]

    def first(self, lane: int, n: int, *, until: bytes | None = None) -> list[Item]:
        """Up to `n` entries of a lane that are not hidden, none behind the order `until`.

        A lane that turns out to be empty is struck from the list. One short scan.
        """
        fronts = self._found()
        if n <= 0 or lane not in fronts:
            return []
        start = self._start(lane)
        end = after(start if until is None else start + until)
        found: list[Item] = []
        first = None
        for item in self._disk.scan(fronts[lane], end):
            if first is None:
                first = item[0]
            if len(found) == n:
                break
            if item[0] not in self._hidden:
                found.append(item)
        if first is not None:
            fronts[lane] = first
        elif until is None:
            del fronts[lane]
        else:
            fronts[lane] = end
        return found

    def walk(self, suffix: bytes, below: int, n: int) -> list[Item]:
        """Up to `n` entries of the lanes before `below` that are not hidden, behind the one with this suffix."""
        start = self._prefix + suffix + b"\x00" if suffix else self._prefix
        found: list[Item] = []
        for item in self._disk.scan(start, self._start(below)):
            if len(found) == n:
                break
            if item[0] not in self._hidden:
                found.append(item)
        return found

    def _found(self) -> dict[int, bytes]:
        if self._fronts is None:
            fronts: dict[int, bytes] = {}
            start = self._prefix
            while (head := next(iter(self._disk.scan(start, self._end)), None)) is not None:
                lane = self._lane_of(head[0])
                fronts[lane] = head[0]
                start = self._start(lane + 1)
            self._fronts = fronts
        return self._fronts

    def _start(self, lane: int) -> bytes:
        return self._prefix + lane.to_bytes(self._width, "big")

    def _lane_of(self, entry: bytes) -> int:
        return int.from_bytes(entry[_LANE_AT : _LANE_AT + self._width], "big")


def _order(entry: bytes) -> float:
    return from_sortable(entry[_ORDER_AT:_KEY_AT])


def _lane(one: Waiting) -> int:
    return one.entry[_LANE_AT]


def _first_seen(one: Waiting) -> float:
    return 0.0 if one.record is None else one.record.first_seen


def _check(horizon: Sequence[float], lanes: int) -> None:
    if len(horizon) != lanes:
        raise ValueError(f"a lease needs a horizon of {lanes} times here, not {len(horizon)}")
