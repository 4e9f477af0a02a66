"""The lives of a shared store: detect that a server lost its latest steps, and repair what this process lost.

A server loses acknowledged steps when it restarts from an old snapshot or a damaged file, or when an outdated replica
replaces the server. Each step that changes a shard stores its own number in the shard, as the *mark* of its process
(`lua/guard.lua`). With each step, a process sends the number of its last step that the shard answered. A shard whose
mark is lower than the number that the process sends has lost steps, and refuses the new step. After a reconnection, a
process also compares its marks in all shards with the numbers of its own last steps.

A *life* of a store is the time between two losses of steps. The first process that detects a loss gives the new life a
name, which is also the new name of the change log. After a loss of steps, each process repairs its own work:

- its site leases in the shards that went back are ended (`lua/disown.lua`), and the caller receives the list of these
  sites;
- what it discovered, forgot, moved or published since then is repeated, from a log of bounded size in memory;
- pages that it settled since then are in their earlier state, so whoever leases them fetches them again.

If a server loses a site lease, the lease's owner keeps sending requests to the site until the owner detects the loss.
After a server has lost writes, new leases have the flag `records.LOST_LIFE` for some time. The owner of such a lease
waits until all earlier leases have ended. The flag LOST_LIFE is left out if the site's previous owner has detected the
loss and given up the site (`before_loss`). Each shard detects by itself that its server was replaced
(`lua/parts/era.lua`).

If the store no longer exists, because its server was emptied or replaced, the process ends with a StoreError.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from redis.exceptions import ResponseError

from webfountain.errors import StoreError
from webfountain.records import LOST_LIFE
from webfountain.store.answers import SetBack
from webfountain.store.shared.repeat_log import RepeatLog, SentStep
from webfountain.store.shared.scripts import READING, Script, Shards, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webfountain.records import SiteLease
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.layout import SharedMeta

__all__ = ["GuardedShards", "ServerLives"]

logger = logging.getLogger(__name__)

SET_BACK: Final = "SETBACK"
NEW_LIFE: Final = "NEWLIFE"
"""First words of the errors that `lua/guard.lua` returns."""
REPEATED: Final = frozenset({"discover"})
"""Steps that can be repeated unchanged, because they take no lease and a second run changes nothing."""
COUNTS_MS: Final = 3_600_000
"""Maximum age, in milliseconds, of the step number that a shard stores for a process. The process ignores an older
number. A shard deletes the step number of a process that has sent nothing for twice `COUNTS_MS` (`lua/guard.lua`). """
_MILLISECONDS: Final = 1000


class _HeldSite(NamedTuple):
    """A site that this process has leased. Until the time `doubted`, the site's previous owner may still be sending
    requests."""

    token: int
    owner: str
    doubted: float


class ServerLives:
    """The last step numbers, site leases and recent work of one process, shared by all its threads.

    Parameters
    ----------
    meta : the store's description
    key : the key that contains it
    """

    def __init__(self, connection: ServerConnection, meta: SharedMeta, *, key: bytes) -> None:
        self.life = meta.log
        self.process = secrets.token_hex(4)
        """Name under which shards store the number of this process's last step."""
        self._connection = connection
        self._now = time.time  # its milliseconds number the steps; it must not go back by hours
        self._meta = key
        self._described: dict[str, Any] = msgspec.to_builtins(meta)
        self._raw = b""  # `_described` as the server stores it
        self._lock = threading.RLock()
        self._marks: dict[int, int] = {}  # by shard: number of this process's last answered step
        self._number = 0
        self._mended = 0  # number of repairs
        self._past: set[str] = set()  # lives that ended
        self._connections = connection.connections.made
        self._held: dict[str, _HeldSite] = {}  # the sites that this process holds
        self._until = -math.inf  # latest end of their leases
        self._repeat_log = RepeatLog()
        self._voided: set[tuple[str, int]] = set()
        self._is_set_back = False
        self._before: list[Callable[[], object]] = []
        self._after: list[Callable[[], object]] = []
        self._life_script = Script("life", is_step=False)

    # ------------------------------------------------------------ for callers

    def take_set_back(self) -> SetBack | None:
        """Return the report of a loss of steps that was detected since the last call, or None."""
        with self._lock:
            if not self._is_set_back:
                return None
            found = SetBack(frozenset(self._voided))
            self._is_set_back, self._voided = False, set()
            return found

    def current(self) -> str:
        """Return the name of the store's current life, in one round trip."""
        with self._lock:
            self._describe()
            return str(self._described["log"])

    def check(self, shards: GuardedShards) -> None:
        """Check that the store exists and still knows this process's steps; repair losses. The check costs two round
        trips.

        Every heartbeat calls this method, so a loss of steps is detected within one heartbeat. Raises StoreError if the
        store is gone.
        """
        with self._lock:
            mended = self._mended
            self._describe()
            if self._is_past() or (self._marks and self._lost(shards)):
                self._mend(shards, {}, mended)

    @property
    def repairs(self) -> int:
        """How many times this process has repaired a loss of steps. If `repairs` changes while a caller runs several
        steps, a loss may have undone some of them."""
        return self._mended

    def is_void(self, site: str, token: int) -> bool:
        """Return whether a site lease ended because the server lost it."""
        return (site, token) in self._voided

    def hold(self, leases: Sequence[SiteLease], *, lease_s: float) -> None:
        """Record sites that this process has leased for `lease_s` seconds."""
        for lease in leases:
            doubted = lease.until + lease_s if lease.lost_by == LOST_LIFE else -math.inf
            self._held[lease.site] = _HeldSite(lease.token, lease.record.owner or "", doubted)

    def prolong(self, until: float) -> None:
        """Record that the leases of this process last until `until`."""
        self._until = max(self._until, until)

    def drop(self, leases: Sequence[SiteLease]) -> None:
        """Record that this process has given up sites."""
        for lease in leases:
            held = self._held.get(lease.site)
            if held is not None and held.token == lease.token:
                del self._held[lease.site]

    def repeat(self, call: Callable[[], object], *, size: int = 0, name: str | None = None) -> None:
        """Register a function to call if the store loses what the function has written. The function and its data take
        `size` bytes of memory. A function with the same `name` replaces an earlier one.
        """
        number = self._next_number()
        with self._lock:
            self._repeat_log.add_call(number, call, size=size, name=name)

    def before_loss(self, call: Callable[[], object]) -> None:
        """Register a function to call when the server has lost steps, before this process gives up its sites. The
        function runs in the thread that detects the lost steps.
        """
        self._before.append(call)

    def after_loss(self, call: Callable[[], object]) -> None:
        """Register a function to call each time a loss of steps has been repaired."""
        self._after.append(call)

    # ------------------------------------------------------------------ steps

    def run(self, shards: GuardedShards, step: str, arguments: Mapping[int, bytes]) -> dict[int, Any]:
        """Run a step in some shards. If a shard has lost steps, repair the loss, and then run the step. Raise the
        errors of `Shards.run`.
        """
        answers: dict[int, Any] = {}
        left = list(arguments)
        while left:
            self._check_connections(shards)
            mended, number = self._mended, self._next_number()
            # Packed here as bytes, because the client would pack texts and numbers one by one.
            known, own = (self.life.encode(), self.process.encode()), b"%d" % number
            last = self._marks.get
            sent = [(shard, (arguments[shard], *known, b"%d" % self._mark(shard, number), own)) for shard in left]
            refused, faults = dict[int, str](), []
            for shard, answer in zip(left, shards.send(step, sent), strict=True):
                if not isinstance(answer, Exception):
                    answers[shard] = answer
                    self._marks[shard] = max(number, last(shard, 0))
                elif isinstance(answer, ResponseError) and str(answer).startswith((SET_BACK, NEW_LIFE)):
                    refused[shard] = str(answer)
                else:
                    faults.append(answer)
            if step in REPEATED:
                with self._lock:
                    self._repeat_log.add([SentStep(number, s, step, arguments[s]) for s in left if s in answers])
            if faults:
                self._connection.checked(faults[0])
            if refused:
                self._mend(shards, refused, mended)
            left = list(refused)
        return {shard: answers[shard] for shard in arguments}

    def _mark(self, shard: int, number: int) -> int:
        """Return the number of the last step that a shard answered, or 0 if that was an hour or more before step
        `number`."""
        mark = self._marks.get(shard, 0)
        return mark if number - mark < COUNTS_MS else 0

    def _next_number(self) -> int:
        with self._lock:
            self._number = max(self._number + 1, int(self._now() * _MILLISECONDS))
            return self._number

    def _check_connections(self, shards: GuardedShards) -> None:
        if self._connections == self._connection.connections.made:
            return
        with self._lock:
            mended, self._connections = self._mended, self._connection.connections.made
            if self._marks and self._lost(shards):
                self._mend(shards, {}, mended)

    # ------------------------------------------------------------------- mend

    def _mend(self, shards: GuardedShards, refused: Mapping[int, str], mended: int) -> None:
        """Repair a loss of steps, and begin a new life of the store unless another process already has."""
        with self._lock:
            if mended != self._mended:
                return  # another thread has repaired it
            self._describe()
            lost = self._lost(shards)
            is_over = bool(lost) or self._is_past()
            before, self.life = self.life, self._begin() if is_over else self._described["log"]
            if before != self.life:
                self._past.add(before)
            self._mended += 1
            stale = [s for s, word in refused.items() if word.startswith(NEW_LIFE) and word.split()[-1] != self.life]
            shards.set_life(range(shards.count) if is_over else stale, self.life)
            if lost:
                for call in self._before:
                    call()
                self._make_good(shards, lost)
                for call in self._after:
                    call()
            self._is_set_back |= bool(lost) or before != self.life

    def _describe(self) -> None:
        """Read the store's description. Raise StoreError if the description is gone or belongs to another store."""
        raw = self._connection.ask(self._meta, "GET", self._meta)
        try:
            found = None if raw is None else msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError:
            found = None  # another step has overwritten it
        known = self._described  # a store of an earlier version has no "id"
        if found is None or any(found.get(name, "") != known.get(name, "") for name in ("id", "collection", "shards")):
            raise StoreError(
                f"{self._connection.shown}: the store is gone, because its server was emptied or replaced; "
                f"restore its data, or `webfountain import` an export, and start again"
            )
        self._described, self._raw = found, raw

    def _begin(self) -> str:
        """Name the store's new life, unless another process has named it already; return the name."""
        if self._described["log"] == self.life or self._is_past():
            new = msgspec.json.encode({**self._described, "log": secrets.token_hex(4)})
            self._life_script.run(self._connection, [(self._meta, [self._meta], packed([self._raw, new]))])
            self._describe()
        return str(self._described["log"])

    def _is_past(self) -> bool:
        return self._described["log"] in self._past

    def _lost(self, shards: GuardedShards) -> dict[int, int]:
        """Return, for each shard that has lost steps of this process, the number of the last step that it still has."""
        now = self._next_number()
        asked = {shard: mark for shard in list(self._marks) if (mark := self._mark(shard, now))}
        known = shards.marks(list(asked), self.process)
        return {shard: mark for shard, mark in known.items() if mark < asked[shard]}

    def _make_good(self, shards: GuardedShards, lost: Mapping[int, int]) -> None:
        """Give up the site leases in the shards that have lost steps, and repeat the lost steps."""
        since = max((self._marks[shard] - mark for shard, mark in lost.items() if mark), default=None)
        for shard in lost:
            self._marks.pop(shard)
        voided = [(site, held) for site, held in self._held.items() if shards.of(site) in lost]
        disowned: dict[int, list[list[Any]]] = {}
        for site, held in voided:
            del self._held[site]
            self._voided.add((site, held.token))
            entry = [site, held.token, held.owner, held.doubted <= self._until]
            disowned.setdefault(shards.of(site), []).append(entry)
        shards.run("disown", disowned)
        rows, calls = self._repeat_log.take(lost)
        for row in rows:
            for step in REPEATED:
                shards.run_packed(step, {one.shard: one.arguments for one in row if one.step == step})
        for call in calls:
            call()
        logger.warning(
            "The store at %s was set back %s: this process gives up %d sites and repeats %d steps; "
            "the new name of its change log is %s",
            self._connection.shown,
            "to before this ant" if since is None else f"by {since / _MILLISECONDS:.1f} s or more",
            len(voided),
            sum(map(len, rows)) + len(calls),
            self.life,
        )


