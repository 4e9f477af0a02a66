"""Check whether the rows of a file can make a store, because the file may come from anywhere.

Place in the walk: ``webfountain import`` uses it twice, on the whole file before the first write, and again during the
writes. It checks what the stores rely on: the order, that each page occurs once, that URLs can be crawled, that
numbers are in range. It does not check what the rows mean.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import InputError
from webfountain.store import transfer_rows
from webfountain.urls import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from webfountain.records import Copy, PageRecord
    from webfountain.store.transfer_rows import Row

__all__ = ["checked"]

_ORDER: Final[dict[type, int]] = {
    transfer_rows.Head: 0,
    transfer_rows.Value: 1,
    transfer_rows.CensusEntry: 2,
    transfer_rows.ForgottenKey: 3,
    transfer_rows.Site: 4,
    transfer_rows.Part: 4,
    transfer_rows.Page: 4,
    transfer_rows.ChangeEntry: 5,
}
_LARGEST: Final = 2**53
"""Largest whole number that is accepted: a double holds it exactly, and a server's scripts use doubles."""
_LONGEST_KEY: Final = 64
_LARGEST_PART: Final = 2**63
_LOG_NAME: Final = re.compile(r"[0-9a-f]{1,32}")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_LAST_BUCKET: Final = 255


def checked(rows: Iterable[Row], file: Path) -> Iterator[Row]:
    """Yield the rows while they can make a store.

    Raises
    ------
    InputError
        at the first row that cannot; the message names file, row and value.
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
    """The state of a check: the names of all sites so far, and the keys and URLs of the last site's pages."""

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
            case transfer_rows.Page():
                self._take_page(row)
            case transfer_rows.Site():
                self._take_site(row)
            case transfer_rows.Part():
                _demand(row.site == self._site, "belongs to another site than the row before", row.site)
                _demand(0 <= row.number < _LARGEST_PART, "is not a number of a part", row.number)
            case transfer_rows.ChangeEntry(change):
                self._sequence += 1
                _demand(change.sequence == self._sequence, "is not the next number of the change log", change.sequence)
                _demand(math.isfinite(change.at), "is not a time", change.at)
                _check_text(change.url)
            case transfer_rows.Head():
                _check_head(row)
                self._sequence = row.dropped
            case transfer_rows.CensusEntry():
                _check_counted(row)
            case transfer_rows.ForgottenKey():
                _check_site(row.site)
                _demand(row.key is None or 0 < len(row.key) <= _LONGEST_KEY, "is not a key", row.key)

    def _take_site(self, site: transfer_rows.Site) -> None:
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

    def _take_page(self, page: transfer_rows.Page) -> None:
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


def _check_head(head: transfer_rows.Head) -> None:
    name = head.collection
    _demand(bool(name) and not _CONTROL.search(name.replace(" ", "")), "is not a name of a collection", name)
    for each in (head.period_s, head.fastest_s):
        _demand(math.isfinite(each) and each > 0.0, "is not a length of time", each)
    _demand(_LOG_NAME.fullmatch(head.log) is not None, "is not a name of a change log", head.log)
    _check_whole(head.dropped)
    _check_whole(head.latest)


def _check_counted(row: transfer_rows.CensusEntry) -> None:
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
