"""Pages and sites of a store as plain rows for `pages` and `sites`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from webfountain.core.noise import decode
from webfountain.errors import InputError
from webfountain.frontier.batch import remembered
from webfountain.policy.provenance import Provenance
from webfountain.records import STATES
from webfountain.report.store_reading import every_site
from webfountain.report.troubles import robots_words, site_error
from webfountain.urls import site_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import PageRecord, SiteRecord, State
    from webfountain.store.contract import FrontierStore

__all__ = ["PAGE_FIELDS", "page_of", "pages", "site_of_record", "sites"]

PAGE_FIELDS: Final = (
    "policy",
    "trust",
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
    "duplicate_of",
    "target",
    "hint",
)
"""Fields of a URL in `pages` besides url, site and state."""


def pages(store: FrontierStore, *, site: str | None = None, state: State | None = None) -> Iterator[dict[str, Any]]:
    """Yield one dictionary per known URL, site by site.

    The state failed includes URLs that wait because their site cannot be reached; `error` gives the reason.

    Raises
    ------
    InputError
        when `site` is not known.
    """
    one = None if site is None else store.sites.get(site)
    if site is not None and one is None:
        raise InputError(
            f"--site {site_of_text(site, '--site')!r} is not known here (`webfountain sites` lists those that are)"
        )
    for home, record in store.pages.records(site=site, state=state):
        yield page_of(home, record)
    if state == "failed":
        for each in every_site(store) if one is None else [one]:
            if error := site_error(each):
                for _, record in store.pages.records(site=each.site, state="never-crawled"):
                    yield {**page_of(each.site, record), "error": error}


def page_of(site: str, record: PageRecord) -> dict[str, Any]:
    """Return a page record as plain data."""
    row: dict[str, Any] = {"url": record.url, "site": site, "state": record.state}
    for name in PAGE_FIELDS:
        row[name] = getattr(record, name)
    recorded = Provenance.decode(record.provenance)
    topic = None
    if record.scores:
        similarity, links = (*record.scores, None)[:2]
        topic = {"similarity": similarity, "links_from_hot": links}
    return row | {
        "scores": topic,
        "found_by": recorded.arrival,
        "policy_by": recorded.cause if record.provenance else None,
        "noise": [each.sample for each in decode(record.noise) if each.is_noise],
        "metadata": _metadata(record.metadata) if record.metadata else None,
    }


def _metadata(data: bytes) -> dict[str, Any] | None:
    from webfountain.formats.page_metadata import kept_metadata  # noqa: PLC0415  (15 ms, for few collections)

    found = kept_metadata(data)
    return None if found is None else to_builtins(found)


def sites(store: FrontierStore) -> Iterator[dict[str, Any]]:
    """Yield one dictionary per site, in order of name."""
    return map(site_of_record, every_site(store))


def site_of_record(record: SiteRecord) -> dict[str, Any]:
    """Return a site record as plain data."""
    state = remembered(record)
    return {
        "site": record.site,
        "pages": dict(zip(STATES, record.pages, strict=True)),
        "due": None if math.isinf(record.due) else record.due,
        "first_seen": record.first_seen,
        "next_at": state.next_at,
        "failures": state.failures,
        "error": state.error or None,
        "robots": robots_words(record),
        "robots_at": state.robots_at,
        "crawl_delay": state.crawl_delay,
        "sitemaps": [url for url, _ in state.sitemaps],
        "last_changed": record.changed or None,
    }
