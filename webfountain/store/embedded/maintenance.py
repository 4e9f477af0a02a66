"""Passes over a whole embedded store: conversion to other units, correction of times, and recount.

No other process may write to the store during a conversion, correction or recount. If the process is killed, the next
process that opens the store completes the conversion or correction. An interrupted recount starts from the beginning.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES
from webfountain.store.census_counting import period_of
from webfountain.store.contract import PLAN
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.keys import (
    BUCKET,
    CLOCK,
    COPY,
    META,
    PAGE,
    ROW,
    VALUE,
    arrival_of,
    pack_time,
    site_id,
    unpack_time,
)
from webfountain.store.embedded.keys import after as keys_after
from webfountain.store.embedded.page_rows import PageRows
from webfountain.store.embedded.site_rows import IMMEDIATE_AT, SiteRows
from webfountain.store.lanes import AT_ONCE
from webfountain.store.revision import ClockCorrection, UnitConversion, revise, seconds_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import PageRecord, SiteRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.keys import Meta
    from webfountain.store.embedded.steps import Steps
    from webfountain.store.revision import Revision

__all__ = ["in_units_and_time", "latest", "put_meta", "recount", "recover"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 2000
"""Number of entries that one batch writes."""


def latest(disk: Disk) -> float | None:
    """Return the time of the latest write to the store, in whole seconds, or None if nothing was written."""
    value = disk.get(CLOCK)
    return None if value is None else float(int(unpack_time(value)))


def put_meta(disk: Disk, meta: Meta, batch: WriteBatch) -> None:
    """Write a batch together with the description of the store."""
    batch.put(META, msgspec.msgpack.encode(meta))
    disk.write(batch)


def recover(disk: Disk) -> None:
    """Make sites due again if a killed process left them active."""
    sites, batch = SiteRows(disk), WriteBatch(raw_mode=True)
    for site in sites.active_on_disk():
        row = sites.row(site)
        assert row, f"{site} is active and has no row"
        sites.sleep(batch, site, row, AT_ONCE if row[IMMEDIATE_AT] else sites.due_of(row))
    sites.stage(batch)
    disk.write(batch)


def in_units_and_time(disk: Disk, meta: Meta, *, period_s: float, fastest_s: float, at: float | None) -> Meta:
    """If needed, convert the store to other units, and correct times after `at`.

    A conversion deletes the census rows and the plan, because they are in the old units. An interrupted conversion or
    correction is completed first.
    """
    meta = _carried_out(disk, meta)
    changed = msgspec.structs.replace(meta, period_s=period_s, fastest_s=fastest_s)
    if changed != meta:
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(ROW, keys_after(ROW))
        batch.delete(VALUE + PLAN.encode())
        if meta.fastest_s != fastest_s:
            changed = msgspec.structs.replace(changed, unit=meta.fastest_s)
        put_meta(disk, changed, batch)
        meta = _carried_out(disk, changed)
    if at is not None and (ahead := seconds_ahead(latest(disk), at)):
        meta = msgspec.structs.replace(meta, correction=(at, ahead))
        put_meta(disk, meta, WriteBatch(raw_mode=True))
        meta = _carried_out(disk, meta)
    return meta


def _carried_out(disk: Disk, meta: Meta) -> Meta:
    """If a store's description names an interrupted conversion or correction, complete it."""
    batch = WriteBatch(raw_mode=True)
    if meta.unit is not None:
        logger.info(
            "The buckets are converted: the interval of bucket 0 is now %g s instead of %g s",
            meta.fastest_s,
            meta.unit,
        )
        _revise(disk, meta, UnitConversion(meta.unit, meta.fastest_s))
    elif meta.correction is not None:
        correction = ClockCorrection(*meta.correction)
        _revise(disk, meta, correction)
        for name in correction.values:
            batch.delete(VALUE + name.encode())
        Counts(disk).drop_rows(batch, since=period_of(correction.at, meta.period_s) + 1)
        batch.put(CLOCK, pack_time(correction.at))
        logger.warning(
            "%s: the clock was %.0f s ahead when the store was last written; all times in the future are corrected",
            disk.folder,
            correction.ahead,
        )
    else:
        return meta
    meta = msgspec.structs.replace(meta, unit=None, correction=None, come_to=PAGE)
    put_meta(disk, meta, batch)
    return meta


