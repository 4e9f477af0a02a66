"""A position in the change log of a sharded store, and its cursor.

A cursor contains one number per shard, and a hash of the times of the entries with these numbers. A shard that lost
entries gives their numbers to new entries with other times. Then the hash differs, and the log refuses each cursor
after a lost entry, however long it has grown since.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Final

import xxhash

from webfountain.store.change_log import cursor_at, is_cursor, no_cursor, sequence_of, too_old

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["LogPosition", "numbers_of"]

_ENTRY: Final = struct.Struct(">IQd")
_HASH_BYTES: Final = 4


class LogPosition:
    """The number and the time of one entry per shard. The time is 0.0 if it is no longer known."""

    def __init__(self, numbers: Sequence[int], times: Sequence[float]) -> None:
        self.numbers = list(numbers)
        self._times = list(times)
        self._hash = 0
        for shard in range(len(self.numbers)):
            self._hash ^= self._term(shard)

    def advance(self, shard: int, number: int, at: float) -> None:
        """Move on to an entry of a shard."""
        self._hash ^= self._term(shard)
        self.numbers[shard], self._times[shard] = number, at
        self._hash ^= self._term(shard)

    def cursor(self, log: str) -> str:
        """Return the cursor: the smallest number, the distance of each number from it as varints, and the hash."""
        if len(self.numbers) == 1:
            return cursor_at(log, self.numbers[0], self._times[0] or None)
        least = min(self.numbers)
        parts = [_varint(number) for number in (least, *(number - least for number in self.numbers))]
        packed = b"".join([*parts, self._hash.to_bytes(_HASH_BYTES, "big")])
        return f"{log}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    def check(self, cursor: str, log: str, dropped: Sequence[int], last: Sequence[int]) -> None:
        """Raise the errors of `Changes.changes` if a cursor with these numbers is invalid or too old."""
        if len(last) == 1:
            at = self._times[0] or None
            sequence_of(cursor, log, first=dropped[0] + 1, last=last[0], time_of=lambda _: at)
            return
        if cursor.partition(".")[0] != log or any(a > b for a, b in zip(self.numbers, last, strict=True)):
            raise no_cursor(cursor)
        if any(a < b for a, b in zip(self.numbers, dropped, strict=True)):
            raise too_old(cursor)
        _, kept = _parsed(cursor, len(last))
        if kept and int.from_bytes(kept, "big") != self._hash:
            raise no_cursor(cursor)  # from entries that a shard has lost

    def _term(self, shard: int) -> int:
        number = self.numbers[shard]
        return xxhash.xxh32_intdigest(_ENTRY.pack(shard, number, self._times[shard])) if number else 0


def numbers_of(cursor: str, shards: int) -> list[int]:
    """Return the numbers in a cursor of a log of `count` shards. Raise InputError for an invalid text."""
    if not is_cursor(cursor):
        raise no_cursor(cursor)
    if shards == 1:
        if "." in cursor:
            raise no_cursor(cursor)
        return [int(cursor.split("-")[1])]
    return _parsed(cursor, shards)[0]


def _parsed(cursor: str, shards: int) -> tuple[list[int], bytes]:
    """Return the numbers and the hash. Cursors of older versions have no hash."""
    text = cursor.partition(".")[2]
    if not text or len(text) % 4 == 1:
        raise no_cursor(cursor)
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    numbers, used = _numbers(packed, shards + 1)
    if len(numbers) != shards + 1 or len(packed) - used not in (0, _HASH_BYTES):
        raise no_cursor(cursor)
    least, *above = numbers
    return [least + number for number in above], packed[used:]


def _varint(number: int) -> bytes:
    """Encode a number with seven bits per byte, lowest first. All bytes but the last have the eighth bit set."""
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _numbers(packed: Iterable[int], most: int) -> tuple[list[int], int]:
    """Decode up to `count` varints. Return them and the number of bytes read."""
    numbers, number, shift, used = [], 0, 0, 0
    for place, byte in enumerate(packed, 1):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift, used = 0, 0, place
            if len(numbers) == most:
                break
    return numbers, used
