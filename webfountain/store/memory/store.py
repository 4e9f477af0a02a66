"""The reference store: plain dicts and sorted lists, obviously right, gone when the process ends.

It is the specification in code that the other stores are raced against, and the store of tests and
simulations. A lease is cheap up to some hundred thousand URLs a site; it keeps nothing on disk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import STATES, Discovered, Lease, Settled
from webfountain.store.codec import first_record
from webfountain.store.contract import BucketCensus, Statistics
from webfountain.store.counting import (
    MILLISECONDS,
    Counted,
    count_arrivals,
    count_outcome,
    last_crawled_ms,
    period_of,
    rows_of,
)
from webfountain.store.memory.site import NEVER, Site, dequeue, enqueue, first_due, first_never, site_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import CensusRow, Link, Move, Outcome, PageRecord, Queue, SiteRecord, State
    from webfountain.store.contract import Parked

__all__ = ["MemoryStore"]


@dataclass(slots=True)
class _Held:
    """A lease that is out: what was handed out, until when, and its place on the immediate queue if it has one."""

    lease: Lease
    until: float
    place: int | None


class MemoryStore:
    """`FrontierStore` in the memory of one process. `period_s` is the length of a census period."""

    def __init__(self, *, period_s: float) -> None:
        self._period_s = period_s
        self._sites: dict[str, Site] = {}
        self._barred_sites: set[str] = set()
        self._barred: set[tuple[str, bytes]] = set()
        self._immediate: dict[int, tuple[str, bytes]] = {}
        self._leases: dict[int, _Held] = {}
        self._hidden: set[tuple[str, bytes]] = set()
        self._counted: Counted = {}
        self._plan: bytes | None = None
        self._tokens = 0
        self._arrivals = 0
        self._settle_lost = 0

    # ------------------------------------------------------------------ links

    @property
    def period_s(self) -> float:
        """Length of a census period, s."""
        return self._period_s

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """See `FrontierStore.discover`."""
        fresh = [link for link in links if self._add(link, at)]
        count_arrivals(self._counted, period_of(at, self._period_s), sum(not link.source for link in fresh))
        return Discovered(len(fresh), len(links) - len(fresh))

    def known(self, site: str, keys: Sequence[bytes]) -> list[bool]:
        """See `FrontierStore.known`."""
        return [self._knows(site, key) for key in keys]

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """See `FrontierStore.immediate`."""
        self.discover(links, at=at)
        return sum(self._put_immediate(link) for link in links)

    # ----------------------------------------------------------------- leases

    def lease(
        self,
        site: str,
        n: int,
        *,
        queue: Queue,
        owner: str,
        until: float,
        at: float,
        horizon: Sequence[float] | None = None,
    ) -> list[Lease]:
        """See `FrontierStore.lease`."""
        home = self._sites.get(site)
        if home is None:
            return []
        keys = first_never(home, n) if queue == "never-crawled" else first_due(home, n, horizon)
        if queue == "never-crawled" and len(keys) < n:
            home.fresh = math.inf
        return [self._hold(site, key, until, None) for key in keys]

    def lease_immediate(self, n: int, *, owner: str, until: float, at: float) -> list[Lease]:
        """See `FrontierStore.lease_immediate`."""
        return [self._hold(*self._immediate.pop(place), until, place) for place in sorted(self._immediate)[:n]]

    def settle(self, outcomes: Sequence[Outcome], *, at: float) -> Settled:
        """See `FrontierStore.settle`."""
        for outcome in outcomes:
            if outcome.record.state == "never-crawled":
                raise ValueError(f"{outcome.record.url}: a settled record's state must say what became of the fetch")
        applied = sum(self._settle_one(outcome, period_of(at, self._period_s)) for outcome in outcomes)
        self._settle_lost += len(outcomes) - applied
        return Settled(applied, len(outcomes) - applied)

    def release(self, tokens: Sequence[int]) -> None:
        """See `FrontierStore.release`."""
        for token in tokens:
            if token in self._leases:
                self._give_back(self._leases.pop(token))

    def reclaim(self, *, at: float) -> int:
        """See `FrontierStore.reclaim`."""
        late = [token for token, held in self._leases.items() if held.until <= at]
        self.release(late)
        for home in self._sites.values():
            if home.active_until is not None and home.active_until <= at:
                home.active_until, home.fresh = None, math.inf
        return len(late)

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteRecord]:
        """See `FrontierStore.activate`."""
        due = sorted((home.due, name) for name, home in self._sites.items() if home.active_until is None)
        return [self._wake(name, until, at) for when, name in due[:n] if when <= at]

    def activate_site(self, site: str, *, owner: str, until: float, at: float) -> SiteRecord | None:
        """See `FrontierStore.activate_site`."""
        home = self._sites.get(site)
        if home is None or home.active_until is not None:
            return None
        return self._wake(site, until, at)

    def park(self, parked: Sequence[Parked], *, at: float) -> None:
        """See `FrontierStore.park`."""
        for one in parked:
            home = self._sites.get(one.site)
            if home is not None and home.active_until is not None:
                out = [held.until for held in self._leases.values() if held.lease.site == one.site]
                home.due = min(one.due, home.fresh, *out)
                home.state, home.active_until, home.fresh = one.state, None, math.inf

    def next_site_due(self) -> float | None:
        """See `FrontierStore.next_site_due`."""
        first = min((home.due for home in self._sites.values() if home.active_until is None), default=math.inf)
        return None if first == math.inf else first

    def recrawl_due(self, site: str) -> list[tuple[int, float]]:
        """See `FrontierStore.recrawl_due`."""
        home = self._sites.get(site)
        lanes = {} if home is None else home.lanes
        return [(lane, lanes[lane][0][0]) for lane in sorted(lanes) if lane != NEVER and lanes[lane]]

    def site(self, site: str) -> SiteRecord | None:
        """See `FrontierStore.site`."""
        home = self._sites.get(site)
        return None if home is None else site_record(site, home)

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `FrontierStore.sites`."""
        names = sorted(name for name in self._sites if name > after)[:n]
        return [site_record(name, self._sites[name]) for name in names]

    # ------------------------------------------------------------------ pages

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """See `FrontierStore.advance`."""
        return sum(self._advance_one(site, key, due) for key in dict.fromkeys(keys))

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `FrontierStore.page`."""
        home = self._sites.get(site)
        return None if home is None else home.pages.get(key)

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `FrontierStore.pages`."""
        for name in list(self._sites) if site is None else [site]:
            home = self._sites.get(name)
            for record in [] if home is None else list(home.pages.values()):
                if state is None or record.state == state:
                    yield name, record

    def relocate(self, moves: Sequence[Move]) -> int:
        """See `FrontierStore.relocate`."""
        followed = 0
        for move in moves:
            record = self.page(move.site, move.key)
            if record is not None and record.copy == move.old:
                self._sites[move.site].pages[move.key] = msgspec.structs.replace(record, copy=move.new)
                followed += 1
        return followed

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `FrontierStore.forget`."""
        home = self._sites.get(site)
        keys = list(home.pages if home else ()) if key is None else [key]
        removed = sum(self._remove(site, each) for each in keys)
        if key is not None:
            self._barred.add((site, key))
        else:
            self._barred_sites.add(site)
            self._sites.pop(site, None)
        return removed

    # ----------------------------------------------------------------- counts

    def census(self) -> dict[int, BucketCensus]:
        """See `FrontierStore.census`."""
        sums: dict[int, tuple[int, int]] = {}
        for _, record in self.pages(state="crawled"):
            pages, total = sums.get(record.bucket, (0, 0))
            sums[record.bucket] = pages + 1, total + last_crawled_ms(record)
        return {bucket: BucketCensus(n, total / MILLISECONDS) for bucket, (n, total) in sorted(sums.items())}

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """See `FrontierStore.census_rows`."""
        return rows_of(item for item in self._counted.items() if item[0][0] >= since)

    def copies(self) -> dict[int, int]:
        """See `FrontierStore.copies`."""
        homes: dict[int, int] = {}
        for _, record in self.pages():
            if record.copy is not None:
                homes[record.copy.file] = homes.get(record.copy.file, 0) + 1
        return homes

    def statistics(self) -> Statistics:
        """See `FrontierStore.statistics`; here it counts, in linear time."""
        pages = dict.fromkeys(STATES, 0)
        for _, record in self.pages():
            pages[record.state] += 1
        active = sum(home.active_until is not None for home in self._sites.values())
        return Statistics(pages, len(self._sites), active, len(self._leases), len(self._immediate), self._settle_lost)

    def plan(self) -> bytes | None:
        """See `FrontierStore.plan`."""
        return self._plan

    def put_plan(self, plan: bytes) -> None:
        """See `FrontierStore.put_plan`."""
        self._plan = plan

    def close(self) -> None:
        """Nothing to let go of."""

    def check_valid(self) -> None:
        """Assert that every known URL is in exactly one place: its queue, the immediate queue, or a lease."""
        out = [(held.lease.site, held.lease.key) for held in self._leases.values()]
        waiting = list(self._immediate.values())
        assert self._hidden == {*out, *waiting}
        assert len(self._hidden) == len(out) + len(waiting), "a URL is leased or waits at once twice"
        for name, home in self._sites.items():
            queued = [entry[2] for lane in home.lanes.values() for entry in lane]
            aside = [key for site, key in self._hidden if site == name]
            assert sorted(queued + aside) == sorted(home.pages), f"{name}: a URL is in no place or in two"
            assert all(lane == sorted(lane) for lane in home.lanes.values())

    # ---------------------------------------------------------------- private

    def _knows(self, site: str, key: bytes) -> bool:
        home = self._sites.get(site)
        barred = site in self._barred_sites or (site, key) in self._barred
        return barred or (home is not None and key in home.pages)

    def _add(self, link: Link, at: float) -> bool:
        if self._knows(link.site, link.key):
            return False
        home = self._sites.setdefault(link.site, Site(first_seen=at, due=at))
        if home.active_until is None:
            home.due = min(home.due, at)
        home.fresh = min(home.fresh, at)
        home.pages[link.key] = first_record(link, at)
        self._arrivals += 1
        home.arrival[link.key] = self._arrivals
        enqueue(home, link.key)
        return True

    def _put_immediate(self, link: Link) -> bool:
        home, name = self._sites.get(link.site), (link.site, link.key)
        if home is None or link.key not in home.pages or name in self._hidden:
            return False
        dequeue(home, link.key)
        self._arrivals += 1
        self._immediate[self._arrivals] = name
        self._hidden.add(name)
        return True

    def _hold(self, site: str, key: bytes, until: float, place: int | None) -> Lease:
        home = self._sites[site]
        if place is None:
            dequeue(home, key)
            self._hidden.add((site, key))
        if home.active_until is None:
            home.due = min(home.due, until)
        self._tokens += 1
        lease = Lease(self._tokens, site, key, home.pages[key])
        self._leases[lease.token] = _Held(lease, until, place)
        return lease

    def _give_back(self, held: _Held) -> None:
        site, key = held.lease.site, held.lease.key
        if held.place is not None:
            self._immediate[held.place] = (site, key)
        else:
            self._hidden.discard((site, key))
            enqueue(self._sites[site], key)

    def _settle_one(self, outcome: Outcome, period: int) -> bool:
        held = self._leases.pop(outcome.token, None)
        if held is None:
            return False
        site, key, handed = held.lease.site, held.lease.key, held.lease.record
        home, record = self._sites[site], outcome.record
        before = home.pages[key]
        if record.copy == handed.copy:  # the fetch left the copy alone, so a move of it meanwhile stands
            record = msgspec.structs.replace(record, copy=before.copy)
        count_outcome(self._counted, period, before, outcome)
        home.pages[key] = record
        self._hidden.discard((site, key))
        enqueue(home, key)
        return True

    def _wake(self, name: str, until: float, at: float) -> SiteRecord:
        home = self._sites[name]
        home.due, home.active_until, home.fresh = min(home.due, at), until, math.inf
        return site_record(name, home)

    def _advance_one(self, site: str, key: bytes, due: float) -> bool:
        record = self.page(site, key)
        if record is None or record.state != "crawled" or (site, key) in self._hidden:
            return False
        if record.due is not None and record.due <= due:
            return False
        home = self._sites[site]
        dequeue(home, key)
        home.pages[key] = msgspec.structs.replace(record, due=due)
        enqueue(home, key)
        if home.active_until is None:
            home.due = min(home.due, due)
        return True

    def _remove(self, site: str, key: bytes) -> bool:
        if self.page(site, key) is None:
            return False
        home, name = self._sites[site], (site, key)
        if name not in self._hidden:
            dequeue(home, key)
        self._hidden.discard(name)
        self._immediate = {place: other for place, other in self._immediate.items() if other != name}
        self._leases = {
            token: held for token, held in self._leases.items() if (held.lease.site, held.lease.key) != name
        }
        del home.pages[key], home.arrival[key]
        return True
