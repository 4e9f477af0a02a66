"""A reference store that is filled with the rows of another store, so that tests can compare the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store import transfer_rows
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.transfer_rows import Row


def memory_store_of(rows: Iterator[Row]) -> MemoryStore:
    """Return a reference store with the content of these rows."""
    head = transfer_rows.head_of(rows)
    store = MemoryStore(period_s=head.period_s, fastest_s=head.fastest_s, collection=head.collection)
    store.changes.name, store.changes.dropped = head.log, head.dropped
    store.table.latest = head.latest
    for row in rows:
        _add(store, row)
    if not any(home.changed for home in store.table):  # the rows are from an older version
        for change in store.changes:
            store.changes.date(change)
    return store


def _add(store: MemoryStore, row: Row) -> None:
    table = store.table
    match row:
        case transfer_rows.Value(name, value):
            store.board.put_value(name, value)
        case transfer_rows.CensusEntry(period, bucket, counts):
            store.census.counted[period, bucket] = list(counts)
        case transfer_rows.ForgottenKey(site, None):
            table.barred_sites.add(site)
        case transfer_rows.ForgottenKey(site, bytes(key)):
            table.barred_pages.add((site, key))
        case transfer_rows.Site():
            home = table.add(row.site, first_seen=row.first_seen, due=row.due)
            home.state, home.epoch, home.learned, home.changed = row.state, row.epoch, row.learned, row.changed
            home.regrading = None if row.regrading is None else (row.regrading[0], row.regrading[1:])
        case transfer_rows.Part(site, number, part):
            table[site].parts[number] = part
        case transfer_rows.Page(site, key, record, arrival):
            turn = arrival or record.immediate or 0
            table[site].add(key, record, turn)
            table.arrivals = max(table.arrivals, turn)
        case transfer_rows.ChangeEntry(change):
            store.changes.add(change)
