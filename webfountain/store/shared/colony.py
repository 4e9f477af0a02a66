"""What the processes of one store share out and tell each other, beside the steps: claims, letters, lists, bells.

Claims and letters: addresses are spread over the shards; all else is few and stands in one place. Times go as text: a
script's numbers would be cut. A process's letters are a list of its own, which the server forgets an hour after the
last.

Lists that anybody fills and many processes empty: notes to a crawl, start URLs as scrapy-redis has. Each entry goes to
one process, which says when its effect is kept; one that is not done in time (its process died) goes to the next that
asks. What was taken stands in a sorted set beside the list, in the same slot of a cluster.

Due times: when the first site of each shard may be activated, so that a look at a store at rest is one command, not
256. A process remembers what the shards answered and asks again only those where that may have changed: where it took
a step itself, and where another process told that a site is due sooner (`ring`, after the step that made it so). What
makes a site due later needs no telling: who looks too early finds out. A process that dies between its step and the
telling, or a server that lost its last second, is made good by asking all shards again now and then.

In the same way it remembers in which shards its own sites may have immediate URLs (`take_hurried`).
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgpack
import xxhash
from redis.exceptions import NoScriptError

from webfountain.store.contract import Claim, FeedEntry
from webfountain.store.shared.scripts import Script

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from webfountain.store.contract import FeedForm
    from webfountain.store.shared.opening import ServerConnection
    from webfountain.store.shared.scripts import Shards

__all__ = ["DueTimes", "ServerFeed", "SharedClaims", "bell_key"]

_SPREAD: Final = ("address/", "guest/")
_LETTERS_S: Final = 3600


class SharedClaims:
    """`Claims` on an open connection. `prefix` begins each key, `count` is the number of the store's shards."""

    def __init__(self, connection: ServerConnection, *, prefix: str, count: int) -> None:
        self._connection = connection
        self._prefix = prefix
        self._count = count
        self._claim, self._drop = Script("claim", prelude=False), Script("drop", prelude=False)

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """See `Claims.claim`."""
        found: list[Claim | None] = [None] * len(names)
        head = [owner, repr(float(until)), repr(float(at))]
        given = [(name, (notes or {}).get(name, b"")) for name in names]
        for positions, answers in self._run(self._claim, names, head, given):
            for i, answer in zip(positions, answers, strict=True):
                found[i] = _claim(names[i], answer)
        return [each for each in found if each is not None]

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """See `Claims.drop`."""
        given = [(name, repr(float(until))) for name, until in names.items()]
        self._run(self._drop, list(names), [owner, repr(float(at))], given)

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """See `Claims.holders`."""
        keys = [self._key(name) for name in names]
        answers = self._connection.send([(key, ("HGET", key, name)) for key, name in zip(keys, names, strict=True)])
        raw = map(self._connection.checked, answers)
        found = [None if each is None else _claim(name, _kept(each)) for name, each in zip(names, raw, strict=True)]
        return [held if held is not None and held.until > at else None for held in found]

    def claims(self, kind: str) -> list[Claim]:
        """See `Claims.claims`."""
        key = self._key(f"{kind}/")
        found = self._connection.ask(key, "HGETALL", key)
        pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
        return sorted(
            (_claim(name.decode(), _kept(raw)) for name, raw in pairs),
            key=lambda claim: claim.name,
        )

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """See `Claims.post`. One round trip."""
        if letters:
            key = self._letters(owner)
            for answer in self._connection.send([(key, ("RPUSH", key, *letters)), (key, ("EXPIRE", key, _LETTERS_S))]):
                self._connection.checked(answer)

    def collect(self, owner: str) -> list[bytes]:
        """See `Claims.collect`. One round trip where there are none, else one for each thousand."""
        key = self._letters(owner)
        found: list[bytes] = []
        while some := self._connection.ask(key, "LPOP", key, 1000):
            found += some
        return found

    def end_within(self, seconds: float) -> None:
        """See `Claims.end_within`."""
        self._connection.end_within(seconds)

    def _run(
        self, script: Script, names: Sequence[str], head: Sequence[Any], given: Sequence[Any]
    ) -> list[tuple[list[int], Any]]:
        """The positions of the names of each key, and what the script answered for what is `given` of them."""
        by_key: dict[bytes, list[int]] = {}
        for i, name in enumerate(names):
            by_key.setdefault(self._key(name), []).append(i)
        packed = {
            key: msgpack.packb([*head, *(given[i] for i in positions)], use_bin_type=False)
            for key, positions in by_key.items()
        }
        answers = script.run(self._connection, [(key, [key], each) for key, each in packed.items()])
        return list(zip(by_key.values(), answers, strict=True))

    def _key(self, name: str) -> bytes:
        if name.startswith(_SPREAD):
            shard = xxhash.xxh3_64_intdigest(name.encode()) % self._count
            return f"{{{self._prefix}:{shard}}}claims".encode()
        return f"{{{self._prefix}}}{name.partition('/')[0]}s".encode()

    def _letters(self, owner: str) -> bytes:
        return f"{{{self._prefix}:{owner}}}letters".encode()


def _kept(raw: bytes) -> list[Any]:
    """A claim as `lua/claim.lua` keeps it, in the form of its answer."""
    return [*msgpack.unpackb(raw, raw=True), None]


