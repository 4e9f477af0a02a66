"""The records that pass through the packages: links, page records, leases, outcomes, site records, fetches.

All records are frozen msgspec structs. Times are UTC seconds (float) or None. Within its site, a page is identified by
`key`: eight bytes of its canonical URL, or Scrapy's fingerprint for a request of another project. docs/architecture.md
describes the walk of a URL, docs/pages.md states and outcomes.
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
"""Name of an unknown ant. The ant had a site when the data of the store's server was set back
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
"""Outcomes with a body that differs from the copy. The body becomes the copy."""
ANSWERED: Final[frozenset[OutcomeKind]] = COPIED | {"same", "not_modified"}
"""Outcomes after which a page has a current copy."""
FETCHED: Final[frozenset[OutcomeKind]] = ANSWERED | {"redirected", "gone", "failed"}
"""Outcomes of a real fetch; their sum is `pages_fetched`. A refusal by robots.txt or an edited policy sent no
request."""

ChangeVerdict = Literal[
    "new", "changed", "minor", "returned", "gone", "redirected", "refused", "duplicate", "forgotten", "evicted"
]
"""Verdicts of change-log entries. More may be added."""
FetchKind = Literal["page", "robots", "sitemap"]
Hint = Literal["javascript", "login", "consent"]
"""Why a copy may be incomplete: scripts draw the page, it requires a login, or it asks for consent first."""
NEVER_BUCKET: Final = 128
"""Bucket byte of a page before its first copy."""


class Copy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Location of a body: WARC file number, byte range of the response record, and repository."""

    file: int
    offset: int
    length: int
    repository: int = 0
    """Number of the repository that contains the file. 0 is the crawl's own repository."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A URL on its way to the store: a seed, a link of a page, a redirect's target, an entry of a sitemap.

    `source` is the canonical URL of the linking page, or "" for URLs from outside such as seeds and sitemaps (`nconst`
    of the model). `importance` decides the lane in the never-crawled queue (`store.contract.class_of`). `request` is a
    Scrapy request of another project, as msgpack, or None.
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
    """Like `PageRecord.scores`, but computed from the words of the link and its URL."""
    anchor: str = ""
    """Text of the link, if the policy needs it (`Judge.follows_topics`)."""
    provenance: bytes = b""
    """See `PageRecord.provenance`."""
    hops: int = 0
    """See `PageRecord.hops`."""


class LinkedPage(msgspec.Struct, frozen=True, gc=False):
    """A fetched page and its links. `at` is the time of the fetch. `again`: the page had been fetched before.

    `links` are followed. Other links are only logged: those with nofollow (`nofollow`), and those that the policy or
    the duplicate detector excludes (`unfollowed`).
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
    """Everything that is known about one URL. Add new fields at the end with a default, so that older records can be
    read."""

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
    """The last 24 checks: rounded interval and changed flag of each (`core.change_rate`)."""
    failures: int = 0
    """Number of consecutive fetches without a copy (gone, failed, refused). The back-off grows with this number."""
    due: float | None = None
    """Time of the next fetch, if a retry, a sitemap or `now` has set it; None if the bucket decides."""
    copy: Copy | None = None
    request: bytes | None = None
    verdict: OutcomeKind | None = None
    """Outcome of the last settled fetch (`texts` prints it)."""
    copied: float | None = None
    """Time of the fetch that brought the newest copy."""
    immediate: int | None = None
    """Position in the immediate lane of its site; None if the page is not in this lane."""
    scores: tuple[float, ...] = ()
    """Under a policy with a topic: (similarity to the topic, number of links from the nearest page on topic), or ().
    The similarity is that of the page's text or, before the first fetch, of its URL and the words of its links.
    """
    sketch: bytes | None = None
    """Sketch of the newest copy's text (`core.sketch`). The sketch shows changes if the old text cannot be read. It is
    kept only while some ants cannot read the folders of others.
    """
    trust: float = 0.0
    """Trust of the page, 0 to 1, which its links inherit."""
    duplicate_of: str | None = None
    """URL of the page that this page repeats."""
    source: bytes = b""
    """The page through which this one was found (`Link`): its eight-byte key, then its site if that differs."""
    target: str | None = None
    """Canonical URL to which the last fetch was redirected, or None."""
    hint: Hint | None = None
    """Why the newest copy may be incomplete; None if no reason is known."""
    provenance: bytes = b""
    """How the page was discovered, and what gave it its policy (`policy.provenance`). b"": not recorded."""
    hops: int = 0
    """Number of consecutive redirects that led to the page."""
    counted: bytes = b""
    """Stamp of the rules that compared the newest copy (four bytes), and digest of the part that counts (eight bytes).
    b"": the whole page counts (`policy.counting`)."""
    noise: bytes = b""
    """The places of the page that differ between visits (`core.noise`)."""
    metadata: bytes = b""
    """Metadata of the newest copy, as msgpack of `formats.page_metadata`, or b""."""


class DiscoverResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a batch of links: how many URLs are new, and how many were known or repeated in the batch."""

    new: int
    known: int
    repeated: tuple[int, ...] = ()
    """Positions of the known links in the batch, ascending."""


