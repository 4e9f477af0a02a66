"""The records that pass through the packages: links, page records, leases, outcomes, site records, fetches.

All records are frozen msgspec structs. Times are UTC seconds (float) or None. Within its site, a page is identified by
`key`: eight bytes of its canonical URL, or Scrapy's request fingerprint for the requests of another project.
docs/architecture.md describes the walk of a URL, docs/pages.md states and outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (msgspec reads the types of fields)
from typing import Any, Final, Literal

import msgspec

from webfountain.urls import from_header

__all__ = [
    "ANSWERED",
    "COPIED",
    "FETCHED",
    "LOST_LIFE",
    "NEVER_BUCKET",
    "STATES",
    "CensusRow",
    "Change",
    "ChangeVerdict",
    "Copy",
    "DiscoverResult",
    "Fetch",
    "FetchKind",
    "FetchResult",
    "Hint",
    "Lease",
    "LeaseId",
    "Link",
    "LinkedPage",
    "Move",
    "Outcome",
    "OutcomeKind",
    "PageRecord",
    "SettleResult",
    "SiteLease",
    "SiteRecord",
    "SiteState",
    "State",
]

LOST_LIFE: Final = "a lost life"
"""Stands for the name of an unknown ant: the ant that had a site when its store's server went back in time
(`store/shared/lives.py`)."""

State = Literal["never-crawled", "crawled", "redirected", "gone", "refused", "failed"]
STATES: Final[tuple[State, ...]] = ("never-crawled", "crawled", "redirected", "gone", "refused", "failed")

OutcomeKind = Literal[
    "new",
    "changed",
    "minor",
    "same",
    "not_modified",
    "redirected",
    "gone",
    "failed",
    "refused_by_robots",
    "refused",
]
COPIED: Final[frozenset[Literal["new", "changed", "minor"]]] = frozenset({"new", "changed", "minor"})
"""Outcomes with a body that differs from the copy. The body is examined and becomes the copy."""
ANSWERED: Final[frozenset[OutcomeKind]] = COPIED | {"same", "not_modified"}
"""Outcomes after which the page is held."""
FETCHED: Final[frozenset[OutcomeKind]] = ANSWERED | {"redirected", "gone", "failed"}
"""Outcomes of a real fetch; their sum is `pages_fetched`. A refusal (robots.txt, an edited policy) sent no request."""

ChangeVerdict = Literal[
    "new", "changed", "minor", "returned", "gone", "redirected", "refused", "duplicate", "forgotten", "evicted"
]
"""Verdicts of change-log entries. More may be added."""
FetchKind = Literal["page", "robots", "sitemap"]
Hint = Literal["javascript", "login", "consent"]
"""The reason why a copy may be incomplete: scripts draw the page, it requires a login, or it asks for consent first."""
NEVER_BUCKET: Final = 128
"""Bucket byte of a page before its first copy if the collection has no prior."""


class Copy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Location of the newest body: WARC file number, byte range of its response record, and repository."""

    file: int
    offset: int
    length: int
    repository: int = 0
    """Number of the repository that contains the file; 0 is the crawl's own."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A URL on its way to the store: a seed, a link of a page, a redirect's target, an entry of a sitemap.

    `source` is the canonical URL of the linking page, or "" for URLs from outside such as seeds and sitemaps (the model
    counts these as `nconst`). `importance` chooses the lane of the never-crawled queue (`store.contract.class_of`).
    `request` is another project's Scrapy request as msgpack, None for our own.
    """

    url: str
    site: str
    key: bytes
    depth: int = 0
    policy: str = "default"
    importance: float = 0.0
    source: str = ""
    request: bytes | None = None
    trust: float = 0.0
    """Trust from its policy or the linking page, 0 to 1."""
    scores: tuple[float, ...] = ()
    """As `PageRecord.scores`, but computed from the words of the link and its URL."""
    anchor: str = ""
    """Text of the link, if the policy needs it (`Judge.follows_topics`)."""
    provenance: bytes = b""
    """See `PageRecord.provenance`."""
    hops: int = 0
    """See `PageRecord.hops`."""