def _claim(name: str, answer: Sequence[Any]) -> Claim:
    owner, until, note, lost = answer
    return Claim(name, owner.decode(), float(until), note, lost.decode() if lost else None)


_TEXT: Final = (files("webfountain.store.shared") / "lua" / "take.lua").read_bytes()
_SHA: Final = hashlib.sha1(_TEXT, usedforsecurity=False).hexdigest()
_SIZE: Final[dict[str, str]] = {"list": "LLEN", "set": "SCARD", "zset": "ZCARD"}


class ServerFeed:
    """`contract.Feed` under a key of a server."""

    def __init__(self, connection: ServerConnection, key: bytes, form: FeedForm = "list") -> None:
        self._connection = connection
        self._key = key
        self._form = form
        # A key's slot is that of its first braces, or of all of it.
        has_tag = b"}" in key.partition(b"{")[2][1:]
        self._taken = (key if has_tag else b"{" + key + b"}") + b":taken"

    def put(self, entries: Sequence[bytes]) -> None:
        """Add entries at the end of a list. One round trip."""
        if entries:
            self._connection.ask(self._key, "RPUSH", self._key, *entries)

    def take(self, n: int, *, until: float, at: float) -> list[FeedEntry]:
        """See `Feed.take`. One round trip."""
        given = (2, self._key, self._taken, self._form, n, repr(until), repr(at))
        [answer] = self._connection.send([(self._key, ("EVALSHA", _SHA, *given))])
        if isinstance(answer, NoScriptError):
            [answer] = self._connection.send([(self._key, ("EVAL", _TEXT, *given))])
        return [FeedEntry(name, data) for name, data in self._connection.checked(answer)]

    def done(self, taken: Sequence[FeedEntry]) -> None:
        """See `Feed.done`. One round trip."""
        if taken:
            self._connection.ask(self._key, "ZREM", self._taken, *[each.name for each in taken])

    def waiting(self) -> int:
        """See `Feed.waiting`. One round trip."""
        size = (self._key, (_SIZE[self._form], self._key)), (self._key, ("ZCARD", self._taken))
        return sum(int(self._connection.checked(answer)) for answer in self._connection.send(size))


ALL_AGAIN_S: Final = 60.0
"""All shards are asked after so long at most."""


def bell_key(prefix: str) -> bytes:
    """Where processes tell each other, of the store whose keys begin with `prefix`."""
    return f"{{{prefix}}}bell".encode()


class DueTimes:
    """Of one process; any thread. `now` is a steady clock, s."""

    def __init__(
        self,
        connection: ServerConnection,
        shards: Shards,
        *,
        key: bytes,
        rng: random.Random,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._key = key
        self._rng = rng
        self._now = now
        self._lock = threading.Lock()
        self._ring = Script("ring", prelude=False)
        self._first = [math.inf] * shards.count
        self._unsure = set(range(shards.count))
        self._hurried = set(range(shards.count))
        self._heard = 0
        self._all_at = self._next_time()

    def ring(self, shards: Collection[int]) -> None:
        """Tell that sites of these shards are due sooner, or have new immediate URLs. One round trip, none for none."""
        if shards:
            packed: bytes = msgpack.packb(list(shards))
            self._ring.run(self._connection, [(self._key, [self._key], packed)])

    def first(self) -> list[float]:
        """By shard; inf where there is no site. One round trip, two where something may have changed."""
        with self._lock:
            self._listen()
            self._unsure |= self._shards.take_touched()
            if self._unsure:
                asked = sorted(self._unsure)
                for shard, head in zip(asked, self._shards.heads(asked), strict=True):
                    self._first[shard] = next((due for _, due in scores_of(head)), math.inf)
                self._unsure.clear()
            return self._first.copy()

    def hurry(self, shards: Iterable[int]) -> None:
        """In these shards sites of this process may have immediate URLs."""
        with self._lock:
            self._hurried.update(shards)

    def take_hurried(self) -> list[int]:
        """The shards of `hurry`, and where others told something; what is still to be had there is told by `hurry`
        again. One round trip.
        """
        with self._lock:
            self._listen()
            taken, self._hurried = sorted(self._hurried), set()
            return taken

    def _listen(self) -> None:
        """Take in what others told; now and then all shards are asked."""
        rung = self._rung()
        if self._now() >= self._all_at:
            self._all_at = self._next_time()
            rung = set(range(self._shards.count))
        self._unsure |= rung
        self._hurried |= rung

    def _rung(self) -> set[int]:
        """The shards of which others told something since."""
        answer = self._connection.ask(self._key, "ZREVRANGEBYSCORE", self._key, "+inf", self._heard, "WITHSCORES")
        told = {int(shard): int(number) for shard, number in scores_of(answer)}
        if not told:
            if not self._heard:
                return set()
            self._heard = 0  # the server was set back
            return set(range(self._shards.count))
        before, self._heard = self._heard, max(told.values())
        return {shard for shard, number in told.items() if number > before}

    def _next_time(self) -> float:
        return self._now() + ALL_AGAIN_S * self._rng.uniform(0.5, 1.0)


def scores_of(answer: Any) -> Iterator[tuple[bytes, float]]:
    """Of a sorted set: pairs, or names and scores in turn, as the protocol's version has it."""
    if answer and not isinstance(answer[0], list | tuple):
        answer = zip(answer[::2], answer[1::2], strict=True)
    return ((name, float(score)) for name, score in answer)
