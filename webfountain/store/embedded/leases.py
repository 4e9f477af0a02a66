"""Who holds what: the site leases and the URL leases under them. All of it in memory.

A lease only hides its page's queue entry, so a process that dies gives everything back by dying. Tokens and numbers
carry the number of the store's opening in their upper bits: one of before a crash is unknown ever after.

One site's queues on disk, read from the front: what a lease takes and what is due. Leased entries stay on disk and
are only hidden, so a crash returns them. Entries that were settled leave deleted keys behind at the front of their
lane; a *front* is a place before which nothing stands, so that they are walked over once and not at every lease.
Fronts are kept for active sites and are only ever too early.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.records import Lease, LeaseId
from webfountain.store.contract import CLASSES, IMMEDIATE, LANES
from webfountain.store.embedded.disk import IMMEDIATE_NEVER, NEVER, RECRAWL, after, arrival_of, waiting_record
from webfountain.store.rules import Candidate, choose, from_sortable, to_sortable

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.rows import PagePlace

__all__ = ["Entry", "Held", "LeasedSite", "Leases", "SiteQueues"]

_LANE_AT: Final = 9
_NEVER_WIDTH: Final = 1
_RECRAWL_WIDTH: Final = 2
_ORDER_AT: Final = _LANE_AT + _RECRAWL_WIDTH
_KEY_AT: Final = _ORDER_AT + 8

Item = tuple[bytes, bytes]
"""Key and value of an entry."""


class Entry(NamedTuple):
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

    def immediate(self, n: int) -> list[Entry]:
        """Up to `n` entries of the immediate lane, which lies half in either queue, in order of arrival."""
        new = [(float(arrival_of(item[0])), self._waiting(item)) for item in self._never.first(IMMEDIATE_NEVER, n)]
        tried = [(_order(entry), Entry(entry, entry[_KEY_AT:], None)) for entry, _ in self._recrawl.first(IMMEDIATE, n)]
        return [waiting for _, waiting in heapq.merge(new, tried)][:n]

    def never_crawled(self, n: int, horizon: Sequence[float] | None) -> list[Entry]:
        """Up to `n` due entries of the never-crawled lanes, as `choose` takes them."""
        if horizon is None:
            return [self._waiting(item) for item in self._never.in_order(CLASSES, n)]
        _check(horizon, CLASSES)
        offered: dict[bytes, Entry] = {}
        due: list[Candidate] = []
        for lane in self._never.lanes(CLASSES):
            entries = map(self._waiting, self._never.first(lane, n))
            for one in takewhile(lambda one: _first_seen(one) <= horizon[_lane(one)], entries):
                offered[one.key] = one
                due.append(Candidate(lane, _first_seen(one), arrival_of(one.entry), one.key))
        return [offered[one.key] for one in choose(due, n, horizon)]

    def recrawl(self, n: int, horizon: Sequence[float]) -> tuple[list[Entry], list[tuple[int, float]]]:
        """Up to `n` due entries of the recrawl lanes, as `choose` takes them; and what each lane then begins with."""
        _check(horizon, LANES)
        entries: dict[Candidate, bytes] = {}
        for lane in self._recrawl.lanes(LANES):
            # One more than can be chosen, or the first that is not due: one of them is left, where any is.
            for entry, _ in self._recrawl.first(lane, n + 1, until=to_sortable(horizon[lane] + 0.0)):
                entries[Candidate(lane, _order(entry), 0, entry[_KEY_AT:])] = entry
        chosen = choose([one for one in entries if one.order <= horizon[one.lane]], n, horizon)
        taken, left = set(chosen), dict[int, float]()
        for one in entries:
            if one not in taken:
                left.setdefault(one.lane, one.order)
        return [Entry(entries[one], one.key, None) for one in chosen], list(left.items())

    def after(self, suffix: bytes, n: int) -> list[Entry]:
        """Up to `n` never-crawled entries of all classes behind the one with this suffix (b"": all), in order."""
        return [self._waiting(item) for item in self._never.behind(suffix, CLASSES, n)]

    def _waiting(self, item: Item) -> Entry:
        key, record = waiting_record(self._site, *item)
        return Entry(item[0], key, record)


class _Lanes:
    """The lanes of one queue of a site: their keys are `prefix`, the lane in `width` bytes, the order within it.

    A lane is *read* once a scan has come to it: from then on its front is kept. Lanes are read in order.
    """

    __slots__ = ("_disk", "_fronts", "_hidden", "_prefix", "_unread", "_width")

    def __init__(self, disk: Disk, prefix: bytes, width: int, hidden: Container[bytes]) -> None:
        self._disk = disk
        self._prefix = prefix
        self._width = width
        self._hidden = hidden
        self._fronts: dict[int, bytes] = {}
        self._unread = 0

    def note(self, entry: bytes) -> None:
        """An entry was added."""
        lane = self._lane_of(entry)
        if lane < self._unread or lane in self._fronts:
            self._fronts[lane] = min(self._fronts.get(lane, entry), entry)

    def lanes(self, below: int) -> list[int]:
        """The lanes before `below` that may hold entries, in order; found by one seek a lane when first asked for."""
        if self._unread < below:
            for entry in self._disk.first_of_each(
                self._start(self._unread), self._start(below), width=_LANE_AT + self._width
            ):
                self._fronts[self._lane_of(entry)] = entry
            self._unread = below
        return sorted(lane for lane in self._fronts if lane < below)

    def first(self, lane: int, n: int, *, until: bytes | None = None) -> list[Item]:
        """Up to `n` entries of a lane that are not hidden, of those behind the order `until` only the first.

        A lane that turns out to be empty is struck from the list. One short scan.
        """
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
        """Up to `n` entries of the lanes before `below` that are not hidden, lane after lane.

        One short scan for each lane that was read, and one for all that were not.
        """
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
        """Up to `n` entries of the lanes before `below` that are not hidden, behind the one with this suffix."""
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


def _check(horizon: Sequence[float], lanes: int) -> None:
    if len(horizon) != lanes:
        raise ValueError(f"a lease needs a horizon of {lanes} times here, not {len(horizon)}")


_GENERATION_BITS: Final = 40
"""10^12 leases an opening."""


@dataclass(slots=True)
class Held:
    """A URL lease that is out. `place.record` is the record as it is now, `handed` the one that was handed out: a copy
    can move meanwhile.
    """

    id: LeaseId
    place: PagePlace
    handed: PageRecord


@dataclass(slots=True)
class LeasedSite:
    """An active site: who has it by which token until when, the fronts of its queues, and what is leased of it."""

    owner: str
    token: int
    until: float
    queues: SiteQueues
    fresh: float = math.inf
    """When the first new URL came that no never-crawled lease has reached since (inf: none)."""
    hurried: bool = False
    """Whether an immediate URL came that no immediate lease has reached since."""
    overtaken: bool = False
    """Whether a URL that is leased became immediate, and the owner does not know."""
    out: set[int] = field(default_factory=set)
    """Numbers of the URL leases under this site lease."""
    immediate_out: int = 0
    """How many of those come from the immediate lane."""


class Leases:
    """The active sites, the URL leases that are out, and the queue entries that those hide."""

    def __init__(self, generation: int) -> None:
        self.active: dict[str, LeasedSite] = {}
        self.hidden: set[bytes] = set()
        self.fenced = 0
        """Steps that named a site lease that was lost."""
        self.immediate_out = 0
        """URL leases from immediate lanes."""
        self._given = generation << _GENERATION_BITS
        self._held: dict[int, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def under(self, lease: SiteLease) -> LeasedSite | None:
        """The active site of a site lease; None when the lease is lost, which is counted."""
        active = self.active.get(lease.site)
        if active is None or active.token != lease.token:
            self.fenced += 1
            return None
        return active

    def enter(self, site: str, owner: str, until: float, queues: SiteQueues) -> None:
        """Give a site to an owner, under a new token; who had it has lost it, and its URLs are back."""
        self.leave(site)
        self._given += 1
        self.active[site] = LeasedSite(owner, self._given, until, queues)

    def leave(self, site: str) -> None:
        """The site lease ends and with it the URL leases: their pages return to where they were."""
        active = self.active.pop(site, None)
        for number in () if active is None else active.out:
            self._drop(self._held.pop(number))

    def ran_out(self, at: float) -> list[tuple[float, str]]:
        """The active sites whose lease ran out at or before `at`, each after that time."""
        return [(active.until, site) for site, active in self.active.items() if active.until <= at]

    def get(self, lease: LeaseId) -> Held | None:
        """The URL lease of an id, None when it is not out."""
        held = self._held.get(lease.number)
        return held if held is not None and held.id == lease else None

    def hold(self, active: LeasedSite, place: PagePlace) -> Lease:
        """Hand a page of an active site out."""
        self._given += 1
        record = place.record
        if record.immediate is not None:
            record = msgspec.structs.replace(record, immediate=None)
            active.immediate_out += 1
            self.immediate_out += 1
        name = LeaseId(place.site, active.token, self._given)
        self._held[self._given] = Held(name, place, record)
        active.out.add(self._given)
        self.hidden.add(place.entry)
        return Lease(name, place.key, record)

    def end(self, lease: LeaseId) -> bool:
        """A URL lease ends: its entry is gone from the queue, or stands there again. Whether it was out."""
        held = self.get(lease)
        if held is None:
            return False
        del self._held[lease.number]
        active = self.active[lease.site]
        active.out.discard(lease.number)
        active.immediate_out -= held.place.record.immediate is not None
        self._drop(held)
        return True

    def follow(self, entry: bytes, record: PageRecord) -> None:
        """The record behind a queue entry changed while it was out."""
        if entry in self.hidden:
            for held in self._held.values():
                if held.place.entry == entry:
                    held.place.record = record

    def overtake(self, place: PagePlace) -> None:
        """A leased page became immediate: its entry moved to this place, where it stands when the lease is released."""
        active = self.active[place.site]
        for lease in self.of_page(place.site, place.key):
            held = self._held[lease.number]
            self.hidden.discard(held.place.entry)
            self.hidden.add(place.entry)
            held.place = place
            active.overtaken = True
            active.immediate_out += 1
            self.immediate_out += 1

    def of_page(self, site: str, key: bytes) -> Iterator[LeaseId]:
        """The lease of a page, where it is out."""
        active = self.active.get(site)
        for number in list(active.out) if active is not None else ():
            if self._held[number].place.key == key:
                yield self._held[number].id

    def _drop(self, held: Held) -> None:
        self.hidden.discard(held.place.entry)
        self.immediate_out -= held.place.record.immediate is not None
