"""Page records on disk: find them by key, list them by site, write and delete them with their queue entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.store.codec import decode_page, encode_page
from webfountain.store.embedded.keys import (
    BAR,
    IMMEDIATE_NEVER,
    NAME,
    NEVER,
    PAGE,
    after,
    arrival_of,
    is_record,
    lane_of,
    never_suffix,
    pack_links,
    pack_waiting,
    pointer,
    pointer_suffix,
    recrawl_key,
    site_id,
    waiting_record,
)
from webfountain.store.lanes import class_of, recrawl_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.records import Link, PageRecord, State
    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["PagePlace", "PageRows"]

_AT_ONCE: Final = 512


@dataclass(slots=True)
class PagePlace:
    """A page on disk: its record and its queue entry."""

    site: str
    key: bytes
    entry: bytes
    record: PageRecord


class PageRows:
    """The pages on disk. Methods that change a page add the writes to a batch."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def values(self, links: Sequence[Link], sids: dict[str, bytes]) -> list[tuple[bytes, bytes | None]]:
        """For each link, return the page key and the value stored under it, or None if the URL is unknown."""
        keys = [PAGE + sids[link.site] + link.key for link in links]
        return list(zip(keys, self._disk.get_many(keys), strict=True))

    def place(self, site: str, key: bytes) -> PagePlace | None:
        """Return one page, or None if the page is unknown."""
        return self.places(site, [key])[0]

    def places(self, site: str, keys: Sequence[bytes]) -> list[PagePlace | None]:
        """Return pages of one site, with None for unknown pages, by one or two multi-gets."""
        if not keys:
            return []
        sid = site_id(site)
        prefix = PAGE + sid
        values = self._disk.get_many([prefix + key for key in keys])
        return self._resolved(site, sid, list(zip(keys, values, strict=True)))

    def listed(self, site: str | None, state: State | None) -> Iterator[PagePlace]:
        """Yield all pages, or the pages of one site or in one state. The pages of a site are consecutive."""
        prefix = PAGE if site is None else PAGE + site_id(site)
        group: list[tuple[bytes, bytes | None]] = []
        sid = b""
        for key, value in self._disk.scan(prefix, after(prefix)):
            if key[1:9] != sid or len(group) == _AT_ONCE:
                yield from self._group(sid, group, state)
                sid, group = key[1:9], []
            group.append((key[9:], value))
        yield from self._group(sid, group, state)

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PagePlace], bytes]:
        """Return up to `n` pages of a site after a key, and the key of the last page (b"" at the end of the site)."""
        sid = site_id(site)
        prefix = PAGE + sid
        begin = prefix + cursor + b"\0" if cursor else prefix
        group: list[tuple[bytes, bytes | None]] = []
        group += ((key[9:], value) for key, value in islice(self._disk.scan(begin, after(prefix)), n))
        return list(self._group(sid, group, None)), group[-1][0] if len(group) == n else b""

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        """Return the records of the first `n` entries of a site's never-crawled queue, the immediate lane first."""
        prefix = NEVER + site_id(site)
        immediate = prefix + bytes([IMMEDIATE_NEVER])
        items = list(islice(self._disk.scan(immediate, after(prefix)), n))
        items += islice(self._disk.scan(prefix, immediate), n - len(items))
        return [waiting_record(site, entry, value)[1] for entry, value in items]

    def put_new(self, batch: WriteBatch, fresh: Mapping[bytes, Link], *, arrival: int, at: float) -> list[bytes]:
        """Write new pages with their queue entries; return the entries. `arrival` is the arrival number of the first
        page.
        """
        pointers, entries = pack_links(fresh, arrival=arrival, first_seen=at)
        put, before = batch.put, batch.size_in_bytes()
        # Sorted, because a memtable starts to search at the position of the last write.
        for key, value in (*sorted(pointers), *sorted(entries)):
            put(key, value)
        self._disk.expect_new(batch.size_in_bytes() - before)
        return [entry for entry, _ in entries]

    def put(
        self, batch: WriteBatch, site: str, key: bytes, record: PageRecord, *, arrival: int, before: bytes | None = None
    ) -> bytes:
        """Write the record of a page and its queue entry, which replaces the entry `before`; return the new entry.
        `arrival` is the arrival number of a never-crawled page.
        """
        sid = site_id(site)
        if record.state == "never-crawled":
            lane = class_of(record.importance) if record.immediate is None else IMMEDIATE_NEVER
            suffix = never_suffix(lane, arrival)
            entry, value, waiting = NEVER + sid + suffix, pointer(suffix), pack_waiting(site, key, record)
        else:
            entry, value, waiting = recrawl_key(sid, *recrawl_place(record), key), encode_page(record), b""
        if before is not None and before != entry:
            batch.delete(before)
        if before != entry or waiting:
            batch.put(entry, waiting)
        batch.put(PAGE + sid + key, value)
        return entry

    def regrade(
        self, batch: WriteBatch, site: str, places: Sequence[PagePlace], importances: Sequence[float]
    ) -> list[bytes]:
        """Move waiting pages to the lanes of their new importances; return the new queue entries, in ascending order.

        A page that stays in its lane is not written.
        """
        prefix = NEVER + site_id(site)
        pages = PAGE + prefix[1:]
        pointers: list[tuple[bytes, bytes]] = []
        entries: list[tuple[bytes, bytes]] = []
        for place, importance in zip(places, importances, strict=True):
            lane = class_of(importance)
            if lane != lane_of(place.entry):
                suffix = never_suffix(lane, arrival_of(place.entry))
                record = msgspec.structs.replace(place.record, importance=importance)
                pointers.append((pages + place.key, pointer(suffix)))
                entries.append((prefix + suffix, pack_waiting(site, place.key, record)))
                batch.delete(place.entry)
        put = batch.put
        entries.sort()
        for key, value in (*entries, *sorted(pointers)):  # sorted, see `put_new`
            put(key, value)
        return [entry for entry, _ in entries]

    def remove(self, batch: WriteBatch, place: PagePlace) -> None:
        """Delete a page and its queue entry."""
        batch.delete(place.entry)
        batch.delete(PAGE + site_id(place.site) + place.key)

    def bar(self, batch: WriteBatch, site: str, key: bytes) -> None:
        """Refuse all further links to a page, even if its site is unknown."""
        batch.put(PAGE + site_id(site) + key, BAR + site.encode())

    def _group(self, sid: bytes, group: list[tuple[bytes, bytes | None]], state: State | None) -> Iterator[PagePlace]:
        name = self._disk.get(NAME + sid) if group else None
        if name is None:
            return
        wanted = [item for item in group if state is None or is_record(item[1]) == (state != "never-crawled")]
        for place in self._resolved(name.decode(), sid, wanted):
            if place is not None and (state is None or place.record.state == state):
                yield place

    def _resolved(self, site: str, sid: bytes, found: list[tuple[bytes, bytes | None]]) -> list[PagePlace | None]:
        """Decode (key, value) pairs into pages. A value is a record, a pointer to a queue entry, or None."""
        suffixes = [pointer_suffix(value) for _, value in found]
        entries = [NEVER + sid + suffix for suffix in suffixes if suffix is not None]
        waiting = iter(zip(entries, self._disk.get_many(entries) if entries else [], strict=True))
        places: list[PagePlace | None] = []
        for (key, value), suffix in zip(found, suffixes, strict=True):
            if suffix is not None:
                places.append(_waiting_place(site, *next(waiting)))
            elif value is not None and is_record(value):
                record = decode_page(value)
                places.append(PagePlace(site, key, recrawl_key(sid, *recrawl_place(record), key), record))
            else:
                places.append(None)
        return places


def _waiting_place(site: str, entry: bytes, value: bytes | None) -> PagePlace | None:
    """Return a never-crawled page from its queue entry, or None if the entry no longer exists."""
    if value is None:
        return None
    key, record = waiting_record(site, entry, value)
    return PagePlace(site, key, entry, record)
