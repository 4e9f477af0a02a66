"""The shared store's change log: one in each shard, written by the steps there, read as one in order of time.

An entry's number is its shard's own; a cursor holds one number of each shard, so a poll takes what came since in every
one, and nothing twice. Entries of one page lie in one shard, in the order of their steps. Where processes' clocks
differ, entries of different shards do by as much; an entry whose time is before a cursor's still comes after it.
"""

from __future__ import annotations

import base64
import heapq
import struct
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import CursorLost
from webfountain.records import Change
from webfountain.store.changes import BEGIN_ANEW, cursor_at, is_cursor, no_cursor, sequence_of, too_old, without_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.store.shared.scripts import Shards

__all__ = ["ChangeLog", "encode_entry"]

_AT_ONCE: Final = 1000
"""Entries that one script reads or drops."""
_SPARE: Final = 16
"""Entries asked of each shard beyond its share, for shares are not even."""
_TIME: Final = struct.Struct(">d")
_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


def encode_entry(entry: Change | None) -> bytes | bool:
    """An entry as `note` in `lua/prelude.lua` takes it: its number is given there. False for none."""
    if entry is None:
        return False
    return _TIME.pack(entry.at) + _encode(msgspec.structs.replace(entry, sequence=0, at=0))


class ChangeLog:
    """Reads, bounds and erases. `log` names the log in its cursors."""

    def __init__(self, shards: Shards, log: str) -> None:
        self._shards = shards
        self._log = log

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

    def _oldest(self, begin: Mapping[int, int], n: int) -> Iterator[tuple[int, int, Change]]:
        """(shard, number, entry) of up to `n` entries after a number of each shard, by time, each shard's in order.

        Ends where a shard has more than was asked of it, for the next might be one of those.
        """
        if not begin or n <= 0:
            return
        share = min(n, -(-n // len(begin)) + _SPARE)
        answers = self._shards.run("log_read", {shard: ["after", at, share] for shard, at in begin.items()})
        queues = {shard: [_decode(raw) for raw in answer[1:]] for shard, answer in answers.items()}
        heads = [(entries[0].at, shard, 0) for shard, entries in queues.items() if entries]
        heapq.heapify(heads)
        for _ in range(n):
            if not heads:
                return
            _, shard, i = heads[0]
            yield shard, answers[shard][0] + i + 1, queues[shard][i]
            if i + 1 < len(queues[shard]):
                heapq.heapreplace(heads, (queues[shard][i + 1].at, shard, i + 1))
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
