"""Urgent pages: which are made due, how many, what is learned of. `test_urgency_in_a_crawl` sees it in a crawl."""

from __future__ import annotations

from math import ceil

import pytest

from tests.frontier.town import CHOICE_S, DAY, NOW, ONE, TWO, Crawl, crawled, history, pages_of
from webfountain.core.signals import Signals
from webfountain.frontier.planning.urgent_pages import FEWEST, SLOW, UrgentPages
from webfountain.records import PageRecord
from webfountain.urls import fingerprint, site_of

# ------------------------------------------------------------------------------------------------ which are made due


def test_of_pages_of_which_nothing_is_known_those_fetched_longest_ago_are_due_first():
    crawl = Crawl(pages_of(ONE))
    (choice,) = crawl.choose(3)
    assert (choice.site, choice.due, choice.before) == (ONE, NOW, False)
    assert crawl.waiting == [f"{ONE}/a/{page}" for page in range(3)]


def test_the_most_urgent_of_all_sites_are_due_whatever_their_site():
    crawl = Crawl(pages_of(ONE, at=NOW - DAY), pages_of(TWO, at=NOW - 9 * DAY))
    assert set(map(site_of, crawl.chosen(5))) == {TWO}
    mixed = Crawl(pages_of(ONE), pages_of(TWO))
    assert {site for site, *_ in mixed.choose(6)} == {ONE, TWO}


def test_no_more_is_promised_than_is_wanted_until_something_is_fetched():
    crawl = Crawl(pages_of(ONE))
    assert len(crawl.chosen(5)) == 5
    assert crawl.chosen(5) == []
    crawl.fetch(*crawl.waiting[:2])
    assert len(crawl.chosen(5)) == 2


def test_pages_that_are_not_ranked_spend_their_share():
    crawl = Crawl(pages_of(ONE, 20), known=80)
    assert len(crawl.chosen(20)) == 5


def test_no_page_is_due_sooner_after_its_last_fetch_than_the_policy_allows():
    crawl = Crawl(pages_of(ONE, 10, at=NOW), shortest=4.5 * 3600)
    assert set(crawl.chosen(10)) == {f"{ONE}/a/{page}" for page in range(6)}


def test_a_page_s_own_history_counts_unless_that_is_switched_off():
    still = [crawled(f"{ONE}/a/{page}", at=NOW - 1.1 * DAY, history=history(changed=False)) for page in range(4)]
    busy = crawled(f"{ONE}/a/busy", history=history(changed=True))
    assert Crawl([*still, busy]).chosen(1) == [busy.url]
    assert busy.url not in Crawl([*still, busy], signals=Signals(history=False)).chosen(4)


def test_importance_decides_only_where_it_is_asked_for():
    plain = [crawled(f"{ONE}/a/{page}", at=NOW - 2 * DAY) for page in range(9)]
    dear = crawled(f"{ONE}/a/dear", at=NOW - DAY, importance=50.0)
    assert dear.url not in Crawl([*plain, dear]).chosen(5)
    assert Crawl([*plain, dear], weighed=True).chosen(1) == [dear.url]


def test_where_no_importance_is_known_pages_near_the_root_count_more():
    deep = [crawled(f"{ONE}/a/b/c/{page}") for page in range(9)]
    assert Crawl([*deep, crawled(f"{ONE}/top")], weighed=True).chosen(1) == [f"{ONE}/top"]


def test_a_page_that_was_met_since_is_due_too_in_its_time():
    crawl = Crawl(pages_of(ONE, 5))
    new = f"{ONE}/a/new"
    crawl.url[ONE, fingerprint(new)] = new
    crawl.fetch(new, kind="new", at=NOW)
    assert new in crawl.chosen(6, at=NOW + 2 * DAY, known=6)


@pytest.mark.parametrize("end", ["refused", "failed", "gone", "redirected"])
def test_a_page_that_could_not_be_fetched_is_not_due_until_it_was_fetched_well(end):
    crawl = Crawl(pages_of(ONE, 6))
    lost = f"{ONE}/a/0"
    assert crawl.chosen(1) == [lost]
    if end == "refused":
        crawl.urgent.refuse(ONE, fingerprint(lost))
    else:
        crawl.fetch(lost, kind=end, state="crawled" if end == "failed" else end)
    assert set(crawl.chosen(9, at=NOW + 3600)) == {f"{ONE}/a/{page}" for page in range(1, 6)}
    crawl.fetch(*crawl.waiting, at=NOW + 7200)
    crawl.fetch(lost, at=NOW + 7200)
    assert lost in crawl.chosen(9, at=NOW + DAY)


