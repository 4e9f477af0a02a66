"""Strategies 1 to 3 use their budget in whole crawls over HTTP, of one site and of ten.

Twenty crawls run side by side, each with sites of its own, whose pages change at many rates. What counts are the
requests that arrive there. `frontier/planning/test_budget.py` has the same on a clock that is set.
"""

from __future__ import annotations

import random
import re
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.acceptance.crawls import Crawl, policy
from tests.servers.town import Town

if TYPE_CHECKING:
    from pathlib import Path

PERIOD_S = 20.0
PERIODS = 16
FIRST = 4
"""Periods in which the pages are found and the first plans are made from little."""
RUNS = 20
PAGE = re.compile(r"/(p\d+)?")


class ChangingTown(Town):
    """Sites whose pages change every quarter of a period to every 32 periods."""

    def __init__(self, seed: int, *, sites: int, pages: int) -> None:
        super().__init__([f"127.78.{seed + 1}.{sites}"], sites, pages)
        self._seed = seed

    def page(self, path: str) -> tuple[str, bytes]:
        status, body = super().page(path)
        rng = random.Random(f"{self._seed} {path}")
        edition = int(time.time() / (PERIOD_S * 2 ** rng.uniform(-2, 5)) + rng.random())
        return status, body + f"<p>edition {edition}".encode()


class BudgetUse(NamedTuple):
    """Part of the budget that was used after the first periods, and periods until the end in which some site was not
    visited."""

    used: float
    unvisited: float


def use_of(town: Town, capacity: int) -> BudgetUse:
    visits = [each for each in town.visits if PAGE.fullmatch(each.path)]
    start = visits[0].start
    periods = [((each.start - start) / PERIOD_S, each.port) for each in visits]
    periods = [(period, port) for period, port in periods if period < PERIODS]
    counted = sum(period >= FIRST for period, _ in periods)
    last = {port: period for period, port in periods}
    return BudgetUse(counted / (capacity * (PERIODS - FIRST)), PERIODS - min(last.values()))


@pytest.mark.soak
@pytest.mark.parametrize("strategy", [1, 2, 3])
@pytest.mark.parametrize(("sites", "pages", "capacity"), [(1, 60, 30), (10, 12, 60)])
def test_a_strategy_uses_its_budget_in_twenty_crawls(
    tmp_path: Path, sites: int, pages: int, capacity: int, strategy: int
) -> None:
    with ExitStack() as stack:
        towns = [stack.enter_context(ChangingTown(seed, sites=sites, pages=pages)) for seed in range(RUNS)]
        crawls = []
        for seed, town in enumerate(towns):
            folder = tmp_path / str(seed)
            folder.mkdir()
            cycle = {"period": f"{PERIOD_S}s", "periods": 4, "capacity_pages_per_period": capacity}
            collection = policy(
                folder,
                town.urls,
                politeness={"per_ip": False},
                cycle={**cycle, "strategy": strategy},
                change={"min_change": 0},
            )
            seconds = (PERIODS + 2) * PERIOD_S
            crawls.append(stack.enter_context(Crawl(collection, folder / "store", f"--max-seconds={seconds}")))
        for crawl in crawls:
            assert crawl.wait(PERIODS * PERIOD_S + 600.0) == 0, crawl.errors.read_text()
    found = [use_of(town, capacity) for town in towns]
    for each in found:
        print(f"{each.used:.3f} {each.unvisited:.1f}")
    assert all(0.95 <= each.used <= 1.05 and each.unvisited <= 4 for each in found), found
