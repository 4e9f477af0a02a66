"""The records that the packages exchange: links, page records, leases, outcomes, site records, fetches.

All records are frozen msgspec structs. Times are UTC seconds (float) or None. The `key` of a page, unique within its
site, is a hash of its canonical URL (eight bytes). For a request of a Scrapy project, the key is Scrapy's fingerprint.
See docs/architecture.md for the way of a URL through the packages, and docs/pages.md for states and outcomes.
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
"""The name of an unknown ant that may still crawl a site after the store's server lost its newest data
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
"""Outcomes after which the fetched body replaces the stored copy."""
ANSWERED: Final[frozenset[OutcomeKind]] = COPIED | {"same", "not_modified"}
"""Outcomes after which the stored copy of a page is up to date."""
FETCHED: Final[frozenset[OutcomeKind]] = ANSWERED | {"redirected", "gone", "failed"}
"""Outcomes for which a request was sent; `pages_fetched` is the number of such outcomes."""

ChangeVerdict = Literal[
    "new", "changed", "minor", "returned", "gone", "redirected", "refused", "duplicate", "forgotten", "evicted"
]
"""Verdicts of change-log entries. Later versions may add more verdicts."""
FetchKind = Literal["page", "robots", "sitemap"]
Hint = Literal["javascript", "login", "consent"]
"""Why a copy may lack the visible content: the page needs JavaScript, a login, or the user's consent."""
NEVER_BUCKET: Final = 128
"""The bucket number of a page that has no copy yet."""


class Copy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Location of a stored body: the repository, the WARC file, and the byte range of the response record."""

    file: int
    offset: int
    length: int
    repository: int = 0
    """Number of the repository that contains the file; 0 if one ant crawls alone."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A URL that was found: a seed, a link of a page, the target of a redirect, or an entry of a sitemap.

    `source` is the canonical URL of the linking page, or "" for seeds and entries of sitemaps. `importance` decides the
    position in the never-crawled queue (`store.contract.class_of`). `request` is the request of a Scrapy project as
    msgpack, or None.
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
    """Trust that the URL gets from its policy or from the linking page, 0 to 1."""
    scores: tuple[float, ...] = ()
    """Scores as in `PageRecord.scores`, but computed from the words of the link and of its URL."""
    anchor: str = ""
    """Text of the link, if a topic is compared with it (`CompiledPolicies.follows_topics`), else ""."""
    provenance: bytes = b""
    """See `PageRecord.provenance`."""
    hops: int = 0
    """See `PageRecord.hops`."""


class LinkedPage(msgspec.Struct, frozen=True, gc=False):
    """A fetched page and its links. `at` is the time of the fetch. `again` is True if the page was fetched before.

    The crawl follows `links`, and only logs two other kinds: links with rel=nofollow (`nofollow`), and links that the
    policy or the duplicate detector excludes (`unfollowed`).
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
    """The last 24 checks: for each, its rounded interval and whether it found a change (`core.change_rate`)."""
    failures: int = 0
    """Number of consecutive outcomes without a copy (gone, failed, refused); it decides the wait before a retry."""
    due: float | None = None
    """Time of the next fetch, set by a retry, a sitemap or `webfountain now`; None if the page's bucket sets the time.
    """
    copy: Copy | None = None
    request: bytes | None = None
    verdict: OutcomeKind | None = None
    """Outcome of the last settled fetch."""
    copied: float | None = None
    """Time of the fetch that brought the newest copy."""
    immediate: int | None = None
    """Position in the queue of URLs that are fetched before the rest of the site; None if the URL is elsewhere."""
    scores: tuple[float, ...] = ()
    """Similarity to the policy's topic, and distance in links from the nearest page on topic; () if the policy has no
    topic. Before the first fetch, the similarity is computed from the URL and the words of links to the page."""
    sketch: bytes | None = None
    """Sketch of the newest copy's text (`core.sketch`), to detect changes if the old text cannot be read. A sketch is
    stored only if some ants cannot read the folders of other ants.
    """
    trust: float = 0.0
    """Trust of the page, 0 to 1; its links inherit this trust."""
    duplicate_of: str | None = None
    """URL of the page of which this page is a duplicate, or None."""
    source: bytes = b""
    """Key (eight bytes) of the page through which this page was found, then that page's site if it differs."""
    target: str | None = None
    """Canonical URL to which the last fetch was redirected, or None."""
    hint: Hint | None = None
    """Why the newest copy may be incomplete; None if no reason is known."""
    provenance: bytes = b""
    """How the page was discovered, and why it has its policy (`policy.provenance`); b"" if this is not recorded."""
    hops: int = 0
    """Number of consecutive redirects that led to the page."""
    counted: bytes = b""
    """Hash of the rules under which the newest copy was compared (4 bytes), and digest of the text that counts for
    changes (8 bytes); b"" if all text counts (`policy.counting`)."""
    noise: bytes = b""
    """What is known about parts of the page that differ between visits, such as clocks (`core.noise`)."""
    metadata: bytes = b""
    """Metadata of the newest copy, as msgpack of `formats.page_metadata`, or b""."""


