"""The active list orders for those whose place is known, knows whose turn it is, and forgets what left it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.sites.street import SEVEN, Street
from webfountain.frontier.sites.hand import LARGEST_HAND, largest_hand
from webfountain.store.answers import LeaseBatch

if TYPE_CHECKING:
    from webfountain.records import Fetch


def ordered(street: Street) -> list[str]:
    """The sites that leases are ordered for now."""
    street.batch.refills.clear()
    street.list.sites.refill(street.at(street.clock.now()))
    return [refill.lease.site for refill in street.batch.refills]


def test_leases_are_ordered_for_a_site_once_its_host_is_resolved() -> None:
    street = Street(size=2)
    street.take_in(activated=[street.lease_of("http://10.0.0.1"), street.lease_of("http://one.example")])
    assert ordered(street) == ["http://10.0.0.1"]
    assert street.list.addresses.unresolved() == ["one.example"]
    street.list.resolved("one.example", ["203.0.113.9"], "dns", street.at(0.0))
    assert ordered(street) == ["http://one.example"]
    assert ordered(street) == []


def test_a_page_that_comes_due_while_the_store_answers_is_leased_next() -> None:
    street = Street(recrawl=True)
    lease = street.enter("http://10.0.0.1", pages=0)
    interval = street.follower.schedule.due(0, 0.0)
    street.take_in(2.0, dealt=[LeaseBatch(lease.site, [], [], [], [(0, 1.0 - interval)])])
    street.list.sites.add(street.at(2.1))
    assert ordered(street) == [lease.site]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_in_which_sites_with_new_pages_are_named_decides_no_turn(backwards: bool) -> None:
    """They are named by a set, whose order differs from process to process."""
    street = Street()
    for name in SEVEN:
        street.enter(name, pages=0)
    street.take_in(dealt=[LeaseBatch(name, [], [], [], []) for name in SEVEN])
    assert all(street.site(name).is_empty for name in SEVEN)
    assert ordered(street) == []
    street.list.sites.refresh(SEVEN[::-1] if backwards else SEVEN, 0.0)
    assert ordered(street) == SEVEN


@pytest.mark.parametrize(
    ("capacity", "period_s", "most"),
    [(None, 86_400.0, LARGEST_HAND), (10, 86_400.0, 1), (500, 86_400.0, 25), (10**6, 86_400.0, LARGEST_HAND),
     (100, 1.0, 20)],
)  # fmt: skip
def test_a_hand_holds_no_more_than_a_twentieth_of_a_period_but_a_fifth_of_a_second(
    capacity: int | None, period_s: float, most: int
) -> None:
    assert largest_hand(capacity, period_s) == most


def busy(*names: str) -> Street:
    """Sites with pages to ask at will; an answer that took a second shuts a site for ten."""
    street = Street(delay_factor=10)
    for name in names:
        street.enter(name, pages=9)
    return street


def test_a_site_in_a_hurry_is_asked_before_six_that_are_ready() -> None:
    street = Street(delay_factor=10)
    leases = [street.enter(name, pages=9) for name in SEVEN]
    assert [street.next(1.0).site for _ in range(2)] == SEVEN[:2]
    street.hurry(leases[5], "now", "also", at=1.0)
    fetch = street.next(1.0)
    assert fetch.url == f"{SEVEN[5]}/now"
    assert street.next(1.0).site == SEVEN[2]
    street.land(fetch, 2.0, seconds=0.1)
    assert street.next(2.5).site == SEVEN[3], "politeness holds for immediate URLs too"
    assert street.next(3.0).url == f"{SEVEN[5]}/also"
    assert [street.next(3.0).site for _ in range(2)] == [SEVEN[4], SEVEN[6]]


@pytest.mark.parametrize("name", [SEVEN[0], f"{SEVEN[0]}:8080"])
def test_a_site_that_must_wait_is_asked_first_as_soon_as_its_gate_and_its_addresss_open(name: str) -> None:
    street = Street(delay_factor=10)
    leases = {site: street.enter(site, pages=9) for site in [*SEVEN, f"{SEVEN[0]}:8080"]}
    fetch = street.next(1.0)
    assert fetch.site == SEVEN[0]
    street.hurry(leases[name], "now", at=1.0)
    assert street.next(1.0).site == SEVEN[1]
    street.land(fetch, 2.0, seconds=1.0)
    assert [street.next(11.9).site for _ in range(2)] == SEVEN[2:4]
    assert street.next(12.0).url == f"{name}/now"
    assert street.next(12.0).site == SEVEN[4]


def test_sites_that_left_are_not_remembered_until_their_pages_are_due() -> None:
    street = Street(size=1)
    for number in range(5000):
        street.enter(f"http://10.0.{number >> 8}.{number & 255}", pages=0)
        name = f"http://10.0.{number >> 8}.{number & 255}"
        street.take_in(dealt=[LeaseBatch(name, [], [], [], [(257, 1e9 + number)])])
        street.list.departures.park_idle(street.at(0.0), is_full=False)
        street.batch.parked.clear()
    assert len(street.list.sites.timers) < 1100
    assert street.list.statistics().sites == 0


def test_a_site_that_asks_for_an_hour_gets_it_also_when_the_process_is_killed() -> None:
    def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else (503, {"retry-after": "3600"}, b"", 0.1)

    drive = Drive(collection_of(["http://one.example/", "http://one.example/two"]), answer)
    drive.run(seconds=60)
    assert [kind for _, kind, _ in drive.log] == ["robots", "page"]
    kept = drive.site("http://one.example").state  # what a new process would find, had this one been killed
    assert kept.failures == 1
    assert kept.next_at > drive.log[1][0] + 3600
    drive.run(seconds=2 * 86_400)
    pages = sorted(at for at, kind, _ in drive.log if kind == "page")
    assert pages[1] - pages[0] > 3600


def test_what_went_out_under_an_earlier_lease_counts_for_no_site_that_came_back() -> None:
    """It counted one end too many, and the site never had anything under way again, nor left: it stood still."""
    street, name = Street(), SEVEN[0]
    old = street.enter(name, pages=1)
    fetch = street.next(0.0)
    street.take_in(voided=frozenset({(name, old.token)}))
    new = street.enter(name, pages=1)
    street.take_in(settled=Counter({(name, old.token): 1}))
    street.land(fetch, 1.0, error="lapsed")
    assert fetch.lease is not None
    street.list.flights.given_back(fetch.lease, street.at(1.0))
    second = street.next(9.0)
    street.land(second, 9.0, error="lapsed")
    assert second.lease is not None
    street.list.flights.given_back(second.lease, street.at(9.0))
    assert [lease.token for lease in street.list.leases() if lease.site == name] == [new.token]
    assert street.site(name).under_way == 0


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("status", [429, 404])
def test_a_robots_txt_that_comes_when_its_site_has_left_changes_nothing(is_lost: bool, status: int) -> None:
    """Another ant took over the site or its address, while its robots.txt was under way."""
    street = Street(obey_robots=True)
    street.enter(SEVEN[0], pages=0)
    [robots] = street.ask(0.0)
    if is_lost:
        street.list.departures.lose(SEVEN[0], street.at(0.5))
    else:
        street.list.departures.leave_all(street.at(0.5))
    street.land(robots, 1.0, status=status, headers=(("retry-after", "60"),))
    sites = street.list.sites
    assert (sites.hungry, sites.quiet, sites.resting) == ({}, {}, {})
    street.list.departures.park_idle(street.at(1.0), is_full=True)
    assert street.list.addresses.ring.wake_at() == float("inf")
