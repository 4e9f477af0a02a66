"""The steps as scripts, sent to their shards: one round trip however many shards a call touches.

A step is its own file of `lua/` behind the paragraphs of `lua/prelude.lua` that it uses, in one script, named by its
hash; a server that does not know it (new, or restarted) is told it and asked again. All keys of a shard stand in one
hash slot and all twelve are declared with each step, so that Redis Cluster, and proxies before it, can route them.

A page as the bytes of one hash field: what the scripts must know of it in front, the rest as msgpack. The layout is
told in `lua/prelude.lua`, the only other place that knows it. Memory is what a shared store has least of, so the
site's name is left out of the URL, a digest is 20 bytes, and fields at the end that have their defaults are not
written. Fields that a later version adds to `PageRecord` stand last and read as their defaults in old values.

The shared store's change log: one in each shard, written by the steps there, read as one in order of time. An entry's
number is its shard's own; a cursor holds one number of each shard, so a poll takes what came since in every one, and
nothing twice. Entries of one page lie in one shard, in the order of their steps. Where processes' clocks differ,
entries of different shards do by as much; an entry whose time is before a cursor's still comes after it.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import math
import re
import struct
from importlib.resources import files
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack
import msgspec
import xxhash
from redis.exceptions import NoScriptError

from webfountain.errors import CursorLost
from webfountain.records import STATES, Change, Copy, PageRecord
from webfountain.store.contract import class_of, recrawl_place
from webfountain.store.rules import (
    BEGIN_ANEW,
    cursor_at,
    is_cursor,
    last_crawled_ms,
    no_cursor,
    sequence_of,
    too_old,
    without_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.store.shared.opening import ServerConnection

__all__ = [
    "FIRST_LANE",
    "KEYS",
    "QueuePlace",
    "Script",
    "ShardedChangeLog",
    "Shards",
    "arrival_of",
    "decode_value",
    "encode_body",
    "encode_copy",
    "encode_entry",
    "encode_page",
    "encode_value",
    "never_lane",
]

KEYS: Final = (
    "pages",
    "nodes",
    "sites",
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


_READING: Final = frozenset({"read", "rows", "log_read"})
"""Steps that change nothing: sent so, they are answered also while writing is paused, and by a replica."""


def _packed(arguments: Sequence[Any]) -> bytes:
    """Arguments as the servers' cmsgpack reads them: it is of an age that knows no type for bytes."""
    packed: bytes = msgpack.packb(arguments, use_bin_type=False)
    return packed


_MADE: Final = re.compile(rb"^local (?:function )?([\w, ]+?)(?: =|\(|$)", re.MULTILINE)
"""Names that a paragraph of the prelude makes: those of a function, or of a line that begins with `local`."""
_REMARK: Final = re.compile(rb"--.*")
_WORD: Final = re.compile(rb"\w+")


def _used(prelude: bytes, step: bytes) -> bytes:
    """A step behind what it uses of the prelude: to make all that stands there took a fifth of a small step's time."""
    text, words = step, set(_WORD.findall(_REMARK.sub(b"", step)))
    for paragraph in reversed(prelude.split(b"\n\n")):
        names = {name for made in _MADE.findall(paragraph) for name in made.split(b", ")}
        if names & words:
            text = paragraph + b"\n\n" + text
            words.update(_WORD.findall(_REMARK.sub(b"", paragraph)))
    return text


