"""The embedded store's page records: found by key, listed by site, put and removed together with their queue entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webfountain.store.codec import decode_page, encode_page
from webfountain.store.contract import class_of, lane_of, order_of
from webfountain.store.embedded.keys import (
    BAR,
    IMMEDIATE_NEVER,
    NAME,
    NEVER,
    PAGE,
    after,
    is_record,
    never_suffix,
    pack_waiting,
    pointer,
    pointer_suffix,
    recrawl_key,
    site_id,
    waiting_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.records import Link, PageRecord, State
    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["Pages", "Place"]

_AT_ONCE: Final = 512


@dataclass(slots=True)
class Place:
    """A page as it stands on disk: its record and its queue entry."""

    site: str
    key: bytes
    entry: bytes
    record: PageRecord


class Pages:
    """Reads from the disk, writes into a batch; knows no lease and no count."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def values(self, links: Sequence[Link], sids: dict[str, bytes]) -> list[tuple[bytes, bytes | None]]:
        """For each link its page key and what the store has under it; None: unknown."""
        keys = [PAGE + sids[link.site] + link.key for link in links]
        return list(zip(keys, self._disk.get_many(keys), strict=True))

    def place(self, site: str, key: bytes) -> Place | None:
        """One page, None when there is none."""
        return self.places(site, [key])[0]

    def places(self, site: str, keys: Sequence[bytes]) -> list[Place | None]:
        """Pages of one site, None where there is none. One multi-get, and one for those never crawled."""
        if not keys:
            return []
        sid = site_id(site)
        prefix = PAGE + sid
        values = self._disk.get_many([prefix + key for key in keys])
        return self._resolved(site, sid, list(zip(keys, values, strict=True)))

    def listed(self, site: str | None, state: State | None) -> Iterator[Place]:
        """Every page, or a site's, or those in one state; sites together, a few hundred read at once."""
        prefix = PAGE if site is None else PAGE + site_id(site)
        group: list[tuple[bytes, bytes | None]] = []
        sid = b""
        for key, value in self._disk.scan(prefix, after(prefix)):
            if key[1:9] != sid or len(group) == _AT_ONCE:
                yield from self._group(sid, group, state)
                sid, group = key[1:9], []
            group.append((key[9:], value))
        yield from self._group(sid, group, state)

    def put_new(self, batch: WriteBatch, fresh: Mapping[bytes, Link], *, arrival: int, at: float) -> list[bytes]:
        """Write never-seen pages, by page key, and their queue entries, which are returned; `arrival` is the first's.

        In the order of the keys: a memtable looks for a key's place from where it put the last one.
        """
        pointers: list[tuple[bytes, bytes]] = []
        entries: list[tuple[bytes, bytes]] = []
        for number, (page_key, link) in enumerate(fresh.items(), arrival):
            suffix = never_suffix(class_of(link.importance), number)
            pointers.append((page_key, pointer(suffix)))
            entries.append((NEVER + page_key[1:9] + suffix, pack_waiting(link.site, link.key, link, at)))
        put = batch.put
        for key, value in (*sorted(pointers), *sorted(entries)):
            put(key, value)
        return [entry for entry, _ in entries]

    def replace(self, batch: WriteBatch, place: Place, record: PageRecord) -> bytes:
        """Write the new record of a page that was tried and move its queue entry, which is returned."""
        sid = site_id(place.site)
        entry = recrawl_key(sid, lane_of(record), order_of(record), place.key)
        if entry != place.entry:
            batch.delete(place.entry)
            batch.put(entry, b"")
        batch.put(PAGE + sid + place.key, encode_page(record))
        return entry

    def replace_waiting(self, batch: WriteBatch, place: Place, record: PageRecord, arrival: int) -> bytes:
        """Write the new record of a never-crawled page and move its entry, which is returned, to the turn `arrival`."""
        sid = site_id(place.site)
        lane = class_of(record.importance) if record.immediate is None else IMMEDIATE_NEVER
        suffix = never_suffix(lane, arrival)
        batch.delete(place.entry)
        batch.put(NEVER + sid + suffix, pack_waiting(place.site, place.key, record, record.first_seen))
        batch.put(PAGE + sid + place.key, pointer(suffix))
        return NEVER + sid + suffix

    def remove(self, batch: WriteBatch, place: Place) -> None:
        """Take a page and its queue entry away."""
        batch.delete(place.entry)
        batch.delete(PAGE + site_id(place.site) + place.key)

    def bar(self, batch: WriteBatch, site: str, key: bytes) -> None:
        """Refuse links to a page from now on."""
        batch.put(PAGE + site_id(site) + key, BAR)

    def _group(self, sid: bytes, group: list[tuple[bytes, bytes | None]], state: State | None) -> Iterator[Place]:
        name = self._disk.get(NAME + sid) if group else None
        if name is None:
            return
        wanted = [item for item in group if state is None or is_record(item[1]) == (state != "never-crawled")]
        for place in self._resolved(name.decode(), sid, wanted):
            if place is not None and (state is None or place.record.state == state):
                yield place

    def _resolved(self, site: str, sid: bytes, found: list[tuple[bytes, bytes | None]]) -> list[Place | None]:
        """Places from page keys' values: records as they are, pointers through their queue entries."""
        suffixes = [pointer_suffix(value) for _, value in found]
        entries = [NEVER + sid + suffix for suffix in suffixes if suffix is not None]
        waiting = iter(zip(entries, self._disk.get_many(entries) if entries else [], strict=True))
        places: list[Place | None] = []
        for (key, value), suffix in zip(found, suffixes, strict=True):
            if suffix is not None:
                places.append(_waiting_place(site, *next(waiting)))
            elif value is not None and is_record(value):
                record = decode_page(value)
                places.append(Place(site, key, recrawl_key(sid, lane_of(record), order_of(record), key), record))
            else:
                places.append(None)
        return places


def _waiting_place(site: str, entry: bytes, value: bytes | None) -> Place | None:
    """None when the entry was settled between the two reads of a listing."""
    if value is None:
        return None
    key, record = waiting_record(site, entry, value)
    return Place(site, key, entry, record)
