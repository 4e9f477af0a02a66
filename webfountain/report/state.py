"""What a store and its repository know, as plain data, and whether both are whole.

Status, pages, sites, texts, changes, one page's copy. Every function
reads an open store, also one that a crawl in another process is writing, and returns or yields dictionaries that JSON
takes as they are; the command line prints them, an API could. Nothing is changed here.

The plan in force as plain data: what was decided, what it predicts, what happened so far. Read from a store, also
beside the crawl that follows the plan. The controller makes plans; nothing is judged here.

Whether a store and its repository are whole: every entry read, counts compared with what is there, every copy read.
What is found is told and not changed; `mend_copies` has pages whose copy is gone fetched again. A store that is
crawled meanwhile can be looked at, but its counts move, so they are compared within what it did meanwhile.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.core.change_rate import freshness
from webfountain.core.forecast import published
from webfountain.errors import InputError, RepositoryError
from webfountain.formats.content_type import content_type
from webfountain.formats.document import text_of
from webfountain.frontier.sites.hand import SHARES, SharesSeen
from webfountain.records import STATES, Copy, Move
from webfountain.store.contract import FORECAST, PLAN
from webfountain.store.rules import KEPT, is_held
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webfountain.core.forecast import Outlook
    from webfountain.formats.document import Document
    from webfountain.frontier.planning.plan import Plan
    from webfountain.records import Change, PageRecord, SiteRecord, State
    from webfountain.repository import Pages
    from webfountain.repository.warc import Stored
    from webfountain.store.contract import FrontierStore

__all__ = [
    "NOWHERE",
    "PAGE_FIELDS",
    "LostCopy",
    "Wholeness",
    "cat",
    "changes",
    "examine_store",
    "mend_copies",
    "page_of",
    "pages",
    "plan_in_force",
    "plan_words",
    "sites",
    "status",
    "text_of_copy",
    "texts",
    "texts_since",
]

PAGE_FIELDS: Final = (
    "policy",
    "importance",
    "bucket",
    "checks",
    "changes",
    "first_seen",
    "last_crawled",
    "last_changed",
    "status",
    "error",
    "digest",
    "etag",
    "last_modified",
    "depth",
    "due",
    "verdict",
    "duplicate_of",
)
"""What `pages` tells of a URL besides url, site and state (DESIGN.md section 7)."""
_SITES_AT_ONCE: Final = 1000
_ENTRIES_AT_ONCE: Final = 1000
_COPIED: Final = frozenset({"new", "changed", "minor"})


def status(store: FrontierStore, *, at: float, period_s: float, fastest_s: float) -> dict[str, Any]:
    """Counts by state, the rate of fetches, the freshness estimate.

    Parameters
    ----------
    at : now, UTC seconds
    period_s : length of a time period, s; the rate is over the running period and the one before
    fastest_s : mean change interval of bucket 0, s
    """
    counts = store.statistics()
    census = store.census()
    known = {state: counts.pages.get(state, 0) for state in STATES}
    by_buckets = freshness(census, never_crawled=known["never-crawled"], at=at, fastest_s=fastest_s)
    return {
        "pages": known,
        "known": sum(known.values()),
        "sites": counts.sites,
        "active_sites": counts.active_sites,
        "in_flight": counts.leased,
        "immediate": counts.immediate,
        "settled_too_late": counts.settle_lost,
        **_fresh(store, by_buckets),
        "domains": _domains(store),
        **_rate(store, at, period_s),
    }


def _fresh(store: FrontierStore, by_buckets: float | None) -> dict[str, Any]:
    """The fresh share: where a crawl keeps a forecast as it last found it, with an 80 % interval, else by the buckets.

    `freshness_cycles` are those that it rests on, `freshness_at` when a crawl looked last; None: as of now.
    """
    kept = published(store.value(FORECAST))
    outlook = None if kept is None else kept.forecast.now()
    if kept is None or outlook is None:
        return {
            "freshness": by_buckets, "freshness_low": None, "freshness_high": None,
            "freshness_cycles": None, "freshness_at": None,
        }  # fmt: skip
    return {
        "freshness": 1.0 - outlook.share,
        "freshness_low": 1.0 - outlook.high,
        "freshness_high": 1.0 - outlook.low,
        "freshness_cycles": outlook.cycles,
        "freshness_at": kept.forecast.looked,
    }


def _domains(store: FrontierStore) -> dict[str, Any] | None:
    """Busy and blocked domains as a crawl published them last; None where domains have no shares."""
    kept = store.value(SHARES)
    if kept is None:
        return None
    seen = msgspec.msgpack.decode(kept, type=SharesSeen)
    return {"time": seen.at, "busy": seen.busy, "blocked": seen.blocked, "share": seen.share}


def pages(store: FrontierStore, *, site: str | None = None, state: State | None = None) -> Iterator[dict[str, Any]]:
    """One dictionary per known URL, sites together.

    Raises
    ------
    InputError
        when `site` is not known.
    """
    if site is not None and store.site(site) is None:
        raise InputError(
            f"--site {site!r} is not known here (a site is scheme://host[:port]; `webfountain sites` lists)"
        )
    for home, record in store.pages(site=site, state=state):
        yield page_of(home, record)


def page_of(site: str, record: PageRecord) -> dict[str, Any]:
    """A page record as plain data."""
    row: dict[str, Any] = {"url": record.url, "site": site, "state": record.state}
    for name in PAGE_FIELDS:
        row[name] = getattr(record, name)
    return row


def sites(store: FrontierStore) -> Iterator[dict[str, Any]]:
    """One dictionary per site, in order of name."""
    after = ""
    while found := store.sites(after, _SITES_AT_ONCE):
        yield from map(_site, found)
        after = found[-1].site


def texts(
    store: FrontierStore, repository: Pages, *, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """What a search or RAG index takes in to begin with: each page that has a copy, and each that is gone.

    A gone page has text and title None. `verdict` is new, changed, minor or gone. A page whose copy cannot be read is
    left out, and `unreadable` is told why. `cursor` is where `texts_since` goes on when the whole list was taken.
    """
    cursor = store.changes_end()  # before the list, so that what changes while it is made is told again
    for _, record in store.pages():
        if record.state == "gone":
            row: dict[str, Any] | None = _tombstone(record.url, "gone", record.last_crawled)
        else:
            row = _text_of(record, repository, unreadable)
        if row is not None:
            yield {**row, "cursor": cursor}


def texts_since(
    store: FrontierStore, repository: Pages, cursor: str, *, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """What has changed since a cursor: each page once, as it is now; one no longer to be held has text None.

    `verdict` is that of its last entry of the change log, new where it was new since. The cost is of what changed, not
    of what is known.

    Raises
    ------
    InputError, CursorLost
        when the text is no cursor, or the log no longer reaches back so far.
    """
    found: dict[tuple[str, bytes], tuple[Change, bool]] = {}
    end = cursor
    for end, entry in _entries(store, cursor):  # noqa: B007  the last one is where to go on
        name = entry.site, entry.key
        was_new = name in found and found[name][1]
        found[name] = entry, entry.verdict == "new" or was_new
    for (site, key), (entry, is_new) in found.items():
        if entry.verdict not in KEPT:
            yield {**_tombstone(entry.url, entry.verdict, entry.at), "cursor": end}
            continue
        record = store.page(site, key)
        row = None if record is None else _text_of(record, repository, unreadable)
        if row is not None:
            yield {**row, "verdict": "new" if is_new else entry.verdict, "cursor": end}


def changes(store: FrontierStore, cursor: str | None, *, site: str | None = None) -> Iterator[dict[str, Any]]:
    """The entries of the change log after a cursor (None: all that are kept), in order, perhaps of one site alone.

    The last row has the cursor to go on with: where no entry has it, in a row of its own.

    Raises
    ------
    InputError, CursorLost
        when the text is no cursor, or the log no longer reaches back so far.
    """
    # Taken before the entries: where there are none yet, none may come in between unseen.
    end, told = store.changes_end() if cursor is None else cursor, False
    for end, entry in _entries(store, cursor):
        told = site is None or entry.site == site
        if told:
            yield {
                "cursor": end,
                "sequence": entry.sequence,
                "url": entry.url,
                "site": entry.site,
                "verdict": entry.verdict,
                "time": entry.at,
                "digest": entry.digest,
                "digest_before": entry.before,
                "resemblance": entry.resemblance,
                "title": entry.title,
                "target": entry.target,
                "diff": entry.diff,
            }
    if not told:
        yield {"cursor": end}


def _entries(store: FrontierStore, cursor: str | None) -> Iterator[tuple[str, Change]]:
    """The entries after a cursor up to the newest, each after its own."""
    while found := store.changes(cursor, _ENTRIES_AT_ONCE):
        yield from found
        cursor = found[-1][0]


def _tombstone(url: str, verdict: str, at: float | None) -> dict[str, Any]:
    return {"url": url, "verdict": verdict, "fetched": at, "title": None, "text": None}


def _text_of(
    record: PageRecord, repository: Pages, unreadable: Callable[[RepositoryError], None]
) -> dict[str, Any] | None:
    """The row of a page that is held; None when it has no copy that can be read."""
    if not is_held(record) or record.copy is None:
        return None
    try:
        copy = repository.read(record.copy, record.url)
    except RepositoryError as error:
        unreadable(error)
        return None
    return _text(record, copy)


def cat(store: FrontierStore, repository: Pages, url: str) -> Stored:
    """The newest copy of a page.

    Raises
    ------
    InputError
        when the URL is none, not known, or has no copy; the text says which, and the page's state.
    RepositoryError
        when the copy cannot be read.
    """
    name = canonical(url)
    record = store.page(site_of(name), fingerprint(name))
    if record is None:
        raise InputError(f"{name} is not known here (`webfountain pages` lists what is)")
    if record.copy is None:
        why = f"; its last error was {record.error}" if record.error else ""
        raise InputError(f"{name} is known ({record.state}) but has no copy{why}")
    return repository.read(record.copy, name)


def text_of_copy(copy: Stored) -> Document:
    """Title and visible text of a copy."""
    return text_of(copy.body, content_type(copy.headers))


def _rate(store: FrontierStore, at: float, period_s: float) -> dict[str, Any]:
    """Fetches since the period before this one began, or since the first site was known, and their rate."""
    before = int(at // period_s) - 1
    rows = store.census_rows(since=before)
    first = min((site.first_seen for site in store.sites("", _SITES_AT_ONCE)), default=at)
    since = max(before * period_s, first)
    fetches = sum(row.fetches for row in rows)
    return {
        "since": since,
        "fetches": fetches,
        "changes": sum(row.changes for row in rows if row.bucket is not None),
        "first_fetches": sum(row.fetches for row in rows if row.bucket is None),
        "pages_per_second": fetches / (at - since) if at > since else 0.0,
    }


def _site(record: SiteRecord) -> dict[str, Any]:
    state = record.state
    return {
        "site": record.site,
        "pages": dict(zip(STATES, record.pages, strict=True)),
        "due": None if math.isinf(record.due) else record.due,
        "first_seen": record.first_seen,
        "next_at": state.next_at,
        "failures": state.failures,
        "robots": "refuses all" if not state.robots_ok else "none" if state.robots is None else "read",
        "robots_at": state.robots_at,
        "crawl_delay": state.crawl_delay,
        "sitemaps": [url for url, _ in state.sitemaps],
    }


def _text(record: PageRecord, copy: Stored) -> dict[str, Any]:
    found = text_of_copy(copy)
    verdict = record.verdict if record.verdict in _COPIED else "changed" if record.changes else "new"
    return {"url": record.url, "verdict": verdict, "fetched": record.copied, "title": found.title, "text": found.text}


def plan_in_force(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """The plan of a store at the time `at` (UTC seconds); None before the first.

    Raises
    ------
    StoreVersion
        when another version of webfountain wrote it.
    """
    data = store.value(PLAN)
    if data is None:
        return None
    from webfountain.frontier.planning.plan import decode_plan  # noqa: PLC0415  numpy: not for a mere count

    plan = decode_plan(data)
    forecast = plan.forecast
    kept = published(store.value(FORECAST)) if plan.fountain else None
    foretold = None if kept is None else kept.forecast.foretold
    return {
        "words": plan_words(plan, at=at, foretold=foretold),
        "foretold": None if kept is None else _outlook(kept.forecast.foretold, begin=kept.forecast.begin),
        "cycles": []
        if kept is None
        else [
            {**_outlook(cycle.foretold, begin=cycle.begin), "shown": cycle.shown, "found": cycle.found}
            for cycle in kept.forecast.cycles
        ],
        "strategy": plan.strategy,
        "fountain": plan.fountain,
        "start": plan.start,
        "end": plan.end,
        "period_s": plan.period,
        "periods": plan.periods,
        "period": plan.period_at(at) + 1,
        "buckets": len(plan.buckets),
        "pages": sum(plan.pages),
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": plan.seconds,
        "message": plan.message,
        "by_period": [
            {
                "period": number + 1,
                "weight": plan.weights[number],
                "recrawl": plan.recrawl[number],
                "new": plan.fresh[number],
                "obsolete": forecast.obsolete[number],
                "obsolete_oldest_first": forecast.obsolete_oldest_first[number],
                "never_crawled": forecast.never_crawled[number],
                "known": forecast.pages[number],
                **happened,
            }
            for number, happened in enumerate(_happened(store, plan))
        ],
    }


def _outlook(outlook: Outlook, *, begin: float) -> dict[str, Any]:
    """The mean obsolete share that was foretold of a cycle."""
    return {
        "begin": begin, "obsolete": outlook.share, "low": outlook.low, "high": outlook.high, "evidence": outlook.cycles
    }  # fmt: skip


def plan_words(plan: Plan, *, at: float, foretold: Outlook | None = None) -> str:
    """A plan in a few words, for a line of status or of progress."""
    name = "fountain" if plan.fountain else f"strategy {plan.strategy}"
    now = plan.period_at(at)
    words = f"{name}, period {now + 1} of {plan.periods}"
    if foretold is not None:
        rests = f"{foretold.cycles} cycles" if foretold.cycles else "nothing yet"
        between = f"{foretold.low:.1%} to {foretold.high:.1%}"
        return (
            f"{words}, foretells {foretold.share:.1%} obsolete in its cycle ({between} in 4 of 5 cases, from {rests})"
        )
    if plan.fountain:  # a model of pages that change alone foresees no release
        return words
    known = plan.forecast.pages[now]
    share = plan.forecast.obsolete_oldest_first[now] / known if known else 0.0
    return f"{words}, predicts {share:.1%} obsolete at its end"


def _happened(store: FrontierStore, plan: Plan) -> list[dict[str, int]]:
    """Fetches of known and of new pages, and changes found, in each period of the cycle."""
    first = round(plan.start / plan.period)
    found = [{"recrawled": 0, "crawled_new": 0, "changes": 0} for _ in range(plan.periods)]
    for row in store.census_rows(since=first):
        if row.period - first < plan.periods:
            counts = found[row.period - first]
            counts["crawled_new" if row.bucket is None else "recrawled"] += row.fetches
            counts["changes"] += row.changes if row.bucket is not None else 0
    return found


NOWHERE: Final = Copy(file=0, offset=0, length=0)
"""The place of a copy that is gone: no WARC file has the number 0, so the next fetch is unconditional."""
_CHECKED_AT_ONCE: Final = 1000


class LostCopy(msgspec.Struct, frozen=True):
    """A page whose copy cannot be read, and why."""

    url: str
    copy: Copy
    why: str


class Wholeness(msgspec.Struct, frozen=True):
    """What was found. `counts` tells each count that is wrong: (what, counted, there)."""

    pages: int
    sites: int
    copies: int
    counts: list[tuple[str, int, int]]
    lost: list[LostCopy]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is to be mended."""
        return not self.counts and not self.lost


