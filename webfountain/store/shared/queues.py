"""The URL queues of the shared store: each step is one script on each shard, all in one round trip.

Each file in `lua/` contains one script.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.records import FETCHED, DiscoverResult, Lease, LeaseId, SettleResult
from webfountain.store.answers import LeaseBatch, ReassignResult, RegradeResult
from webfountain.store.census_counting import CensusCounts, count_outcome, period_of
from webfountain.store.change_log import check_settled, entry_of
from webfountain.store.codec import first_record
from webfountain.store.lanes import CLASSES, LANES, check_horizon
from webfountain.store.shared.change_log import encode_entry
from webfountain.store.shared.codec import decode_value, encode_body, encode_page, never_lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Link, Outcome, PageRecord, SiteLease
    from webfountain.store.answers import ImportanceOf, Refill, RevisedBy
    from webfountain.store.shared.due_times import DueTimes
    from webfountain.store.shared.lives import GuardedShards, ServerLives

__all__ = ["SharedQueues"]


class SharedQueues:
    """Implementation of `UrlQueues` in the shared store. The object remembers the URL leases of this process."""

    def __init__(self, shards: GuardedShards, lives: ServerLives, due_times: DueTimes, *, period_s: float) -> None:
        self._shards = shards
        self._lives = lives
        self._due_times = due_times
        self._period_s = period_s
        self._leased: dict[LeaseId, Lease] = {}
        lives.after_loss(self._drop_voided)

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        """Add unknown URLs, in one round trip, or two if an inactive site becomes due sooner."""
        new, _, repeated = self._arrive(links, at, put_first=False)
        return DiscoverResult(new, len(repeated), tuple(repeated))

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Add URLs to the immediate lanes of their sites, in one or two round trips."""
        return self._arrive(links, at, put_first=True)[1]

    def lease(self, refills: Sequence[Refill]) -> list[LeaseBatch | None]:
        """Lease URLs of active sites, in one round trip."""
        for refill in refills:
            if refill.classes is not None:
                check_horizon(refill.classes, CLASSES)
            if refill.recrawl:
                check_horizon(refill.horizon, LANES)
        dealt: list[LeaseBatch | None] = [None] * len(refills)
        sent = {}
        parts = self._shards.by_shard([(refill.lease.site, refill) for refill in refills])
        for shard, positions in parts.items():
            classes, horizons = _Horizons(), _Horizons()
            asked = [_refill(refills[i], classes, horizons) for i in positions]
            sent[shard] = [asked, classes.packed, horizons.packed]
        for shard, answers in self._shards.run("lease", sent).items():
            for i, answer in zip(parts[shard], answers, strict=True):
                dealt[i] = None if answer is None else self._dealt(refills[i].lease, answer)
        return dealt

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        """End leases with the outcomes of their fetches, in one round trip."""
        period = period_of(at, self._period_s)
        sent: dict[int, list[Any]] = {}
        check_settled(outcomes)
        for outcome in outcomes:
            site = outcome.lease.site
            sent.setdefault(self._shards.of(site), [[], [], [], at])[0].append(self._outcome(outcome, period, at))
        for lease, state in learned:
            sent.setdefault(self._shards.of(lease.site), [[], [], [], at])[1].append([lease.site, lease.token, state])
        for lease, number, part in parts:
            sent.setdefault(self._shards.of(lease.site), [[], [], [], at])[2].append(
                [lease.site, lease.token, str(number), part]
            )
        answers = self._shards.run("settle", sent).values()
        for outcome in outcomes:
            self._leased.pop(outcome.lease, None)
        return SettleResult(sum(applied for applied, _ in answers), sum(lost for _, lost in answers))

    def release(self, leases: Sequence[LeaseId]) -> int:
        """Release unused leases, in one round trip."""
        sent: dict[int, list[list[Any]]] = {}
        for one in leases:
            held = self._leased.pop(one, None)
            if held is not None:
                sent.setdefault(self._shards.of(one.site), []).append([one.site, one.token, held.key, one.number])
        self._due_times.hurry(sent)  # URLs leased as immediate become immediate again
        return sum(self._shards.run("release", sent).values())

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due, in one round trip, or two if the site becomes due sooner."""
        distinct = dict.fromkeys(keys)
        if not distinct:
            return 0
        moved, is_sooner = self._shards.step(site, "advance", [site, float(due), *distinct])
        self._due_times.ring([self._shards.of(site)] if is_sooner else [])
        return int(moved)

    def reassign(self, site: str, keys: Sequence[bytes], revised: RevisedBy) -> ReassignResult:
        """Assign known pages to other policies, in two round trips, or one if no page changes."""
        names = list(dict.fromkeys(keys))
        values = self._shards.step(site, "read", ["page", site, *names]) if names else []
        entries = []
        for key, value in zip(names, values, strict=True):
            record = None if value is None else revised(decode_value(site, value))
            if record is not None:
                stays = record.state != "never-crawled" or record.immediate is not None
                lane = False if stays else never_lane(record.importance)
                entries.append([key, value, lane, encode_body(site, record)])
        if not entries:
            return ReassignResult()
        put, leased = self._shards.step(site, "reassign", [site, *entries])
        return ReassignResult(int(put), tuple(leased))

    def regrade(self, lease: SiteLease, importance: ImportanceOf, *, epoch: int, n: int) -> RegradeResult | None:
        """Apply a ranking to the next never-crawled URLs of a site, in two round trips."""
        site = lease.site
        entries = self._shards.step(site, "regrade_read", [site, lease.token, epoch, n])
        if entries is None or entries == 1:
            return None if entries is None else RegradeResult(0, 0, done=True)
        moves = _moves(site, [(key, value) for _, _, key, value in entries], importance)
        done = len(entries) < n
        last_lane, last_order = (entries[-1][0], float(entries[-1][1])) if entries else (0, 0.0)
        moved = self._shards.step(site, "regrade_move", [site, lease.token, epoch, done, last_lane, last_order, *moves])
        return None if moved is None else RegradeResult(len(entries), moved, done)

    def reweigh(self, lease: SiteLease, keys: Sequence[bytes], importance: ImportanceOf) -> int | None:
        """Move never-crawled URLs to the lanes of their classes, in two round trips."""
        site = lease.site
        values = self._shards.step(site, "read", ["page", site, *keys]) if keys else []
        found = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        moved = self._shards.step(site, "reweigh", [site, lease.token, *_moves(site, found, importance)])
        return None if moved is None else int(moved)

    # ---------------------------------------------------------------- private

    def _drop_voided(self) -> None:
        """Drop the URL leases under site leases that the server has lost."""
        for each in [each for each in list(self._leased) if self._lives.is_void(each.site, each.token)]:
            self._leased.pop(each, None)

    def _arrive(self, links: Sequence[Link], at: float, *, put_first: bool) -> tuple[int, int, list[int]]:
        """Return (number of new URLs, number of URLs put on an immediate lane, positions of the known links)."""
        period = period_of(at, self._period_s)
        sent: dict[int, list[Any]] = {}
        places: dict[int, list[int]] = {}
        for nth, link in enumerate(links):
            body = encode_body(link.site, first_record(link, at))
            entry = [link.site, link.key, never_lane(link.importance), body, not link.source]
            shard = self._shards.of(link.site)
            sent.setdefault(shard, [[], at, period, put_first])[0].append(entry)
            places.setdefault(shard, []).append(nth)
        answers = self._shards.run("discover", sent)
        self._due_times.ring([shard for shard, answer in answers.items() if answer[1] or answer[2]])
        repeated = sorted(places[shard][nth - 1] for shard, answer in answers.items() for nth in answer[3:])
        return sum(each[0] for each in answers.values()), sum(each[1] for each in answers.values()), repeated

    def _dealt(self, lease: SiteLease, answer: Sequence[Any]) -> LeaseBatch:
        immediate, never, recrawl, left, overtaken = answer
        return LeaseBatch(
            lease.site,
            immediate=[self._hold(lease, *one) for one in immediate],
            never_crawled=[self._hold(lease, *one) for one in never],
            recrawl=[self._hold(lease, *one) for one in recrawl],
            lanes=[(lane, float(order)) for lane, order in left],
            overtaken=bool(overtaken),
        )

    def _hold(self, lease: SiteLease, key: bytes, number: int, value: bytes) -> Lease:
        record = msgspec.structs.replace(decode_value(lease.site, value), immediate=None)
        name = LeaseId(lease.site, lease.token, number)
        held = self._leased[name] = Lease(name, key, record)
        return held

    def _outcome(self, outcome: Outcome, period: int, at: float) -> list[Any]:
        """Encode an outcome for `lua/settle.lua`."""
        # If this process does not hold the lease, the script counts the outcome as lost.
        lease = outcome.lease
        held = self._leased.get(lease)
        page = encode_page(lease.site, outcome.record)
        if held is None or held.record.url != outcome.record.url:
            return [lease.site, lease.token, b"", lease.number, page, False, [], False]
        keeps = outcome.record.copy == held.record.copy
        counted = _counted(period, held.record, outcome)
        # A log entry needs some fields of the record before the fetch. These do not change while the page is leased.
        entry = encode_entry(entry_of(held.record, outcome, site=lease.site, key=held.key, at=at, sequence=0))
        return [lease.site, lease.token, held.key, lease.number, page, keeps, counted, entry]


def _moves(
    site: str,
    found: Sequence[tuple[bytes, bytes]],
    importance: ImportanceOf,
) -> list[list[Any]]:
    """Return (key, old value, new lane, new body) of the never-crawled pages whose class changed."""
    records = [(key, value, decode_value(site, value)) for key, value in found]
    waits = [each for each in records if each[2].state == "never-crawled" and each[2].immediate is None]
    graded = zip(waits, importance([record for _, _, record in waits]), strict=True)
    return [
        [key, value, never_lane(new), encode_body(site, msgspec.structs.replace(record, importance=new))]
        for (key, value, record), new in graded
        if never_lane(new) != never_lane(record.importance)
    ]


class _Horizons:
    """The distinct horizons of the refills in one call of `lease`."""

    def __init__(self) -> None:
        self.packed: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, times: Sequence[float]) -> int:
        """Return the number of a horizon, counted from 1; add the horizon if it is new."""
        packed = struct.pack(f">{len(times)}d", *times)
        if packed not in self._numbers:
            self.packed.append(packed)
            self._numbers[packed] = len(self.packed)
        return self._numbers[packed]


def _refill(refill: Refill, classes: _Horizons, horizons: _Horizons) -> list[Any]:
    return [
        refill.lease.site,
        refill.lease.token,
        refill.immediate,
        refill.never_crawled,
        refill.recrawl,
        0 if refill.classes is None else classes.number(refill.classes),
        horizons.number(refill.horizon) if refill.recrawl else 0,
    ]


def _counted(period: int, before: PageRecord, outcome: Outcome) -> list[Any]:
    """Return what an outcome adds to the census rows, as a flat list: field, increment, field, increment, …"""
    if outcome.kind not in FETCHED:
        return []
    counted: CensusCounts = {}
    count_outcome(counted, period, before, outcome)
    return [
        each
        for (_, bucket), row in counted.items()
        for column, many in enumerate(row)
        if many
        for each in (f"{period}:{'-' if bucket is None else bucket}:{column}", float(many))
    ]