class LinkedPage(msgspec.Struct, frozen=True, gc=False):
    """A fetched page and its links. `at` is the time of the fetch. `again` is True if the page had been fetched before.

    `links` are followed. Two kinds of links are only logged: links with nofollow (`nofollow`), and links that the
    policy or the duplicate detector leaves out (`unfollowed`).
    """

    page: PageRecord
    site: str
    links: Sequence[Link]
    at: float
    again: bool
    redirected: bool = False
    nofollow: Sequence[Link] = ()
    unfollowed: Sequence[Link] = ()


class PageRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Everything that is known about one URL. New fields are added at the end with a default, so that older records
    can be read."""

    url: str
    state: State = "never-crawled"
    policy: str = "default"
    importance: float = 0.0
    bucket: int = NEVER_BUCKET
    checks: int = 0
    changes: int = 0
    first_seen: float = 0.0
    last_crawled: float | None = None
    last_changed: float | None = None
    status: int | None = None
    error: str | None = None
    digest: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    depth: int = 0
    history: bytes = b""
    """The last 24 checks: interval and changed flag, rounded (`core.change_rate`)."""
    failures: int = 0
    """Number of consecutive fetches without a copy (gone, failed, refused): the exponent of the back-off."""
    due: float | None = None
    """Time of the next fetch, if a retry, a sitemap or `now` has set it. None means that the bucket decides."""
    copy: Copy | None = None
    request: bytes | None = None
    verdict: OutcomeKind | None = None
    """Outcome of the last settled fetch (`texts` prints it)."""
    copied: float | None = None
    """Time of the fetch that brought the newest copy (first, changed or minor)."""
    immediate: int | None = None
    """Position in the immediate lane of its site, assigned by the store. None if it is in another lane."""
    scores: tuple[float, ...] = ()
    """Two numbers under a policy with a topic: the similarity of the page's text to the topic (before the page was
    fetched, of the words of its links and URL), and the number of links from the nearest page on topic. () if nothing
    is known.
    """
    sketch: bytes | None = None
    """Sketch of the newest copy's text (`core.sketch`). It is used to detect changes if the old text cannot be read, so
    it is kept while some ants write to folders that others cannot read.
    """
    trust: float = 0.0
    """Trust of the page, 0 to 1, which its links inherit."""
    duplicate_of: str | None = None
    """URL of the page that this page repeats, as found at the last fetch."""
    source: bytes = b""
    """The page through which this one was found: its eight-byte key, and its site if that differs (`Link`)."""
    target: str | None = None
    """Canonical URL to which the last fetch was redirected; None: the fetch was not redirected."""
    hint: Hint | None = None
    """Why the newest copy may lack what a browser or a member would see; None: nothing known is missing."""
    provenance: bytes = b""
    """How the page was discovered and which rule gave it its policy (`policy.provenance`); b"": not recorded."""
    hops: int = 0
    """Number of consecutive redirects that led to the page."""
    counted: bytes = b""
    """Stamp of the rules by which the newest copy was judged (four bytes), and a digest of the part of the copy that
    counts (eight bytes); b"": the whole page was judged (`policy.counting`)."""
    noise: bytes = b""
    """The places of the page that differ between visits (`core.noise`)."""
    metadata: bytes = b""
    """Metadata of the newest copy, as msgpack of `formats.page_metadata`; b"": not requested, or none."""


class DiscoverResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a batch of links: how many are new, and how many were known (also from earlier in the batch)."""

    new: int
    known: int
    repeated: tuple[int, ...] = ()
    """Positions of the known links in the batch, ascending."""


