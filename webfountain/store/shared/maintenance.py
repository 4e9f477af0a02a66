"""Passes over a whole shared store: convert it to other units, correct its times, or count it again.

A crawl converts the store if `cycle.period` or `cycle.fastest` in its policy file differs from the units of the store.
A conversion deletes the census rows and the plan, because they are in the old units. A conversion computes the bucket
byte of each page again from the page's history. If the latest write to the store has a time after the server's clock, a
correction moves future times back. While a conversion or correction runs, other processes that open the store wait. A
store is not converted while the claims of other processes show that they crawl (`UnitUse`). If a process is killed
during a conversion, the next process that opens the store continues it.

``check --repair`` counts the pages of the store again, while no process crawls. New counts replace the old ones only at
the end, so an interrupted recount starts from the beginning.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import time
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import StoreError, StoreHeld
from webfountain.records import STATES
from webfountain.store.census_counting import period_of
from webfountain.store.codec import encode_state
from webfountain.store.contract import PLAN
from webfountain.store.revision import TOLERANCE_S, ClockCorrection, UnitConversion, revise, seconds_ahead
from webfountain.store.shared.codec import arrival_of, decode_value, encode_value
from webfountain.store.shared.layout import SUMS
from webfountain.store.shared.scripts import Shards
from webfountain.store.shared.sites import site_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.records import PageRecord, SiteRecord
    from webfountain.store.answers import Claim
    from webfountain.store.revision import Revision
    from webfountain.store.shared.claims import SharedClaims
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.layout import MetaEntry, SharedMeta

__all__ = ["OPENING_S", "RevisedShard", "SharedMaintenance", "UnitUse", "latest", "recount_shards"]

OPENING_S: Final = 30.0
"""Duration in seconds of a process's claim on ``unit/NAME`` while the process opens the store."""
logger = logging.getLogger(__name__)
LOCK_S: Final = 30.0
"""Duration in seconds of the lock that a conversion holds. A conversion extends its lock with each batch."""
PATIENCE_S: Final = 600.0
"""Longest time, in seconds, that a process which opens the store waits while another process converts it."""
SILENCE_S: Final = 30.0
"""A process whose clock is far ahead counts as ended if it does not extend its claim for this time, in seconds."""
LONGEST_CLAIM_S: Final = 7200.0
"""Longest duration of an ant's claim on its name, in seconds: twice the longest heartbeat interval."""
_REST_S: Final = 0.2
_LOCK: Final = "role/units"
_PROGRESS: Final = "\0units"
"""Field of a shard's hash `sites` that contains the position of an unfinished conversion or correction."""
_PAGES_AT_ONCE: Final = 2000
_SITES_AT_ONCE: Final = 100
_COUNTED: Final = (*(f"state{number}" for number in range(len(STATES))), "sites", "active", "leased", "immediate")


class UnitUse:
    """Claim by which this process announces its census period and its unit of the bucket bytes."""

    def __init__(self, claims: SharedClaims) -> None:
        self.name = f"unit/{secrets.token_hex(8)}"
        self._claims = claims
        self._until = -math.inf

    def begin(self, units: bytes, *, at: float) -> None:
        """Announce that this process uses the store with these units. The announcement expires `OPENING_S` after `at`.
        A second call extends the announcement.
        """
        self._until = time.monotonic() + OPENING_S
        self._claims.claim([self.name], owner=self.name, until=at + OPENING_S, at=at, notes={self.name: units})

    def end(self) -> None:
        if time.monotonic() < self._until:
            with contextlib.suppress(StoreError):
                self._claims.drop({self.name: 0.0}, owner=self.name, at=0.0)
        self._until = -math.inf


def latest(shards: Shards) -> float | None:
    """Return the time of the latest write to the store, in whole seconds, or None if nothing was written."""
    return max((float(each) for each in shards.ask("HGET", "counts", "latest") if each is not None), default=None)


