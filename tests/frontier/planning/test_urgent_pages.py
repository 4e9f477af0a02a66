"""Urgent pages: which are due at a price, when others will be, what is kept. `test_urgency_in_a_crawl`: in a crawl."""

from __future__ import annotations

import random
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.frontier.town import CHECK_S, DAY, NOW, ONE, TWO, Crawl, crawled, history, lease_of, pages_of
from webfountain.core.forecast import published
from webfountain.core.signals import Signals
from webfountain.frontier.planning.urgency_terms import PAUSE
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from webfountain.records import OutcomeKind

# ------------------------------------------------------------------------------------------------ which become due


def test_of_pages_of_which_nothing_is_known_those_fetched_longest_ago_are_due_first() -> None:
    assert Crawl(pages_of(ONE)).due(3) == [f"{ONE}/a/{page}" for page in range(3)]


def test_pages_are_due_that_are_worth_the_price_and_no_others() -> None:
    crawl = Crawl(pages_of(ONE))
    every = Crawl(pages_of(ONE)).due(20)
    dear = next(price for price in (1.1**power for power in range(200)) if crawl.demand(price) <= 8)
    fewer = crawl.due(20, price=dear)
    assert 0 < len(fewer) <= 8
    assert fewer == every[: len(fewer)]
    assert crawl.due(20, price=inf) == []


def test_a_page_is_due_once_until_it_is_fetched() -> None:
    crawl = Crawl(pages_of(ONE))
    assert len(crawl.due(5)) == 5
    assert not set(crawl.due(5)) & set(crawl.waiting[:5])
    crawl.fetch(*crawl.waiting[:2])
    assert len(crawl.due(20)) == 12


def test_no_page_is_due_sooner_after_its_last_fetch_than_the_policy_allows() -> None:
    crawl = Crawl(pages_of(ONE, 10, at=NOW), shortest=4.5 * 3600)
    assert set(crawl.due(10)) == {f"{ONE}/a/{page}" for page in range(6)}
    crawl.urgent.pace.divide(10_000_000, 300_000)
    assert crawl.next_at(1e-9) == pytest.approx(NOW + 0.5 * 3600), "then the next may be fetched"


@pytest.mark.parametrize(("capacity", "pages"), [(200.0, [100, 100, 100]), (50.0, [60, 100, 100])])
def test_pages_that_a_period_can_still_fetch_first_have_their_part_of_the_budget(
    capacity: float, pages: list[int]
) -> None:
    """So the interval between visits is that of the whole collection while it fills."""
    crawl = Crawl(pages_of(ONE), capacity=capacity)
    for (fetched, coming), many in zip([(10, 90), (60, 40), (100, 0)], pages, strict=True):
        crawl.urgent.pace.divide(fetched, 1, coming=coming)
        assert crawl.urgent.pace.terms.interval == pytest.approx(many / capacity * DAY)


def test_a_page_s_own_history_counts_unless_that_is_switched_off() -> None:
    still = [crawled(f"{ONE}/a/{page}", at=NOW - 1.1 * DAY, history=history(changed=False)) for page in range(4)]
    busy = crawled(f"{ONE}/a/busy", history=history(changed=True))
    assert Crawl([*still, busy]).due(1) == [busy.url]
    assert busy.url not in Crawl([*still, busy], signals=Signals(history=False)).due(4)


def test_importance_decides_only_where_it_is_asked_for() -> None:
    plain = [crawled(f"{ONE}/a/{page}", at=NOW - 2 * DAY) for page in range(9)]
    dear = crawled(f"{ONE}/a/dear", at=NOW - DAY, importance=50.0)
    assert dear.url not in Crawl([*plain, dear]).due(5)
    assert Crawl([*plain, dear], weighed=True).due(1) == [dear.url]


def test_where_no_importance_is_known_pages_near_the_root_count_more() -> None:
    deep = [crawled(f"{ONE}/a/b/c/{page}") for page in range(9)]
    assert Crawl([*deep, crawled(f"{ONE}/top")], weighed=True).due(1) == [f"{ONE}/top"]


