"""The copy of one page, for `cat`: body, text or headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.errors import InputError
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.repository.repository import Pages
    from webfountain.repository.warc_reader import StoredCopy
    from webfountain.store.contract import FrontierStore

__all__ = ["cat"]


def cat(store: FrontierStore, repository: Pages, url: str) -> StoredCopy:
    """Return the newest copy of a page.

    Raises
    ------
    InputError
        if the URL is malformed, unknown, or has no copy; the text says which, and the page's state.
    RepositoryError
        if the copy cannot be read.
    """
    name = canonical(url)
    record = store.pages.get(site_of(name), fingerprint(name))
    if record is None:
        raise InputError(f"{name} is not known here (`webfountain pages` lists the known URLs)")
    if record.copy is None:
        why = f"; its last error was {record.error}" if record.error else ""
        raise InputError(f"{name} is known ({record.state}) but has no copy{why}")
    return repository.read(record.copy, name)
