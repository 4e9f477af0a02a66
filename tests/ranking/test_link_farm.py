"""A link farm in a collection of a fixed size: what its pages give each other takes few places."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.ranking.rankers import WithShards
from webfountain.clock import ManualClock
from webfountain.core.importance import MOST_OF_TRUST, bounded_by_trust
from webfountain.ranking.link_importance import live_importance

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

GOOD, FARM, PLACES = 40, 90, 30
HOSTS = 6


def test_rank_counts_up_to_so_much_trust_and_where_that_is_unknown_all_of_it() -> None:
    found = bounded_by_trust(np.array([1.0, 9.0, 3.0, 5.0]), np.array([1.0, 0.5, 0.0, -1.0]))
    assert found.tolist() == [1.0, 0.5 * MOST_OF_TRUST, 0.0, 5.0]


class FarmedWeb:
    """A good site, three pages of which lead into a farm of some hosts whose pages all link each other."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self.good = [f"http://good.example/{number or ''}" for number in range(GOOD)]
        self.farm = [f"http://farm{number % HOSTS}.example/{number}" for number in range(FARM)]
        self.links: dict[str, list[str]] = {}
        for number, url in enumerate(self.good):
            near = self.good[1:9] if not number else [self.good[0], *rng.sample(self.good, 6)]
            self.links[url] = near + ([rng.choice(self.farm)] if 0 < number < 4 else [])
        for url in self.farm:
            self.links[url] = [*rng.sample(self.farm, 12), *self.farm[:5]]

    def answer(self, fetch: Fetch, at: float) -> Any:
        if fetch.kind != "page":
            return 404, {}, b"", 0.1
        links = "".join(f'<a href="{link}">x</a>' for link in self.links[fetch.url])
        return 200, {"content-type": "text/html"}, f"<p>{fetch.url} at {at // 500}{links}".encode(), 0.1


@pytest.mark.untraced
def test_a_farm_takes_few_places_of_a_collection_of_a_fixed_size(tmp_path: Path) -> None:
    """No policy asks for trust; the good site is the only seed."""
    web = FarmedWeb()
    collection = collection_of(
        [web.good[0]], collection=f'scope = "any"\n[collection.limits]\npages = {PLACES}\n', period="1000s",
        politeness="per_ip = false\n", rest='[ranking]\nevery = "200s"\n',
    )  # fmt: skip
    clock = ManualClock(1_000_000.0)
    importance = live_importance(collection, tmp_path, writer="ant", at=clock.now(), ranker=WithShards())
    crawl = Drive(collection, web.answer, clock=clock, importance=importance)
    crawl.run(seconds=2_000.0)
    held = [record.url for _, record in crawl.store.pages.records(state="crawled")]
    crawl.frontier.close()
    assert len(held) >= 0.9 * PLACES
    assert sum("farm" in url for url in held) <= PLACES // 4, held


@pytest.mark.parametrize("trust", [0.0, 0.5, 3.0])
def test_no_bound_raises_a_rank(trust: float) -> None:
    ranks = np.linspace(0, 10, 50)
    assert (bounded_by_trust(ranks, np.full(50, trust)) <= ranks).all()