class Script:
    """One step: its text, and the hash that servers know it by; without `prelude` it stands alone, on its own keys."""

    def __init__(self, name: str, *, prelude: bool = True, reading: bool = False) -> None:
        self._by_name, self._by_text = (b"EVALSHA_RO", b"EVAL_RO") if reading else (b"EVALSHA", b"EVAL")
        folder = files("webfountain.store.shared") / "lua"
        own = (folder / f"{name}.lua").read_bytes()
        self.text = _used((folder / "prelude.lua").read_bytes(), own) if prelude else own
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()

    def run(self, connection: ServerConnection, calls: Sequence[tuple[bytes, Sequence[bytes], bytes]]) -> list[Any]:
        """Calls as (key that routes, keys, packed arguments), all in one round trip; their answers in order.

        Raises
        ------
        StoreError
            when the server refuses one. What others answered has happened.
        """
        commands = [(key, (self._by_name, self.sha, len(keys), *keys, given)) for key, keys, given in calls]
        answers = connection.send(commands)
        unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:
            again = [(key, (self._by_text, self.text, *command[2:])) for key, command in (commands[i] for i in unknown)]
            for i, answer in zip(unknown, connection.send(again), strict=True):
                answers[i] = answer
        return [connection.checked(answer) for answer in answers]


class Shards:
    """The shards of one store. `prefix` begins each key; `count` was chosen when the store was made."""

    def __init__(self, connection: ServerConnection, *, prefix: str, count: int) -> None:
        self._connection = connection
        self.count = count
        self._keys = [[f"{{{prefix}:{shard}}}{name}".encode() for name in KEYS] for shard in range(count)]
        self._scripts: dict[str, Script] = {}
        self._touched: set[int] = set()

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
        script = self._scripts.get(step) or self._scripts.setdefault(step, Script(step, reading=step in _READING))
        calls = [(self._keys[shard][0], self._keys[shard], _packed(given)) for shard, given in arguments.items()]
        try:
            return dict(zip(arguments, script.run(self._connection, calls), strict=True))
        finally:
            if step not in _READING:
                self._touched.update(arguments)

    def take_touched(self) -> set[int]:
        """The shards in which this process took a step since the last call, whatever came of it."""
        taken = set()
        while self._touched:
            taken.add(self._touched.pop())
        return taken

    def heads(self, shards: Sequence[int]) -> list[Any]:
        """The first entry, with its score, of the sites by due time, of each of some shards."""
        keys = [self.key(shard, "due") for shard in shards]
        sent = [(key, ("ZRANGE", key, 0, 0, "WITHSCORES")) for key in keys]
        return [self._connection.checked(answer) for answer in self._connection.send(sent)]

    def barred(self, pages: Mapping[int, Sequence[tuple[bytes, bytes]]]) -> dict[int, list[bool]]:
        """Whether each page (site, key), or its site, was forgotten; by shard. One round trip."""
        sent = []
        for shard, some in pages.items():
            key = self.key(shard, "barred")
            names = [name for site, page in some for name in (site, site + b"\0" + page)]
            sent.append((key, ("SMISMEMBER", key, *names)))
        answers = map(self._connection.checked, self._connection.send(sent))
        return {
            shard: [bool(site or page) for site, page in zip(answer[::2], answer[1::2], strict=True)]
            for shard, answer in zip(pages, answers, strict=True)
        }

    def exist(self, name: str, shards: Sequence[int]) -> list[bool]:
        """Whether some shards have one of their keys. One round trip."""
        sent = [(key, ("EXISTS", key)) for key in (self.key(shard, name) for shard in shards)]
        return [bool(self._connection.checked(answer)) for answer in self._connection.send(sent)]

    def delete(self, name: str) -> None:
        """Delete the same key of every shard."""
        for answer in self._connection.send([((key := self.key(s, name)), ("UNLINK", key)) for s in range(self.count)]):
            self._connection.checked(answer)

    def read(self, command: str, name: str, *arguments: Any) -> list[Any]:
        """One plain reading command on the same key of every shard; the answers in order of shard."""
        sent = [(self.key(shard, name), (command, self.key(shard, name), *arguments)) for shard in range(self.count)]
        return [self._connection.checked(answer) for answer in self._connection.send(sent)]


