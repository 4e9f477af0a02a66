"""The crawl and `simulate revisit` choose by one algorithm: the same objects, asked the same way.

`ranking` is what came before the price, and has the crawl's urgencies too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.frontier.town import DAY, NOW, ONE, Crawl, crawled
from webfountain.core.signals import Signals
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.frontier.planning.plan_follower import PlanFollower
from webfountain.frontier.planning.reckoning import SitesTogether
from webfountain.frontier.planning.schedule import UrgencySchedule
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.lab.simulate.at_a_price import AtAPrice, UrgencyPolicy
from webfountain.lab.simulate.revisit import replay_at_a_price
from webfountain.lab.simulate.rivals import Fetches
from webfountain.lab.simulate.trace import MODIFIED, ChangeTrace

if TYPE_CHECKING:
    from webfountain.records import OutcomeKind

PAGES = 40
URLS = [f"{ONE}/{'ab'[page % 2]}/{page}" for page in range(PAGES)]
FIRST = int(NOW // DAY) + 1
EVERY = np.arange(PAGES)


def both() -> tuple[Crawl, UrgencyPolicy]:
    """A site of forty pages, all just fetched, for a fetch a day: steps of a day in both."""
    crawl = Crawl([crawled(url, at=NOW) for url in URLS], capacity=1.0)
    interval = crawl.urgent.sites.active[ONE].terms.interval / DAY
    paths, signals = [url.removeprefix(ONE) for url in URLS], Signals().lasting(interval)
    simulated = UrgencyPolicy(paths, signals=signals)
    # The crawl begins with all pages at once, which the simulation meets one after the other.
    simulated._site = SiteUrgency.resumed(
        paths, since=np.full(PAGES, FIRST), events=np.zeros(PAGES), observed_time=np.zeros(PAGES),
        importance=np.ones(PAGES), signals=signals, step=FIRST,
    )  # fmt: skip
    simulated._number = EVERY.copy()
    return crawl, simulated


def test_the_crawl_finds_pages_as_urgent_as_the_ranking_does() -> None:
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
        crawl.urgent.reckon([ONE], 0.0, NOW + days * DAY)
    crawl.urgent.reckon([ONE], 0.0, NOW + 20 * DAY)
    asked = SitesTogether([crawl.urgent.sites.active[ONE]], NOW + 20 * DAY)
    live, other = asked.sites[0].ranking.worth / asked.step_s, simulated.score(FIRST + 20, EVERY, FIRST + 20 - since)
    assert type(asked.urgencies) is type(simulated._today) is Sites
    assert live == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize("most", [1, 7, 23])
def test_at_the_price_of_the_last_of_a_ranking_the_pages_of_that_ranking_are_due(most: int) -> None:
    crawl, _ = both()
    crawl.fetch(*URLS[:4:2], kind="changed", at=NOW + 5 * DAY)
    at = NOW + 20 * DAY
    crawl.urgent.reckon([ONE], 0.0, at)
    worth = crawl.urgent.sites.active[ONE].ranking.worth
    price = float(np.sort(worth)[-most])
    due = crawl.due(PAGES, price=price, at=at)
    assert set(due[:most]) <= {URLS[page] for page in np.flatnonzero(worth >= price)}
    assert len(due) == np.count_nonzero(worth >= price)


def test_the_simulation_is_made_of_the_crawl_s_own_objects_and_its_price_follows_the_budget() -> None:
    """Every page changes on every twentieth day: a third of the pages each day, then a thirtieth."""
    days = 40
    events = [(day, page) for day in range(days) for page in range(PAGES) if (day + page) % 20 == 0]
    day, page = np.array(events, dtype=np.int64).T
    everywhere = np.ones(PAGES, dtype=np.bool_)
    kind = np.full(len(page), MODIFIED, dtype=np.int8)
    trace = ChangeTrace(
        [url.removeprefix(ONE) for url in URLS], everywhere, np.zeros(PAGES, int), day, page, kind, days
    )
    prices = []
    for capacity in (13, 2):
        crawl = AtAPrice(trace, capacity, signals=Signals())
        assert type(crawl.urgent) is UrgentPages
        assert type(crawl.follower) is PlanFollower
        assert type(crawl.follower.schedule) is UrgencySchedule
        fetches = replay_at_a_price(trace, capacity, crawl).fetches
        assert 0.9 * capacity * days <= fetches.sum() <= capacity * days
        assert crawl.follower.schedule.price is not None
        prices.append(crawl.follower.schedule.price)
    assert prices[0] < prices[1]


def test_where_a_section_was_released_its_other_pages_go_before_what_waits() -> None:
    """One fetch of the section comes upon the change; what is fetched then is of it."""
    days, release = 60, 45
    struck = np.flatnonzero(np.arange(PAGES) % 2 == 0)
    kind = np.full(len(struck), MODIFIED, dtype=np.int8)
    everywhere, at = np.ones(PAGES, dtype=np.bool_), np.full(len(struck), release)
    trace = ChangeTrace(
        [url.removeprefix(ONE) for url in URLS], everywhere, np.zeros(PAGES, int), at, struck, kind, days
    )
    crawl = AtAPrice(trace, 4, signals=Signals())
    replayed = replay_at_a_price(trace, 4, crawl)
    found = np.flatnonzero(replayed.found)
    assert replayed.found.sum() == len(struck)
    assert found[-1] - found[0] <= 7, "twenty pages at four a day, not the ten days of all in turn"
