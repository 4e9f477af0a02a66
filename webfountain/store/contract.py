"""The store contract: the interface of the place where the frontier keeps its URLs, queues, leases and sites.

A store also keeps the census, the change log and published values. It consists of parts, one Protocol each;
`FrontierStore` lists them. Most calls take a batch. Times are arguments (UTC seconds), because a store never reads a
clock. `memory` is the reference, `embedded` (RocksDB) the default.

**Atomicity.** A call that changes something may concern many sites. It is atomic for each site: after a crash, its
effect on a site is either complete or absent. When a call has returned, its effect is durable. A shared store sends
the parts of a call to the shards of the sites, in one round trip. A store of one process executes the call as one
step. An empty batch costs nothing.

**Permissions.** Only the owner of a site may call `lease`, `settle`, `release`, `park`, `regrade`, `reweigh` and
`evict`. These calls contain the site lease, either as a whole or in the ids of its URL leases. If the site was parked
or taken over meanwhile, the call has no effect. The result of the call says so, and `Statistics` counts it. A process
that was paused and resumes therefore does no harm. A site lease that has expired stays valid until another process
takes the site over, so a late fetch is not wasted. Every process may call `discover`, `immediate`, `advance`,
`reassign`, `relocate` and `forget`. They change no leased URL, except `forget`, which ends the leases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import (
        CensusRow,
        Change,
        DiscoverResult,
        LeaseId,
        Link,
        Move,
        Outcome,
        PageRecord,
        SettleResult,
        SiteLease,
        SiteRecord,
        State,
    )
    from webfountain.store.answers import (
        BucketCensus,
        ImportanceOf,
        LeaseBatch,
        ParkRequest,
        ReassignResult,
        Refill,
        RegradeResult,
        RevisedBy,
        SiteOrder,
        Statistics,
    )
    from webfountain.store.shared_contract import Claims, Feed, FeedForm, Lives
    from webfountain.store.transfer_rows import Row

__all__ = [
    "COLLECTION",
    "FORECAST",
    "PLAN",
    "PRICE",
    "SKETCH_KEY",
    "WORDS",
    "Board",
    "CensusReader",
    "Changes",
    "FrontierStore",
    "PageRecords",
    "SiteList",
    "UrlQueues",
]

PLAN: Final = "plan"
"""Name of the published value that contains the current plan."""
COLLECTION: Final = "collection"
"""Name of the published value that contains the current policy file (`policy.files.CollectionInForce`)."""
WORDS: Final = "words"
"""Name of the published value that contains the word counts (`core.topics.WordCounts`)."""
SKETCH_KEY: Final = "sketch-key"
"""Name of the published value that contains the key of the duplicate index's sketches (`duplicates.index`)."""
FORECAST: Final = "forecast"
"""Name of the published value that contains the forecast of the collection's obsolete share."""
PRICE: Final = "price"
"""Name of the published value that contains the price of a fetch."""


class UrlQueues(Protocol):
    """The URLs of a crawl and their steps: discover, queue, lease, settle."""

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        """Make URLs known: each new URL joins the never-crawled queue of its site, in the lane of its importance.

        A link has no effect and counts as known if its URL was known before (even from earlier in the batch) or was
        forgotten (`forget`). `repeated` contains the positions of these links in the batch. A site that is not active
        becomes due `at`. A second call finds all URLs known, and adds none.
        """
        ...

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Put URLs on the immediate lanes of their sites, in the given order; return how many were added.

        Unknown URLs are discovered first. A site that is not active becomes due `AT_ONCE`. URLs that are already in the
        lane are skipped, so a second call adds none. A leased URL enters the lane when its lease is released
        (`LeaseBatch.overtaken`), unless it is settled before.
        """
        ...

    def lease(self, refills: Sequence[Refill]) -> list[LeaseBatch | None]:
        """Lease URLs of active sites; return None for a site whose site lease is lost.

        The leases end with the site lease. In the recrawl queue, the lane ADVANCED is first. The lanes of the buckets
        come next, ordered by how long their pages are overdue (horizon - order). While other lanes have due URLs, at
        most one URL in RETRY_SHARE comes from RETRY. A second call leases other URLs. Raises ValueError if a horizon
        does not have one time for each lane.
        """
        ...

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        """End leases: each outcome's record replaces the page's record and decides its lane (`recrawl_place`). The
        census counts it.

        The same step stores `learned` with the site (`SiteRecord.learned`) and the `parts` beside it. A part has a
        number from 0 to 2^63 - 1 (`SiteList.part`); an empty part deletes the stored one. `Statistics.fenced` counts
        the `learned` and `parts` whose site lease is lost. An outcome has no effect and counts as lost if its lease is
        unknown, settled, released, or ended with the site lease. So a second call counts all its outcomes as lost.

        Raises
        ------
        ValueError
            if a record's state is never-crawled: it must contain the result of the fetch.
        """
        ...

    def release(self, leases: Sequence[LeaseId]) -> int:
        """Give leases back unused: each URL returns to its place in its lane. Return how many were still open."""
        ...

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due at `due` (lane ADVANCED); return how many moved.

        Pages stay where they are if they are leased, immediate, or already due sooner in that lane. A site that is not
        active becomes due at that time too. A second call moves none.
        """
        ...

    def reassign(self, site: str, keys: Sequence[bytes], revised: RevisedBy) -> ReassignResult:
        """Put known pages under other policies.

        `revised` returns a record with another policy, trust, depth, importance, source and provenance, or None to
        leave the page unchanged. A never-crawled page moves to the lane of its importance and keeps its arrival number.
        Leased pages stay unchanged; the result lists them. A second call finds all pages up to date.
        """
        ...

    def regrade(self, lease: SiteLease, importance: ImportanceOf, *, epoch: int, n: int) -> RegradeResult | None:
        """Apply a ranking to the next `n` never-crawled URLs of a site: move those whose class changed.

        Each URL keeps its arrival number. Publishing a ranking does not move any entry. Instead, whenever a site is
        activated or refilled, its owner calls this method, until the result is `done`. The site then has the ranking's
        epoch, and further calls cost nothing. The store keeps the progress with the site, across leases. Leased and
        immediate URLs are not moved. `importance` returns the importances for a list of records, in order. Returns None
        if the site lease is lost.
        """
        ...

    def reweigh(self, lease: SiteLease, keys: Sequence[bytes], importance: ImportanceOf) -> int | None:
        """Move those never-crawled URLs among `keys` whose class changed; return how many moved.

        Use it when importances change between two rankings. Each key may occur only once. Leased and immediate URLs are
        not moved. Returns None if the site lease is lost. See `regrade`.
        """
        ...


