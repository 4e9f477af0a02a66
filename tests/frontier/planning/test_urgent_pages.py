"""Urgent pages: which are due at a price, when others will be, what is kept. `test_urgency_in_a_crawl`: in a crawl."""

from __future__ import annotations

from math import inf

import pytest

from tests.frontier.town import CHECK_S, DAY, NOW, ONE, TWO, Crawl, crawled, history, lease_of, pages_of
from webfountain.core.signals import Signals
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.urls import fingerprint

# ------------------------------------------------------------------------------------------------ which become due


def test_of_pages_of_which_nothing_is_known_those_fetched_longest_ago_are_due_first():
    assert Crawl(pages_of(ONE)).due(3) == [f"{ONE}/a/{page}" for page in range(3)]


def test_pages_are_due_that_are_worth_the_price_and_no_others():
    crawl = Crawl(pages_of(ONE))
    every = Crawl(pages_of(ONE)).due(20)
    site = crawl.urgent._sites[ONE]
    dear = next(price for price in (1.1**power for power in range(200)) if site.demand(NOW, price) <= 8)
    fewer = crawl.due(20, price=dear)
    assert 0 < len(fewer) <= 8
    assert fewer == every[: len(fewer)]
    assert crawl.due(20, price=inf) == []


def test_a_page_is_due_once_until_it_is_fetched():
    crawl = Crawl(pages_of(ONE))
    assert len(crawl.due(5)) == 5
    assert not set(crawl.due(5)) & set(crawl.waiting[:5])
    crawl.fetch(*crawl.waiting[:2])
    assert len(crawl.due(20)) == 12


def test_no_page_is_due_sooner_after_its_last_fetch_than_the_policy_allows():
    crawl = Crawl(pages_of(ONE, 10, at=NOW), shortest=4.5 * 3600)
    assert set(crawl.due(10)) == {f"{ONE}/a/{page}" for page in range(6)}
    crawl.urgent.divide(10_000_000, 300_000)
    assert crawl.urgent.next_at(ONE, 1e-9, NOW) == pytest.approx(NOW + 0.5 * 3600), "then the next may be fetched"


def test_a_page_s_own_history_counts_unless_that_is_switched_off():
    still = [crawled(f"{ONE}/a/{page}", at=NOW - 1.1 * DAY, history=history(changed=False)) for page in range(4)]
    busy = crawled(f"{ONE}/a/busy", history=history(changed=True))
    assert Crawl([*still, busy]).due(1) == [busy.url]
    assert busy.url not in Crawl([*still, busy], signals=Signals(history=False)).due(4)


def test_importance_decides_only_where_it_is_asked_for():
    plain = [crawled(f"{ONE}/a/{page}", at=NOW - 2 * DAY) for page in range(9)]
    dear = crawled(f"{ONE}/a/dear", at=NOW - DAY, importance=50.0)
    assert dear.url not in Crawl([*plain, dear]).due(5)
    assert Crawl([*plain, dear], weighed=True).due(1) == [dear.url]


def test_where_no_importance_is_known_pages_near_the_root_count_more():
    deep = [crawled(f"{ONE}/a/b/c/{page}") for page in range(9)]
    assert Crawl([*deep, crawled(f"{ONE}/top")], weighed=True).due(1) == [f"{ONE}/top"]


def test_a_page_that_was_met_since_is_due_too_in_its_time():
    crawl = Crawl(pages_of(ONE, 5))
    new = f"{ONE}/a/new"
    crawl.url[fingerprint(new)] = new
    crawl.fetch(new, kind="new")
    assert new in crawl.due(6, at=NOW + 2 * DAY)


@pytest.mark.parametrize("end", ["refused", "failed", "gone", "redirected"])
def test_a_page_that_could_not_be_fetched_is_not_due_until_it_was_fetched_well(end):
    crawl = Crawl(pages_of(ONE, 6), known=100)
    lost = f"{ONE}/a/0"
    assert crawl.due(1) == [lost]
    if end == "refused":
        crawl.urgent.refuse(ONE, fingerprint(lost))
    else:
        crawl.fetch(lost, kind=end, state="crawled" if end == "failed" else end)
    assert set(crawl.due(9, at=NOW + 3600)) == {f"{ONE}/a/{page}" for page in range(1, 6)}
    crawl.fetch(*crawl.waiting, at=NOW + 7200)
    crawl.fetch(lost, at=NOW + 7200)
    assert lost in crawl.due(9, at=NOW + DAY)