def test_a_page_that_was_met_since_is_due_too_in_its_time() -> None:
    crawl = Crawl(pages_of(ONE, 5))
    new = f"{ONE}/a/new"
    crawl.url[fingerprint(new)] = new
    crawl.fetch(new, kind="new")
    assert new in crawl.due(6, at=NOW + 2 * DAY)


@pytest.mark.parametrize("end", ["refused", "failed", "gone", "redirected"])
def test_a_page_that_could_not_be_fetched_is_not_due_until_it_was_fetched_well(end: OutcomeKind) -> None:
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


def test_a_page_whose_tries_fail_when_its_site_is_taken_in_is_not_due_either() -> None:
    down = crawled(f"{ONE}/a/down", at=NOW - 9 * DAY, failures=2)
    assert down.url not in Crawl([*pages_of(ONE, 5), down]).due(9)


def test_pages_and_sites_that_are_not_active_are_passed_over() -> None:
    crawl = Crawl(pages_of(ONE, 5))
    assert crawl.fetch(f"{TWO}/a/0", kind="changed") == []
    crawl.urgent.refuse(TWO, fingerprint(f"{TWO}/a/0"))
    crawl.urgent.refuse(ONE, fingerprint(f"{ONE}/never/seen"))
    assert len(crawl.due(9)) == 5


def test_a_change_found_is_not_unlearned_by_a_second_fetch_within_a_step() -> None:
    demand = []
    cases: list[list[OutcomeKind]] = [["changed"], ["changed", "same"], ["same"]]
    for kinds in cases:
        crawl = Crawl(pages_of(ONE, 12))
        for second, kind in enumerate(kinds):
            crawl.fetch(f"{ONE}/a/3", kind=kind, at=NOW + second)
        demand.append(crawl.demand(2000.0, at=NOW + 2))
    assert demand[0] == demand[1] > demand[2]


def test_a_visit_that_the_store_reported_already_is_not_learned_from_twice() -> None:
    past = [crawled(f"{ONE}/a/{page}", at=NOW, history=history(changed=page == 0)) for page in range(5)]
    once, twice = Crawl(past), Crawl(past)
    twice.fetch(past[0].url, kind="changed", at=NOW)
    assert [once.due(1), twice.due(1)]
    events = [crawl.urgent.sites.active[ONE].urgencies._page[0].tolist() for crawl in (once, twice)]
    assert events[0] == events[1]
    assert events[0][0] == 12


def test_a_page_that_waited_in_vain_is_given_up_until_it_is_fetched() -> None:
    """It is not there any more; if it is, the store still has it on its list."""
    crawl = Crawl(pages_of(ONE, 10), capacity=10)
    first, later = crawl.due(2), NOW + 1.1 * DAY
    second = crawl.due(9, at=later)
    assert len(second) == 8
    assert not set(first) & set(second)
    crawl.fetch(*second, *first, at=later)
    assert len(crawl.due(10, at=later + DAY)) == 10


# --------------------------------------------------------------------------------------------------- releases


def released() -> Crawl:
    """Two directories, of one of which six pages wait; of the other three were just fetched, and have changed."""
    calm = {"history": history(changed=False)}
    since = {"calm": NOW - DAY, "busy": NOW - DAY / 2}
    crawl = Crawl(*(pages_of(ONE, 24, directory=name, at=at, **calm) for name, at in since.items()))
    assert all("/calm/" in url for url in crawl.due(6))
    crawl.fetch(*[f"{ONE}/busy/{page}" for page in range(3)], kind="changed", at=NOW + CHECK_S)
    return crawl


def test_a_release_goes_before_what_waits_each_page_once() -> None:
    crawl = released()
    first = crawl.outranking(at=NOW + CHECK_S)
    assert len(first) == 6, "as many as wait"
    assert all("/busy/" in url for url in first)
    crawl.outranking(at=NOW + CHECK_S + 60)
    rest = crawl.due(99, at=NOW + 2 * CHECK_S)
    assert not set(rest) & set(first)
    fetched = {f"{ONE}/busy/{page}" for page in range(3)}
    assert not set(rest[:15]) & fetched, "those that were fetched after the release come last"