def examine_store(store: FrontierStore, repository: Pages | None, *, progress: Callable[[int], None]) -> Wholeness:
    """Read every page record, and the copy that it names; `progress` is told how many pages were read.

    Raises
    ------
    StoreError
        at a damaged block: what lies behind it cannot be told.
    """
    states: Counter[tuple[str, str]] = Counter()
    buckets: Counter[int] = Counter()
    files: Counter[int] = Counter()
    lost: list[LostCopy] = []
    for done, (site, record) in enumerate(store.pages(), start=1):
        states[site, record.state] += 1
        if record.state == "crawled":
            buckets[record.bucket] += 1
        if record.copy is not None:
            files[record.copy.file] += 1
            why = None if repository is None else _trouble(repository, record, record.copy)
            if why is not None:
                lost.append(LostCopy(record.url, record.copy, why))
        if done % 1000 == 0:
            progress(done)
    counts = list(_wrong_counts(store, states, buckets, files))
    return Wholeness(sum(states.values()), len({site for site, _ in states}), sum(files.values()), counts, lost)


def mend_copies(store: FrontierStore, lost: Iterable[LostCopy], *, at: float) -> int:
    """Have pages fetched again whose copy is gone; how many. Those that are gone or failed themselves come in turn."""
    many = 0
    for each in lost:
        site, key = site_of(each.url), fingerprint(each.url)
        store.relocate([Move(site, key, old=each.copy, new=NOWHERE)])
        store.advance(site, [key], due=at, at=at)
        many += 1
    return many


