"""Passes over the shards of a shared store: revise their pages, count them again.

In a revision, each page is replaced only if its value is still the one that was read. The position of the pass is
stored in the shard and written with the pages. Counts are computed for ``check --repair``, while no process crawls.
One script counts a site. The counts of a shard are written after all its sites, so an interrupted pass must start from
the beginning. It neither moves nor repairs pages.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import StoreHeld
from webfountain.records import STATES
from webfountain.store.codec import encode_state
from webfountain.store.shared.codec import arrival_of, decode_value, encode_value
from webfountain.store.shared.sites import site_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.records import PageRecord, SiteRecord
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.scripts import Shards

__all__ = ["RevisedShard", "recount_shards"]

_PROGRESS: Final = "\0units"
"""The field in a shard's sites that contains the position of the pass."""
_PAGES_AT_ONCE: Final = 2000

_SITES_AT_ONCE: Final = 100
_COUNTED: Final = (*(f"state{number}" for number in range(len(STATES))), "sites", "active", "leased", "immediate")


class RevisedShard:
    """`Revisable` on a server. `change` names the pass; `prolong` keeps its lock, or raises StoreHeld."""

    def __init__(
        self, connection: ServerConnection, shards: Shards, shard: int, *, change: str, prolong: Callable[[], None]
    ) -> None:
        self._shown = connection.shown
        self._shards = shards
        self._shard = shard
        self._change = change.encode()
        self._prolong = prolong
        key = shards.key(shard, "sites")
        self._come_to: bytes = connection.ask(key, "HGET", key, _PROGRESS) or b""
        self._sorted: tuple[str, list[bytes]] = ("", [])

    @property
    def place(self) -> tuple[str, bytes]:
        """The position in the shard at which a killed pass of this change ended."""
        change, _, place = self._come_to.partition(b"\0")
        site, _, key = place.partition(b"\0") if change == self._change else (b"", b"", b"")
        return site.decode(), key

    def get(self, site: str) -> SiteRecord | None:
        """Return a site. One round trip."""
        [answer] = self._ask("read", ["sites", site])
        return None if answer is None else site_record(answer)

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return sites in order of name. One round trip."""
        return [site_record(each) for each in self._ask("read", ["after", name, n])]

    def keys(self, site: str, after: bytes, n: int) -> list[bytes]:
        """Return page keys in order. The tree of a site has another order, so all keys are read at the first call for
        a site."""
        if self._sorted[0] != site:
            self._sorted = site, sorted(self._keys(site))
        start = bisect_right(self._sorted[1], after) if after else 0
        return self._sorted[1][start : start + n]

    def move(self, site: SiteRecord) -> None:
        """Replace the times in a site's record. One round trip."""
        times = [float(site.first_seen), float(site.due), encode_state(site.state), site.learned, site.changed]
        self._step(site.site, b"", times, [])

    def replace(self, site: str, keys: Sequence[bytes], rule: Callable[[PageRecord], PageRecord]) -> None:
        """Replace pages. Two round trips, more if others changed a page between them."""
        left = keys
        while left:
            entries = []
            for key, value in zip(left, self._ask("read", ["page", site, *left]), strict=True):
                if value is not None:
                    before = decode_value(site, value)
                    after = rule(before)
                    if after != before:
                        entries.append([key, value, encode_value(site, after, arrival_of(value))[1]])
            left = self._step(site, keys[-1], False, entries) if entries else []
        self._prolong()

    def _step(self, site: str, key: bytes, times: list[Any] | bool, entries: list[list[bytes]]) -> list[bytes]:
        """Write one batch. Return the keys whose values changed between reading and writing."""
        place = b"\0".join((self._change, site.encode(), key))
        others = self._ask("revise", [site, self._come_to, place, times, *entries])
        if others is None:
            raise StoreHeld(f"{self._shown}: another process changes the store; try again")
        self._come_to = place
        return list(others)

    def _keys(self, name: str) -> Iterator[bytes]:
        lane, order, key = 0, -math.inf, b""
        while entries := self._ask("read", ["places", name, lane, order, key, _PAGES_AT_ONCE]):
            yield from (each[2] for each in entries)
            lane, order, key = entries[-1][0], float(entries[-1][1]), entries[-1][2]

    def _ask(self, step: str, arguments: list[Any]) -> Any:
        return self._shards.run(step, {self._shard: arguments})[self._shard]


def recount_shards(connection: ServerConnection, shards: Shards) -> None:
    """Compute the counts of all shards again. One round trip per site."""
    for shard in range(shards.count):
        counts = _Counts()
        after = ""
        while found := shards.run("read", {shard: ["after", after, _SITES_AT_ONCE]})[shard]:
            for answer in found:
                after = answer[0].decode()
                counted = shards.run("recount", {shard: [after]})[shard]
                if counted is not None:
                    counts.add(counted)
        _write(connection, shards, shard, counts)


class _Counts:
    """The sums over the sites of a shard."""

    def __init__(self) -> None:
        self.counts = Counter(dict.fromkeys(_COUNTED, 0))
        self.buckets: Counter[str] = Counter()
        self.copies: Counter[bytes] = Counter()

    def add(self, counted: Sequence[Any]) -> None:
        """Add a site, from the answer of `lua/recount.lua`."""
        is_active, leased, waiting, by_state, by_bucket, by_file = counted
        self.counts.update({"sites": 1, "active": is_active, "leased": leased, "immediate": waiting})
        self.counts.update({f"state{number}": many for number, many in enumerate(by_state)})
        for bucket, pages, seconds, milliseconds in zip(*[iter(by_bucket)] * 4, strict=True):
            self.buckets[f"{bucket}p"] += pages
            self.buckets[f"{bucket}s"] += 1000 * int(float(seconds)) + int(float(milliseconds))
        for name, many in zip(by_file[::2], by_file[1::2], strict=True):
            self.copies[name] += many


def _write(connection: ServerConnection, shards: Shards, shard: int, counts: _Counts) -> None:
    sent: list[tuple[bytes, tuple[Any, ...]]] = []
    key = shards.key(shard, "counts")
    sent.append((key, ("HSET", key, *(each for pair in counts.counts.items() for each in pair))))
    for name, found in (("buckets", counts.buckets), ("copies", counts.copies)):
        key = shards.key(shard, name)
        sent.append((key, ("UNLINK", key)))
        if found:
            sent.append((key, ("HSET", key, *(each for pair in found.items() for each in pair))))
    connection.ask_all(sent)