def test_a_page_whose_tries_fail_when_its_site_is_taken_in_is_not_due_either():
    down = crawled(f"{ONE}/a/down", at=NOW - 9 * DAY, failures=2)
    assert down.url not in Crawl([*pages_of(ONE, 5), down]).due(9)


def test_pages_and_sites_that_are_not_active_are_passed_over():
    crawl = Crawl(pages_of(ONE, 5))
    assert crawl.fetch(f"{TWO}/a/0", kind="changed") == []
    crawl.urgent.refuse(TWO, fingerprint(f"{TWO}/a/0"))
    crawl.urgent.refuse(ONE, fingerprint(f"{ONE}/never/seen"))
    assert len(crawl.due(9)) == 5


def test_a_change_found_is_not_unlearned_by_a_second_fetch_within_a_step():
    demand = []
    for kinds in (["changed"], ["changed", "same"], ["same"]):
        crawl = Crawl(pages_of(ONE, 12))
        for second, kind in enumerate(kinds):
            crawl.fetch(f"{ONE}/a/3", kind=kind, at=NOW + second)
        demand.append(crawl.urgent.demand(2000.0, NOW + 2))
    assert demand[0] == demand[1] > demand[2]


def test_a_visit_that_the_store_told_of_already_is_not_learned_from_twice():
    past = [crawled(f"{ONE}/a/{page}", at=NOW, history=history(changed=page == 0)) for page in range(5)]
    once, twice = Crawl(past), Crawl(past)
    twice.fetch(past[0].url, kind="changed", at=NOW)
    assert [once.due(1), twice.due(1)]
    events = [crawl.urgent._sites[ONE]._urgencies._events.tolist() for crawl in (once, twice)]
    assert events[0] == events[1]
    assert events[0][0] == 12


def test_a_page_that_waited_in_vain_is_given_up_until_it_is_fetched():
    """It is not there any more; if it is, the store still has it on its list."""
    crawl = Crawl(pages_of(ONE, 10), capacity=10)
    first, later = crawl.due(2), NOW + 1.1 * DAY
    second = crawl.due(9, at=later)
    assert len(second) == 8
    assert not set(first) & set(second)
    crawl.fetch(*second, *first, at=later)
    assert len(crawl.due(10, at=later + DAY)) == 10


# --------------------------------------------------------------------------------------------------- releases


def released():
    """Two directories, of one of which six pages wait; of the other three were just fetched, and have changed."""
    calm = {"history": history(changed=False)}
    since = {"calm": NOW - DAY, "busy": NOW - DAY / 2}
    crawl = Crawl(*(pages_of(ONE, 24, directory=name, at=at, **calm) for name, at in since.items()))
    assert all("/calm/" in url for url in crawl.due(6))
    crawl.fetch(*[f"{ONE}/busy/{page}" for page in range(3)], kind="changed", at=NOW + CHECK_S)
    return crawl


def test_a_release_goes_before_what_waits_each_page_once():
    crawl = released()
    first = [crawl.url[key] for key in crawl.urgent.outranking(ONE, 0.0, at=NOW + CHECK_S)]
    assert len(first) == 6, "as many as wait"
    assert all("/busy/" in url for url in first)
    crawl.urgent.outranking(ONE, 0.0, at=NOW + CHECK_S + 60)
    rest = crawl.due(99, at=NOW + 2 * CHECK_S)
    assert not set(rest) & set(first)
    fetched = {f"{ONE}/busy/{page}" for page in range(3)}
    assert not set(rest[:15]) & fetched, "those that were fetched after the release come last"


def test_what_is_but_a_little_more_urgent_waits_its_turn():
    crawl = Crawl(pages_of(ONE, 12))
    assert len(crawl.due(4)) == 4
    assert crawl.urgent.outranking(ONE, 0.0, at=NOW + CHECK_S) == []


# ------------------------------------------------------------------------------------------- when to ask again