def test_what_is_but_a_little_more_urgent_waits_its_turn() -> None:
    crawl = Crawl(pages_of(ONE, 12))
    assert len(crawl.due(4)) == 4
    assert crawl.outranking(at=NOW + CHECK_S) == []


# ------------------------------------------------------------------------------------------- when to ask again


def test_a_site_is_asked_again_when_a_page_may_be_worth_the_price() -> None:
    crawl = Crawl(pages_of(ONE), capacity=1e6, known=30_000_000)  # many sites: none is asked without need
    crawl.urgent.pace.divide(30_000_000, 3_000_000)
    price = 2.0 * max(2.0**power for power in range(40) if crawl.demand(2.0**power))
    soon = crawl.next_at(price)
    assert NOW + DAY / 50 < soon < NOW + 3 * DAY
    assert crawl.due(9, price=price, at=soon - 1.0) == []
    assert crawl.next_at(price, at=soon - 1.0) == soon, "told again, and not reckoned again"
    then = soon if crawl.demand(price, at=soon) else crawl.next_at(price, at=soon)
    assert crawl.demand(price, at=then + DAY), "a step later or a little more it is"


def test_a_site_is_asked_sooner_when_the_price_has_fallen() -> None:
    crawl = Crawl(pages_of(ONE), capacity=1e6, known=30_000_000)
    crawl.urgent.pace.divide(30_000_000, 3_000_000)
    price = 3.0 * max(2.0**power for power in range(40) if crawl.demand(2.0**power))
    later = crawl.next_at(price)
    assert crawl.next_at(price / 2) < later
    assert crawl.next_at(price / 8) == NOW, "a page is worth that already"


def test_a_site_whose_dates_show_every_change_is_not_asked_before_its_smaller_urgencies_reach_the_price() -> None:
    crawl = Crawl(pages_of(ONE), capacity=1e6, known=30_000_000)
    crawl.urgent.pace.divide(30_000_000, 3_000_000)
    site = crawl.urgent.sites.active[ONE]
    crawl.demand(0.0)
    price = 0.9 * site.ranking.most
    for _ in range(45):
        site.ranking.dates.receive(np.arange(20), np.zeros(20, dtype=np.bool_))
        site.ranking.dates.weigh(np.ones(20), np.ones(20), np.full(20, 0.3))  # that each third page has changed
        site.ranking.dates.visit(0, changed=False)
    assert crawl.urgent.receive_dates(ONE, dict.fromkeys(crawl.url, False)) == []
    assert not crawl.demand(price)
    soon = crawl.next_at(price)
    assert soon > NOW + 2 * DAY, "it was asked at each step"
    assert not crawl.demand(price, at=soon - 1.0)
    assert crawl.demand(price, at=soon + DAY)


def test_where_sites_are_many_one_rests_from_a_reckoning_to_the_next_through_a_restart_too() -> None:
    crawl = Crawl(pages_of(ONE, 30), capacity=10.0)
    crawl.urgent.pace.divide(30, 1_000_000)
    site = crawl.urgent.sites.active[ONE]
    crawl.due(1)
    [(_, kept)] = crawl.fetch(*crawl.waiting, kind="changed", at=NOW + 60)
    rests_until = site.ranking.rests_until
    assert NOW + CHECK_S < rests_until <= NOW + 1_000_000 / 50
    other = Crawl(capacity=10.0, known=30)
    other.sites, other.url = crawl.sites, crawl.url
    other.urgent.pace.divide(30, 1_000_000)
    assert other.admit(ONE, learned=kept, at=NOW + 90)
    assert other.urgent.sites.active[ONE].ranking.rests_until == rests_until
    for each in (crawl, other):
        price = 2.0 * each.urgent.sites.active[ONE].ranking.most
        assert each.due(9, price=price, at=rests_until - 1.0) == []
        assert each.urgent.sites.active[ONE].observed, "not learned from while it rests"
        assert rests_until <= each.next_at(price, at=rests_until - 1.0) <= rests_until + 1.0
        each.demand(price, at=rests_until)
        assert not each.urgent.sites.active[ONE].observed


