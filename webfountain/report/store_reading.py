"""Open existing stores and their copies for reading, even while a crawl writes them.

If no store exists, InputError names the option to correct.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webfountain.errors import InputError
from webfountain.store.contract import COLLECTION
from webfountain.store.locations import folder_of, is_shared, require_readable
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webfountain.policy.collection import Collection
    from webfountain.policy.collection_file import CollectionInForce
    from webfountain.records import Change, PageRecord, SiteRecord
    from webfountain.repository.repository import Pages
    from webfountain.store.contract import FrontierStore

__all__ = [
    "DEMO_STORE",
    "copies",
    "cursor_of",
    "every_change",
    "every_site",
    "existing_folder",
    "inbox_folder",
    "known_site",
    "link_log",
    "opened_for_reading",
    "page_at",
    "places_of",
    "policy_in_force",
    "reading",
    "repository_folder",
]

DEMO_STORE: Final = "rocksdb://.webfountain-demo"
"""URL of the demonstration's store."""
_SITES_AT_ONCE: Final = 1000
_ENTRIES_AT_ONCE: Final = 1000


def opened_for_reading(url: str) -> FrontierStore:
    """Open an existing store for reading, even while a crawl writes it."""
    if not is_shared(url) or folder_of(url) is not None:
        existing_folder(url)
    return open_store(url, collection=None, period_s=None, read_only=True)


def reading(url: str) -> contextlib.closing[FrontierStore]:
    """Open an existing store for reading while a `with` block runs."""
    return contextlib.closing(opened_for_reading(url))


def policy_in_force(store: FrontierStore) -> CollectionInForce | None:
    """Return the policy file that the crawl of a store uses, or None if the store contains none."""
    from webfountain.policy.collection_file import CollectionInForce  # noqa: PLC0415  `pages` and others need no rules

    kept = store.board.value(COLLECTION)
    return None if kept is None else CollectionInForce.decode(kept)


def page_at(store: FrontierStore, url: str) -> PageRecord | None:
    """Return the record of a canonical URL, or None if it is unknown."""
    return store.pages.get(site_of(url), fingerprint(url))


def known_site(store: FrontierStore, site: str) -> SiteRecord:
    """Return the record of a site. Raise InputError if the site is unknown."""
    found = store.sites.get(site)
    if found is None:
        raise InputError(f"site {site!r} is not known here (a site is scheme://host[:port])")
    return found


def every_site(store: FrontierStore, *, after: str = "") -> Iterator[SiteRecord]:
    """Yield all sites after the site name `after`, sorted by name."""
    while batch := store.sites.after(after, _SITES_AT_ONCE):
        yield from batch
        after = batch[-1].site


def every_change(store: FrontierStore, cursor: str | None) -> Iterator[tuple[str, Change]]:
    """Yield the entries of the change log after a cursor. Each entry comes with the cursor from which a reader
    continues after it."""
    while batch := store.changes.after(cursor, _ENTRIES_AT_ONCE):
        yield from batch
        cursor = batch[-1][0]


def existing_folder(url: str) -> Path:
    """Return the folder of an embedded store. Raise InputError if the folder does not exist."""
    folder = folder_of(url)
    if folder is None and is_shared(url):
        raise InputError("--store: this command needs a store in a folder (rocksdb://)")
    require_readable(url)
    assert folder is not None
    if (folder / "valkey").is_dir() and not (folder / "db").is_dir() and not is_shared(url):
        raise InputError(f"--store {url!r}: the folder holds a store for many ants; give --store valkey://{folder}")
    if not folder.is_dir():
        demo = folder_of(DEMO_STORE)
        hint = f"; the demo's store is --store {DEMO_STORE}" if demo is not None and demo.is_dir() else ""
        if folder.exists():
            raise InputError(f"--store {url!r}: {folder} is a file, not the folder of a store")
        raise InputError(f"--store {url!r}: there is no folder {folder} (`webfountain crawl` makes one{hint})")
    spiders = sorted(each.parent.name for each in folder.glob("*/db"))
    if spiders and not (folder / "db").is_dir() and not is_shared(url):
        raise InputError(
            f"--store {url!r} contains one store for each spider; give --store rocksdb://{folder}/{spiders[0]}"
        )
    return folder


def inbox_folder(folder: Path) -> Path:
    """Return the folder in which commands store notes for the crawl."""
    from webfountain.frontier.inbox.inboxes import FOLDER  # noqa: PLC0415

    return folder / FOLDER


def repository_folder(store_url: str, given: str | None) -> Path:
    """Return the folder of copies: `given`, or by default a subfolder of the store."""
    if given is not None:
        return Path(given)
    if folder_of(store_url) is None and is_shared(store_url):
        raise InputError("--repository is required, because a store on a server has no folder of copies")
    return existing_folder(store_url) / "repository"


@contextlib.contextmanager
def copies(store_url: str, given: str | None, *, places: Mapping[int, str] | None = None) -> Iterator[Pages]:
    """Open the repository for reading. If many ants crawl, `places` maps the number of each ant to the folder of its
    copies."""
    from webfountain.repository.repository import Pages  # noqa: PLC0415  parsers that `status` does not need

    opened = Pages(repository_folder(store_url, given), places=places)
    try:
        yield opened
    finally:
        opened.close()


def places_of(opened: FrontierStore) -> dict[int, str]:
    """Return, by ant number, the machine and folder where each ant keeps its copies."""
    found = [] if opened.claims is None else opened.claims.claims("repository")
    return {int(claim.name.partition("/")[2]): claim.owner for claim in found}


def cursor_of(opened: FrontierStore, since: str | float | None) -> str | None:
    """Convert the value of `--since`, a cursor or a time, into a cursor. Raise CursorLost if the change log begins
    after the time `since`."""
    return opened.changes.since(since) if isinstance(since, float) else since


def link_log(collection: Collection | None, store_url: str) -> str | None:
    """Return the folder or URL of the link log of a crawl, or None if the crawl has none. By default, the link log is
    in the store's folder."""
    home = folder_of(store_url)
    return (None if collection is None else collection.ranking.links) or (
        str(home / "links") if home is not None and (home / "links").is_dir() else None
    )
