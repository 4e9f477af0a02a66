"""Generated webs, the rival GREEDY with learned rates, and the bound."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.lab.simulate.bound import least_obsolete_share, spells_of
from webfountain.lab.simulate.generated_webs import KINDS, generated_web
from webfountain.lab.simulate.revisit import replay
from webfountain.lab.simulate.rivals import RATES, Fetches, GreedyBayes
from webfountain.lab.simulate.trace import ADDED, DELETED, MODIFIED, ChangeTrace


@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_web_is_a_trace_and_the_same_for_a_seed(kind: str) -> None:
    one, again, other = (generated_web(kind, pages=40, days=90, seed=seed) for seed in (1, 1, 2))
    assert (np.diff(one.day) >= 0).all()
    assert one.day.max(initial=0) < one.days
    assert one.page.max(initial=0) < len(one.urls)
    assert one.page.tolist() == again.page.tolist()
    assert one.page.tolist() != other.page.tolist()
    assert len(one.alive) == len(one.born) == len(one.urls)


def test_dead_links_come_three_to_a_live_page_and_are_gone_when_they_are_fetched() -> None:
    web = generated_web("dead-links", pages=30, days=60)
    assert len(web.urls) == 4 * 30
    assert np.count_nonzero(web.kind == ADDED) == np.count_nonzero(web.kind == DELETED) == 90


def test_greedy_finds_the_rates_of_pages_and_fetches_what_pays() -> None:
    learner = GreedyBayes(3, 400)
    pages, no = np.arange(3), np.zeros(3, dtype=np.bool_)
    for visit in range(12):
        changed = np.array([True, visit % 4 == 0, False])
        learner.learn(30 * visit, Fetches(pages, np.full(3, 30), no, changed, no, 0))
    mean = learner.posterior(pages) @ RATES
    assert mean[0] > 1.0
    assert 1 / 400 < mean[1] < 1 / 40
    assert mean[2] < 1 / 100
    score = learner.score(400, pages, np.full(3, 30))
    assert score.argmax() == 1, "the fast one cannot be followed, the slow one rarely needs it"


def two_bursts(pages: int = 6) -> ChangeTrace:
    """All pages change on day 2 and again on day 7 of ten."""
    day = np.repeat([2, 7], pages)
    page = np.tile(np.arange(pages), 2)
    kind = np.full(2 * pages, MODIFIED, dtype=np.int8)
    urls = [f"/{number}" for number in range(pages)]
    return ChangeTrace(urls, np.ones(pages, dtype=np.bool_), np.zeros(pages, int), day, page, kind, 10)


def test_the_bound_is_what_the_best_can_do_with_twice_the_budget_on_a_day() -> None:
    trace = two_bursts()
    begin, end = spells_of(trace)
    assert sorted(zip(begin.tolist(), end.tolist(), strict=True)) == [(2, 7)] * 6 + [(7, 10)] * 6
    # Twelve spells at one fetch a day, two at most: of the first six 2, 2, 1, 1 days after, or some of them never.
    bound = least_obsolete_share(trace, 1, 60.0)
    found = replay(trace, 1, "clairvoyant").obsolete_share
    assert 0.0 < bound <= found
    assert least_obsolete_share(trace, 6, 60.0) == pytest.approx(12 / 60), "a change is seen the day after at best"
    assert replay(trace, 6, "clairvoyant").obsolete_share == pytest.approx(12 / 60)


@pytest.mark.parametrize("kind", ["independent", "releases", "dead-links"])
def test_nobody_is_better_than_the_bound_and_the_clairvoyant_is_near_it(kind: str) -> None:
    trace = generated_web(kind, pages=40, days=90)
    replays = {name: replay(trace, 2, name) for name in ("uniform", "greedy-bayes", "clairvoyant")}
    bound = least_obsolete_share(trace, 2, float(replays["uniform"].alive.sum()))
    assert all(each.obsolete_share >= bound for each in replays.values())
    assert replays["clairvoyant"].obsolete_share <= bound + 0.3 * (replays["uniform"].obsolete_share - bound)


def test_every_policy_may_save_up_a_day_s_fetches_and_none_more() -> None:
    """The clairvoyant has no use for fetches until day three; then it makes two days' worth at once."""
    fetches = replay(two_bursts(), 2, "clairvoyant").fetches
    assert fetches[:3].sum() == 0
    assert fetches[3] == 4
    assert fetches.max() == 4