FIRST_LANE: Final = 65
"""Number of the recrawl queue's first lane: 0 is the immediate one, 1 to 64 are the classes of the never-crawled."""
_IN_FRONT: Final = frozenset({"state", "due", "copy", "immediate"})
_ORDER: Final = ("url", "depth", "importance", "policy", "request", "scores", "first_seen", "trust", "source")
"""What a never-crawled page has, so that all that follows is left out."""
_FIELDS: Final = (*_ORDER, *(f for f in PageRecord.__struct_fields__ if f not in _IN_FRONT and f not in _ORDER))
_RECORD: Final = PageRecord.__struct_fields__
_DEFAULTS: Final = PageRecord(url="")
_HEAD: Final = struct.Struct(">BHd")
_CRAWLED: Final = struct.Struct(">Bd")
_DOUBLE: Final = struct.Struct(">d")
_COPY: Final = struct.Struct(">IQIH")
_EXACT: Final = 2**53
_HAS_DUE: Final = 8
_HAS_COPY: Final = 16
_CRAWLED_STATE: Final = STATES.index("crawled")
_DIGEST: Final = _FIELDS.index("digest")
_BUCKET: Final = _FIELDS.index("bucket")
_FIRST_SEEN: Final = _FIELDS.index("first_seen")
_fields_of = attrgetter(*_FIELDS)
_WITHOUT: Final = _fields_of(_DEFAULTS)
_NEVER_LAST: Final = len(_ORDER) - 1
_NEVER_WITHOUT: Final = list(_WITHOUT[_NEVER_LAST + 1 :])
_FLOATS: Final = {each.name for each in msgspec.structs.fields(PageRecord) if "float" in str(each.type)} - {"scores"}
_NUMBERS: Final = [at for at, name in enumerate(_FIELDS) if name in _FLOATS]
_AT: Final = [_RECORD.index(name) for name in _FIELDS]
"""Where each field of a body stands in a record."""
_RECORD_WITHOUT: Final = list(msgspec.structs.astuple(_DEFAULTS))
_STATE_AT, _DUE_AT, _COPY_AT, _IMMEDIATE_AT, _SEEN_AT, _BUCKET_AT, _DIGEST_AT = map(
    _RECORD.index, ("state", "due", "copy", "immediate", "first_seen", "bucket", "digest")
)

_pack_rest = msgspec.msgpack.Encoder().encode
_unpack_rest = msgspec.msgpack.Decoder(list[Any]).decode


class QueuePlace(NamedTuple):
    """Where a page stands in its site's queues: number of the lane, order within it."""

    lane: int
    order: float


def never_lane(importance: float) -> int:
    """The lane of a never-crawled page."""
    return 1 + class_of(importance)


def encode_copy(copy: Copy | None) -> bytes | None:
    """The place of a body as the scripts compare it."""
    return None if copy is None else _COPY.pack(copy.file, copy.offset, copy.length, copy.repository)


def encode_body(site: str, record: PageRecord) -> bytes:
    """All of a record that the scripts need not know."""
    fields = list(_fields_of(record))
    if record.url.startswith(site) and record.url[len(site) : len(site) + 1] == "/":
        fields[0] = record.url[len(site) :]
    if record.digest is not None and len(record.digest) == 40:
        fields[_DIGEST] = bytes.fromhex(record.digest)
    # What stands in front is not written twice.
    if record.state == "crawled":
        fields[_BUCKET] = _DEFAULTS.bucket
    elif record.state == "never-crawled":
        fields[_FIRST_SEEN] = _DEFAULTS.first_seen
    last = _NEVER_LAST if fields[_NEVER_LAST + 1 :] == _NEVER_WITHOUT else len(fields) - 1
    while last and fields[last] == _WITHOUT[last]:
        last -= 1
    del fields[last + 1 :]
    # A whole number is one to five bytes where a double is nine, and reads back as the same time or weight.
    for at in _NUMBERS:
        if at > last:
            break
        number = fields[at]
        if number is not None and number % 1.0 == 0.0 and -_EXACT < number < _EXACT:
            whole = int(number)
            if whole or math.copysign(1.0, number) > 0.0:  # -0.0 is no whole number
                fields[at] = whole
    return _pack_rest(fields)


