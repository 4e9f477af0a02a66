"""What travels through the rooms: links, page records, leases, outcomes, site records, fetches.

All are frozen msgspec structs. Times are UTC seconds (float) or None. A page's identity within its site is
`key`: eight bytes of its canonical URL, or Scrapy's request fingerprint when another project's requests are
scheduled. DESIGN.md section 3 tells the walk, section 7 the words of states and outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (msgspec reads the types of fields)
from typing import Any, Final, Literal

import msgspec

from webfountain.urls import from_header

__all__ = [
    "FETCHED",
    "NEVER_BUCKET",
    "STATES",
    "CensusRow",
    "Change",
    "ChangeVerdict",
    "Copy",
    "Discovered",
    "Fetch",
    "FetchKind",
    "Fetched",
    "Lease",
    "LeaseId",
    "Link",
    "Linked",
    "Move",
    "Outcome",
    "OutcomeKind",
    "PageRecord",
    "Settled",
    "SiteLease",
    "SiteRecord",
    "SiteState",
    "State",
]

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
FETCHED: Final[frozenset[OutcomeKind]] = frozenset(
    {"new", "changed", "minor", "same", "not_modified", "redirected", "gone", "failed"}
)
"""Outcomes of a real fetch, whose sum is `pages_fetched`; a refusal (robots.txt, an edited policy) asked nothing."""

ChangeVerdict = Literal[
    "new", "changed", "minor", "returned", "gone", "redirected", "refused", "duplicate", "forgotten", "evicted"
]
"""What an entry of the change log says of its page; the list is open."""
FetchKind = Literal["page", "robots", "sitemap"]
NEVER_BUCKET: Final = 128
"""Bucket byte of a page before its first copy when the collection gives no prior."""


class Copy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the newest body lies: WARC file number and byte range of its response record, and in whose repository."""

    file: int
    offset: int
    length: int
    repository: int = 0
    """Number of the repository that the file is in: 0 is the crawl's own."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A URL on its way to the store: a seed, a link of a page, a redirect's target, a sitemap's entry.

    `source` is the canonical URL of the page that carried it, "" for seeds, sitemaps and other arrivals from
    outside (`nconst` of the model counts those). `importance` names its lane of the never-crawled queue
    (`store.contract.class_of`). `request` is another project's Scrapy request as msgpack, None for our own.
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
    """The trust that its policy or the page that links it gives it, 0 to 1."""
    scores: tuple[float, ...] = ()
    """As `PageRecord.scores`, by the words of the link and its URL."""
    anchor: str = ""
    """What the page writes on it, where the policy asks for that (`Judge.follows_topics`)."""


class Linked(msgspec.Struct, frozen=True, gc=False):
    """A page as it was fetched `at`, and where it leads. `again`: it was fetched well before.

    `links` are followed; what its author takes back (`nofollow`) and what policy or detector leave out (`unfollowed`)
    is logged only.
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
    """All that is known of one URL. New fields go to the end with a default: records grow by version."""

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
    """The last 24 checks: interval and changed flag, quantised (`core.change_rate`)."""
    failures: int = 0
    """Tries in a row that gave no copy (gone, failed, refused): the exponent of the back-off."""
    due: float | None = None
    """An explicit time of the next fetch: retries, and pages made due by a sitemap or `now`. None: by bucket."""
    copy: Copy | None = None
    request: bytes | None = None
    verdict: OutcomeKind | None = None
    """Outcome of the last settled fetch (`texts` prints it)."""
    copied: float | None = None
    """Time of the fetch that brought the newest copy (first, changed or minor)."""
    immediate: int | None = None
    """Its place in the immediate lane of its site, which the store gives; None: it stands in another lane."""
    scores: tuple[float, ...] = ()
    """Under a policy with a topic: its similarity to it, by its text or, before it was fetched, by the words of links
    and URL, and by how many links it was found from a page on topic; () where nothing of it is known."""
    sketch: bytes | None = None
    """A sketch of the newest copy's text (`core.resemblance`): what tells a change where the old text cannot be read.
    Kept while ants write where not all others can read."""
    trust: float = 0.0
    """The trust that it came with, 0 to 1: what its links inherit of."""
    duplicate_of: str | None = None
    """URL of the page that this one repeats, its representative, as it was found when this one was fetched last."""
    source: bytes = b""
    """The page that it was discovered through: eight bytes of its URL, then its site where that is another (`Link`)."""


class Discovered(msgspec.Struct, frozen=True, gc=False):
    """Of a batch of links: how many became known by it, how many were known before, also earlier in the batch."""

    new: int
    known: int
    repeated: tuple[int, ...] = ()
    """The places of these among the links, ascending, as a store tells them."""


class LeaseId(msgspec.Struct, frozen=True, gc=False):
    """Names the lease of a URL: its site, the site lease it was taken under, and a number that is never given twice."""

    site: str
    token: int
    number: int


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to fetch one URL, until it is settled or released, or the site lease that it was taken under ends."""

    id: LeaseId
    key: bytes
    record: PageRecord

    @property
    def site(self) -> str:
        """The site of the URL."""
        return self.id.site


class Move(msgspec.Struct, frozen=True, gc=False):
    """A copy that the repository's compaction wrote anew: the page's record follows if it still names `old`."""

    site: str
    key: bytes
    old: Copy
    new: Copy


class Fetch(msgspec.Struct, frozen=True):
    """One request that the ant wants made now: a leased page, a site's robots.txt or sitemap.

    `address` is the IP that the site's politeness was counted for. Where it does not answer the downloader tries
    the `fallbacks`, other addresses of the host, and asks none before politeness there allows it. `etag` and
    `last_modified` make the request conditional. `lease` is None for robots.txt and sitemaps.
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


