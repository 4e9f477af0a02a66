"""The store contract: where the frontier's URLs, queues, leases, sites, census and published values live.

Small Protocols by reader, joined in `FrontierStore`; batch first. Times are arguments (UTC seconds); a store never
reads a clock. `memory` is the reference; `embedded` (RocksDB) is the default.

**What is atomic.** A call that changes something may name many sites and is atomic for each of them: after a crash
what it did to a site has happened wholly or not at all, and what a call returned is kept. A shared store sends the
parts to the shards of the sites, in one round trip however many they are; the stores of one process take a call as
one step. An empty batch costs nothing.

**Who may do what.** `lease`, `settle`, `release`, `park`, `regrade` and `evict` are for who has the site: they name
its site lease, whole or in the ids of its URL leases. When that was parked or taken over they have no effect, say so
and are counted (`Statistics`), so a process that was paused and wakes harms nothing. A site lease that ran out
still holds until somebody takes the site over: what was fetched under it is not thrown away for lateness. `discover`,
`immediate`, `advance`, `relocate` and `forget` are for anybody: they touch nothing that is leased, but for `forget`.

**A site's queues** have lanes. A URL stands in one lane of one queue, or is leased and will return to its place there.
*Immediate* has one lane, first come first served; a site with URLs in it that its ant has not seen is due `AT_ONCE`.
*Never-crawled* has a lane for each class of importance (`class_of`, 0 the most important), in order of arrival.
*Recrawl* has a lane for each bucket (0..255), ordered by `last_crawled`, oldest first, and two that are ordered by an
explicit time, `record.due`: ADVANCED holds crawled pages that something made due (a sitemap, a sibling's change),
RETRY gone, failed, refused and redirected pages, and crawled ones whose last tries failed.
What is due is not stored: a caller passes a *horizon*, one time per lane, and a URL is due when its order (in the
never-crawled queue `first_seen`) is not after its lane's. So a change of plan rewrites no queue.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webfountain.records import (
        CensusRow,
        Change,
        Discovered,
        Lease,
        LeaseId,
        Link,
        Move,
        Outcome,
        PageRecord,
        Settled,
        SiteLease,
        SiteRecord,
        SiteState,
        State,
    )
    from webfountain.store.transfer import Row

__all__ = [
    "ADVANCED",
    "AT_ONCE",
    "CLASSES",
    "COLLECTION",
    "FORECAST",
    "IMMEDIATE",
    "LANES",
    "PLAN",
    "PRICE",
    "RETRY",
    "RETRY_SHARE",
    "WORDS",
    "Board",
    "BucketCensus",
    "CensusReader",
    "Changes",
    "Claim",
    "Claims",
    "Copies",
    "Dealt",
    "Feed",
    "FeedEntry",
    "FeedForm",
    "Feeds",
    "FrontierStore",
    "PageReader",
    "Parked",
    "Portable",
    "Reassigned",
    "Refill",
    "Regraded",
    "Scores",
    "SiteList",
    "Statistics",
    "UrlQueues",
    "class_of",
    "recrawl_place",
]

CLASSES: Final = 64
"""Lanes of the never-crawled queue."""
_FIRST_CLASS: Final = 12
"""Binary logarithm of the importance from which on a URL is in class 0."""
_FIRST: Final = 2.0**_FIRST_CLASS
ADVANCED: Final = 256
RETRY: Final = 257
LANES: Final = 258
"""Lanes of the recrawl queue."""
IMMEDIATE: Final = 258
"""The immediate lane, as `recrawl_place` names it."""
RETRY_SHARE: Final = 10
"""Of a recrawl lease of n at most max(1, n // RETRY_SHARE) come from RETRY while other lanes are due."""
AT_ONCE: Final = 0.0
"""When a site with new immediate URLs is due: before all others."""
PLAN: Final = "plan"
"""Name of the published value that is the plan in force."""
COLLECTION: Final = "collection"
"""Name of the published value that is the policy file in force (`policy.files.CollectionInForce`)."""
WORDS: Final = "words"
"""Name of the published value that tells which words are rare (`core.resemblance.WordCounts`)."""
FORECAST: Final = "forecast"
PRICE: Final = "price"
"""Name of the published price of a fetch."""


def class_of(importance: float) -> int:
    """The never-crawled lane of an importance: 0 from 2^12 up, two more for each halving, 63 below 2^-19.

    Room for scores whose mean is one, of which one page in a thousand is above 2^12, and for trust that was divided
    three times.
    """
    if not importance > 0.0:
        return CLASSES - 1
    if importance >= _FIRST:
        return 0
    mantissa, exponent = math.frexp(importance)
    found = 2 * (_FIRST_CLASS + 1 - exponent) - (mantissa * mantissa >= 0.5)
    return found if found < CLASSES else CLASSES - 1


def recrawl_place(record: PageRecord) -> tuple[int, float]:
    """Where a page that was tried at least once stands: its recrawl lane, or IMMEDIATE, and its order within it.

    Earliest first: `last_crawled` in a bucket's lane, `due` in the others, their number among immediate ones.
    """
    if record.immediate is not None:
        return IMMEDIATE, float(record.immediate)
    order = record.last_crawled if record.due is None else record.due
    order = 0.0 if order is None else order
    if record.state != "crawled" or record.failures:
        return RETRY, order
    return (record.bucket if record.due is None else ADVANCED), order


class Refill(msgspec.Struct, frozen=True):
    """How many URLs of each queue of one site are wanted, and which of them are due.

    `classes` is the horizon of the never-crawled queue, CLASSES times: of what is due the most overdue goes first.
    None: all of it is due, the most important class first. `horizon` is that of the recrawl queue, LANES times, and
    required where `recrawl` is not 0.
    """

    lease: SiteLease
    immediate: int = 0
    never_crawled: int = 0
    recrawl: int = 0
    classes: Sequence[float] | None = None
    horizon: Sequence[float] = ()


class Dealt(msgspec.Struct, frozen=True):
    """Answer to a `Refill`: leases of each queue, and of recrawl, if it was asked for, each lane's next order.

    `overtaken`: a URL that was leased before is immediate since; released, it comes with the next immediate URLs. An
    answer to a refill that wants immediate URLs says so once.
    """

    site: str
    immediate: list[Lease]
    never_crawled: list[Lease]
    recrawl: list[Lease]
    lanes: list[tuple[int, float]]
    overtaken: bool = False


class Parked(msgspec.Struct, frozen=True, gc=False):
    """A site that leaves an ant's active list: when to come back (inf: when a URL is discovered), what to remember."""

    lease: SiteLease
    due: float
    state: SiteState


class Regraded(msgspec.Struct, frozen=True, gc=False):
    """Of one `regrade`: never-crawled URLs that were looked up, those that changed lanes, whether all are in order."""

    seen: int
    moved: int
    done: bool


class Reassigned(msgspec.Struct, frozen=True, gc=False):
    """Of one `reassign`: how many pages were put under another policy, and which would have been but are leased."""

    put: int = 0
    leased: tuple[bytes, ...] = ()


class BucketCensus(msgspec.Struct, frozen=True, gc=False):
    """Crawled pages of one bucket as they stand now: how many, and the sum of their `last_crawled` (mean age)."""

    pages: int
    sum_last_crawled: float


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot. `immediate` counts the URLs in immediate lanes that are not leased, `settle_lost` outcomes
    whose lease was lost, `fenced` other steps that named a site lease that was lost.
    """

    pages: Mapping[State, int]
    sites: int
    active_sites: int
    leased: int
    immediate: int
    settle_lost: int
    fenced: int = 0


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Who has a name now, until when, and what they say beside it.

    `owner` "": nobody has it, and nobody may before `until`. `lost_by`: who had it until it ran out, where this call
    took it from them.
    """

    name: str
    owner: str
    until: float
    note: bytes = b""
    lost_by: str | None = None


class UrlQueues(Protocol):
    """URLs on their way: discovered, queued, leased, settled."""

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """Make URLs known: each unknown one joins its site's never-crawled queue, in the lane of its importance.

        A link known before (also earlier in the batch) or forgotten (`forget`) has no effect and counts as known;
        `repeated` tells which these were. An inactive site becomes due `at`. A second call finds all of them known.
        """
        ...

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Put URLs on the immediate lanes of their sites, in order, discovering the unknown; returns how many were put.

        An inactive site becomes due `AT_ONCE`. A URL that is already there is left out, so a second call puts none. One
        that is leased is there when its lease is released (`Dealt.overtaken`); its settle ends that.
        """
        ...

    def lease(self, refills: Sequence[Refill]) -> list[Dealt | None]:
        """Lease URLs of active sites; None where the site lease is lost.

        The leases end with the site lease. ADVANCED goes first, then the bucket lanes by how long their page is overdue
        (horizon - order), RETRY gets at most a RETRY_SHARE'th while others are due. A second call leases others.

        Raises
        ------
        ValueError
            when a horizon has not one time for each lane.
        """
        ...

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> Settled:
        """End leases: each record replaces the page's and decides its lane (`recrawl_place`), the census counts it.

        `learned` is kept with the site (`SiteRecord.learned`) in the same step, and `parts` beside it, each under a
        number from 0 to 2^63 - 1 (`SiteList.part`); an empty one is kept no longer. Each whose site lease is lost is
        counted (`Statistics.fenced`). An outcome whose lease is unknown, or was settled, released or lost with its
        site lease, has no effect and is counted as lost: so a second call.

        Raises
        ------
        ValueError
            when a record's state is never-crawled: it must say what became of the fetch.
        """
        ...

    def release(self, leases: Sequence[LeaseId]) -> int:
        """Give leases back unused: each URL returns to its place in its lane. Returns how many were out."""
        ...

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due at `due` (lane ADVANCED) unless they are sooner there, immediate or leased.

        Returns how many moved; an inactive site is due then. A second call moves none.
        """
        ...

    def reassign(
        self, site: str, keys: Sequence[bytes], revised: Callable[[PageRecord], PageRecord | None]
    ) -> Reassigned:
        """Put known pages under other policies.

        `revised` gives a record with another policy, trust, importance and source, None to leave the page as it is.
        A never-crawled page goes to the lane of its importance, to its old turn. What is leased is left, and told.
        A second call finds pages as they should be.
        """
        ...


class SiteList(Protocol):
    """Sites: who has which, and when the others are due."""

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Up to `n` sites due at or before `at`, longest due first: the inactive, and those whose lease has run out.

        Of a site that is taken over all URL leases return to their places. With `at` = AT_ONCE: the sites with new
        immediate URLs alone. `owner` names the process that has the site, in `SiteRecord.owner` and `urgent`.
        """
        ...

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """As `activate`, of these sites those that nobody has (or whose lease ran out), whether they are due or not.

        An unknown site has nothing to be crawled and is left out.
        """
        ...

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """The leases with their new deadline, without those that were parked or taken over; also when they ran out."""
        ...

    def park(self, parked: Sequence[Parked], *, at: float) -> int:
        """Take sites off the active list; how many were on it under that lease.

        A site that got a new URL while it was active comes back at the earlier of `due` and that time, unless a
        never-crawled lease came back short since, likewise `AT_ONCE` where immediate URLs came. URL leases that are
        out return, and make their site due `at`.
        """
        ...

    def next_site_due(self) -> float | None:
        """The earliest time at which `activate` may give a site; None when there is none."""
        ...

    def urgent(self, owner: str) -> list[SiteLease]:
        """The owner's active sites with immediate URLs to be leased, or overtaken in its hand, in order of name."""
        ...

    def site(self, site: str) -> SiteRecord | None:
        """One site, None when unknown."""
        ...

    def part(self, site: str, number: int) -> bytes | None:
        """What `settle` kept of a site under a number, beside what each `SiteRecord` of it carries; None: nothing."""
        ...

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """Up to `n` sites whose name sorts after `after` ("" for the first), in order of name."""
        ...


class PageReader(Protocol):
    """Records of single pages: read, listed, and taken out of the collection."""

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """The record of one URL, None when unknown."""
        ...

    def records(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """The records of URLs of one site, in order, None for each that is unknown."""
        ...

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """(site, record) of every known URL, sites together; lazily, a consistent view is not promised."""
        ...

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page, or with no key a whole site, for good: links to it are refused from then on.

        Returns the number of records removed. Leases on them are lost. Forgetting what is unknown only bars it.
        """
        ...

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """Take pages out of the collection: copy, validators and history go, and they are as if never crawled.

        Known, they stand in the never-crawled lane of their importance. Those leased or never crawled are left.
        Returns how many went; None when the site lease is lost. A second call evicts none.
        """
        ...


class CensusReader(Protocol):
    """What is counted while steps are taken (DESIGN.md section 4)."""

    @property
    def period_s(self) -> float:
        """Length of a census period, s: period number p runs from p x period_s."""
        ...

    @property
    def fastest_s(self) -> float:
        """Mean change interval of bucket 0, s: the unit of the bucket byte."""
        ...

    def census(self) -> dict[int, BucketCensus]:
        """Crawled pages now, by non-empty bucket."""
        ...

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """What was counted in the periods numbered `since` and later; a period's number is floor(at / period)."""
        ...

    def statistics(self) -> Statistics:
        """A frozen snapshot of the counts, in constant time."""
        ...


class Copies(Protocol):
    """Where the newest bodies lie."""

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """WARC file number -> how many page records name it as home of their newest copy, in one repository."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Let page records follow copies that moved, where they still name the old place; how many did."""
        ...


class Changes(Protocol):
    """The change log: what became of each page, in order, for those who consume the collection.

    Every step after which a page is held, another copy of it is, or none any more writes its entry in the same atomic
    step (`settle`, `forget`, `evict`). A poll costs what changed, not what is known. A cursor is opaque; it lies behind
    an entry.
    """

    def changes(self, cursor: str | None, n: int) -> list[tuple[str, Change]]:
        """Up to `n` entries after a cursor (None: from the oldest that is kept), in order, each after its own cursor.

        Raises
        ------
        InputError
            when the text is no cursor of this log.
        CursorLost
            when entries after it are no longer kept.
        """
        ...

    def changes_end(self) -> str:
        """The cursor behind the newest entry: what comes later comes after it."""
        ...

    def changes_from(self, at: float) -> str:
        """The cursor before the first entry of a time or later. CursorLost when the log does not reach back so far."""
        ...

    def trim_changes(self, *, before: float, most: int) -> int:
        """Drop the entries of before a time, and of the others all but the newest `most`; how many went."""
        ...


class Scores(Protocol):
    """A ranking reaches the queues."""

    def regrade(
        self, lease: SiteLease, importance: Callable[[Sequence[PageRecord]], Sequence[float]], *, epoch: int, n: int
    ) -> Regraded | None:
        """Look up the next `n` never-crawled URLs of a site and move those whose class changed, each to its old turn.

        Publishing a ranking moves no entry: whoever has a site calls this when it is activated or refilled, until the
        site's epoch is that of the ranking (`Regraded.done`; then a call costs nothing). How far it came is kept with
        the site, across leases. Leased and immediate URLs stay. `importance` gives the importances of records, in
        their order. None when the site lease is lost.
        """
        ...

    def reweigh(
        self, lease: SiteLease, keys: Sequence[bytes], importance: Callable[[Sequence[PageRecord]], Sequence[float]]
    ) -> int | None:
        """As `regrade`, of the never-crawled URLs among `keys`, each named once; how many moved.

        What was learned of them between two rankings. Leased and immediate URLs stay. None when the site lease is lost.
        """
        ...


class Board(Protocol):
    """Small published values that every process reads: the plan in force, the ranking's epoch."""

    def value(self, name: str) -> bytes | None:
        """What `put_value` published last under the name, None before the first."""
        ...

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value in place of the last."""
        ...


class FeedEntry(NamedTuple):
    """An entry of a feed, and the name by which it is done."""

    name: bytes
    data: bytes


FeedForm = Literal["list", "set", "zset"]
"""A list is emptied from its left, a set anywhere, a sorted set from its highest score, as scrapy-redis does."""


class Feed(Protocol):
    """Entries that anybody adds and many processes take, each entry one of them."""

    def put(self, entries: Sequence[bytes]) -> None:
        """Add entries at the end."""
        ...

    def take(self, n: int, *, until: float, at: float) -> list[FeedEntry]:
        """Up to `n` entries; each is given to the next that asks after `until` unless it was done."""
        ...

    def done(self, taken: Sequence[FeedEntry]) -> None:
        """The effect of these is kept. A second call has no effect."""
        ...

    def waiting(self) -> int:
        """Entries that are not done."""
        ...


class Feeds(Protocol):
    """What others leave for the processes of a crawl."""

    def feed(self, key: str | None = None, form: FeedForm = "list") -> Feed | None:
        """The feed under a key of the store's server, by default that of notes to the crawl.

        None where the store has no server: notes lie in its folder then.
        """
        ...


class Claims(Protocol):
    """What the processes of one crawl share out among themselves by name, and the letters that they leave each other.

    A name is ``kind/rest``: ``ant/…`` a process that is alive, ``role/controller``, ``address/…``, ``guest/…`` a
    site that is asked for a file without a site lease, ``loan/…`` slots of a site that another ant uses,
    ``seeds/…`` a list of seeds that is being loaded, ``repository/…``.
    A claim is held until its time, and claimed again to be held longer. Each name is one atomic step.
    """

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """Take each name that is the owner's, nobody's, or has run out `at`; who has each now, in order.

        `notes` are what is to be read beside names that are taken. One round trip. A second call prolongs.
        """
        ...

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """Let go of names: from its time on anybody may claim each. Those of others are left. One round trip."""
        ...

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """Who has each name `at`, in order; None where nobody has. One round trip."""
        ...

    def claims(self, kind: str) -> list[Claim]:
        """All names of a kind that were claimed and not dropped, those that ran out too. Not of addresses or guests."""
        ...

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """Leave letters for a process; they are kept for an hour."""
        ...

    def collect(self, owner: str) -> list[bytes]:
        """The letters that were left for a process, in order, each once."""
        ...

    def end_within(self, seconds: float) -> None:
        """This process ends: a server that is away is waited for no longer than so, by any step of its store."""
        ...


class Portable(Protocol):
    """The store as a whole, to be carried to another."""

    def rows(self) -> Iterator[Row]:
        """All that the store holds, in the order of `transfer.Row`, as it stood at one moment, also beside a crawl.

        Lazily, in bounded memory. What belongs to a process (leases, counts of lost steps) is left out: a leased URL
        stands in its place, an active site is due.
        """
        ...


class FrontierStore(
    UrlQueues, SiteList, PageReader, CensusReader, Copies, Changes, Scores, Board, Feeds, Portable, Protocol
):
    """The contract that every store keeps; `tests/store/test_contract.py` is its specification."""

    @property
    def claims(self) -> Claims | None:
        """What many processes share out; None where the store is one process's alone."""
        ...

    def close(self) -> None:
        """Write what is buffered and let go of files and locks. A second call has no effect."""
        ...
