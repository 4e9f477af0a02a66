"""Sites behind one address take turns there; an address and a site each keep their own distance."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tests.frontier.sites.street import Street, sites_of
from webfountain.frontier.sites.site import State
from webfountain.records import Fetch, SiteState

ONE, TWO, FAR = "http://10.0.0.1", "http://10.0.0.1:8080", "http://10.0.0.2"
DOUBLE, DEAD, ALIVE = "http://two.example", "10.0.0.9", "10.0.0.2"


def test_sites_behind_one_address_take_turns_and_others_do_not_wait_for_them() -> None:
    street = Street()
    for name in (ONE, TWO, FAR):
        street.enter(name)
    asked = []
    for at in (0.0, 1.0, 2.0, 3.0):
        fetches = street.ask(at)
        asked.append(sites_of(fetches))
        for fetch in fetches:
            street.land(fetch, at)
    assert [[name for name in names if name != FAR] for names in asked] == [[ONE], [TWO], [ONE], [TWO]]
    assert [FAR in names for names in asked] == [True, True, True, False], "three pages, one a second"


def test_without_per_ip_each_site_keeps_only_its_own_distance() -> None:
    street = Street(policy="per_ip = false")
    street.enter(ONE)
    street.enter(TWO)
    assert sites_of(street.ask(0.0)) == [ONE, TWO]


def test_a_crawl_delay_binds_the_site_and_not_its_neighbours() -> None:
    street = Street()
    street.enter(ONE, state=SiteState(crawl_delay=30.0))
    street.enter(TWO)
    asked = []
    for at in (0.0, 1.0, 29.0, 30.0):
        (fetch,) = street.ask(at)
        asked.append(fetch.site)
        street.land(fetch, at)
    assert asked == [ONE, TWO, TWO, ONE]


def test_a_host_is_asked_for_once_and_all_its_sites_stand_behind_its_first_address() -> None:
    street = Street()
    names = [f"http://one.example:{port}" for port in (80, 81)]
    leases = [street.lease_of(name) for name in names]
    street.take_in(activated=leases)
    assert street.ask(0.0) == []
    assert street.list.addresses.unresolved() == ["one.example"]
    late = street.lease_of("http://one.example:82")
    street.take_in(activated=[late])
    assert street.list.addresses.unresolved() == []
    street.list.resolved("one.example", ["203.0.113.9", "203.0.113.10"], "dns", street.at(0.0))
    assert {street.site(lease.site).address for lease in (*leases, late)} == {"203.0.113.9"}
    street.list.sites.refill(street.at(0.0))
    assert [refill.lease for refill in street.batch.refills] == [*leases, late]
    for lease in leases:
        street.deal(lease, "ab")
    assert len(street.ask(0.0)) == 1


def test_a_host_without_an_address_leaves_its_sites_shut() -> None:
    street = Street()
    street.take_in(activated=[street.lease_of("http://one.example")])
    street.list.resolved("one.example", [], "dns", street.at(0.0))
    assert street.site("http://one.example").state is State.SHUT
    assert street.ask(0.0) == []
    street.list.departures.park_idle(street.at(0.0), is_full=False)
    (parked,) = street.batch.parked
    assert 7.5 <= parked.due <= 12.5
    assert parked.state.failures == 1


def test_a_site_that_left_before_its_host_was_resolved_takes_no_place() -> None:
    street = Street()
    street.take_in(activated=[street.lease_of("http://one.example")])
    street.list.departures.leave_all(street.at(0.0))
    street.list.resolved("one.example", ["203.0.113.9"], "dns", street.at(0.0))
    assert len(street.list.addresses) == 0
    assert street.ask(0.0) == []


def test_an_address_is_remembered_until_its_gate_is_open_again() -> None:
    street = Street()
    street.enter(ONE)
    (fetch,) = street.ask(0.0)
    street.land(fetch, 5.0)
    street.list.departures.leave_all(street.at(5.0))
    street.list.addresses.sweep(5.5)
    street.enter(TWO, at=5.5)
    assert street.ask(5.5) == []
    (fetch,) = street.ask(6.0)
    street.land(fetch, 6.0)
    street.list.departures.leave_all(street.at(6.0))
    street.list.addresses.sweep(7.0)
    assert len(street.list.addresses) == 0


def test_an_address_that_has_a_site_again_is_not_swept() -> None:
    street = Street()
    street.enter(ONE)
    street.list.departures.leave_all(street.at(0.0))
    street.enter(TWO)
    street.list.addresses.sweep(1e6)
    assert sites_of(street.ask(1e6)) == [TWO]


@pytest.mark.parametrize(
    ("answer", "least"),
    [
        ({"status": 429, "headers": (("retry-after", "500"),)}, 500.0),
        ({"status": 503}, 7.5),
        ({"error": "connect"}, 7.5),
        ({"error": "cut"}, 7.5),
    ],
)
def test_a_refusal_shuts_the_site_for_long_and_its_neighbour_waits_no_longer_than_always(
    answer: dict[str, Any], least: float
) -> None:
    street = Street()
    street.enter(ONE)
    street.enter(TWO)
    (fetch,) = street.ask(0.0)
    street.land(fetch, 0.0, **answer)
    assert street.site(ONE).failures == 1
    assert street.site(ONE).opens_at >= least
    assert street.metrics.get("politeness/backed_off") == 1
    assert sites_of(street.ask(1.0)) == [TWO]


def test_an_answer_forgives_earlier_refusals_and_an_error_of_one_page_does_not() -> None:
    street = Street()
    street.enter(ONE, state=SiteState(failures=4))
    (fetch,) = street.ask(0.0)
    street.land(fetch, 0.0, error="too-large")
    assert street.site(ONE).failures == 4
    (fetch,) = street.ask(1.0)
    street.land(fetch, 1.0, status=404)
    assert street.site(ONE).failures == 0


def at_two_addresses(street: Street, pages: int = 3) -> Fetch:
    """A site whose host has two addresses, and the fetch of it that is under way at the first."""
    lease = street.lease_of(DOUBLE)
    street.take_in(activated=[lease])
    assert street.list.addresses.unresolved() == ["two.example"]
    street.list.resolved("two.example", [DEAD, ALIVE], "dns", street.at(0.0))
    street.list.sites.refill(street.at(0.0))
    street.deal(lease, map(str, range(pages)))
    return next(fetch for fetch in street.ask(0.0) if fetch.site == DOUBLE)


def test_a_fetch_goes_on_at_another_address_when_that_one_may_be_asked() -> None:
    """A host's first address is dead; at its second one stands another site, whose gate is kept as ever."""
    street = Street()
    street.enter(FAR)
    [other] = street.ask(0.0)
    fetch = at_two_addresses(street)
    assert (fetch.address, fetch.fallbacks) == (DEAD, (ALIVE,))
    assert street.detour(fetch, ALIVE, 0.0) == inf  # one request at once at that address
    street.land(other, 0.0)
    assert street.detour(fetch, ALIVE, 0.4) == 0.6  # and a delay after it
    assert street.detour(fetch, ALIVE, 1.0) == 0.0
    assert street.site(DOUBLE).address == ALIVE
    assert street.ask(1.0) == []  # neither site: the detour took the slot
    street.land(fetch, 2.0)
    assert street.ask(2.9) == []
    [later] = street.ask(3.0)
    assert later.site == FAR
    street.land(later, 3.0)
    [moved] = street.ask(4.0)
    assert (moved.site, moved.address, moved.fallbacks) == (DOUBLE, ALIVE, (DEAD,))
    street.enter(f"http://{DEAD}", at=4.0)
    assert sites_of(street.ask(4.0)) == [f"http://{DEAD}"], "the slot at the dead address was given back"