class SiteList(Protocol):
    """The sites: their owners, and the due times of the sites without an owner."""

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease up to `n` sites that are due at or before `at`, the longest overdue first.

        These are sites without an owner, and sites whose lease has expired. When a site is taken over, all its URL
        leases return to their places. With `at` = AT_ONCE, only sites with new immediate URLs are leased. `owner`
        names the process that gets the site, for `SiteRecord.owner` and `urgent`.
        """
        ...

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease the named sites that have no owner or an expired lease, whether they are due or not; see `activate`.

        Unknown sites have no URLs and are skipped.
        """
        ...

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """Extend site leases, even expired ones; return them with the new deadline, without those that were lost."""
        ...

    def park(self, parked: Sequence[ParkRequest], *, at: float) -> int:
        """Take sites off the active list; return how many were on it under the given lease.

        A site is due again at `due`, or earlier in three cases. First, if a new URL was discovered while the site was
        active, and every never-crawled refill since then was complete, the site is due at the time of the discovery.
        Second, if immediate URLs arrived while it was active, and every immediate refill since then was complete, it is
        due `AT_ONCE`. Third, if URL leases are still open, the URLs return to their places and the site is due `at`.
        """
        ...

    def next_due(self) -> float | None:
        """Return the earliest time at which `activate` may return a site, or None if there is none."""
        ...

    def urgent(self, owner: str) -> list[SiteLease]:
        """Return, by name, the owner's active sites with immediate URLs: waiting for a lease, or overtaken in its
        hand.
        """
        ...

    def get(self, site: str) -> SiteRecord | None:
        """Return a site, or None if it is unknown."""
        ...

    def part(self, site: str, number: int) -> bytes | None:
        """Return the part that `settle` stored under a number, or None. A `SiteRecord` does not contain the parts."""
        ...

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return up to `n` sites whose name sorts after `name` ("" for the first), in order of name."""
        ...

    def ranked(self, order: SiteOrder, cursor: str, n: int) -> list[tuple[str, SiteRecord]]:
        """Return up to `n` sites that follow a cursor in an order, each with the cursor after it; see `site_orders`."""
        ...


class PageRecords(Protocol):
    """The records of single pages: reading, listing, removal, and the locations of their newest copies."""

    def get(self, site: str, key: bytes) -> PageRecord | None:
        """Return the record of a URL, or None if it is unknown."""
        ...

    def get_many(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """Return the records of URLs of one site, in order, with None for each unknown URL."""
        ...

    def records(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """Yield (site, record) of every known URL, site by site. The records may have been read at different
        moments.
        """
        ...

    def keyed(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, bytes, PageRecord]]:
        """Yield (site, key, record) like `records`. A project's request has a key that does not follow from its URL."""
        ...

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PageRecord], bytes]:
        """Return up to `n` pages of a site after a cursor (b"" for the first), and the next cursor, b"" at the end.

        A call costs time proportional to `n`, at any cursor. A page that changes its queue between two calls may be
        returned twice or not at all. A store may raise InputError for bytes that are no cursor of its own.
        """
        ...

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        """Return the first `n` never-crawled URLs of a site: immediate ones, then lane by lane.

        URLs that are leased may be missing: a reader beside a crawl does not know the leases of every store.
        """
        ...

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page, or a whole site if no key is given, permanently: links to it are refused from then on.

        Returns the number of removed records. Leases on them are lost. For an unknown page or site, the only effect is
        that links to it are refused.
        """
        ...

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """Remove pages from the collection: delete copy, validators and history, as if the pages had never been
        crawled.

        The pages stay known, in the never-crawled lanes of their importance. Leased and never-crawled pages stay
        unchanged. Returns the number of evicted pages, or None if the site lease is lost. A second call evicts none.
        """
        ...

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """Return, by WARC file number of one repository, how many page records have their newest copy in that file."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Update the records of pages whose copies moved, if they still name the old location. Return how many were
        updated.
        """
        ...


class CensusReader(Protocol):
    """The counts that the steps of the store maintain (DESIGN.md section 4)."""

    @property
    def period_s(self) -> float:
        """Length of a census period, s: period number p starts at p x period_s."""
        ...

    @property
    def fastest_s(self) -> float:
        """Mean change interval of bucket 0, s: the unit of the bucket byte."""
        ...

    def buckets(self) -> dict[int, BucketCensus]:
        """Return the current number of crawled pages by non-empty bucket."""
        ...

    def rows(self, *, since: int) -> list[CensusRow]:
        """Return the census rows of the periods numbered `since` and later. The
        period of `at` is floor(at / period_s)."""
        ...

    def statistics(self) -> Statistics:
        """Return a frozen snapshot of the counts, in constant time."""
        ...


class Changes(Protocol):
    """The change log: what happened to each page, in order, for the consumers of the collection.

    A step writes an entry if a page becomes held, its held copy changes, or the page is no longer held (`settle`,
    `forget`, `evict`). The entry is part of the same atomic step. A poll costs time proportional to the changes, not
    to the known pages. A cursor is an opaque text that names the position after an entry.
    """

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Return up to `n` entries after a cursor, in order, each with the cursor after it. None means that the list
        begins with the oldest kept entry.

        Raises
        ------
        InputError
            if the text is not a cursor of this log.
        CursorLost
            if entries after the cursor are no longer kept.
        """
        ...

    def end(self) -> str:
        """Return the cursor after the newest entry; all later entries come after it."""
        ...

    def since(self, at: float) -> str:
        """Return the cursor before the first entry whose time is not before `at`. Raises CursorLost if that entry may
        have been dropped.
        """
        ...

    def trim(self, *, before: float, most: int) -> int:
        """Drop the entries before a time, then all but the newest `most` of the rest; return how many were dropped."""
        ...


