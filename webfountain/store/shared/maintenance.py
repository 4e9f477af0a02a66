"""Revisions of a shared store: one process converts it to other units, or corrects its times, for all.

Place in the walk: a crawl opens a shared store. When its policy file has another `cycle.period` or `cycle.fastest`
than the store, the crawl begins a *change*. The census rows and the plan are deleted, because they are in the old
units. The bucket bytes are computed again from the histories. If the latest step is later than the server's clock, the
change moves times instead. Other processes that open the store wait meanwhile. After a crash the next opening
continues the change. A change is refused while others crawl: each process claims the store in its units (`UnitUse`).
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import StoreError, StoreHeld
from webfountain.store.census_counting import period_of
from webfountain.store.contract import PLAN
from webfountain.store.revision import TOLERANCE_S, ClockCorrection, UnitConversion, revise, seconds_ahead
from webfountain.store.shared.shard_passes import RevisedShard

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.store.answers import Claim
    from webfountain.store.revision import Revision
    from webfountain.store.shared.claims import SharedClaims
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.meta import MetaEntry, SharedMeta
    from webfountain.store.shared.scripts import Shards

__all__ = ["OPENING_S", "SharedMaintenance", "UnitUse", "latest"]

OPENING_S: Final = 30.0
"""Duration of a claim on ``unit/NAME``, s. By then an ant has claimed its own name."""

logger = logging.getLogger(__name__)

LOCK_S: Final = 30.0
"""Duration of the lock on a change, s. The process that makes the change extends the lock with each batch. After a
crash another process continues when it expires.
"""
PATIENCE_S: Final = 600.0
"""Time for which an opening waits for another process that makes a change, s."""
SILENCE_S: Final = 30.0
"""Time for which a claim written by a clock far ahead may still be extended, s. After that its process counts as
ended."""
LONGEST_CLAIM_S: Final = 7200.0
"""Longest time for which an ant claims its name, s: two of the longest heartbeats."""
_REST_S: Final = 0.2
_LOCK: Final = "role/units"


class UnitUse:
    """The claim of a process that is about to use a store in its units."""

    def __init__(self, claims: SharedClaims, *, steady: Callable[[], float] = time.monotonic) -> None:
        self.name = f"unit/{secrets.token_hex(8)}"
        self._claims = claims
        self._steady = steady
        self._until = -math.inf

    def begin(self, units: bytes, *, at: float) -> None:
        """Claim for some seconds from `at`. A later call prolongs the claim."""
        self._until = self._steady() + OPENING_S
        self._claims.claim([self.name], owner=self.name, until=at + OPENING_S, at=at, notes={self.name: units})

    def end(self) -> None:
        """Release the claim. Without this call it expires on the server."""
        if self._steady() < self._until:
            with contextlib.suppress(StoreError):
                self._claims.drop({self.name: 0.0}, owner=self.name, at=0.0)
        self._until = -math.inf


def latest(shards: Shards) -> float | None:
    """Return the time of the latest step, in whole seconds, or None before the first. One round trip."""
    return max((float(each) for each in shards.read("HGET", "counts", "latest") if each is not None), default=None)


class SharedMaintenance:
    """The revisions of one store. `rest` is a sleep, in seconds; times are the server's."""

    def __init__(
        self,
        connection: ServerConnection,
        shards: Shards,
        entry: MetaEntry,
        *,
        values: bytes,
        claims: SharedClaims,
        use: UnitUse,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._entry = entry
        self._values = values
        self._claims = claims
        self._use = use
        self._rest = rest

    def agree(self, *, period_s: float, fastest_s: float | None, corrects: bool) -> SharedMeta:
        """Return the store's description once the store has these units. With `fastest_s` None the store keeps its own.

        With `corrects`, it also has no times after now, unless other processes crawl. In that case a line in the log
        says so.

        Raises
        ------
        StoreHeld
            when others crawl with other units.
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
                self._rest(_REST_S)

    def _convert(self, period_s: float, fastest_s: float) -> None:
        """Convert the store to other units, after completing an interrupted change. The caller holds the lock."""
        meta = self._meta()
        if meta.change:
            self._refuse_beside(meta, meta)
            meta = self._carry_out(meta)
        if not _is_in(meta, period_s, fastest_s):
            units = {"period_s": period_s, "fastest_s": fastest_s, "unit": meta.fastest_s}
            self._begin(meta, msgspec.structs.replace(meta, change=secrets.token_hex(4), **units))

    def _correct(self) -> bool:
        """Correct the store's times that are in the future. Return whether that was possible. The caller holds the
        lock."""
        at, meta = self._time(), self._meta()
        if not (ahead := seconds_ahead(latest(self._shards), at)):
            return True
        try:
            self._begin(meta, msgspec.structs.replace(meta, change=secrets.token_hex(4), correction=(at, ahead)))
        except StoreHeld:
            logger.warning(
                "%s: times up to %.0f s in the future are not corrected, because other ants crawl; stop all "
                "ants and start again",
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
        """Make the change that the description names. Return the description after it."""
        servers = self._shards.servers()
        if meta.correction is None:
            self._shards.delete("rows")
            self._connection.ask(self._values, "HDEL", self._values, PLAN)
            if meta.unit != meta.fastest_s:
                logger.info("converting buckets: bucket 0 is now %g s, was %g s", meta.fastest_s, meta.unit)
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
        """Delete what has become meaningless, end claims, and set the time of the latest step, in this order."""
        at = correction.at
        self._connection.ask(self._values, "HDEL", self._values, *correction.values)
        sent: list[tuple[bytes, tuple[Any, ...]]] = []
        for shard, names in enumerate(self._shards.read("HKEYS", "rows")):
            key = self._shards.key(shard, "rows")
            gone = [name for name in names if int(name.partition(b":")[0]) >= since]
            sent += [(key, ("HDEL", key, *gone))] if gone else []
        self._claims.end_sooner(at=at, ahead=correction.ahead, latest=self._time() + LOCK_S)
        keys = [self._shards.key(shard, "counts") for shard in range(self._shards.count)]
        sent += [(key, ("HSET", key, "latest", int(at))) for key in keys]
        self._connection.ask_all(sent)
        logger.warning(
            "%s: the clock was %.0f s ahead when the store was last written; later times are set to now",
            self._connection.shown,
            correction.ahead,
        )

    def _ahead(self) -> float:
        """Return how far the store is ahead of its server's clock, seconds; 0.0 within the tolerance."""
        return seconds_ahead(latest(self._shards), self._time())

    def _refuse_beside(self, meta: SharedMeta, new: SharedMeta) -> None:
        """Raise StoreHeld while others crawl in other units, and leave the store as it was. Claims of killed ants
        expire first.
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
            self._rest(_REST_S)

    def _others(self, units: bytes) -> dict[str, float]:
        """Return the claims of others that use the store in other units, and their ends."""
        at = self._time()
        openings = [each for each in self._claims.claims("unit") if each.note != units]
        alive = [each for each in (*self._claims.claims("ant"), *openings) if _lasts(each, at)]
        return {each.name: each.until for each in alive if each.owner != self._use.name}

    def _lock(self) -> bool:
        at = self._time()
        [claim] = self._claims.claim([_LOCK], owner=self._use.name, until=at + LOCK_S, at=at)
        if claim.until > at + LOCK_S + TOLERANCE_S:  # a process that was misled by a clock far ahead, and killed
            self._claims.drop({_LOCK: 0.0}, owner=claim.owner, at=at)
        return claim.owner == self._use.name

    def _prolong(self) -> None:
        if not self._lock():
            raise self._held()

    def _held(self) -> StoreHeld:
        return StoreHeld(f"{self._connection.shown}: another process changes the store; try again")

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
    """Return how long to wait for the end of a claim that lasts `left` seconds more, in a store that is `ahead`."""
    if left > LONGEST_CLAIM_S:
        return SILENCE_S
    return min(left, max(SILENCE_S, left - ahead)) if ahead else left
