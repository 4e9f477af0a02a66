"""Strategies 1 to 3 use their budget, and leave no known page of a site unvisited for long."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from webfountain.urls import site_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

PERIOD_S = 86_400.0
PERIODS = 16
FIRST = 4
"""Periods in which the pages are found and the first plans are made from little."""


def web_of(pages: int, seed: int) -> Web:
    """Sites of some pages each, which change every quarter of a period to every 32 periods."""

    def web(fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.05
        rng = random.Random(f"{seed} {fetch.url}")
        edition = int(at / (PERIOD_S * 2 ** rng.uniform(-2, 5)) + rng.random())
        links = "".join(f'<a href="/{number}">x</a>' for number in range(pages)) if fetch.url.endswith("/") else ""
        return 200, {"content-type": "text/html"}, f"<p>edition {edition}{links}</p>".encode(), 0.05

    return web


def run(strategy: int, *, sites: int, pages: int, capacity: int, seed: int = 1) -> tuple[float, int]:
    """Part of the budget that was used from the first periods on, and periods since some site was visited."""
    rest = f"periods = 4\ncapacity_pages_per_period = {capacity}\nstrategy = {strategy}\n[change]\nmin_change = 0"
    seeds = [f"http://s{number}.example/" for number in range(sites)]
    collection = collection_of(seeds, delay_factor=1, politeness="per_ip = false", rest=rest)
    drive = Drive(collection, web_of(pages, seed), seed=seed)
    start = drive.clock.now()
    while drive.clock.now() < start + PERIODS * PERIOD_S:
        drive.run(seconds=PERIOD_S / 100)
    visits = [(int((at - start) // PERIOD_S), site_of(url)) for at, kind, url in drive.log if kind == "page"]
    made = Counter(period for period, _ in visits)
    last = {site: period for period, site in visits}
    used = sum(made[period] for period in range(FIRST, PERIODS)) / (capacity * (PERIODS - FIRST))
    return used, PERIODS - min(last.values())


@pytest.mark.untraced
@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_a_strategy_uses_its_budget_on_one_site(strategy: int) -> None:
    """Known pages stood unvisited for many periods: the site was parked until the time of an older plan."""
    used, unvisited = run(strategy, sites=1, pages=40, capacity=20)
    assert 0.95 <= used <= 1.05
    assert unvisited <= 2


@pytest.mark.untraced
def test_a_strategy_leaves_none_of_ten_sites_unvisited() -> None:
    used, unvisited = run(3, sites=10, pages=8, capacity=40)
    assert 0.95 <= used <= 1.05
    assert unvisited <= 4


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("strategy", [1, 2, 3])
@pytest.mark.parametrize(("sites", "pages", "capacity"), [(1, 60, 30), (10, 12, 60)])
def test_a_strategy_uses_its_budget_in_twenty_runs(
    sites: int, pages: int, capacity: int, strategy: int, seed: int
) -> None:
    used, unvisited = run(strategy, sites=sites, pages=pages, capacity=capacity, seed=seed)
    assert 0.95 <= used <= 1.05
    assert unvisited <= 4
