"""The rows that the commands `pages` and `sites` print."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.core.noise import decode
from webfountain.errors import InputError
from webfountain.frontier.batch import remembered
from webfountain.policy.provenance import Provenance
from webfountain.records import STATES, State  # msgspec reads the types of fields
from webfountain.report.store_reading import every_site
from webfountain.report.troubles import robots_words, site_error
from webfountain.urls import site_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import PageRecord, SiteRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["PageAnswer", "page_of", "pages", "site_of_record", "sites"]


class PageAnswer(msgspec.Struct, frozen=True):
    """A known URL."""

    url: str
    site: str
    state: State
    policy: str
    trust: float
    importance: float
    bucket: int
    """Class of the page's change rate, from 0 (fastest) to 255 (slowest)."""
    checks: int
    """Number of fetches at which the page was compared with its copy."""
    changes: int
    """Number of changes that were not minor."""
    first_seen: float
    last_crawled: float | None
    last_changed: float | None
    status: int | None
    error: str | None
    digest: str | None
    """Hex SHA-1 of the newest body after content decoding."""
    etag: str | None
    last_modified: str | None
    depth: int
    due: float | None
    """Fixed time of the next fetch, or None if the time depends on the page's change rate."""
    verdict: str | None
    """Outcome of the last completed fetch."""
    duplicate_of: str | None
    target: str | None
    """Redirect target of the last fetch."""
    hint: str | None
    scores: dict[str, Any] | None
    found_by: str
    policy_by: str | None
    noise: list[str] = []
    """Lines of the page that do not count as changes, because they differ at every visit."""
    metadata: dict[str, Any] | None = None
    """Metadata of the newest copy, each entry with its source, or None if `content.metadata` is off."""


def pages(store: FrontierStore, *, site: str | None = None, state: State | None = None) -> Iterator[PageAnswer]:
    """Yield one row per known URL, site by site.

    If `state` is failed, also yield the never-crawled URLs of unreachable sites, with the reason in `error`.

    Raises
    ------
    InputError
        if `site` is not known.
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
                    yield msgspec.structs.replace(page_of(each.site, record), error=error)


def page_of(site: str, record: PageRecord) -> PageAnswer:
    """Convert the stored record of a page into a row."""
    recorded = Provenance.decode(record.provenance)
    topic = None
    if record.scores:
        similarity, links = (*record.scores, None)[:2]
        topic = {"similarity": similarity, "links_from_hot": links}
    shown = {
        "site": site,
        "scores": topic,
        "found_by": recorded.arrival,
        "policy_by": recorded.cause if record.provenance else None,
        "noise": [each.sample for each in decode(record.noise) if each.sample],
        "metadata": _metadata(record.metadata) if record.metadata else None,
    }
    return msgspec.convert(msgspec.structs.asdict(record) | shown, PageAnswer)


def _metadata(data: bytes) -> dict[str, Any] | None:
    from webfountain.formats.page_metadata import kept_metadata  # noqa: PLC0415  (15 ms, for few collections)

    found = kept_metadata(data)
    return None if found is None else msgspec.to_builtins(found)


def sites(store: FrontierStore) -> Iterator[dict[str, Any]]:
    """Yield one row per site, sorted by name."""
    return map(site_of_record, every_site(store))


def site_of_record(record: SiteRecord) -> dict[str, Any]:
    """Convert the stored record of a site into a row."""
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
