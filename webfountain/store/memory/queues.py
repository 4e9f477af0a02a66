"""The URL queues of the reference store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.records import DiscoverResult, Lease, LeaseId, SettleResult, SiteLease
from webfountain.store.answers import LeaseBatch, ReassignResult, RegradeResult
from webfountain.store.change_log import check_settled
from webfountain.store.codec import first_record
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.records import Link, Outcome
    from webfountain.store.answers import ImportanceOf, Refill, RevisedBy
    from webfountain.store.memory.census import MemoryCensus
    from webfountain.store.memory.change_log import MemoryChangeLog
    from webfountain.store.memory.site import MemorySite
    from webfountain.store.memory.sites import MemorySites

__all__ = ["MemoryQueues"]


class MemoryQueues:
    """Implementation of `UrlQueues` in the reference store."""

    def __init__(self, sites: MemorySites, census: MemoryCensus, changes: MemoryChangeLog) -> None:
        self._sites = sites
        self._census = census
        self._changes = changes

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        fresh: list[Link] = []
        repeated: list[int] = []
        for nth, link in enumerate(links):
            if self._add(link, at):
                fresh.append(link)
            else:
                repeated.append(nth)
        self._census.count_arrivals(sum(not link.source for link in fresh), at)
        return DiscoverResult(len(fresh), len(repeated), tuple(repeated))

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        self.discover(links, at=at)
        return sum(self._put_immediate(link) for link in links)

    def lease(self, refills: Sequence[Refill]) -> list[LeaseBatch | None]:
        return [self._deal(refill) for refill in refills]

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        check_settled(outcomes)
        self._sites.latest = max(self._sites.latest, at)
        applied = sum(self._settle_one(outcome, at) for outcome in outcomes)
        self._census.count_lost(len(outcomes) - applied)
        for lease, state in learned:
            if (home := self._sites.held(lease)) is not None:
                home.learned = state
        for lease, number, part in parts:
            if (home := self._sites.held(lease)) is not None:
                home.parts.pop(number, None)
                if part:
                    home.parts[number] = part
        return SettleResult(applied, len(outcomes) - applied)

    def release(self, leases: Sequence[LeaseId]) -> int:
        held = 0
        for one in leases:
            if (lease := self._leased(one)) is not None:
                self._sites[one.site].end(lease)
                held += 1
        return held

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        home = self._sites.get(site)
        return 0 if home is None else sum(_advance(home, key, due) for key in dict.fromkeys(keys))

    def reassign(self, site: str, keys: Sequence[bytes], revised: RevisedBy) -> ReassignResult:
        put, leased = 0, []
        home = self._sites.get(site)
        if home is None:
            return ReassignResult()
        for key in dict.fromkeys(keys):
            record = home.pages.get(key)
            new = None if record is None else revised(record)
            if new is not None and home.is_leased(key):
                leased.append(key)
            elif new is not None:
                home.replace(key, new)
                put += 1
        return ReassignResult(put, tuple(leased))

    def regrade(self, lease: SiteLease, importance: ImportanceOf, *, epoch: int, n: int) -> RegradeResult | None:
        home = self._sites.held(lease)
        if home is None:
            return None
        if home.epoch == epoch:
            return RegradeResult(0, 0, done=True)
        after = home.regrading[1] if home.regrading is not None and home.regrading[0] == epoch else (-1, 0)
        entries = home.waiting_after(after)[:n]
        moved = home.reweigh([key for _, _, key in entries], importance)
        done = len(entries) < n
        home.regrading = None if done else (epoch, entries[-1][:2])
        home.epoch = epoch if done else home.epoch
        return RegradeResult(len(entries), moved, done)

    def reweigh(self, lease: SiteLease, keys: Sequence[bytes], importance: ImportanceOf) -> int | None:
        home = self._sites.held(lease)
        if home is None:
            return None
        waits = [
            key
            for key in keys
            if (record := home.pages.get(key)) is not None
            and record.state == "never-crawled"
            and record.immediate is None
            and not home.is_leased(key)
        ]
        return home.reweigh(waits, importance)

    # ---------------------------------------------------------------- private

    def _add(self, link: Link, at: float) -> bool:
        home = self._sites.get(link.site)
        if self._sites.is_barred(link.site, link.key) or (home is not None and link.key in home.pages):
            return False
        home = self._sites.add(link.site, first_seen=at, due=at)
        home.due_sooner(at)
        if home.holder is not None:
            home.holder.note_new(at)
        home.add(link.key, first_record(link, at), self._sites.next_arrival())
        return True

    def _put_immediate(self, link: Link) -> bool:
        home = self._sites.get(link.site)
        record = None if home is None else home.pages.get(link.key)
        if home is None or record is None or record.immediate is not None:
            return False
        home.replace(link.key, msgspec.structs.replace(record, immediate=self._sites.next_arrival()))
        home.due_sooner(AT_ONCE)
        if home.holder is not None:
            if home.is_leased(link.key):
                home.holder.overtaken = True
            else:
                home.holder.hurried = True
        return True

    def _deal(self, refill: Refill) -> LeaseBatch | None:
        home = self._sites.held(refill.lease)
        if home is None or home.holder is None:
            return None
        urgent = self._lease_all(home, home.first_immediate(refill.immediate))
        never = self._lease_all(home, home.first_due("never-crawled", refill.never_crawled, refill.classes))
        horizon = refill.horizon if refill.recrawl else None
        recrawl = self._lease_all(home, home.first_due("recrawl", refill.recrawl, horizon))
        lanes = home.recrawl_heads() if refill.recrawl else []
        overtaken = home.holder.note_refill(refill, immediate=len(urgent), never_crawled=len(never))
        return LeaseBatch(home.name, urgent, never, recrawl, lanes, overtaken)

    def _lease_all(self, home: MemorySite, keys: Iterable[bytes]) -> list[Lease]:
        return [home.lease(key, self._sites.next_number()) for key in keys]

    def _leased(self, lease: LeaseId) -> Lease | None:
        home = self._sites.get(lease.site)
        return None if home is None else home.leased(lease)

    def _settle_one(self, outcome: Outcome, at: float) -> bool:
        held = self._leased(outcome.lease)
        if held is None:
            return False
        home, record = self._sites[outcome.lease.site], outcome.record
        before = home.pages[held.key]
        if record.copy == held.record.copy:  # the fetch did not change the copy, so its new location stays
            record = msgspec.structs.replace(record, copy=before.copy)
        self._census.count_outcome(before, outcome, at)
        self._changes.note_outcome(before, outcome, site=home.name, key=held.key, at=at)
        home.end(held, record)
        return True


def _advance(home: MemorySite, key: bytes, due: float) -> bool:
    record = home.pages.get(key)
    if record is None or record.state != "crawled" or record.immediate is not None or home.is_leased(key):
        return False
    if record.due is not None and record.due <= due:
        return False
    home.replace(key, msgspec.structs.replace(record, due=due))
    home.due_sooner(due)
    return True
