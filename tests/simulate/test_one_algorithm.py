"""The crawl and `simulate revisit` choose by one algorithm: the same objects, asked the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.frontier.town import DAY, NOW, ONE, Crawl, crawled
from webfountain.core.activity import Signals
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.simulate.rivals import Fetches, UrgencyPolicy

if TYPE_CHECKING:
    from webfountain.records import OutcomeKind

PAGES = 40
URLS = [f"{ONE}/{'ab'[page % 2]}/{page}" for page in range(PAGES)]
FIRST = int(NOW // DAY) + 1
EVERY = np.arange(PAGES)


def both() -> tuple[Crawl, UrgencyPolicy]:
    """A site of forty pages, all just fetched, for a fetch a day: steps of a day in both."""
    crawl = Crawl([crawled(url, at=NOW) for url in URLS], capacity=1.0)
    interval = crawl.urgent._sites[ONE].terms.interval / DAY
    paths, signals = [url.removeprefix(ONE) for url in URLS], Signals().lasting(interval)
    simulated = UrgencyPolicy(paths, signals=signals)
    # The crawl begins with all pages at once, which the simulation meets one after the other.
    simulated._site = SiteUrgency.resumed(
        paths, since=np.full(PAGES, FIRST), events=np.zeros(PAGES), watched=np.zeros(PAGES), importance=np.ones(PAGES),
        signals=signals, step=FIRST,
    )  # fmt: skip
    simulated._number = EVERY.copy()
    return crawl, simulated


def test_the_crawl_finds_pages_as_urgent_as_the_simulation_does() -> None:
    crawl, simulated = both()
    since = np.full(PAGES, FIRST)
    for days, pages, changed in ((5, [0, 2, 4], True), (9, [1, 3], False), (12, [6, 8, 1], True)):
        at, some = FIRST + days, np.array(pages)
        no, yes = np.zeros(len(some), dtype=np.bool_), np.full(len(some), changed)
        simulated.score(at, EVERY, at - since)
        simulated.learn(at, Fetches(some, at - since[some], no, yes, no, 0))
        since[some] = at
        kind: OutcomeKind = "changed" if changed else "same"
        crawl.fetch(*[URLS[page] for page in pages], kind=kind, at=NOW + days * DAY)
        crawl.urgent._reckon([ONE], 0.0, NOW + days * DAY)
    crawl.urgent._reckon([ONE], 0.0, NOW + 20 * DAY)
    (asked,) = crawl.urgent._by_terms([ONE], NOW + 20 * DAY)
    live, other = asked.sites[0].worth / asked.step_s, simulated.score(FIRST + 20, EVERY, FIRST + 20 - since)
    assert type(asked.urgencies) is type(simulated._today) is Sites
    assert live == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize("most", [1, 7, 23])
def test_at_the_price_of_the_last_of_a_ranking_the_pages_of_that_ranking_are_due(most: int) -> None:
    crawl, _ = both()
    crawl.fetch(*URLS[:4:2], kind="changed", at=NOW + 5 * DAY)
    at = NOW + 20 * DAY
    crawl.urgent._reckon([ONE], 0.0, at)
    worth = crawl.urgent._sites[ONE].worth
    price = float(np.sort(worth)[-most])
    due = crawl.due(PAGES, price=price, at=at)
    assert set(due[:most]) <= {URLS[page] for page in np.flatnonzero(worth >= price)}
    assert len(due) == np.count_nonzero(worth >= price)
