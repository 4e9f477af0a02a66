"""The store contract: the interface to the URLs, queues, leases and sites that the frontier stores.

A store also keeps the census, the change log and published values. `FrontierStore` lists the parts of a store, and each
part is a Protocol. A store never reads a clock: times are arguments, in UTC seconds.

**Atomicity.** A call may change many sites. The change of each site is atomic: after a crash, it is complete or absent.
When a call has returned, its changes are durable.

**Permissions.** Only the owner of a site may call `lease`, `settle`, `release`, `park`, `regrade`, `reweigh` and
`evict`. Each method for owners takes the site lease, or leases of the site's URLs, as an argument. If a site was
parked, or taken over by another process, calls of its former owner have no effect. An expired site lease stays valid
until another process takes the site over, so a late fetch is not wasted. Every process may call `discover`,
`immediate`, `advance`, `reassign`, `relocate` and `forget`. Among the methods for every process, only `forget` changes
leased URLs; it ends their leases.
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
"""Name of the published value that contains the secret key for the sketches of the duplicate index (`sketch_key`)."""
FORECAST: Final = "forecast"
"""Name of the published value that contains the forecast of the collection's obsolete share."""
PRICE: Final = "price"
"""Name of the published value that contains the price of a fetch."""


class UrlQueues(Protocol):
    """The URLs of a crawl and their steps: discover, queue, lease, settle."""

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        """Add unknown URLs: each new URL joins the never-crawled queue of its site, in the lane of its importance.

        A link to a known or forgotten URL has no effect; its position in `links` is in `DiscoverResult.repeated`. If
        the site of a new URL is not active, the site becomes due at the time `at`.
        """
        ...

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Add URLs to the immediate lanes of their sites, in the given order; return how many were added.

        An unknown URL is first added to the store, as by `discover`. If the site of an added URL is not active, the
        site becomes due at once (`AT_ONCE`). URLs that are already in an immediate lane are skipped. A leased URL
        enters the immediate lane when its lease is released, but not if its fetch is settled. `LeaseBatch.overtaken`
        tells a site's owner that a leased URL became immediate.
        """
        ...

    def lease(self, refills: Sequence[Refill]) -> list[LeaseBatch | None]:
        """Lease URLs of active sites; return None for a site whose site lease is lost.

        The URL leases end when the site lease ends. `lanes.choose` defines which due URLs are leased first. Raises
        ValueError if the length of `classes` or `horizon` is not the number of lanes of its queue.
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
        """End leases with the outcomes of their fetches. The record in an outcome replaces the page's record and
        decides its lane (`recrawl_place`).

        For each site, `learned` becomes `SiteRecord.learned`, and each of `parts` is stored under its number
        (`SiteList.part`). Part numbers are from 0 to 2^63 - 1; an empty part deletes the stored part. If the site lease
        is lost, neither `learned` nor `parts` is stored for the site. An outcome has no effect if its lease is no
        longer open; the result counts it as lost.

        Raises
        ------
        ValueError
            if a record's state is never-crawled: it must contain the result of the fetch.
        """
        ...

    def release(self, leases: Sequence[LeaseId]) -> int:
        """Release unused leases: each URL returns to its place in its lane. Return the number of leases that were still
        open.
        """
        ...

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due at `due` (lane ADVANCED); return how many moved.

        A page is not moved if it is leased, immediate, or already due sooner in lane ADVANCED. If the site is not
        active, it becomes due at `due` too.
        """
        ...

    def reassign(self, site: str, keys: Sequence[bytes], revised: RevisedBy) -> ReassignResult:
        """Assign known pages to other policies.

        `revised` returns the new record of a page, or None to leave the page unchanged. The new record may differ only
        in policy, trust, depth, importance, source and provenance. A never-crawled page moves to the lane of its
        importance and keeps its arrival number. Leased pages stay unchanged; the result lists them.
        """
        ...

    def regrade(self, lease: SiteLease, importance: ImportanceOf, *, epoch: int, n: int) -> RegradeResult | None:
        """Apply a new ranking to the next `n` never-crawled URLs of a site, and move each to the lane of its new class.

        The owner of a site calls this method at each activation and refill of the site, until the result is `done`. The
        store keeps the progress of a ranking when the site lease ends. Each URL keeps its arrival number. Leased and
        immediate URLs are not moved. Returns None if the site lease is lost.
        """
        ...

    def reweigh(self, lease: SiteLease, keys: Sequence[bytes], importance: ImportanceOf) -> int | None:
        """Move the never-crawled URLs with these keys to the lanes of their current importance; return how many moved.

        Call `reweigh` when importances change between two rankings. Each key may occur only once. Leased and immediate
        URLs are not moved. Returns None if the site lease is lost. See `regrade`.
        """
        ...


class SiteList(Protocol):
    """The sites: their owners, and the due times of the sites without an owner."""

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease up to `n` sites that are due at or before `at`, the longest overdue first.

        A site is leased only if it has no owner or its lease has expired. When a process takes over a site, the URL
        leases of the previous owner end. With `at` = AT_ONCE, only sites with new immediate URLs are leased.
        """
        ...

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease the named sites that have no owner or an expired lease, even if they are not due. Unknown sites are
        skipped.
        """
        ...

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """Extend site leases, even expired leases. Return the extended leases; lost leases are missing."""
        ...

    def park(self, parked: Sequence[ParkRequest], *, at: float) -> int:
        """Take sites off the active list; return the number of sites whose lease was valid.

        Open URL leases of a parked site end, and the URLs return to the queues. A site is due again at `due`, or
        earlier if it has URLs that its owner has not received:

        - from the discovery of a new URL, if every never-crawled refill since then got as many URLs as it requested
        - `AT_ONCE`, if immediate URLs arrived and every immediate refill since then got as many as it requested
        - `at`, if URL leases were still open
        """
        ...

    def next_due(self) -> float | None:
        """Return the earliest time at which `activate` may return a site, or None if there is none."""
        ...

    def urgent(self, owner: str) -> list[SiteLease]:
        """Return the active sites of an owner that have immediate URLs which the owner has not received yet, in order
        of name.
        """
        ...

    def get(self, site: str) -> SiteRecord | None:
        """Return a site, or None if it is unknown."""
        ...

    def part(self, site: str, number: int) -> bytes | None:
        """Return the part of a site's learned data that `settle` stored under a number, or None."""
        ...

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return the next `n` sites after `name`, in order of name."""
        ...

    def ranked(self, order: SiteOrder, cursor: str, n: int) -> list[tuple[str, SiteRecord]]:
        """Return the next `n` sites after a cursor, in one of the `site_orders`, and for each site the cursor after
        it.
        """
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
        """Yield (site, record) of every known URL, site by site. Records may be read at different moments."""
        ...

    def keyed(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, bytes, PageRecord]]:
        """Yield (site, key, record) of every known URL, site by site. Requests of a Scrapy project have keys that
        cannot be computed from their URLs.
        """
        ...

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PageRecord], bytes]:
        """Return up to `n` pages of a site after a cursor, and the next cursor. The first cursor is b""; at the end of
        the site, the next cursor is b"" again.

        A call takes time proportional to `n`. A page that changes its queue between two calls may be returned twice or
        not at all. A store may raise InputError for a cursor that it did not return.
        """
        ...

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        """Return the first `n` never-crawled URLs of a site, first the immediate URLs, then lane by lane.

        The result may lack leased URLs.
        """
        ...

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page, or a whole site if no key is given, and refuse all further links to it.

        Returns the number of removed records. Leases of removed pages end.
        """
        ...

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """Remove pages from the collection: delete copy, validators and history, as if the pages had never been
        crawled.

        The pages stay known and return to the never-crawled queue. Leased and never-crawled pages stay unchanged.
        Returns the number of evicted pages, or None if the site lease is lost.
        """
        ...

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """Return how many pages have their newest copy in each WARC file of a repository, by file number."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Update the records of pages whose copies moved. A record that no longer names the old location stays
        unchanged. Return the number of updated records."""
        ...


