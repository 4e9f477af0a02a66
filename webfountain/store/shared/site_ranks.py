"""The sites of a shared store in several orders: each shard keeps its own, and a list merges them.

Place in the walk: readers list sites; a crawl that opens a store of an older version adds all its sites to the orders
once.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.store.shared.scripts import Shards

__all__ = ["SharedRanks", "rank_sites"]

_RANK_BYTES: Final = 8
_NO_RANK: Final = bytes(_RANK_BYTES)
_SPARE: Final = 4
"""Number of sites requested from each shard in addition to its share, because shares are uneven."""
_AT_ONCE: Final = 100
_RANKED: Final = b"\0ranked"
"""Member that marks a shard whose sites are all in the orders. It sorts before those of sites."""
_Command = tuple[bytes, tuple[Any, ...]]


class SharedRanks:
    """Reads the orders of all shards."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def first(self, letter: str, rank: bytes, name: str, n: int) -> list[tuple[bytes, str]]:
        """Return rank and name of the next `n` sites after a position. One round trip, two if they are in few shards.

        `letter` names the order; "" is the order of name.
        """
        count = self._shards.count
        share = min(n, 2 * n // count + _SPARE)
        found = self._read(letter, rank, name, dict.fromkeys(range(count), share))
        last = sorted(chain.from_iterable(found.values()))[:n][-1:] or [b""]
        is_short = sum(map(len, found.values())) < n
        # A shard that returned as many as were requested may have more of the first n.
        more = {s: n for s, some in found.items() if len(some) == share < n and (is_short or some[-1] < last[0])}
        found |= self._read(letter, rank, name, more)
        members = sorted(chain.from_iterable(found.values()))[:n]
        if not letter:
            return [(_NO_RANK, member.decode()) for member in members]
        return [(member[1 : 1 + _RANK_BYTES], member[1 + _RANK_BYTES :].decode()) for member in members]

    def are_complete(self) -> bool:
        """Return whether all sites are in all orders. One round trip."""
        return not _unranked(self._shards)

    def _read(self, letter: str, rank: bytes, name: str, limits: dict[int, int]) -> dict[int, list[bytes]]:
        if letter:
            prefix = letter.encode()
            begin = b"(" + prefix + rank + name.encode() if rank else b"[" + prefix
            bounds, key = (begin, b"(" + bytes([prefix[0] + 1])), "ranks"
        else:
            bounds, key = (b"(" + name.encode() if name else b"-", b"+"), "names"
        asked = {s: (self._shards.key(s, key), limit) for s, limit in limits.items()}
        sent: list[_Command] = [(of, ("ZRANGEBYLEX", of, *bounds, "LIMIT", 0, limit)) for of, limit in asked.values()]
        return dict(zip(asked, self._shards.answers(sent), strict=True))


def rank_sites(shards: Shards, newest: Callable[[], Mapping[str, float]]) -> None:
    """Add every site to all orders, if an older version left a shard without them.

    `newest` returns the time of each site's newest entry in the change log. One round trip if there is nothing to do,
    else two more per hundred sites of each shard.
    """
    begin = dict.fromkeys(_unranked(shards), b"-")
    times = newest() if begin else {}
    while begin:
        keys = {shard: shards.key(shard, "names") for shard in begin}
        sent: list[_Command] = [
            (key, ("ZRANGEBYLEX", key, begin[shard], "+", "LIMIT", 0, _AT_ONCE)) for shard, key in keys.items()
        ]
        found = dict(zip(keys, shards.answers(sent), strict=True))
        shards.run("rank", {shard: _with_times(names, times) for shard, names in found.items() if names})
        ended = [shards.key(shard, "ranks") for shard, names in found.items() if len(names) < _AT_ONCE]
        shards.answers([(key, ("ZADD", key, 0, _RANKED)) for key in ended])
        begin = {shard: b"(" + names[-1] for shard, names in found.items() if len(names) == _AT_ONCE}


def _unranked(shards: Shards) -> list[int]:
    """Return the shards whose sites are in no order, because an older version wrote them."""
    return [shard for shard, score in enumerate(shards.read("ZSCORE", "ranks", _RANKED)) if score is None]


def _with_times(names: Sequence[bytes], newest: Mapping[str, float]) -> list[list[Any]]:
    return [[name.decode(), newest.get(name.decode(), 0.0)] for name in names]