class DiscoverResult(msgspec.Struct, frozen=True, gc=False):
    """Result of adding links: how many URLs are new, and how many are already known or repeat an earlier link."""

    new: int
    known: int
    repeated: tuple[int, ...] = ()
    """Indices of the known links in the batch, ascending."""


class LeaseId(msgspec.Struct, frozen=True, gc=False):
    """Identity of a URL's lease: its site, the token of the site lease, and a number that is never used again."""

    site: str
    token: int
    number: int


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to fetch one URL. The lease ends when the URL is settled or released, or when the site lease ends."""

    id: LeaseId
    key: bytes
    record: PageRecord

    @property
    def site(self) -> str:
        return self.id.site


class Move(msgspec.Struct, frozen=True, gc=False):
    """A copy that the repository has moved during compaction. `new` replaces `old` in the page's record."""

    site: str
    key: bytes
    old: Copy
    new: Copy


class Fetch(msgspec.Struct, frozen=True):
    """One request to make now: a leased page, a site's robots.txt or a sitemap.

    `address` is the IP address to which the request goes. If `address` does not answer, the host's other addresses
    (`fallbacks`) are tried, each after its own politeness delay. With `etag` or `last_modified`, the request is
    conditional, so that the server can answer 304. `lease` is None for robots.txt and sitemaps.
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

    `headers` are in order of arrival, with names in lower case. `body` is the decoded body, for example after gzip.
    `at` is the time of the last byte, and `seconds` is the time from the request to the last byte. `error` is one of:
    dns, private-address, connect, tls, certificate, timeout, too-slow, headers-too-large, too-large, bomb, cut,
    bad-response, content-type, content-coding, network, lapsed (the lease may have ended during the fetch).
    `request_headers` are the headers that were sent to `address`.
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
    """Parsed content of a robots.txt (the rules for this crawler, bytes) or of a sitemap (`SitemapFile`), or an error
    word. If the body has not been parsed, `reading` is None."""

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None. `name` is in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def location(self) -> str | None:
        """Return the target of a redirect, read from the Location header as browsers do, or None."""
        location = self.header("location")
        return None if location is None else from_header(location)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What the store needs when a lease ends: the page's new record, and numbers for the store's counts.

    `seconds` is the duration of the fetch. `links_new` is the number of linked URLs that were new to the store.
    """

    lease: LeaseId
    kind: OutcomeKind
    record: PageRecord
    seconds: float = 0.0
    links_new: int = 0
    title: str | None = None
    """Title of the new copy, for the change log."""
    resemblance: float | None = None
    """Resemblance of the new text to the previous text; None if it was not computed."""
    target: str | None = None
    """Target of a redirect."""
    diff: str | None = None
    """Unified diff of the old and the new text, if the collection keeps diffs."""


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of the change log: what happened to a page, for consumers of the collection.

    `digest` is the digest of the new copy, and `before` the digest of the previous copy. If `digest` is None, the
    consumer should remove the page. `sequence` is the number of the entry in the log, and `at` the time of the entry.
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
    """Target of a redirect, or the original of a duplicate."""
    diff: str | None = None


class SettleResult(msgspec.Struct, frozen=True, gc=False):
    """Result of settling a batch of outcomes: how many took effect, and how many had no effect because their lease had
    ended."""

    applied: int
    lost: int


