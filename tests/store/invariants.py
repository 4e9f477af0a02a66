"""The invariants of the three stores, which tests assert between two steps. A check reads the whole store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.keys import DUE, NAME, NEVER, PAGE, RANK, RANKED, RECRAWL, after, due_key, site_id
from webfountain.store.embedded.page_rows import PageRows
from webfountain.store.embedded.site_ranks import RankedValues
from webfountain.store.embedded.store import EmbeddedStore
from webfountain.store.memory.store import MemoryStore
from webfountain.store.shared.codec import decode_value
from webfountain.store.shared.layout import LEASED
from webfountain.store.shared.store import SharedStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from webfountain.records import SiteRecord
    from webfountain.store.contract import FrontierStore
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.page_rows import PagePlace
    from webfountain.store.embedded.site_rows import SiteRows
    from webfountain.store.memory.site import MemorySite


def check_valid(store: FrontierStore) -> None:
    """Assert that every known URL has one place, every lease belongs to a site lease, and the counts are correct."""
    match store:
        case MemoryStore():
            for home in store.table:
                _check_site(home)
        case EmbeddedStore():
            check_disk(store.steps.disk, store.steps.sites, store.steps.leases)
        case SharedStore():
            _check_server(store)
        case _:
            raise AssertionError(f"{store} is a store of no known kind")


def _check_site(home: MemorySite) -> None:
    queued = [key for lane in home.lanes.values() for _, key in lane]
    leased = sorted(key for key in home.pages if home.is_leased(key))
    assert sorted([*queued, *leased]) == sorted(home.pages), f"{home.name}: a URL is in no place or in two"
    assert all(lane == sorted(lane) for lane in home.lanes.values())
    assert leased == sorted(lease.key for lease in home.leases.values()), "a URL is leased twice"
    for lease in home.leases.values():
        assert home.holder is not None, "a lease outlived its site lease"
        assert home.holder.token == lease.id.token, "a lease outlived its site lease"


def _check_server(store: SharedStore) -> None:
    found = dict.fromkeys(STATES, 0)
    leased = 0
    for record in [record for name in store.sites.names() if (record := store.sites.get(name)) is not None]:
        name = record.site
        places = list(store.pages.places(name))
        assert len({key for _, key, _ in places}) == len(places) == sum(record.pages), f"{name}: places and pages"
        states = [decode_value(name, value).state for _, _, value in places]
        assert tuple(states.count(state) for state in STATES) == record.pages, f"{name}: counts by state"
        for state in states:
            found[state] += 1
        leased += sum(lane == LEASED for lane, _, _ in places)
    counts = store.census.statistics()
    assert counts.pages == found
    assert counts.leased == leased


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