class SharedMaintenance:
    """Converts one shared store to other units, and corrects its times. All times come from the server's clock."""

    def __init__(
        self,
        connection: ServerConnection,
        shards: Shards,
        entry: MetaEntry,
        *,
        values: bytes,
        claims: SharedClaims,
        use: UnitUse,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._entry = entry
        self._values = values
        self._claims = claims
        self._use = use

    def agree(self, *, period_s: float, fastest_s: float | None, corrects: bool) -> SharedMeta:
        """Convert the store to these units if needed, and return its description. If `fastest_s` is None, the store
        keeps its unit of the bucket bytes.

        With `corrects`, times in the future are also corrected, unless other processes crawl.

        Raises
        ------
        StoreHeld
            when other processes crawl with other units.
        """
        give_up = self._time() + PATIENCE_S
        while True:
            meta = self._meta()
            fastest = meta.fastest_s if fastest_s is None else fastest_s
            self._use.begin(_units(period_s, fastest), at=self._time())
            meta = self._meta()
            if _is_in(meta, period_s, fastest) and not (corrects and self._ahead()):
                return meta
            if self._lock():
                try:
                    self._convert(period_s, fastest)
                    corrects = corrects and self._correct()
                finally:
                    self._claims.drop({_LOCK: 0.0}, owner=self._use.name, at=self._time())
            elif self._time() > give_up:
                raise self._held()
            else:
                time.sleep(_REST_S)

    def _convert(self, period_s: float, fastest_s: float) -> None:
        """Complete an interrupted conversion, then convert the store to other units."""
        # The caller has called `_lock`.
        meta = self._meta()
        if meta.change:
            self._refuse_beside(meta, meta)
            meta = self._carry_out(meta)
        if not _is_in(meta, period_s, fastest_s):
            units = {"period_s": period_s, "fastest_s": fastest_s, "unit": meta.fastest_s}
            self._begin(meta, msgspec.structs.replace(meta, change=secrets.token_hex(4), **units))

    def _correct(self) -> bool:
        """Correct the times that are in the future; return False if other processes crawl."""
        # The caller has called `_lock`.
        at, meta = self._time(), self._meta()
        if not (ahead := seconds_ahead(latest(self._shards), at)):
            return True
        try:
            self._begin(meta, msgspec.structs.replace(meta, change=secrets.token_hex(4), correction=(at, ahead)))
        except StoreHeld:
            logger.warning(
                "%s: times up to %.0f s in the future cannot be corrected while other ants crawl; stop all ants, "
                "then start them again",
                self._connection.shown,
                ahead,
            )
            return False
        return True

    def _begin(self, meta: SharedMeta, new: SharedMeta) -> None:
        self._entry.replace(new)
        self._refuse_beside(meta, new)
        self._carry_out(new)

    def _carry_out(self, meta: SharedMeta) -> SharedMeta:
        """Carry out the conversion or correction that a store's description names."""
        servers = self._shards.servers()
        if meta.correction is None:
            self._shards.ask("UNLINK", "rows")
            self._connection.ask(self._values, "HDEL", self._values, PLAN)
            if meta.unit != meta.fastest_s:
                logger.info(
                    "The buckets are converted: the interval of bucket 0 is now %g s instead of %g s",
                    meta.fastest_s,
                    meta.unit,
                )
                self._revise(meta, UnitConversion(meta.unit, meta.fastest_s))
        else:
            correction = ClockCorrection(*meta.correction)
            self._revise(meta, correction)
            self._end_correction(correction, since=period_of(correction.at, meta.period_s) + 1)
        if servers != self._shards.servers():
            raise StoreError(f"{self._connection.shown}: its server was replaced during the change; start again")
        done = msgspec.structs.replace(meta, change="", unit=0.0, correction=None)
        self._entry.replace(done)
        return done

    def _revise(self, meta: SharedMeta, revision: Revision) -> None:
        for shard in range(self._shards.count):
            pages = RevisedShard(self._connection, self._shards, shard, change=meta.change, prolong=self._prolong)
            revise(pages, revision)

    def _end_correction(self, correction: ClockCorrection, *, since: int) -> None:
        """Delete the plan, the forecast and the census rows of future periods. Shorten claims that last too long, and
        correct the stored time of the latest write."""
        at = correction.at
        self._connection.ask(self._values, "HDEL", self._values, *correction.values)
        sent: list[tuple[bytes, tuple[Any, ...]]] = []
        for shard, names in enumerate(self._shards.ask("HKEYS", "rows")):
            key = self._shards.key(shard, "rows")
            gone = [name for name in names if int(name.partition(b":")[0]) >= since]
            sent += [(key, ("HDEL", key, *gone))] if gone else []
        self._claims.end_sooner(at=at, ahead=correction.ahead, latest=self._time() + LOCK_S)
        keys = [self._shards.key(shard, "counts") for shard in range(self._shards.count)]
        sent += [(key, ("HSET", key, "latest", int(at))) for key in keys]
        self._connection.ask_all(sent)
        logger.warning(
            "%s: the clock was %.0f s ahead when the store was last written; all times in the future are corrected",
            self._connection.shown,
            correction.ahead,
        )

    def _ahead(self) -> float:
        return seconds_ahead(latest(self._shards), self._time())

    def _refuse_beside(self, meta: SharedMeta, new: SharedMeta) -> None:
        """Wait until the claims of killed ants have expired, and raise StoreHeld if other processes crawl with other
        units.
        """
        units = _units(new.period_s, new.fastest_s)
        ahead, began, first = self._ahead(), self._time(), self._others(units)
        ends = {name: began + _patience_s(until - began, ahead) for name, until in first.items()}
        if ends:
            logger.warning(
                "%s: waiting up to %.0f s to see whether %d ants are alive",
                self._connection.shown,
                max(ends.values()) - began,
                len(ends),
            )
        while any(self._time() < end for end in ends.values()):
            now = self._others(units)
            if any(until > first.get(name, 0.0) for name, until in now.items()):
                self._entry.replace(meta)
                raise StoreHeld(
                    f"{self._connection.shown}: {len(now)} ants crawl with cycle.period {meta.period_s:g} s and "
                    f"cycle.fastest {meta.fastest_s:g} s, not {new.period_s:g} s and {new.fastest_s:g} s; stop them, "
                    "or give their values"
                )
            ends = {name: end for name, end in ends.items() if name in now}
            self._prolong()
            time.sleep(_REST_S)

    def _others(self, units: bytes) -> dict[str, float]:
        """Return the name and the deadline of each claim of another process that uses the store with different
        units."""
        at = self._time()
        openings = [each for each in self._claims.claims("unit") if each.note != units]
        alive = [each for each in (*self._claims.claims("ant"), *openings) if _lasts(each, at)]
        return {each.name: each.until for each in alive if each.owner != self._use.name}

    def _lock(self) -> bool:
        at = self._time()
        [claim] = self._claims.claim([_LOCK], owner=self._use.name, until=at + LOCK_S, at=at)
        if claim.until > at + LOCK_S + TOLERANCE_S:  # left by a killed process whose clock was far ahead
            self._claims.drop({_LOCK: 0.0}, owner=claim.owner, at=at)
        return claim.owner == self._use.name

    def _prolong(self) -> None:
        if not self._lock():
            raise self._held()

    def _held(self) -> StoreHeld:
        return StoreHeld(f"{self._connection.shown}: another process is changing the store; try again")

    def _meta(self) -> SharedMeta:
        meta = self._entry.read()
        if meta is None:
            raise StoreError(f"{self._connection.shown}: the store is gone")
        return meta

    def _time(self) -> float:
        seconds, micros = self._connection.ask(self._entry.key, "TIME")
        return int(seconds) + int(micros) / 1e6


def _units(period_s: float, fastest_s: float) -> bytes:
    return msgspec.json.encode([float(period_s), float(fastest_s)])


def _is_in(meta: SharedMeta, period_s: float, fastest_s: float) -> bool:
    return not meta.change and (meta.period_s, meta.fastest_s) == (period_s, fastest_s)


def _lasts(claim: Claim, at: float) -> bool:
    return bool(claim.owner) and claim.until > at


def _patience_s(left: float, ahead: float) -> float:
    """Return how many seconds to wait for the end of a claim that lasts `left` seconds more. The clock of the claim's
    owner may be `ahead` seconds fast.
    """
    if left > LONGEST_CLAIM_S:
        return SILENCE_S
    return min(left, max(SILENCE_S, left - ahead)) if ahead else left


class RevisedShard:
    """Implementation of `Revisable` for one shard. `change` identifies the conversion or correction; `prolong` extends
    the lock or raises StoreHeld."""

    def __init__(
        self, connection: ServerConnection, shards: Shards, shard: int, *, change: str, prolong: Callable[[], None]
    ) -> None:
        self._shown = connection.shown
        self._shards = shards
        self._shard = shard
        self._change = change.encode()
        self._prolong = prolong
        key = shards.key(shard, "sites")
        self._come_to: bytes = connection.ask(key, "HGET", key, _PROGRESS) or b""
        self._sorted: tuple[str, list[bytes]] = ("", [])

    @property
    def place(self) -> tuple[str, bytes]:
        """The last site and page key that an interrupted conversion or correction has processed in this shard."""
        change, _, place = self._come_to.partition(b"\0")
        site, _, key = place.partition(b"\0") if change == self._change else (b"", b"", b"")
        return site.decode(), key

    def get(self, site: str) -> SiteRecord | None:
        [answer] = self._ask("read", ["sites", site])
        return None if answer is None else site_record(answer)

    def after(self, name: str, n: int) -> list[SiteRecord]:
        return [site_record(each) for each in self._ask("read", ["after", name, n])]

    def keys(self, site: str, after: bytes, n: int) -> list[bytes]:
        """Return page keys in order. The first call for a site reads and sorts all keys of the site, because the server
        keeps them in another order.
        """
        if self._sorted[0] != site:
            self._sorted = site, sorted(self._keys(site))
        start = bisect_right(self._sorted[1], after) if after else 0
        return self._sorted[1][start : start + n]

    def move(self, site: SiteRecord) -> None:
        times = [float(site.first_seen), float(site.due), encode_state(site.state), site.learned, site.changed]
        self._step(site.site, b"", times, [])

    def replace(self, site: str, keys: Sequence[bytes], rule: Callable[[PageRecord], PageRecord]) -> None:
        """Replace pages, in two round trips, or more if another process changes a page in the meantime."""
        left = keys
        while left:
            entries = []
            for key, value in zip(left, self._ask("read", ["page", site, *left]), strict=True):
                if value is not None:
                    before = decode_value(site, value)
                    after = rule(before)
                    if after != before:
                        entries.append([key, value, encode_value(site, after, arrival_of(value))])
            left = self._step(site, keys[-1], False, entries) if entries else []
        self._prolong()

    def _step(self, site: str, key: bytes, times: list[Any] | bool, entries: list[list[bytes]]) -> list[bytes]:
        """Write the changed pages or times of a site. Return the keys of the pages that were not written, because
        another process had changed them."""
        place = b"\0".join((self._change, site.encode(), key))
        others = self._ask("revise", [site, self._come_to, place, times, *entries])
        if others is None:
            raise StoreHeld(f"{self._shown}: another process is changing the store; try again")
        self._come_to = place
        return list(others)

    def _keys(self, name: str) -> Iterator[bytes]:
        lane, order, key = 0, -math.inf, b""
        while entries := self._ask("read", ["places", name, lane, order, key, _PAGES_AT_ONCE]):
            yield from (each[2] for each in entries)
            lane, order, key = entries[-1][0], float(entries[-1][1]), entries[-1][2]

    def _ask(self, step: str, arguments: list[Any]) -> Any:
        return self._shards.run(step, {self._shard: arguments})[self._shard]


def recount_shards(connection: ServerConnection, *, prefix: str, count: int) -> None:
    """Compute the counts of all shards again, in one round trip per site.

    Counts must never be too low, because the next crawl would then delete files with needed copies.

    Raises
    ------
    StoreError
        if the server was replaced meanwhile.
    """
    shards = Shards(connection, prefix=prefix, count=count)
    new = Shards(connection, prefix=prefix, count=count, apart=SUMS)
    servers = shards.servers()
    for name in SUMS:  # left by an interrupted pass
        new.ask("UNLINK", name)
    for shard in range(count):
        after = ""
        while found := shards.run("read", {shard: ["after", after, _SITES_AT_ONCE]})[shard]:
            for answer in found:
                after = answer[0].decode()
                new.run("recount", {shard: [after]})
    if servers != shards.servers():
        raise StoreError(f"{connection.shown}: its server was replaced while it was counted; repair again")
    sent: list[tuple[bytes, tuple[Any, ...]]] = []
    for shard, counted in enumerate(new.ask("HMGET", "counts", *_COUNTED)):
        key = shards.key(shard, "counts")
        fields = (each for name, many in zip(_COUNTED, counted, strict=True) for each in (name, many or 0))
        sent.append((key, ("HSET", key, *fields)))
    for name in ("buckets", "copies"):
        for shard, is_there in enumerate(new.ask("EXISTS", name)):
            key = shards.key(shard, name)
            sent.append((key, ("COPY", new.key(shard, name), key, "REPLACE") if is_there else ("UNLINK", key)))
    connection.ask_all(sent)
    for name in SUMS:
        new.ask("UNLINK", name)