def encode_page(site: str, record: PageRecord) -> list[Any]:
    """A tried page as `lua/settle.lua` takes it; its `immediate` place is over."""
    lane, order = recrawl_place(record)
    return [
        STATES.index(record.state),
        FIRST_LANE + lane,
        order,
        record.bucket,
        float(last_crawled_ms(record)),
        False if record.due is None else record.due,
        encode_copy(record.copy) or False,
        encode_body(site, record),
    ]


def encode_value(site: str, record: PageRecord, arrival: int | None) -> tuple[QueuePlace, bytes]:
    """A page that is leased to nobody: where it stands, and its value as the scripts write it."""
    flags, parts = STATES.index(record.state), []
    if record.immediate is not None:
        place = QueuePlace(0, float(record.immediate))
    elif record.state == "never-crawled":
        place = QueuePlace(never_lane(record.importance), float(arrival or 0))
    else:
        lane, order = recrawl_place(record)
        place = QueuePlace(FIRST_LANE + lane, order + 0.0)
    if record.state == "never-crawled":
        parts.append(_DOUBLE.pack(record.first_seen))
    elif record.state == "crawled":
        parts.append(_CRAWLED.pack(record.bucket, float(last_crawled_ms(record))))
    if record.due is not None:
        flags |= _HAS_DUE
        parts.append(_DOUBLE.pack(record.due))
    if record.copy is not None:
        flags |= _HAS_COPY
        parts.append(encode_copy(record.copy) or b"")
    return place, b"".join((_HEAD.pack(flags, *place), *parts, encode_body(site, record)))


def arrival_of(value: bytes) -> int | None:
    """The turn in the never-crawled queue of a page that stands there, or will when its lease is given back."""
    first, lane, order = _HEAD.unpack_from(value)
    return int(order) if first % _HAS_DUE == 0 and lane else None


def decode_value(site: str, value: bytes) -> PageRecord:
    """The record that a value holds."""
    first, lane, order = _HEAD.unpack_from(value)
    at = _HEAD.size
    record: list[Any] = _RECORD_WITHOUT.copy()
    record[_STATE_AT] = STATES[first % _HAS_DUE]
    begin = at
    if first % _HAS_DUE == 0:
        at += _DOUBLE.size
    elif first % _HAS_DUE == _CRAWLED_STATE:
        at += _CRAWLED.size
    if first & _HAS_DUE:
        record[_DUE_AT] = _DOUBLE.unpack_from(value, at)[0]
        at += _DOUBLE.size
    if first & _HAS_COPY:
        record[_COPY_AT] = _COPY.unpack_from(value, at)
        at += _COPY.size
    for where, field in zip(_AT, _unpack_rest(value[at:]), strict=False):
        record[where] = field
    # What stands in front is the page's: the body has its default.
    if first % _HAS_DUE == 0:
        record[_SEEN_AT] = _DOUBLE.unpack_from(value, begin)[0]
    elif first % _HAS_DUE == _CRAWLED_STATE:
        record[_BUCKET_AT] = _CRAWLED.unpack_from(value, begin)[0]
    if lane == 0:
        record[_IMMEDIATE_AT] = int(order)
    if record[0].startswith("/"):
        record[0] = site + record[0]
    if isinstance(record[_DIGEST_AT], bytes):
        record[_DIGEST_AT] = record[_DIGEST_AT].hex()
    return msgspec.convert(record, PageRecord)


_AT_ONCE: Final = 1000
"""Entries that one script reads or drops."""
_FEW: Final = 100
"""Entries read at once where those of all shards are in memory."""
_SPARE: Final = 16
"""Entries asked of each shard beyond its share, for shares are not even."""
_TIME: Final = struct.Struct(">d")
_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


def encode_entry(entry: Change | None) -> bytes | bool:
    """An entry as `note` in `lua/prelude.lua` takes it: its number is given there. False for none.

    One that came from another store keeps the number it had there, by which such ones are put in order.
    """
    if entry is None:
        return False
    return _TIME.pack(entry.at) + _encode(msgspec.structs.replace(entry, at=0))


