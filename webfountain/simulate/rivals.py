"""What a virtual crawler meets and the policies that are compared: change traces, sitemaps, rivals and our own.

The policies that `simulate revisit` compares ours with, from a clock to clairvoyance. Each scores pages by what it is
allowed to know; `simulate.revisit` fetches the greatest scores. The definitions are those of the comparison's
specification: tau is the number of days since the page's last fetch (or birth).

Change traces: when the pages of a real site were added, changed and deleted, cut into whole days. A trace is two
parquet files, events (page, t, kind, resemblance) and pages (page, path, url). `load_trace` keeps the pages and the
changes that count and turns instants into days since the start; `simulate.revisit` replays it. Nothing here decides
what is fetched.

A site's sitemap in the simulation: it names the last modification of half of the pages. Which half is drawn once per
page. It is honest and exact: it tells of the changes that count and of no others, and of a day's events from the next
day on. Real ones are worse, so what it gains here is the most that one can.

Our own policy in the simulation is the crawl's own code at the crawl's own price (`AtAPrice`): the frontier's objects,
without queues, politeness and network. Two more of its signals need what a bare trace does not have, and are policies
of their own here: the importance of pages, and a sitemap. What came before the price, all pages ranked together each
day, stays as `RANKING`, to compare with.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from webfountain.core.activity import Signals, urgency_of_known_rate
from webfountain.core.buckets import BUCKETS, price_of_budget
from webfountain.core.change_rate import append
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.errors import InputError
from webfountain.frontier.pages.examiner import Visit
from webfountain.frontier.planning.plan import Forecast, Plan
from webfountain.frontier.planning.schedule import PlanFollower
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.metrics import Metrics
from webfountain.policy.files import parse_collection
from webfountain.records import STATES, Fetch, Fetched, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from webfountain.records import OutcomeKind, State

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Array = npt.NDArray[np.float64]

__all__ = [
    "ABLATIONS",
    "ADDED",
    "DELETED",
    "IMPORTANCE",
    "MODIFIED",
    "RANKING",
    "SITEMAP",
    "AtAPrice",
    "ChangeTrace",
    "Clairvoyant",
    "Fetches",
    "Learner",
    "NutchAdaptive",
    "PoissonLearned",
    "PoissonOracle",
    "Proportional",
    "Sitemap",
    "SitemapReader",
    "Uniform",
    "UrgencyPolicy",
    "load_trace",
    "start_of",
]

ADDED, MODIFIED, DELETED = 0, 1, 2
_KINDS = {"A": ADDED, "M": MODIFIED, "D": DELETED}
_DAY = 86400
_EVENT_COLUMNS = ("page", "t", "kind", "resemblance")
_PAGE_COLUMNS = ("page", "path", "url")


@dataclass(frozen=True, slots=True)
class ChangeTrace:
    """The life of n pages over a window of whole days, events in the order in which they happened."""

    urls: list[str]
    """(n,) URL path on the server, or the path in the repository of a page that is not served."""
    alive: npt.NDArray[np.bool_]
    """(n,) whether the page exists when the window begins."""
    born: npt.NDArray[np.int64]
    """(n,) day of the first ADDED event in the window; 0 for a page alive at the start or never in the window."""
    day: npt.NDArray[np.int64]
    """(e,) day of each event, 0..days-1, non-decreasing."""
    page: npt.NDArray[np.int64]
    """(e,) page of each event, 0..n-1."""
    kind: npt.NDArray[np.int8]
    """(e,) ADDED, MODIFIED or DELETED."""
    days: int
    """Length of the window."""


def start_of(date: str) -> int:
    """Unix seconds of 00:00 UTC of an ISO date. Raises InputError when it is none."""
    try:
        at = datetime.datetime.combine(datetime.date.fromisoformat(date), datetime.time(), datetime.UTC)
    except ValueError as error:
        raise InputError(f"--start: {date!r} is no date; give YYYY-MM-DD") from error
    return int(at.timestamp())


def load_trace(
    events: Path,
    pages: Path,
    *,
    start: str,
    days: int,
    served: bool = False,
    min_change: float = 0.0,
    exclude: str | None = None,
) -> ChangeTrace:
    """Read a trace and cut out `days` days from 00:00 UTC of `start`.

    Parameters
    ----------
    served : keep only pages with a url
    min_change : modifications with a resemblance above 1 - `min_change` do not exist; an unknown one counts
    exclude : regular expression; pages whose url (or path, without one) it finds are left out

    Raises InputError, naming file, column or argument, when they cannot be used.
    """
    pattern = _pattern(exclude)
    if not 0 <= min_change <= 1:
        raise InputError(f"--min-change: {min_change} is not within 0..1")
    if days < 1:
        raise InputError(f"--days: {days} is below 1")
    seconds = start_of(start)
    page = _columns(pages, _PAGE_COLUMNS)
    urls, keep = _kept_pages(page, served=served, pattern=pattern)
    if not urls:
        raise InputError(f"{pages}: no page is left" + (f" by --exclude {exclude!r}" if exclude else ""))
    event = _columns(events, _EVENT_COLUMNS)
    index = np.full(int(max(page["page"].max(), event["page"].max(initial=0))) + 1, -1, dtype=np.int64)
    index[page["page"][keep]] = np.arange(len(urls))
    strange = set(event["kind"]) - set(_KINDS)
    if strange:
        raise InputError(f"{events}: kind {sorted(map(str, strange))[0]!r} is none of A, M, D")
    kind = np.array([_KINDS[name] for name in event["kind"]], dtype=np.int8)
    row, at = index[event["page"]], event["t"].astype(np.int64)
    # A null resemblance is NaN here, and no NaN is above a threshold: it counts.
    counts = (row >= 0) & ~((kind == MODIFIED) & (event["resemblance"] > np.float32(1 - min_change)))
    order = np.flatnonzero(counts)[np.argsort(at[counts], kind="stable")]
    return _window(urls, row[order], (at[order] - seconds) // _DAY, kind[order], days)


def _pattern(exclude: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(exclude) if exclude else None
    except re.error as error:
        raise InputError(f"--exclude: {exclude!r} is no regular expression: {error}") from error


def _columns(file: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """The named columns as numpy arrays; text columns as lists of str or None."""
    import pyarrow as pa  # noqa: PLC0415  (start-up time of the command line)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        present = pq.read_schema(file).names
        table = pq.read_table(file, columns=[name for name in names if name in present])
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{file}: cannot be read as parquet: {str(error).splitlines()[0]}") from error
    missing = [name for name in names if name not in present]
    if missing:
        raise InputError(f"{file}: has no column {missing[0]!r}; a trace needs {', '.join(names)}")
    numeric = ("page", "t", "resemblance")
    try:
        return {name: table[name].to_numpy() if name in numeric else table[name].to_pylist() for name in names}
    except pa.ArrowException as error:
        raise InputError(f"{file}: {error}") from error


def _kept_pages(
    page: dict[str, Any], *, served: bool, pattern: re.Pattern[str] | None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """URLs of the pages that stay, and their rows."""
    urls, rows = [], []
    for row, (path, url) in enumerate(zip(page["path"], page["url"], strict=True)):
        name = path if url is None else url
        if (url is not None or not served) and not (pattern and pattern.search(name)):
            urls.append(name)
            rows.append(row)
    return urls, np.array(rows, dtype=np.int64)


def _window(
    urls: list[str], page: npt.NDArray[np.int64], day: npt.NDArray[np.int64], kind: npt.NDArray[np.int8], days: int
) -> ChangeTrace:
    """Events in the order of time, with days counted from the start, cut to 0..days-1."""
    alive = np.zeros(len(urls), dtype=np.bool_)
    before = day < 0
    # Fancy assignment keeps the last value of a repeated index: the page's newest event before the start.
    alive[page[before]] = kind[before] != DELETED
    inside = ~before & (day < days)
    page, kind, day = page[inside], kind[inside], day[inside]
    born = np.zeros(len(urls), dtype=np.int64)
    added = (kind == ADDED)[::-1]
    born[page[::-1][added]] = day[::-1][added]
    born[alive] = 0
    return ChangeTrace(urls, alive, born, day, page, kind, days)


_LISTED = 0.5


class Sitemap:
    """The server's side: what the file says on each day."""

    def __init__(self, trace: ChangeTrace, *, seed: int) -> None:
        self._trace = trace
        self._listed = np.random.default_rng(seed).random(len(trace.urls)) < _LISTED
        self._modified = np.full(len(trace.urls), -1, dtype=np.int64)
        self._read = 0

    def listed(self, pages: Pages) -> Flags:
        """Whether the sitemap tells of these pages."""
        return self._listed[pages]

    def modified(self, day: int, pages: Pages) -> Pages:
        """Day of each page's last event before `day`, -1 for none; days must not decrease."""
        until = int(np.searchsorted(self._trace.day, day))
        span = slice(self._read, until)
        # Fancy assignment keeps the last value of a repeated page: its newest event.
        self._modified[self._trace.page[span]] = self._trace.day[span]
        self._read = until
        return self._modified[pages]


