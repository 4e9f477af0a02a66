"""Urgent pages in a crawl: a release is followed, a restart goes on, what the policy file says of signals is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from tests.frontier.test_frontier import HTML, linked, site_of_pages
from webfountain.clock import ManualClock
from webfountain.core.signals import Signals
from webfountain.frontier.batch import SavedSiteData
from webfountain.frontier.planning import kept_sites, site_windows, urgent_pages
from webfountain.frontier.planning.site_ranking import RUNGS
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webfountain.records import Fetch

DAY = 86_400.0
START = 1_000_000.0
SITE = "http://one.example"
SMALL = "http://small.example"
NAMES = [f"{directory}/{page}" for page in range(12) for directory in ("docs", "blog")]


def drive_of(
    answer: Web,
    *,
    capacity: int = 8,
    seeds: Sequence[str] = (f"{SITE}/",),
    strategy: str = '"fountain"',
    rest: str = "",
    **more: Any,
) -> Drive:
    budget = (
        f"periods = 2\nstrategy = {strategy}\ncapacity_pages_per_period = {capacity}\n[change]\nmin_change = 0\n{rest}"
    )
    return Drive(collection_of(seeds, rest=budget, politeness="per_ip = false"), answer, **more)


def still(names: Sequence[str] = NAMES) -> Web:
    """A web on which nothing changes."""
    return site_of_pages({"": linked(*names)} | dict.fromkeys(names, b"x"))


def run(drive: Drive, days: float, *, until: Callable[[], object] | None = None) -> None:
    """As the worker does, ask for work also when nothing has landed."""
    end = drive.clock.now() + days * DAY
    while drive.clock.now() < end and not (until is not None and until()):
        drive.run(seconds=DAY / 100)


@pytest.mark.untraced
@pytest.mark.parametrize(("siblings", "least", "most"), [(True, 7, 8), (False, 0, 5)])
def test_a_release_of_a_directory_is_followed_within_a_day_by_what_its_siblings_show(
    siblings: bool, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 pages eight are fetched a day; then all of docs change at once, and one fetch comes upon it."""
    release = START + 11.2 * DAY

    def answer(fetch: Fetch, at: float) -> Answer:
        path = fetch.url.split("/", 3)[3]
        if path == "robots.txt":
            return 404, {}, b"", 0.05
        edition = path.startswith("docs/") and at >= release
        return 200, HTML, linked(*NAMES) if path == "" else f"{path} {edition}".encode(), 0.05

    monkeypatch.setattr(urgent_pages, "Signals", lambda: Signals(siblings=siblings))
    drive = drive_of(answer)
    run(drive, 13.5)
    fetches = [(at, url) for at, kind, url in drive.log if kind == "page" and at >= release]
    found = next(number for number, (_, url) in enumerate(fetches) if "/docs/" in url)
    assert found <= 3
    day = fetches[found + 1 : found + 9]
    assert day[-1][0] < fetches[found][0] + 1.1 * DAY
    assert least <= len({url for _, url in day if "/docs/" in url}) <= most


@pytest.mark.untraced
@pytest.mark.parametrize("strategy", ['"fountain"', "1", "3"])
def test_a_site_that_dates_all_its_pages_now_takes_no_fetches_from_another(strategy: str) -> None:
    """Two sites on one budget; on the one whose sitemap says that all has changed, nothing ever does."""

    def fetched(*, later: bool) -> int:
        def answer(fetch: Fetch, at: float) -> Answer:
            path, is_good = fetch.url.split("/", 3)[3], fetch.site == SITE
            if path == "robots.txt":
                return 200, {}, f"Sitemap: {fetch.site}/sitemap.xml".encode(), 0.05
            if path == "sitemap.xml":
                written = at - 1.0 if later and not is_good else START - DAY
                return 200, {"content-type": "application/xml"}, sitemap_of(fetch.site, written), 0.05
            edition = (at - START + NAMES.index(path) * DAY / 5) // (4 * DAY) if path and is_good else 0
            return 200, HTML, linked(*NAMES) if path == "" else f"{path} {edition}".encode(), 0.05

        drive = drive_of(answer, capacity=12, seeds=(f"{SITE}/", f"{SMALL}/"), strategy=strategy)
        run(drive, 9)
        return sum(kind == "page" and url.startswith(SITE) for at, kind, url in drive.log if at > START + 5 * DAY)

    assert fetched(later=True) >= 0.9 * fetched(later=False)