def _trouble(repository: Pages, record: PageRecord, copy: Copy) -> str | None:
    """What is wrong with a page's copy."""
    try:
        body = repository.read(copy, record.url).body
    except RepositoryError as error:
        return str(error)
    if hashlib.sha1(body, usedforsecurity=False).hexdigest() != record.digest:
        return "its digest is not that of the page's record"
    return None


def _wrong_counts(
    store: FrontierStore, states: Counter[tuple[str, str]], buckets: Counter[int], files: Counter[int]
) -> Iterable[tuple[str, int, int]]:
    counted = store.statistics().pages
    for state in STATES:
        there = sum(many for (_, each), many in states.items() if each == state)
        if counted[state] != there:
            yield f"{state} pages", counted[state], there
    name = ""
    while found := store.sites(name, _CHECKED_AT_ONCE):
        name = found[-1].site
        for site in found:
            for state, many in zip(STATES, site.pages, strict=True):
                if many != states[site.site, state]:
                    yield f"{state} pages of {site.site}", many, states[site.site, state]
    in_buckets = {bucket: row.pages for bucket, row in store.census().items()}
    for bucket in sorted(in_buckets.keys() | buckets.keys()):
        if in_buckets.get(bucket, 0) != buckets[bucket]:
            yield f"pages of bucket {bucket}", in_buckets.get(bucket, 0), buckets[bucket]
    in_files = store.copies()
    for file in sorted(in_files.keys() | files.keys()):
        if in_files.get(file, 0) != files[file]:
            yield f"copies in WARC file {file}", in_files.get(file, 0), files[file]
