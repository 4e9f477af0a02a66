"""The page records of the shared store: read, list and remove them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError
from webfountain.store.change_log import is_held, parting
from webfountain.store.codec import evicted
from webfountain.store.shared.change_log import encode_entry
from webfountain.store.shared.codec import decode_value, encode_body, encode_copy, never_lane
from webfountain.store.shared.layout import FIRST_LANE
from webfountain.store.shared.scripts import pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import ChangeVerdict, Move, PageRecord, SiteLease, State
    from webfountain.store.shared.change_log import ShardedChangeLog
    from webfountain.store.shared.lives import GuardedShards, ServerLives
    from webfountain.store.shared.sites import SharedSites

__all__ = ["SharedPages"]

_MOVE_BYTES: Final = 400
"""Memory in bytes that a moved copy takes in the repeat log."""
_AT_ONCE: Final = 1000
"""Number of pages that one script reads, evicts or forgets: few, because a running script blocks all others."""


_Place = tuple[int, float, bytes]
"""Lane, sort value and key of a page."""
_FIRST: Final[_Place] = (0, -math.inf, b"")


class SharedPages:
    """Implementation of `PageRecords` in the shared store."""

    def __init__(
        self, shards: GuardedShards, lives: ServerLives, *, sites: SharedSites, changes: ShardedChangeLog
    ) -> None:
        self._shards = shards
        self._lives = lives
        self._sites = sites
        self._changes = changes

    def get(self, site: str, key: bytes) -> PageRecord | None:
        """Return the record of one URL, in one round trip."""
        return self.get_many(site, [key])[0]

    def get_many(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """Return the records of URLs of one site, in one round trip per thousand pages."""
        found: list[PageRecord | None] = []
        for start in range(0, len(keys), _AT_ONCE):
            values = self._shards.step(site, "read", ["page", site, *keys[start : start + _AT_ONCE]])
            found += [None if value is None else decode_value(site, value) for value in values]
        return found

    def records(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """List the records, in one round trip per thousand pages."""
        return ((name, record) for name, _, record in self.keyed(site=site, state=state))

    def keyed(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, bytes, PageRecord]]:
        """List the records with their keys, in one round trip per thousand pages."""
        for name in self._sites.names() if site is None else [site]:
            for _, key, value in self.places(name):
                record = decode_value(name, value)
                if state is None or record.state == state:
                    yield name, key, record

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PageRecord], bytes]:
        """Return up to `n` pages of a site, queue by queue, in one round trip."""
        place = _FIRST if not cursor else _place_of(cursor)
        entries = self._shards.step(site, "read", ["places", site, *place, n])
        found = [decode_value(site, value) for _, _, _, value in entries if value is not None]
        behind = msgspec.msgpack.encode(_behind(entries[-1])) if len(entries) == n else b""
        return found, behind

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        """Return the first never-crawled URLs of a site, in one round trip, or more if crawled pages are immediate."""
        found: list[PageRecord] = []
        place: _Place | None = _FIRST
        while place is not None and len(found) < n:
            entries = self._shards.step(site, "read", ["places", site, *place, n])
            records = [decode_value(site, value) for *_, value in entries if value is not None]
            found += [each for each in records if each.state == "never-crawled"]
            ended = len(entries) < n or entries[-1][0] >= FIRST_LANE
            place = None if ended else _behind(entries[-1])
        return found[:n]

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page or a site permanently.

        Removing a page takes two round trips and a scan of its shard's log; a site takes two round trips per thousand
        pages. If the process dies during the call, the next call for the same pages completes the work.
        """
        removed, repairs = 0, -1
        while repairs != self._lives.repairs:  # a loss between the two steps may undo the first one
            repairs = self._lives.repairs
            removed = max(removed, self._forget_site(site, at) if key is None else self._forget_page(site, key, at))
            self._changes.erase(site, key)
        self._lives.repeat(partial(self.forget, site, key, at=at))
        return removed

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """Remove pages from the collection, in two round trips, or more if pages change in the meantime."""
        gone = 0
        while True:
            entries = []
            values = self._shards.step(lease.site, "read", ["page", lease.site, *keys]) if keys else []
            for key, value in zip(keys, values, strict=True):
                record = None if value is None else decode_value(lease.site, value)
                if record is not None and record.state != "never-crawled":
                    left = evicted(record)
                    body = encode_body(lease.site, left)
                    entry = _parting(record, "evicted", lease.site, key, at)
                    entries.append([key, value, never_lane(left.importance), left.first_seen, body, entry])
            answer = self._shards.step(lease.site, "evict", [lease.site, lease.token, *entries])
            if answer is None:
                return None
            gone += int(answer[0])
            if not answer[1]:
                return gone

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """Return how many pages have their newest copy in each WARC file, in one round trip."""
        homes: dict[int, int] = {}
        for fields in self._shards.ask("HGETALL", "copies"):
            for name, value in pairs(fields):
                where, file = name.split(b":")
                if int(where) == repository:
                    homes[int(file)] = homes.get(int(file), 0) + int(value)
        return homes

    def relocate(self, moves: Sequence[Move]) -> int:
        """Update the records of pages whose copies moved, in one round trip."""
        sent: dict[int, list[list[Any]]] = {}
        for move in moves:
            entry = [move.site, move.key, encode_copy(move.old), encode_copy(move.new)]
            sent.setdefault(self._shards.of(move.site), []).append(entry)
        followed: int = sum(self._shards.run("relocate", sent).values())
        if moves:
            self._lives.repeat(partial(self.relocate, moves), size=len(moves) * _MOVE_BYTES)
        return followed

    def places(self, site: str) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield (lane, key, value) of a site's pages, lane by lane, leased pages last."""
        place = _FIRST
        while True:
            entries = self._shards.step(site, "read", ["places", site, *place, _AT_ONCE])
            yield from ((lane, key, value) for lane, _, key, value in entries if value is not None)
            if len(entries) < _AT_ONCE:
                return
            place = _behind(entries[-1])

    def _forget_page(self, site: str, key: bytes, at: float) -> int:
        while True:
            [value] = self._shards.step(site, "read", ["page", site, key])
            removed, again, _ = self._shards.step(site, "forget", [site, False, _farewell(site, key, value, at)])
            if not again:
                return int(removed)

    def _forget_site(self, site: str, at: float) -> int:
        removed, _, is_done = self._shards.step(site, "forget", [site, True])
        while not is_done:
            places = self._shards.step(site, "read", ["places", site, 0, -math.inf, b"", _AT_ONCE])
            some = sorted(_farewell(site, key, value, at) for _, _, key, value in places)
            many, _, is_done = self._shards.step(site, "forget", [site, True, *some])
            removed += many
        return int(removed)


def _farewell(site: str, key: bytes, value: bytes | None, at: float) -> list[Any]:
    if value is None:
        return [key, False, False]
    return [key, value, _parting(decode_value(site, value), "forgotten", site, key, at)]


def _parting(record: PageRecord, verdict: ChangeVerdict, site: str, key: bytes, at: float) -> bytes | bool:
    """Return the encoded log entry of a removed page, or False for a page that was not held."""
    if not is_held(record):
        return False
    return encode_entry(parting(record, verdict, site=site, key=key, at=at, sequence=0))


def _behind(entry: Sequence[Any]) -> _Place:
    lane, order, key, _ = entry
    return lane, float(order), key


def _place_of(cursor: bytes) -> _Place:
    try:
        found: _Place = msgspec.msgpack.decode(cursor, type=_Place)
    except msgspec.DecodeError:
        raise InputError(f"{cursor!r} is not a cursor of a list of pages") from None
    return found
