"""Sites behind one address take turns there; an address and a site each keep their own distance."""

from __future__ import annotations

import math
import random

import pytest

from webfountain.frontier.sites.addresses import Addresses
from webfountain.frontier.sites.site import ActiveSite
from webfountain.metrics import Metrics
from webfountain.policy.tables import PolitenessTable
from webfountain.records import Fetch, Fetched, SiteLease, SiteRecord


class Street:
    """Addresses and sites that always have a page to ask."""

    def __init__(self, **rules):
        self.metrics = Metrics()
        self.rules = PolitenessTable(min_delay=1.0, delay_factor=0.0, **rules)
        self.addresses = Addresses(self.rules, rng=random.Random(1), metrics=self.metrics)
        self.sites = {}
        self.numbers = 0

    def enter(self, name, pages=3):
        record = SiteRecord(name, pages=(0,) * 6, due=0.0, first_seen=0.0)
        site = ActiveSite(
            SiteLease(name, 1, 1e9, record), concurrency=self.rules.concurrency,
            weights=lambda: (1.0, 1.0), rng=random.Random(1), hand=1,
        )  # fmt: skip
        for _ in range(pages):
            self.numbers += 1
            site.never.load([Fetch(self.numbers, "page", f"{name}/{self.numbers}", name, None)])
        self.sites[name] = site
        self.addresses.enter(site)
        return site

    def ask(self, at):
        """The sites that may be asked at a time, in their turn."""
        fetches = []
        while (fetch := self.addresses.ring.next(at)) is not None:
            fetches.append(fetch)
        return fetches

    def land(self, fetch, at, status=200, headers=(), error=None):
        fetched = Fetched(fetch, at, 0.0, status if error is None else None, headers, error=error)
        site = self.sites[fetch.site]
        return self.addresses.landed(site, site.group, fetched)


ONE, TWO, FAR = "http://10.0.0.1", "http://10.0.0.1:8080", "http://10.0.0.2"


def sites_of(fetches):
    return [fetch.site for fetch in fetches]


def test_sites_behind_one_address_take_turns_and_others_do_not_wait_for_them():
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


def test_without_per_ip_each_site_keeps_only_its_own_distance():
    street = Street(per_ip=False)
    street.enter(ONE)
    street.enter(TWO)
    assert sites_of(street.ask(0.0)) == [ONE, TWO]


def test_a_crawl_delay_binds_the_site_and_not_its_neighbours():
    street = Street()
    street.enter(ONE).crawl_delay = 30.0
    street.enter(TWO)
    asked = []
    for at in (0.0, 1.0, 29.0, 30.0):
        (fetch,) = street.ask(at)
        asked.append(fetch.site)
        street.land(fetch, at)
    assert asked == [ONE, TWO, TWO, ONE]


def test_a_host_is_asked_for_once_and_all_its_sites_stand_behind_its_first_address():
    street = Street()
    sites = [street.enter(f"http://one.example:{port}") for port in (80, 81)]
    assert street.ask(0.0) == []
    assert street.addresses.unresolved() == ["one.example"]
    late = street.enter("http://one.example:82")
    assert street.addresses.unresolved() == []
    assert street.addresses.resolved("one.example", ["203.0.113.9", "203.0.113.10"]) == [*sites, late]
    assert {site.group.address for site in sites} == {"203.0.113.9"}
    assert len(street.ask(0.0)) == 1
    assert street.addresses.resolved("one.example", ["203.0.113.9"]) == []


def test_a_host_without_an_address_leaves_its_sites_shut():
    street = Street()
    site = street.enter("http://one.example")
    assert street.addresses.resolved("one.example", []) == [site]
    assert site.shut
    assert not site.resolving
    assert street.ask(0.0) == []


def test_a_site_that_left_before_its_host_was_resolved_takes_no_place():
    street = Street()
    gone = street.enter("http://one.example")
    street.addresses.leave(gone)
    assert street.addresses.resolved("one.example", ["203.0.113.9"]) == []
    assert gone.group is None
    assert street.ask(0.0) == []


def test_an_address_is_remembered_until_its_gate_is_open_again():
    street = Street()
    first = street.enter(ONE)
    (fetch,) = street.ask(0.0)
    street.land(fetch, 5.0)
    street.addresses.leave(first)
    street.addresses.sweep(5.5)
    second = street.enter(TWO)
    assert second.group is first.group
    assert street.ask(5.5) == []
    (fetch,) = street.ask(6.0)
    street.land(fetch, 6.0)
    street.addresses.leave(second)
    street.addresses.sweep(7.0)
    assert len(street.addresses.ring) == 0
    assert street.enter(ONE).group is not first.group


