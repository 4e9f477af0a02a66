"""Measure the choice of pages at a price: ``python -m tests.benchmarks.bench_price [--sites N] [--days D]``.

The generated sites have 100 pages in five directories. Releases change a whole site (every 90 days), a directory (60
days) or a single page (200 days, log-normal). The frontier runs without I/O under a manual clock, on an embedded store
with pages that were crawled within the last 30 days. Each day a thirtieth of the pages is fetched. Printed are the CPU
of the selection (`UrgentPages`) per fetch and as a share of the crawl's CPU, peak memory, the used share of the budget,
and the obsolete share. The set-up is not measured, and ``--store DIR`` keeps the store for the next run with the same
options. The default is 10^5 pages. With ``--sites 100000 --days 1 --store DIR`` there are 10^7 pages, and filling the
store takes some 10 minutes. With ``--sites 1 --pages 900 --interval 90 --days 20`` the budget is a few fetches for one
large site. With ``--sites 1 --pages 100000 --window 10000`` a very large site has windows, and with ``--window 100000``
it is in memory as a whole. ``--ranking`` also ranks all pages of the collection together fifty times a day, and prints
the ratio of the obsolete shares (goal 1.05). Most of the cost of a fetch is reading its page. Most of the cost of the
selection is numpy over the sites of a batch.
"""

from __future__ import annotations

import argparse
import heapq
import random
import resource
import shutil
import tempfile
import time
from collections import defaultdict
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests.frontier.drive import Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.core.change_rate import append
from webfountain.crawl.process_memory import tune_memory
from webfountain.frontier.batch import CensusSnapshot, SavedSiteData
from webfountain.frontier.pages.policy_review import Review
from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.collection_forecast import CollectionForecast
from webfountain.frontier.planning.kept_sites import begin_site
from webfountain.frontier.planning.page_supply import PageSupply
from webfountain.frontier.planning.plan import encode_plan
from webfountain.frontier.planning.planner import Controller
from webfountain.frontier.planning.urgency_terms import UrgencyPace
from webfountain.frontier.planning.urgent_pages import UrgentPages, urgent_pages_of
from webfountain.frontier.visit import Visit
from webfountain.policy.collection_file import CollectionInForce
from webfountain.policy.judge import Judge
from webfountain.records import STATES, Fetch, FetchResult, Link, Outcome, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.contract import COLLECTION, PLAN
from webfountain.store.lanes import LANES
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.policy.collection import Collection
    from webfountain.store.contract import FrontierStore

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

RATE = 333.0
"""Fetches per second, as by one busy process. A day takes as long as the fetches of a thirtieth of the pages."""
POLITE = 15.0
"""Fetches per second of one site, where politeness allows 20."""
SHORTEST_DAY_S = 10
BATCH_S = 0.1
"""Time between two batches of the worker thread, s, as when it is busy."""
START = 1e9
DIRECTORIES = 5
SITE_DAYS, DIRECTORY_DAYS, PAGE_DAYS = 90.0, 60.0, 200.0
POLLS = 10
"""Number of comparisons with the truth per day."""
OBSERVED = 400
"""Number of sites that are compared with the truth."""
SELECTION: tuple[tuple[type, tuple[str, ...]], ...] = (
    (UrgentPages, ("wants", "admit", "prepare", "outranking", "due", "observe", "refuse", "next_at", "leave", "turn")),
    (UrgencyPace, ("divide",)),
    (PageSupply, ("demand", "best", "call")),
    (CollectionForecast, ("update", "encode")),
)
"""Functions that are measured as the cost of choosing pages."""


class Releases(NamedTuple):
    """Changes of one site: the times of all pages, page after page, and where the times of each page begin."""

    times: Array
    begins: Ints


