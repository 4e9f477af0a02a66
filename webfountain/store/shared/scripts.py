"""The Lua scripts that carry out the steps of a store, in one round trip for any number of shards.

The Lua text of a step consists of key names, constants, the parts of `lua/parts/` that it uses, and its own file. A
line `-- Uses` in a step's file names the parts that the step needs, in order. A server gets only the hash of a script,
or the text if the server does not know the hash. All keys of a shard are in one hash slot, and each step declares them,
so Redis Cluster can route the step.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgpack
import xxhash
from redis.exceptions import NoScriptError

from webfountain.store.shared.layout import CONSTANTS, KEYS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webfountain.store.shared.connection import ServerConnection

__all__ = ["READING", "Script", "Shards", "packed", "pairs", "step_text"]

_FOLDER: Final = files("webfountain.store.shared") / "lua"
_USES: Final = re.compile(rb"^-- Uses +(.+)$", re.MULTILINE)

READING: Final = frozenset({"read", "rows", "log_read", "server"})
"""Names of the steps that change nothing, so they also run on a replica or during a pause of writes."""


def _alone(name: str) -> bytes:
    """Return the text of a script that does not use the keys of a shard."""
    return (_FOLDER / f"{name}.lua").read_bytes()


def step_text(name: str, *, guard: bool) -> bytes:
    """Return the Lua text of a step that runs on a shard. With `guard`, a shard that has lost steps refuses the
    step."""
    step = _alone(name)
    used = _USES.search(step)
    parts = ["base", *(used[1].decode().split() if used else ())]
    texts = [_head(), *((_FOLDER / "parts" / f"{part}.lua").read_bytes() for part in parts)]
    return b"\n".join([*texts, *([_alone("guard")] if guard else []), step])


def _head() -> bytes:
    names = ", ".join(name.upper() for name in KEYS)
    constants = ", ".join(CONSTANTS), ", ".join(map(str, CONSTANTS.values()))
    return f"local {names} = unpack(KEYS)\nlocal {constants[0]} = {constants[1]}\n".encode()


def packed(arguments: Sequence[Any]) -> bytes:
    """Pack arguments for the server's cmsgpack, an old version of msgpack without a type for bytes."""
    found: bytes = msgpack.packb(arguments, use_bin_type=False)
    return found


def pairs(fields: Any) -> Iterable[tuple[bytes, bytes]]:
    """Return the (name, value) pairs of a hash, from an answer of either protocol version: a flat list or a
    dictionary.
    """
    return fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)


class Script:
    """A script: its text, and the hash by which servers identify it.

    `is_step` is True if the script uses the keys of a shard. With `guard` (`lua/guard.lua`), a shard that has lost
    steps refuses the step.
    """

    def __init__(self, name: str, *, is_step: bool = True, reading: bool = False, guard: bool = False) -> None:
        self._by_name, self._by_text = (b"EVALSHA_RO", b"EVAL_RO") if reading else (b"EVALSHA", b"EVAL")
        self.text = step_text(name, guard=guard) if is_step else _alone(name)
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()

    def run(self, connection: ServerConnection, calls: Sequence[tuple[bytes, Sequence[bytes], bytes]]) -> list[Any]:
        """Run the script once for each (routing key, keys, packed arguments), in one round trip. Return the answers in
        order.

        Raises
        ------
        StoreError
            if a server refuses a call. The other calls may have taken effect.
        """
        answers = self.answers(connection, [(key, keys, (given,)) for key, keys, given in calls])
        return [connection.checked(answer) for answer in answers]

    def answers(
        self, connection: ServerConnection, calls: Sequence[tuple[bytes, Sequence[bytes], Sequence[bytes | str | int]]]
    ) -> list[Any]:
        """Run the script once for each (routing key, keys, arguments), in one round trip. Return the answers, which may
        be errors."""
        commands = [(key, (self._by_name, self.sha, len(keys), *keys, *given)) for key, keys, given in calls]
        answers = connection.send(commands)
        unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:
            again = [(key, (self._by_text, self.text, *command[2:])) for key, command in (commands[i] for i in unknown)]
            for i, answer in zip(unknown, connection.send(again), strict=True):
                answers[i] = answer
        return answers


