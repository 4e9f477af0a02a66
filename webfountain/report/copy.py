"""The copies of one page: the newest, and older versions where they are kept."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from webfountain.errors import InputError
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.repository.repository import Pages
    from webfountain.repository.warc_reader import StoredCopy
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_VERSIONS", "cat", "versions"]

MAX_VERSIONS: Final = 100
"""Number of versions of a page that are read. The oldest ones are left out."""


def cat(store: FrontierStore, repository: Pages, url: str, *, fetched: float | None = None) -> StoredCopy:
    """Return the newest copy of a page, or the version that was fetched at a time.

    Raises
    ------
    InputError
        if the URL is malformed, unknown, or has no such copy; the text says which, and the page's state.
    RepositoryError
        if the copy cannot be read.
    """
    found = next((each for each in versions(store, repository, url) if fetched in (None, each.at)), None)
    if found is None:
        raise InputError(f"{url}: no version that was fetched at {fetched} is kept")
    return found


def versions(store: FrontierStore, repository: Pages, url: str) -> Iterator[StoredCopy]:
    """Return the kept versions of a page, the newest first, at most MAX_VERSIONS. It raises the errors of `cat`."""
    name = canonical(url)
    record = store.pages.get(site_of(name), fingerprint(name))
    if record is None:
        raise InputError(f"{name} is not known here (`webfountain pages` lists the known URLs)")
    if record.copy is None:
        why = f"; its last error was {record.error}" if record.error else ""
        raise InputError(f"{name} is known ({record.state}) but has no copy{why}")
    return islice(repository.versions(record.copy, name), MAX_VERSIONS)
