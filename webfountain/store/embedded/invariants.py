"""The invariants between the keys of an embedded store. Tests check them after each step and after a crash.

A check reads the whole store. It is meant for the stores of tests, not for a store of 10^7 pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.keys import DUE, NAME, NEVER, PAGE, RANK, RANKED, RECRAWL, after, due_key, site_id
from webfountain.store.embedded.page_rows import PagePlace, PageRows
from webfountain.store.embedded.site_ranks import RankedValues

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from webfountain.records import SiteRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.site_rows import SiteRows

__all__ = ["check_disk"]


def check_disk(disk: Disk, sites: SiteRows, leases: Leases) -> None:
    """Assert that every page is in exactly one queue, every site in one list, and that all counts are correct."""
    places = list(PageRows(disk).listed(None, None))
    queued = {key for family in (NEVER, RECRAWL) for key, _ in disk.scan(family, after(family))}
    assert queued == {place.entry for place in places}, "a page stands in no queue, or an entry has no page"
    assert len(queued) == len(places), "two pages share a queue entry"
    assert leases.hidden <= queued, "a lease hides an entry that is not there"
    out = [number for active in leases.active.values() for number in active.out]
    assert len(out) == len(leases) == len(leases.hidden), "a lease has no site lease, or a URL is leased twice"
    _check_sites(disk, sites, leases.active, places)
    _check_counts(Counts(disk), places)


def _check_sites(disk: Disk, sites: SiteRows, active: Collection[str], places: list[PagePlace]) -> None:
    names = {value.decode() for _, value in disk.scan(NAME, after(NAME))}
    assert {place.site for place in places} <= names
    assert sorted(active) == sites.active_on_disk()
    due = {key for key, _ in disk.scan(DUE, after(DUE))}
    records = {record.site: record for record in sites.after("", len(names) + 1)}
    assert set(records) == names
    assert due == {due_key(record.due, name) for name, record in records.items() if name not in active}
    _check_ranks(disk, records.values())
    for name, record in records.items():
        states = [place.record.state for place in places if place.site == name]
        urgent = [place.record.immediate for place in places if place.site == name]
        assert record.immediate == sum(each is not None for each in urgent), f"{name}: wrong count of immediate URLs"
        assert record.pages == tuple(states.count(state) for state in STATES), f"{name}: wrong counts"
        sid = site_id(name)
        assert sum(1 for _ in disk.scan(PAGE + sid, after(PAGE + sid))) >= len(states)


def _check_ranks(disk: Disk, records: Iterable[SiteRecord]) -> None:
    index = {key for key, _ in disk.scan(RANK, after(RANK))}
    found = [(each.site.encode(), RankedValues(sum(each.pages), each.pages[-1], each.changed)) for each in records]
    assert index == {key for name, values in found for key in values.keys(name)}, "a site is listed in a wrong place"
    assert sum(1 for _ in disk.scan(RANKED, after(RANKED))) == len(found)


def _check_counts(counts: Counts, places: list[PagePlace]) -> None:
    states = [place.record.state for place in places]
    assert counts.pages == [states.count(state) for state in STATES]
    buckets = [place.record.bucket for place in places if place.record.state == "crawled"]
    assert {bucket: row.pages for bucket, row in counts.census().items()} == {
        bucket: buckets.count(bucket) for bucket in buckets
    }
    assert counts.immediate == sum(place.record.immediate is not None for place in places)
    copies = [place.record.copy for place in places if place.record.copy is not None]
    for repository in {copy.repository for copy in copies} | {0}:
        files = [copy.file for copy in copies if copy.repository == repository]
        assert counts.copies(repository) == {file: files.count(file) for file in files}