def test_a_site_is_asked_again_when_a_page_may_be_worth_the_price():
    crawl = Crawl(pages_of(ONE), capacity=1e6, known=30e6)  # many sites: none is asked without need
    crawl.urgent.divide(30_000_000, 300_000)
    price = 2.0 * max(2.0**power for power in range(40) if crawl.urgent._sites[ONE].demand(NOW, 2.0**power))
    soon = crawl.urgent.next_at(ONE, price, NOW)
    assert NOW + DAY / 10 < soon < NOW + 3 * DAY
    assert crawl.due(9, price=price, at=soon) == [], "a little early, for the price may have fallen"
    then = crawl.urgent.next_at(ONE, price, soon)
    assert then > soon
    assert crawl.urgent._sites[ONE].demand(then + DAY, price), "a step later or a little more it is"


def test_where_sites_are_few_they_are_asked_often_for_the_price_may_have_fallen():
    crawl = Crawl(pages_of(ONE), known=100)
    assert crawl.urgent.next_at(ONE, 1e9, NOW) == pytest.approx(NOW + CHECK_S)


def test_the_demand_of_many_sites_is_that_of_some():
    sites = [f"http://s{number}.example" for number in range(80)]
    crawl = Crawl(*(pages_of(site, 5) for site in sites))
    assert crawl.urgent.demand(0.0, NOW) == 400
    crawl.fetch(*[f"{sites[0]}/a/{page}" for page in range(5)])
    assert crawl.urgent.demand(inf, NOW) == 400, "counted once for each check of the price"
    assert crawl.urgent.demand(inf, NOW + CHECK_S) == 0


# -------------------------------------------------------------------------------------------- sites come and go


def test_no_site_is_wanted_while_the_budget_is_enough_for_all():
    urgent = UrgentPages(signals=Signals(), period=DAY, capacity=1000.0)
    assert not urgent.wants(lease_of(ONE))
    urgent.divide(20, 1)
    assert not urgent.wants(lease_of(ONE)), "each page fifty times a period: there is no choice to make"
    urgent.divide(200, 1)
    assert urgent.wants(lease_of(ONE))


def test_a_site_that_rests_goes_on_from_what_was_kept_with_it():
    crawl, other = Crawl(pages_of(ONE)), Crawl(pages_of(ONE))
    struck = [f"{ONE}/a/{page}" for page in range(3)]
    for each in (crawl, other):
        [(lease, kept)] = each.fetch(*struck, kind="changed", at=NOW + 3600)
    assert lease.site == ONE
    assert crawl.urgent.leave(ONE, NOW + 3600) is None, "all of it is kept already"
    assert ONE not in crawl.urgent
    crawl.records.clear()  # they are not read again
    assert crawl.admit(ONE, learned=kept, at=NOW + DAY)
    assert crawl.due(20, at=NOW + DAY) == other.due(20, at=NOW + DAY)


def test_of_a_large_site_visits_are_kept_now_and_then_and_when_it_rests():
    crawl = Crawl(pages_of(ONE, 1500), known=1500)
    assert [len(crawl.fetch(f"{ONE}/a/{page}")) for page in range(6)] == [0, 0, 1, 0, 0, 1]
    assert crawl.fetch(f"{ONE}/a/9") == []
    assert len(crawl.urgent.leave(ONE, NOW)) < 60 * 1500


@pytest.mark.parametrize("kept", [b"another version", b"\x80"])
def test_what_cannot_be_read_is_learned_anew_from_the_pages_histories(kept):
    crawl = Crawl(pages_of(ONE))
    crawl.urgent.leave(ONE, NOW)
    assert crawl.admit(ONE, learned=kept)
    assert crawl.due(3) == [f"{ONE}/a/{page}" for page in range(3)]


@pytest.mark.parametrize(("factor", "fits"), [(1.4, True), (1.6, False), (0.75, True), (0.6, False)])
def test_a_site_begins_anew_when_the_interval_between_visits_is_another(factor, fits):
    crawl = Crawl(pages_of(ONE, 20), known=100)
    crawl.divide(round(100 * factor))
    assert crawl.admit(ONE) is not fits
    assert not crawl.admit(ONE)


def test_days_of_the_week_count_only_where_a_period_is_not_longer():
    for period, counted in ((DAY, True), (DAY / 2, True), (2 * DAY, False)):
        urgent = UrgentPages(signals=Signals(weekdays=True), period=period, capacity=10.0)
        assert urgent._terms.signals.weekdays is counted
        assert urgent._terms.signals.day == DAY / period