def test_a_page_whose_tries_fail_when_its_site_is_taken_in_is_not_due_either():
    down = crawled(f"{ONE}/a/down", at=NOW - 9 * DAY, failures=2)
    assert down.url not in Crawl([*pages_of(ONE, 5), down]).chosen(9)


def test_pages_and_sites_that_are_not_ranked_are_passed_over():
    crawl = Crawl(pages_of(ONE, 5))
    crawl.fetch(f"{TWO}/a/0", kind="changed")
    crawl.urgent.refuse(TWO, fingerprint(f"{TWO}/a/0"))
    crawl.urgent.refuse(ONE, fingerprint(f"{ONE}/never/seen"))
    assert len(crawl.chosen(9)) == 5


def test_a_change_found_is_not_unlearned_by_a_second_fetch_within_a_step():
    urgent = []
    for kinds in (["changed"], ["changed", "same"], ["same"]):
        crawl = Crawl(pages_of(ONE, 12), pages_of(TWO, 12))
        for second, kind in enumerate(kinds):
            crawl.fetch(f"{ONE}/a/3", kind=kind, at=NOW + second)
        urgent.append(sum(site_of(url) == ONE for url in crawl.chosen(8, at=NOW + 2)))
    assert urgent[0] == urgent[1] > urgent[2]


def test_a_visit_that_the_store_told_of_already_is_not_heard_twice():
    """A site is taken in with its first settled visit, which its records hold."""
    past = [crawled(f"{ONE}/a/{page}", at=NOW, history=history(changed=page == 0)) for page in range(5)]
    once, twice = Crawl(past), Crawl(past)
    twice.fetch(past[0].url, kind="changed", at=NOW)
    events = [
        crawl.urgent._sites[ONE]._urgencies._events.tolist() for crawl in (once, twice) if crawl.choose(1) is not None
    ]
    assert events[0] == events[1]
    assert events[0][0] == 12


def test_what_was_found_in_different_steps_between_two_choices_is_all_taken_in():
    crawl = Crawl(pages_of(ONE, 12), pages_of(TWO, 12))
    for page in range(3):
        crawl.fetch(f"{ONE}/a/{page}", kind="changed", at=NOW + page * 3600)
    assert set(map(site_of, crawl.chosen(8, at=NOW + 3 * 3600))) == {ONE}
    assert crawl.urgent._sites[ONE]._urgencies._events[:4].tolist() == [1.0, 1.0, 1.0, 0.0]


# ----------------------------------------------------------------------------------------------------- surges


def test_a_surge_goes_before_what_waits():
    calm = {"history": history(changed=False)}
    since = {"calm": NOW - DAY, "busy": NOW - DAY / 2}
    crawl = Crawl(*(pages_of(ONE, 24, directory=name, at=at, **calm) for name, at in since.items()))
    first = crawl.chosen(6)
    # A release: of the other directory three pages were just fetched anyway, and have changed.
    news = [f"{ONE}/busy/{page}" for page in range(3)]
    assert not set(news) & set(first)
    crawl.fetch(*news, kind="changed", at=NOW + CHOICE_S)
    (choice,) = crawl.choose(6, at=NOW + CHOICE_S)
    assert (choice.before, choice.due) == (True, pytest.approx(NOW + CHOICE_S - 48 / 100 * DAY))
    assert len(choice.keys) == 6
    assert all("/busy/" in url for url in crawl.waiting[:6])
    assert crawl.choose(6, at=NOW + CHOICE_S + 60) == [], "twelve wait, of which six are as urgent"


def test_what_is_but_a_little_more_urgent_waits_its_turn():
    crawl = Crawl(pages_of(ONE, 12))
    assert len(crawl.chosen(4)) == 4
    assert crawl.choose(4, at=NOW + CHOICE_S) == []


# ------------------------------------------------------------------------------------------------- slow sites


def test_what_a_slow_site_owes_is_spent_elsewhere_until_it_answers():
    crawl = Crawl(pages_of(ONE, at=NOW - 3 * DAY), pages_of(TWO, at=NOW - 2 * DAY))
    owed = crawl.chosen(5)
    assert set(map(site_of, owed)) == {ONE}
    slow_s = SLOW * 5 / 100 * DAY
    assert crawl.chosen(5, at=NOW + 0.9 * slow_s) == []
    late = NOW + 1.1 * slow_s
    elsewhere = crawl.chosen(5, at=late)
    assert set(map(site_of, elsewhere)) == {TWO}
    crawl.fetch(*owed[:4], *elsewhere[:4], at=late)
    assert len(crawl.chosen(5, at=late + 1)) == 3, "one of each waits"


