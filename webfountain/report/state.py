"""What a store and its repository know, as plain data: status, pages, sites, texts, one page's copy.

Every function reads an open store, also one that a crawl in another process is writing, and returns or yields
dictionaries that JSON takes as they are; the command line prints them, an API could. Nothing is changed here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from webfountain.core.freshness import freshness
from webfountain.errors import InputError, RepositoryError
from webfountain.formats.content_type import content_type
from webfountain.formats.document import text_of
from webfountain.records import STATES
from webfountain.store.changes import KEPT
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.formats.document import Document
    from webfountain.records import Change, PageRecord, SiteRecord, State
    from webfountain.repository.pages import Pages
    from webfountain.repository.record import Stored
    from webfountain.store.contract import FrontierStore

__all__ = [
    "PAGE_FIELDS",
    "cat",
    "changes",
    "page_of",
    "pages",
    "sites",
    "status",
    "text_of_copy",
    "texts",
    "texts_since",
]

PAGE_FIELDS: Final = (
    "policy",
    "importance",
    "bucket",
    "checks",
    "changes",
    "first_seen",
    "last_crawled",
    "last_changed",
    "status",
    "error",
    "digest",
    "etag",
    "last_modified",
    "depth",
    "due",
    "verdict",
)
"""What `pages` tells of a URL besides url, site and state (DESIGN.md section 7)."""
_SITES_AT_ONCE: Final = 1000
_ENTRIES_AT_ONCE: Final = 1000
_COPIED: Final = frozenset({"new", "changed", "minor"})


def status(store: FrontierStore, *, at: float, period_s: float, fastest_s: float) -> dict[str, Any]:
    """Counts by state, the rate of fetches, the freshness estimate.

    Parameters
    ----------
    at : now, UTC seconds
    period_s : length of a time period, s; the rate is over the running period and the one before
    fastest_s : mean change interval of bucket 0, s
    """
    counts = store.statistics()
    census = store.census()
    known = {state: counts.pages.get(state, 0) for state in STATES}
    return {
        "pages": known,
        "known": sum(known.values()),
        "sites": counts.sites,
        "active_sites": counts.active_sites,
        "in_flight": counts.leased,
        "immediate": counts.immediate,
        "settled_too_late": counts.settle_lost,
        "freshness": freshness(census, never_crawled=known["never-crawled"], at=at, fastest_s=fastest_s),
        **_rate(store, at, period_s),
    }


def pages(store: FrontierStore, *, site: str | None = None, state: State | None = None) -> Iterator[dict[str, Any]]:
    """One dictionary per known URL, sites together.

    Raises
    ------
    InputError
        when `site` is not known.
    """
    if site is not None and store.site(site) is None:
        raise InputError(
            f"--site {site!r} is not known here (a site is scheme://host[:port]; `webfountain sites` lists)"
        )
    for home, record in store.pages(site=site, state=state):
        yield page_of(home, record)


def page_of(site: str, record: PageRecord) -> dict[str, Any]:
    """A page record as plain data."""
    row: dict[str, Any] = {"url": record.url, "site": site, "state": record.state}
    for name in PAGE_FIELDS:
        row[name] = getattr(record, name)
    return row


def sites(store: FrontierStore) -> Iterator[dict[str, Any]]:
    """One dictionary per site, in order of name."""
    after = ""
    while found := store.sites(after, _SITES_AT_ONCE):
        yield from map(_site, found)
        after = found[-1].site


def texts(
    store: FrontierStore, repository: Pages, *, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """What a search or RAG index takes in to begin with: each page that has a copy, and each that is gone.

    A gone page has text and title None. `verdict` is new, changed, minor or gone. A page whose copy cannot be read is
    left out, and `unreadable` is told why. `cursor` is where `texts_since` goes on when the whole list was taken.
    """
    cursor = store.changes_end()  # before the list, so that what changes while it is made is told again
    for _, record in store.pages():
        if record.state == "gone":
            row: dict[str, Any] | None = _tombstone(record.url, "gone", record.last_crawled)
        else:
            row = _text_of(record, repository, unreadable)
        if row is not None:
            yield {**row, "cursor": cursor}


def texts_since(
    store: FrontierStore, repository: Pages, cursor: str, *, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """What has changed since a cursor: each page once, as it is now; one no longer to be held has text None.

    `verdict` is that of its last entry of the change log, new where it was new since. The cost is of what changed, not
    of what is known.

    Raises
    ------
    InputError, CursorLost
        when the text is no cursor, or the log no longer reaches back so far.
    """
    found: dict[tuple[str, bytes], tuple[Change, bool]] = {}
    end = cursor
    for end, entry in _entries(store, cursor):  # noqa: B007  the last one is where to go on
        name = entry.site, entry.key
        was_new = name in found and found[name][1]
        found[name] = entry, entry.verdict == "new" or was_new
    for (site, key), (entry, is_new) in found.items():
        if entry.verdict not in KEPT:
            yield {**_tombstone(entry.url, entry.verdict, entry.at), "cursor": end}
            continue
        record = store.page(site, key)
        row = None if record is None else _text_of(record, repository, unreadable)
        if row is not None:
            yield {**row, "verdict": "new" if is_new else entry.verdict, "cursor": end}


def changes(store: FrontierStore, cursor: str | None, *, site: str | None = None) -> Iterator[dict[str, Any]]:
    """The entries of the change log after a cursor (None: all that are kept), in order, perhaps of one site alone.

    The last row has the cursor to go on with: where no entry has it, in a row of its own.

    Raises
    ------
    InputError, CursorLost
        when the text is no cursor, or the log no longer reaches back so far.
    """
    # Taken before the entries: where there are none yet, none may come in between unseen.
    end, told = store.changes_end() if cursor is None else cursor, False
    for end, entry in _entries(store, cursor):
        told = site is None or entry.site == site
        if told:
            yield {
                "cursor": end,
                "sequence": entry.sequence,
                "url": entry.url,
                "site": entry.site,
                "verdict": entry.verdict,
                "time": entry.at,
                "digest": entry.digest,
                "digest_before": entry.before,
                "resemblance": entry.resemblance,
                "title": entry.title,
                "target": entry.target,
                "diff": entry.diff,
            }
    if not told:
        yield {"cursor": end}


def _entries(store: FrontierStore, cursor: str | None) -> Iterator[tuple[str, Change]]:
    """The entries after a cursor up to the newest, each after its own."""
    while found := store.changes(cursor, _ENTRIES_AT_ONCE):
        yield from found
        cursor = found[-1][0]


def _tombstone(url: str, verdict: str, at: float | None) -> dict[str, Any]:
    return {"url": url, "verdict": verdict, "fetched": at, "title": None, "text": None}


def _text_of(
    record: PageRecord, repository: Pages, unreadable: Callable[[RepositoryError], None]
) -> dict[str, Any] | None:
    """The row of a page that is held; None when it has no copy that can be read."""
    if record.state != "crawled" or record.copy is None:
        return None
    try:
        copy = repository.read(record.copy, record.url)
    except RepositoryError as error:
        unreadable(error)
        return None
    return _text(record, copy)


def cat(store: FrontierStore, repository: Pages, url: str) -> Stored:
    """The newest copy of a page.

    Raises
    ------
    InputError
        when the URL is none, not known, or has no copy; the text says which, and the page's state.
    RepositoryError
        when the copy cannot be read.
    """
    name = canonical(url)
    record = store.page(site_of(name), fingerprint(name))
    if record is None:
        raise InputError(f"{name} is not known here (`webfountain pages` lists what is)")
    if record.copy is None:
        why = f"; its last error was {record.error}" if record.error else ""
        raise InputError(f"{name} is known ({record.state}) but has no copy{why}")
    return repository.read(record.copy, name)


def text_of_copy(copy: Stored) -> Document:
    """Title and visible text of a copy."""
    return text_of(copy.body, content_type(copy.headers))


def _rate(store: FrontierStore, at: float, period_s: float) -> dict[str, Any]:
    """Fetches since the period before this one began, or since the first site was known, and their rate."""
    before = int(at // period_s) - 1
    rows = store.census_rows(since=before)
    first = min((site.first_seen for site in store.sites("", _SITES_AT_ONCE)), default=at)
    since = max(before * period_s, first)
    fetches = sum(row.fetches for row in rows)
    return {
        "since": since,
        "fetches": fetches,
        "changes": sum(row.changes for row in rows if row.bucket is not None),
        "first_fetches": sum(row.fetches for row in rows if row.bucket is None),
        "pages_per_second": fetches / (at - since) if at > since else 0.0,
    }


def _site(record: SiteRecord) -> dict[str, Any]:
    state = record.state
    return {
        "site": record.site,
        "pages": dict(zip(STATES, record.pages, strict=True)),
        "due": None if math.isinf(record.due) else record.due,
        "first_seen": record.first_seen,
        "next_at": state.next_at,
        "failures": state.failures,
        "robots": "refuses all" if not state.robots_ok else "none" if state.robots is None else "read",
        "robots_at": state.robots_at,
        "crawl_delay": state.crawl_delay,
        "sitemaps": [url for url, _ in state.sitemaps],
    }


def _text(record: PageRecord, copy: Stored) -> dict[str, Any]:
    found = text_of_copy(copy)
    verdict = record.verdict if record.verdict in _COPIED else "changed" if record.changes else "new"
    return {"url": record.url, "verdict": verdict, "fetched": record.copied, "title": found.title, "text": found.text}
