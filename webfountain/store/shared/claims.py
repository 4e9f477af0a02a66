"""Claims on names by the processes of one store, and messages ("letters") between these processes.

Claims on addresses are spread over the shards; each other kind of claim has one key. Times are sent as text, because a
script would truncate numbers. The messages for a process are a list, which the server deletes an hour after the last
message.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgpack
import xxhash

from webfountain.errors import StoreError
from webfountain.store.answers import Claim
from webfountain.store.shared.scripts import Script, pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.store.shared.connection import ServerConnection

__all__ = ["SharedClaims"]

_SPREAD: Final = ("address/", "guest/")
_TIMED: Final = ("ant", "role", "loan", "seeds", "live", "unit")
"""Kinds of claims that have a deadline and are not spread over the shards."""
_LETTERS_S: Final = 3600


class SharedClaims:
    """Implementation of `Claims` in the shared store. Each key begins with `prefix`; `count` is the number of the
    store's shards."""

    def __init__(self, connection: ServerConnection, *, prefix: str, count: int) -> None:
        self._connection = connection
        self._prefix = prefix
        self._count = count
        self._claim, self._drop = Script("claim", is_step=False), Script("drop", is_step=False)
        self._sooner = Script("sooner", is_step=False)
        self._kept: dict[str, str] = {}  # names that were claimed without a deadline, and their owners

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        found: list[Claim | None] = [None] * len(names)
        head = [owner, repr(float(until)), repr(float(at))]
        given = [(name, (notes or {}).get(name, b"")) for name in names]
        for positions, answers in self._run(self._claim, names, head, given):
            for i, answer in zip(positions, answers, strict=True):
                found[i] = _claim(names[i], answer)
        held = [each for each in found if each is not None]
        if until == math.inf:
            self._kept.update((each.name, owner) for each in held if each.owner == owner)
        return held

    def repeat(self) -> None:
        """After the server has lost steps, claim again the names that this process had claimed without a deadline.

        Raises
        ------
        StoreError
            if another process has claimed such a name meanwhile.
        """
        for name, owner in self._kept.items():
            [claim] = self.claim([name], owner=owner, until=math.inf, at=0.0)
            if claim.owner != owner:
                raise StoreError(
                    f"{self._connection.shown}: the data of the server were set back, and now {name} belongs to "
                    f"{claim.owner}"
                )

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        given = [(name, repr(float(until))) for name, until in names.items()]
        self._run(self._drop, list(names), [owner, repr(float(at))], given)

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        keys = [self._key(name) for name in names]
        answers = self._connection.send([(key, ("HGET", key, name)) for key, name in zip(keys, names, strict=True)])
        raw = map(self._connection.checked, answers)
        found = [None if each is None else _claim(name, _kept(each)) for name, each in zip(names, raw, strict=True)]
        return [held if held is not None and held.until > at else None for held in found]

    def claims(self, kind: str) -> list[Claim]:
        key = self._key(f"{kind}/")
        found = self._connection.ask(key, "HGETALL", key)
        return sorted(
            (_claim(name.decode(), _kept(raw)) for name, raw in pairs(found)),
            key=lambda claim: claim.name,
        )

    def end_sooner(self, *, at: float, ahead: float, latest: float) -> None:
        """Shorten claims that end after `latest`, because the clock of their process was `ahead` seconds fast.

        A claim with an owner ends at once; a claim without an owner ends `ahead` seconds earlier.
        """
        kept = [self._key(f"{kind}/") for kind in _TIMED]
        kept += [f"{{{self._prefix}:{shard}}}claims".encode() for shard in range(self._count)]
        given = msgpack.packb([repr(at), repr(ahead), repr(latest)], use_bin_type=False)
        self._sooner.run(self._connection, [(key, [key], given) for key in kept])

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """Leave messages for a process, in one round trip."""
        if letters:
            key = self._letters(owner)
            self._connection.ask_all([(key, ("RPUSH", key, *letters)), (key, ("EXPIRE", key, _LETTERS_S))])

    def collect(self, owner: str) -> list[bytes]:
        """Return and delete the messages for a process, in one round trip, and one more per thousand messages."""
        key = self._letters(owner)
        found: list[bytes] = []
        while some := self._connection.ask(key, "LPOP", key, 1000):
            found += some
        return found

    def time(self) -> float:
        seconds, microseconds = self._connection.ask(self._key("role/"), "TIME")
        return int(seconds) + int(microseconds) / 1e6

    def end_within(self, seconds: float) -> None:
        self._connection.end_within(seconds)

    def _run(
        self, script: Script, names: Sequence[str], head: Sequence[Any], given: Sequence[Any]
    ) -> list[tuple[list[int], Any]]:
        """Run a script once for each key that stores some of the names, with `head` and these names' items of `given`.
        Return, for each key, the positions of its names and the script's answer."""
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
    """Decode a stored claim into a list like those that `lua/claim.lua` returns."""
    return [*msgpack.unpackb(raw, raw=True), None]


def _claim(name: str, answer: Sequence[Any]) -> Claim:
    owner, until, note, lost = answer
    return Claim(name, owner.decode(), float(until), note, lost.decode() if lost else None)
