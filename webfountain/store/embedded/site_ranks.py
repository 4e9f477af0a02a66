"""The index of the embedded store's sites by pages, failed pages and last change.

Each site has one index entry for each of the `site_orders`, and one entry with its values for all of them. This module
keeps the values of up to `KEPT` sites in memory.
"""

from __future__ import annotations

import heapq
import struct
from collections import OrderedDict
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.records import STATES
from webfountain.store.codec import from_sortable, to_sortable
from webfountain.store.embedded.keys import ACTIVE, DUE, RANK, RANKED, after
from webfountain.store.site_orders import rank_of_due, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.site_orders import SiteOrder

__all__ = ["KEPT", "RankedValues", "SiteRanks"]

KEPT: Final = 32_768
_FAILED: Final = STATES.index("failed")
_LETTERS: Final[dict[SiteOrder, bytes]] = {"pages": b"p", "failed": b"f", "changed": b"c"}
_values = struct.Struct(">IId")
_RANK_BYTES: Final = 8


class RankedValues(NamedTuple):
    """The values by which lists of sites are ordered."""

    pages: int
    failed: int
    changed: float

    def keys(self, site: bytes) -> set[bytes]:
        """Return the keys of the site's index entries."""
        ranks = ranks_of(pages=self.pages, failed=self.failed, changed=self.changed, due=0.0, is_active=False)
        return {RANK + letter + ranks[order] + site for order, letter in _LETTERS.items()}


class SiteRanks:
    """The index that lists the sites in each of the `site_orders`. `note` records changes, `stage` adds them to a
    step's batch, and `load` drops unwritten changes.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Drop all values in memory and all unwritten changes."""
        self._known: OrderedDict[str, RankedValues | None] = OrderedDict()
        self._changed: dict[str, float] = {}
        self._latest: dict[str, float] = {}

    def note(self, site: str, at: float) -> None:
        """Record the time of a site's newest entry in the change log."""
        self._changed[site] = max(self._changed.get(site, at), at)

    def set_back(self, site: str, at: float) -> None:
        """If the time of a site's last change is later than `at`, replace it by `at`."""
        values = self._values(site)
        if values is not None and values.changed > at:
            self._latest[site] = at

    def changed(self, value: bytes | None) -> float:
        """Decode the time of a site's last change from the site's value on disk."""
        return 0.0 if value is None else _values.unpack(value)[2]

    def stage(self, batch: WriteBatch, touched: Mapping[str, list[float]]) -> None:
        """Add the entries of changed sites to a step's batch. `touched` contains the rows of the changed sites, with
        their counts.
        """
        for site in touched.keys() | self._changed.keys() | self._latest.keys():
            before = self._values(site)
            row = touched.get(site)
            if row is not None:
                pages, failed = int(sum(row[: len(STATES)])), int(row[_FAILED])
            elif before is not None:
                pages, failed = before.pages, before.failed
            else:
                continue  # forgotten in this step, or unknown
            changed = max(0.0 if before is None else before.changed, self._changed.get(site, 0.0))
            changed = min(changed, self._latest.get(site, inf))
            self._put(batch, site, before, RankedValues(pages, failed, changed))
        self._changed, self._latest = {}, {}
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    def _put(self, batch: WriteBatch, site: str, before: RankedValues | None, now: RankedValues) -> None:
        if now == before:
            return
        name = site.encode()
        old, new = set() if before is None else before.keys(name), now.keys(name)
        for key in old - new:
            batch.delete(key)
        for key in new - old:
            batch.put(key, b"")
        batch.put(RANKED + name, _values.pack(*now))
        self._known[site] = now

    def drop(self, batch: WriteBatch, site: str) -> None:
        before, name = self._values(site), site.encode()
        for key in set() if before is None else before.keys(name):
            batch.delete(key)
        batch.delete(RANKED + name)
        self._known[site] = None
        self._changed.pop(site, None)

    def _values(self, site: str) -> RankedValues | None:
        known = self._known
        if site in known:
            known.move_to_end(site)
        else:
            value = self._disk.get(RANKED + site.encode())
            known[site] = None if value is None else RankedValues(*_values.unpack(value))
        return known[site]

    # ------------------------------------------------------------------ reading

    def places(self, order: SiteOrder, rank: bytes, name: str, n: int) -> list[tuple[bytes, str]]:
        """Return (rank, name) of the next `n` sites in one of the `site_orders`, by one or two scans of `n` entries."""
        found = self._by_due(rank, name) if order == "due" else self._by_rank(RANK + _LETTERS[order], rank, name)
        return list(islice(found, n))

    def _by_rank(self, prefix: bytes, rank: bytes, name: str) -> Iterator[tuple[bytes, str]]:
        start = prefix + rank + name.encode() + b"\x00" if rank else prefix
        for key, _ in self._disk.scan(start, after(prefix)):
            yield key[2 : 2 + _RANK_BYTES], key[2 + _RANK_BYTES :].decode()

    def _by_due(self, rank: bytes, name: str) -> Iterable[tuple[bytes, str]]:
        first = rank_of_due(0.0)
        active = self._active(name if rank else "") if rank in (b"", first) else iter(())
        due = 0.0 if not rank else struct.unpack(">d", rank)[0]
        start = DUE + to_sortable(due) + name.encode() + b"\x00" if rank else DUE
        waiting = (
            (rank_of_due(from_sortable(key[1:9])), key[9:].decode()) for key, _ in self._disk.scan(start, after(DUE))
        )
        return heapq.merge(active, waiting)

    def _active(self, name: str) -> Iterator[tuple[bytes, str]]:
        start = ACTIVE + name.encode() + b"\x00" if name else ACTIVE
        return ((rank_of_due(0.0), key[1:].decode()) for key, _ in self._disk.scan(start, after(ACTIVE)))