class CensusReader(Protocol):
    """The counts of a store, which each change of the store updates (DESIGN.md section 4)."""

    @property
    def period_s(self) -> float:
        """Length of a census period, in seconds: period number p starts at p x period_s."""
        ...

    @property
    def fastest_s(self) -> float:
        """Mean change interval of bucket 0, in seconds: the unit of the bucket byte."""
        ...

    def buckets(self) -> dict[int, BucketCensus]:
        """Return the current number of crawled pages in each non-empty bucket."""
        ...

    def rows(self, *, since: int) -> list[CensusRow]:
        """Return the census rows of period number `since` and of all later periods. The period of a time `at` is
        floor(at / period_s).
        """
        ...

    def statistics(self) -> Statistics:
        """Return the current counts, in constant time."""
        ...


class Changes(Protocol):
    """The change log: what happened to each page, in order, for the consumers of the collection.

    `settle`, `forget` and `evict` write an entry when consumers must add a page, update their copy of a page, or delete
    the copy. A poll takes time proportional to the number of changes. A cursor is an opaque text that names the
    position after an entry.
    """

    def after(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Return up to `n` entries after a cursor, in order, and for each entry the cursor after it. With the cursor
        None, the oldest kept entry comes first.

        Raises
        ------
        InputError
            if the text is not a cursor of this log.
        CursorLost
            if entries after the cursor are no longer kept.
        """
        ...

    def end(self) -> str:
        """Return the cursor after the newest entry."""
        ...

    def since(self, at: float) -> str:
        """Return the cursor just before the first entry whose time is `at` or later. Raises CursorLost if the log does
        not reach back to `at`.
        """
        ...

    def trim(self, *, before: float, most: int) -> int:
        """Drop the entries from before a time, then the oldest entries until at most `most` entries are left. Return
        the number of dropped entries.
        """
        ...


class Board(Protocol):
    """Small published values that every process can read, such as the plan and the epoch of the ranking."""

    def value(self, name: str) -> bytes | None:
        """Return the value last published under a name, or None."""
        ...

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value in place of the last value."""
        ...

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none yet; return the current value, which is the same in all processes."""
        ...


class FrontierStore(Protocol):
    """A store: the parts of the contract, and operations on the store as a whole.

    The specification is `tests/store/test_contract.py`.
    """

    @property
    def queues(self) -> UrlQueues: ...

    @property
    def sites(self) -> SiteList: ...

    @property
    def pages(self) -> PageRecords: ...

    @property
    def census(self) -> CensusReader: ...

    @property
    def changes(self) -> Changes: ...

    @property
    def board(self) -> Board: ...

    @property
    def claims(self) -> Claims | None:
        """The names that the processes of a crawl claim; None for a store of one process."""
        ...

    @property
    def lives(self) -> Lives:
        """The detector of steps that the store's server has lost."""
        ...

    def feed(self, key: str | None = None, form: FeedForm = "list") -> Feed | None:
        """Return the feed that the server stores under `key`. Without a key, return the feed of notes to the crawl.

        Returns None if the store has no server.
        """
        ...

    def rows(self) -> Iterator[Row]:
        """Yield the content of the store at one moment, in the order of `transfer_rows.Row`.

        The iterator needs bounded memory, and may run during a crawl. Leases are left out: a leased URL is shown as
        waiting in its lane, and an active site as due.
        """
        ...

    def recount(self) -> None:
        """Compute the counts again from the records. No process may crawl during the call."""
        ...

    def close(self) -> None:
        """Write what is buffered, and release files and locks. A second call has no effect."""
        ...
