"""The copies of one page: the newest copy, and older versions if the repository keeps them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from webfountain.errors import InputError
from webfountain.frontier.requests_by_url import holds_requests
from webfountain.report.store_reading import page_at
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import Copy
    from webfountain.repository.repository import Pages
    from webfountain.repository.warc_reader import StoredCopy
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_VERSIONS", "cat", "version_beginnings"]

MAX_VERSIONS: Final = 100
"""Maximum number of versions in the list of a page's versions."""
_BEGINNING_BYTES: Final = 32_768
"""Maximum number of bytes read from each version for a list of versions, usually enough to find the title."""


def cat(store: FrontierStore, repository: Pages, url: str, *, fetched: float | None = None) -> StoredCopy:
    """Return the newest copy of a page, or the version that was fetched at the time `fetched`.

    Raises
    ------
    InputError
        if the URL is malformed, unknown, or has no such copy. The message gives the reason and the page's state.
    RepositoryError
        if the copy cannot be read.
    """
    name, newest = _newest(store, url)
    place = newest if fetched is None else _place(repository, name, newest, fetched)
    if place is None:
        raise InputError(f"{url}: no version that was fetched at {fetched} is kept")
    return repository.read(place, name)


def version_beginnings(store: FrontierStore, repository: Pages, url: str) -> Iterator[StoredCopy]:
    """Return the beginnings of the kept versions of a page, the newest first, at most MAX_VERSIONS. Raise the same
    errors as `cat`.
    """
    name, newest = _newest(store, url)
    return _beginnings(repository, name, newest)


def _beginnings(repository: Pages, name: str, newest: Copy) -> Iterator[StoredCopy]:
    return islice(repository.versions(newest, name, most=_BEGINNING_BYTES), MAX_VERSIONS)


def _place(repository: Pages, name: str, newest: Copy, fetched: float) -> Copy | None:
    """Return the location of the version that was fetched at the time `fetched`, or None."""
    place: Copy | None = newest
    for each in _beginnings(repository, name, newest):
        if each.at == fetched:
            return place
        place = each.before
    return None


def _newest(store: FrontierStore, url: str) -> tuple[str, Copy]:
    """Return the canonical URL of a page, and the location of its newest copy."""
    name = canonical(url)
    record = page_at(store, name)
    if record is None and holds_requests(store.pages, site_of(name)):
        raise InputError(f"{name}: no copies are kept here, only the requests of a Scrapy project")
    if record is None:
        raise InputError(f"{name} is not known here (`webfountain pages` lists the known URLs)")
    if record.copy is None:
        why = f"; its last error was {record.error}" if record.error else ""
        raise InputError(f"{name} is known ({record.state}) but has no copy{why}")
    return name, record.copy