def test_a_page_of_a_large_site_is_known_by_its_key_also_when_others_came_since() -> None:
    crawl = Crawl(pages_of(ONE, 1200))
    site = crawl.urgent.sites.active[ONE]
    for more in (None, *(f"{ONE}/a/new{page}" for page in range(3))):
        if more is not None:
            crawl.fetch(more, kind="new")
        assert [site.pages.number(site.pages.key(page)) for page in range(len(site))] == list(range(len(site)))
        assert site.pages.number(fingerprint(f"{ONE}/never/seen")) is None


def test_sites_do_not_all_become_more_urgent_at_once() -> None:
    sites = [f"http://s{number}.example" for number in range(40)]
    crawl = Crawl(*(pages_of(site, 5) for site in sites), capacity=20.0)
    begins = [crawl.urgent.sites.active[site].ranking.steps.next_at(NOW) for site in sites]
    assert all(begin > NOW for begin in begins)
    assert len({round(begin) for begin in begins}) > 35


def test_what_is_found_is_learned_when_the_site_is_asked_or_at_once_where_others_wait() -> None:
    """A second time at once only after a check; a visit that is not learned from yet is kept with the site."""
    crawl = Crawl(pages_of(ONE, 30), capacity=10.0)
    site = crawl.urgent.sites.active[ONE]
    crawl.fetch(f"{ONE}/a/29", kind="changed")
    assert len(site.observed) == 1, "nothing waits that others could outrank"
    crawl.demand(0.0)
    crawl.fetch(f"{ONE}/a/28", at=NOW + 1.0)
    assert site.demand(1e-9, NOW + 1.0) == 28, "a page that was fetched is not wanted, though nothing is learned yet"
    crawl.due(9, at=NOW + 1.0)
    assert not site.observed
    pause = PAUSE * site.terms.step_s
    for page, pauses, left in ((0, 0.0, 1), (1, 1.0, 0), (2, 1.5, 1), (3, 1.9, 2)):
        [(_, kept)] = crawl.fetch(f"{ONE}/a/{page}", kind="changed", at=NOW + 1.0 + pauses * pause)
        crawl.urgent.prepare([], [ONE], 0.0, at=NOW + 1.0 + pauses * pause)
        assert len(site.observed) == left, page
    other = Crawl(capacity=10.0, known=30)
    other.sites, other.url = crawl.sites, crawl.url
    other.divide(30)
    assert other.admit(ONE, learned=kept, at=NOW + 2 * CHECK_S)
    assert other.urgent.sites.active[ONE].observed == site.observed
    crawl.demand(0.0, at=NOW + DAY / 8)  # a step later
    other.demand(0.0, at=NOW + DAY / 8)
    assert not site.observed
    assert other.urgent.sites.active[ONE].ranking.worth.tolist() == site.ranking.worth.tolist()


def test_where_sites_are_few_they_are_asked_often_for_the_price_may_have_fallen() -> None:
    crawl = Crawl(pages_of(ONE), known=100)
    assert crawl.next_at(1e9) == pytest.approx(NOW + CHECK_S)


def test_the_demand_of_many_sites_is_that_of_some() -> None:
    sites = [f"http://s{number}.example" for number in range(80)]
    crawl = Crawl(*(pages_of(site, 5) for site in sites))
    assert crawl.urgent.supply.demand(0.0, NOW) == 400
    crawl.fetch(*[f"{sites[0]}/a/{page}" for page in range(5)])
    assert crawl.urgent.supply.demand(inf, NOW) == 400, "counted once for each check of the price"
    assert crawl.urgent.supply.demand(inf, NOW + CHECK_S) == 0


# -------------------------------------------------------------------------------------------- sites come and go


