"""Claims and letters, in one process and on a server: names that processes share out, and what they tell each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.local_claims import LocalClaims
from tests.store.stores import active, links, make_store, outcome, refill
from webfountain.records import SiteState
from webfountain.store.answers import Claim, ParkRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

BACKENDS = ("memory", "embedded", "shared")


@pytest.fixture(params=["local", "shared"])
def claims(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Claims]:
    if request.param == "local":
        yield LocalClaims()
        return
    store = make_store("shared", tmp_path)
    assert store.claims is not None
    yield store.claims
    store.close()


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrontierStore]:
    store = make_store(request.param, tmp_path)
    yield store
    store.close()


def test_a_name_is_one_owners_until_its_time_and_then_the_next_ones(claims: Claims) -> None:
    assert claims.claim(["address/a"], owner="one", until=10.5, at=0.0, notes={"address/a": b"n"}) == [
        Claim("address/a", "one", 10.5, b"n")
    ]
    assert claims.claim(["address/a"], owner="two", until=12.0, at=10.0) == [Claim("address/a", "one", 10.5, b"n")]
    assert claims.claim(["address/a"], owner="one", until=11.25, at=10.0)[0].until == 11.25
    taken = claims.claim(["address/a"], owner="two", until=30.0, at=11.25)
    assert taken == [Claim("address/a", "two", 30.0, b"", lost_by="one")]
    assert claims.claim(["address/a"], owner="one", until=30.0, at=12.0)[0].owner == "two"


def test_a_dropped_name_is_free_from_the_time_that_its_owner_says(claims: Claims) -> None:
    claims.claim(["address/a", "address/b"], owner="one", until=100.0, at=0.0)
    claims.drop({"address/a": 5.0}, owner="one", at=1.0)
    claims.drop({"address/b": 0.0}, owner="two", at=1.0)
    assert claims.claim(["address/a", "address/b"], owner="two", until=9.0, at=2.0) == [
        Claim("address/a", "", 5.0),
        Claim("address/b", "one", 100.0),
    ]
    assert claims.claim(["address/a"], owner="two", until=9.0, at=5.0) == [Claim("address/a", "two", 9.0)]


def test_the_names_of_a_kind_are_listed_with_what_their_owners_say(claims: Claims) -> None:
    claims.claim(["ant/b"], owner="b", until=float("inf"), at=0.0, notes={"ant/b": b"\xff\x00"})
    claims.claim(["ant/a"], owner="a", until=2.0, at=0.0)
    claims.claim(["role/controller"], owner="a", until=2.0, at=0.0)
    assert [(one.name, one.owner, one.until, one.note) for one in claims.claims("ant")] == [
        ("ant/a", "a", 2.0, b""),
        ("ant/b", "b", float("inf"), b"\xff\x00"),
    ]
    claims.drop({"ant/a": 0.0}, owner="a", at=1.0)
    assert [one.name for one in claims.claims("ant")] == ["ant/b"]


def test_letters_are_collected_in_order_and_once(claims: Claims) -> None:
    assert claims.collect("one") == []
    claims.post("one", [b"a", b"b"])
    claims.post("one", [b"c"])
    claims.post("one", [])
    assert claims.collect("two") == []
    assert claims.collect("one") == [b"a", b"b", b"c"]
    assert claims.collect("one") == []


def test_a_named_site_is_enlisted_though_it_is_not_due_unless_another_has_it(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=0.0)
    lease = active(store, owner="one", until=50.0)
    assert store.sites.enlist([lease.site, "https://unknown.example"], owner="two", until=90.0, at=10.0) == []
    store.sites.park([ParkRequest(lease, 1e6, SiteState(next_at=7.0))], at=10.0)
    [taken] = store.sites.enlist([lease.site], owner="two", until=90.0, at=11.0)
    assert (taken.token > lease.token, taken.record.owner, taken.record.state.next_at) == (True, "two", 7.0)
    assert taken.lost_by is None
    [dealt] = store.queues.lease([refill(taken, 1, queue="never-crawled")])
    assert dealt is not None
    assert len(dealt.never_crawled) == 1


def test_who_takes_a_site_over_learns_who_lost_it_and_its_leases_are_back(store: FrontierStore) -> None:
    store.queues.discover(links(1), at=0.0)
    lease = active(store, owner="one", until=50.0)
    [dealt] = store.queues.lease([refill(lease, 1, queue="never-crawled")])
    [taken] = store.sites.activate(1, owner="two", until=90.0, at=50.0)
    assert taken.lost_by == "one"
    [again] = store.queues.lease([refill(taken, 1, queue="never-crawled")])
    assert dealt is not None
    assert again is not None
    assert again.never_crawled[0].key == dealt.never_crawled[0].key
    assert store.queues.settle([outcome(dealt.never_crawled[0], 60.0)], at=60.0).lost == 1
    assert store.sites.renew([lease], until=99.0) == []
    [back] = store.sites.enlist([lease.site], owner="three", until=99.0, at=91.0)
    assert back.lost_by == "two"
