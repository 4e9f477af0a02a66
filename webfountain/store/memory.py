"""The reference store: plain dicts and sorted lists, obviously right, gone when the process ends.

It is the specification in code that the other stores are raced against, and the store of tests and
simulations. A lease is cheap up to some hundred thousand URLs a site; it keeps nothing on disk.

One site of the reference store: its pages, and its queues as sorted lists. A lane is named by its queue and its
number in it; an entry sorts as it is served. What is leased was taken off.

Claims and letters within one process are the reference that the shared store's are held against.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain.errors import CursorLost
from webfountain.records import (
    STATES,
    Discovered,
    Lease,
    LeaseId,
    PageRecord,
    Settled,
    SiteLease,
    SiteRecord,
    SiteState,
)
from webfountain.store import transfer
from webfountain.store.contract import (
    AT_ONCE,
    CLASSES,
    LANES,
    BucketCensus,
    Claim,
    Dealt,
    Reassigned,
    Regraded,
    Statistics,
    class_of,
    recrawl_place,
)
from webfountain.store.rules import (
    BEGIN_ANEW,
    MILLISECONDS,
    Candidate,
    Counted,
    check_settled,
    choose,
    count_arrivals,
    count_outcome,
    cursor_at,
    entry_of,
    evicted,
    first_record,
    is_held,
    last_crawled_ms,
    parting,
    period_of,
    rows_of,
    sequence_of,
    without_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from webfountain.records import CensusRow, Change, ChangeVerdict, Link, Move, Outcome, State
    from webfountain.store.contract import FeedForm, Parked, Refill
    from webfountain.store.transfer import Row

__all__ = [
    "Holder",
    "LocalClaims",
    "MemorySite",
    "MemoryStore",
    "Queue",
    "dequeue",
    "enqueue",
    "first_due",
    "first_immediate",
    "in_class",
    "site_record",
]

Queue = Literal["immediate", "never-crawled", "recrawl"]
Lane = tuple[Queue, int]
_Entry = tuple[float, bytes]
"""Order of service within the lane, page key."""
_IMMEDIATE: Final[Lane] = ("immediate", 0)

_STATE: Final = attrgetter("state")


@dataclass(slots=True)
class Holder:
    """Who has a site: by which token, until when, and what came meanwhile that no lease has reached."""

    owner: str
    token: int
    until: float
    fresh: float = math.inf
    """When the first new URL came that no never-crawled lease has reached since (inf: none)."""
    hurried: bool = False
    """Whether an immediate URL came that no immediate lease has reached since."""
    overtaken: bool = False
    """Whether a URL that is leased became immediate, and the owner does not know."""


@dataclass(slots=True)
class MemorySite:
    """One site: its pages, and what stands in which lane, in the order of service."""

    first_seen: float
    due: float
    pages: dict[bytes, PageRecord] = field(default_factory=dict)
    arrival: dict[bytes, int] = field(default_factory=dict)
    lanes: dict[Lane, list[_Entry]] = field(default_factory=dict)
    state: SiteState = field(default_factory=SiteState)
    learned: bytes = b""
    parts: dict[int, bytes] = field(default_factory=dict)
    epoch: int = 0
    regrading: tuple[int, tuple[int, int]] | None = None
    """The epoch that is being brought in, and class and arrival of the URL that it has come to."""
    holder: Holder | None = None


def _place(home: MemorySite, key: bytes) -> tuple[Lane, _Entry]:
    record = home.pages[key]
    if record.immediate is not None:
        return _IMMEDIATE, (record.immediate, key)
    if record.state == "never-crawled":
        return ("never-crawled", class_of(record.importance)), (home.arrival[key], key)
    lane, order = recrawl_place(record)
    return ("recrawl", lane), (order, key)


def enqueue(home: MemorySite, key: bytes) -> None:
    """Put a page into the lane that its record names."""
    lane, entry = _place(home, key)
    insort(home.lanes.setdefault(lane, []), entry)


def dequeue(home: MemorySite, key: bytes) -> None:
    """Take a page off the lane that its record names."""
    lane, entry = _place(home, key)
    entries = home.lanes[lane]
    del entries[bisect_left(entries, entry)]


def first_immediate(home: MemorySite, n: int) -> list[bytes]:
    """Up to `n` keys of the immediate lane, in order."""
    return [key for _, key in home.lanes.get(_IMMEDIATE, ())[:n]]


def first_due(home: MemorySite, queue: Queue, n: int, horizon: Sequence[float] | None) -> list[bytes]:
    """Up to `n` keys of a queue that are due."""
    lanes = CLASSES if queue == "never-crawled" else LANES
    horizon = [math.inf] * lanes if horizon is None else horizon
    if len(horizon) != lanes:
        raise ValueError(f"a lease of the {queue} queue needs a horizon of {lanes} times, not {len(horizon)}")
    due: list[Candidate] = []
    for (of, lane), entries in home.lanes.items():
        if of == queue:
            offered = (_candidate(home, queue, lane, entry) for entry in entries)
            due += islice(takewhile(lambda one: one.order <= horizon[one.lane], offered), n)
    return [one.key for one in choose(due, n, horizon)]


def _candidate(home: MemorySite, queue: Queue, lane: int, entry: _Entry) -> Candidate:
    order, key = entry
    if queue == "never-crawled":
        return Candidate(lane, home.pages[key].first_seen, home.arrival[key], key)
    return Candidate(lane, order, 0, key)


def in_class(home: MemorySite, after: tuple[int, int]) -> list[tuple[int, int, bytes]]:
    """The never-crawled entries after a class and arrival, in the order of service: (class, arrival, key)."""
    entries = [
        (lane, int(arrival), key)
        for (of, lane), entries in home.lanes.items()
        if of == "never-crawled"
        for arrival, key in entries
    ]
    return sorted(entry for entry in entries if entry[:2] > after)


def site_record(name: str, home: MemorySite) -> SiteRecord:
    """The site as the contract shows it."""
    states = [record.state for record in home.pages.values()]
    return SiteRecord(
        site=name,
        pages=tuple(states.count(state) for state in STATES),
        due=home.due,
        first_seen=home.first_seen,
        state=home.state,
        owner=None if home.holder is None else home.holder.owner,
        immediate=sum(record.immediate is not None for record in home.pages.values()),
        epoch=home.epoch,
        learned=home.learned,
    )


class MemoryStore:
    """`FrontierStore` in the memory of one process.

    `period_s` is the length of a census period, `fastest_s` the mean change interval of bucket 0 [period_s / 96].
    `claims` are given where several crawlers of the process share the store.
    """

    def __init__(
        self,
        *,
        period_s: float,
        fastest_s: float | None = None,
        collection: str = "",
        claims: LocalClaims | None = None,
    ) -> None:
        self.claims = claims
        self._collection = collection
        self._period_s = period_s
        self._fastest_s = period_s / 96 if fastest_s is None else fastest_s
        self._sites: dict[str, MemorySite] = {}
        self._barred_sites: set[str] = set()
        self._barred: set[tuple[str, bytes]] = set()
        self._leases: dict[int, Lease] = {}
        self._out: set[tuple[str, bytes]] = set()
        self._counted: Counted = {}
        self._values: dict[str, bytes] = {}
        self._tokens = 0
        self._numbers = 0
        self._arrivals = 0
        self._settle_lost = 0
        self._fenced = 0
        self._log = secrets.token_hex(4)
        self._changes: list[Change] = []
        self._dropped = 0

    # ------------------------------------------------------------------- URLs

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """See `UrlQueues.discover`."""
        fresh: list[Link] = []
        repeated: list[int] = []
        for nth, link in enumerate(links):
            if self._add(link, at):
                fresh.append(link)
            else:
                repeated.append(nth)
        count_arrivals(self._counted, period_of(at, self._period_s), sum(not link.source for link in fresh))
        return Discovered(len(fresh), len(repeated), tuple(repeated))

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """See `UrlQueues.immediate`."""
        self.discover(links, at=at)
        return sum(self._put_immediate(link) for link in links)

    def lease(self, refills: Sequence[Refill]) -> list[Dealt | None]:
        """See `UrlQueues.lease`."""
        return [self._deal(refill) for refill in refills]

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> Settled:
        """See `UrlQueues.settle`."""
        check_settled(outcomes)
        applied = sum(self._settle_one(outcome, at) for outcome in outcomes)
        self._settle_lost += len(outcomes) - applied
        for lease, state in learned:
            if self._holds(lease):
                self._sites[lease.site].learned = state
        for lease, number, part in parts:
            if self._holds(lease):
                self._sites[lease.site].parts.pop(number, None)
                if part:
                    self._sites[lease.site].parts[number] = part
        return Settled(applied, len(outcomes) - applied)

    def release(self, leases: Sequence[LeaseId]) -> int:
        """See `UrlQueues.release`."""
        return sum(self._give_back(one) for one in leases)

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """See `UrlQueues.advance`."""
        return sum(self._advance_one(site, key, due) for key in dict.fromkeys(keys))

    def reassign(
        self, site: str, keys: Sequence[bytes], revised: Callable[[PageRecord], PageRecord | None]
    ) -> Reassigned:
        """See `UrlQueues.reassign`."""
        put, leased = 0, []
        for key in dict.fromkeys(keys):
            record = self.page(site, key)
            new = None if record is None else revised(record)
            if new is not None and (site, key) in self._out:
                leased.append(key)
            elif new is not None:
                home = self._sites[site]
                dequeue(home, key)
                home.pages[key] = new
                enqueue(home, key)
                put += 1
        return Reassigned(put, tuple(leased))

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.activate`."""
        due = sorted((_available(home), name) for name, home in self._sites.items())
        return [self._wake(name, owner, until, at) for when, name in due[:n] if when <= at]

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.enlist`."""
        free = [
            name for name in sites if (home := self._sites.get(name)) and (not home.holder or _available(home) <= at)
        ]
        return [self._wake(name, owner, until, at) for name in free]

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """See `SiteList.renew`."""
        held = [lease for lease in leases if self._holds(lease)]
        for lease in held:
            self._holder(lease.site).until = until
        return [msgspec.structs.replace(lease, until=until) for lease in held]

    def park(self, parked: Sequence[Parked], *, at: float) -> int:
        """See `SiteList.park`."""
        return sum(self._sleep(one, at) for one in parked)

    def next_site_due(self) -> float | None:
        """See `SiteList.next_site_due`."""
        first = min(map(_available, self._sites.values()), default=math.inf)
        return None if first == math.inf else first

    def urgent(self, owner: str) -> list[SiteLease]:
        """See `SiteList.urgent`."""
        return [
            self._lease_of(name)
            for name, home in sorted(self._sites.items())
            if home.holder is not None
            and home.holder.owner == owner
            and (home.holder.overtaken or first_immediate(home, 1))
        ]

    def site(self, site: str) -> SiteRecord | None:
        """See `SiteList.site`."""
        home = self._sites.get(site)
        return None if home is None else site_record(site, home)

    def part(self, site: str, number: int) -> bytes | None:
        """See `SiteList.part`."""
        home = self._sites.get(site)
        return None if home is None else home.parts.get(number)

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `SiteList.sites`."""
        names = sorted(name for name in self._sites if name > after)[:n]
        return [site_record(name, self._sites[name]) for name in names]

    # ------------------------------------------------------------------ pages

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `Pages.page`."""
        home = self._sites.get(site)
        return None if home is None else home.pages.get(key)

    def records(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """See `PageReader.records`."""
        return [self.page(site, key) for key in keys]

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `Pages.pages`."""
        for name in list(self._sites) if site is None else [site]:
            home = self._sites.get(name)
            for record in [] if home is None else list(home.pages.values()):
                if state is None or record.state == state:
                    yield name, record

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `Pages.forget`."""
        home = self._sites.get(site)
        keys = sorted(home.pages if home else ()) if key is None else [key]
        removed = sum(self._remove(site, each, at) for each in keys)
        if key is not None:
            self._barred.add((site, key))
        else:
            self._barred_sites.add(site)
            self._sites.pop(site, None)
        return removed

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """See `Pages.evict`."""
        return sum(self._evict_one(lease.site, key, at) for key in keys) if self._holds(lease) else None

    def regrade(
        self, lease: SiteLease, importance: Callable[[Sequence[PageRecord]], Sequence[float]], *, epoch: int, n: int
    ) -> Regraded | None:
        """See `Scores.regrade`."""
        if not self._holds(lease):
            return None
        home = self._sites[lease.site]
        if home.epoch == epoch:
            return Regraded(0, 0, done=True)
        after = home.regrading[1] if home.regrading is not None and home.regrading[0] == epoch else (-1, 0)
        entries = in_class(home, after)[:n]
        moved = _reweigh(home, [key for _, _, key in entries], importance)
        done = len(entries) < n
        home.regrading = None if done else (epoch, entries[-1][:2])
        home.epoch = epoch if done else home.epoch
        return Regraded(len(entries), moved, done)

    def reweigh(
        self, lease: SiteLease, keys: Sequence[bytes], importance: Callable[[Sequence[PageRecord]], Sequence[float]]
    ) -> int | None:
        """See `Scores.reweigh`."""
        if not self._holds(lease):
            return None
        home = self._sites[lease.site]
        waits = [
            key
            for key in keys
            if (record := home.pages.get(key)) is not None
            and record.state == "never-crawled"
            and record.immediate is None
            and (lease.site, key) not in self._out
        ]
        return _reweigh(home, waits, importance)

    # ----------------------------------------------------------------- counts

    @property
    def period_s(self) -> float:
        """Length of a census period, s."""
        return self._period_s

    @property
    def fastest_s(self) -> float:
        """Mean change interval of bucket 0, s."""
        return self._fastest_s

    def census(self) -> dict[int, BucketCensus]:
        """See `Census.census`."""
        sums: dict[int, tuple[int, int]] = {}
        for _, record in self.pages(state="crawled"):
            pages, total = sums.get(record.bucket, (0, 0))
            sums[record.bucket] = pages + 1, total + last_crawled_ms(record)
        return {bucket: BucketCensus(n, total / MILLISECONDS) for bucket, (n, total) in sorted(sums.items())}

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """See `Census.census_rows`."""
        return rows_of(item for item in self._counted.items() if item[0][0] >= since)

    def statistics(self) -> Statistics:
        """See `Census.statistics`; here it counts, in linear time."""
        pages = Counter(dict.fromkeys(STATES, 0))
        for home in self._sites.values():
            pages.update(map(_STATE, home.pages.values()))
        return Statistics(
            pages=dict(pages),
            sites=len(self._sites),
            active_sites=sum(home.holder is not None for home in self._sites.values()),
            leased=len(self._leases),
            immediate=sum(len(first_immediate(home, len(home.pages))) for home in self._sites.values()),
            settle_lost=self._settle_lost,
            fenced=self._fenced,
        )

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """See `Copies.copies`."""
        homes: dict[int, int] = {}
        for _, record in self.pages():
            if record.copy is not None and record.copy.repository == repository:
                homes[record.copy.file] = homes.get(record.copy.file, 0) + 1
        return homes

    def relocate(self, moves: Sequence[Move]) -> int:
        """See `Copies.relocate`."""
        followed = 0
        for move in moves:
            record = self.page(move.site, move.key)
            if record is not None and record.copy == move.old:
                self._sites[move.site].pages[move.key] = msgspec.structs.replace(record, copy=move.new)
                followed += 1
        return followed

    def changes(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """See `Changes.changes`."""
        first = self._dropped + 1
        after = first - 1 if cursor is None else sequence_of(cursor, self._log, first=first, last=self._last())
        found = self._changes[after - self._dropped :][:n]
        return [(cursor_at(self._log, entry.sequence), entry) for entry in found]

    def changes_end(self) -> str:
        """See `Changes.changes_end`."""
        return cursor_at(self._log, self._last())

    def changes_from(self, at: float) -> str:
        """See `Changes.changes_from`."""
        earlier = bisect_left(self._changes, at, key=lambda entry: entry.at)
        if not earlier and self._dropped:
            raise CursorLost(f"the change log does not reach back so far; {BEGIN_ANEW}")
        return cursor_at(self._log, self._dropped + earlier)

    def trim_changes(self, *, before: float, most: int) -> int:
        """See `Changes.trim_changes`."""
        went = max(bisect_left(self._changes, before, key=lambda entry: entry.at), len(self._changes) - most, 0)
        del self._changes[:went]
        self._dropped += went
        return went

    def value(self, name: str) -> bytes | None:
        """See `Board.value`."""
        return self._values.get(name)

    def put_value(self, name: str, value: bytes) -> None:
        """See `Board.put_value`."""
        self._values[name] = value

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """See `Feeds.feed`: there is no server."""

    def rows(self) -> Iterator[Row]:
        """See `Portable.rows`."""
        yield transfer.Head(self._collection, self._period_s, self._fastest_s, self._log, self._dropped)
        yield from (transfer.Value(*item) for item in sorted(self._values.items()))
        for (period, bucket), counts in sorted(self._counted.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
            yield transfer.Counted(period, bucket, tuple(counts))
        yield from (transfer.Barred(site) for site in sorted(self._barred_sites))
        yield from (transfer.Barred(*one) for one in sorted(self._barred) if one[0] not in self._barred_sites)
        for name, home in sorted(self._sites.items()):
            in_a_hurry = home.holder is not None and first_immediate(home, 1)
            due = AT_ONCE if in_a_hurry else home.due
            reg = None if home.regrading is None else (home.regrading[0], *home.regrading[1])
            yield transfer.Site(name, home.first_seen, due, home.state, home.epoch, home.learned, reg)
            for number, part in sorted(home.parts.items()):
                yield transfer.Part(name, number, part)
            for key, record in sorted(home.pages.items()):
                waits = record.state == "never-crawled" and record.immediate is None
                yield transfer.Page(name, key, record, home.arrival[key] if waits else None)
        yield from map(transfer.Logged, self._changes)

    @classmethod
    def of_rows(cls, rows: Iterator[Row]) -> Self:
        """The store that gave these rows, or one of another kind did."""
        head = transfer.head_of(rows)
        store = cls(period_s=head.period_s, fastest_s=head.fastest_s, collection=head.collection)
        store._log, store._dropped = head.log, head.dropped
        for row in rows:
            match row:
                case transfer.Value(name, value):
                    store._values[name] = value
                case transfer.Counted(period, bucket, counts):
                    store._counted[period, bucket] = list(counts)
                case transfer.Barred(site, None):
                    store._barred_sites.add(site)
                case transfer.Barred(site, bytes(key)):
                    store._barred.add((site, key))
                case transfer.Site():
                    home = store._sites[row.site] = MemorySite(row.first_seen, row.due, state=row.state)
                    home.epoch, home.learned = row.epoch, row.learned
                    home.regrading = None if row.regrading is None else (row.regrading[0], row.regrading[1:])
                case transfer.Part(site, number, part):
                    store._sites[site].parts[number] = part
                case transfer.Page(site, key, record, arrival):
                    home = store._sites[site]
                    home.pages[key], home.arrival[key] = record, arrival or record.immediate or 0
                    store._arrivals = max(store._arrivals, home.arrival[key])
                    enqueue(home, key)
                case transfer.Logged(change):
                    store._changes.append(change)
        return store

    def close(self) -> None:
        """Nothing to let go of."""

    def check_valid(self) -> None:
        """Assert that every known URL is in one lane of its site or leased, and every lease under a site lease."""
        out = [(lease.site, lease.key) for lease in self._leases.values()]
        assert sorted(self._out) == sorted(out), "a URL is leased twice"
        for lease in self._leases.values():
            assert self._holder(lease.site).token == lease.id.token, "a lease outlived its site lease"
        for name, home in self._sites.items():
            queued = [entry[1] for lane in home.lanes.values() for entry in lane]
            aside = [key for site, key in self._out if site == name]
            assert sorted(queued + aside) == sorted(home.pages), f"{name}: a URL is in no place or in two"
            assert all(lane == sorted(lane) for lane in home.lanes.values())

    # ------------------------------------------------------------ private: log

    def _last(self) -> int:
        return self._dropped + len(self._changes)

    def _note(self, entry: Change | None) -> None:
        if entry is not None:
            self._changes.append(entry)

    def _part(self, record: PageRecord, verdict: ChangeVerdict, site: str, key: bytes, at: float) -> None:
        if is_held(record):
            self._note(parting(record, verdict, site=site, key=key, at=at, sequence=self._last() + 1))

    # -------------------------------------------------------- private: leases

    def _holds(self, lease: SiteLease) -> bool:
        """Whether a site lease is the site's last, which else is counted."""
        home = self._sites.get(lease.site)
        held = home is not None and home.holder is not None and home.holder.token == lease.token
        self._fenced += not held
        return held

    def _holder(self, site: str) -> Holder:
        holder = self._sites[site].holder
        assert holder is not None, f"{site} is on nobody's active list"
        return holder

    def _deal(self, refill: Refill) -> Dealt | None:
        if not self._holds(refill.lease):
            return None
        site = refill.lease.site
        home, holder = self._sites[site], self._holder(site)
        urgent = [self._hold(site, key) for key in first_immediate(home, refill.immediate)]
        never = [
            self._hold(site, key) for key in first_due(home, "never-crawled", refill.never_crawled, refill.classes)
        ]
        horizon = refill.horizon if refill.recrawl else None
        recrawl = [self._hold(site, key) for key in first_due(home, "recrawl", refill.recrawl, horizon)]
        heads = (
            (lane, entries[0][0]) for (queue, lane), entries in home.lanes.items() if queue == "recrawl" and entries
        )
        lanes = sorted(heads) if refill.recrawl else []
        holder.hurried = holder.hurried and len(urgent) >= refill.immediate
        overtaken = holder.overtaken and refill.immediate > 0
        holder.overtaken = holder.overtaken and not overtaken
        holder.fresh = holder.fresh if len(never) >= refill.never_crawled else math.inf
        return Dealt(site, urgent, never, recrawl, lanes, overtaken)

    def _hold(self, site: str, key: bytes) -> Lease:
        home = self._sites[site]
        dequeue(home, key)
        self._out.add((site, key))
        self._numbers += 1
        name = LeaseId(site, self._holder(site).token, self._numbers)
        lease = self._leases[self._numbers] = Lease(name, key, msgspec.structs.replace(home.pages[key], immediate=None))
        return lease

    def _give_back(self, lease: LeaseId) -> bool:
        held = self._leases.get(lease.number)
        if held is None or held.id != lease:
            return False
        del self._leases[lease.number]
        self._out.discard((lease.site, held.key))
        enqueue(self._sites[lease.site], held.key)
        return True

    def _settle_one(self, outcome: Outcome, at: float) -> bool:
        held = self._leases.get(outcome.lease.number)
        if held is None or held.id != outcome.lease:
            return False
        del self._leases[outcome.lease.number]
        site, key, handed = held.site, held.key, held.record
        home, record = self._sites[site], outcome.record
        before = home.pages[key]
        if record.copy == handed.copy:  # the fetch left the copy alone, so a move of it meanwhile stands
            record = msgspec.structs.replace(record, copy=before.copy)
        count_outcome(self._counted, period_of(at, self._period_s), before, outcome)
        self._note(entry_of(before, outcome, site=site, key=key, at=at, sequence=self._last() + 1))
        home.pages[key] = record
        self._out.discard((site, key))
        enqueue(home, key)
        return True

    # --------------------------------------------------------- private: sites

    def _lease_of(self, name: str) -> SiteLease:
        holder = self._holder(name)
        return SiteLease(name, holder.token, holder.until, site_record(name, self._sites[name]))

    def _wake(self, name: str, owner: str, until: float, at: float) -> SiteLease:
        home = self._sites[name]
        self._return_leases(name)
        self._tokens += 1
        lost_by = None if home.holder is None else home.holder.owner
        home.due, home.holder = min(home.due, at), Holder(owner, self._tokens, until)
        return msgspec.structs.replace(self._lease_of(name), lost_by=lost_by)

    def _sleep(self, parked: Parked, at: float) -> bool:
        if not self._holds(parked.lease):
            return False
        name = parked.lease.site
        home, holder = self._sites[name], self._holder(name)
        returned = at if self._return_leases(name) else math.inf
        home.due = AT_ONCE if holder.hurried else min(parked.due, holder.fresh, returned)
        home.state, home.holder = parked.state, None
        return True

    def _return_leases(self, name: str) -> int:
        return self.release([lease.id for lease in self._leases.values() if lease.site == name])

    def _due_sooner(self, home: MemorySite, due: float) -> None:
        if home.holder is None:
            home.due = min(home.due, due)

    # --------------------------------------------------------- private: pages

    def _add(self, link: Link, at: float) -> bool:
        home = self._sites.get(link.site)
        barred = link.site in self._barred_sites or (link.site, link.key) in self._barred
        if barred or (home is not None and link.key in home.pages):
            return False
        home = self._sites.setdefault(link.site, MemorySite(first_seen=at, due=at))
        self._due_sooner(home, at)
        if home.holder is not None:
            home.holder.fresh = min(home.holder.fresh, at)
        home.pages[link.key] = first_record(link, at)
        home.arrival[link.key] = self._arrive()
        enqueue(home, link.key)
        return True

    def _arrive(self) -> int:
        self._arrivals += 1
        return self._arrivals

    def _put_immediate(self, link: Link) -> bool:
        home = self._sites.get(link.site)
        record = None if home is None else home.pages.get(link.key)
        if home is None or record is None or record.immediate is not None:
            return False
        leased = (link.site, link.key) in self._out
        if not leased:
            dequeue(home, link.key)
        home.pages[link.key] = msgspec.structs.replace(record, immediate=self._arrive())
        if leased:
            self._holder(link.site).overtaken = True
            return True
        enqueue(home, link.key)
        self._due_sooner(home, AT_ONCE)
        if home.holder is not None:
            home.holder.hurried = True
        return True

    def _advance_one(self, site: str, key: bytes, due: float) -> bool:
        record = self.page(site, key)
        if record is None or record.state != "crawled" or record.immediate is not None or (site, key) in self._out:
            return False
        if record.due is not None and record.due <= due:
            return False
        home = self._sites[site]
        dequeue(home, key)
        home.pages[key] = msgspec.structs.replace(record, due=due)
        enqueue(home, key)
        self._due_sooner(home, due)
        return True

    def _evict_one(self, site: str, key: bytes, at: float) -> bool:
        record = self.page(site, key)
        if record is None or record.state == "never-crawled" or (site, key) in self._out:
            return False
        home = self._sites[site]
        dequeue(home, key)
        home.pages[key] = evicted(record)
        self._part(record, "evicted", site, key, at)
        home.arrival[key] = self._arrive()
        enqueue(home, key)
        return True

    def _remove(self, site: str, key: bytes, at: float) -> bool:
        record = self.page(site, key)
        if record is None:
            return False
        self._changes = [
            without_text(entry) if (entry.site, entry.key) == (site, key) else entry for entry in self._changes
        ]
        self._part(record, "forgotten", site, key, at)
        home, name = self._sites[site], (site, key)
        if name not in self._out:
            dequeue(home, key)
        self._out.discard(name)
        self._leases = {number: lease for number, lease in self._leases.items() if (lease.site, lease.key) != name}
        del home.pages[key], home.arrival[key]
        return True


def _reweigh(
    home: MemorySite, keys: Sequence[bytes], importance: Callable[[Sequence[PageRecord]], Sequence[float]]
) -> int:
    """Move those of some waiting URLs whose class changed; how many."""
    moved = 0
    for key, value in zip(keys, importance([home.pages[key] for key in keys]), strict=True):
        record = home.pages[key]
        if class_of(value) != class_of(record.importance):
            dequeue(home, key)
            home.pages[key] = msgspec.structs.replace(record, importance=value)
            enqueue(home, key)
            moved += 1
    return moved


def _available(home: MemorySite) -> float:
    """From when on a site may be activated."""
    return home.due if home.holder is None else home.holder.until


class LocalClaims:
    """`Claims` in a dictionary, gone with the process: for several crawlers of one process, as in tests."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._letters: dict[str, list[bytes]] = {}

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """See `Claims.claim`."""
        return [self._claim(name, owner, until, at, (notes or {}).get(name, b"")) for name in names]

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """See `Claims.drop`."""
        for name, until in names.items():
            held = self._claims.get(name)
            if held is not None and held.owner == owner:
                del self._claims[name]
                if until > at:
                    self._claims[name] = Claim(name, "", until)

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """See `Claims.holders`."""
        found = (self._claims.get(name) for name in names)
        return [held if held is not None and held.until > at else None for held in found]

    def claims(self, kind: str) -> list[Claim]:
        """See `Claims.claims`."""
        return [held for name, held in sorted(self._claims.items()) if name.startswith(f"{kind}/")]

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """See `Claims.post`."""
        self._letters.setdefault(owner, []).extend(letters)

    def collect(self, owner: str) -> list[bytes]:
        """See `Claims.collect`."""
        return self._letters.pop(owner, [])

    def end_within(self, seconds: float) -> None:
        """See `Claims.end_within`: this store is never away."""

    def _claim(self, name: str, owner: str, until: float, at: float, note: bytes) -> Claim:
        held = self._claims.get(name)
        if held is not None and held.owner != owner and held.until > at:
            return held
        lost_by = held.owner if held is not None and held.owner not in ("", owner) else None
        self._claims[name] = Claim(name, owner, until, note)
        return Claim(name, owner, until, note, lost_by)
