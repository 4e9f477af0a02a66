"""One site's two queues on disk, read from the front: what a lease takes and what is due.

Leased entries stay on disk and are only hidden, so a crash returns them. Entries that were settled leave
deleted keys behind at the front of their queue; a *front* is a place before which nothing stands, so that they are
walked over once and not at every lease. Fronts are kept for active sites and are only ever too early.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from webfountain.store.codec import from_sortable, to_sortable
from webfountain.store.contract import LANES
from webfountain.store.embedded.keys import NEVER, RECRAWL, after
from webfountain.store.lanes import Candidate, choose

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from webfountain.store.embedded.disk import Disk

__all__ = ["SiteQueues"]

_lane = struct.Struct(">H")
_LANE_AT = 9
_ORDER_AT = 11
_KEY_AT = 19


class SiteQueues:
    """The fronts of one site's queues. `hidden` holds the entries that are leased or wait at once."""

    __slots__ = ("_disk", "_hidden", "_lanes", "_never", "_recrawl", "_recrawl_end")

    def __init__(self, disk: Disk, sid: bytes, hidden: Container[bytes]) -> None:
        self._disk = disk
        self._hidden = hidden
        self._never = NEVER + sid
        self._recrawl = RECRAWL + sid
        self._recrawl_end = after(self._recrawl)
        self._lanes: dict[int, bytes] | None = None

    def note(self, entry: bytes) -> None:
        """An entry was added: a front may not lie behind it."""
        if entry[:1] == NEVER:
            self._never = min(self._never, entry)
        elif self._lanes is not None:
            lane = _lane.unpack_from(entry, _LANE_AT)[0]
            self._lanes[lane] = min(self._lanes.get(lane, entry), entry)

    def first_never(self, n: int) -> list[tuple[bytes, bytes]]:
        """Up to `n` never-crawled entries that are not hidden, keys and values in order of service."""
        found: list[tuple[bytes, bytes]] = []
        first = None
        for item in self._disk.scan(self._never, after(self._never[:9])):
            if first is None:
                first = item[0]
            if len(found) == n:
                break
            if item[0] not in self._hidden:
                found.append(item)
        self._never = self._never if first is None else first
        return found

    def first_due(self, n: int, horizon: Sequence[float]) -> list[tuple[bytes, bytes]]:
        """Up to `n` due entries of the recrawl lanes, as `choose` takes them: (entry, page key)."""
        if len(horizon) != LANES:
            raise ValueError(f"a recrawl lease needs a horizon of {LANES} times, not {len(horizon)}")
        entries: dict[tuple[int, bytes], bytes] = {}
        due: list[Candidate] = []
        for lane, front in sorted(self._fronts().items()):
            if from_sortable(front[_ORDER_AT:_KEY_AT]) <= horizon[lane]:
                for entry in self._lane_until(lane, n, horizon[lane]):
                    key = entry[_KEY_AT:]
                    entries[lane, key] = entry
                    due.append(Candidate(lane, from_sortable(entry[_ORDER_AT:_KEY_AT]), key))
        return [(entries[one.lane, one.key], one.key) for one in choose(due, n, horizon)]

    def recrawl_due(self) -> list[tuple[int, float]]:
        """For each recrawl lane with an entry that is not hidden: (lane, order of the first)."""
        heads: list[tuple[int, float]] = []
        for lane in sorted(self._fronts()):
            head = self._head(lane)
            if head is not None:
                heads.append((lane, from_sortable(head[_ORDER_AT:_KEY_AT])))
        return heads

    def _head(self, lane: int) -> bytes | None:
        """The lane's first entry that is not hidden; a lane without any entry is struck from the list."""
        fronts = self._fronts()
        first = None
        for entry, _ in self._disk.scan(fronts[lane], after(self._recrawl + _lane.pack(lane))):
            if first is None:
                fronts[lane] = first = entry
            if entry not in self._hidden:
                return entry
        if first is None:
            del fronts[lane]
        return None

    def _lane_until(self, lane: int, n: int, horizon: float) -> list[bytes]:
        """Up to `n` entries of a lane, ordered at or before `horizon`, that are not hidden."""
        fronts = self._fronts()
        end = after(self._recrawl + _lane.pack(lane) + to_sortable(horizon + 0.0))
        found: list[bytes] = []
        first = None
        for entry, _ in self._disk.scan(fronts[lane], end):
            if first is None:
                first = entry
            if len(found) == n:
                break
            if entry not in self._hidden:
                found.append(entry)
        fronts[lane] = end if first is None else first
        return found

    def _fronts(self) -> dict[int, bytes]:
        """The lanes that may hold entries, each with its front; found by one seek a lane."""
        if self._lanes is None:
            lanes: dict[int, bytes] = {}
            start = self._recrawl
            while (head := next(iter(self._disk.scan(start, self._recrawl_end)), None)) is not None:
                lane = _lane.unpack_from(head[0], _LANE_AT)[0]
                lanes[lane] = head[0]
                start = self._recrawl + _lane.pack(lane + 1)
            self._lanes = lanes
        return self._lanes
