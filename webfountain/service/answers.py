"""Types of the service's queries, bodies and answers, in addition to the answers of the Python API."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webfountain.api.answers import (  # noqa: TC001  (msgspec reads them)
    BlockAnswer,
    HistoryAnswer,
    PageAnswer,
    SiteAnswer,
    TextAnswer,
    VersionAnswer,
)
from webfountain.api.changes import PageChangeAnswer  # noqa: TC001
from webfountain.formats.markdown import PageFormat
from webfountain.history.live import LiveSnapshot  # noqa: TC001
from webfountain.records import State  # noqa: TC001
from webfountain.report.last_check import CheckResult  # noqa: TC001
from webfountain.store.site_orders import SiteOrder  # noqa: TC001

__all__ = [
    "MAX_LIMIT",
    "MAX_POLICY",
    "BlockBody",
    "BlocksPart",
    "ChangesPart",
    "ChangesQuery",
    "CollectionEntry",
    "CollectionsAnswer",
    "CompareQuery",
    "CopyQuery",
    "DrainBody",
    "ExplainQuery",
    "ForgetBody",
    "HealthAnswer",
    "HistoryPart",
    "HistoryQuery",
    "LastCheckAnswer",
    "LivePart",
    "LiveQuery",
    "NowBody",
    "PageQuery",
    "PagesPart",
    "PagesQuery",
    "PolicyBody",
    "ReadyAnswer",
    "SearchQuery",
    "SiteQuery",
    "SitesPart",
    "SitesQuery",
    "TextQuery",
    "TextsPart",
    "TextsQuery",
    "UnblockBody",
    "VersionsPart",
    "VersionsQuery",
    "WaitingPart",
]

MAX_LIMIT = 200
MAX_POLICY = 200_000
"""Maximum length of a policy file that the service checks, characters. Longer policy files can be checked with the
command `policy check`. The service needs a limit, because each pattern of a policy file costs about 0.3 ms of CPU time.
"""
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="Maximum number of rows in this part.")]
Url = Annotated[str, Meta(min_length=1, max_length=8000, description="A URL; the service uses its canonical form.")]
Site = Annotated[str, Meta(min_length=1, max_length=2000, description="scheme://host[:port]")]
Cursor = Annotated[str, Meta(max_length=20_000, description="Where to continue: `next` of the previous part.")]
Format = Annotated[PageFormat, Meta(description="Format of the texts; html is the page's own.")]
MainOnly = Annotated[bool, Meta(description="Only the main content: no navigation, banners, teasers and footers.")]
Seconds = Annotated[float, Meta(ge=0, le=1e11, description="UTC seconds.")]


class CollectionEntry(msgspec.Struct, frozen=True):
    """A served collection."""

    name: str
    """Name of the collection in the URLs of the service."""
    available: bool
    problem: str | None
    """Reason why the store cannot be read."""


class CollectionsAnswer(msgspec.Struct, frozen=True):
    """The served collections."""

    items: list[CollectionEntry]


class SitesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the list of sites."""

    sort: SiteOrder = "name"
    """Sort order of the sites, such as `pages` for the sites with the most pages first."""
    after: Annotated[
        str, Meta(max_length=2100, description="`next` of the previous part, or with the order `name` a site.")
    ] = ""
    limit: Limit = 100


class SitesPart(msgspec.Struct, frozen=True):
    """One part of the sorted list of sites. If the position of a site changes between two requests, the site may appear
    twice or not at all."""

    items: list[SiteAnswer]
    next: str | None
    """Value of `after` for the next part, or None if this part is the last."""


class SiteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for one site."""

    site: Site


class PagesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the list of a site's pages."""

    site: Site
    state: State | None = None
    after: Cursor = ""
    limit: Limit = 100


class PagesPart(msgspec.Struct, frozen=True):
    """One part of the list of a site's pages. A part of the list may be empty even if more parts follow."""

    items: list[PageAnswer]
    next: str | None
    """Value of `after` for the next part, or None if this part is the last."""


class PageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for one page."""

    url: Url


class CopyQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for a copy of a page."""

    url: Url
    fetched: Annotated[float | None, Meta(description="`fetched` of a version. Without it: the newest copy.")] = None


class TextQuery(CopyQuery, frozen=True, forbid_unknown_fields=True):
    """Query parameters for a copy of a page as text."""

    format: Format = "text"
    main: MainOnly = False


class VersionsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the kept versions of a page."""

    url: Url
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of versions, the newest first.")] = 20


class VersionsPart(msgspec.Struct, frozen=True):
    """The kept versions of a page, the newest first."""

    items: list[VersionAnswer]


class CompareQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the difference between two versions of a page."""

    url: Url
    old: Annotated[float, Meta(description="`fetched` of a version.")]
    new: Annotated[float, Meta(description="`fetched` of another version.")]
    format: Format = "text"