def sitemap_of(site: str, written: float) -> bytes:
    when = datetime.fromtimestamp(written, UTC).isoformat()
    pages = "".join(f"<url><loc>{site}/{name}</loc><lastmod>{when}</lastmod></url>" for name in NAMES)
    return f"<urlset>{pages}</urlset>".encode()


def test_after_a_restart_a_site_goes_on_from_what_was_kept_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = drive_of(still())
    run(drive, 6)
    assert drive.metrics.get("controller/made_due") >= 6
    drive.frontier.close()
    assert drive.site(SITE).learned
    again = drive_of(still(), store=drive.store, clock=drive.clock, seed=2)
    monkeypatch.setattr(kept_sites, "begin_site", None)  # its pages are not read again
    run(again, 1)
    assert again.metrics.get("controller/made_due") >= 6


# ----------------------------------------------------------------------------------------------------- after a kill

FOUR = [f"http://{name}.example" for name in ("one", "two", "three", "four")]
FEW = [f"{directory}/{page}" for page in range(6) for directory in ("docs", "blog")]
KILLED_AT = START + 6.9 * DAY
"""In the second cycle of four days."""


def changing(fetch: Fetch, at: float) -> Answer:
    """Each site's docs change together, its blog page by page; an answer takes long, so that some are on their way."""
    path, site = fetch.url.split("/", 3)[3], FOUR.index(fetch.site)
    day = (at - START) / DAY
    edition = (day + 2 * site) // 5 if path.startswith("docs") else day // (4 + site + len(path))
    if path == "robots.txt":
        return 404, {}, b"", 0.05
    return 200, HTML, linked(*FEW) if path == "" else f"{path} {edition}".encode(), 0.1 * DAY


def four_sites(folder: Path | str, *, at: float = START) -> Drive:
    """A crawl of four sites, three at a time, twelve pages a day."""
    budget = "periods = 4\ncapacity_pages_per_period = 12\n[change]\nmin_change = 0"
    collection = collection_of([f"{site}/" for site in FOUR], rest=budget, politeness="per_ip = false", delay_factor=0)
    store = open_store(f"rocksdb://{folder}", collection="test", period_s=DAY)
    return Drive(collection, changing, store=store, clock=ManualClock(at), active_sites=3, lease_seconds=DAY)


def live(folder: str, begin: str, window: str) -> None:
    """The life of a process: up to `KILLED_AT`, where it tells what is in flight, and then a day more if it may."""
    site_windows.WINDOW = int(window)  # type: ignore[misc]
    drive = four_sites(folder, at=float(begin))
    run(drive, (KILLED_AT - drive.clock.now()) / DAY)
    print(*sorted(fetched.fetch.url for _, _, fetched in drive.flying))
    print(drive.frontier.planner.follower.schedule.price, flush=True)
    before = len(drive.log)
    if sys.stdin.readline():
        run(drive, 1)
        print(*(url for _, kind, url in drive.log[before:] if kind == "page"), flush=True)


def process(folder: Path, *, begin: float, window: int) -> subprocess.Popen[str]:
    """One that lives; the order of its sets is always the same."""
    program = f"import sys; from {__name__} import live; live(*sys.argv[1:])"
    command = [sys.executable, "-c", program, str(folder), str(begin), str(window)]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.untraced
@pytest.mark.parametrize("window", [site_windows.WINDOW, 5])
def test_killed_in_mid_cycle_a_crawl_goes_on_with_the_pages_that_it_would_have_chosen(
    tmp_path: Path, window: int
) -> None:
    """SIGKILL of a process, beside a twin that lives; what comes next is the same, but for what was in flight."""
    with (
        process(tmp_path / "twin", begin=START, window=window) as twin,
        process(tmp_path / "killed", begin=START, window=window) as killed,
    ):
        assert killed.stdout is not None
        reported = [killed.stdout.readline() for _ in range(2)]
        killed.kill()
        killed.wait()
        with process(tmp_path / "killed", begin=KILLED_AT, window=window) as again:
            lived, resumed = (each.communicate("go on\n")[0].splitlines() for each in (twin, again))
    assert [line.strip() for line in reported] == lived[:2]
    assert reported[0].strip(), "something was in flight"
    assert resumed[1] == lived[1], "the price"
    in_flight = reported[0].split()
    first, others = ([url for url in lines[2].split() if url not in in_flight] for lines in (lived, resumed))
    assert set(first[:6]) <= set(others[:8]), "what was in flight is asked again, and takes its turn"
    store = open_store(f"rocksdb://{tmp_path / 'killed'}", collection=None, period_s=None, read_only=True)
    learned = [SavedSiteData.of(record).urgency for record in store.sites.after("", 9)]
    assert [Windows.decode(each) is not None for each in learned] == [window == 5] * 4
    kept = [msgspec.msgpack.decode(each) for each in learned if Windows.decode(each) is None]
    reaches = [site[8] for site in kept]
    assert {len(each) for each in reaches} <= {0, len(RUNGS)}
    assert any(reaches) or window == 5, (
        "when it may be worth each class of price is kept with a site: any ant may go on"
    )
    store.close()


@pytest.mark.untraced
def test_sites_of_few_pages_have_their_share() -> None:
    few = ["a", "b"]

    def answer(fetch: Fetch, at: float) -> Answer:
        return still(few if fetch.site == SMALL else NAMES)(fetch, at)

    drive = drive_of(answer, seeds=(f"{SITE}/", f"{SMALL}/"), capacity=14)
    run(drive, 12)
    asked = [url for url in drive.asked() if site_of(url) == SMALL]
    assert all(3 <= asked.count(f"{SMALL}/{name}") <= 10 for name in few), "once in two days"


def test_no_page_is_asked_sooner_than_the_policy_allows_though_there_is_budget() -> None:
    drive = drive_of(still(), capacity=100, rest='[policies.default]\nrevisit = { min_interval = "36h" }')
    run(drive, 8)
    times: dict[str, list[float]] = {}
    for at, kind, url in drive.log:
        if kind == "page":
            times.setdefault(url, []).append(at)
    assert len(times) == len(NAMES) + 1
    assert drive.metrics.get("controller/made_due") > 0
    assert all(later - earlier >= 1.5 * DAY for each in times.values() for earlier, later in pairwise(each))
    assert min(map(len, times.values())) >= 3


@pytest.mark.parametrize("restart", [False, True], ids=["while it runs", "after a restart"])
@pytest.mark.parametrize(("before", "after"), [("30d", "1d"), ("1d", "30d")])
def test_a_policy_s_other_shortest_interval_holds_at_once(before: str, after: str, *, restart: bool) -> None:
    """Pages of docs are under a policy of their own; what was kept of the site was reckoned with its interval."""

    def rest(interval: str) -> str:
        rule = f'[[rule]]\nmatch = "{SITE}/docs/*"\npolicy = "docs"\n'
        return f'{rule}[policies.docs]\nrevisit = {{ min_interval = "{interval}" }}\n'

    drive = drive_of(still(), capacity=16, rest=rest(before))
    run(drive, 6)
    edited = drive_of(still(), capacity=16, rest=rest(after)).collection
    if restart:
        drive.frontier.close()
        drive = Drive(edited, still(), store=drive.store, clock=drive.clock, seed=2)
    else:
        drive.frontier.work.adopt(edited)
    edited_at = drive.clock.now()
    run(drive, 3)
    docs = {url for at, kind, url in drive.log if kind == "page" and at > edited_at + DAY / 4 and "/docs/" in url}
    assert len(docs) == (12 if after == "1d" else 0)


def test_a_page_that_robots_txt_shuts_out_gives_its_place_to_others() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        robots = b"User-agent: *\nDisallow: /docs/" if at > START + 5 * DAY else b""
        return site_of_pages({"": linked(*NAMES)} | dict.fromkeys(NAMES, b"x"), robots=(200, robots))(fetch, at)

    drive = drive_of(answer)
    run(drive, 7.5)
    asked = len(drive.log)
    assert drive.metrics.get("outcome/refused_by_robots") >= 1
    run(drive, 3)
    after = [url for _, kind, url in drive.log[asked:] if kind == "page"]
    assert not [url for url in after if "/docs/" in url]
    assert len(after) >= 16


def test_forgotten_pages_give_their_place_to_others_soon() -> None:
    drive = drive_of(still())
    run(drive, 6)
    for page in range(6):
        drive.store.pages.forget(SITE, fingerprint(f"{SITE}/docs/{page}"), at=drive.clock.now())
    run(drive, 1)
    asked = len(drive.log)
    run(drive, 3)
    assert sum(kind == "page" for _, kind, _ in drive.log[asked:]) >= 20


# ------------------------------------------------------------------------------------------ switches of the policy


def test_importance_and_the_shortest_interval_of_the_policy_file_reach_what_ranks_the_pages() -> None:
    rest = (
        "capacity_pages_per_period = 9\n[signals]\nimportance = true\n"
        '[policies.default]\nrevisit = { min_interval = "2h" }'
    )
    urgent = urgent_pages_of(collection_of([f"{SITE}/"], rest=rest), recrawl=True)
    assert urgent is not None
    assert (urgent.pace.terms.weighed, urgent.pace.terms.shortest) == (True, 7200.0)


@pytest.mark.parametrize("rest", ["", "capacity_pages_per_period = 9\nstrategy = 2"])
def test_without_a_budget_and_under_other_strategies_no_page_is_ranked(rest: str) -> None:
    assert urgent_pages_of(collection_of([f"{SITE}/"], rest=rest), recrawl=True) is None


@pytest.mark.parametrize("strategy", ['"fountain"', "3"])
@pytest.mark.parametrize("lastmod", [True, False])
def test_a_sitemap_s_date_makes_a_page_due_unless_that_is_switched_off(lastmod: bool, strategy: str) -> None:
    dated = f"<url><loc>{SITE}/page</loc><lastmod>1970-01-13</lastmod></url>"

    def with_sitemap(fetch: Fetch, path: str, at: float) -> Answer | None:
        return (200, {}, f"<urlset>{dated}</urlset>".encode(), 0.05) if path == "sitemap.xml" else None

    robots = (200, f"Sitemap: {SITE}/sitemap.xml".encode())
    answer = site_of_pages({"": linked("page"), "page": b"y"}, robots=robots, extra=with_sitemap)
    rest = f"strategy = {strategy}\n[signals]\nlastmod = {str(lastmod).lower()}"
    drive = Drive(collection_of([f"{SITE}/"], rest=rest), answer)
    run(drive, 5)
    assert len(drive.asked("sitemap")) >= 2
    assert (drive.metrics.get("sitemap/made_due") > 0) is lastmod


def dated_crawl(*, honest: bool) -> Drive:
    """Sixty pages at four fetches a day. The sitemap dates each page by its last change, or by today.

    Page 7 changes every fifteen days, and no other does.
    """
    names = [f"p/{number}" for number in range(60)]

    def change(name: str, at: float) -> float:
        return at - at % (15 * DAY) if name == "p/7" else START - DAY

    def sitemap(at: float) -> bytes:
        rows = "".join(
            f"<url><loc>{SITE}/{name}</loc><lastmod>"
            f"{datetime.fromtimestamp(change(name, at) if honest else at - 60, UTC).isoformat()}</lastmod></url>"
            for name in names
        )
        return f"<urlset>{rows}</urlset>".encode()

    def extra(fetch: Fetch, path: str, at: float) -> Answer | None:
        if path == "sitemap.xml":
            return 200, {}, sitemap(at), 0.05
        return (200, {}, f"since {change(path, at)}".encode(), 0.05) if path in names else None

    robots = (200, f"Sitemap: {SITE}/sitemap.xml".encode())
    answer = site_of_pages({"": linked(*names)}, robots=robots, extra=extra)
    rest = 'strategy = "fountain"\ncapacity_pages_per_period = 4\n[change]\nmin_change = 0\n'
    drive = Drive(collection_of([f"{SITE}/"], rest=rest), answer)
    run(drive, 120)
    return drive


@pytest.mark.soak
def test_honest_dates_are_followed_at_once_and_dates_that_mean_nothing_take_no_budget() -> None:
    def late(drive: Drive) -> list[tuple[float, str]]:
        return [(at, url) for at, kind, url in drive.log if kind == "page" and at > START + 45 * DAY]

    honest, lying = (late(dated_crawl(honest=each)) for each in (True, False))
    for change in range(int(START // (15 * DAY)) + 4, int(START // (15 * DAY)) + 8):
        begin = change * 15 * DAY
        assert any(begin <= at < begin + 3 * DAY for at, url in honest if url.endswith("/p/7"))
    pages = Counter(url for _, url in lying)
    assert len(pages) >= 55, "all pages still have their turn"
    assert max(pages.values()) < len(lying) / 4
