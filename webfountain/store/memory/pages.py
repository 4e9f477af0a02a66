"""The page records of the reference store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.store.codec import evicted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import Move, PageRecord, SiteLease, State
    from webfountain.store.memory.change_log import MemoryChangeLog
    from webfountain.store.memory.site import MemorySite
    from webfountain.store.memory.sites import MemorySites

__all__ = ["MemoryPages"]


class MemoryPages:
    """Implementation of `PageRecords` in the reference store."""

    def __init__(self, sites: MemorySites, changes: MemoryChangeLog) -> None:
        self._sites = sites
        self._changes = changes

    def get(self, site: str, key: bytes) -> PageRecord | None:
        home = self._sites.get(site)
        return None if home is None else home.pages.get(key)

    def get_many(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        return [self.get(site, key) for key in keys]

    def records(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        return ((name, record) for name, _, record in self.keyed(site=site, state=state))

    def keyed(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, bytes, PageRecord]]:
        for home in self._sites.named(site):
            for key, record in list(home.pages.items()):
                if state is None or record.state == state:
                    yield home.name, key, record

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PageRecord], bytes]:
        home = self._sites.get(site)
        keys = [] if home is None else sorted(key for key in home.pages if key > cursor)[: n + 1]
        found = [] if home is None else [home.pages[key] for key in keys[:n]]
        return found, keys[n - 1] if len(keys) > n else b""

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        home = self._sites.get(site)
        return [] if home is None else [home.pages[key] for key in home.never_crawled()[:n]]

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        home = self._sites.get(site)
        known = home.pages if home is not None else {}
        keys = sorted(known) if key is None else [key for key in [key] if key in known]
        for each in keys:
            self._changes.erase(site, each)
            self._changes.note_parting(known[each], "forgotten", site=site, key=each, at=at)
            self._sites[site].remove(each)
        if key is not None:
            self._sites.barred_pages.add((site, key))
        else:
            self._sites.barred_sites.add(site)
            self._sites.remove(site)
        return len(keys)

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        home = self._sites.held(lease)
        return None if home is None else sum(self._evict_one(home, key, at) for key in keys)

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        homes: dict[int, int] = {}
        for _, record in self.records():
            if record.copy is not None and record.copy.repository == repository:
                homes[record.copy.file] = homes.get(record.copy.file, 0) + 1
        return homes

    def relocate(self, moves: Sequence[Move]) -> int:
        followed = 0
        for move in moves:
            record = self.get(move.site, move.key)
            if record is not None and record.copy == move.old:
                self._sites[move.site].replace(move.key, msgspec.structs.replace(record, copy=move.new))
                followed += 1
        return followed

    def _evict_one(self, home: MemorySite, key: bytes, at: float) -> bool:
        record = home.pages.get(key)
        if record is None or record.state == "never-crawled" or home.is_leased(key):
            return False
        self._changes.note_parting(record, "evicted", site=home.name, key=key, at=at)
        home.remove(key)
        home.add(key, evicted(record), self._sites.next_arrival())
        return True