class Fetched(msgspec.Struct, frozen=True):
    """What came of a fetch: a status with headers and body, or an error word (never both).

    `headers` has lower-case names, in order of arrival; `body` is after content decoding. `seconds` is the
    time from request to last byte, `at` when it ended. `error` is one of: dns, private-address, connect,
    timeout, too-slow, headers-too-large, too-large, bomb, cut, bad-response, content-type, network, lapsed
    (the process could not tell in time that it lives: its lease may be another's).
    `request_headers` are those that were sent (for the WARC request record), `address` is the one that they were sent
    to, None where it is not known.
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
    """What a robots.txt says that binds us (bytes), or a sitemap (`SitemapFile`, or in a word why it cannot be read),
    where that was read apart; None: whoever needs it reads `body`."""

    def header(self, name: str) -> str | None:
        """The first value of a header, its name in lower case; None when absent."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def location(self) -> str | None:
        """Where a redirect leads, as it stands in the header and as browsers read it; None when absent."""
        location = self.header("location")
        return None if location is None else from_header(location)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of a lease: the record to keep, and what the census counts.

    `seconds` is the crawl time that the page took of its site (fetch and politeness are separate: only the fetch),
    `links_new` the number of never-seen URLs that its links brought (oldnwt, newnwt of the model).
    """

    lease: LeaseId
    kind: OutcomeKind
    record: PageRecord
    seconds: float = 0.0
    links_new: int = 0
    title: str | None = None
    """Title of the new copy, for the change log, as the next three."""
    resemblance: float | None = None
    """Of the new copy's text to the one before, where it was computed."""
    target: str | None = None
    """Where a redirect leads."""
    diff: str | None = None
    """Unified diff of the two texts, where the collection asks for it."""


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of the change log: what became of a page, for those who consume the collection.

    `digest` is the new copy's (None: the page is no longer to be held), `before` that of the one before. Entries are
    numbered in the order of their steps; `at` is the time of the step.
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
    """Where a redirect leads; of a duplicate its representative."""
    diff: str | None = None


class Settled(msgspec.Struct, frozen=True, gc=False):
    """Of a batch of outcomes: how many took effect, how many named a lease that was lost or settled before."""

    applied: int
    lost: int


class SiteState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the ant must remember of a site between two visits and across restarts: politeness, robots, sitemaps."""

    next_at: float = 0.0
    """No request before this time."""
    failures: int = 0
    """Site-wide refusals in a row (429, 503, no connection): the exponent of the site's back-off."""
    robots: bytes | None = None
    """Newest robots.txt body, at most 500 KiB; None: allow all."""
    robots_at: float | None = None
    """When robots.txt was last answered or tried; None: never."""
    robots_ok: bool = True
    """False: 5xx or unreachable, everything is refused until a retry succeeds (RFC 9309 section 2.3.1.4)."""
    robots_failures: int = 0
    crawl_delay: float = 0.0
    sitemaps: tuple[tuple[str, float], ...] = ()
    """Sitemap URL and when it was last read (0.0: never)."""
    changes: int = 0
    """Changes that counted, over all pages of the site: with `watched` the prior of its pages' change rates."""
    watched: float = 0.0
    """Seconds between checks, summed over all checks of the site's pages."""


class SiteRecord(msgspec.Struct, frozen=True, gc=False):
    """One site as the store knows it: pages by state (STATES order), when its next URL is due, the ant's memory."""

    site: str
    pages: tuple[int, ...]
    due: float
    first_seen: float
    state: SiteState = SiteState()
    owner: str | None = None
    """Who has the site now; None: it is on nobody's active list."""
    immediate: int = 0
    """URLs in its immediate lane, leased ones included."""
    epoch: int = 0
    """The ranking by which its never-crawled queue is in order (`regrade`); 0: as its links came."""
    learned: bytes = b""
    """What was learned of its pages and is kept with each settle; only who wrote it can read it."""


class SiteLease(msgspec.Struct, frozen=True, gc=False):
    """The right to crawl a site, from `activate` until it is parked or taken over.

    From `until` on another may take the site over, which gives it a greater `token`: the *fencing token*, which every
    step on the site names. `record` is the site as it was when the lease began.
    """

    site: str
    token: int
    until: float
    record: SiteRecord
    lost_by: str | None = None
    """Who had the site until its lease ran out, where it was taken over and not parked."""


class CensusRow(msgspec.Struct, frozen=True, gc=False):
    """One bucket in one time period, or the never-crawled pages of one period (bucket None).

    For a bucket: `fetches` are checks of old pages (x of the model), `changes` those found changed, `seconds`
    their crawl time, `links` the new URLs they brought, `births` first copies put into this bucket (p[i]),
    `watched` the seconds since the check before, summed (a[i]: changes seen in what time).
    For bucket None: `fetches`, `seconds`, `links` of first fetches, `births` URLs from outside (nconst).
    """

    period: int
    bucket: int | None
    fetches: int = 0
    changes: int = 0
    seconds: float = 0.0
    links: int = 0
    births: int = 0
    watched: float = 0.0