class WaitingPart(msgspec.Struct, frozen=True):
    """The next never-fetched URLs of a site, in the order of its queue, at most 100."""

    items: list[PageAnswer]


class LastCheckAnswer(msgspec.Struct, frozen=True):
    """The result of the last `webfountain check`."""

    result: CheckResult | None


class ExplainQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the explanation of one URL."""

    url: Url
    linked_by: Annotated[str, Meta(max_length=8000, description="For an unknown URL: the page that links to it.")] = ""


class TextsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the list of texts."""

    since: Cursor = ""
    limit: Limit = 100
    format: Format = "text"
    main: MainOnly = False


class TextsPart(msgspec.Struct, frozen=True):
    """One part of the list of texts."""

    items: list[TextAnswer]
    next: str | None
    """Value of `since` for the next part. If `items` is empty, there are no more texts at the moment."""


class ChangesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for the change log, by poll, long poll or server-sent events."""

    since: Cursor = ""
    after: Annotated[float | None, Meta(description="Start time, UTC seconds, if `since` is empty.")] = None
    feed: Literal["poll", "long", "sse"] = "poll"
    """`poll` answers at once, `long` waits up to `wait` seconds for a change, and `sse` streams server-sent events."""
    site: Annotated[str, Meta(max_length=2000, description="Only changes of this site.")] = ""
    verdict: Annotated[str, Meta(max_length=200, description="Only these verdicts, separated by commas.")] = ""
    prefix: Annotated[str, Meta(max_length=2000, description="Only changes of URLs with this beginning.")] = ""
    least: Annotated[int, Meta(ge=0, le=100, description="Minimum share of the text that changed, %.")] = 0
    limit: Limit = 100
    wait: Annotated[float, Meta(ge=0, le=60, description="Maximum wait of a long poll, s.")] = 30.0


class ChangesPart(msgspec.Struct, frozen=True):
    """One part of the change log."""

    items: list[PageChangeAnswer]
    next: str
    """Value of `since` for the next part."""


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of a full-text search."""

    words: Annotated[
        str, Meta(min_length=1, max_length=1000, description="Words to search for; see the command `search`.")
    ]
    site: Annotated[str, Meta(max_length=2000, description="Only pages of this site.")] = ""
    since: Annotated[float | None, Meta(description="Only pages fetched from this time on, UTC seconds.")] = None
    until: Annotated[float | None, Meta(description="Only pages fetched before this time, UTC seconds.")] = None
    verdict: Annotated[str, Meta(max_length=20, description="Only pages with this last verdict.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Largest number of results; the best come first.")] = 20


class HistoryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for a part of the history."""

    step: Literal["minute", "hour", "day"] = "minute"
    """Length of time that each row covers. The service keeps rows per minute for two days, rows per hour for ninety
    days, and rows per day forever."""
    since: Seconds = 0.0
    until: Seconds | None = None
    limit: Annotated[int, Meta(ge=1, le=3000, description="Maximum number of rows, the newest first.")] = 1500


class HistoryPart(msgspec.Struct, frozen=True):
    """One part of the history, sorted by time."""

    items: list[HistoryAnswer]


class LiveQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters for live snapshots, by poll or server-sent events."""

    feed: Literal["poll", "sse"] = "poll"


class LivePart(msgspec.Struct, frozen=True):
    """The last snapshot of each crawling process."""

    items: list[LiveSnapshot]


class NowBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """URLs to fetch as soon as politeness allows."""

    urls: Annotated[list[Url], Meta(min_length=1, max_length=10_000)]


class ForgetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page or the site to remove permanently. Give exactly one of `url` and `site`."""

    url: Url | None = None
    site: Site | None = None


class BlocksPart(msgspec.Struct, frozen=True):
    """The current blocks, sorted by prefix."""

    items: list[BlockAnswer]


class BlockBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prefix of URLs to block: a site or the beginning of a URL."""

    prefix: Url
    until: Annotated[float | None, Meta(description="End of the block, UTC seconds. Null: until unblocked.")] = None


class UnblockBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The blocked prefix to unblock."""

    prefix: Url


class DrainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The crawling process that must give up its sites and end."""

    ant: Annotated[str, Meta(min_length=1, max_length=500, description="Its name, as in `status` or `live`.")]


class PolicyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy file to check."""

    text: Annotated[str, Meta(max_length=MAX_POLICY, description="TOML.")]
    against: bool = False
    """If True, the policy file is tried on up to 10,000 pages of the collection, and its effect is reported."""


class HealthAnswer(msgspec.Struct, frozen=True):
    """Confirmation that the service is alive."""

    alive: bool


class ReadyAnswer(msgspec.Struct, frozen=True):
    """Answer to a readiness probe: `ready` is True if at least one store can be read."""

    ready: bool
    stores: list[CollectionEntry]