class Web:
    """The generated sites as a function of time."""

    def __init__(self, options: argparse.Namespace, *, seed: int = 1) -> None:
        sites: int = options.sites
        self.pages: int = options.pages
        self.interval_days: int = options.interval
        self.names = [f"http://10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(sites)]
        self.number = {name: n for n, name in enumerate(self.names)}
        self._days, self._seed = options.days, seed
        self.day_s = max(round(sites * self.pages / self.interval_days / min(RATE, sites * POLITE)), SHORTEST_DAY_S)
        self.releases = lru_cache(OBSERVED * 10)(self._releases)
        self.held = np.zeros((sites, self.pages), dtype=np.int16)  # versions of our copies
        self.cpu = 0.0

    def _releases(self, site: int) -> Releases:
        rng = np.random.default_rng([self._seed, site])
        span = self.interval_days * 2 + self._days

        def times(mean_days: float) -> list[float]:
            found = rng.uniform(-2 * self.interval_days, self._days, rng.poisson(span / mean_days))
            return [START + at * self.day_s for at in found.tolist()]

        whole = times(SITE_DAYS)
        shared = [times(DIRECTORY_DAYS * rng.lognormal(0, 0.5)) for _ in range(DIRECTORIES)]
        own = [times(PAGE_DAYS * rng.lognormal(0, 1)) for _ in range(self.pages)]
        of_page = [sorted(whole + shared[page % DIRECTORIES] + own[page]) for page in range(self.pages)]
        counts = [len(each) for each in of_page]
        return Releases(np.array([at for each in of_page for at in each]), np.cumsum([0, *counts]))

    def version(self, site: int, page: int, at: float) -> int:
        releases = self.releases(site)
        begin, end = releases.begins[page : page + 2]
        return int(np.searchsorted(releases.times[begin:end], at, side="right"))

    def obsolete(self, sites: range, at: float) -> float:
        """Return the share of the pages of some sites with an obsolete copy."""
        stale = 0
        for site in sites:
            releases = self.releases(site)
            before = np.concatenate([[0], np.cumsum(releases.times <= at)])
            now = before[releases.begins[1:]] - before[releases.begins[:-1]]
            stale += int(np.count_nonzero(now != self.held[site]))
        return stale / (len(sites) * self.pages)

    def answer(self, fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        """Return the page, or that it is unchanged."""
        begun = time.thread_time()
        try:
            if fetch.kind != "page":
                return 404, {}, b"", 0.001
            site, page = self.number[fetch.site], int(fetch.url.rsplit("/", 1)[1])
            version = self.version(site, page, at)
            self.held[site, page] = version
            etag = f'"{version}"'
            if fetch.etag == etag:
                return 304, {"etag": etag}, b"", 0.001
            body = f"<title>{page}</title><p>{' '.join(f'w{version}x{n}' for n in range(60))}</p>"
            return 200, {"content-type": "text/html", "etag": etag}, body.encode(), 0.001
        finally:
            self.cpu += time.thread_time() - begun


class PacedDrive(Drive):
    """A drive whose worker thread takes a batch every `BATCH_S` seconds."""

    work_at = 0.0

    def go(self, end: float) -> None:
        """Run until a time."""
        while (now := self.clock.now()) < end:
            while (fetch := self.frontier.next()) is not None:
                self._send(fetch)
            while self.flying and self.flying[0][0] <= now:
                self._land(heapq.heappop(self.flying)[2])
            if now >= self.work_at:
                self.work_at = now + BATCH_S
                if (batch := self.frontier.work.take()) is not None:
                    self.frontier.work.absorb(self.frontier.worker.run(batch))
                    self.frontier.planner.making()  # the plan stays: it is the price that follows
            waking = [at for at in (self.frontier.wake_at(), self.frontier.work_at()) if at > now]
            self.clock.set(max(min([self.work_at, end, *(each[0] for each in self.flying[:1]), *waking]), now))

    def take_pages(self) -> int:
        """Return the number of page fetches since the last call, and drop log and items, which no crawl keeps."""
        pages = len(self.asked())
        self.log.clear()
        self.items.clear()
        return pages


def main() -> None:
    """Set up, crawl, and print the figures."""
    options = _options()
    site_windows.WINDOW = options.window  # type: ignore[misc]
    web = Web(options)
    capacity = options.sites * options.pages // options.interval
    collection = collection_of(
        [f"{web.names[0]}/d0/0"], min_delay="50ms", delay_factor=1, period=f"{web.day_s}s", collection='scope = "any"',
        rest=f'capacity_pages_per_period = {capacity}\nperiods = 14\nstrategy = "fountain"\n',
    )  # fmt: skip
    if options.store is not None:
        options.store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webfountain-price-", dir=options.store) as folder:
        filled = _filled(options, web, collection, Path(folder))
        _copy(filled, Path(folder) / "run")
        clock = ManualClock(START)
        store = open_store(f"rocksdb://{folder}/run", collection="test", period_s=web.day_s)
        share = crawl(store, web, collection, clock, options.days, capacity)
    if options.ranking:
        again = Web(options)
        best = ranked(again, collection, options.days, capacity)
        print(f"all pages ranked together: obsolete {best:.5f}; at a price {share / best:.3f} of that (goal 1.05)")


def _filled(options: argparse.Namespace, web: Web, collection: Collection, folder: Path) -> Path:
    """Return a store as an earlier crawl left it, and the versions of its copies. Use an existing store if there is
    one.
    """
    name = f"{options.sites}-{options.pages}-{options.interval}-{options.days:g}"
    kept = (options.store or folder) / name
    if not kept.exists():
        making = folder / "making"
        store = open_store(f"rocksdb://{making}/store", collection="test", period_s=web.day_s)
        begun = time.process_time()
        set_up(store, web, collection)
        store.close()
        np.save(making / "held.npy", web.held)
        making.rename(kept)
        print(f"{options.sites:,} sites of {options.pages} pages set up: {time.process_time() - begun:.0f} s of CPU")
    web.held[:] = np.load(kept / "held.npy")
    return kept / "store"


def _copy(store: Path, to: Path) -> None:
    """Return a copy of a store, by links to its tables, which RocksDB never changes."""
    for path in store.rglob("*"):
        target = to / path.relative_to(store)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".sst":
            target.hardlink_to(path)
        elif path.is_file():
            shutil.copyfile(path, target)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=100, help="of each site")
    parser.add_argument("--interval", type=int, default=30, help="days of the budget for all pages")
    parser.add_argument("--days", type=float, default=4.0)
    parser.add_argument("--ranking", action="store_true")
    parser.add_argument("--window", type=int, default=site_windows.WINDOW, help="pages of a site in memory at once")
    parser.add_argument("--store", type=Path, help="a folder that keeps the filled store for other runs")
    return parser.parse_args()


def records_of(web: Web, site: int) -> list[PageRecord]:
    """Return the pages of a site after a crawl that visited each page once per interval, the last time at random."""
    rng = random.Random(site)
    records = []
    for page in range(web.pages):
        last = START - rng.random() * web.interval_days * web.day_s
        now, before = web.version(site, page, last), web.version(site, page, last - web.interval_days * web.day_s)
        web.held[site, page] = now
        url = f"{web.names[site]}/d{page % DIRECTORIES}/{page}"
        records.append(PageRecord(
            url, state="crawled", last_crawled=last, first_seen=last - 60 * web.day_s, bucket=200, status=200,
            etag=f'"{now}"', checks=1, changes=int(now != before), digest=f"{now:040x}", policy="default",
            history=append(b"", web.interval_days * web.day_s, now != before),
        ))  # fmt: skip
    return records


def set_up(store: FrontierStore, web: Web, collection: Collection) -> None:
    """Fill a store with crawled pages and inactive sites, with what was learned about each site."""
    Review(store, Judge(collection, year=2026)).begin(collection)  # of no pages, else the crawl reviews all of them
    urgent = urgent_pages_of(collection, recrawl=True)
    assert urgent is not None
    urgent.pace.divide(len(web.names) * web.pages, len(web.names))
    at = START
    rng = random.Random(0)
    for begin in range(0, len(web.names), 200):
        names = web.names[begin : begin + 200]
        records = {name: records_of(web, web.number[name]) for name in names}
        keys = {name: [fingerprint(record.url) for record in records[name]] for name in names}
        for name in names:
            store.queues.discover([Link(r.url, name, k) for r, k in zip(records[name], keys[name], strict=True)], at=at)
        leases = store.sites.activate(len(names), owner="set-up", until=at + 1e6, at=at)
        outcomes = []
        for dealt in store.queues.lease(
            [Refill(lease, never_crawled=web.pages, horizon=[at] * LANES) for lease in leases]
        ):
            assert dealt is not None
            of = dict(zip(keys[dealt.site], records[dealt.site], strict=True))
            outcomes += [Outcome(lease.id, "new", of[lease.key], 0.01, 0) for lease in dealt.never_crawled]
        learned = []
        for lease in leases:
            site = begin_site(lease.site, records[lease.site], urgent.pace.terms.rounded(), at=at)
            learned.append((lease, SavedSiteData(urgency=site.encode()).encode()))
        store.queues.settle(outcomes, at=at, learned=learned)
        state = SiteState(robots_at=at, robots_ok=True, robots=None)
        store.sites.park([ParkRequest(lease, at + rng.random() * web.day_s / 4, state) for lease in leases], at=at)
    taken = CensusSnapshot(at, store.census.buckets(), store.census.rows(since=0), 0)
    plan = Controller(collection, start=at).plan_from(taken)
    assert plan is not None
    store.board.put_value(PLAN, encode_plan(plan))
    store.board.put_value(
        COLLECTION, CollectionInForce.encode(collection)
    )  # else all pages are judged anew at the start


def crawl(
    store: FrontierStore, web: Web, collection: Collection, clock: ManualClock, days: float, capacity: int
) -> float:
    """Drive the frontier, and return the mean obsolete share."""
    spent: dict[str, float] = defaultdict(float)
    for part, names in SELECTION:
        for name in names:
            setattr(part, name, _timed(getattr(part, name), name, spent))
    drive = PacedDrive(collection, web.answer, store=store, clock=clock, active_sites=1000)
    tune_memory()  # as a crawl does; otherwise full collections of cycles fall on any of the parts that are measured
    polled = range(min(OBSERVED, len(web.names)))
    shares, used, fetches = [], list[int](), 0
    begun, web.cpu = time.process_time(), 0.0
    outside = 0.0
    polls = int(days * POLLS)
    for poll in range(1, polls + 1):
        drive.go(START + poll * web.day_s / POLLS)
        before = time.process_time()
        shares.append(web.obsolete(polled, clock.now()))
        outside += time.process_time() - before
        fetches += drive.take_pages()
        used.append(fetches)
        price = drive.frontier.planner.follower.schedule.price
        if poll == polls // 2:  # from here on: before, the price of a store that was made at once has to be found
            middle = time.process_time() - begun - outside - web.cpu, sum(spent.values())
        print(f"  day {poll / POLLS:.1f}: {used[-1]:,} fetches, obsolete {shares[-1]:.5f}, price {price}", flush=True)
    cpu = time.process_time() - begun - outside - web.cpu
    half = len(used) // 2
    later = fetches - used[half - 1]
    late = later / (capacity * (len(used) - half) / POLLS)
    selection = sum(spent.values())
    cpu_later, selection_later = cpu - middle[0], selection - middle[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"selection {1e3 * selection / fetches:.4f} ms of CPU a fetch, {selection / cpu:.1%} of "
        f"{1e3 * cpu / fetches:.3f} ms; in the second half {1e3 * selection_later / later:.4f} ms, "
        f"{selection_later / cpu_later:.1%} of {1e3 * cpu_later / later:.3f} ms; budget used {late:.3f} (second half); "
        f"peak memory {memory:.0f} MB; "
        f"obsolete {np.mean(shares):.5f}"
    )
    print("  of it: " + ", ".join(f"{name} {1e3 * each / fetches:.4f}" for name, each in sorted(spent.items())))
    return float(np.mean(shares))


def _timed(method: Any, name: str, spent: dict[str, float]) -> Any:
    @wraps(method)
    def timed(*arguments: Any, **named: Any) -> Any:
        begun = time.thread_time()
        try:
            return method(*arguments, **named)
        finally:
            spent[name] += time.thread_time() - begun

    return timed


def ranked(web: Web, collection: Collection, days: float, capacity: int) -> float:
    """Rank all pages together fifty times a day, and fetch the most urgent pages. Return the mean obsolete share."""
    urgent = urgent_pages_of(collection, recrawl=True)
    assert urgent is not None
    urgent.pace.divide(len(web.names) * web.pages, len(web.names))
    url: dict[bytes, str] = {}
    for name in web.names:
        records = records_of(web, web.number[name])
        url |= {fingerprint(record.url): record.url for record in records}
        lease = SiteLease(name, 1, START + 1e9, SiteRecord(name, (0,) * len(STATES), START, 0.0, SiteState()))
        urgent.admit(lease, b"", partial(iter, records), at=START)
    checks = 50
    shares, room = [], 0.0
    polled = range(min(OBSERVED, len(web.names)))
    for check in range(1, int(days * checks) + 1):
        at = START + check * web.day_s / checks
        room += capacity / checks
        urgent.reckon(web.names, 0.0, at)
        sites = [urgent.sites.active[name] for name in web.names]
        begins = np.cumsum([0, *map(len, sites)])
        urgency = np.concatenate([site.ranking.worth for site in sites])
        best = np.argpartition(-urgency, int(room))[: int(room)]
        room -= len(best)
        visits = []
        for page in best.tolist():
            number = int(np.searchsorted(begins, page, side="right")) - 1
            address = url[sites[number].pages.key(page - int(begins[number]))]
            fetch = Fetch(1, "page", address, web.names[number], None)
            held = int(address.rsplit("/", 1)[1])
            before = int(web.held[number, held])
            web.held[number, held] = version = web.version(number, held, at)
            record = PageRecord(address, state="crawled", last_crawled=at)
            visits.append(Visit(FetchResult(fetch, at, 0.1, 200), "changed" if version != before else "same", record))
        urgent.observe(visits)
        if check % (checks // POLLS) == 0:
            shares.append(web.obsolete(polled, at))
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