def _revise(disk: Disk, meta: Meta, revision: Revision) -> None:
    pages = RevisedDisk(disk, meta)
    revise(pages, revision)
    pages.write()


class RevisedDisk:
    """Implementation of `Revisable` for an embedded store. Each batch of changes is written together with the position
    that the conversion or correction has reached."""

    def __init__(self, disk: Disk, meta: Meta) -> None:
        self._disk = disk
        self._meta = meta
        self._sites, self._pages, self._counts = SiteRows(disk), PageRows(disk), Counts(disk)
        self._batch, self._entries = WriteBatch(raw_mode=True), 0

    @property
    def place(self) -> tuple[str, bytes]:
        """The position at which an earlier conversion or correction was interrupted, or ("", b"") at the start."""
        if self._meta.come_to.startswith(PAGE):
            return "", b""
        site, _, key = self._meta.come_to.partition(b"\0")
        return site.decode(), key

    def get(self, site: str) -> SiteRecord | None:
        row = self._sites.row(site)
        return self._sites.record(site, row) if row else None

    def after(self, name: str, n: int) -> list[SiteRecord]:
        return self._sites.after(name, n)

    def keys(self, site: str, after: bytes, n: int) -> list[bytes]:
        """Return page keys in order, by one scan."""
        prefix = PAGE + site_id(site)
        begin = prefix + after + b"\0" if after else prefix
        return [key[len(prefix) :] for key, _ in islice(self._disk.scan(begin, keys_after(prefix)), n)]

    def move(self, site: SiteRecord) -> None:
        row = self._sites.row(site.site)
        assert row, f"{site.site} has no row"
        self._sites.revise(self._batch, row, site)
        self._note(site.site, b"", 1)

    def replace(self, site: str, keys: Sequence[bytes], rule: Callable[[PageRecord], PageRecord]) -> None:
        """Replace pages, by one multi-get, or two if some pages are never-crawled."""
        ignored = [0.0] * (len(STATES) + 4)  # The number of a site's pages does not change.
        for place in self._pages.places(site, keys):
            if place is None or (now := rule(place.record)) == place.record:
                continue
            self._counts.remove(ignored, place.record)
            self._counts.add(ignored, now)
            arrival = arrival_of(place.entry) if now.state == "never-crawled" else 0
            self._pages.put(self._batch, site, place.key, now, arrival=arrival, before=place.entry)
        self._note(site, keys[-1], len(keys))

    def write(self) -> None:
        """Write the collected changes."""
        self._sites.stage(self._batch)
        self._counts.stage(self._batch)
        put_meta(self._disk, self._meta, self._batch)
        self._batch, self._entries = WriteBatch(raw_mode=True), 0

    def _note(self, site: str, key: bytes, entries: int) -> None:
        self._meta = msgspec.structs.replace(self._meta, come_to=site.encode() + b"\0" + key)
        self._entries += entries
        if self._entries >= _AT_ONCE:
            self.write()


def recount(steps: Steps) -> None:
    """Recount the pages by state, site, bucket and WARC file.

    The counts of the whole store are written in one batch at the end. Counts must never be too low, because the next
    crawl would then delete files with needed copies.
    """
    disk, sites, counts = steps.disk, steps.sites, steps.counts
    counts.clear()
    name = ""
    while found := sites.after(name, _AT_ONCE):
        name = found[-1].site
        batch = WriteBatch(raw_mode=True)
        for site in [record.site for record in found]:
            row = steps.site_row(site)
            row[: len(STATES)] = [0] * len(STATES)
            row[IMMEDIATE_AT] = 0
            counts.add_sites(1)
            for place in steps.pages.listed(site, None):
                counts.add(row, place.record)
            sites.touch(site, row)
        sites.stage(batch)
        disk.write(batch)
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(BUCKET, keys_after(BUCKET))
    batch.delete_range(COPY, keys_after(COPY))
    counts.stage(batch)
    disk.write(batch)