def test_an_address_that_has_a_site_again_is_not_swept():
    street = Street()
    street.addresses.leave(street.enter(ONE))
    street.enter(TWO)
    street.addresses.sweep(1e9)
    assert sites_of(street.ask(1e9)) == [TWO]


@pytest.mark.parametrize(
    ("answer", "least"),
    [
        ({"status": 429, "headers": (("retry-after", "500"),)}, 500.0),
        ({"status": 503}, 7.5),
        ({"error": "connect"}, 7.5),
    ],
)
def test_a_refusal_shuts_the_site_for_long_and_its_neighbour_waits_no_longer_than_always(answer, least):
    street = Street()
    street.enter(ONE)
    street.enter(TWO)
    (fetch,) = street.ask(0.0)
    assert street.land(fetch, 0.0, **answer)
    assert street.sites[ONE].failures == 1
    assert street.sites[ONE].gate.open_at() >= least
    assert street.metrics.get("politeness/backed_off") == 1
    assert sites_of(street.ask(1.0)) == [TWO]


def test_an_answer_forgives_earlier_refusals_and_an_error_of_one_page_does_not():
    street = Street()
    site = street.enter(ONE)
    site.failures = 4
    (fetch,) = street.ask(0.0)
    assert not street.land(fetch, 0.0, error="too-large")
    assert site.failures == 4
    (fetch,) = street.ask(1.0)
    assert not street.land(fetch, 1.0, status=404)
    assert site.failures == 0


def at_two_addresses(street, name="http://two.example"):
    """A site whose host has two addresses, and the fetch of it that is under way at the first."""
    site = street.enter(name)
    assert street.addresses.unresolved() == ["two.example"]
    street.addresses.resolved("two.example", ["10.0.0.9", "10.0.0.2"])
    [fetch] = [fetch for fetch in street.ask(0.0) if fetch.site == name]
    return site, fetch


def test_a_fetch_goes_on_at_another_address_when_that_one_may_be_asked():
    """A host's first address is dead; at its second one stands another site, whose gate is kept as ever."""
    street = Street()
    street.enter(FAR)
    [other] = street.ask(0.0)
    site, fetch = at_two_addresses(street)
    dead = site.group
    assert street.addresses.detour(site, dead, "10.0.0.2", 0.0) == math.inf  # one request at once at that address
    street.land(other, 0.0)
    assert street.addresses.detour(site, dead, "10.0.0.2", 0.4) == 0.6  # and a delay after it
    assert street.addresses.detour(site, dead, "10.0.0.2", 1.0) == 0.0
    assert (site.group.address, site.fallbacks) == ("10.0.0.2", ("10.0.0.9",))
    assert street.ask(1.0) == []  # neither site: the detour took the slot
    street.land(fetch, 2.0)
    assert street.ask(2.9) == []
    assert len(street.ask(3.0)) == 1
    assert dead.gate.in_flight == 0


def test_fetches_under_way_at_the_old_address_give_their_slots_back_there():
    street = Street(concurrency=2)
    site = street.enter("http://two.example")
    street.addresses.unresolved()
    street.addresses.resolved("two.example", ["10.0.0.9", "10.0.0.2"])
    first, second = street.ask(0.0)
    old = site.group
    assert street.addresses.detour(site, old, "10.0.0.2", 0.0) == 0.0
    new = site.group
    assert (old.gate.in_flight, new.gate.in_flight) == (1, 1)
    street.addresses.landed(site, old, Fetched(second, 1.0, 0.0, error="connect"))
    street.addresses.landed(site, new, Fetched(first, 1.0, 0.0, 200))
    assert (old.gate.in_flight, new.gate.in_flight) == (0, 0)


def test_a_site_stands_where_it_was_answered_though_its_turn_there_did_not_come():
    street = Street()
    site, fetch = at_two_addresses(street)
    street.addresses.landed(site, site.group, Fetched(fetch, 1.0, 0.0, error="connect", address="10.0.0.2"))
    assert site.group.address == "10.0.0.2"


def test_where_addresses_are_not_told_apart_a_site_keeps_its_gate_on_a_detour():
    street = Street(per_ip=False)
    site, fetch = at_two_addresses(street)
    group = site.group
    assert street.addresses.detour(site, group, "10.0.0.2", 0.0) == 0.0
    assert site.group is group
    assert (group.address, site.fallbacks, group.gate.in_flight) == ("10.0.0.2", ("10.0.0.9",), 1)
    street.land(fetch, 0.0)
    assert group.gate.in_flight == 0
