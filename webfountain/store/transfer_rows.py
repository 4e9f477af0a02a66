"""The rows of a whole frontier: the form in which a store moves to another store of any kind or format.

`FrontierStore.rows` yields the content of a store as rows, and `load_store` creates a new store from them. The rows of
a frontier contain:

- URLs with histories, importances, trust and order of arrival
- sites with what was learned about them
- census and change log
- published values, such as the plan
- forgotten pages and sites

Leases and the counts of lost steps are left out: a leased URL is shown as waiting, and an active site as due.

A file may come from anywhere, so ``webfountain import`` checks all rows before the first write, and again during the
writes (`checked`). The rows must be in order, each page must occur once, URLs must be valid, and numbers must be in
range.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from webfountain.errors import InputError, StoreError
from webfountain.records import Change, PageRecord, SiteState
from webfountain.urls import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from webfountain.records import Copy

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
    "checked",
    "head_of",
]

FORMAT: Final = 1
_R = TypeVar("_R")
_LARGEST: Final = 2**53
"""Largest integer that a row may contain. A server's scripts use doubles, which are exact up to 2^53."""
_LONGEST_KEY: Final = 64
_LARGEST_PART: Final = 2**63
_LOG_NAME: Final = re.compile(r"[0-9a-f]{1,32}")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_LAST_BUCKET: Final = 255


class Head(msgspec.Struct, frozen=True, tag="store", tag_field="row"):
    """The description of a store.

    `log` is the name of the change log, and `dropped` the number of entries that the log no longer keeps. `latest` is
    the time of the latest write to the store, in whole seconds, or 0 if nothing was written.
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
    """A census row. `counts` contains the row's sums in the order of `census_counting.CensusCounts`."""

    period: int
    bucket: int | None
    counts: tuple[float, ...]


class ForgottenKey(msgspec.Struct, frozen=True, tag="barred", tag_field="row"):
    """A forgotten page, or a forgotten site if `key` is None."""

    site: str
    key: bytes | None = None


class Site(msgspec.Struct, frozen=True, tag="site", tag_field="row"):
    """A site; the rows of its pages follow.

    `regrading` contains the epoch of a partly applied ranking, and the class and arrival number of the last updated
    URL. `changed` is the time of the site's last change, or 0.0 in a file of an older version.
    """

    site: str
    first_seen: float
    due: float
    state: SiteState = SiteState()
    epoch: int = 0
    learned: bytes = b""
    regrading: tuple[int, int, int] | None = None
    changed: float = 0.0


class Part(msgspec.Struct, frozen=True, tag="part", tag_field="row"):
    """A numbered part of the learned data of a site (`UrlQueues.settle`); it follows the row of the site."""

    site: str
    number: int
    part: bytes


class Page(msgspec.Struct, frozen=True, gc=False):
    """A page; its row follows the row of its site. `arrival` is the page's arrival number in the never-crawled queue,
    or None.
    """

    site: str
    key: bytes
    record: PageRecord
    arrival: int | None = None


class ChangeEntry(msgspec.Struct, frozen=True, tag="change", tag_field="row"):
    """An entry of the change log; entries are in order."""

    change: Change


class End(msgspec.Struct, frozen=True, tag="end", tag_field="row"):
    """The last row of a file: the numbers of sites, pages and entries of the change log."""

    sites: int
    pages: int
    changes: int


class Tally:
    """Counts rows by kind."""

    def __init__(self) -> None:
        self._found: dict[type, int] = {Site: 0, Page: 0, ChangeEntry: 0}

    def over(self, rows: Iterable[_R]) -> Iterator[_R]:
        """Yield and count the rows."""
        found = self._found
        for row in rows:
            kind = type(row)
            if kind in found:
                found[kind] += 1
            yield row

    def end(self) -> End:
        return End(*self._found.values())


Row = Head | Value | CensusEntry | ForgottenKey | Site | Part | Page | ChangeEntry
"""A row. Rows are in this order: head, values, census, forgotten pages and sites, each site with its parts and pages,
change log.
"""


def head_of(rows: Iterator[Row]) -> Head:
    """Return the first row, which describes the store."""
    head = next(rows, None)
    if not isinstance(head, Head):
        raise StoreError("the first row of a store must describe it")
    return head


_ORDER: Final[dict[type, int]] = {
    Head: 0,
    Value: 1,
    CensusEntry: 2,
    ForgottenKey: 3,
    Site: 4,
    Part: 4,
    Page: 4,
    ChangeEntry: 5,
}
"""Position of each kind of row in a file."""


def checked(rows: Iterable[Row], file: Path) -> Iterator[Row]:
    """Check each row, and yield it if it is valid.

    Raises
    ------
    InputError
        at the first invalid row; the message names file, row and value.
    """
    check = _Check()
    for number, row in enumerate(rows, 1):
        try:
            check.take(row)
        except _Wrong as wrong:
            raise InputError(f"{file}: row {number}: {wrong}") from None
        yield row


class _Wrong(Exception):
    """An error in a row."""


