"""Run one policy over one web for `bench_live`: under a manual clock without network, or as a real crawl over HTTP.

In both, a virtual day is a second of the crawl's clock, so all waits and leases have the same proportion. `clairvoyant`
knows every change of the record, and has the same budget.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tests.acceptance.crawls import Crawl, policy
from tests.benchmarks.live_webs import Judge, RecordedWeb
from tests.frontier.drive import Drive
from tests.servers.timeweb import DAY, START, TimeServer
from webfountain.clock import ManualClock
from webfountain.core.forecast import published
from webfountain.errors import InputError, StoreError
from webfountain.frontier.pages.examiner import digest_of
from webfountain.frontier.planning.plan import Plan, decode_plan
from webfountain.policy.collection_file import parse_collection
from webfountain.repository.repository import Repository
from webfountain.store.contract import FORECAST, PLAN
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.benchmarks.live_webs import Web
    from webfountain.core.forecast import Cycle
    from webfountain.records import Fetch, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["CYCLE", "POLICIES", "POLLS", "Ran", "Reading", "Setting", "clairvoyant", "live", "offline"]

POLICIES = ("uniform", "1", "2", "3", "fountain", "clairvoyant")
CYCLE = 14
"""Length of a cycle, days."""
LATENCY_S = 0.002
POLLS = 4
"""Number of samples per virtual day under the manual clock. A live store is read once per day."""
_TURNS = 24
"""How many times a day the clairvoyant fetches."""


class Setting(NamedTuple):
    """The setting of one run. The capacity of a day is the `share` of the first day's pages."""

    policy: str
    min_change: float
    days: int
    share: float
    seed: int = 1


class Reading(NamedTuple):
    """A sample of the store.

    The fields are the number of true pages, of obsolete pages, and of obsolete pages without a copy, then the fetches
    since the last sample, and predictions. The current plan predicts for the end of its period, including never-crawled
    pages. The prediction is None without a plan.
    """

    day: float
    pages: int
    obsolete: int
    missing: int
    fetches: int
    predicted: float | None
    predicted_oldest: float | None


class Ran(NamedTuple):
    """The result of a run."""

    checks: list[Reading]
    cycles: list[tuple[float, Cycle]]
    """For each complete cycle, the first day, and its forecast, true and found shares."""
    points: dict[float, list[float]]
    """Equally likely shares that were forecast for the cycle that began on each day, under the manual clock."""
    fetched: list[tuple[float, str]]
    """Day and URL of each fetch of a page under the manual clock."""


def offline(setting: Setting, web: Web, folder: Path) -> Ran:
    """Run the frontier under a manual clock, always with the same result."""
    start = 1_000_000.0
    bodies: dict[str, bytes] = {}
    judge = Judge(setting.min_change, bodies.__getitem__)
    sites = {base: number for number, base in enumerate(web.bases)}

    def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        site, path = fetch.site, fetch.url[len(fetch.site) :]
        if fetch.kind != "page":
            return 404, {}, b"", LATENCY_S
        found = web.respond(sites[site], path, at - start)
        etag = f'"{found.etag}"'
        headers = {"content-type": found.media_type} | ({"etag": etag} if found.etag else {})
        if found.location:
            headers["location"] = found.location
        if found.etag and fetch.etag == etag:
            return 304, headers, b"", LATENCY_S
        if setting.min_change:
            bodies.setdefault(digest_of(found.body), found.body)
        return found.status, headers, found.body, LATENCY_S

    first = web.truth(0.0)
    file = _policy(setting, web.bases, len(first), folder)
    collection = parse_collection(file.read_text(), file)
    clock = ManualClock(start)
    repository = Repository(folder / "repository", clock=clock) if setting.min_change else None
    drive = Drive(collection, answer, clock=clock, repository=repository, seed=setting.seed)
    days = []
    points: dict[float, list[float]] = {}
    for check in range(1, setting.days * POLLS + 1):
        before = len(drive.log)
        day = check / POLLS
        drive.run(seconds=start + day - clock.now())
        truth = web.truth(day)
        fetches = sum(kind == "page" for _, kind, _ in drive.log[before:])
        held = {record.url: record for _, record in drive.store.pages.records()}
        if setting.min_change:
            _remember(bodies, web, truth, sites, day)
        if (kept := published(drive.store.board.value(FORECAST))) is not None:
            points[kept.forecast.begin - start] = kept.forecast.points
        plan = drive.store.board.value(PLAN)
        found = decode_plan(plan) if plan else None
        days.append(_check(day, truth, held, judge, fetches, found, clock.now()))
    drive.frontier.close()
    fetched = [(at - start, url) for at, kind, url in drive.log if kind == "page"]
    return Ran(days, _cycles(drive.store, start), points, fetched)


def _cycles(store: FrontierStore, start: float) -> list[tuple[float, Cycle]]:
    kept = published(store.board.value(FORECAST))
    return [] if kept is None else [(cycle.begin - start, cycle) for cycle in kept.forecast.cycles]


def clairvoyant(setting: Setting, web: Web) -> list[Reading]:
    """Return the samples of a greedy crawler that knows every change.

    Of the obsolete pages, it fetches the pages that stay unchanged for longest, `_TURNS` times a day. A budget that is
    not needed is lost. A page without a copy is obsolete.
    """
    turns = setting.days * _TURNS
    truths = [web.truth(turn / _TURNS) for turn in range(turns + 1)]
    bodies: dict[str, bytes] = {}
    judge = Judge(setting.min_change, bodies.__getitem__)
    if setting.min_change:
        sites = {base: number for number, base in enumerate(web.bases)}
        for turn, truth in enumerate(truths):
            _remember(bodies, web, truth, sites, turn / _TURNS)
    capacity = round(len(truths[0]) * setting.share)
    held: dict[str, str] = {}
    checks: list[Reading] = []
    fetches, room = 0, 0.0
    for turn, truth in enumerate(truths[1:], start=1):
        room = room % 1.0 + capacity / _TURNS
        stale = [url for url, live in truth.items() if url not in held or judge.obsolete(held[url], live)]
        if len(stale) > int(room):
            stale.sort(key=lambda url: _lasts(url, truths[turn:], judge), reverse=True)
        for url in stale[: int(room)]:
            held[url] = truth[url]
            fetches, room = fetches + 1, room - 1.0
        if turn % (_TURNS // POLLS) == 0:
            missing = sum(url not in held for url in truth)
            obsolete = sum(url in held and judge.obsolete(held[url], live) for url, live in truth.items())
            checks.append(Reading(turn / _TURNS, len(truth), obsolete + missing, missing, fetches, None, None))
            fetches = 0
    return checks


def _lasts(url: str, truths: Sequence[Mapping[str, str]], judge: Judge) -> int:
    """Return the number of turns for which a copy of the page in the first truth stays fresh."""
    copy = truths[0][url]
    for turn, truth in enumerate(truths):
        if url not in truth or judge.obsolete(copy, truth[url]):
            return turn
    return len(truths)


def _remember(bodies: dict[str, bytes], web: Web, truth: dict[str, str], sites: Mapping[str, int], day: float) -> None:
    """Keep the bodies of today's truth, to compare copies with them."""
    for url, digest in truth.items():
        if digest not in bodies:
            base = next(base for base in sites if url.startswith(f"{base}/"))
            bodies[digest] = web.respond(sites[base], url[len(base) :], day).body


def live(setting: Setting, archive: Path, folder: Path, *, offset: float) -> Ran:
    """Run a crawl over HTTP in a separate process, and read its store once a day."""
    store = folder / "store"
    with TimeServer(archive, rate=DAY, origin=START + offset * DAY, latency=LATENCY_S) as server:
        web = RecordedWeb(archive, bases=[url.rstrip("/") for url in server.urls])
        judge = Judge(setting.min_change, web.body)
        start = server.clock.utc(START + offset * DAY)
        collection = _policy(setting, server.urls, len(server.truth().pages), folder)
        days: list[Reading] = []
        seen = 0
        with Crawl(collection, store) as crawl:
            for day in range(1, setting.days + 1):
                time.sleep(max(0.0, start + day - time.time()))
                plan, held = _read(store)
                truth = server.truth(time.time())
                visits = server.log(after=seen)
                seen += len(visits)
                fetches = sum(not visit.path.startswith("/robots.txt") for visit in visits)
                days.append(_check(float(day), truth.pages, held, judge, fetches, plan, start + day))
            assert crawl.process.poll() is None, crawl.errors.read_text()
            crawl.terminate()
            assert crawl.wait(10) == 0
    opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    try:
        return Ran(days, _cycles(opened, start), {}, [])
    finally:
        opened.close()


def _read(store: Path) -> tuple[Plan | None, dict[str, PageRecord]]:
    """Return the current plan and the records by URL, or nothing before the crawl has made its store."""
    try:
        opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    except (StoreError, InputError):
        return None, {}
    try:
        data = opened.board.value(PLAN)
        return decode_plan(data) if data else None, {record.url: record for _, record in opened.pages.records()}
    finally:
        opened.close()


def _policy(setting: Setting, seeds: Iterable[str], pages: int, folder: Path) -> Path:
    """Write the policy file, with a capacity for a share of the pages. `uniform` visits every page in turn."""
    capacity = round(pages * setting.share)
    every = f"{pages / capacity:.4f}s"
    strategy: object = setting.policy if setting.policy == "fountain" else 3
    tables: dict[str, dict[str, object]] = {}
    if setting.policy in ("1", "2", "3"):
        strategy = int(setting.policy)
    if setting.policy == "uniform":
        tables["policies__default"] = {"revisit": {"min_interval": every, "max_interval": every}}
    cycle = {"period": "1s", "periods": CYCLE, "capacity_pages_per_period": capacity, "strategy": strategy}
    tables["politeness"] = {"user_agent": "webfountain-bench/1.0 (+https://example.org/bench)"}
    homes = [f"{seed.rstrip('/')}/" for seed in seeds]
    return policy(folder, homes, change={"min_change": setting.min_change}, cycle=cycle, **tables)


def _check(
    day: float,
    truth: Mapping[str, str],
    held: Mapping[str, PageRecord],
    judge: Judge,
    fetches: int,
    plan: Plan | None,
    at: float,
) -> Reading:
    copies = {url: record.digest for url, record in held.items() if record.digest is not None}
    missing = sum(url not in copies for url in truth)
    stale = sum(url in copies and judge.obsolete(copies[url] or "", digest) for url, digest in truth.items())
    if plan is None or at > plan.end + 1.0:
        return Reading(day, len(truth), stale + missing, missing, fetches, None, None)
    period = plan.period_at(at - 0.01 * plan.period)
    new, forecast = plan.forecast.never_crawled[period], plan.forecast
    predicted, oldest = forecast.obsolete[period] + new, forecast.obsolete_oldest_first[period] + new
    return Reading(day, len(truth), stale + missing, missing, fetches, predicted, oldest)
