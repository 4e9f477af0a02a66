"""Compute a shared store's counts again: pages by state, bucket and WARC file, of each site and of each shard.

Place in the walk: ``check --repair``, while no process crawls. One script counts a site. The counts of a shard are
written after all its sites, so an interrupted pass must start from the beginning. It neither moves nor repairs pages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webfountain.records import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.scripts import Shards

__all__ = ["recount_shards"]

_AT_ONCE: Final = 100
_COUNTED: Final = (*(f"state{number}" for number in range(len(STATES))), "sites", "active", "leased", "immediate")


def recount_shards(connection: ServerConnection, shards: Shards) -> None:
    """Compute the counts of all shards again. One round trip per site."""
    for shard in range(shards.count):
        counts = _Counts()
        after = ""
        while found := shards.run("read", {shard: ["after", after, _AT_ONCE]})[shard]:
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
    for answer in connection.send(sent):
        connection.checked(answer)
