"""The answers of the Python API, which the service also sends as JSON.

Times are UTC seconds, possibly with a fraction. A later version of webfountain adds new fields only at the end, with a
default.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from webfountain.formats.markdown import PageFormat  # noqa: TC001
from webfountain.formats.page_metadata import PageMetadata  # noqa: TC001  (msgspec reads the types of fields)
from webfountain.report.pages import PageAnswer

__all__ = [
    "AntAnswer",
    "BlockAnswer",
    "ComparisonAnswer",
    "CopyAnswer",
    "DomainShareAnswer",
    "ExplanationAnswer",
    "HistoryAnswer",
    "NoteAnswer",
    "PageAnswer",
    "PageTextAnswer",
    "PolicyAnswer",
    "RefusedUrl",
    "SiteAnswer",
    "StatusAnswer",
    "TextAnswer",
    "VersionAnswer",
]


class AntAnswer(msgspec.Struct, frozen=True):
    """A process of a crawl on a shared store."""

    name: str
    sites: int
    addresses: int
    in_flight: int
    idle_since: float | None
    """Time when the process ran out of work; None if it has work."""
    load: float
    """CPU time that the process uses, seconds per second."""
    reported_at: float
    """Time of the last heartbeat of the process."""


class BlockAnswer(msgspec.Struct, frozen=True):
    """A prefix of URLs that the crawl does not fetch."""

    prefix: str
    until: float | None
    """Time when the block ends, or None if the block lasts until a user removes it."""


class DomainShareAnswer(msgspec.Struct, frozen=True):
    """How much of the limit on fetches per domain is used. `blocked` is the number of domains that have reached the
    limit in the current time period.
    """

    time: float
    busy: int
    blocked: int
    share: float


class StatusAnswer(msgspec.Struct, frozen=True):
    """State of a collection."""

    store: str
    """URL of the store, without a password."""
    at: float
    crawling: bool
    """True if a crawl has the store open."""
    known: int
    pages: dict[str, int]
    """Number of known URLs in each state."""
    sites: int
    active_sites: int
    in_flight: int
    immediate: int
    """Number of URLs in the immediate queue, which the crawl empties before any other queue."""
    failing: int
    """Number of pages that have a copy but failed at their last fetch."""
    settled_too_late: int
    freshness: float | None
    """Estimated share of the known pages whose copy matches the live page."""
    freshness_low: float | None
    freshness_high: float | None
    """Upper end of the 80 % interval of the freshness; None without a forecast."""
    freshness_cycles: float | None
    """Number of past planning cycles on which the forecast is based."""
    freshness_at: float | None
    limit: str | None
    """What limits the rate of fetches, as the crawl last reported."""
    since: float
    """Time from which `fetches`, `first_fetches`, `changes` and `pages_per_second` are counted, UTC seconds."""
    fetches: int
    first_fetches: int
    changes: int
    pages_per_second: float
    period_s: float
    """Length of each time period of the plan, in seconds."""
    plan: str | None
    """The current plan, in words."""
    domains: DomainShareAnswer | None = None
    ants: list[AntAnswer] | None = None
    """The processes of the crawl; None if only one process can use the store."""


class SiteAnswer(msgspec.Struct, frozen=True):
    """A known site."""

    site: str
    pages: dict[str, int]
    """Number of known URLs in each state."""
    due: float | None
    """Time when the next page of the site is due; None if no page will be due."""
    first_seen: float
    next_at: float
    """Earliest time of the next request to the site."""
    failures: int
    """Consecutive refusals."""
    error: str | None
    """Reason why the last attempt to reach the site failed."""
    robots: str
    """State of the site's robots.txt, in words."""
    robots_at: float | None
    crawl_delay: float
    sitemaps: list[str]
    owner: str | None = None
    """The process that crawls the site now."""
    last_changed: float | None = None
    """Time of the newest change-log entry about the site; None if unknown."""


class CopyAnswer(msgspec.Struct, frozen=True):
    """The newest copy of a page, or an older version."""

    url: str
    fetched: float
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    """Body after content decoding; base64 in JSON."""


class VersionAnswer(msgspec.Struct, frozen=True):
    """A kept version of a page."""

    fetched: float
    """Time of the fetch, which identifies the version."""
    status: int
    size: int
    """Size of the body, bytes."""
    title: str | None


class ComparisonAnswer(msgspec.Struct, frozen=True):
    """The difference between the texts of two versions of a page."""

    url: str
    old: float
    new: float
    diff: str
    """A unified diff, cut to 20 kB. The diff is empty if the texts are equal."""


class PageTextAnswer(msgspec.Struct, frozen=True):
    """A copy of a page as text, Markdown or HTML."""

    url: str
    fetched: float
    status: int
    title: str | None
    format: PageFormat
    text: str
    metadata: PageMetadata


class TextAnswer(msgspec.Struct, frozen=True):
    """The text of a page, for a search index. `text` is None if the page must be removed from the index."""

    url: str
    verdict: str
    fetched: float | None
    title: str | None
    text: str | None
    cursor: str
    """Cursor with which to continue after this text."""


class ExplanationAnswer(msgspec.Struct, frozen=True):
    """Explanation of why a URL has its state or was refused. `why` contains the reasons in sentences."""

    given: str
    url: str | None
    """Canonical form of the URL, or None if the text is not a URL."""
    known: bool
    why: list[str]
    next_visit: float | None = None
    page: dict[str, Any] | None = None
    path: list[Any] = []
    """The path of links from a seed to the URL."""
    verdicts: list[dict[str, Any]] = []
    robots: dict[str, Any] | None = None
    alike: list[str] = []
    """Known URLs that differ from this URL only a little, such as in the scheme or the last slash."""


class HistoryAnswer(msgspec.Struct, frozen=True):
    """What a crawl did in a minute, an hour or a day, and the state of the crawl afterwards."""

    at: float
    """Start of the minute, hour or day, UTC seconds."""
    seconds: float
    """How many seconds of this minute, hour or day a crawl was running."""
    pages: dict[str, int]
    sites: int
    active_sites: int
    outcomes: dict[str, int]
    errors: dict[str, int]
    fetches: int
    planned: float | None
    """Number of fetches that the plan expected in this minute, hour or day."""
    links_new: int
    bytes: int
    freshness: float | None
    freshness_low: float | None
    freshness_high: float | None
    price: float | None
    limits: dict[str, float]
    """Seconds for which each cause limited the rate of fetches."""
    store_bytes: int | None
    repository_bytes: int | None
    ants: int


class RefusedUrl(msgspec.Struct, frozen=True):
    """A URL that was not sent to the crawl, with the reason."""

    url: str
    why: str


class NoteAnswer(msgspec.Struct, frozen=True):
    """Result of a request to the crawl, such as `now` or `forget`. A running crawl carries out the request within a
    second. If no crawl runs, the next crawl carries out the request."""

    note: Literal["now", "forget", "pause", "resume", "block", "unblock", "drain"]
    accepted: list[str]
    """The URLs, site, prefix or process named in the request that was sent to the crawl."""
    refused: list[RefusedUrl] = []


class PolicyAnswer(msgspec.Struct, frozen=True):
    """Meaning of a policy file, and its effect on the collection."""

    valid: bool
    error: str | None = None
    """Error message, which names the key and the value of the policy file."""
    describes: dict[str, Any] | None = None
    rules: list[str] = []
    notes: list[str] = []
    seeds_refused: int = 0
    """Number of seeds that the rules of the same policy file refuse."""
    effect: dict[str, Any] | None = None