def test_fetches_under_way_at_the_old_address_give_their_slots_back_there() -> None:
    street = Street(policy="concurrency = 2")
    first = at_two_addresses(street, pages=6)
    second = street.list.flights.next(0.0)
    assert second is None, "both slots are out"
    fetches = len(street.list.flights)
    assert fetches == 2
    assert street.detour(first, ALIVE, 0.0) == 0.0
    street.land(first, 1.0)
    assert street.site(DOUBLE).address == ALIVE
    assert len(street.ask(2.0)) == 1, "one slot of the site is still out, at the old address"


def test_a_site_stands_where_it_was_answered_though_its_turn_there_did_not_come() -> None:
    street = Street()
    fetch = at_two_addresses(street)
    street.land(fetch, 1.0, error="connect", address=ALIVE)
    assert street.site(DOUBLE).address == ALIVE


def test_a_site_that_left_does_not_move_to_the_address_that_answered_its_last_fetch() -> None:
    street = Street()
    fetch = at_two_addresses(street)
    street.list.departures.leave_all(street.at(0.0))
    street.land(fetch, 1.0, address=ALIVE)
    assert [group.places for group in street.list.addresses.empty.values()] == [{}]


def test_the_last_fetch_of_a_site_that_left_goes_on_at_another_address_without_its_site() -> None:
    street = Street()
    fetch = at_two_addresses(street)
    street.list.departures.leave_all(street.at(0.0))
    assert street.detour(fetch, ALIVE, 0.0) == 0.0
    street.land(fetch, 1.0, address=ALIVE)
    assert {group.address: group.gate.in_flight for group in street.list.addresses.empty.values()} == {
        DEAD: 0,
        ALIVE: 0,
    }


def test_where_addresses_are_not_distinguished_a_site_keeps_its_gate_on_a_detour() -> None:
    street = Street(policy="per_ip = false")
    fetch = at_two_addresses(street)
    assert street.detour(fetch, ALIVE, 0.0) == 0.0
    assert street.site(DOUBLE).address == ALIVE
    assert street.ask(0.0) == []
    street.land(fetch, 0.0)
    assert len(street.ask(1.0)) == 1


def test_a_fetch_that_was_not_requested_makes_nobody_wait() -> None:
    street = Street()
    street.enter(ONE)
    (fetch,) = street.ask(0.0)
    street.list.flights.unasked(fetch)
    assert len(street.ask(0.0)) == 1
    assert len(street.list.flights) == 1


@pytest.mark.parametrize("at_first", [True, False])
def test_a_slot_for_a_fetch_counted_apart_is_taken_back_from_the_address_that_got_it(at_first: bool) -> None:
    street = Street()
    fetch = at_two_addresses(street)
    groups = street.list.addresses
    dead, alive = (groups.group_at(street.list.sites.by_name[DOUBLE].place, address) for address in (DEAD, ALIVE))
    if at_first:
        street.list.flights.count_apart(fetch)
    assert street.detour(fetch, ALIVE, 0.0) == 0.0
    street.list.flights.count_apart(fetch)
    assert (dead.gate.spare(inf), alive.gate.spare(inf)) == (1, 1)
    street.land(fetch, 1.0)
    assert (dead.gate.spare(inf), alive.gate.spare(inf)) == (1, 1)