class SiteState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the store keeps about a site between two crawls of the site: delays, robots.txt, sitemaps."""

    next_at: float = 0.0
    """Time before which no request may be sent to the site."""
    failures: int = 0
    """Number of consecutive refusals by the site (429, 503, no connection); it decides the next delay."""
    robots: bytes | None = None
    """Newest robots.txt body, at most 500 KiB; None if everything is allowed."""
    robots_at: float | None = None
    """Time of the last fetch of robots.txt, even if there was no answer. None if robots.txt was never fetched."""
    robots_ok: bool = True
    """False if robots.txt gave a 5xx or no answer, so that all URLs of the site are refused until a retry succeeds (RFC
    9309 section 2.3.1.4)."""
    robots_failures: int = 0
    crawl_delay: float = 0.0
    sitemaps: tuple[tuple[str, float], ...] = ()
    """URL of each known sitemap, with the time when the sitemap was last read (0.0 if never)."""
    changes: int = 0
    """Number of changes on all pages of the site, for the prior of their change rates (with `observed_time`)."""
    observed_time: float = 0.0
    """Sum of the times between two checks of the same page, over all pages of the site, in seconds."""
    error: str = ""
    """Why the last attempt to reach the site failed: an error word, the status of its robots.txt, or "" if
    it did not fail."""
    revived: int = 0
    """Number of fetches that found that a gone page of the site is back."""
    dead_time: float = 0.0
    """Sum of the times between two checks of a gone page, over all gone pages that once had a copy, in seconds."""
    born: int = 0
    """Number of URLs that had no page at their first fetch and had a page later."""
    unborn_time: float = 0.0
    """Total time between fetches of URLs that had no page at their first fetch, in seconds."""
    unborn: int = 0
    """Number of URLs of the site that had no page at their first fetch."""
    unborn_asked: int = 0
    """Number of repeated fetches of URLs that had no page at their first fetch."""
    unborn_classes: tuple[tuple[str, int, float], ...] = ()
    """For each source and directory, its name and its values of `born` and `unborn_time`."""
    first_fetches: tuple[tuple[str, tuple[float, float]], ...] = ()
    """Numbers of first fetches, and of pages that they found: for the whole site (""), and for each source and
    directory. An entry is (name, (first fetches, pages found)); older fetches have less weight."""
    unborn_added: tuple[int, float, int, int] = (0, 0.0, 0, 0)
    """The same four numbers as from `born` on, for URLs that an added link made known; `born` does not count them."""


class SiteRecord(msgspec.Struct, frozen=True, gc=False):
    """One site as the store knows it. `pages` counts the site's pages by state, in the order of STATES. `due` is the
    earliest due time of a URL of the site.
    """

    site: str
    pages: tuple[int, ...]
    due: float
    first_seen: float
    state: SiteState = SiteState()
    owner: str | None = None
    """The ant that crawls the site now, or None."""
    immediate: int = 0
    """Number of URLs, including leased ones, that are fetched before the rest of the site."""
    epoch: int = 0
    """Number of the ranking that orders the site's never-crawled queue (`regrade`); 0 means order of arrival."""
    learned: bytes = b""
    """What the crawl has learned about the site's pages, in bytes that the store does not interpret."""
    changed: float = 0.0
    """Time of the site's newest change-log entry, UTC seconds; 0.0 if there is no known entry."""


class SiteLease(msgspec.Struct, frozen=True, gc=False):
    """The right to crawl a site, from `activate` until the site is parked or taken over.

    After `until`, another ant may take over the site, with a greater `token`. Every change that an ant makes to the
    site contains `token` as a *fencing token*, so that changes by earlier holders have no effect. `record` is the
    site's record at the start of the lease.
    """

    site: str
    token: int
    until: float
    record: SiteRecord
    lost_by: str | None = None
    """The ant from which the site was taken over, or None if no other ant held the site. `LOST_LIFE` means that an
    unknown ant may crawl the site until the time `until`, because the server lost its newest data."""


class CensusRow(msgspec.Struct, frozen=True, gc=False):
    """The counts of one bucket of pages in one time period. The row with bucket None counts first fetches of
    never-crawled pages.

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
