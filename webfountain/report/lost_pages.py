"""Recover pages that a damaged store lost and whose copies still exist.

Place in the walk: after ``check --repair`` has made a new store. It reads the headers of WARC records and adds their
URLs to the store; the next crawl fetches them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from webfountain.errors import RepositoryError
from webfountain.records import Link
from webfountain.repository.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.repository.index import IndexRow
    from webfountain.store.contract import FrontierStore

__all__ = ["discover_copies"]

_AT_ONCE: Final = 1000


def discover_copies(store: FrontierStore, directory: Path, *, at: float) -> int:
    """Add each page to the store that has a record in a folder of copies. Return how many were unknown."""
    if not directory.is_dir():
        return 0
    links, found = _links(Folder(directory)), 0
    while some := list(islice(links, _AT_ONCE)):
        found += store.queues.discover(some, at=at).new
    return found


def _links(folder: Folder) -> Iterator[Link]:
    try:
        for number in sorted(folder.files()):
            for row in folder.rows(number):
                if row.kind == "response" and (link := _link(folder, number, row)) is not None:
                    yield link
    finally:
        folder.let_go()


def _link(folder: Folder, number: int, row: IndexRow) -> Link | None:
    try:
        record = folder.head(number, row)
    except RepositoryError:
        return None
    page = record.page
    return None if page is None else Link(record.url, page[0], page[1])
