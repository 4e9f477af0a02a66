"""The steps as scripts, sent to their shards: one round trip however many shards a call touches.

A step is `lua/prelude.lua` and its own file in one script, named by its hash; a server that does not know it (new, or
restarted) is told it and asked again. All keys of a shard stand in one hash slot and all thirteen are declared with
each step, so that Redis Cluster, and proxies before it, can route them.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgpack
import xxhash
from redis.exceptions import NoScriptError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.store.shared.connection import Connection

__all__ = ["KEYS", "Shards"]

KEYS: Final = (
    "pages",
    "nodes",
    "sites",
    "leases",
    "due",
    "names",
    "counts",
    "buckets",
    "rows",
    "copies",
    "barred",
    "hurry",
    "log",
)
"""The keys of a shard, in the order that `lua/prelude.lua` takes them."""


def _packed(arguments: Sequence[Any]) -> bytes:
    """Arguments as the servers' cmsgpack reads them: it is of an age that knows no type for bytes."""
    packed: bytes = msgpack.packb(arguments, use_bin_type=False)
    return packed


class _Script:
    """One step: its text, and the hash that servers know it by."""

    def __init__(self, name: str) -> None:
        folder = files("webfountain.store.shared") / "lua"
        text = (folder / "prelude.lua").read_bytes() + b"\n" + (folder / f"{name}.lua").read_bytes()
        self.text = text
        self.sha = hashlib.sha1(text, usedforsecurity=False).hexdigest()


class Shards:
    """The shards of one store. `prefix` begins each key; `count` was chosen when the store was made."""

    def __init__(self, connection: Connection, *, prefix: str, count: int) -> None:
        self._connection = connection
        self.count = count
        self._keys = [[f"{{{prefix}:{shard}}}{name}".encode() for name in KEYS] for shard in range(count)]
        self._scripts: dict[str, _Script] = {}

    def of(self, site: str) -> int:
        """The shard of a site."""
        return xxhash.xxh3_64_intdigest(site.encode()) % self.count

    def key(self, shard: int, name: str) -> bytes:
        """One of a shard's keys."""
        return self._keys[shard][KEYS.index(name)]

    def by_shard(self, entries: Sequence[tuple[str, Any]]) -> dict[int, list[int]]:
        """Shard -> positions of the entries of its sites, in order; an entry begins with its site."""
        found: dict[int, list[int]] = {}
        for position, entry in enumerate(entries):
            found.setdefault(self.of(entry[0]), []).append(position)
        return found

    def run(self, step: str, arguments: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Take one step in some shards, with the arguments of each; the answers by shard.

        Raises
        ------
        StoreError
            when the server refuses the step. What other shards answered has happened.
        """
        script = self._scripts.get(step) or self._scripts.setdefault(step, _Script(step))
        commands = [
            (self._keys[shard][0], (b"EVALSHA", script.sha, len(KEYS), *self._keys[shard], _packed(given)))
            for shard, given in arguments.items()
        ]
        answers = self._connection.send(commands)
        unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:
            again = [(key, (b"EVAL", script.text, *command[2:])) for key, command in (commands[i] for i in unknown)]
            for i, answer in zip(unknown, self._connection.send(again), strict=True):
                answers[i] = answer
        return dict(zip(arguments, map(self._connection.checked, answers), strict=True))

    def delete(self, name: str) -> None:
        """Delete the same key of every shard."""
        for answer in self._connection.send([((key := self.key(s, name)), ("UNLINK", key)) for s in range(self.count)]):
            self._connection.checked(answer)

    def read(self, command: str, name: str, *arguments: Any) -> list[Any]:
        """One plain reading command on the same key of every shard; the answers in order of shard."""
        sent = [(self.key(shard, name), (command, self.key(shard, name), *arguments)) for shard in range(self.count)]
        return [self._connection.checked(answer) for answer in self._connection.send(sent)]
