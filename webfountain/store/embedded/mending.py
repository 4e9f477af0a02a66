"""What is made anew over a whole embedded store: its counts, and times that lie ahead because the clock was.

Each is a pass over all sites and pages in batches, for a store that nobody else writes; a pass that was killed is
begun again by the next call.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES
from webfountain.store.codec import decode_page, decode_state, encode_page, encode_state
from webfountain.store.contract import PLAN, lane_of, order_of
from webfountain.store.counting import period_of
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.keys import (
    BUCKET,
    CLOCK,
    COPY,
    PAGE,
    STATE,
    VALUE,
    after,
    is_record,
    pack_time,
    recrawl_key,
    site_id,
    unpack_time,
)
from webfountain.store.embedded.pages import Pages
from webfountain.store.embedded.sites import IMMEDIATE_AT, Sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import PageRecord, SiteState
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.sites import SiteRow

__all__ = ["TOLERANCE_S", "latest", "read_every_entry", "recount", "set_back"]

TOLERANCE_S: Final = 60.0
"""A clock may differ by so much between two runs without a word."""
_AT_ONCE: Final = 1000


def read_every_entry(disk: Disk) -> int:
    """Read all of a store; how many entries it has. StoreError at the first damaged block."""
    return sum(1 for _ in disk.scan(b"\x00", b"\xff"))


def latest(disk: Disk) -> float | None:
    """The time of the last step that told one; None before the first."""
    value = disk.get(CLOCK)
    return None if value is None else unpack_time(value)


def set_back(disk: Disk, at: float, *, period_s: float) -> float:
    """Let no time of the past lie after `at`: those of a run whose clock was ahead are taken for `at`.

    What such a run put off is put off from now on; the plan and the census of periods to come go. Returns how many
    seconds the clock was ahead; 0.0: it was not, and nothing was read.
    """
    was = latest(disk)
    ahead = 0.0 if was is None else was - at
    if ahead <= TOLERANCE_S:
        return 0.0
    _set_back_sites(disk, at, ahead)
    _set_back_pages(disk, at, ahead)
    batch = WriteBatch(raw_mode=True)
    Counts(disk).drop_rows(batch, since=period_of(at, period_s) + 1)
    batch.delete(VALUE + PLAN.encode())
    batch.put(CLOCK, pack_time(at))  # last: until then the next opening begins again
    disk.write(batch)
    return ahead


def recount(disk: Disk) -> None:
    """Count pages by state, site, bucket and WARC file anew."""
    sites, pages, counts = Sites(disk), Pages(disk), Counts(disk)
    counts.clear()
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(BUCKET, after(BUCKET))
    batch.delete_range(COPY, after(COPY))
    disk.write(batch)
    for found in _in_groups(sites):
        batch = WriteBatch(raw_mode=True)
        for name, row in found:
            row[: len(STATES)] = [0] * len(STATES)
            row[IMMEDIATE_AT] = 0
            counts.sites += 1
            for place in pages.listed(name, None):
                counts.add(row, place.record)
            sites.touch(name, row)
        sites.stage(batch)
        counts.stage(batch)
        disk.write(batch)


def _in_groups(sites: Sites) -> Iterator[list[tuple[str, SiteRow]]]:
    """All sites with their rows, some at a time."""
    name = ""
    while found := sites.after(name, _AT_ONCE):
        name = found[-1].site
        yield [(record.site, row) for record in found if (row := sites.row(record.site))]


def _set_back_sites(disk: Disk, at: float, ahead: float) -> None:
    sites = Sites(disk)
    for found in _in_groups(sites):
        batch = WriteBatch(raw_mode=True)
        for name, row in found:
            sites.set_back(batch, name, row, at=at, ahead=ahead)
            value = disk.get(STATE + site_id(name))
            if value is not None:
                batch.put(STATE + site_id(name), encode_state(_earlier_state(decode_state(value), at, ahead)))
        sites.stage(batch)
        disk.write(batch)


def _set_back_pages(disk: Disk, at: float, ahead: float) -> None:
    counts = Counts(disk)
    ignored = [0.0] * (len(STATES) + 4)  # how many pages a site has does not change
    start = PAGE
    while found := list(islice(disk.scan(start, after(PAGE)), _AT_ONCE)):
        batch = WriteBatch(raw_mode=True)
        for key, value in found:
            if not is_record(value):
                continue
            record = decode_page(value)
            earlier = _earlier_record(record, at, ahead)
            if earlier != record:
                counts.remove(ignored, record)
                counts.add(ignored, earlier)
                batch.delete(recrawl_key(key[1:9], lane_of(record), order_of(record), key[9:]))
                batch.put(recrawl_key(key[1:9], lane_of(earlier), order_of(earlier), key[9:]), b"")
                batch.put(key, encode_page(earlier))
        counts.stage(batch)
        disk.write(batch)
        start = found[-1][0] + b"\x00"


def _earlier_record(record: PageRecord, at: float, ahead: float) -> PageRecord:
    """What happened after `at` happened then; a next try that was put off by then is due so much sooner."""
    put_off = record.due is not None and record.due > at
    return msgspec.structs.replace(
        record,
        first_seen=min(record.first_seen, at),
        last_crawled=_at_most(record.last_crawled, at),
        last_changed=_at_most(record.last_changed, at),
        copied=_at_most(record.copied, at),
        due=max(at, (record.due or 0.0) - ahead) if put_off else record.due,
    )


def _earlier_state(state: SiteState, at: float, ahead: float) -> SiteState:
    return msgspec.structs.replace(
        state,
        next_at=max(at, state.next_at - ahead) if state.next_at > at else state.next_at,
        robots_at=_at_most(state.robots_at, at),
        sitemaps=tuple((url, min(read, at)) for url, read in state.sitemaps),
    )


def _at_most(time: float | None, at: float) -> float | None:
    return None if time is None else min(time, at)
