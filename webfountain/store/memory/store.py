"""The reference store, simple enough to be correct: plain dicts and sorted lists. It ends with the process.

It is the executable specification, with which the other stores are compared, and the store for tests and simulations. A
lease is fast for up to some hundred thousand URLs per site. Nothing is kept on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store import transfer_rows
from webfountain.store.census_counting import in_order
from webfountain.store.lanes import AT_ONCE
from webfountain.store.memory.census import MemoryCensus
from webfountain.store.memory.change_log import MemoryChangeLog
from webfountain.store.memory.pages import MemoryPages
from webfountain.store.memory.queues import MemoryQueues
from webfountain.store.memory.sites import MemorySiteList, MemorySites
from webfountain.store.shared_contract import NoLives

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from webfountain.store.memory.site import MemorySite
    from webfountain.store.shared_contract import Claims, FeedForm
    from webfountain.store.transfer_rows import Row

__all__ = ["MemoryBoard", "MemoryStore"]


class MemoryBoard:
    """The `Board` in a dictionary."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def value(self, name: str) -> bytes | None:
        """Return the current value of a name."""
        return self._values.get(name)

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value."""
        self._values[name] = value

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none."""
        return self._values.setdefault(name, value)

    def items(self) -> list[tuple[str, bytes]]:
        """Return all names and values, in order of name."""
        return sorted(self._values.items())


class MemoryStore:
    """The `FrontierStore` in the memory of one process.

    `period_s` is the length of a census period, `fastest_s` the mean change interval of bucket 0 [period_s / 96]. Pass
    `claims` if several crawlers of the process share the store.
    """

    def __init__(
        self,
        *,
        period_s: float,
        fastest_s: float | None = None,
        collection: str = "",
        claims: Claims | None = None,
    ) -> None:
        self.claims = claims
        self.lives = NoLives()
        self._collection = collection
        self._table = table = MemorySites()
        self.census = MemoryCensus(table, period_s=period_s, fastest_s=fastest_s or period_s / 96)
        self.changes = MemoryChangeLog(table)
        self.queues = MemoryQueues(table, self.census, self.changes)
        self.sites = MemorySiteList(table)
        self.pages = MemoryPages(table, self.changes)
        self.board = MemoryBoard()

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """Return None, because there is no server."""

    def rows(self) -> Iterator[Row]:
        """Yield the content of the store."""
        census, changes, table = self.census, self.changes, self._table
        yield transfer_rows.Head(
            self._collection, census.period_s, census.fastest_s, changes.name, changes.dropped, latest=int(table.latest)
        )
        yield from (transfer_rows.Value(*item) for item in self.board.items())
        for (period, bucket), counts in in_order(census.counted.items()):
            yield transfer_rows.CensusEntry(period, bucket, tuple(map(float, counts)))
        yield from (transfer_rows.ForgottenKey(site) for site in sorted(table.barred_sites))
        yield from (
            transfer_rows.ForgottenKey(*one) for one in sorted(table.barred_pages) if one[0] not in table.barred_sites
        )
        for home in table.in_order():
            yield from _site_rows(home)
        yield from map(transfer_rows.ChangeEntry, changes)

    @classmethod
    def of_rows(cls, rows: Iterator[Row]) -> Self:
        """Return a store with the rows of another store of any kind."""
        head = transfer_rows.head_of(rows)
        store = cls(period_s=head.period_s, fastest_s=head.fastest_s, collection=head.collection)
        store.changes.begin(head.log, head.dropped)
        store._table.latest = head.latest
        for row in rows:
            store._add(row)
        if not any(home.changed for home in store._table):  # the rows are from an older version
            for change in store.changes:
                store.changes.date(change)
        return store

    def _add(self, row: Row) -> None:
        match row:
            case transfer_rows.Value(name, value):
                self.board.put_value(name, value)
            case transfer_rows.CensusEntry(period, bucket, counts):
                self.census.counted[period, bucket] = list(counts)
            case transfer_rows.ForgottenKey(site, None):
                self._table.barred_sites.add(site)
            case transfer_rows.ForgottenKey(site, bytes(key)):
                self._table.barred_pages.add((site, key))
            case transfer_rows.Site():
                home = self._table.add(row.site, first_seen=row.first_seen, due=row.due)
                home.state, home.epoch, home.learned, home.changed = row.state, row.epoch, row.learned, row.changed
                home.regrading = None if row.regrading is None else (row.regrading[0], row.regrading[1:])
            case transfer_rows.Part(site, number, part):
                self._table[site].parts[number] = part
            case transfer_rows.Page(site, key, record, arrival):
                turn = arrival or record.immediate or 0
                self._table[site].add(key, record, turn)
                self._table.skip_arrivals(turn)
            case transfer_rows.ChangeEntry(change):
                self.changes.add(change)

    def recount(self) -> None:
        """Do nothing, because counts are computed on request."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def check_valid(self) -> None:
        """Assert that every known URL is in one lane of its site or leased, and every lease belongs to a site lease."""
        for home in self._table:
            home.check_valid()


def _site_rows(home: MemorySite) -> Iterator[Row]:
    in_a_hurry = home.holder is not None and home.first_immediate(1)
    due = AT_ONCE if in_a_hurry else home.due
    regrading = None if home.regrading is None else (home.regrading[0], *home.regrading[1])
    yield transfer_rows.Site(
        home.name, home.first_seen, due, home.state, home.epoch, home.learned, regrading, home.changed
    )
    for number, part in sorted(home.parts.items()):
        yield transfer_rows.Part(home.name, number, part)
    for key, record in sorted(home.pages.items()):
        waits = record.state == "never-crawled" and record.immediate is None
        yield transfer_rows.Page(home.name, key, record, home.arrival[key] if waits else None)