class Fetches(NamedTuple):
    """What a day's fetches found, one array element each."""

    pages: Pages
    tau: Pages
    """Days since the fetch before, or since the birth."""
    first: Flags
    """Whether there was no copy before."""
    changed: Flags
    """Whether the page was obsolete (a first copy always is)."""
    gone: Flags
    """Whether the page was found deleted."""
    waiting: int
    """Known pages that are left without a copy."""


class Learner(Protocol):
    """What the simulation asks of a policy. It never tells more than a crawler could see."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        """Urgency of known, crawled pages; ties go to the lower page."""
        ...

    def learn(self, day: int, fetches: Fetches) -> None:
        """Take in what the day's fetches found."""
        ...


class Uniform:
    """Every page equally often: the greatest tau first."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return tau.astype(np.float64)

    def learn(self, day: int, fetches: Fetches) -> None:
        """Nothing to learn."""


class Proportional(Uniform):
    """As often as the page truly changes: the greatest tau * rate first. Known to be worse than uniform.

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4.
    """

    def __init__(self, trace: ChangeTrace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau * self._rate[pages])


class PoissonOracle(Uniform):
    """Optimal were the pages Poisson processes of known rate: the greatest index at the true rate first."""

    def __init__(self, trace: ChangeTrace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return urgency_of_known_rate(self._rate[pages], tau.astype(np.float64))


class PoissonLearned:
    """The oracle's index at a learned rate: (changes + 1/2)/(T + 60 days), half of tau counting when one was found."""

    def __init__(self, pages: int) -> None:
        self._changes, self._watched = np.zeros(pages), np.zeros(pages)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        rate = (self._changes[pages] + 0.5) / (self._watched[pages] + 60)
        return urgency_of_known_rate(rate, tau.astype(np.float64))

    def learn(self, day: int, fetches: Fetches) -> None:
        self._changes[fetches.pages] += fetches.changed
        self._watched[fetches.pages] += np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)