class Board(Protocol):
    """Small published values that every process can read, such as the plan and the epoch of the ranking."""

    def value(self, name: str) -> bytes | None:
        """Return the value last published under a name, or None."""
        ...

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value in place of the last one."""
        ...

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none yet; return the current value. All processes get the same value."""
        ...


class FrontierStore(Protocol):
    """A store: the parts of the contract, and operations on the store as a whole.

    A caller keeps only the parts that it needs. The specification is `tests/store/test_contract.py`.
    """

    @property
    def queues(self) -> UrlQueues:
        """The URL queues."""
        ...

    @property
    def sites(self) -> SiteList:
        """The sites and their owners."""
        ...

    @property
    def pages(self) -> PageRecords:
        """The page records."""
        ...

    @property
    def census(self) -> CensusReader:
        """The counts."""
        ...

    @property
    def changes(self) -> Changes:
        """The change log."""
        ...

    @property
    def board(self) -> Board:
        """The published values."""
        ...

    @property
    def claims(self) -> Claims | None:
        """The names that the processes of a crawl claim; None for a store of one process."""
        ...

    @property
    def lives(self) -> Lives:
        """Detects set-backs of the server."""
        ...

    def feed(self, key: str | None = None, form: FeedForm = "list") -> Feed | None:
        """Return the feed under a key of the server; without a key, the feed of notes to the crawl. None means that
        there is no server.
        """
        ...

    def rows(self) -> Iterator[Row]:
        """Yield the content of the store at one moment, in the order of `transfer_rows.Row`.

        Rows are read as they are needed, with bounded memory, even during a crawl. State of a process (leases, counts
        of lost steps) is left out: a leased URL appears in its place, an active site as due.
        """
        ...

    def recount(self) -> None:
        """Compute the counts again from the records, while no process crawls. After a kill, call it again."""
        ...

    def close(self) -> None:
        """Write what is buffered, and release files and locks. A second call has no effect."""
        ...
