"""What every store does: the contract of `webfountain.store.contract`, over all backends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.invariants import check_valid
from tests.store.stores import (
    ALWAYS,
    BACKENDS,
    SITE,
    Queue,
    active,
    crawled,
    lease,
    link,
    links,
    make_store,
    numbers,
    outcome,
    recrawl_due,
    refill,
)
from webfountain.errors import CursorLost, InputError
from webfountain.records import (
    CensusRow,
    Copy,
    DiscoverResult,
    LeaseId,
    Move,
    Outcome,
    PageRecord,
    SettleResult,
    SiteState,
)
from webfountain.store.answers import BucketCensus, ParkRequest, ReassignResult, Refill, RegradeResult
from webfountain.store.lanes import ADVANCED, AT_ONCE, CLASSES, LANES, RETRY, class_of
from webfountain.store.opening import open_store
from webfountain.store.site_orders import SITE_ORDERS, ranks_of
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.records import OutcomeKind, PageRecord, SiteLease, SiteRecord
    from webfountain.store.contract import FrontierStore


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrontierStore]:
    opened = make_store(request.param, tmp_path)
    yield opened
    check_valid(opened)
    opened.close()


def crawl(store: FrontierStore, site: SiteLease, at: float, *, n: int = 1000, bucket: int = 5) -> None:
    """Fetch what waits in the never-crawled queue well."""
    store.queues.settle([outcome(one, at, bucket=bucket) for one in lease(store, site, n)], at=at)


def test_a_link_becomes_known_once(store: FrontierStore) -> None:
    assert store.queues.discover([*links(1, 2), *links(1)], at=1.0) == DiscoverResult(new=2, known=1, repeated=(2,))
    assert store.queues.discover(links(2, 3), at=2.0) == DiscoverResult(new=1, known=1, repeated=(0,))
    assert store.queues.discover([], at=2.0) == DiscoverResult(new=0, known=0)
    assert sorted(record.url for _, record in store.pages.records()) == [f"{SITE}/{n}" for n in (1, 2, 3)]


def test_the_positions_of_known_links_in_a_batch_over_many_sites_are_returned(store: FrontierStore) -> None:
    all_links = [link(n, site=f"https://{n % 5}.example") for n in range(20)]
    store.queues.discover(all_links[::3], at=1.0)
    assert store.queues.discover(all_links, at=2.0).repeated == tuple(range(0, 20, 3))


def test_the_most_important_class_is_leased_first_then_the_first_come(store: FrontierStore) -> None:
    for number, importance in ((1, 0.5), (2, -1.0), (3, 0.7), (4, 7.0), (5, -0.0), (6, 0.0), (7, 0.4)):
        store.queues.discover([link(number, importance=importance)], at=1.0)
    assert numbers(lease(store, active(store), 9)) == [4, 1, 3, 7, 2, 5, 6]


@pytest.mark.parametrize(
    ("importance", "lane"),
    [
        (2.0**12, 0), (1e30, 0), (math.inf, 0), (2.0**11.5, 1), (2.0**11, 2), (1.0, 24), (0.71, 25), (0.7, 26),
        (0.5, 26), (2.0**-19, 62), (1e-6, 63), (0.0, 63), (-3.0, 63), (math.nan, 63),
    ],
)  # fmt: skip
def test_the_classes_of_importance_halve_from_lane_to_lane_but_one(importance: float, lane: int) -> None:
    assert class_of(importance) == lane


def test_a_horizon_opens_and_shuts_the_lanes_of_new_pages(store: FrontierStore) -> None:
    for number, importance, at in ((1, 0.5, 1.0), (2, 9.0, 2.0), (3, 9.0, 4.0), (4, 0.0, 1.0)):
        store.queues.discover([link(number, importance=importance)], at=at)
    site = active(store)
    horizon = [-math.inf] * CLASSES
    horizon[class_of(9.0)], horizon[class_of(0.5)] = 3.0, 50.0  # overdue by 1, and by 49
    (dealt,) = store.queues.lease([Refill(site, never_crawled=9, classes=horizon)])
    assert dealt is not None
    assert numbers(dealt.never_crawled) == [1, 2]
    with pytest.raises(ValueError, match="horizon of 64 times"):
        store.queues.lease([Refill(site, never_crawled=9, classes=[1.0])])


def test_a_record_names_the_page_that_it_was_discovered_through(store: FrontierStore) -> None:
    store.queues.discover(
        [link(1, source=""), link(2, source=f"{SITE}/1"), link(3, source="https://b.example/x")], at=1.0
    )
    store.queues.discover([link(2, source=f"{SITE}/3")], at=2.0)
    known = {record.url: record.source for _, record in store.pages.records()}
    other = fingerprint("https://b.example/x") + b"https://b.example"
    assert known == {f"{SITE}/1": b"", f"{SITE}/2": fingerprint(f"{SITE}/1"), f"{SITE}/3": other}
    crawl(store, active(store), 3.0)
    assert {record.url: record.source for _, record in store.pages.records()} == known


def test_records_are_read_in_the_order_they_are_asked_for(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=0.0)
    one, two, unknown = links(1, 2, 3)
    found = store.pages.get_many(one.site, [two.key, unknown.key, one.key, two.key])
    assert [None if record is None else record.url for record in found] == [two.url, None, one.url, two.url]
    assert store.pages.get_many("https://unknown.example", [one.key]) == [None]
    assert store.pages.get_many(one.site, []) == []


def test_the_same_key_on_two_sites_is_two_pages(store: FrontierStore) -> None:
    store.queues.discover([link(1), link(1, site="https://b.example")], at=1.0)
    found = lease(store, active(store, "https://b.example"), 5)
    assert [one.record.url for one in found] == ["https://b.example/1"]


def test_a_new_page_carries_what_its_link_said(store: FrontierStore) -> None:
    one = msgspec.structs.replace(link(1), url="http://elsewhere.example/x", depth=3, policy="favor", request=b"\x80")
    store.queues.discover([msgspec.structs.replace(one, importance=0.25)], at=7.5)
    record = store.pages.get(SITE, one.key)
    assert record is not None
    assert (record.url, record.depth, record.policy, record.request) == (one.url, 3, "favor", b"\x80")
    assert (record.state, record.first_seen, record.last_crawled) == ("never-crawled", 7.5, None)
    assert record.importance == 0.25


def test_no_url_is_leased_twice(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    assert numbers(lease(store, site, 2)) == [1, 2]
    assert numbers(lease(store, site, 2)) == [3]
    assert lease(store, site, 2) == []


def test_one_call_deals_to_many_sites_from_all_their_queues(store: FrontierStore) -> None:
    store.queues.discover([*links(1, 2, 3), link(4, site="https://b.example")], at=1.0)
    a, b = store.sites.activate(9, owner="ant", until=9.0, at=1.0)
    crawl(store, a, 5.0, n=1)
    store.queues.immediate(links(3), at=5.0)
    first, second = store.queues.lease(
        [Refill(a, 1, 1, 1, horizon=[4.0] * LANES), Refill(b, never_crawled=1, recrawl=1, horizon=ALWAYS)]
    )
    assert first is not None
    assert second is not None
    assert (numbers(first.immediate), numbers(first.never_crawled), numbers(first.recrawl)) == ([3], [2], [])
    assert first.lanes == [(5, 5.0)]
    assert (second.site, numbers(second.never_crawled), second.lanes) == ("https://b.example", [4], [])
    assert store.queues.lease([]) == []


def test_a_released_lease_returns_to_its_place(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    first, _ = lease(store, site, 2)
    assert store.queues.release([first.id, first.id, LeaseId(SITE, site.token, 999)]) == 1
    assert numbers(lease(store, site, 9)) == [1, 3]


def test_a_lease_returns_to_its_place_in_every_queue(store: FrontierStore) -> None:
    store.queues.discover(links(*range(6)), at=1.0)
    site = active(store)
    crawl(store, site, 5.0, n=3)
    store.queues.immediate(links(7, 8, 9), at=6.0)
    queues: tuple[tuple[Queue, list[int]], ...]
    queues = (("never-crawled", [3, 4]), ("recrawl", [0, 1]), ("immediate", [7, 8]))
    for queue, held in queues:
        first = lease(store, site, 2, queue=queue)
        assert numbers(first) == held
        assert numbers(lease(store, site, 1, queue=queue)) == [held[-1] + 1]
        assert store.queues.release([one.id for one in first]) == 2
        assert numbers(lease(store, site, 9, queue=queue)) == held


def test_a_lease_is_settled_exactly_once(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    (one,) = lease(store, active(store), 1)
    done = outcome(one, 3.0)
    assert store.queues.settle([done, done], at=3.0) == SettleResult(applied=1, lost=1)
    assert store.queues.settle([done], at=3.0) == SettleResult(applied=0, lost=1)
    assert store.queues.settle([], at=3.0) == SettleResult(applied=0, lost=0)
    assert store.census.statistics().settle_lost == 2
    assert store.pages.get(SITE, one.key) == done.record


def test_an_old_lease_of_a_page_does_not_settle_its_new_one(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    (old,) = lease(store, site, 1)
    store.queues.release([old.id])
    (new,) = lease(store, site, 1)
    assert store.queues.settle([outcome(old, 3.0)], at=3.0) == SettleResult(applied=0, lost=1)
    assert store.queues.settle([outcome(new, 4.0)], at=4.0) == SettleResult(applied=1, lost=0)


def test_a_settled_page_waits_in_the_lane_of_its_bucket(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    site = active(store)
    for one, at in zip(lease(store, site, 2), (9.0, 4.0), strict=True):
        store.queues.settle([outcome(one, at, bucket=17)], at=at)
    assert recrawl_due(store, site) == [(17, 4.0)]
    assert lease(store, site, 9) == []
    assert numbers(lease(store, site, 9, queue="recrawl", horizon=[4.0] * LANES)) == [2]


def test_a_settle_that_says_never_crawled_is_misuse(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    (one,) = lease(store, active(store), 1)
    with pytest.raises(ValueError, match="a page that was settled cannot be never-crawled"):
        store.queues.settle([Outcome(one.id, "new", one.record)], at=3.0)


def test_a_recrawl_lease_needs_a_time_for_each_lane(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    for horizon in ((), [1.0] * 3):
        with pytest.raises(ValueError, match="horizon of 258 times"):
            store.queues.lease([Refill(site, recrawl=1, horizon=horizon)])


def test_the_most_overdue_page_of_all_buckets_is_leased_first(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    for one, at, bucket in zip(lease(store, site, 3), (10.0, 20.0, 30.0), (1, 2, 3), strict=True):
        store.queues.settle([outcome(one, at, bucket=bucket)], at=at)
    horizon = [0.0] * LANES
    horizon[1], horizon[2], horizon[3] = 11.0, 19.0, 35.0  # overdue by 1, not due, overdue by 5
    assert numbers(lease(store, site, 9, queue="recrawl", horizon=horizon)) == [3, 1]


def test_advanced_pages_go_before_the_buckets(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    crawl(store, site, 5.0)
    assert store.queues.advance(SITE, [link(3).key, link(3).key, link(9).key], due=6.0, at=6.0) == 1
    assert store.queues.advance(SITE, [], due=6.0, at=6.0) == 0
    assert recrawl_due(store, site) == [(5, 5.0), (ADVANCED, 6.0)]
    assert numbers(lease(store, site, 2, queue="recrawl")) == [3, 1]


def test_advance_moves_nothing_that_is_sooner_there_leased_immediate_or_not_crawled(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    assert store.queues.advance(SITE, [link(1).key], due=6.0, at=6.0) == 0
    site = active(store)
    crawl(store, site, 5.0)
    assert store.queues.advance(SITE, [link(1).key], due=6.0, at=6.0) == 1
    assert store.queues.advance(SITE, [link(1).key], due=7.0, at=6.0) == 0
    assert store.queues.advance(SITE, [link(1).key], due=5.5, at=6.0) == 1
    lease(store, site, 1, queue="recrawl")
    assert store.queues.advance(SITE, [link(1).key], due=1.0, at=6.0) == 0
    store.queues.immediate(links(2), at=6.0)
    assert store.queues.advance(SITE, [link(2).key], due=1.0, at=6.0) == 0


def reassigned(record: PageRecord) -> PageRecord | None:
    """Under the policy of spam, and last; but for pages 1 and 2."""
    if record.url in (f"{SITE}/1", f"{SITE}/2"):
        return None
    return msgspec.structs.replace(record, policy="distrust", trust=0.0, importance=0.0, source=b"12345678")


def test_pages_put_under_another_policy_wait_in_the_lane_of_their_importance_at_their_old_turn(
    store: FrontierStore,
) -> None:
    store.queues.discover([link(n, importance=5.0) for n in (1, 3, 2)] + [link(4), link(5)], at=1.0)
    store.queues.immediate(links(5), at=2.0)
    assert store.queues.reassign(SITE, [link(n).key for n in (1, 3, 3, 5, 9)], reassigned) == ReassignResult(2)
    assert store.queues.reassign(SITE, [], reassigned) == ReassignResult()
    assert store.queues.reassign("https://b.example", [link(1).key], reassigned) == ReassignResult()
    known = {record.url: (record.policy, record.source) for _, record in store.pages.records()}
    assert [known[f"{SITE}/{n}"][0] for n in (1, 2, 3, 4, 5)] == [
        "default",
        "default",
        "distrust",
        "default",
        "distrust",
    ]
    assert known[f"{SITE}/3"][1] == b"12345678"
    site = active(store)
    (dealt,) = store.queues.lease([Refill(site, immediate=9, never_crawled=9)])
    assert dealt is not None
    assert numbers(dealt.immediate) == [5]
    assert numbers(dealt.never_crawled) == [1, 2, 3, 4]


def test_what_is_leased_keeps_its_policy_and_what_was_crawled_keeps_all_else(store: FrontierStore) -> None:
    store.queues.discover(links(3, 4), at=1.0)
    site = active(store)
    [third, fourth] = lease(store, site, 2)
    store.queues.settle([outcome(third, 2.0, bucket=7)], at=2.0)
    before = store.pages.get(SITE, third.key)
    assert before is not None
    assert store.queues.reassign(SITE, [third.key, fourth.key], reassigned) == ReassignResult(1, (fourth.key,))
    assert store.pages.get(SITE, third.key) == reassigned(before)
    store.queues.settle([outcome(fourth, 3.0)], at=3.0)
    after = store.pages.get(SITE, fourth.key)
    assert after is not None
    assert after.policy == "default"
    assert recrawl_due(store, site) == [(5, 3.0), (7, 2.0)]


def test_an_inactive_site_is_due_with_its_advanced_page(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    crawl(store, site, 5.0)
    store.sites.park([ParkRequest(site, 99.0, SiteState())], at=5.0)
    assert store.queues.advance(SITE, [link(1).key], due=7.0, at=6.0) == 1
    assert store.sites.next_due() == 7.0


def test_dead_pages_take_a_tenth_of_a_lease_while_live_ones_are_due(store: FrontierStore) -> None:
    store.queues.discover(links(*range(40)), at=1.0)
    site = active(store)
    dead = [
        Outcome(one.id, "gone", msgspec.structs.replace(one.record, state="gone", due=3.0))
        for one in lease(store, site, 20)
    ]
    store.queues.settle(dead, at=2.0)
    crawl(store, site, 5.0)
    taken = lease(store, site, 20, queue="recrawl")
    assert [one.record.state for one in taken].count("gone") == 2
    assert lease(store, site, 1, queue="recrawl")[0].record.state == "crawled"
    lease(store, site, 40, queue="recrawl")
    assert [one.record.state for one in lease(store, site, 30, queue="recrawl")] == ["gone"] * 14


def test_a_failed_try_of_a_crawled_page_waits_among_the_retries(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    crawl(store, site, 5.0)
    (one,) = lease(store, site, 1, queue="recrawl")
    store.queues.settle([Outcome(one.id, "failed", msgspec.structs.replace(one.record, failures=1, due=99.0))], at=6.0)
    assert recrawl_due(store, site) == [(RETRY, 99.0)]


# ---------------------------------------------------------------------------------------------- immediate URLs


def test_an_immediate_url_goes_in_order_and_leaves_its_queue(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    crawl(store, site, 2.0, n=1)
    assert store.queues.immediate([*links(2, 7, 1), *links(2)], at=2.0) == 3
    assert store.queues.immediate([], at=2.0) == 0
    assert numbers(lease(store, site, 9)) == [3]
    assert lease(store, site, 9, queue="recrawl") == []
    assert recrawl_due(store, site) == []
    assert store.census.statistics().immediate == 3
    assert numbers(lease(store, site, 9, queue="immediate")) == [2, 7, 1]
    assert store.census.statistics().immediate == 0


def test_an_immediate_lease_returns_to_its_place_in_the_immediate_lane(store: FrontierStore) -> None:
    store.queues.immediate(links(1, 2), at=1.0)
    site = active(store)
    (first,) = lease(store, site, 1, queue="immediate")
    assert first.record.immediate is None
    store.queues.release([first.id])
    first, second = lease(store, site, 2, queue="immediate")
    assert numbers([first, second]) == [1, 2]
    store.queues.settle([outcome(first, 4.0)], at=4.0)
    store.sites.park([ParkRequest(site, 5.0, SiteState())], at=5.0)
    assert numbers(lease(store, active(store), 2, queue="immediate")) == [2]


def test_a_leased_url_that_becomes_immediate_is_in_its_lane_when_it_is_released(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    crawl(store, site, 2.0, n=1)
    one, two, three = lease(store, site, 1, queue="recrawl") + lease(store, site, 9)
    assert store.queues.immediate(links(2, 1), at=3.0) == 2
    assert store.queues.immediate(links(2, 1), at=3.0) == 0
    assert [each.site for each in store.sites.urgent("ant")] == [SITE]
    for reported in (True, False):
        (dealt,) = store.queues.lease([Refill(site, immediate=9)])
        assert dealt is not None
        assert (dealt.immediate, dealt.overtaken) == ([], reported)
    store.queues.release([one.id, two.id, three.id])
    assert numbers(lease(store, site, 9, queue="immediate")) == [2, 1]
    assert numbers(lease(store, site, 9)) == [3]


def test_the_settle_of_a_leased_url_that_became_immediate_ends_that(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    (one,) = lease(store, site, 1)
    store.queues.immediate(links(1), at=3.0)
    store.queues.settle([outcome(one, 4.0)], at=4.0)
    assert (store.census.statistics().immediate, recrawl_due(store, site)) == (0, [(5, 4.0)])


def test_an_immediate_url_that_was_settled_waits_no_more(store: FrontierStore) -> None:
    store.queues.immediate(links(1), at=1.0)
    site = active(store)
    (one,) = lease(store, site, 9, queue="immediate")
    store.queues.settle([outcome(one, 4.0)], at=4.0)
    assert lease(store, site, 9, queue="immediate") == []
    assert store.queues.immediate(links(1), at=6.0) == 1


def test_a_site_with_new_immediate_urls_is_due_before_all_others(store: FrontierStore) -> None:
    store.queues.discover([link(1, site="https://b.example")], at=1.0)
    store.queues.immediate(links(1), at=7.0)
    assert store.sites.next_due() == AT_ONCE
    assert [one.site for one in store.sites.activate(9, owner="ant", until=9.0, at=AT_ONCE)] == [SITE]


def test_the_owner_learns_which_of_its_sites_have_immediate_urls(store: FrontierStore) -> None:
    store.queues.discover([*links(1), link(1, site="https://b.example")], at=1.0)
    a, _ = store.sites.activate(9, owner="ant", until=9.0, at=1.0)
    assert store.sites.urgent("ant") == []
    store.queues.immediate(links(1, 2), at=2.0)
    assert [(one.site, one.token) for one in store.sites.urgent("ant")] == [(SITE, a.token)]
    assert store.sites.urgent("other") == []
    lease(store, a, 1, queue="immediate")
    assert len(store.sites.urgent("ant")) == 1
    lease(store, a, 1, queue="immediate")
    assert store.sites.urgent("ant") == []


def test_a_site_parked_with_immediate_urls_that_its_ant_has_seen_is_due_when_the_ant_says(store: FrontierStore) -> None:
    store.queues.immediate(links(1), at=1.0)
    site = active(store)
    (one,) = lease(store, site, 2, queue="immediate")
    store.queues.release([one.id])
    store.sites.park([ParkRequest(site, 40.0, SiteState())], at=5.0)
    assert store.sites.next_due() == 40.0
    again = active(store)
    store.queues.immediate(links(2), at=41.0)
    store.sites.park([ParkRequest(again, 90.0, SiteState())], at=42.0)
    assert store.sites.next_due() == AT_ONCE


# ----------------------------------------------------------------------------------------------------- sites


def test_sites_are_activated_by_due_time_and_only_once(store: FrontierStore) -> None:
    for at, name in ((3.0, "https://c.example"), (1.0, "https://b.example"), (2.0, "https://a.example")):
        store.queues.discover([link(1, site=name)], at=at)
    assert store.sites.next_due() == 1.0
    found = store.sites.activate(2, owner="ant", until=99.0, at=9.0)
    assert [one.site for one in found] == ["https://b.example", "https://a.example"]
    assert [one.record.owner for one in found] == ["ant", "ant"]
    assert store.sites.next_due() == 3.0
    assert [one.site for one in store.sites.activate(9, owner="ant", until=99.0, at=2.9)] == []
    assert [one.site for one in store.sites.activate(9, owner="ant", until=99.0, at=3.0)] == ["https://c.example"]
    assert store.sites.next_due() == 99.0
    assert store.census.statistics().active_sites == 3


def test_a_parked_site_comes_back_when_it_is_due_with_what_the_ant_remembered(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    state = SiteState(next_at=77.0, robots=b"User-agent: *", robots_at=3.0, sitemaps=(("https://a.example/s", 0.0),))
    assert store.sites.park([ParkRequest(site, 40.0, state)], at=2.0) == 1
    assert store.sites.park([ParkRequest(site, 10.0, SiteState())], at=2.0) == 0  # it is not active any more
    assert store.sites.park([], at=2.0) == 0
    assert store.sites.next_due() == 40.0
    (back,) = store.sites.activate(1, owner="ant", until=99.0, at=40.0)
    assert (back.record.due, back.record.state, back.record.first_seen) == (40.0, state, 1.0)


def test_a_new_url_wakes_a_parked_site_and_bounds_an_active_ones_rest(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    store.queues.discover(links(2), at=3.0)
    store.sites.park([ParkRequest(site, math.inf, SiteState())], at=4.0)
    assert store.sites.next_due() == 3.0
    site = active(store)
    store.queues.settle([outcome(one, 5.0) for one in lease(store, site, 9)], at=5.0)
    store.sites.park([ParkRequest(site, math.inf, SiteState())], at=6.0)
    assert store.sites.next_due() is None
    store.queues.discover(links(2, 3), at=8.0)
    assert store.sites.next_due() == 8.0


def test_a_site_parked_with_leases_out_has_its_urls_back_and_is_due_now(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    (one,) = lease(store, site, 2)
    store.sites.park([ParkRequest(site, math.inf, SiteState())], at=4.0)
    assert store.sites.next_due() == 4.0
    assert store.census.statistics().leased == 0
    assert store.queues.settle([outcome(one, 5.0)], at=5.0).lost == 1
    assert numbers(lease(store, active(store), 2)) == [1]


# ---------------------------------------------------------------------------------------------------- fencing


def check_lost(store: FrontierStore, old: SiteLease, leased: Sequence[Outcome]) -> None:
    """No step of a lease that was lost changes anything, and each says so."""
    before = list(store.pages.records()), store.sites.after("", 9), store.census.statistics().leased
    part = store.sites.part(old.site, 1)
    fenced = store.census.statistics().fenced
    assert store.queues.lease([refill(old, 9, queue="never-crawled")]) == [None]
    assert store.queues.settle(leased, at=70.0, learned=[(old, b"x")], parts=[(old, 1, b"x")]) == SettleResult(
        applied=0, lost=len(leased)
    )
    assert store.queues.release([one.lease for one in leased]) == 0
    assert store.sites.renew([old], until=999.0) == []
    assert store.sites.park([ParkRequest(old, 71.0, SiteState(next_at=71.0))], at=70.0) == 0
    assert store.pages.evict(old, [one.key for one in links(1, 2, 3)], at=70.0) is None
    assert store.queues.regrade(old, lambda keys: [9.0] * len(keys), epoch=5, n=9) is None
    assert (list(store.pages.records()), store.sites.after("", 9), store.census.statistics().leased) == before
    assert store.sites.part(old.site, 1) == part
    counts = store.census.statistics()
    assert (counts.settle_lost, counts.fenced - fenced) == (len(leased), 7)


def test_a_paused_owner_that_wakes_after_a_takeover_changes_nothing(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    crawl(store, first := active(store, until=50.0), 2.0, n=1)
    out = [outcome(one, 60.0) for one in lease(store, first, 1)]
    assert store.sites.activate(9, owner="other", until=120.0, at=49.9) == []
    assert store.sites.next_due() == 50.0
    (second,) = store.sites.activate(9, owner="other", until=120.0, at=50.0)
    assert second.token > first.token
    assert second.record.owner == "other"
    assert numbers(lease(store, second, 9)) == [2, 3]  # what the first had leased is back
    check_lost(store, first, out)


def test_a_site_lease_that_was_parked_is_lost_like_one_that_was_taken_over(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    first = active(store)
    out = [outcome(one, 60.0) for one in lease(store, first, 1)]
    store.sites.park([ParkRequest(first, 5.0, SiteState())], at=4.0)
    active(store, owner="other")
    check_lost(store, first, out)


def test_a_renewed_lease_is_not_taken_over(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    site = active(store, until=50.0)
    (renewed,) = store.sites.renew([site], until=80.0)
    assert (renewed.until, renewed.token) == (80.0, site.token)
    assert store.sites.renew([], until=99.0) == []
    assert store.sites.activate(9, owner="other", until=120.0, at=79.0) == []
    assert numbers(lease(store, site, 1)) == [1]
    assert [one.site for one in store.sites.activate(9, owner="other", until=120.0, at=80.0)] == [SITE]


def test_a_lease_that_ran_out_between_two_steps_holds_until_somebody_takes_the_site_over(store: FrontierStore) -> None:
    """What was fetched under it is kept: nobody else has fetched it."""
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store, until=50.0)
    one, two = lease(store, site, 2)
    assert store.queues.settle([outcome(one, 60.0)], at=60.0) == SettleResult(applied=1, lost=0)
    assert len(store.sites.renew([site], until=90.0)) == 1
    assert store.queues.settle([outcome(two, 61.0)], at=61.0) == SettleResult(applied=1, lost=0)
    assert numbers(lease(store, site, 9)) == [3]


def test_what_was_learned_of_a_site_is_settled_with_its_pages_and_goes_to_the_next_owner(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    first = active(store, until=50.0)
    assert first.record.learned == b""
    store.queues.settle([outcome(one, 2.0) for one in lease(store, first, 1)], at=2.0, learned=[(first, b"seen")])
    (second,) = store.sites.activate(9, owner="other", until=120.0, at=50.0)
    assert second.record.learned == b"seen"


def test_parts_of_what_was_learned_are_kept_under_their_numbers_until_they_are_empty(store: FrontierStore) -> None:
    other = "https://b.example"
    store.queues.discover([*links(1), link(1, site=other)], at=1.0)
    home, neighbour = sorted(store.sites.activate(9, owner="ant", until=50.0, at=1.0), key=lambda each: each.site)
    most = 2**63 - 1
    assert store.sites.part(SITE, 1) is None
    parts = [(home, 1, b"one"), (home, most, b"\x00\xff"), (neighbour, 1, b"theirs")]
    [leased] = lease(store, home, 1)
    store.queues.settle([outcome(leased, 2.0)], at=2.0, learned=[(home, b"seen")], parts=parts)
    assert [store.sites.part(SITE, number) for number in (0, 1, 2, most)] == [None, b"one", None, b"\x00\xff"]
    assert store.sites.part(other, 1) == b"theirs"
    store.queues.settle([], at=3.0, parts=[(home, 1, b"anew"), (home, 0, b"zero"), (home, most, b""), (home, 5, b"")])
    assert [store.sites.part(SITE, number) for number in (0, 1, 5, most)] == [b"zero", b"anew", None, None]
    assert store.sites.part("https://c.example", 1) is None
    store.queues.settle([], at=4.0, parts=[(home, 1, b""), (home, 1, b"last")])
    assert store.sites.part(SITE, 1) == b"last"
    record = store.sites.get(SITE)
    assert record is not None
    assert record.learned == b"seen", "parts do not travel with the site"


def test_a_forgotten_site_leaves_no_parts(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    home = active(store)
    store.queues.settle([], at=2.0, parts=[(home, number, b"part") for number in (0, 1, 300)])
    store.pages.forget(SITE, at=3.0)
    assert [store.sites.part(SITE, number) for number in (0, 1, 300)] == [None] * 3


# ----------------------------------------------------------------------------------- the collection, the ranking


def test_an_evicted_page_loses_its_copy_and_stays_known(store: FrontierStore) -> None:
    store.queues.discover([link(1, importance=0.5), *links(2, 3)], at=1.0)
    site = active(store)
    for one in lease(store, site, 2):
        record = msgspec.structs.replace(crawled(one.record, 3.0), copy=Copy(7, 0, 10), digest="d", etag="e")
        store.queues.settle([Outcome(one.id, "new", record)], at=3.0)
    (out,) = lease(store, site, 1, queue="recrawl")
    keys = [one.key for one in links(1, 2, 2, 3, 9)]
    assert store.pages.evict(site, keys, at=4.0) == 1  # one is leased, one was never crawled, one is not known
    assert store.pages.evict(site, keys, at=4.0) == 0
    assert store.pages.evict(site, [], at=4.0) == 0
    evicted = link(2 if numbers([out]) == [1] else 1)
    record = store.pages.get(SITE, evicted.key)  # type: ignore[assignment]
    assert (record.state, record.copy, record.digest, record.etag) == ("never-crawled", None, None, None)
    assert (record.url, record.first_seen) == (evicted.url, 1.0)
    assert store.pages.copies() == {7: 1}
    assert store.queues.discover([evicted], at=5.0) == DiscoverResult(new=0, known=1, repeated=(0,))
    assert int.from_bytes(evicted.key, "big") in numbers(lease(store, site, 9))


def test_a_ranking_moves_the_queued_urls_whose_class_changed_in_bounded_batches(store: FrontierStore) -> None:
    store.queues.discover([link(n, importance=0.5) for n in range(6)], at=1.0)
    site = active(store)
    lease(store, site, 1)
    grades = dict(zip((link(n).url for n in range(6)), (1.0, 8.0, 0.6, 0.5, 8.0, 0.0), strict=True))

    def importance(records: Sequence[PageRecord]) -> list[float]:
        return [grades[record.url] for record in records]

    assert store.queues.regrade(site, importance, epoch=3, n=2) == RegradeResult(seen=2, moved=1, done=False)
    assert site.record.epoch == 0
    store.sites.park([ParkRequest(site, 5.0, SiteState())], at=4.0)
    site = active(store)  # how far it came is kept with the site; the URL that was leased is back behind it
    assert store.queues.regrade(site, importance, epoch=3, n=9) == RegradeResult(seen=3, moved=2, done=True)
    assert store.queues.regrade(site, importance, epoch=3, n=9) == RegradeResult(seen=0, moved=0, done=True)
    found = store.sites.get(SITE)
    assert found is not None
    assert found.epoch == 3
    assert numbers(lease(store, site, 9)) == [1, 4, 0, 2, 3, 5]  # two of class 17, then by first come, 5 the last


def test_a_newer_ranking_begins_anew_where_the_last_was_not_brought_in_whole(store: FrontierStore) -> None:
    store.queues.discover([link(n, importance=0.5) for n in range(4)], at=1.0)
    site = active(store)
    store.queues.regrade(site, lambda keys: [0.5] * len(keys), epoch=1, n=3)
    assert store.queues.regrade(site, lambda keys: [8.0] * len(keys), epoch=2, n=9) == RegradeResult(
        seen=4, moved=4, done=True
    )


def test_single_urls_are_weighed_anew_between_two_rankings(store: FrontierStore) -> None:
    store.queues.discover([link(n, importance=0.5) for n in range(5)], at=1.0)
    site = active(store)
    (one,) = lease(store, site, 1)
    store.queues.settle([Outcome(one.id, "new", crawled(one.record, 3.0))], at=3.0)
    (out,) = lease(store, site, 1)
    first, second = (int.from_bytes(each.key, "big") for each in (one, out))
    rest = [n for n in range(5) if n not in (first, second)]
    keys = [link(n).key for n in (first, second, rest[-1], 9)]  # crawled, leased, waiting, unknown
    assert store.queues.reweigh(site, keys, lambda records: [8.0] * len(records)) == 1
    assert store.queues.reweigh(site, keys, lambda records: [9.0] * len(records)) == 0  # of the same class
    assert store.queues.reweigh(site, [], lambda records: []) == 0
    found = store.sites.get(SITE)
    assert found is not None
    assert found.epoch == 0
    assert numbers(lease(store, site, 9)) == [rest[-1], *rest[:-1]]
    store.sites.park([ParkRequest(site, 5.0, SiteState())], at=4.0)
    assert store.queues.reweigh(site, keys, lambda records: [1.0] * len(records)) is None


def test_a_waiting_page_has_the_scores_of_its_link_or_of_one_that_says_more(store: FrontierStore) -> None:
    store.queues.discover([msgspec.structs.replace(link(1), scores=(0.25, 3.0)), link(2)], at=1.0)
    keys = [link(number).key for number in (1, 2)]
    assert [record.scores for record in store.pages.get_many(SITE, keys) if record is not None] == [(0.25, 3.0), ()]
    store.queues.reassign(
        SITE, keys[1:], lambda record: msgspec.structs.replace(record, scores=(0.5, 1.0), importance=64.0)
    )
    leased = lease(store, active(store), 2)
    assert [(one.key, one.record.scores) for one in leased] == [(keys[1], (0.5, 1.0)), (keys[0], (0.25, 3.0))]


def test_a_page_carries_its_scores_its_sketch_and_whose_repository_has_its_copy(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    one, two = lease(store, active(store), 2)
    record = msgspec.structs.replace(
        crawled(one.record, 3.0), copy=Copy(7, 0, 10, repository=3), scores=(0.5, 2.0), sketch=b"\x00\xff"
    )
    other = msgspec.structs.replace(crawled(two.record, 3.0), copy=Copy(7, 0, 10))
    store.queues.settle([Outcome(one.id, "new", record), Outcome(two.id, "new", other)], at=3.0)
    assert store.pages.get(SITE, one.key) == record
    assert store.pages.copies() == {7: 1}
    assert store.pages.copies(repository=3) == {7: 1}


# ------------------------------------------------------------------------------------------------ the change log


def entries(store: FrontierStore, cursor: str | None = None) -> list[tuple[int, str, str]]:
    """Sequence, page and verdict of each entry after a cursor."""
    found = store.changes.after(cursor, 99)
    return [(entry.sequence, entry.url.removeprefix(f"{SITE}/"), entry.verdict) for _, entry in found]


def fetched(store: FrontierStore, site: SiteLease, at: float, kind: OutcomeKind, **changes: object) -> None:
    """Fetch one page, new or due, with this outcome."""
    one = (lease(store, site, 1) or lease(store, site, 1, queue="recrawl"))[0]
    record = msgspec.structs.replace(crawled(one.record, at), **{"digest": f"{kind} {at}", **changes})
    said = Outcome(one.id, kind, record, title="T", resemblance=0.5, target="http://x.example/", diff="+x")
    store.queues.settle([said], at=at)


def test_the_log_records_what_came_changed_went_and_returned(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    fetched(store, site, 2.0, "new")
    fetched(store, site, 3.0, "same", digest="new 2.0")
    fetched(store, site, 4.0, "changed")
    fetched(store, site, 5.0, "minor")
    fetched(store, site, 6.0, "failed", digest="minor 5.0", failures=1)
    for state in ("gone", "redirected", "refused"):
        fetched(store, site, 7.0, state, state=state, due=7.0)  # the first ends it, once
    fetched(store, site, 8.0, "changed")
    fetched(store, site, 9.0, "redirected", state="redirected", due=9.0)
    verdicts = [verdict for _, _, verdict in entries(store)]
    assert verdicts == ["new", "changed", "minor", "gone", "returned", "redirected"]
    said = {entry.verdict: entry for _, entry in store.changes.after(None, 9)}
    assert (said["changed"].digest, said["changed"].before) == ("changed 4.0", "new 2.0")
    assert (said["changed"].title, said["changed"].resemblance, said["changed"].diff) == ("T", 0.5, "+x")
    assert (said["changed"].at, said["changed"].site, said["changed"].key) == (4.0, SITE, link(1).key)
    assert (said["gone"].digest, said["gone"].title) == (None, None)
    assert said["redirected"].target == "http://x.example/"


def test_a_duplicate_is_reported_with_its_representative_and_is_held_no_longer(store: FrontierStore) -> None:
    """Also one that was never held; once, until it repeats another page or none."""
    store.queues.discover(links(1), at=1.0)
    site, one, two = active(store), link(8).url, link(9).url
    fetched(store, site, 2.0, "new", duplicate_of=one)
    fetched(store, site, 3.0, "same", digest="new 2.0")
    fetched(store, site, 4.0, "changed", duplicate_of=two)
    fetched(store, site, 5.0, "changed", duplicate_of=None)
    fetched(store, site, 6.0, "changed", duplicate_of=one)
    fetched(store, site, 7.0, "gone", state="gone", due=9.0)
    found = [(entry.at, entry.verdict, entry.target) for _, entry in store.changes.after(None, 99)]
    elsewhere = "http://x.example/"
    assert found == [
        (2.0, "duplicate", one),
        (4.0, "duplicate", two),
        (5.0, "returned", elsewhere),
        (6.0, "duplicate", one),
    ]
    assert all(
        entry.digest is entry.title is None
        for _, entry in store.changes.after(None, 99)
        if entry.verdict == "duplicate"
    )
    record = store.pages.get(SITE, link(1).key)
    assert record is not None
    assert record.duplicate_of == one


def test_a_duplicate_that_is_forgotten_or_evicted_was_not_held(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    site = active(store)
    fetched(store, site, 2.0, "new", duplicate_of="http://x.example/")
    fetched(store, site, 2.0, "new", duplicate_of="http://x.example/")
    assert store.pages.evict(site, [link(1).key], at=3.0) == 1
    assert store.pages.forget(SITE, link(2).key, at=3.0) == 1
    assert [verdict for _, _, verdict in entries(store)] == ["duplicate", "duplicate"]
    record = store.pages.get(SITE, link(1).key)
    assert record is not None
    assert record.duplicate_of is None


def test_a_page_that_was_never_held_is_no_news_when_it_goes(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    site = active(store)
    fetched(store, site, 2.0, "gone", state="gone", due=99.0)
    store.pages.forget(SITE, link(1).key, at=3.0)
    store.pages.forget(SITE, link(2).key, at=3.0)
    assert entries(store) == []


def test_what_is_forgotten_or_evicted_is_reported_once_and_its_entries_say_no_more_of_it(store: FrontierStore) -> None:
    store.queues.discover([*links(1, 2, 3), link(4, site="https://b.example")], at=1.0)
    site, other = active(store), store.sites.activate(9, owner="ant", until=1e9, at=1e8)
    assert other == []
    crawl(store, site, 2.0)
    assert store.pages.evict(site, [link(3).key], at=4.0) == 1
    store.pages.forget(SITE, link(1).key, at=5.0)
    store.pages.forget(SITE, link(1).key, at=5.0)
    store.pages.forget(SITE, at=6.0)
    store.pages.forget(SITE, at=6.0)
    assert [(url, verdict) for _, url, verdict in entries(store)] == [
        ("1", "new"), ("2", "new"), ("3", "new"), ("3", "evicted"), ("1", "forgotten"), ("2", "forgotten"),
    ]  # fmt: skip
    assert all(entry.title is entry.diff is entry.digest is None for _, entry in store.changes.after(None, 9))


def test_a_cursor_goes_on_where_it_stands(store: FrontierStore) -> None:
    begin = store.changes.end()
    store.queues.discover(links(1, 2, 3), at=1.0)
    site = active(store)
    crawl(store, site, 2.0)
    assert store.changes.after(begin, 99) == store.changes.after(None, 99)
    first = store.changes.after(None, 2)
    assert [entry.sequence for _, entry in first] == [1, 2]
    assert entries(store, first[-1][0]) == [(3, "3", "new")]
    assert entries(store, store.changes.end()) == []
    store.pages.forget(SITE, link(2).key, at=3.0)
    assert entries(store, first[-1][0]) == [(3, "3", "new"), (4, "2", "forgotten")]
    assert entries(store, store.changes.since(2.0)) == entries(store)
    assert entries(store, store.changes.since(2.5)) == [(4, "2", "forgotten")]
    assert store.changes.since(9.0) == store.changes.end()


def test_the_log_is_bounded_and_says_when_a_cursor_is_too_old(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3, 4), at=1.0)
    site = active(store)
    begin = store.changes.end()
    for at in (2.0, 3.0, 4.0, 5.0):
        crawl(store, site, at, n=1)
    assert store.changes.trim(before=2.0, most=4) == 0
    assert store.changes.trim(before=3.0, most=4) == 1
    assert store.changes.trim(before=3.0, most=2) == 1
    assert store.changes.trim(before=3.0, most=2) == 0
    assert [sequence for sequence, _, _ in entries(store)] == [3, 4]
    for lost in (lambda: store.changes.after(begin, 9), lambda: store.changes.since(2.5)):
        with pytest.raises(CursorLost, match=r"no longer reaches back|does not reach back") as error:
            lost()
        assert error.value.exit_status == 2
        assert "webfountain texts" in str(error.value)
    kept = store.changes.end()
    assert store.changes.trim(before=9.0, most=9) == 2
    assert entries(store, kept) == []


@pytest.mark.parametrize("cursor", ["", "x", "00000000-1", "-1", "deadbeef-", "deadbeef-x"])
def test_a_text_that_is_no_cursor_of_the_log_is_an_input_error(store: FrontierStore, cursor: str) -> None:
    with pytest.raises(InputError, match="is not a cursor of this store's change log"):
        store.changes.after(cursor, 9)


def test_a_cursor_of_entries_that_are_yet_to_come_is_of_another_log(store: FrontierStore) -> None:
    name, _, number = store.changes.end().rpartition("-")
    with pytest.raises(InputError, match="is not a cursor of this"):
        store.changes.after(f"{name}-{int(number) + 1}", 9)


def test_published_values_are_kept_as_they_were_put(store: FrontierStore) -> None:
    assert store.board.value("plan") is None
    store.board.put_value("plan", b"one")
    store.board.put_value("epoch", b"7")
    store.board.put_value("plan", b"two")
    assert (store.board.value("plan"), store.board.value("epoch")) == (b"two", b"7")


def test_a_value_is_settled_once_and_all_get_that_one(store: FrontierStore) -> None:
    assert [store.board.settle_value("key", value) for value in (b"one", b"two")] == [b"one"] * 2
    assert store.board.value("key") == b"one"


def test_the_census_counts_checks_changes_and_births_by_period(store: FrontierStore) -> None:
    store.queues.discover([link(1, source=""), link(2), link(3)], at=1.0)
    site = active(store)
    first = lease(store, site, 3)
    done = [msgspec.structs.replace(outcome(one, 12.0), seconds=0.5, links_new=4) for one in first[:2]]
    refused = Outcome(first[2].id, "refused", msgspec.structs.replace(first[2].record, state="refused", due=9.0))
    store.queues.settle([*done, refused], at=12.0)
    one, two = lease(store, site, 2, queue="recrawl", horizon=[20.0] * RETRY + [0.0])
    store.queues.settle([outcome(one, 25.0, kind="changed", bucket=4), outcome(two, 26.0, kind="same")], at=26.0)
    assert store.census.rows(since=0) == [
        CensusRow(0, None, births=1),
        CensusRow(1, None, fetches=2, seconds=1.0, links=8),
        CensusRow(1, 5, births=2),
        CensusRow(2, 5, fetches=2, changes=1, observed_time=27.0),
    ]
    assert store.census.rows(since=2) == [CensusRow(2, 5, fetches=2, changes=1, observed_time=27.0)]
    assert store.census.buckets() == {4: BucketCensus(1, 25.0), 5: BucketCensus(1, 26.0)}


def test_the_copies_of_each_warc_file_are_counted_and_follow_a_move(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    for one in lease(store, active(store), 2):
        record = msgspec.structs.replace(crawled(one.record, 3.0), copy=Copy(7, one.id.number, 10))
        store.queues.settle([Outcome(one.id, "new", record)], at=3.0)
    assert store.pages.copies() == {7: 2}
    page = store.pages.get(SITE, link(1).key)
    assert page is not None
    assert page.copy is not None
    move = Move(SITE, link(1).key, page.copy, Copy(8, 0, 10))
    assert store.pages.relocate([move, move]) == 1
    assert store.pages.copies() == {7: 1, 8: 1}


def test_a_copy_that_moved_during_a_fetch_that_left_it_alone_stays_moved(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=1.0)
    site = active(store)
    (one,) = lease(store, site, 1)
    old, new = Copy(1, 0, 5), Copy(2, 0, 5)
    store.queues.settle([Outcome(one.id, "new", msgspec.structs.replace(crawled(one.record, 3.0), copy=old))], at=3.0)
    (one,) = lease(store, site, 1, queue="recrawl")
    store.pages.relocate([Move(SITE, one.key, old, new)])
    store.queues.settle([outcome(one, 9.0, kind="not_modified")], at=9.0)
    record = store.pages.get(SITE, one.key)
    assert record is not None
    assert record.copy == new
    assert store.pages.copies() == {2: 1}


def test_a_forgotten_page_is_gone_and_barred(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2), at=1.0)
    site = active(store)
    crawl(store, site, 3.0)
    (one, _) = lease(store, site, 2, queue="recrawl")
    assert store.pages.forget(SITE, one.key, at=4.0) == 1
    assert store.pages.forget(SITE, one.key, at=4.0) == 0
    assert store.queues.settle([outcome(one, 5.0, kind="same")], at=5.0).lost == 1
    assert store.queues.discover(links(1), at=6.0) == DiscoverResult(new=0, known=1, repeated=(0,))
    assert store.queues.immediate(links(1), at=6.0) == 0
    assert store.pages.get(SITE, one.key) is None
    assert [record.url for _, record in store.pages.records()] == [f"{SITE}/2"]


def test_a_forgotten_site_is_gone_and_barred_with_all_its_pages(store: FrontierStore) -> None:
    store.queues.discover([*links(1, 2, 3), link(1, site="https://b.example")], at=1.0)
    site = active(store)
    crawl(store, site, 3.0, n=1)
    store.queues.immediate(links(2), at=3.0)
    assert store.pages.forget(SITE, at=4.0) == 3
    assert store.pages.forget("https://never-seen.example", at=4.0) == 0
    assert store.sites.get(SITE) is None
    assert [one.site for one in store.sites.after("", 9)] == ["https://b.example"]
    assert store.queues.discover([*links(9), link(1, site="https://never-seen.example")], at=6.0).new == 0
    assert lease(store, site, 9, queue="immediate") == []
    assert lease(store, site, 9) == []
    assert store.sites.renew([site], until=99.0) == []
    assert store.census.statistics().immediate == 0
    assert store.census.statistics().pages["crawled"] == 0
    assert store.census.buckets() == {}
    assert store.census.statistics().sites == 1


def test_pages_are_listed_by_site_and_state(store: FrontierStore) -> None:
    store.queues.discover([*links(1, 2), link(1, site="https://b.example")], at=1.0)
    crawl(store, active(store), 3.0, n=1)
    assert {(site, record.url) for site, record in store.pages.records(site=SITE)} == {
        (SITE, f"{SITE}/1"),
        (SITE, f"{SITE}/2"),
    }
    assert [record.url for _, record in store.pages.records(state="crawled")] == [f"{SITE}/1"]
    assert [record.url for _, record in store.pages.records(site=SITE, state="never-crawled")] == [f"{SITE}/2"]
    assert list(store.pages.records(site="https://unknown.example")) == []


def test_a_long_listing_gives_every_page_once(store: FrontierStore) -> None:
    store.queues.discover(links(*range(1200)), at=1.0)
    crawl(store, active(store), 3.0, n=700)
    assert sorted(record.url for _, record in store.pages.records()) == sorted(f"{SITE}/{n}" for n in range(1200))


def test_sites_are_paged_by_name(store: FrontierStore) -> None:
    names = [f"https://{letter}.example" for letter in "abcab"]
    store.queues.discover([link(number, site=name) for number, name in enumerate(names)], at=1.0)
    first = store.sites.after("", 2)
    assert [(one.site, one.pages[0]) for one in first] == [("https://a.example", 2), ("https://b.example", 2)]
    assert [one.site for one in store.sites.after(first[-1].site, 2)] == ["https://c.example"]


def test_statistics_count_every_url_in_its_state(store: FrontierStore) -> None:
    store.queues.discover(links(1, 2, 3), at=1.0)
    crawl(store, site := active(store), 3.0, n=1)
    lease(store, site, 1)
    counts = store.census.statistics()
    assert (counts.pages["never-crawled"], counts.pages["crawled"], counts.sites, counts.leased) == (2, 1, 1, 1)


def test_what_is_unknown_has_no_record(store: FrontierStore) -> None:
    assert store.pages.get(SITE, link(1).key) is None
    assert store.sites.get(SITE) is None
    assert store.queues.advance(SITE, [link(1).key], due=1.0, at=1.0) == 0
    assert store.pages.relocate([Move(SITE, link(1).key, Copy(1, 0, 1), Copy(2, 0, 1))]) == 0
    assert store.pages.relocate([]) == 0
    assert store.sites.activate(9, owner="ant", until=9.0, at=9.0) == []


@pytest.mark.parametrize("url", ["", "memory", "rocksdb:", "rocksdb://", "mysql://localhost", "sqlite:///x", "/a/b"])
def test_a_url_of_no_store_is_an_input_error(url: str) -> None:
    with pytest.raises(InputError, match="use memory:, rocksdb:///absolute"):
        open_store(url, collection="tests", period_s=1.0)


def test_a_new_store_needs_a_collection_and_a_period(tmp_path: Path) -> None:
    for url in ("memory:", f"rocksdb://{tmp_path}/new"):
        with pytest.raises(InputError):
            open_store(url, collection=None, period_s=None)


def test_pages_of_a_site_come_in_parts_each_page_once(store: FrontierStore) -> None:
    store.queues.discover([*links(*range(25)), *links(1, 2, site="http://b.example")], at=0.0)
    site = active(store)
    crawl(store, site, 5.0, n=10)
    lease(store, site, 3)
    found: list[str] = []
    sizes: list[int] = []
    cursor = b""
    while cursor or not sizes:
        part, cursor = store.pages.part_of(SITE, cursor, 7)
        sizes.append(len(part))
        found += [record.url for record in part]
    assert max(sizes) <= 7
    assert sorted(found) == sorted(f"{SITE}/{n}" for n in range(25))
    assert store.pages.part_of("http://unknown.test", b"", 7) == ([], b"")


def test_the_first_never_crawled_urls_of_a_site_are_read_in_their_order(store: FrontierStore) -> None:
    """Immediate ones first, then by class of importance, then by arrival; leased ones may be missing."""
    weights = {1: 1.0, 2: 100.0, 3: 1.0, 4: 0.01}
    store.queues.discover([msgspec.structs.replace(link(n), importance=many) for n, many in weights.items()], at=0.0)
    site = active(store)
    crawl(store, site, 5.0, n=1)
    assert [record.url for record in store.pages.waiting(SITE, 9)] == [f"{SITE}/{n}" for n in (1, 3, 4)]
    store.queues.immediate([link(2), link(4), link(5)], at=6.0)
    assert [record.url for record in store.pages.waiting(SITE, 9)] == [f"{SITE}/{n}" for n in (4, 5, 1, 3)]
    assert [record.url for record in store.pages.waiting(SITE, 3)] == [f"{SITE}/{n}" for n in (4, 5, 1)]
    lease(store, site, 1)
    left = [record.url for record in store.pages.waiting(SITE, 9) if record.url != f"{SITE}/1"]
    assert left == [f"{SITE}/{n}" for n in (4, 5, 3)]
    assert store.pages.waiting("http://unknown.test", 3) == []


def test_records_are_listed_with_their_keys(store: FrontierStore) -> None:
    url = f"{SITE}/form"
    both = [msgspec.structs.replace(link(n), url=url, request=b"x") for n in (1, 2)]
    store.queues.discover([*both, link(3)], at=0.0)
    found = {key: (site, record.url) for site, key, record in store.pages.keyed(site=SITE, state="never-crawled")}
    assert found == {link(1).key: (SITE, url), link(2).key: (SITE, url), link(3).key: (SITE, link(3).url)}
    assert list(store.pages.keyed(state="failed")) == []
    assert list(store.pages.keyed(site="http://unknown.test")) == []


def test_sites_are_listed_in_each_order_from_part_to_part(store: FrontierStore) -> None:
    for number in range(12):
        name = f"https://s{number % 7}-{number}.example"
        store.queues.discover([link(n, site=name) for n in range(1 + number * 5 % 8)], at=1.0 + number % 3)
    leases = store.sites.activate(5, owner="ant", until=100.0, at=2.0)
    for at, site in enumerate(leases, 3):
        crawl(store, site, float(at), n=at % 4)
    store.sites.park([ParkRequest(leases[0], 50.0, SiteState())], at=9.0)
    records = {record.site: record for record in store.sites.after("", 100)}
    assert len(records) == 12
    assert len({record.changed for record in records.values()}) > 3
    for order in SITE_ORDERS:
        expected = sorted(
            (
                ranks_of(
                    pages=sum(each.pages), failed=each.pages[-1], due=each.due, changed=each.changed,
                    is_active=each.owner is not None,
                )[order],
                each.site,
            )
            for each in records.values()
        )  # fmt: skip
        for size in (1, 5, 100):
            found: list[tuple[str, SiteRecord]] = []
            while part := store.sites.ranked(order, found[-1][0] if found else "", size):
                assert len(part) <= size
                found += part
            assert [record.site for _, record in found] == [site for _, site in expected], order
            assert all(record == records[record.site] for _, record in found)
    for cursor in ("x", "00", "zz" * 8 + "a", "0" * 15):
        with pytest.raises(InputError, match="is not a cursor"):
            store.sites.ranked("pages", cursor, 1)


def test_a_forgotten_site_leaves_every_order(store: FrontierStore) -> None:
    store.queues.discover([*links(1, 2), *links(3, site="https://b.example")], at=1.0)
    crawl(store, active(store), 5.0)
    [(_, first)] = store.sites.ranked("changed", "", 1)
    assert (first.site, first.changed) == (SITE, 5.0)
    store.pages.forget(SITE, at=6.0)
    for order in SITE_ORDERS:
        assert [record.site for _, record in store.sites.ranked(order, "", 9)] == ["https://b.example"]
