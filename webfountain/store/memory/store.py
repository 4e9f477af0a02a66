"""The reference store, made of plain dicts and sorted lists, which ends with the process.

Tests compare the other stores with the reference store. Leasing is fast with up to a few hundred thousand URLs per
site.
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

    from webfountain.store.memory.site import MemorySite
    from webfountain.store.shared_contract import Claims, FeedForm
    from webfountain.store.transfer_rows import Row

__all__ = ["MemoryBoard", "MemoryStore"]


class MemoryBoard:
    """Implementation of `Board` in the reference store."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def value(self, name: str) -> bytes | None:
        return self._values.get(name)

    def put_value(self, name: str, value: bytes) -> None:
        self._values[name] = value

    def settle_value(self, name: str, value: bytes) -> bytes:
        return self._values.setdefault(name, value)

    def items(self) -> list[tuple[str, bytes]]:
        """Return all names and values, in order of name."""
        return sorted(self._values.items())


class MemoryStore:
    """Implementation of `FrontierStore` in the memory of one process.

    `period_s` is the length of a census period, and `fastest_s` the mean change interval of bucket 0, by default
    period_s / 96. `claims` is needed if several crawlers of this process share the store.
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
        self.table = table = MemorySites()
        self.census = MemoryCensus(table, period_s=period_s, fastest_s=fastest_s or period_s / 96)
        self.changes = MemoryChangeLog(table)
        self.queues = MemoryQueues(table, self.census, self.changes)
        self.sites = MemorySiteList(table)
        self.pages = MemoryPages(table, self.changes)
        self.board = MemoryBoard()

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """Return None, because there is no server."""

    def rows(self) -> Iterator[Row]:
        census, changes, table = self.census, self.changes, self.table
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

    def recount(self) -> None:
        """Do nothing, because counts are computed on request."""

    def close(self) -> None:
        """Do nothing."""


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