class ShardedChangeLog:
    """Reads, bounds and erases. `log` names the log in its cursors."""

    def __init__(self, shards: Shards, log: str) -> None:
        self._shards = shards
        self._log = log

    @property
    def name(self) -> str:
        """As its cursors name it."""
        return self._log

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Up to `n` entries after a cursor, some if there is one, each after its own. Two round trips.

        An entry's sequence is how many lie before its cursor, over all shards, those that went among them.
        """
        dropped, last = self._bounds()
        position = list(dropped) if cursor is None else self._position(cursor, dropped, last)
        begin = {shard: at for shard, at in enumerate(position) if at < last[shard]}
        found = []
        for shard, number, entry in self._oldest(begin, n):
            if number > position[shard] + 1 and cursor is not None:
                raise too_old(cursor)  # dropped since the bounds were read
            position[shard] = number
            found.append((self._cursor(position), msgspec.structs.replace(entry, sequence=sum(position))))
        return found

    def every(self) -> Iterator[Change]:
        """All entries in order, as `after` gives them, without their cursors. A round trip for a hundred."""
        dropped, last = self._bounds()
        shards = [self._of_shard(shard, at) for shard, at in enumerate(dropped) if at < last[shard]]
        for sequence, entry in enumerate(heapq.merge(*shards, key=_turn), sum(dropped) + 1):
            yield msgspec.structs.replace(entry, sequence=sequence)

    def end(self) -> str:
        """The cursor behind the newest entries. One round trip."""
        return self._cursor(self._bounds()[1])

    def since(self, at: float) -> str:
        """The cursor before what came at or after a time. Two round trips."""
        dropped, last = self._bounds()
        asked = {shard: ["before", at] for shard, newest in enumerate(last) if newest > dropped[shard]}
        position = list(dropped)
        for shard, number in self._shards.run("log_read", asked).items():
            position[shard] = number
        if any(dropped) and position == dropped:
            raise CursorLost(f"the change log does not reach back so far; {BEGIN_ANEW}")
        return self._cursor(position)

    def trim(self, *, before: float, most: int) -> int:
        """Drop what is older than a time, then the oldest of all shards, to `most`. Two round trips and more."""
        dropped, last = self._bounds()
        went = 0
        up_to = {shard: 0 for shard, newest in enumerate(last) if newest > dropped[shard]}
        while up_to:
            asked = {shard: [before, number, _AT_ONCE] for shard, number in up_to.items()}
            answers = self._shards.run("log_trim", asked)
            for shard, (many, went_ever, newest) in answers.items():
                went += many
                dropped[shard], last[shard] = went_ever, newest
            up_to = {shard: up_to[shard] for shard, (many, _, _) in answers.items() if many == _AT_ONCE}
            excess = sum(last) - sum(dropped) - most
            if not up_to and excess > 0:
                begin = {shard: at for shard, at in enumerate(dropped) if at < last[shard]}
                up_to = {shard: number for shard, number, _ in self._oldest(begin, min(excess, _AT_ONCE))}
        return went

    def erase(self, site: str, key: bytes | None = None) -> None:
        """Take what a page, or all of a site, said out of its entries. Scans the shard's log: forgetting is rare.

        To be called when the page is barred, so that no entry comes after it; the one that says so stays.
        """
        shard = self._shards.of(site)
        needle = _encode(site) + (b"" if key is None else _encode(key))
        looked, through = -1, 0
        while through != looked:
            looked = through
            answer = self._shards.run("log_read", {shard: ["naming", looked, _AT_ONCE, needle]})[shard]
            through = answer[0]
            bare = []
            for number, raw in answer[1:]:
                entry = _decode(raw)
                if entry.site == site and key in (None, entry.key) and entry.verdict != "forgotten":
                    bare.append([number, encode_entry(without_text(entry))])
            if bare:
                self._shards.run("log_erase", {shard: bare})

    # ---------------------------------------------------------------- private

    def _bounds(self) -> tuple[list[int], list[int]]:
        """Of each shard: the number of the last entry that went, and of the newest."""
        found = self._shards.read("HMGET", "counts", "log_dropped", "logged")
        return [int(went or 0) for went, _ in found], [int(newest or 0) for _, newest in found]

    def _of_shard(self, shard: int, at: int) -> Iterator[Change]:
        """The entries of a shard after a number."""
        while found := (answer := self._read({shard: at}, _FEW)[shard])[1]:
            yield from found
            at = answer[0] + len(found)

    def _read(self, begin: Mapping[int, int], n: int) -> dict[int, tuple[int, list[Change]]]:
        """Of some shards up to `n` entries after a number, behind the number of the one before them.

        What an entry says of a page that was forgotten since reaches nobody, also while `erase` is not done. A round
        trip, another where something was forgotten.
        """
        answers = self._shards.run("log_read", {shard: ["after", at, n] for shard, at in begin.items()})
        found = {shard: (answer[0], [_decode(raw) for raw in answer[2:]]) for shard, answer in answers.items()}
        looked = {shard: entries for shard, (_, entries) in found.items() if answers[shard][1] and entries}
        if looked:
            barred = self._shards.barred(
                {shard: [(entry.site.encode(), entry.key) for entry in entries] for shard, entries in looked.items()}
            )
            for shard, entries in looked.items():
                entries[:] = [
                    without_text(entry) if is_barred and entry.verdict != "forgotten" else entry
                    for entry, is_barred in zip(entries, barred[shard], strict=True)
                ]
        return found

    def _oldest(self, begin: Mapping[int, int], n: int) -> Iterator[tuple[int, int, Change]]:
        """(shard, number, entry) of up to `n` entries after a number of each shard, by time, each shard's in order.

        Ends where a shard has more than was asked of it, for the next might be one of those.
        """
        if not begin or n <= 0:
            return
        share = min(n, -(-n // len(begin)) + _SPARE)
        answers = self._read(begin, share)
        queues = {shard: entries for shard, (_, entries) in answers.items()}
        heads = [(*_turn(entries[0]), shard, 0) for shard, entries in queues.items() if entries]
        heapq.heapify(heads)
        for _ in range(n):
            if not heads:
                return
            _, _, shard, i = heads[0]
            yield shard, answers[shard][0] + i + 1, queues[shard][i]
            if i + 1 < len(queues[shard]):
                heapq.heapreplace(heads, (*_turn(queues[shard][i + 1]), shard, i + 1))
            elif len(queues[shard]) == share:
                return
            else:
                heapq.heappop(heads)

    def _cursor(self, position: Sequence[int]) -> str:
        """The least of the numbers, then how far each is above it, as varints."""
        if len(position) == 1:
            return cursor_at(self._log, position[0])
        least = min(position)
        packed = b"".join(map(_varint, [least, *(number - least for number in position)]))
        return f"{self._log}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    def _position(self, cursor: str, dropped: Sequence[int], last: Sequence[int]) -> list[int]:
        """Of each shard the number of the entry that a cursor is behind; raises as `Changes.changes` says."""
        if len(last) == 1:
            return [sequence_of(cursor, self._log, first=dropped[0] + 1, last=last[0])]
        name, _, text = cursor.partition(".")
        if not is_cursor(cursor) or name != self._log or len(text) % 4 == 1:
            raise no_cursor(cursor)
        least, *above = _numbers(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        position = [least + number for number in above]
        if len(position) != len(last) or any(a > b for a, b in zip(position, last, strict=True)):
            raise no_cursor(cursor)
        if any(a < b for a, b in zip(position, dropped, strict=True)):
            raise too_old(cursor)
        return position


def _decode(raw: bytes) -> Change:
    return msgspec.structs.replace(_entry.decode(raw[_TIME.size :]), at=_TIME.unpack_from(raw)[0])


def _turn(entry: Change) -> tuple[bool, float]:
    """What came from another store in the order that it had there, before what this one noted in order of time."""
    return (False, entry.sequence) if entry.sequence else (True, entry.at)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last byte have the eighth."""
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _numbers(packed: bytes) -> list[int]:
    """The numbers of a row of varints."""
    numbers, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers
