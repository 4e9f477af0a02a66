"""Urgent pages in a crawl: a release is followed, a restart goes on, what the policy file says of signals is kept."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from tests.frontier.test_frontier import HTML, linked, site_of_pages
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.planning.urgent_site import UrgentSite
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import Fetch

DAY = 86_400.0
START = 1_000_000.0
SITE = "http://one.example"
SMALL = "http://small.example"
NAMES = [f"{directory}/{page}" for page in range(12) for directory in ("docs", "blog")]


def drive_of(
    answer: Web, *, capacity: int = 8, seeds: Sequence[str] = (f"{SITE}/",), rest: str = "", **more: Any
) -> Drive:
    budget = f"periods = 2\ncapacity_pages_per_period = {capacity}\n[change]\nmin_change = 0\n{rest}"
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
def test_a_release_of_a_directory_is_followed_within_a_day_by_what_its_siblings_tell(
    siblings: bool, least: int, most: int
) -> None:
    """Of 24 pages eight are fetched a day; then all of docs change at once, and one fetch comes upon it."""
    release = START + 11.2 * DAY

    def answer(fetch: Fetch, at: float) -> Answer:
        path = fetch.url.split("/", 3)[3]
        if path == "robots.txt":
            return 404, {}, b"", 0.05
        edition = path.startswith("docs/") and at >= release
        return 200, HTML, linked(*NAMES) if path == "" else f"{path} {edition}".encode(), 0.05

    drive = drive_of(answer, rest=f"[signals]\nsiblings = {str(siblings).lower()}")
    run(drive, 13.5)
    fetches = [(at, url) for at, kind, url in drive.log if kind == "page" and at >= release]
    found = next(number for number, (_, url) in enumerate(fetches) if "/docs/" in url)
    assert found <= 3
    day = fetches[found + 1 : found + 9]
    assert day[-1][0] < fetches[found][0] + 1.1 * DAY
    assert least <= len({url for _, url in day if "/docs/" in url}) <= most


def test_after_a_restart_a_site_goes_on_from_what_was_kept_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = drive_of(still())
    run(drive, 6)
    assert drive.metrics.get("controller/made_due") >= 6
    drive.frontier.close()
    assert drive.site(SITE).learned
    again = drive_of(still(), store=drive.store, clock=drive.clock, seed=2)
    monkeypatch.setattr(UrgentSite, "begun", None)  # its pages are not read again
    run(again, 1)
    assert again.metrics.get("controller/made_due") >= 6


@pytest.mark.untraced
def test_sites_of_few_pages_have_their_share() -> None:
    few = ["a", "b"]

    def answer(fetch: Fetch, at: float) -> Answer:
        return still(few if fetch.site == SMALL else NAMES)(fetch, at)

    drive = drive_of(answer, seeds=(f"{SITE}/", f"{SMALL}/"), capacity=14)
    run(drive, 12)
    asked = [url for url in drive.asked() if site_of(url) == SMALL]
    assert all(3 <= asked.count(f"{SMALL}/{name}") <= 9 for name in few), "once in two days"


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
        drive.store.forget(SITE, fingerprint(f"{SITE}/docs/{page}"), at=drive.clock.now())
    run(drive, 1)
    asked = len(drive.log)
    run(drive, 3)
    assert sum(kind == "page" for _, kind, _ in drive.log[asked:]) >= 20


# ------------------------------------------------------------------------------------------ switches of the policy


@pytest.mark.parametrize("signal", ["siblings", "sections", "history", "forgetting", "weekdays"])
@pytest.mark.parametrize("value", [True, False])
def test_every_signal_of_the_policy_file_reaches_what_ranks_the_pages(signal: str, value: bool) -> None:
    rest = f"capacity_pages_per_period = 9\n[signals]\n{signal} = {str(value).lower()}"
    urgent = urgent_pages_of(collection_of([f"{SITE}/"], rest=rest), recrawl=True)
    assert urgent is not None
    assert getattr(urgent._terms.signals, signal) is value
    assert urgent._terms.weighed is False


def test_importance_and_the_shortest_interval_of_the_policy_file_reach_what_ranks_the_pages() -> None:
    rest = (
        "capacity_pages_per_period = 9\n[signals]\nimportance = true\n"
        '[policies.default]\nrevisit = { min_interval = "2h" }'
    )
    urgent = urgent_pages_of(collection_of([f"{SITE}/"], rest=rest), recrawl=True)
    assert urgent is not None
    assert (urgent._terms.weighed, urgent._terms.shortest) == (True, 7200.0)


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