class NutchAdaptive:
    """Nutch's adaptive schedule: the interval shrinks by 0.8 on a change and grows by 1.4 without one."""

    def __init__(self, pages: int) -> None:
        self._interval = np.full(pages, 30.0)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau / self._interval[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        factor = np.where(fetches.changed, 0.8, 1.4)
        self._interval[fetches.pages] = np.clip(self._interval[fetches.pages] * factor, 1, 365)


class Clairvoyant(Uniform):
    """The bound: of the obsolete pages that exist, those whose next event is farthest. It alone sees the truth."""

    def __init__(self, trace: ChangeTrace) -> None:
        order = np.lexsort((trace.day, trace.page))
        # One sorted key per event; the next event of a page is the first key not below (page, day).
        self._span = trace.days + 1
        self._keys = trace.page[order] * self._span + trace.day[order]

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        at = np.searchsorted(self._keys, pages * self._span + day)
        following = np.append(self._keys, np.iinfo(np.int64).max)[at]
        same = following // self._span == pages
        return np.where(same, following % self._span, self._span).astype(np.float64)


def true_rates(trace: ChangeTrace) -> Array:
    """(n,) a page's events in the window per day since the start or its birth."""
    events = np.bincount(trace.page, minlength=len(trace.urls))
    return np.asarray(events / (trace.days - trace.born))


ABLATIONS = {
    "fountain": Signals(),
    "fountain-siblings": Signals(siblings=False),
    "fountain-sections": Signals(sections=False),
    "fountain-history": Signals(history=False),
    "fountain-forgetting": Signals(forgetting=False),
    "fountain+weekdays": Signals(weekdays=True),
}
"""The policy as it is, with each signal switched off, "fountain-siblings" being fountain without siblings, and with
that switched on which is off by default."""

IMPORTANCE = "fountain+importance"
"""Its urgency is weighted with the importance of the page."""

SITEMAP = "fountain+sitemap"
"""It reads a sitemap once a day, in place of a page; ranked."""

RANKING = "ranking"
"""The same urgency, all pages ranked together each day in place of a price."""

_SITE: Final = "http://trace.example"
_POLICY: Final = """
[collection]
name = "replay"
seeds = ["{site}/"]
[politeness]
user_agent = "webfountain-replay/1.0 (+https://example.org/)"
[cycle]
period = "1d"
capacity_pages_per_period = {capacity}
strategy = "fountain"
[signals]
{signals}
"""
_SWITCHES: Final = ("siblings", "sections", "history", "forgetting", "weekdays")
_NEVER_S: Final = 1e12
_LATENCY_S: Final = 0.1


class AtAPrice:
    """A crawl of the trace's pages as one site: the worker's `UrgentPages` and the loop's `PlanFollower`, no others.

    The plan is the budget alone, with the first price of a collection of which nothing is known; the interval of each
    bucket that stands behind the urgencies is left out. A period is a day; times are seconds since the start, when all
    pages that live were fetched.
    """

    def __init__(self, trace: ChangeTrace, capacity: int, *, signals: Signals, weighed: bool = False) -> None:
        """`weighed`: urgency counts a page's importance."""
        switches = {name: getattr(signals, name) for name in _SWITCHES} | {"importance": weighed}
        table = "\n".join(f"{name} = {str(value).lower()}" for name, value in switches.items())
        text = _POLICY.format(site=_SITE, capacity=capacity, signals=table)
        collection = parse_collection(text, Path("replay.toml"))
        urgent = urgent_pages_of(collection, recrawl=True)
        assert urgent is not None
        self.urgent = urgent
        self.follower = PlanFollower(collection, metrics=Metrics(), start=0.0)
        urls = [f"{_SITE}/{path.lstrip('/')}" for path in trace.urls]
        self._urls, self._keys = urls, [fingerprint(url) for url in urls]
        self._page = {key: page for page, key in enumerate(self._keys)}
        alive = np.flatnonzero(trace.alive).tolist()
        self._crawled = {page: PageRecord(urls[page], state="crawled", last_crawled=0.0) for page in alive}
        self.follower.adopt(_budget(len(alive), capacity, float(collection.cycle.period_s), signals))
        self._lease = SiteLease(_SITE, 1, _NEVER_S, SiteRecord(_SITE, (0,) * len(STATES), 0.0, 0.0, SiteState()))
        self._due: dict[bytes, tuple[float, int]] = {}  # when it was due, and the order in which they were made due
        self._made_due = 0
        self._never_crawled = 0
        self._starved = self._changed = False
        self._learned = b""

    def choose(self, at: float, many: int) -> Pages:
        """At most so many pages that are due; as the frontier and its worker do with a batch."""
        urgent, follower = self.urgent, self.follower
        follower.check(at, starved=self._starved)
        self._starved = False
        price = follower.schedule.price
        assert price is not None
        urgent.divide(len(self._crawled), 1)
        if urgent.wants(self._lease):
            urgent.admit(self._lease, self._learned, self._crawled.values, at=at)
        hand = max(many, 1)  # as a site's, which holds a page for when the budget has room for it
        if _SITE in urgent:
            self._make_due(price, hand, at)
        urgent.look(at, crawled=len(self._crawled), never_crawled=self._never_crawled)
        first = nsmallest(many, self._due.items(), key=lambda item: item[1])
        self._starved = len(self._due) < hand
        return np.array([self._page[key] for key, _ in first], dtype=np.int64)

    def _make_due(self, price: float, hand: int, at: float) -> None:
        urgent = self.urgent
        room = {_SITE: max(hand - len(self._due), 0)}
        changed = [_SITE] if self._changed else []
        self._changed = False
        urgent.prepare(room, changed, price, at=at)
        for keys in urgent.outranking(changed, price, at=at).values():
            self._put(keys, at - urgent.interval)
        for keys in urgent.due(room, price, at=at).values():
            self._put(keys, at)
        waiting = urgent.demand(price, at)
        top, level = urgent.free(self.follower.missing(), at)
        for keys in urgent.recalled(price, at=at).values():
            self._put(keys, at)
        self.follower.hand_over(ranks=urgent.ranks, waiting=waiting, top=top, level=level)

    def _put(self, keys: Iterable[bytes], due: float) -> None:
        for key in keys:
            self._made_due += 1
            self._due[key] = (due, self._made_due)

    def learn(self, at: float, fetches: Fetches) -> None:
        """Take in what fetches found; of `fetches` the days since the last one are not used."""
        visits = [
            self._visit(at, *each)
            for each in zip(
                fetches.pages.tolist(), fetches.first.tolist(), fetches.changed.tolist(), fetches.gone.tolist(),
                strict=True,
            )
        ]  # fmt: skip
        self._never_crawled = fetches.waiting
        for _, kept in self.urgent.observe(visits, at=at):
            self._learned = kept

    def _visit(self, at: float, page: int, first: bool, changed: bool, gone: bool) -> Visit:
        self.follower.count()
        self._due.pop(self._keys[page], None)
        before = self._crawled.pop(page, None)
        kind: OutcomeKind = "gone" if gone else "new" if first else "changed" if changed else "same"
        history = b""
        if before is not None and before.last_crawled is not None and not first:
            history = append(before.history, at - before.last_crawled, changed)
        state: State = "gone" if gone else "crawled"
        record = PageRecord(self._urls[page], state=state, last_crawled=at, history=history)
        if not gone:
            self._crawled[page] = record
        self._changed |= kind == "changed"
        fetch = Fetch(1, "page", record.url, _SITE, None)
        return Visit(Fetched(fetch, at, _LATENCY_S, 404 if gone else 200), kind, record)


def _budget(pages: int, capacity: int, period_s: float, signals: Signals) -> Plan:
    """A plan of one period that goes on: recrawls alone, and the price at which pages ask for them."""
    known = np.array([float(max(pages, 1))])
    return Plan(
        start=0.0, period=period_s, strategy=3, fountain=True, weights=(0.0,), recrawl=(capacity,), fresh=(0,),
        buckets=(), pages=(), rates=(), quotas=((),), forecast=Forecast((0.0,), (0.0,), (0.0,), (0.0,)),
        objective=0.0, bound=0.0, gap=0.0, message="", seconds=0.0,
        price=price_of_budget(known, np.array([signals.prior_rate / period_s]), capacity / period_s),
        intervals=(_NEVER_S,) * BUCKETS, phases=b"",
    )  # fmt: skip


class UrgencyPolicy:
    """The crawl's urgency of one site's pages (`core.site_urgency`), a day being a step; the greatest first."""

    def __init__(self, urls: list[str], *, signals: Signals) -> None:
        self._urls = urls
        self._site = SiteUrgency(signals=signals)
        self._today = Sites([self._site], step=0)
        self._number = np.full(len(urls), -1, dtype=np.int64)  # in `_site`, of the pages met so far

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        numbers = self._numbers(pages, day - tau)
        self._today = Sites([self._site], step=day)
        return self._today.urgency(numbers)

    def learn(self, day: int, fetches: Fetches) -> None:
        numbers = self._numbers(fetches.pages, day - fetches.tau)
        if len(self._site) > len(self._today.site):
            self._today = Sites([self._site], step=day)
        self._today.renew(numbers[fetches.first], step=day)
        seen = ~fetches.first & ~fetches.gone
        steps = np.full(np.count_nonzero(seen), day)
        self._today.observe(numbers[seen], fetches.changed[seen], steps)
        self._today.keep()

    def fresh_time(self, pages: Pages) -> Array:
        """Days that these pages, met before, may be expected to stay as they are."""
        return self._site.fresh_time(self._number[pages])

    def _numbers(self, pages: Pages, since: Pages) -> Pages:
        new = self._number[pages] < 0
        if new.any():
            self._number[pages[new]] = self._site.add(
                [self._urls[page] for page in pages[new].tolist()],
                since=since[new],
                importance=np.ones(np.count_nonzero(new)),
            )
        return self._number[pages]


class SitemapReader:
    """Fountain with a sitemap: a listed page is as urgent as its time of freshness when it changed, else not at all."""

    def __init__(self, fountain: UrgencyPolicy, sitemap: Sitemap) -> None:
        self._fountain, self._sitemap = fountain, sitemap

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        scores = self._fountain.score(day, pages, tau)
        listed = self._sitemap.listed(pages)
        changed = self._sitemap.modified(day, pages) >= day - tau
        scores[listed & ~changed] = 0.0
        struck = listed & changed
        scores[struck] = self._fountain.fresh_time(pages[struck])
        return scores

    def learn(self, day: int, fetches: Fetches) -> None:
        self._fountain.learn(day, fetches)