@pytest.mark.parametrize("capacity", [4, 10, 25, 60, 400])
def test_at_any_budget_not_much_more_waits_than_was_wanted(capacity):
    """Five sites that answer as fast as the budget allows: none of them is slow."""
    sites = [f"http://s{number}.example" for number in range(5)]
    crawl = Crawl(*(pages_of(site, at=NOW) for site in sites), capacity=capacity)
    wanted, spent, most = 1 + capacity / 50, 0.0, 0
    for choice in range(1, 300):
        at = NOW + choice * CHOICE_S
        crawl.choose(wanted, at=at)
        most = max(most, len(crawl.waiting))
        spent += capacity / 50
        while spent >= 1 and crawl.waiting:
            crawl.fetch(crawl.waiting[0], at=at)
            spent -= 1
    assert wanted <= most <= 2 * ceil(wanted)


def test_a_page_that_waited_in_vain_is_given_up_until_it_is_fetched():
    """It is not there any more; if it is, the store still has it on its list."""
    crawl = Crawl(pages_of(ONE, 10), capacity=10)
    first, later = crawl.chosen(2), NOW + 1.1 * DAY
    second = crawl.chosen(9, at=later)
    assert len(second) == 8
    assert not set(first) & set(second)
    crawl.fetch(*second, *first, at=later)
    assert len(crawl.chosen(10, at=later + DAY)) == 10


# -------------------------------------------------------------------------------------------- sites come and go


def test_no_site_is_wanted_before_the_first_choice_nor_twice():
    urgent = UrgentPages(signals=Signals(), period=DAY, capacity=10.0)
    assert not urgent.wants(ONE, 20)
    urgent.choose(1, at=NOW, known=20, ahead_s=CHOICE_S)
    assert urgent.wants(ONE, 20)
    urgent.admit(ONE, pages_of(ONE), at=NOW)
    assert ONE in urgent
    assert not urgent.wants(ONE, 20)
    assert TWO not in urgent


def test_a_site_of_few_pages_is_not_wanted_and_one_that_is_left_with_few_is_let_go():
    crawl = Crawl(pages_of(ONE, FEWEST), pages_of(TWO, FEWEST - 1))
    assert ONE in crawl.urgent
    assert TWO not in crawl.urgent
    # The store counted what it does not keep for us: another project's requests.
    crawl.urgent.admit(TWO, [*pages_of(TWO, 3), crawled(f"{TWO}/x", request=b"x"), PageRecord(f"{TWO}/y")], at=NOW)
    assert crawl.choose(1)
    assert TWO not in crawl.urgent


def test_a_site_without_room_is_not_wanted():
    crawl = Crawl(pages_of(ONE, 20), pages=30, sites=2)
    assert not crawl.urgent.wants(TWO, 11)
    assert crawl.urgent.wants(TWO, 10)
    crawl.urgent.admit(TWO, pages_of(TWO, 5), at=NOW)
    assert not crawl.urgent.wants("http://three.example", 5)


def test_a_site_that_outgrows_its_room_is_let_go():
    crawl = Crawl(pages_of(ONE, 20), pages_of(TWO, 8), pages=30)
    crawl.fetch(*[f"{TWO}/new/{page}" for page in range(3)], kind="new")
    crawl.choose(1, known=31)
    assert ONE in crawl.urgent
    assert TWO not in crawl.urgent
    assert not crawl.urgent.wants(TWO, 11)
    assert crawl.urgent.wants(TWO, 10)


@pytest.mark.parametrize(("factor", "stays"), [(1.4, True), (1.6, False), (0.75, True), (0.6, False)])
def test_a_site_comes_again_when_the_interval_between_visits_is_another(factor, stays):
    crawl = Crawl(pages_of(ONE, 20), known=100)
    crawl.choose(1, known=round(100 * factor))
    assert (ONE in crawl.urgent) is stays
    assert crawl.urgent.wants(ONE, 20) is not stays
    if not stays:
        crawl.urgent.admit(ONE, crawl.records, at=NOW)
        assert crawl.choose(1, known=round(100 * factor))


def test_days_of_the_week_are_listened_to_only_where_a_period_is_not_longer():
    for period, heard in ((DAY, True), (DAY / 2, True), (2 * DAY, False)):
        urgent = UrgentPages(signals=Signals(weekdays=True), period=period, capacity=10.0)
        assert urgent._signals.weekdays is heard
        assert urgent._signals.day == DAY / period
