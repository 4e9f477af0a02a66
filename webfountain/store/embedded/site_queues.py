"""The queues of one site on disk.

The queue entries of leased URLs stay on disk and are only hidden. When URLs are settled, their deleted keys remain at
the beginning of the lane for a time. Each scan of a lane starts at the lane's *front*, so that deleted keys are scanned
only once.
"""

from __future__ import annotations

import heapq
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.store.codec import from_sortable, to_sortable
from webfountain.store.embedded.keys import IMMEDIATE_NEVER, NEVER, RECRAWL, after, arrival_of, waiting_record
from webfountain.store.lanes import CLASSES, IMMEDIATE, LANES, Candidate, check_horizon, choose

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from webfountain.records import PageRecord
    from webfountain.store.embedded.disk import Disk

__all__ = ["Entry", "SiteQueues"]

_LANE_AT: Final = 9
_NEVER_WIDTH: Final = 1
_RECRAWL_WIDTH: Final = 2
_ORDER_AT: Final = _LANE_AT + _RECRAWL_WIDTH
_KEY_AT: Final = _ORDER_AT + 8

Item = tuple[bytes, bytes]
"""Key and value of a queue entry."""


class Entry(NamedTuple):
    """A queue entry: its key, the key of the page, and the page's record. A recrawl entry has None as its record."""

    entry: bytes
    key: bytes
    record: PageRecord | None


class SiteQueues:
    """The never-crawled queue and the recrawl queue of one site. `hidden` contains the queue entries of leased URLs."""

    __slots__ = ("_never", "_recrawl", "_site")

    def __init__(self, disk: Disk, site: str, sid: bytes, hidden: Container[bytes]) -> None:
        self._site = site
        self._never = _Lanes(disk, NEVER + sid, _NEVER_WIDTH, hidden)
        self._recrawl = _Lanes(disk, RECRAWL + sid, _RECRAWL_WIDTH, hidden)

    def note(self, entry: bytes) -> None:
        """Record a new entry, so that scans of its lane do not start after it."""
        (self._never if entry[:1] == NEVER else self._recrawl).note(entry)

    def immediate(self, n: int) -> list[Entry]:
        """Return up to `n` immediate entries of both queues, in order of arrival."""
        new = [(float(arrival_of(item[0])), self._waiting(item)) for item in self._never.first(IMMEDIATE_NEVER, n)]
        tried = [(_order(entry), Entry(entry, entry[_KEY_AT:], None)) for entry, _ in self._recrawl.first(IMMEDIATE, n)]
        return [waiting for _, waiting in heapq.merge(new, tried)][:n]

    def never_crawled(self, n: int, horizon: Sequence[float] | None) -> list[Entry]:
        """Return up to `n` due entries of the never-crawled lanes, chosen by `choose`."""
        if horizon is None:
            return [self._waiting(item) for item in self._never.in_order(CLASSES, n)]
        check_horizon(horizon, CLASSES)
        offered: dict[bytes, Entry] = {}
        due: list[Candidate] = []
        for lane in self._never.lanes(CLASSES):
            entries = map(self._waiting, self._never.first(lane, n))
            for one in takewhile(lambda one: _first_seen(one) <= horizon[_lane(one)], entries):
                offered[one.key] = one
                due.append(Candidate(lane, _first_seen(one), arrival_of(one.entry), one.key))
        return [offered[one.key] for one in choose(due, n, horizon)]

    def recrawl(self, n: int, horizon: Sequence[float]) -> tuple[list[Entry], list[tuple[int, float]]]:
        """Return up to `n` due entries of the recrawl lanes, chosen by `choose`, and the sort value of each lane's next
        entry.
        """
        check_horizon(horizon, LANES)
        entries: dict[Candidate, bytes] = {}
        for lane in self._recrawl.lanes(LANES):
            # Read up to the first entry that is not due, at most one entry more than can be chosen. So one entry is
            # left over, if there is any.
            for entry, _ in self._recrawl.first(lane, n + 1, until=to_sortable(horizon[lane] + 0.0)):
                entries[Candidate(lane, _order(entry), 0, entry[_KEY_AT:])] = entry
        chosen = choose([one for one in entries if one.order <= horizon[one.lane]], n, horizon)
        taken, left = set(chosen), dict[int, float]()
        for one in entries:
            if one not in taken:
                left.setdefault(one.lane, one.order)
        return [Entry(entries[one], one.key, None) for one in chosen], list(left.items())

    def after(self, suffix: bytes, n: int) -> list[Entry]:
        """Return the next `n` never-crawled entries, over all classes, after the entry with this suffix. If the suffix
        is b"", return the first `n` entries.
        """
        return [self._waiting(item) for item in self._never.behind(suffix, CLASSES, n)]

    def _waiting(self, item: Item) -> Entry:
        key, record = waiting_record(self._site, *item)
        return Entry(item[0], key, record)