def test_no_site_is_wanted_while_the_budget_is_enough_for_all() -> None:
    urgent = UrgentPages(signals=Signals(), period=DAY, capacity=1000.0)
    assert not urgent.wants(lease_of(ONE))
    urgent.pace.divide(20, 1)
    assert not urgent.wants(lease_of(ONE)), "each page fifty times a period: there is no choice to make"
    urgent.pace.divide(200, 1)
    assert urgent.wants(lease_of(ONE))


def test_a_site_that_rests_goes_on_from_what_was_kept_with_it() -> None:
    crawl, other = Crawl(pages_of(ONE)), Crawl(pages_of(ONE))
    struck = [f"{ONE}/a/{page}" for page in range(3)]
    for each in (crawl, other):
        [(lease, kept)] = each.fetch(*struck, kind="changed", at=NOW + 3600)
    assert lease.site == ONE
    assert crawl.urgent.leave(ONE) is None, "all of it is kept already"
    assert ONE not in crawl.urgent
    crawl.records.clear()  # they are not read again
    assert crawl.admit(ONE, learned=kept, at=NOW + DAY)
    assert crawl.due(20, at=NOW + DAY) == other.due(20, at=NOW + DAY)


def test_a_page_that_a_sitemap_dates_later_goes_first_through_a_restart_too_until_it_is_fetched() -> None:
    crawl = Crawl(pages_of(ONE))
    dates = {fingerprint(f"{ONE}/a/{page}"): page == 9 for page in range(12)}
    unknown = fingerprint(f"{ONE}/a/other")
    assert crawl.urgent.receive_dates(ONE, dates | {unknown: True}) == [unknown]
    assert crawl.urgent.receive_dates(TWO, {unknown: True}) == [unknown], "a site that is not in memory"
    kept = crawl.urgent.leave(ONE)
    assert kept is not None
    crawl.urgent.sites.wake(ONE)  # it is read again
    assert crawl.admit(ONE, learned=kept, at=NOW + DAY)
    assert crawl.due(1, at=NOW + DAY) == [f"{ONE}/a/9"]
    crawl.fetch(f"{ONE}/a/9", at=NOW + DAY)
    assert f"{ONE}/a/9" not in crawl.due(5, at=NOW + 2 * DAY)


def test_dates_that_most_pages_have_make_none_due_that_cannot_compete_unless_the_budget_is_enough_for_all() -> None:
    """A sitemap of another window, or of a site that is not in memory: nothing was learned about these pages."""
    crawl = Crawl(pages_of(ONE))
    away = [fingerprint(f"{ONE}/in/another/window/{number}") for number in range(100)]
    for site in (ONE, TWO):
        assert crawl.urgent.receive_dates(site, dict.fromkeys(away, True)) == []
        assert crawl.urgent.receive_dates(site, {key: key in away[:40] for key in away}) == away[:40]
    ample = UrgentPages(signals=Signals(), period=DAY, capacity=1000.0)
    assert ample.receive_dates(ONE, dict.fromkeys(away, True)) == away


def test_pages_that_cannot_compete_are_not_due_by_dates_that_mean_nothing() -> None:
    """All other windows of a large site were made due each time that its sitemap dated all pages by today."""
    crawl = Crawl(pages_of(ONE))
    away = fingerprint(f"{ONE}/in/another/window")
    later = {key: key == fingerprint(f"{ONE}/a/1") for key in crawl.url} | {away: True}
    assert crawl.urgent.receive_dates(ONE, dict.fromkeys(later, True)) == [], "all pages are dated"
    assert crawl.urgent.receive_dates(ONE, later) == [away]
    for day in range(40):
        crawl.fetch(f"{ONE}/a/1", at=NOW + day * DAY + 1.0)
        crawl.urgent.receive_dates(ONE, later)
    assert crawl.urgent.receive_dates(ONE, later) == [], "each date was later, and nothing had changed"
    for day in range(40, 60):
        crawl.fetch(f"{ONE}/a/1", kind="changed", at=NOW + day * DAY + 1.0)
        crawl.urgent.receive_dates(ONE, later)
    assert crawl.urgent.receive_dates(ONE, later) == [away], "they mean something again"


