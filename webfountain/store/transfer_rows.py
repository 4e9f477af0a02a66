"""The rows of a whole frontier: the form in which a store moves to another store of any kind or format.

`FrontierStore.rows` yields the content of a store, and `load_store` creates a new store from it. The rows are made of
the contract's terms, not of the bytes of a particular store. So they also carry a store to a new format. They contain:

- URLs with histories, importances, trust and order of arrival
- sites with what was learned about them
- census and change log
- published values, such as the plan
- forgotten pages and sites

State of a process (leases, counts of lost steps) is left out: a leased URL is in its place, an active site is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.errors import StoreError
from webfountain.records import Change, PageRecord, SiteState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "FORMAT",
    "CensusEntry",
    "ChangeEntry",
    "End",
    "ForgottenKey",
    "Head",
    "Page",
    "Part",
    "Row",
    "Site",
    "Tally",
    "Value",
    "head_of",
]

FORMAT: Final = 1
_R = TypeVar("_R")


class Head(msgspec.Struct, frozen=True, tag="store", tag_field="row"):
    """The description of a store.

    `log` is the name of its change log, of which `dropped` entries are no longer kept. `latest` is the time of its
    latest step in whole seconds, 0 if there was none: an opening compares it with its clock.
    """

    collection: str
    period_s: float
    fastest_s: float
    log: str
    dropped: int = 0
    format: int = FORMAT
    latest: int = 0


class Value(msgspec.Struct, frozen=True, tag="value", tag_field="row"):
    """A published value (`Board`)."""

    name: str
    value: bytes


class CensusEntry(msgspec.Struct, frozen=True, tag="census", tag_field="row"):
    """A census row in stored form: fetches, changes, seconds, links, births, milliseconds watched."""

    period: int
    bucket: int | None
    counts: tuple[float, ...]


class ForgottenKey(msgspec.Struct, frozen=True, tag="barred", tag_field="row"):
    """A page that was forgotten or, without a key, a whole site."""

    site: str
    key: bytes | None = None


class Site(msgspec.Struct, frozen=True, tag="site", tag_field="row"):
    """A site; its pages follow. `regrading`: the epoch of a partly applied ranking, and the class and arrival of the
    last updated URL. `changed`: time of its last change. A file of an older version has none; then the change log's
    entries give it."""

    site: str
    first_seen: float
    due: float
    state: SiteState = SiteState()
    epoch: int = 0
    learned: bytes = b""
    regrading: tuple[int, int, int] | None = None
    changed: float = 0.0


class Part(msgspec.Struct, frozen=True, tag="part", tag_field="row"):
    """A numbered part of what was learned about the previous site (`UrlQueues.settle`)."""

    site: str
    number: int
    part: bytes


class Page(msgspec.Struct, frozen=True, gc=False):
    """A page of the previous site. `arrival`: its number of arrival, if it is in the never-crawled queue."""

    site: str
    key: bytes
    record: PageRecord
    arrival: int | None = None


class ChangeEntry(msgspec.Struct, frozen=True, tag="change", tag_field="row"):
    """An entry of the change log, in order."""

    change: Change


class End(msgspec.Struct, frozen=True, tag="end", tag_field="row"):
    """The confirmation that the file is complete: the numbers of sites, pages and entries of the change log."""

    sites: int
    pages: int
    changes: int


class Tally:
    """Counts the rows that pass through it."""

    def __init__(self) -> None:
        self._found: dict[type, int] = {Site: 0, Page: 0, ChangeEntry: 0}

    def over(self, rows: Iterable[_R]) -> Iterator[_R]:
        """Yield the rows, and count them."""
        found = self._found
        for row in rows:
            kind = type(row)
            if kind in found:
                found[kind] += 1
            yield row

    def end(self) -> End:
        """Return the counts."""
        return End(*self._found.values())


Row = Head | Value | CensusEntry | ForgottenKey | Site | Part | Page | ChangeEntry
"""A row. The order is: head, values, census, barred pages and sites, each site with its parts and pages, the change
log.
"""


def head_of(rows: Iterator[Row]) -> Head:
    """Return the first row, which describes the store."""
    head = next(rows, None)
    if not isinstance(head, Head):
        raise StoreError("the first row of a store must describe it")
    return head