class _Check:
    """Checker of rows, which remembers what it needs from earlier rows."""

    def __init__(self) -> None:
        self._stage = -1
        self._sites: set[str] = set()
        self._site = ""
        self._keys: set[bytes] = set()
        self._urls: set[str] = set()
        self._width = 0
        self._sequence = 0

    def take(self, row: Row) -> None:
        """Raise _Wrong for a row that is invalid at this position."""
        stage = _ORDER[type(row)]
        _demand(stage >= self._stage, "is out of order: it belongs before the rows above", type(row).__name__.lower())
        self._stage = stage
        match row:
            case Page():
                self._take_page(row)
            case Site():
                self._take_site(row)
            case Part():
                _demand(row.site == self._site, "belongs to another site than the row before", row.site)
                _demand(0 <= row.number < _LARGEST_PART, "is not the number of a part", row.number)
            case ChangeEntry(change):
                self._sequence += 1
                _demand(change.sequence == self._sequence, "is not the next number of the change log", change.sequence)
                _demand(math.isfinite(change.at), "is not a time", change.at)
                _check_text(change.url)
            case Head():
                _check_head(row)
                self._sequence = row.dropped
            case CensusEntry():
                _check_counted(row)
            case ForgottenKey():
                _check_site(row.site)
                _demand(row.key is None or 0 < len(row.key) <= _LONGEST_KEY, "is not a key", row.key)

    def _take_site(self, site: Site) -> None:
        _check_site(site.site)
        _demand(site.site not in self._sites, "occurs twice", site.site)
        self._sites.add(site.site)
        self._site, self._width = site.site, 0
        self._keys.clear()
        self._urls.clear()
        _demand(
            not math.isnan(site.due) and math.isfinite(site.first_seen), "is not a time", (site.due, site.first_seen)
        )
        _demand(math.isfinite(site.changed), "is not a time", site.changed)
        _demand(not math.isnan(site.state.next_at), "is not a time", site.state.next_at)
        for each in (site.epoch, *(site.regrading or ())):
            _check_whole(each)

    def _take_page(self, page: Page) -> None:
        _demand(page.site == self._site, "belongs to another site than the row before", page.site)
        self._width = self._width or len(page.key)
        _demand(
            0 < len(page.key) <= _LONGEST_KEY and len(page.key) == self._width, "is not a key of this site", page.key
        )
        _demand(page.key not in self._keys, "occurs twice", page.record.url)
        self._keys.add(page.key)
        _check_page_url(page.record, page.site)
        if not page.record.request:  # A project may make several requests for one URL.
            _demand(page.record.url not in self._urls, "occurs twice", page.record.url)
            self._urls.add(page.record.url)
        _check_whole(page.arrival or 0)
        _check_record(page.record)


def _demand(is_so: bool, what: str, value: object) -> None:
    if not is_so:
        raise _Wrong(f"{value!r:.200} {what}")


def _check_head(head: Head) -> None:
    name = head.collection
    _demand(bool(name) and not _CONTROL.search(name.replace(" ", "")), "is not a name of a collection", name)
    for each in (head.period_s, head.fastest_s):
        _demand(math.isfinite(each) and each > 0.0, "is not a length of time", each)
    _demand(_LOG_NAME.fullmatch(head.log) is not None, "is not a name of a change log", head.log)
    _check_whole(head.dropped)
    _check_whole(head.latest)


def _check_counted(row: CensusEntry) -> None:
    _demand(abs(row.period) < _LARGEST, "is not a period", row.period)
    _demand(row.bucket is None or 0 <= row.bucket <= _LAST_BUCKET, "is not a bucket", row.bucket)
    _demand(len(row.counts) == 6 and all(math.isfinite(each) for each in row.counts), "are not counts", row.counts)


def _check_site(site: str) -> None:
    _check_text(site)
    _demand(site.count("/") == 2 and join("", site + "/") is not None, "is not a site", site)


def _check_text(url: str) -> None:
    _demand(not _CONTROL.search(url), "has blanks or control characters", url)


def _check_page_url(record: PageRecord, site: str) -> None:
    _check_text(record.url)
    begins = record.url.startswith(site + "/")
    _demand(begins and join("", record.url) is not None, f"is not a URL of {site}", record.url)


def _check_record(record: PageRecord) -> None:
    times: tuple[float | None, ...] = (record.first_seen, record.last_crawled, record.last_changed, record.copied)
    _demand(all(each is None or math.isfinite(each) for each in times), "are not times", times)
    numbers = (record.importance, record.trust, *record.scores, record.due or 0.0)
    _demand(not any(map(math.isnan, numbers)), "are not numbers", numbers)
    _demand(0 <= record.bucket <= _LAST_BUCKET, "is not a bucket", record.bucket)
    for each in (record.depth, record.checks, record.changes, record.failures, record.immediate or 0):
        _check_whole(each)
    if record.copy is not None:
        _check_copy(record.copy)


def _check_copy(copy: Copy) -> None:
    parts: tuple[tuple[Any, int], ...] = (
        (copy.file, 2**32), (copy.offset, _LARGEST), (copy.length, 2**32), (copy.repository, 2**16)
    )  # fmt: skip
    _demand(all(0 <= part < bound for part, bound in parts), "is not a place of a copy", copy)


def _check_whole(number: int) -> None:
    _demand(0 <= number < _LARGEST, "is out of range", number)