class Shards:
    """The shards of one store. Each key begins with `prefix`.

    The keys named in `apart` get the suffix "/new", so that their contents can be computed anew.
    """

    def __init__(self, connection: ServerConnection, *, prefix: str, count: int, apart: Collection[str] = ()) -> None:
        self._connection = connection
        self.count = count
        names = [f"{name}/new" if name in apart else name for name in KEYS]
        self._keys = [[f"{{{prefix}:{shard}}}{name}".encode() for name in names] for shard in range(count)]
        self._scripts: dict[str, Script] = {}
        self._touched: set[int] = set()

    def of(self, site: str) -> int:
        return xxhash.xxh3_64_intdigest(site.encode()) % self.count

    def key(self, shard: int, name: str) -> bytes:
        return self._keys[shard][KEYS.index(name)]

    def by_shard(self, entries: Sequence[tuple[str, Any]]) -> dict[int, list[int]]:
        """Group entries by shard: return, for each shard, the positions of its entries, in order. Each entry begins
        with the name of its site.
        """
        found: dict[int, list[int]] = {}
        for position, entry in enumerate(entries):
            found.setdefault(self.of(entry[0]), []).append(position)
        return found

    def run(self, step: str, arguments: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Run a step in some shards, in each with its own arguments. Return the answers by shard.

        Raises
        ------
        StoreError
            if a server refuses the step. The step may have taken effect in other shards.
        """
        script = self._scripts.get(step) or self._scripts.setdefault(step, Script(step, reading=step in READING))
        calls = [(self._keys[shard][0], self._keys[shard], packed(given)) for shard, given in arguments.items()]
        try:
            return dict(zip(arguments, script.run(self._connection, calls), strict=True))
        finally:
            if step not in READING:
                self._touched.update(arguments)

    def step(self, site: str, step: str, arguments: Sequence[Any]) -> Any:
        """Run a step in a site's shard; return the answer."""
        shard = self.of(site)
        return self.run(step, {shard: arguments})[shard]

    def servers(self) -> list[bytes]:
        """Return the run id of each shard's server, in one round trip. A server with a new run id may have lost
        steps.
        """
        return list(self.run("server", {shard: [] for shard in range(self.count)}).values())

    def keep_era(self) -> None:
        """Declare that the current server has all steps of the previous server (`lua/parts/era.lua`).

        Call this method only if no process can still use a lease that the previous server lost.
        """
        self.run("name_server", {shard: [] for shard in range(self.count)})

    def take_touched(self) -> set[int]:
        """Remove and return the shards in which this process ran steps since the last call."""
        taken = set()
        while self._touched:
            taken.add(self._touched.pop())
        return taken

    def barred(self, pages: Mapping[int, Sequence[tuple[bytes, bytes]]]) -> dict[int, list[bool]]:
        """Return, for each (site, key) pair, whether the page or its whole site was forgotten, in one round trip."""
        sent = []
        for shard, some in pages.items():
            key = self.key(shard, "barred")
            names = [name for site, page in some for name in (site, site + b"\0" + page)]
            sent.append((key, ("SMISMEMBER", key, *names)))
        answers = self._connection.ask_all(sent)
        return {
            shard: [bool(site or page) for site, page in zip(answer[::2], answer[1::2], strict=True)]
            for shard, answer in zip(pages, answers, strict=True)
        }

    def answers(self, sent: Sequence[tuple[bytes, tuple[Any, ...]]]) -> list[Any]:
        """Return the answers to (routing key, command) pairs, in one round trip."""
        return self._connection.ask_all(sent)

    def ask(self, command: str, name: str, *arguments: Any, shards: Sequence[int] | None = None) -> list[Any]:
        """Run one command on the same key of some or all shards, in one round trip. Return the answers in order."""
        keys = [self.key(shard, name) for shard in (range(self.count) if shards is None else shards)]
        return self._connection.ask_all([(key, (command, key, *arguments)) for key in keys])