def test_a_site_that_comes_back_soon_is_not_read_again_nor_reckoned_unless_another_wrote_of_it() -> None:
    crawl = Crawl(pages_of(ONE))
    crawl.demand(0.0)
    site = crawl.urgent.sites.active[ONE]
    kept = crawl.fetch(f"{ONE}/a/3")[0][1]
    crawl.urgent.leave(ONE)
    assert crawl.admit(ONE, learned=kept)
    assert crawl.urgent.sites.active[ONE] is site
    crawl.urgent.leave(ONE)
    other = Crawl(pages_of(ONE)).fetch(f"{ONE}/a/4")[0][1]
    assert crawl.admit(ONE, learned=other)
    assert crawl.urgent.sites.active[ONE] is not site


def test_pages_of_sites_that_nobody_asks_are_due_when_the_price_has_fallen_and_few_others_are() -> None:
    """Of one that rests and of one that is active and has nothing due, the dearest first."""
    crawl = Crawl(pages_of(ONE), pages_of(TWO, at=NOW - 2 * DAY))
    crawl.due(0, price=inf)
    crawl.urgent.supply.demand(inf, NOW)
    crawl.urgent.leave(ONE)
    assert crawl.urgent.supply.call(inf, at=NOW) == {}
    first = crawl.urgent.supply.call(0.0, at=NOW + CHECK_S)
    assert {site: len(keys) for site, keys in first.items()} == {TWO: 5}, "two checks' worth, and one"
    assert crawl.urgent.supply.call(0.0, at=NOW + CHECK_S + 1.0) == {}, "once a check"
    assert crawl.urgent.supply.call(0.0, at=NOW + 2 * CHECK_S) == {}, "while so many wait"
    crawl.fetch(*(crawl.url[key] for key in first[TWO][1:]))
    then = crawl.urgent.supply.call(0.0, at=NOW + 3 * CHECK_S)
    assert [crawl.url[key] for key in then[ONE]] == [f"{ONE}/a/{page}" for page in range(4)], "of the other one waits"
    assert crawl.urgent.supply.call(0.0, at=NOW + 3 * CHECK_S) == {}, "of both"


def test_what_pages_that_do_not_wait_are_worth_is_known_of_all_sites_in_memory() -> None:
    crawl = Crawl(pages_of(ONE, 9), pages_of(TWO, 6))
    crawl.demand(0.0)
    crawl.urgent.leave(ONE)
    both = sorted(
        [*crawl.urgent.sites.active[TWO].ranking.worth, *crawl.urgent.sites.rested[ONE].ranking.worth], reverse=True
    )
    assert crawl.urgent.supply.best(4, NOW) == (both[0], both[3])
    assert crawl.urgent.supply.best(99, NOW + 1.0) == (both[0], both[3]), "asked once a check"
    assert crawl.urgent.supply.best(99, NOW + CHECK_S) == (both[0], 0.0), "there are not so many"
    crawl.due(1, site=TWO)
    rest = sorted(crawl.urgent.sites.rested[ONE].ranking.worth, reverse=True)
    assert crawl.urgent.supply.best(2, NOW + 2 * CHECK_S)[1] == rest[1], "those of a site whose turn it is do not count"


def test_of_a_large_site_visits_are_kept_now_and_then_and_when_it_rests() -> None:
    crawl = Crawl(pages_of(ONE, 1500), known=1500)
    assert [len(crawl.fetch(f"{ONE}/a/{page}")) for page in range(6)] == [0, 0, 1, 0, 0, 1]
    assert crawl.fetch(f"{ONE}/a/9") == []
    kept = crawl.urgent.leave(ONE)
    assert kept is not None
    assert len(kept) < 60 * 1500


