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

Our own policy in the simulation: the live crawler's urgency of a site's pages, from what fetches found. Two more of
its signals need what a bare trace does not have, and are policies of their own here: the importance of pages, and a
sitemap.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from webfountain.core.activity import Signals, urgency_of_known_rate
from webfountain.core.site_urgency import Found, Reckoning, Sites, SiteUrgency
from webfountain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Array = npt.NDArray[np.float64]

__all__ = [
    "ABLATIONS",
    "ADDED",
    "DELETED",
    "IMPORTANCE",
    "MODIFIED",
    "SITEMAP",
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
"""It reads a sitemap once a day, in place of a page."""


class UrgencyPolicy:
    """The live crawler's urgency of one site's pages (`core.site_urgency`), a day being a step; the greatest first."""

    def __init__(self, urls: list[str], *, signals: Signals, importance: Array | None = None) -> None:
        """`importance` is (n,), a factor of each page's urgency; None: all pages are as important."""
        self._urls = urls
        self._importance = np.ones(len(urls)) if importance is None else importance
        self._site = SiteUrgency(signals=signals)
        self._today = Sites([self._site], step=0)
        self.found: Found | None = None
        """What the last day's fetches showed of what had been believed."""
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
        self.found = self._today.observe(numbers[seen], fetches.changed[seen], steps)
        self._today.keep()

    def reckon(self, day: int, pages: Pages) -> Reckoning:
        """How many of these pages, met before, are believed to be obsolete."""
        wanted = np.zeros(len(self._site), dtype=np.bool_)
        wanted[self._number[pages]] = True
        return Sites([self._site], step=day).reckon(wanted)

    def fresh_time(self, pages: Pages) -> Array:
        """Days that these pages, met before, may be expected to stay as they are."""
        return self._site.fresh_time(self._number[pages])

    def _numbers(self, pages: Pages, since: Pages) -> Pages:
        new = self._number[pages] < 0
        if new.any():
            self._number[pages[new]] = self._site.add(
                [self._urls[page] for page in pages[new].tolist()],
                since=since[new],
                importance=self._importance[pages[new]],
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
