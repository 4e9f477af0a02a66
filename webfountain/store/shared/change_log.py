"""The change log of the shared store: one log per shard, read as a single log in order of time.

Each shard numbers its own entries. A cursor contains one number per shard, so a poll returns each new entry once. All
entries of one page are in one shard, in the order in which they were written. If the clocks of two processes differ,
entries of different shards may be out of order by this difference.

A cursor contains a hash of the times of the entries that it points to. If a shard has lost entries and given their
numbers to new ones, the hash differs, and the cursor is refused.
"""

from __future__ import annotations

import base64
import heapq
import struct
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from webfountain.errors import CursorLost
from webfountain.records import Change
from webfountain.store.change_log import BEGIN_ANEW, cursor_at, is_cursor, no_cursor, sequence_of, too_old, without_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webfountain.store.shared.lives import ServerLives
    from webfountain.store.shared.scripts import Shards

__all__ = ["LogPosition", "ShardedChangeLog", "encode_entry"]

_ENTRY: Final = struct.Struct(">IQd")
_HASH_BYTES: Final = 4

_AT_ONCE: Final = 1000
"""Number of entries that one script reads or drops."""
_FEW: Final = 100
"""Number of entries that `every` reads from each shard at once."""
_SPARE: Final = 16
"""Each shard returns this many entries more than its equal share, because entries are spread unevenly."""
_TIME: Final = struct.Struct(">d")
_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)


class LogPosition:
    """A position in the log: for each shard, the number and the time of one entry. The time of an entry is 0.0 if it is
    unknown.
    """

    def __init__(self, numbers: Sequence[int], times: Sequence[float]) -> None:
        self.numbers = list(numbers)
        self._times = list(times)
        self._hash = 0
        for shard in range(len(self.numbers)):
            self._hash ^= self._term(shard)

    def advance(self, shard: int, number: int, at: float) -> None:
        """Move the position past the next entry of a shard."""
        self._hash ^= self._term(shard)
        self.numbers[shard], self._times[shard] = number, at
        self._hash ^= self._term(shard)

    def cursor(self, log: str) -> str:
        """Return the cursor: the smallest number, the difference of each number from the smallest (as varints), and the
        hash.
        """
        if len(self.numbers) == 1:
            return cursor_at(log, self.numbers[0], self._times[0] or None)
        least = min(self.numbers)
        parts = [_varint(number) for number in (least, *(number - least for number in self.numbers))]
        packed = b"".join([*parts, self._hash.to_bytes(_HASH_BYTES, "big")])
        return f"{log}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    def check(self, cursor: str, log: str, dropped: Sequence[int], last: Sequence[int]) -> None:
        """Raise the errors of `Changes.after` if a cursor with these numbers is invalid or too old."""
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
            raise no_cursor(cursor)  # the cursor is from entries that a shard has lost

    def _term(self, shard: int) -> int:
        number = self.numbers[shard]
        return xxhash.xxh32_intdigest(_ENTRY.pack(shard, number, self._times[shard])) if number else 0


def _numbers_of(cursor: str, shards: int) -> list[int]:
    """Return the numbers in a cursor, one per shard. Raise InputError for an invalid cursor."""
    if not is_cursor(cursor):
        raise no_cursor(cursor)
    if shards == 1:
        if "." in cursor:
            raise no_cursor(cursor)
        return [int(cursor.split("-")[1])]
    return _parsed(cursor, shards)[0]


def _parsed(cursor: str, shards: int) -> tuple[list[int], bytes]:
    text = cursor.partition(".")[2]
    if not text or len(text) % 4 == 1:
        raise no_cursor(cursor)
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    numbers, used = _numbers(packed, shards + 1)
    # Cursors of older versions have no hash.
    if len(numbers) != shards + 1 or len(packed) - used not in (0, _HASH_BYTES):
        raise no_cursor(cursor)
    least, *above = numbers
    return [least + number for number in above], packed[used:]


def _varint(number: int) -> bytes:
    """Encode a number as a varint: seven bits per byte, lowest first, with the eighth bit set in all bytes but the
    last.
    """
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _numbers(packed: Iterable[int], most: int) -> tuple[list[int], int]:
    """Decode up to `most` varints; return the numbers and the length of their bytes."""
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


def encode_entry(entry: Change | None) -> bytes | bool:
    """Encode an entry for the function `note` in `lua/parts/log.lua`, which assigns the number. Return False if there
    is no entry.

    An imported entry contains its number in the old store.
    """
    if entry is None:
        return False
    return _TIME.pack(entry.at) + _encode(msgspec.structs.replace(entry, at=0))