class _Lanes:
    """The lanes of one queue of a site. A key consists of `prefix`, the lane in `width` bytes, and the sort value in
    the lane.
    """

    __slots__ = ("_disk", "_fronts", "_hidden", "_prefix", "_unread", "_width")

    def __init__(self, disk: Disk, prefix: bytes, width: int, hidden: Container[bytes]) -> None:
        self._disk = disk
        self._prefix = prefix
        self._width = width
        self._hidden = hidden
        self._fronts: dict[int, bytes] = {}
        self._unread = 0  # no scan has reached this lane, or a later one

    def note(self, entry: bytes) -> None:
        lane = self._lane_of(entry)
        if lane < self._unread or lane in self._fronts:
            self._fronts[lane] = min(self._fronts.get(lane, entry), entry)

    def lanes(self, below: int) -> list[int]:
        """Return, in order, the lanes with numbers less than `below` that may have entries."""
        if self._unread < below:
            for entry in self._disk.first_of_each(
                self._start(self._unread), self._start(below), width=_LANE_AT + self._width
            ):
                self._fronts[self._lane_of(entry)] = entry
            self._unread = below
        return sorted(lane for lane in self._fronts if lane < below)

    def first(self, lane: int, n: int, *, until: bytes | None = None) -> list[Item]:
        """Return the first `n` entries of a lane, without those of leased URLs, by one short scan. The scan stops at
        the first entry that sorts after `until`."""
        if n <= 0 or (lane < self._unread and lane not in self._fronts):
            return []
        start = self._start(lane)
        end = after(start)
        behind = end if until is None else after(start + until)
        found: list[Item] = []
        first = None
        for item in self._disk.scan(self._fronts.get(lane, start), end):
            if first is None:
                first = item[0]
            if item[0] not in self._hidden:
                found.append(item)
                if len(found) == n or item[0] >= behind:
                    break
        if first is None and lane < self._unread:
            del self._fronts[lane]
        else:
            self._fronts[lane] = first or end
        return found

    def in_order(self, below: int, n: int) -> list[Item]:
        """Return up to `n` entries, lane after lane, without those of leased URLs. Only lanes with numbers less than
        `below` are read."""
        found: list[Item] = []
        for lane in sorted(lane for lane in self._fronts if lane < min(below, self._unread)):
            found += self.first(lane, n - len(found))
        if len(found) < n and self._unread < below:
            for item in self._disk.scan(self._start(self._unread), self._start(below)):
                lane = self._lane_of(item[0])
                self._fronts.setdefault(lane, item[0])
                if item[0] not in self._hidden:
                    found.append(item)
                    if len(found) == n:
                        self._unread = lane + 1
                        return found
            self._unread = below
        return found

    def behind(self, suffix: bytes, below: int, n: int) -> list[Item]:
        """Return the next `n` entries, without those of leased URLs, after the entry with this suffix. Only lanes with
        numbers less than `below` are read.
        """
        start = self._prefix + suffix + b"\x00" if suffix else self._prefix
        found: list[Item] = []
        for item in self._disk.scan(start, self._start(below)):
            if len(found) == n:
                break
            if item[0] not in self._hidden:
                found.append(item)
        return found

    def _start(self, lane: int) -> bytes:
        return self._prefix + lane.to_bytes(self._width, "big")

    def _lane_of(self, entry: bytes) -> int:
        return int.from_bytes(entry[_LANE_AT : _LANE_AT + self._width], "big")


def _order(entry: bytes) -> float:
    return from_sortable(entry[_ORDER_AT:_KEY_AT])


def _lane(one: Entry) -> int:
    return one.entry[_LANE_AT]


def _first_seen(one: Entry) -> float:
    return 0.0 if one.record is None else one.record.first_seen
