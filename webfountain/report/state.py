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
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.formats.document import Document
    from webfountain.records import PageRecord, SiteRecord, State
    from webfountain.repository.pages import Pages
    from webfountain.repository.record import Stored
    from webfountain.store.contract import FrontierStore

__all__ = [
    "PAGE_FIELDS",
    "cat",
    "page_of",
    "pages",
    "sites",
    "status",
    "text_of_copy",
    "texts",
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
    store: FrontierStore, repository: Pages, *, since: float = 0.0, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """What a search or RAG index takes in: each page whose copy came since then, and each that went since then.

    A gone page has text and title None: the index drops it. `verdict` is new, changed, minor or gone. A page whose
    copy cannot be read is left out, and `unreadable` is told why.
    """
    for _, record in store.pages():
        if record.state == "gone" and (record.last_crawled or 0.0) >= since:
            yield {"url": record.url, "verdict": "gone", "fetched": record.last_crawled, "title": None, "text": None}
        elif record.state == "crawled" and record.copy is not None and (record.copied or 0.0) >= since:
            try:
                copy = repository.read(record.copy, record.url)
            except RepositoryError as error:
                unreadable(error)
            else:
                yield _text(record, copy)


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