class LeaseId(msgspec.Struct, frozen=True, gc=False):
    """Identity of a URL's lease: its site, the token of the site lease, and a number that is never used again."""

    site: str
    token: int
    number: int


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to fetch one URL. The lease ends when the URL is settled or released, or with the site lease."""

    id: LeaseId
    key: bytes
    record: PageRecord

    @property
    def site(self) -> str:
        return self.id.site


class Move(msgspec.Struct, frozen=True, gc=False):
    """A copy that the repository moved during compaction. The page's record changes if it still names `old`."""

    site: str
    key: bytes
    old: Copy
    new: Copy


class Fetch(msgspec.Struct, frozen=True):
    """One request to make now: a leased page, a site's robots.txt or a sitemap.

    `address` is the IP address whose politeness allowed the request. If the address does not answer, the `fallbacks`
    are tried, which are other addresses of the host. Each fallback is tried only when its own politeness allows it.
    `etag` and `last_modified` make the request conditional. `lease` is None for robots.txt and sitemaps.
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
    """Result of a fetch: a status with headers and body, or an error word.

    `headers` has lower-case names, in order of arrival; `body` is after content decoding. `seconds` is the time from
    the request to the last byte, and `at` the time of that byte. `error` is one of: dns, private-address, connect, tls,
    certificate, timeout, too-slow, headers-too-large, too-large, bomb, cut, bad-response, content-type, content-coding,
    network, lapsed (the lease may have ended during the fetch). `request_headers` were sent to `address`.
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
    """Content of a robots.txt or sitemap that another thread has parsed: the binding part (bytes), a `SitemapFile`, or
    an error word. None: `body` is not parsed yet.
    """

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None. `name` is in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def location(self) -> str | None:
        """Return the target of a redirect, read from the header as browsers do. None without a target."""
        location = self.header("location")
        return None if location is None else from_header(location)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """End of a lease: the new record of the page, and numbers for the census.

    `seconds` is the duration of the fetch. `links_new` is the number of new URLs among the page's links (oldnwt, newnwt
    of the model).
    """

    lease: LeaseId
    kind: OutcomeKind
    record: PageRecord
    seconds: float = 0.0
    links_new: int = 0
    title: str | None = None
    """Title of the new copy. This field and the next three are for the change log."""
    resemblance: float | None = None
    """Resemblance of the new text to the previous text; None if it was not computed."""
    target: str | None = None
    """Target of a redirect."""
    diff: str | None = None
    """Unified diff of the two texts, if the collection keeps diffs."""


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of the change log: what happened to a page, for consumers of the collection.

    `digest` is that of the new copy (None: remove the page), `before` that of the previous copy. `sequence` numbers the
    entries in order; `at` is their time.
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
    """Target of a redirect, or the page that a duplicate repeats."""
    diff: str | None = None


class SettleResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a batch of outcomes: how many took effect, and how many had a lost or settled lease."""

    applied: int
    lost: int


class SiteState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What ants remember about a site across visits and restarts: politeness, robots.txt, sitemaps."""

    next_at: float = 0.0
    """Time before which no request is sent."""
    failures: int = 0
    """Number of consecutive refusals by the site (429, 503, no connection). The back-off grows with this number."""
    robots: bytes | None = None
    """Newest robots.txt body, at most 500 KiB; None if everything is allowed."""
    robots_at: float | None = None
    """Time of the last fetch of robots.txt, with or without an answer; None: never."""
    robots_ok: bool = True
    """False after 5xx or no answer. Everything is refused then, until a retry succeeds (RFC 9309 section 2.3.1.4)."""
    robots_failures: int = 0
    crawl_delay: float = 0.0
    sitemaps: tuple[tuple[str, float], ...] = ()
    """Each known sitemap: its URL, and the time when it was last read (0.0: never)."""
    changes: int = 0
    """Number of changes that counted, over all pages of the site. With `observed_time` it gives the prior for the
    change rates of the site's pages.
    """
    observed_time: float = 0.0
    """Time between checks, summed over all checks of the site's pages, s."""
    error: str = ""
    """Why the last attempt to reach the site failed: an error word or the status of its robots.txt. "": the site
    answered."""
    revived: int = 0
    """Number of pages that were gone and came back."""
    dead_time: float = 0.0
    """Time for which these pages were gone, from check to check, summed, s."""
    born: int = 0
    """Number of URLs that were gone at their first fetch and had a page later."""
    unborn_time: float = 0.0
    """Time for which URLs gone at their first fetch had no page, from check to check, summed, s."""
    unborn: int = 0
    """Number of URLs that were gone at their first fetch."""
    unborn_asked: int = 0
    """Number of later requests of such URLs."""
    unborn_classes: tuple[tuple[str, int, float], ...] = ()
    """Source and directory of some URLs gone at their first fetch, each with its `born` and `unborn_time`."""
    first_fetches: tuple[tuple[str, tuple[float, float]], ...] = ()
    """(name, (number of first fetches, number that found a page)) for the site (""), and for each source and directory.
    Older fetches have less weight.
    """


class SiteRecord(msgspec.Struct, frozen=True, gc=False):
    """One site as the store knows it: its pages by state (in the order of STATES), the time when its next URL is due,
    and what ants remember."""

    site: str
    pages: tuple[int, ...]
    due: float
    first_seen: float
    state: SiteState = SiteState()
    owner: str | None = None
    """The ant that has the site now; None if no ant has it."""
    immediate: int = 0
    """Number of URLs in its immediate lane, leased ones included."""
    epoch: int = 0
    """Ranking by which the site's never-crawled queue is ordered (`regrade`). 0: by arrival."""
    learned: bytes = b""
    """What was learned about the site's pages. Only the code that wrote it can read it."""
    changed: float = 0.0
    """Time of the site's newest change-log entry, UTC seconds. 0.0: none is known."""


class SiteLease(msgspec.Struct, frozen=True, gc=False):
    """The right to crawl a site, from `activate` until it is parked or taken over.

    After `until` another ant may take the site over, with a greater `token`. Every step on the site contains this
    *fencing token*. `record` is the site's record at the start of the lease.
    """

    site: str
    token: int
    until: float
    record: SiteRecord
    lost_by: str | None = None
    """The ant from which the site was taken over; None if it was parked. `LOST_LIFE`: an unknown ant may use the site
    until `until`, because the store lost some steps."""


class CensusRow(msgspec.Struct, frozen=True, gc=False):
    """Counts of one bucket in one time period, or of the never-crawled pages (bucket None).

    - `fetches`: checks of known pages (x of the model). Bucket None: first fetches.
    - `changes`: checks that found a change.
    - `seconds`: crawl time of these fetches.
    - `links`: new URLs that they brought.
    - `births`: first copies that were put into this bucket (p[i]). Bucket None: URLs from outside (nconst).
    - `observed_time`: seconds since the previous checks, summed (a[i]). `changes` were found in this time.
    """

    period: int
    bucket: int | None
    fetches: int = 0
    changes: int = 0
    seconds: float = 0.0
    links: int = 0
    births: int = 0
    observed_time: float = 0.0
