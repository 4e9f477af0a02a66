"""The shared store: many processes, one Redis (or Valkey, or a cluster of them). Each step one script on a shard.

A site's keys all stand in one of a fixed number of shards; a call that names many sites sends each shard its part,
all in one round trip. What is atomic is told in `lua/`, one file a step; here arguments are packed, answers unpacked.
`activate` asks the shards in an order of this process's own, so that many of them do not all ask the same one.
One thread takes steps; questions may be asked from another meanwhile.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.records import (
    FETCHED,
    STATES,
    Discovered,
    Lease,
    LeaseId,
    Settled,
    SiteLease,
    SiteRecord,
    SiteState,
)
from webfountain.store.contract import CLASSES, LANES, BucketCensus, Dealt, Reassigned, Regraded, Statistics
from webfountain.store.rules import (
    MILLISECONDS,
    Counted,
    check_settled,
    count_outcome,
    decode_state,
    encode_state,
    entry_of,
    evicted,
    first_record,
    is_held,
    parting,
    period_of,
    rows_of,
)
from webfountain.store.shared.colony import DueTimes, ServerFeed
from webfountain.store.shared.scripts import (
    ShardedChangeLog,
    decode_value,
    encode_body,
    encode_copy,
    encode_entry,
    encode_page,
    never_lane,
)
from webfountain.store.shared.transfer import server_rows
from webfountain.store.transfer import Head

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webfountain.records import CensusRow, Change, ChangeVerdict, Link, Move, Outcome, PageRecord, State
    from webfountain.store.contract import FeedForm, Parked, Refill
    from webfountain.store.shared.colony import SharedClaims
    from webfountain.store.shared.opening import ServerConnection
    from webfountain.store.shared.private import PrivateServer
    from webfountain.store.shared.scripts import Shards
    from webfountain.store.transfer import Row

__all__ = ["SharedStore"]

_LEASED: Final = 65535
"""The lane of what is leased, as `lua/prelude.lua` numbers it."""
_AT_ONCE: Final = 1000
"""Pages that one script reads, evicts or forgets: a script holds up all others."""


class SharedStore:
    """`FrontierStore` on an open connection.

    `period_s`, `fastest_s`: as the store was made or opened with; `log`: name of the change log.
    """

    def __init__(
        self,
        connection: ServerConnection,
        shards: Shards,
        *,
        values: bytes,
        inbox: bytes,
        bell: bytes,
        collection: str,
        period_s: float,
        fastest_s: float,
        rng: random.Random,
        log: str,
        claims: SharedClaims,
        server: PrivateServer | None = None,
    ) -> None:
        self._server = server
        self.claims = claims
        self._connection = connection
        self._collection = collection
        self._inbox = inbox
        self._shards = shards
        self._values = values
        self._period_s = period_s
        self._fastest_s = fastest_s
        self._order = list(range(shards.count))
        rng.shuffle(self._order)
        self._due_times = DueTimes(connection, shards, key=bell, rng=rng)
        self._leased: dict[LeaseId, Lease] = {}
        self._changes = ShardedChangeLog(shards, log)

    # ------------------------------------------------------------------- URLs

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """See `UrlQueues.discover`. One round trip, two where an inactive site is due sooner by it."""
        new, _, repeated = self._arrive(links, at, put_first=False)
        return Discovered(new, len(repeated), tuple(repeated))

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """See `UrlQueues.immediate`. As `discover`."""
        return self._arrive(links, at, put_first=True)[1]

    def lease(self, refills: Sequence[Refill]) -> list[Dealt | None]:
        """See `UrlQueues.lease`. One round trip."""
        for refill in refills:
            if refill.classes is not None and len(refill.classes) != CLASSES:
                raise ValueError(f"a lease of the never-crawled queue needs a horizon of {CLASSES} times")
            if refill.recrawl and len(refill.horizon) != LANES:
                raise ValueError(f"a lease of the recrawl queue needs a horizon of {LANES} times")
        dealt: list[Dealt | None] = [None] * len(refills)
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
    ) -> Settled:
        """See `UrlQueues.settle`. One round trip."""
        period = period_of(at, self._period_s)
        sent: dict[int, list[list[Any]]] = {}
        check_settled(outcomes)
        for outcome in outcomes:
            site = outcome.lease.site
            sent.setdefault(self._shards.of(site), [[], [], []])[0].append(self._outcome(outcome, period, at))
        for lease, state in learned:
            sent.setdefault(self._shards.of(lease.site), [[], [], []])[1].append([lease.site, lease.token, state])
        for lease, number, part in parts:
            sent.setdefault(self._shards.of(lease.site), [[], [], []])[2].append(
                [lease.site, lease.token, str(number), part]
            )
        answers = self._shards.run("settle", sent).values()
        for outcome in outcomes:
            self._leased.pop(outcome.lease, None)
        return Settled(sum(applied for applied, _ in answers), sum(lost for _, lost in answers))

    def release(self, leases: Sequence[LeaseId]) -> int:
        """See `UrlQueues.release`. One round trip."""
        sent: dict[int, list[list[Any]]] = {}
        for one in leases:
            held = self._leased.pop(one, None)
            if held is not None:
                sent.setdefault(self._shards.of(one.site), []).append([one.site, one.token, held.key, one.number])
        self._due_times.hurry(sent)  # what was leased as immediate is so again
        return sum(self._shards.run("release", sent).values())

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """See `UrlQueues.advance`. As `discover`."""
        distinct = dict.fromkeys(keys)
        if not distinct:
            return 0
        moved, is_sooner = self._of(site, "advance", [site, float(due), *distinct])
        self._due_times.ring([self._shards.of(site)] if is_sooner else [])
        return int(moved)

    def reassign(
        self, site: str, keys: Sequence[bytes], revised: Callable[[PageRecord], PageRecord | None]
    ) -> Reassigned:
        """See `UrlQueues.reassign`. Two round trips, one where nothing is to be put."""
        names = list(dict.fromkeys(keys))
        values = self._of(site, "read", ["page", site, *names]) if names else []
        entries = []
        for key, value in zip(names, values, strict=True):
            record = None if value is None else revised(decode_value(site, value))
            if record is not None:
                stays = record.state != "never-crawled" or record.immediate is not None
                lane = False if stays else never_lane(record.importance)
                entries.append([key, value, lane, encode_body(site, record)])
        if not entries:
            return Reassigned()
        put, leased = self._of(site, "reassign", [site, *entries])
        return Reassigned(int(put), tuple(leased))

    # ------------------------------------------------------------------ sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.activate`; longest due first within a shard. One round trip, more while sites are few."""
        found: list[SiteLease] = []
        if n <= 0:
            return found
        first = self._due_times.first()
        waiting = [shard for shard in self._order if first[shard] <= at]
        while waiting and len(found) < n:
            asked = waiting[: n - len(found)]
            least, more = divmod(n - len(found), len(asked))
            shares = {shard: least + (i < more) for i, shard in enumerate(asked)}
            answers = self._shards.run("activate", {s: [share, owner, until, at] for s, share in shares.items()})
            for shard, share in shares.items():
                found += map(_taken, answers[shard])
                if len(answers[shard]) < share:
                    waiting.remove(shard)
        self._due_times.hurry(self._shards.of(lease.site) for lease in found if lease.record.immediate)
        return found

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """See `SiteList.enlist`. Two round trips, one where nothing is to be had."""
        sent: dict[int, list[Any]] = {}
        for name in sites:
            sent.setdefault(self._shards.of(name), [0, owner, until, at]).append(name)
        answers = self._shards.run("activate", sent)
        # A site that was not due may be taken over when the lease ends.
        found = {shard: [_taken(answer) for answer in each] for shard, each in answers.items() if each}
        self._due_times.ring(found)
        self._due_times.hurry(found)
        return [lease for each in found.values() for lease in each]

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """See `SiteList.renew`. One round trip."""
        parts = self._shards.by_shard([(lease.site, lease) for lease in leases])
        sent = {s: [until, *([leases[i].site, leases[i].token] for i in positions)] for s, positions in parts.items()}
        held = [False] * len(leases)
        for shard, answers in self._shards.run("renew", sent).items():
            for i, answer in zip(parts[shard], answers, strict=True):
                held[i] = bool(answer)
        return [msgspec.structs.replace(one, until=until) for one, is_held in zip(leases, held, strict=True) if is_held]

    def park(self, parked: Sequence[Parked], *, at: float) -> int:
        """See `SiteList.park`. Two round trips, one where nothing was parked."""
        sent: dict[int, list[Any]] = {}
        for one in parked:
            lease = one.lease
            entry = [lease.site, lease.token, float(one.due), encode_state(one.state)]
            sent.setdefault(self._shards.of(lease.site), [at]).append(entry)
        answers = self._shards.run("park", sent)
        self._due_times.ring([shard for shard, many in answers.items() if many])
        return sum(answers.values())

    def next_site_due(self) -> float | None:
        """See `SiteList.next_site_due`. One round trip, two where something changed."""
        first = min(self._due_times.first())
        return None if first == math.inf else first

    def urgent(self, owner: str) -> list[SiteLease]:
        """See `SiteList.urgent`. One round trip, three where something may have come."""
        asked = self._due_times.take_hurried()
        hurried = [shard for shard, some in zip(asked, self._shards.exist("hurry", asked), strict=True) if some]
        answers = self._shards.run("urgent", {shard: [owner] for shard in hurried})
        self._due_times.hurry(hurried)
        leases = [_site_lease(answer) for each in answers.values() for answer in each]
        return sorted(leases, key=lambda lease: lease.site)

    def site(self, site: str) -> SiteRecord | None:
        """See `SiteList.site`. One round trip."""
        [answer] = self._of(site, "read", ["sites", site])
        return None if answer is None else _site_record(answer)

    def part(self, site: str, number: int) -> bytes | None:
        """See `SiteList.part`. One round trip."""
        found: bytes | None = self._of(site, "read", ["part", site, str(number)])
        return found

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """See `SiteList.sites`. One round trip."""
        asked = {shard: ["after", after, n] for shard in range(self._shards.count)}
        found = [_site_record(each) for answer in self._shards.run("read", asked).values() for each in answer]
        return sorted(found, key=lambda record: record.site)[:n]

    # ------------------------------------------------------------------ pages

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """See `Pages.page`. One round trip."""
        return self.records(site, [key])[0]

    def records(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """See `PageReader.records`. A round trip for each thousand pages."""
        found: list[PageRecord | None] = []
        for start in range(0, len(keys), _AT_ONCE):
            values = self._of(site, "read", ["page", site, *keys[start : start + _AT_ONCE]])
            found += [None if value is None else decode_value(site, value) for value in values]
        return found

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """See `Pages.pages`. A round trip for each thousand pages."""
        for name in self._site_names() if site is None else [site]:
            for _, _, value in self._places_of(name):
                record = decode_value(name, value)
                if state is None or record.state == state:
                    yield name, record

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """See `Pages.forget`. Two round trips and a scan of the log; of a site two for each thousand pages.

        A site is barred by the first. What the log says of the pages reaches nobody from then on, and goes when they
        are gone; a process that dies between the two leaves that to whoever forgets them again.
        """
        removed = self._forget_site(site, at) if key is None else self._forget_page(site, key, at)
        self._changes.erase(site, key)
        return removed

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """See `Pages.evict`. Two round trips, more where pages change between them."""
        gone = 0
        while True:
            entries = []
            values = self._of(lease.site, "read", ["page", lease.site, *keys]) if keys else []
            for key, value in zip(keys, values, strict=True):
                record = None if value is None else decode_value(lease.site, value)
                if record is not None and record.state != "never-crawled":
                    left = evicted(record)
                    body = encode_body(lease.site, left)
                    entry = _parting(record, "evicted", lease.site, key, at)
                    entries.append([key, value, never_lane(left.importance), left.first_seen, body, entry])
            answer = self._of(lease.site, "evict", [lease.site, lease.token, *entries])
            if answer is None:
                return None
            gone += int(answer[0])
            if not answer[1]:
                return gone

    def regrade(
        self, lease: SiteLease, importance: Callable[[Sequence[PageRecord]], Sequence[float]], *, epoch: int, n: int
    ) -> Regraded | None:
        """See `Scores.regrade`. Two round trips."""
        site = lease.site
        entries = self._of(site, "regrade_read", [site, lease.token, epoch, n])
        if entries is None or entries == 1:
            return None if entries is None else Regraded(0, 0, done=True)
        moves = _moves(site, [(key, value) for _, _, key, value in entries], importance)
        done = len(entries) < n
        last_lane, last_order = (entries[-1][0], float(entries[-1][1])) if entries else (0, 0.0)
        moved = self._of(site, "regrade_move", [site, lease.token, epoch, done, last_lane, last_order, *moves])
        return None if moved is None else Regraded(len(entries), moved, done)

    def reweigh(
        self, lease: SiteLease, keys: Sequence[bytes], importance: Callable[[Sequence[PageRecord]], Sequence[float]]
    ) -> int | None:
        """See `Scores.reweigh`. Two round trips."""
        site = lease.site
        values = self._of(site, "read", ["page", site, *keys]) if keys else []
        found = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        moved = self._of(site, "reweigh", [site, lease.token, *_moves(site, found, importance)])
        return None if moved is None else int(moved)

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
        """See `Census.census`. One round trip."""
        sums: dict[int, list[int]] = {}
        for fields in self._shards.read("HGETALL", "buckets"):
            for name, value in _pairs(fields):
                sums.setdefault(int(name[:-1]), [0, 0])[name[-1:] == b"s"] += int(value)
        return {bucket: BucketCensus(n, total / MILLISECONDS) for bucket, (n, total) in sorted(sums.items()) if n}

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """See `Census.census_rows`. One round trip."""
        counted: Counted = {}
        for fields in self._shards.read("HGETALL", "rows"):
            for name, value in _pairs(fields):
                period, bucket, column = name.decode().rsplit(":", 2)
                if int(period) >= since:
                    row = counted.setdefault((int(period), None if bucket == "-" else int(bucket)), [0] * 6)
                    row[int(column)] += float(value)
        return rows_of(counted.items())

    def statistics(self) -> Statistics:
        """See `Census.statistics`. One round trip."""
        sums: dict[str, int] = {}
        for fields in self._shards.read("HGETALL", "counts"):
            for name, value in _pairs(fields):
                sums[name.decode()] = sums.get(name.decode(), 0) + int(value)
        return Statistics(
            pages={state: sums.get(f"state{i}", 0) for i, state in enumerate(STATES)},
            sites=sums.get("sites", 0),
            active_sites=sums.get("active", 0),
            leased=sums.get("leased", 0),
            immediate=sums.get("immediate", 0),
            settle_lost=sums.get("settle_lost", 0),
            fenced=sums.get("fenced", 0),
        )

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """See `Copies.copies`. One round trip."""
        homes: dict[int, int] = {}
        for fields in self._shards.read("HGETALL", "copies"):
            for name, value in _pairs(fields):
                where, file = name.split(b":")
                if int(where) == repository:
                    homes[int(file)] = homes.get(int(file), 0) + int(value)
        return homes

    def relocate(self, moves: Sequence[Move]) -> int:
        """See `Copies.relocate`. One round trip."""
        sent: dict[int, list[list[Any]]] = {}
        for move in moves:
            entry = [move.site, move.key, encode_copy(move.old), encode_copy(move.new)]
            sent.setdefault(self._shards.of(move.site), []).append(entry)
        return sum(self._shards.run("relocate", sent).values())

    def changes(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """See `Changes.changes`. Two round trips."""
        return self._changes.after(cursor, n)

    def changes_end(self) -> str:
        """See `Changes.changes_end`. One round trip."""
        return self._changes.end()

    def changes_from(self, at: float) -> str:
        """See `Changes.changes_from`. Two round trips."""
        return self._changes.since(at)

    def trim_changes(self, *, before: float, most: int) -> int:
        """See `Changes.trim_changes`. Two round trips, more where many entries go."""
        return self._changes.trim(before=before, most=most)

    def value(self, name: str) -> bytes | None:
        """See `Board.value`. One round trip."""
        found: bytes | None = self._connection.ask(self._values, "HGET", self._values, name)
        return found

    def put_value(self, name: str, value: bytes) -> None:
        """See `Board.put_value`. One round trip."""
        self._connection.ask(self._values, "HSET", self._values, name, value)

    def feed(self, key: str | None = None, form: FeedForm = "list") -> ServerFeed:
        """See `Feeds.feed`."""
        return ServerFeed(self._connection, self._inbox if key is None else key.encode(), form)

    def rows(self) -> Iterator[Row]:
        """See `Portable.rows`. Writing is paused meanwhile. A round trip for two thousand pages."""
        head = Head(self._collection, self._period_s, self._fastest_s, self._changes.name)
        return server_rows(self._connection, self._shards, head, values=self._values, changes=self._changes.every())

    def disconnect(self) -> None:
        """Break all connections, as a fault would; the next step makes a new one. For tests."""
        self._connection.disconnect()

    def close(self) -> None:
        """See `FrontierStore.close`."""
        self._connection.close()
        if self._server is not None:
            self._server.close()

    def check_valid(self) -> None:
        """Assert that every known URL is in one place, and the counts are what they count. For tests: reads all."""
        found = dict.fromkeys(STATES, 0)
        leased = 0
        for record in [record for name in self._site_names() if (record := self.site(name)) is not None]:
            name = record.site
            places = list(self._places_of(name))
            assert len({key for _, key, _ in places}) == len(places) == sum(record.pages), f"{name}: places and pages"
            states = [decode_value(name, value).state for _, _, value in places]
            assert tuple(states.count(state) for state in STATES) == record.pages, f"{name}: counts by state"
            for state in states:
                found[state] += 1
            leased += sum(lane == _LEASED for lane, _, _ in places)
        counts = self.statistics()
        assert counts.pages == found
        assert counts.leased == leased

    # ---------------------------------------------------------------- private

    def _forget_page(self, site: str, key: bytes, at: float) -> int:
        while True:
            [value] = self._of(site, "read", ["page", site, key])
            removed, again, _ = self._of(site, "forget", [site, False, _farewell(site, key, value, at)])
            if not again:
                return int(removed)

    def _forget_site(self, site: str, at: float) -> int:
        removed, _, is_done = self._of(site, "forget", [site, True])
        while not is_done:
            places = self._of(site, "read", ["places", site, 0, -math.inf, b"", _AT_ONCE])
            some = sorted(_farewell(site, key, value, at) for _, _, key, value in places)
            many, _, is_done = self._of(site, "forget", [site, True, *some])
            removed += many
        return int(removed)

    def _of(self, site: str, step: str, arguments: Sequence[Any]) -> Any:
        """One step in one site's shard."""
        shard = self._shards.of(site)
        return self._shards.run(step, {shard: arguments})[shard]

    def _arrive(self, links: Sequence[Link], at: float, *, put_first: bool) -> tuple[int, int, list[int]]:
        """(new, put on an immediate lane, the places of those that were known)."""
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

    def _dealt(self, lease: SiteLease, answer: Sequence[Any]) -> Dealt:
        immediate, never, recrawl, left, overtaken = answer
        return Dealt(
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
        """As `lua/settle.lua` takes it; a lease that this process does not hold is lost there."""
        lease = outcome.lease
        held = self._leased.get(lease)
        page = encode_page(lease.site, outcome.record)
        if held is None:
            return [lease.site, lease.token, b"", lease.number, page, False, [], False]
        keeps = outcome.record.copy == held.record.copy
        counted = _counted(period, held.record, outcome)
        # What an entry tells of the record before does not change while the page is leased.
        entry = encode_entry(entry_of(held.record, outcome, site=lease.site, key=held.key, at=at, sequence=0))
        return [lease.site, lease.token, held.key, lease.number, page, keeps, counted, entry]

    def _site_names(self) -> Iterator[str]:
        after = ""
        while found := self.sites(after, _AT_ONCE):
            yield from (record.site for record in found)
            after = found[-1].site

    def _places_of(self, site: str) -> Iterator[tuple[int, bytes, bytes]]:
        """(lane, key, value) of a site's pages, lane by lane, those that are leased last."""
        place: tuple[int, float, bytes] = (0, -math.inf, b"")
        while True:
            entries = self._of(site, "read", ["places", site, *place, _AT_ONCE])
            yield from ((lane, key, value) for lane, _, key, value in entries if value is not None)
            if len(entries) < _AT_ONCE:
                return
            lane, order, key, _ = entries[-1]
            place = lane, float(order), key


def _moves(
    site: str,
    found: Sequence[tuple[bytes, bytes]],
    importance: Callable[[Sequence[PageRecord]], Sequence[float]],
) -> list[list[Any]]:
    """Of some pages' (key, value) the waiting ones whose class changed: key, value as it was, new lane, new body."""
    records = [(key, value, decode_value(site, value)) for key, value in found]
    waits = [each for each in records if each[2].state == "never-crawled" and each[2].immediate is None]
    graded = zip(waits, importance([record for _, _, record in waits]), strict=True)
    return [
        [key, value, never_lane(new), encode_body(site, msgspec.structs.replace(record, importance=new))]
        for (key, value, record), new in graded
        if never_lane(new) != never_lane(record.importance)
    ]


class _Horizons:
    """The distinct horizons of one call, packed: most sites have the same."""

    def __init__(self) -> None:
        self.packed: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, times: Sequence[float]) -> int:
        """Which one it is, from 1."""
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
    """What an outcome adds to the census rows: field, increment, and so on."""
    if outcome.kind not in FETCHED:
        return []
    counted: Counted = {}
    count_outcome(counted, period, before, outcome)
    return [
        each
        for (_, bucket), row in counted.items()
        for column, many in enumerate(row)
        if many
        for each in (f"{period}:{'-' if bucket is None else bucket}:{column}", float(many))
    ]


def _site_record(answer: Sequence[Any]) -> SiteRecord:
    """From an answer of `site_answer` in `lua/prelude.lua`."""
    name, due, first, owner, immediate, epoch, _, _, state, learned, *pages = answer
    return SiteRecord(
        site=name.decode(),
        pages=tuple(pages),
        due=float(due),
        first_seen=float(first),
        state=decode_state(state) if state else SiteState(),
        owner=None if owner is None else owner.decode(),
        immediate=immediate,
        epoch=epoch,
        learned=learned,
    )


def _site_lease(answer: Sequence[Any]) -> SiteLease:
    return SiteLease(answer[0].decode(), answer[6], float(answer[7]), _site_record(answer))


def _taken(answer: Sequence[Any]) -> SiteLease:
    """From an answer of `activate`: who lost the site stands before the rest."""
    lost_by = None if answer[0] is None else answer[0].decode()
    return msgspec.structs.replace(_site_lease(answer[1:]), lost_by=lost_by)


def _farewell(site: str, key: bytes, value: bytes | None, at: float) -> list[Any]:
    """A page as `lua/forget.lua` takes it."""
    if value is None:
        return [key, False, False]
    return [key, value, _parting(decode_value(site, value), "forgotten", site, key, at)]


def _parting(record: PageRecord, verdict: ChangeVerdict, site: str, key: bytes, at: float) -> bytes | bool:
    """The entry of a page that is taken out, as the scripts take it; False for a page that was not held."""
    if not is_held(record):
        return False
    return encode_entry(parting(record, verdict, site=site, key=key, at=at, sequence=0))


def _pairs(fields: Any) -> Iterable[tuple[bytes, bytes]]:
    """Of a hash: a list of names and values in turn, or a dictionary, as the protocol's version has it."""
    return fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
