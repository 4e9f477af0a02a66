"""The values for the pages about sites: the list of sites, one site, and the list of a site's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from webfountain.core.buckets import interval_of
from webfountain.history.live import STALE_S
from webfountain.records import STATES, State
from webfountain.service.pages.charts import histogram
from webfountain.service.pages.rendering import wait_words
from webfountain.service.problems import ProblemError
from webfountain.store.site_orders import SiteOrder  # noqa: TC001  (msgspec reads it)
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.answers import PageAnswer, SiteAnswer
    from webfountain.api.collection import StoredCollection
    from webfountain.history.live import LiveSite

__all__ = [
    "PagesPageQuery",
    "SiteForm",
    "SitePageQuery",
    "SitesPageQuery",
    "act_on_site",
    "is_listed",
    "pages_page",
    "part_of_sites",
    "site_page",
    "sites_page",
]

_ROWS: Final = 100
_SAMPLE: Final = 1000
"""Maximum number of pages that are read for the summary of a site."""
_INTERVALS: Final = {
    "1 min": 60.0, "10 min": 600.0, "1 h": 3600.0, "6 h": 21_600.0, "1 d": 86_400.0, "7 d": 604_800.0,
    "31 d": 2_678_400.0, "1 year": 31_622_400.0,
}  # fmt: skip
"""Maps the label of each bar in a histogram to the longest change interval that the bar counts, in seconds."""


class SitesPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page with the list of sites."""

    after: Annotated[str, Meta(max_length=2100)] = ""
    only: Literal["", "failing", "waiting"] = ""
    sort: SiteOrder = "name"


class SitePageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page about one site."""

    site: Annotated[str, Meta(min_length=1, max_length=2000)]


class SiteForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The buttons on the web page about one site."""

    site: Annotated[str, Meta(min_length=1, max_length=2000)]
    act: Literal["block", "unblock", "forget"]
    sure: Literal["", "yes"] = ""


class PagesPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page with the list of a site's pages."""

    site: Annotated[str, Meta(min_length=1, max_length=2000)]
    state: Literal["", "never-crawled", "crawled", "redirected", "gone", "refused", "failed"] = ""
    after: Annotated[str, Meta(max_length=20_000)] = ""


class SiteRow(NamedTuple):
    """A site, and the reason why the crawl does not request its pages now."""

    site: SiteAnswer
    reason: str
    until: float | None


def sites_page(collection: StoredCollection, query: SitesPageQuery) -> Mapping[str, Any]:
    """Return the values for the list of sites. If the list is filtered, at most 1000 sites are read for one request."""
    at, live = _live(collection)
    rows, place = _rows(collection, query, live, at)
    return {"rows": rows, "next": place, "filters": msgspec.structs.asdict(query)}


def site_page(collection: StoredCollection, query: SitePageQuery) -> Mapping[str, Any]:
    """Return the values for the web page about one site. The summary covers at most 1000 pages of the site."""
    found = collection.site(query.site)
    if found is None:
        raise ProblemError(404, "unknown-site", "this site is not known here")
    at, live = _live(collection)
    here = live.get(query.site)
    pages, more = collection.pages(query.site, limit=_SAMPLE)
    fetched = sorted((page for page in pages if page.last_crawled), key=lambda page: -(page.last_crawled or 0))
    intervals = _intervals(pages, collection.details.fastest_s)
    reason, until = _reason(found, here, at)
    return {
        "site": found,
        "active": here,
        "blocked": any(site_of(each.prefix) == query.site for each in collection.blocks()),
        "reason": reason,
        "until": until,
        "robots": collection.details.robots(query.site),
        "fetched": fetched[:50],
        "waiting": collection.details.waiting(query.site),
        "intervals": intervals,
        "histogram": histogram("Number of pages by the time between two changes", intervals),
        "sections": collection.details.sections(query.site),
        "is_sample": more is not None,
        "sampled": len(pages),
    }


def pages_page(collection: StoredCollection, query: PagesPageQuery) -> Mapping[str, Any]:
    """Return the values for the list of a site's pages."""
    state: State | None = query.state or None
    rows, more = collection.pages(query.site, state=state, after=query.after, limit=_ROWS)
    return {"rows": rows, "next": more, "site": query.site, "state": query.state, "states": STATES}


def act_on_site(collection: StoredCollection, form: SiteForm) -> Mapping[str, Any]:
    """Block a site, end its block, or make the crawl forget it."""
    if form.act == "block":
        collection.block(form.site)
        return {"done": "The site is not fetched until it is unblocked. Its known pages stay."}
    if form.act == "unblock":
        collection.unblock(form.site)
        return {"done": "The site is fetched again."}
    if not form.sure:
        return {"problem": "The site was not forgotten: tick the box beside the button first."}
    collection.forget(site=form.site)
    return {"done": "The site is forgotten within a second, if a crawl runs."}


def _live(collection: StoredCollection) -> tuple[float, dict[str, LiveSite]]:
    snapshots = collection.live()
    at = max((each.at for each in snapshots), default=0.0)
    recent = [each for each in snapshots if at - each.at < STALE_S]
    return at, {site.site: site for each in recent for site in each.live}


def _rows(
    collection: StoredCollection, query: SitesPageQuery, live: Mapping[str, LiveSite], at: float
) -> tuple[list[SiteRow], str | None]:
    """Return the next rows of the list of sites, and the cursor after them (None at the end)."""
    rows, place, unread = list[SiteRow](), query.after, _SAMPLE if query.only else _ROWS
    while unread > 0 and len(rows) < _ROWS:
        found, more = part_of_sites(collection, query.sort, after=place, limit=_ROWS)
        rows += [
            SiteRow(each, *_reason(each, live.get(each.site), at)) for each in found if is_listed(each, query.only)
        ]
        if more is None:
            return rows, None
        place, unread = more, unread - _ROWS
    return rows, place


def part_of_sites(
    collection: StoredCollection, order: SiteOrder, *, after: str, limit: int
) -> tuple[list[SiteAnswer], str | None]:
    """Return up to `limit` sites after a cursor, and the cursor for the next sites (None at the end). If the sites are
    sorted by name, the cursor is the name of a site."""
    if order != "name":
        return collection.sorted_sites(order, after=after, limit=limit)
    found = collection.sites(after=after, limit=limit)
    return found, found[-1].site if len(found) == limit else None


def is_listed(site: SiteAnswer, only: str) -> bool:
    """Return whether a site matches the filter `only`: `failing`, `waiting`, or "" for all sites."""
    if only == "failing":
        return bool(site.error or site.failures)
    return only != "waiting" or bool(site.pages.get("never-crawled"))


def _reason(site: SiteAnswer, here: LiveSite | None, at: float) -> tuple[str, float | None]:
    """Return why nothing is requested from a site now, and until when."""
    if here is not None:
        return wait_words(here.reason, here.word), here.until
    if site.error:
        return f"not reached ({site.error})", site.next_at
    if site.owner:
        return f"crawled by {site.owner}", None
    if site.due is None or (at and site.due > at):
        return "nothing is due", site.due
    if site.next_at > at > 0:
        return wait_words("polite"), site.next_at
    return "waits for a place in the active list", None


def _intervals(pages: list[PageAnswer], fastest_s: float) -> list[tuple[str, int]]:
    """Return the number of crawled pages for each bar of the histogram of change intervals."""
    counts = dict.fromkeys((*_INTERVALS, "longer"), 0)
    for page in pages:
        if page.state == "crawled":
            seconds = interval_of(page.bucket, fastest_s)
            counts[next((name for name, limit in _INTERVALS.items() if seconds <= limit), "longer")] += 1
    return list(counts.items())