class GuardedShards(Shards):
    """The shards of a store during a crawl. A shard that has lost steps refuses every step that would change it."""

    def __init__(self, connection: ServerConnection, *, prefix: str, count: int, lives: ServerLives) -> None:
        super().__init__(connection, prefix=prefix, count=count)
        self._lives = lives
        self._guarded: dict[str, Script] = {}

    def run(self, step: str, arguments: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Run a step in some shards, with the check of `lua/guard.lua` if the step changes data."""
        if step in READING:
            return super().run(step, arguments)
        return self.run_packed(step, {shard: packed(given) for shard, given in arguments.items()})

    def run_packed(self, step: str, arguments: Mapping[int, bytes]) -> dict[int, Any]:
        """Run a step that changes data in some shards, given its packed arguments."""
        try:
            return self._lives.run(self, step, arguments)
        finally:
            self._touched.update(arguments)

    def check(self) -> None:
        """Check that the store still knows the steps of this process, and repair losses."""
        self._lives.check(self)

    def send(self, step: str, calls: Sequence[tuple[int, Sequence[Any]]]) -> list[Any]:
        """Send a step that changes data. Return an answer or an error for each shard."""
        script = self._guarded.get(step) or self._guarded.setdefault(step, Script(step, guard=True))
        return script.answers(self._connection, [(self._keys[s][0], self._keys[s], given) for s, given in calls])

    def marks(self, shards: Sequence[int], process: str) -> dict[int, int]:
        """Return the number of a process's last step in each shard, or 0 if it ran no step there, in one round trip."""
        found = self.ask("HGET", "life", process, shards=shards)
        return {shard: int(mark or 0) for shard, mark in zip(shards, found, strict=True)}

    def set_life(self, shards: Collection[int], life: str) -> None:
        """Write the name of the store's new life into shards."""
        super().run("name_life", {shard: [life] for shard in shards})