class ShardedChangeLog:
    """Implementation of `Changes` in the shared store."""

    def __init__(self, shards: Shards, lives: ServerLives) -> None:
        self._shards = shards
        self._lives = lives

    @property
    def name(self) -> str:
        """The name of the log, which its cursors contain."""
        return self._lives.life

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Return up to `n` entries after a cursor, and for each entry the cursor after it, in four round trips.

        Only an empty result means the end of the log; after a short result, more entries may follow. The `sequence` of
        an entry is the number of entries in all shards up to this entry, including dropped entries.
        """
        log = self._lives.current()
        dropped, last = self._bounds()
        position = self._at(dropped if cursor is None else _numbers_of(cursor, self._shards.count))
        if cursor is not None:
            position.check(cursor, log, dropped, last)
        begin = {shard: at for shard, at in enumerate(position.numbers) if at < last[shard]}
        found = []
        for shard, number, entry in self._oldest(begin, n):
            if number > position.numbers[shard] + 1 and cursor is not None:
                raise too_old(cursor)  # dropped since the ends were read
            position.advance(shard, number, entry.at)
            found.append((position.cursor(log), msgspec.structs.replace(entry, sequence=sum(position.numbers))))
        return found

    def every(self) -> Iterator[Change]:
        """Return all entries in the order of `after`, in one round trip per hundred entries."""
        dropped, last = self._bounds()
        shards = [self._of_shard(shard, at) for shard, at in enumerate(dropped) if at < last[shard]]
        for sequence, entry in enumerate(heapq.merge(*shards, key=_turn), sum(dropped) + 1):
            yield msgspec.structs.replace(entry, sequence=sequence)

    def end(self) -> str:
        """Return the cursor after the newest entries, in three round trips."""
        return self._at(self._bounds()[1]).cursor(self._lives.current())

    def since(self, at: float) -> str:
        """Return the cursor just before the entries whose time is `at` or later, in four round trips."""
        dropped, last = self._bounds()
        asked = {shard: ["before", at] for shard, newest in enumerate(last) if newest > dropped[shard]}
        position = list(dropped)
        for shard, number in self._shards.run("log_read", asked).items():
            position[shard] = number
        if any(dropped) and position == dropped:
            raise CursorLost(f"the change log does not reach back that far; {BEGIN_ANEW}")
        return self._at(position).cursor(self._lives.current())

    def trim(self, *, before: float, most: int) -> int:
        """Drop the entries from before a time, then the oldest entries of all shards until `most` entries are left."""
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
        """Remove the contents of the entries of a page or a whole site, by a scan of the shard's log.

        Before the call, the store must already refuse links to the page, so that no new entry follows.
        """
        shard = self._shards.of(site)
        needle = _encode(site) + (b"" if key is None else _encode(key))
        searched, through = -1, 0
        while through != searched:
            searched = through
            answer = self._shards.run("log_read", {shard: ["naming", searched, _AT_ONCE, needle]})[shard]
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
        """Return, for each shard, the numbers of the last dropped entry and of the newest entry."""
        found = self._shards.ask("HMGET", "counts", "log_dropped", "logged")
        return [int(went or 0) for went, _ in found], [int(newest or 0) for _, newest in found]

    def _of_shard(self, shard: int, at: int) -> Iterator[Change]:
        while found := (answer := self._read({shard: at}, _FEW)[shard])[1]:
            yield from found
            at = answer[0] + len(found)

    def _read(self, begin: Mapping[int, int], n: int) -> dict[int, tuple[int, list[Change]]]:
        """For each shard, return up to `n` entries, and the number of the entry before them, in one or two round trips.

        Entries of forgotten pages are returned without contents, even before `erase` has removed the contents.
        """
        answers = self._shards.run("log_read", {shard: ["after", at, n] for shard, at in begin.items()})
        found = {shard: (answer[0], [_decode(raw) for raw in answer[2:]]) for shard, answer in answers.items()}
        searched = {shard: entries for shard, (_, entries) in found.items() if answers[shard][1] and entries}
        if searched:
            barred = self._shards.barred(
                {shard: [(entry.site.encode(), entry.key) for entry in entries] for shard, entries in searched.items()}
            )
            for shard, entries in searched.items():
                entries[:] = [
                    without_text(entry) if is_barred and entry.verdict != "forgotten" else entry
                    for entry, is_barred in zip(entries, barred[shard], strict=True)
                ]
        return found

    def _oldest(self, begin: Mapping[int, int], n: int) -> Iterator[tuple[int, int, Change]]:
        """Yield up to `n` entries as (shard, number, entry), in order of time. `begin` maps each shard to the number of
        the entry after which to start.
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
            # An entry that was not read may come next.
            elif len(queues[shard]) == share:
                return
            else:
                heapq.heappop(heads)

    def _at(self, numbers: Sequence[int]) -> LogPosition:
        """Return the position after the entries with these numbers, in one round trip."""
        asked = {shard: ["time", number] for shard, number in enumerate(numbers) if number}
        answers = self._shards.run("log_read", asked)
        return LogPosition(numbers, [float(answers.get(shard) or 0) for shard in range(len(numbers))])


def _decode(raw: bytes) -> Change:
    return msgspec.structs.replace(_entry.decode(raw[_TIME.size :]), at=_TIME.unpack_from(raw)[0])


def _turn(entry: Change) -> tuple[bool, float]:
    """Return the sort key of an entry: imported entries come first, in their old order, then other entries by time."""
    return (False, entry.sequence) if entry.sequence else (True, entry.at)