class LeaseId(msgspec.Struct, frozen=True, gc=False):
    """Name of a URL's lease: the URL's site, the token of the site lease, and a number that is never used twice."""

    site: str
    token: int
    number: int


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to fetch one URL until it is settled or released, or until its site lease ends."""

    id: LeaseId
    key: bytes
    record: PageRecord

    @property
    def site(self) -> str:
        """The site of the URL."""
        return self.id.site


class Move(msgspec.Struct, frozen=True, gc=False):
    """A copy that the repository moved during compaction. Its record is updated if it still names `old`."""

    site: str
    key: bytes
    old: Copy
    new: Copy


class Fetch(msgspec.Struct, frozen=True):
    """One request to make now: a leased page, a site's robots.txt or a sitemap.

    `address` is the IP address whose politeness allowed the request. If it does not answer, the downloader tries the
    `fallbacks`, which are other addresses of the host. It uses each of them only when politeness for that address
    allows it. `etag` and `last_modified` make the request conditional. `lease` is None for robots.txt and sitemaps.
    """

    id: int
    kind: FetchKind
    url: str
    site: str
    address: str | None
    lease: Lease | None = None
    etag: str | None = None
    last_modified: str | None = None
    fallbacks: tuple[str, ...] = ()


class FetchResult(msgspec.Struct, frozen=True):
    """Result of a fetch: a status with headers and body, or an error word (never both).

    `headers` has lower-case names, in order of arrival; `body` is after content decoding. `seconds` is the time from
    the request to the last byte, and `at` is the time of the last byte. `error` is one of: dns, private-address,
    connect, tls, certificate, timeout, too-slow, headers-too-large, too-large, bomb, cut, bad-response, content-type,
    content-coding, network, lapsed (the lease may have ended during the fetch). `request_headers` are the headers that
    were sent (for the WARC request record), and `address` is the address to which they were sent, or None.
    """

    fetch: Fetch
    at: float
    seconds: float
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    error: str | None = None
    request_headers: tuple[tuple[str, str], ...] = ()
    address: str | None = None
    reading: Any = None
    """Content of a robots.txt or sitemap that was parsed in another thread: the binding part (bytes), a `SitemapFile`,
    or an error word. None means that `body` is still to be parsed.
    """

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None. `name` is in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def location(self) -> str | None:
        """Return the target of a redirect, read from the header as browsers do, or None."""
        location = self.header("location")
        return None if location is None else from_header(location)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """End of a lease: the record to keep, and numbers for the census.

    `seconds` is the duration of the fetch. `links_new` is the number of new URLs that the page's links brought (oldnwt,
    newnwt of the model).
    """

    lease: LeaseId
    kind: OutcomeKind
    record: PageRecord
    seconds: float = 0.0
    links_new: int = 0
    title: str | None = None
    """Title of the new copy. This field and the next three are for the change log."""
    resemblance: float | None = None
    """Resemblance of the new copy's text to the previous copy's text, if it was computed."""
    target: str | None = None
    """Target of a redirect."""
    diff: str | None = None
    """Unified diff of the two texts, if the collection keeps diffs."""


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of the change log: what happened to a page, for consumers of the collection.

    `digest` is the digest of the new copy (None: remove the page), and `before` is the digest of the previous copy.
    Entries are numbered in the order of their steps; `at` is the time of the step.
    """

    sequence: int
    at: float
    site: str
    key: bytes
    url: str
    verdict: ChangeVerdict
    digest: str | None = None
    before: str | None = None
    resemblance: float | None = None
    title: str | None = None
    target: str | None = None
    """Target of a redirect; for a duplicate, the page that it repeats."""
    diff: str | None = None


class SettleResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a batch of outcomes: how many took effect, and how many named a lost or settled lease."""

    applied: int
    lost: int


class SiteState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the ant remembers about a site across visits and restarts: politeness, robots.txt, sitemaps."""

    next_at: float = 0.0
    """Time before which no request is sent."""
    failures: int = 0
    """Number of consecutive refusals by the site (429, 503, no connection): the exponent of its back-off."""
    robots: bytes | None = None
    """Newest robots.txt body, at most 500 KiB; None: allow all."""
    robots_at: float | None = None
    """Time of the last fetch of robots.txt, with or without an answer; None: never."""
    robots_ok: bool = True
    """False after 5xx or no answer: everything is refused until a retry succeeds (RFC 9309 section 2.3.1.4)."""
    robots_failures: int = 0
    crawl_delay: float = 0.0
    sitemaps: tuple[tuple[str, float], ...] = ()
    """Each known sitemap's URL, and the time when the sitemap was last read (0.0: never)."""
    changes: int = 0
    """Number of changes that counted, over all pages of the site. With `observed_time` it gives the prior of the change
    rates of the site's pages.
    """
    observed_time: float = 0.0
    """Seconds between checks, summed over all checks of the site's pages."""
    error: str = ""
    """The reason why the last attempt to reach the site failed: an error word, or the status of its robots.txt; "" if
    the site answered."""
    revived: int = 0
    """Number of pages that had a copy, were gone, and came back."""
    dead_time: float = 0.0
    """Seconds for which these pages were gone, measured from check to check and summed over the pages."""
    born: int = 0
    """Number of URLs that were gone at their first fetch and had a page later."""
    unborn_time: float = 0.0
    """Seconds for which such URLs had no page, measured from check to check and summed over the URLs."""
    unborn: int = 0
    """Number of URLs that were gone at their first fetch."""
    unborn_asked: int = 0
    """Number of later requests of such URLs."""
    unborn_classes: tuple[tuple[str, int, float], ...] = ()
    """Source and directory of some of these URLs, each with its `born` and `unborn_time`."""
    first_fetches: tuple[tuple[str, tuple[float, float]], ...] = ()
    """Number of first fetches that showed whether a URL has a page, and how many of them found one: for the site (""),
    and for each source and directory. Older fetches fade.
    """


class SiteRecord(msgspec.Struct, frozen=True, gc=False):
    """One site as the store knows it: its pages by state (in the order of STATES), the time when its next URL is due,
    and what the ant remembers."""

    site: str
    pages: tuple[int, ...]
    due: float
    first_seen: float
    state: SiteState = SiteState()
    owner: str | None = None
    """The ant that has the site now; None: the site is on no active list."""
    immediate: int = 0
    """Number of URLs in its immediate lane, leased ones included."""
    epoch: int = 0
    """Ranking by which the site's never-crawled queue is ordered (`regrade`); 0: by arrival."""
    learned: bytes = b""
    """What was learned about the site's pages, updated when they are settled; only its writer can read it."""
    changed: float = 0.0
    """Time of the site's newest entry in the change log, UTC seconds; 0.0: no entry is known."""


class SiteLease(msgspec.Struct, frozen=True, gc=False):
    """The right to crawl a site, from `activate` until it is parked or taken over.

    After `until` another ant may take the site over; it gets a greater `token`. Every step on the site contains this
    *fencing token*. `record` is the site's record at the start of the lease.
    """

    site: str
    token: int
    until: float
    record: SiteRecord
    lost_by: str | None = None
    """The ant whose lease expired, if the site was taken over from it instead of parked. `LOST_LIFE`: an unknown ant
    may use the site until `until`, because the store lost some of its steps."""


class CensusRow(msgspec.Struct, frozen=True, gc=False):
    """Counts of one bucket in one time period, or (bucket None) of the never-crawled pages in that period.

    For a bucket: `fetches` are the checks of known pages (x of the model), `changes` the checks that found a change,
    `seconds` the crawl time of the checks, and `links` the new URLs that they brought. `births` are the first copies
    put into this bucket (p[i]). `observed_time` is the sum of the seconds since the previous checks (a[i]: changes seen
    in this time). For bucket None, `fetches`, `seconds` and `links` are those of first fetches, and `births` are the
    URLs from outside (nconst).
    """

    period: int
    bucket: int | None
    fetches: int = 0
    changes: int = 0
    seconds: float = 0.0
    links: int = 0
    births: int = 0
    observed_time: float = 0.0
