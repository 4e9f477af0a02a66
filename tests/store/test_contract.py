"""What every store does: the contract of `webfountain.store.contract`, over all backends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.stores import ALWAYS, BACKENDS, SITE, crawled, link, links, make_store, outcome
from webfountain.errors import InputError
from webfountain.records import CensusRow, Copy, Discovered, Move, Outcome, Settled, SiteState
from webfountain.store import open_store
from webfountain.store.contract import ADVANCED, LANES, RETRY, BucketCensus, Parked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.records import Lease, Queue
    from webfountain.store.contract import FrontierStore


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrontierStore]:
    opened = make_store(request.param, tmp_path)
    yield opened
    opened.check_valid()  # type: ignore[attr-defined]
    opened.close()


def lease(
    store: FrontierStore, n: int, *, queue: Queue = "never-crawled", horizon: Sequence[float] = ALWAYS, site: str = SITE
) -> list[Lease]:
    return store.lease(site, n, queue=queue, owner="ant", until=50.0, at=2.0, horizon=horizon)


def numbers(leases: Sequence[Lease]) -> list[int]:
    return [int.from_bytes(one.key, "big") for one in leases]


def crawl(store: FrontierStore, at: float, *, n: int = 100, bucket: int = 5) -> None:
    """Fetch what waits in the never-crawled queue well."""
    store.settle([outcome(one, at, bucket=bucket) for one in lease(store, n)], at=at)


def test_a_link_becomes_known_once(store: FrontierStore) -> None:
    assert store.discover([*links(1, 2), *links(1)], at=1.0) == Discovered(new=2, known=1)
    assert store.discover(links(2, 3), at=2.0) == Discovered(new=1, known=1)
    assert store.known(SITE, [link(n).key for n in (1, 3, 4)]) == [True, True, False]
    assert store.known("https://other.example", [link(1).key]) == [False]


def test_the_greatest_importance_is_leased_first_then_the_first_come(store: FrontierStore) -> None:
    for number, importance in ((1, 0.5), (2, -1.0), (3, 0.5), (4, 7.0), (5, -0.0), (6, 0.0)):
        store.discover([link(number, importance=importance)], at=1.0)
    assert numbers(lease(store, 9)) == [4, 1, 3, 5, 6, 2]


def test_the_same_key_on_two_sites_is_two_pages(store: FrontierStore) -> None:
    store.discover([link(1), link(1, site="https://b.example")], at=1.0)
    assert [one.record.url for one in lease(store, 5, site="https://b.example")] == ["https://b.example/1"]


def test_a_new_page_carries_what_its_link_said(store: FrontierStore) -> None:
    one = msgspec.structs.replace(link(1), url="http://elsewhere.example/x", depth=3, policy="favor", request=b"\x80")
    store.discover([one], at=7.5)
    record = store.page(SITE, one.key)
    assert record is not None
    assert (record.url, record.depth, record.policy, record.request) == (one.url, 3, "favor", b"\x80")
    assert (record.state, record.first_seen, record.last_crawled) == ("never-crawled", 7.5, None)


def test_no_url_is_leased_twice(store: FrontierStore) -> None:
    store.discover(links(1, 2, 3), at=1.0)
    assert numbers(lease(store, 2)) == [1, 2]
    assert numbers(lease(store, 2)) == [3]
    assert lease(store, 2) == []


def test_a_released_lease_returns_to_its_place(store: FrontierStore) -> None:
    store.discover(links(1, 2, 3), at=1.0)
    first, _ = lease(store, 2)
    store.release([first.token, first.token, 999])
    assert numbers(lease(store, 9)) == [1, 3]


def test_a_lease_of_an_active_site_returns_to_its_place_in_either_queue(store: FrontierStore) -> None:
    store.discover(links(*range(6)), at=1.0)
    store.activate(1, owner="ant", until=99.0, at=1.0)
    crawl(store, 5.0, n=3)
    for queue, held in (("never-crawled", [3, 4]), ("recrawl", [0, 1])):
        first = lease(store, 2, queue=queue)  # type: ignore[arg-type]
        assert numbers(first) == held
        assert numbers(lease(store, 1, queue=queue)) == [held[-1] + 1]  # type: ignore[arg-type]
        store.release([one.token for one in first])
        assert numbers(lease(store, 9, queue=queue)) == held  # type: ignore[arg-type]


def test_an_immediate_url_that_was_settled_waits_no_more(store: FrontierStore) -> None:
    store.immediate(links(1), at=1.0)
    (one,) = store.lease_immediate(9, owner="ant", until=50.0, at=3.0)
    store.settle([outcome(one, 4.0)], at=4.0)
    assert store.lease_immediate(9, owner="ant", until=50.0, at=5.0) == []
    assert store.immediate(links(1), at=6.0) == 1


def test_a_lease_that_ran_out_returns_and_its_settle_is_counted_as_lost(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    (one,) = lease(store, 1)
    assert store.reclaim(at=49.9) == 0
    assert store.reclaim(at=50.0) == 1
    assert store.settle([outcome(one, 51.0)], at=51.0) == Settled(applied=0, lost=1)
    assert store.statistics().settle_lost == 1
    assert numbers(lease(store, 1)) == [1]


def test_a_late_settle_counts_while_nobody_reclaimed_the_lease(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    (one,) = lease(store, 1)
    assert store.settle([outcome(one, 90.0)], at=90.0) == Settled(applied=1, lost=0)


def test_a_lease_is_settled_exactly_once(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    (one,) = lease(store, 1)
    done = outcome(one, 3.0)
    assert store.settle([done, done], at=3.0) == Settled(applied=1, lost=1)
    assert store.settle([done], at=3.0) == Settled(applied=0, lost=1)
    assert store.page(SITE, one.key) == done.record


def test_a_settled_page_waits_in_the_lane_of_its_bucket(store: FrontierStore) -> None:
    store.discover(links(1, 2), at=1.0)
    for one, at in zip(lease(store, 2), (9.0, 4.0), strict=True):
        store.settle([outcome(one, at, bucket=17)], at=at)
    assert store.recrawl_due(SITE) == [(17, 4.0)]
    assert lease(store, 9) == []
    assert numbers(lease(store, 9, queue="recrawl", horizon=[4.0] * LANES)) == [2]


def test_a_settle_that_says_never_crawled_is_misuse(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    (one,) = lease(store, 1)
    with pytest.raises(ValueError, match="must say what became"):
        store.settle([Outcome(one.token, "new", one.record)], at=3.0)


def test_a_recrawl_lease_needs_a_time_for_each_lane(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    for horizon in (None, [1.0] * 3):
        with pytest.raises(ValueError, match="horizon"):
            store.lease(SITE, 1, queue="recrawl", owner="ant", until=9.0, at=2.0, horizon=horizon)


def test_the_most_overdue_page_of_all_buckets_is_leased_first(store: FrontierStore) -> None:
    store.discover(links(1, 2, 3), at=1.0)
    for one, at, bucket in zip(lease(store, 3), (10.0, 20.0, 30.0), (1, 2, 3), strict=True):
        store.settle([outcome(one, at, bucket=bucket)], at=at)
    horizon = [0.0] * LANES
    horizon[1], horizon[2], horizon[3] = 11.0, 19.0, 35.0  # overdue by 1, not due, overdue by 5
    assert numbers(lease(store, 9, queue="recrawl", horizon=horizon)) == [3, 1]


def test_advanced_pages_go_before_the_buckets(store: FrontierStore) -> None:
    store.discover(links(1, 2, 3), at=1.0)
    crawl(store, 5.0)
    assert store.advance(SITE, [link(3).key, link(3).key, link(9).key], due=6.0, at=6.0) == 1
    assert store.recrawl_due(SITE) == [(5, 5.0), (ADVANCED, 6.0)]
    assert numbers(lease(store, 2, queue="recrawl")) == [3, 1]


def test_advance_moves_nothing_that_is_sooner_there_leased_or_not_crawled(store: FrontierStore) -> None:
    store.discover(links(1, 2), at=1.0)
    assert store.advance(SITE, [link(1).key], due=6.0, at=6.0) == 0
    crawl(store, 5.0)
    assert store.advance(SITE, [link(1).key], due=6.0, at=6.0) == 1
    assert store.advance(SITE, [link(1).key], due=7.0, at=6.0) == 0
    assert store.advance(SITE, [link(1).key], due=5.5, at=6.0) == 1
    lease(store, 1, queue="recrawl")
    assert store.advance(SITE, [link(1).key], due=1.0, at=6.0) == 0


def test_dead_pages_take_a_tenth_of_a_lease_while_live_ones_are_due(store: FrontierStore) -> None:
    store.discover(links(*range(40)), at=1.0)
    dead = [
        Outcome(one.token, "gone", msgspec.structs.replace(one.record, state="gone", due=3.0))
        for one in lease(store, 20)
    ]
    store.settle(dead, at=2.0)
    crawl(store, 5.0)
    taken = lease(store, 20, queue="recrawl")
    assert [one.record.state for one in taken].count("gone") == 2
    assert lease(store, 1, queue="recrawl")[0].record.state == "crawled"
    lease(store, 40, queue="recrawl")
    assert [one.record.state for one in lease(store, 30, queue="recrawl")] == ["gone"] * 14


def test_a_failed_try_of_a_crawled_page_waits_among_the_retries(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    crawl(store, 5.0)
    (one,) = lease(store, 1, queue="recrawl")
    store.settle([Outcome(one.token, "failed", msgspec.structs.replace(one.record, failures=1, due=99.0))], at=6.0)
    assert store.recrawl_due(SITE) == [(RETRY, 99.0)]


def test_an_immediate_url_goes_in_order_and_leaves_its_queue(store: FrontierStore) -> None:
    store.discover(links(1, 2), at=1.0)
    assert store.immediate([*links(2, 7), *links(2)], at=2.0) == 2
    assert numbers(lease(store, 9)) == [1]
    assert store.immediate(links(1), at=2.0) == 0
    assert store.statistics().immediate == 2
    assert numbers(store.lease_immediate(9, owner="ant", until=50.0, at=3.0)) == [2, 7]
    assert store.statistics().immediate == 0


def test_an_immediate_lease_returns_to_the_head_of_the_immediate_queue(store: FrontierStore) -> None:
    store.immediate(links(1, 2), at=1.0)
    (first,) = store.lease_immediate(1, owner="ant", until=50.0, at=3.0)
    store.release([first.token])
    first, second = store.lease_immediate(2, owner="ant", until=50.0, at=3.0)
    assert numbers([first, second]) == [1, 2]
    store.settle([outcome(first, 4.0)], at=4.0)
    assert store.reclaim(at=50.0) == 1
    assert numbers(store.lease_immediate(2, owner="ant", until=90.0, at=60.0)) == [2]


def test_sites_are_activated_by_due_time_and_only_once(store: FrontierStore) -> None:
    for at, name in ((3.0, "https://c.example"), (1.0, "https://b.example"), (2.0, "https://a.example")):
        store.discover([link(1, site=name)], at=at)
    assert store.next_site_due() == 1.0
    found = store.activate(2, owner="ant", until=9.0, at=9.0)
    assert [one.site for one in found] == ["https://b.example", "https://a.example"]
    assert store.next_site_due() == 3.0
    assert [one.site for one in store.activate(9, owner="ant", until=9.0, at=2.9)] == []
    assert [one.site for one in store.activate(9, owner="ant", until=9.0, at=3.0)] == ["https://c.example"]
    assert store.next_site_due() is None
    assert store.statistics().active_sites == 3


def test_one_site_can_be_activated_before_it_is_due(store: FrontierStore) -> None:
    store.discover(links(1), at=5.0)
    assert store.activate_site("https://unknown.example", owner="ant", until=9.0, at=1.0) is None
    record = store.activate_site(SITE, owner="ant", until=9.0, at=1.0)
    assert record is not None
    assert record.pages == (1, 0, 0, 0, 0, 0)
    assert store.activate_site(SITE, owner="ant", until=9.0, at=1.0) is None


def test_a_parked_site_comes_back_when_it_is_due_with_what_the_ant_remembered(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    store.activate(1, owner="ant", until=9.0, at=1.0)
    state = SiteState(next_at=77.0, robots=b"User-agent: *", robots_at=3.0, sitemaps=(("https://a.example/s", 0.0),))
    store.park([Parked(SITE, 40.0, state)], at=2.0)
    store.park([Parked(SITE, 10.0, SiteState())], at=2.0)  # it is not active any more
    assert store.next_site_due() == 40.0
    (back,) = store.activate(1, owner="ant", until=99.0, at=40.0)
    assert (back.due, back.state, back.first_seen) == (40.0, state, 1.0)


def test_a_new_url_wakes_a_parked_site_and_bounds_an_active_ones_rest(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    store.activate(1, owner="ant", until=9.0, at=1.0)
    store.discover(links(2), at=3.0)
    store.park([Parked(SITE, math.inf, SiteState())], at=4.0)
    assert store.next_site_due() == 3.0
    store.activate(1, owner="ant", until=9.0, at=4.0)
    store.settle([outcome(one, 5.0) for one in lease(store, 9)], at=5.0)
    store.park([Parked(SITE, math.inf, SiteState())], at=6.0)
    assert store.next_site_due() is None
    store.discover(links(2, 3), at=8.0)
    assert store.next_site_due() == 8.0


def test_a_site_parked_with_leases_out_is_due_when_they_run_out(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    store.activate(1, owner="ant", until=9.0, at=1.0)
    lease(store, 2)
    store.park([Parked(SITE, math.inf, SiteState())], at=4.0)
    assert store.next_site_due() == 50.0


def test_a_site_whose_time_ran_out_is_due_as_before(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    store.activate(1, owner="ant", until=9.0, at=5.0)
    store.reclaim(at=8.9)
    assert store.next_site_due() is None
    store.reclaim(at=9.0)
    assert store.next_site_due() == 1.0


def test_the_census_counts_checks_changes_and_births_by_period(store: FrontierStore) -> None:
    store.discover([link(1, source=""), link(2), link(3)], at=1.0)
    first = lease(store, 3)
    done = [msgspec.structs.replace(outcome(one, 12.0), seconds=0.5, links_new=4) for one in first[:2]]
    refused = Outcome(first[2].token, "refused", msgspec.structs.replace(first[2].record, state="refused", due=9.0))
    store.settle([*done, refused], at=12.0)
    one, two = lease(store, 2, queue="recrawl", horizon=[20.0] * RETRY + [0.0])
    store.settle([outcome(one, 25.0, kind="changed", bucket=4), outcome(two, 26.0, kind="same")], at=26.0)
    assert store.census_rows(since=0) == [
        CensusRow(0, None, births=1),
        CensusRow(1, None, fetches=2, seconds=1.0, links=8),
        CensusRow(1, 5, births=2),
        CensusRow(2, 5, fetches=2, changes=1, watched=27.0),
    ]
    assert store.census_rows(since=2) == [CensusRow(2, 5, fetches=2, changes=1, watched=27.0)]
    assert store.census() == {4: BucketCensus(1, 25.0), 5: BucketCensus(1, 26.0)}


def test_the_copies_of_each_warc_file_are_counted_and_follow_a_move(store: FrontierStore) -> None:
    store.discover(links(1, 2), at=1.0)
    for one in lease(store, 2):
        record = msgspec.structs.replace(crawled(one.record, 3.0), copy=Copy(7, one.token, 10))
        store.settle([Outcome(one.token, "new", record)], at=3.0)
    assert store.copies() == {7: 2}
    record = store.page(SITE, link(1).key)
    assert record is not None
    assert record.copy is not None
    move = Move(SITE, link(1).key, record.copy, Copy(8, 0, 10))
    assert store.relocate([move, move]) == 1
    assert store.copies() == {7: 1, 8: 1}


def test_a_copy_that_moved_during_a_fetch_that_left_it_alone_stays_moved(store: FrontierStore) -> None:
    store.discover(links(1), at=1.0)
    (one,) = lease(store, 1)
    old, new = Copy(1, 0, 5), Copy(2, 0, 5)
    store.settle([Outcome(one.token, "new", msgspec.structs.replace(crawled(one.record, 3.0), copy=old))], at=3.0)
    (one,) = lease(store, 1, queue="recrawl")
    store.relocate([Move(SITE, one.key, old, new)])
    store.settle([outcome(one, 9.0, kind="not_modified")], at=9.0)
    record = store.page(SITE, one.key)
    assert record is not None
    assert record.copy == new
    assert store.copies() == {2: 1}


def test_a_forgotten_page_is_gone_and_barred(store: FrontierStore) -> None:
    store.discover(links(1, 2), at=1.0)
    crawl(store, 3.0)
    (one, _) = lease(store, 2, queue="recrawl")
    assert store.forget(SITE, one.key, at=4.0) == 1
    assert store.forget(SITE, one.key, at=4.0) == 0
    assert store.settle([outcome(one, 5.0, kind="same")], at=5.0).lost == 1
    assert store.discover(links(1), at=6.0) == Discovered(new=0, known=1)
    assert store.immediate(links(1), at=6.0) == 0
    assert store.page(SITE, one.key) is None
    assert store.known(SITE, [one.key]) == [True]
    assert [record.url for _, record in store.pages()] == [f"{SITE}/2"]


def test_a_forgotten_site_is_gone_and_barred_with_all_its_pages(store: FrontierStore) -> None:
    store.discover([*links(1, 2, 3), link(1, site="https://b.example")], at=1.0)
    store.activate(9, owner="ant", until=99.0, at=1.0)
    crawl(store, 3.0, n=1)
    store.immediate(links(2), at=3.0)
    assert store.forget(SITE, at=4.0) == 3
    assert store.forget("https://never-seen.example", at=4.0) == 0
    assert store.site(SITE) is None
    assert [one.site for one in store.sites("", 9)] == ["https://b.example"]
    assert store.discover([*links(9), link(1, site="https://never-seen.example")], at=6.0).new == 0
    assert store.lease_immediate(9, owner="ant", until=99.0, at=6.0) == []
    assert lease(store, 9) == []
    assert store.statistics().pages["crawled"] == 0
    assert store.census() == {}
    assert store.statistics().sites == 1


def test_pages_are_listed_by_site_and_state(store: FrontierStore) -> None:
    store.discover([*links(1, 2), link(1, site="https://b.example")], at=1.0)
    crawl(store, 3.0, n=1)
    assert {(site, record.url) for site, record in store.pages(site=SITE)} == {
        (SITE, f"{SITE}/1"),
        (SITE, f"{SITE}/2"),
    }
    assert [record.url for _, record in store.pages(state="crawled")] == [f"{SITE}/1"]
    assert [record.url for _, record in store.pages(site=SITE, state="never-crawled")] == [f"{SITE}/2"]
    assert list(store.pages(site="https://unknown.example")) == []


def test_a_long_listing_gives_every_page_once(store: FrontierStore) -> None:
    store.discover(links(*range(1200)), at=1.0)
    crawl(store, 3.0, n=700)
    assert sorted(record.url for _, record in store.pages()) == sorted(f"{SITE}/{n}" for n in range(1200))


def test_sites_are_paged_by_name(store: FrontierStore) -> None:
    names = [f"https://{letter}.example" for letter in "abcab"]
    store.discover([link(number, site=name) for number, name in enumerate(names)], at=1.0)
    first = store.sites("", 2)
    assert [(one.site, one.pages[0]) for one in first] == [("https://a.example", 2), ("https://b.example", 2)]
    assert [one.site for one in store.sites(first[-1].site, 2)] == ["https://c.example"]


def test_the_plan_is_kept_as_it_was_put(store: FrontierStore) -> None:
    assert store.plan() is None
    store.put_plan(b"one")
    store.put_plan(b"two")
    assert store.plan() == b"two"


def test_statistics_count_every_url_in_its_state(store: FrontierStore) -> None:
    store.discover(links(1, 2, 3), at=1.0)
    crawl(store, 3.0, n=1)
    lease(store, 1)
    counts = store.statistics()
    assert (counts.pages["never-crawled"], counts.pages["crawled"], counts.sites, counts.leased) == (2, 1, 1, 1)


def test_what_is_unknown_has_no_record(store: FrontierStore) -> None:
    assert store.page(SITE, link(1).key) is None
    assert store.site(SITE) is None
    assert store.recrawl_due(SITE) == []
    assert store.advance(SITE, [link(1).key], due=1.0, at=1.0) == 0
    assert store.relocate([Move(SITE, link(1).key, Copy(1, 0, 1), Copy(2, 0, 1))]) == 0
    assert lease(store, 3) == []


@pytest.mark.parametrize("url", ["", "memory", "rocksdb:", "rocksdb://", "redis://localhost", "sqlite:///x", "/a/b"])
def test_a_url_of_no_store_is_an_input_error(url: str) -> None:
    with pytest.raises(InputError, match="use memory:, rocksdb:///absolute"):
        open_store(url, collection="tests", period_s=1.0)


def test_a_new_store_needs_a_collection_and_a_period(tmp_path: Path) -> None:
    for url in ("memory:", f"rocksdb://{tmp_path}/new"):
        with pytest.raises(InputError):
            open_store(url, collection=None, period_s=None)