@pytest.mark.parametrize("kept", [b"another version", b"\x80"])
def test_what_cannot_be_read_is_learned_anew_from_the_pages_histories(kept: bytes) -> None:
    crawl = Crawl(pages_of(ONE))
    crawl.urgent.leave(ONE)
    assert crawl.admit(ONE, learned=kept)
    assert crawl.due(3) == [f"{ONE}/a/{page}" for page in range(3)]


@pytest.mark.parametrize(("factor", "fits"), [(1.4, True), (1.6, False), (0.75, True), (0.6, False)])
def test_a_site_begins_anew_when_the_interval_between_visits_is_another(factor: float, fits: bool) -> None:
    crawl = Crawl(pages_of(ONE, 20), known=100)
    crawl.divide(round(100 * factor))
    assert crawl.admit(ONE) is not fits
    assert not crawl.admit(ONE)


def test_where_visits_are_rare_what_was_learned_goes_on_under_another_interval() -> None:
    """A step is a period then, whatever the interval; how long evidence lasts is what changes."""
    crawl = Crawl(pages_of(ONE, 20), known=100, capacity=1.0)
    before = crawl.urgent.sites.active[ONE]
    crawl.divide(300)
    assert not crawl.admit(ONE)
    assert crawl.urgent.sites.active[ONE] is before
    assert before.terms.interval == pytest.approx(300 * DAY, rel=0.3)
    assert before.urgencies.signals.memory > 3000
    assert crawl.due(3) == [f"{ONE}/a/{page}" for page in range(3)]


def test_what_is_believed_of_a_site_counts_once_though_it_begins_anew() -> None:
    crawl = Crawl(pages_of(ONE, 20), known=100)
    for day, known in ((1, 100), (2, 40), (3, 90)):
        crawl.divide(known)
        assert crawl.admit(ONE) is (day > 1)
        crawl.fetch(f"{ONE}/a/{day}", kind="changed", at=NOW + day * DAY)
        crawl.demand(0.0, at=NOW + (day + 0.5) * DAY)
        reported = published(crawl.urgent.forecast.encode())
        assert reported is not None
        assert reported.standing.pages == 20


# ----------------------------------------------------------------------------------------------------- after a kill


def test_after_a_kill_in_mid_cycle_the_same_pages_are_due_but_for_what_was_in_flight() -> None:
    """What was kept with the sites as visits were settled is all that the next process has."""
    rng = random.Random(5)
    crawl = Crawl(pages_of(ONE, 60), pages_of(TWO, 60, directory="b"), capacity=30.0)
    kept: dict[str, bytes] = {}
    at = NOW
    for _ in range(40):
        at += DAY / 30
        for site in (ONE, TWO):
            crawl.due(1, at=at, site=site)
        fetched = [crawl.waiting[0]] if crawl.waiting else []
        kind: OutcomeKind = "changed" if rng.random() < 0.3 else "same"
        kept |= {lease.site: data for lease, data in crawl.fetch(*fetched, kind=kind, at=at)}
    in_flight = set(crawl.waiting)
    forecast = crawl.urgent.forecast.encode()

    after = Crawl(capacity=30.0, known=120)
    after.url, after.sites = crawl.url, crawl.sites
    after.divide(120)
    after.urgent.forecast.resume(forecast)
    for site in (ONE, TWO):
        assert after.admit(site, learned=kept[site], at=at)
    at += DAY / 10
    due = [
        [url for url in each.due(99, price=2000.0, at=at, site=site) if url not in in_flight]
        for each in (crawl, after) for site in (ONE, TWO)
    ]  # fmt: skip
    assert due[:2] == due[2:]
    assert any(due)
    reported, again = (published(each.urgent.forecast.encode()) for each in (crawl, after))
    assert reported is not None
    assert again is not None
    assert again.standing.pages == reported.standing.pages
    assert again.forecast.found == pytest.approx(reported.forecast.found, rel=0.1), (
        "but for visits not kept when learned"
    )
    for site in (ONE, TWO):
        assert after.next_at(2000.0, at=at, site=site) <= crawl.next_at(2000.0, at=at, site=site)
