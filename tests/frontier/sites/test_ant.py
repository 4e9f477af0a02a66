"""The active list orders for those whose place is known and forgets what left it."""

from __future__ import annotations

import random
from math import inf

import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.planning.schedule import NoRecrawl
from webfountain.frontier.sites.ant import Ant
from webfountain.frontier.sites.site import LARGEST_HAND, largest_hand
from webfountain.metrics import Metrics
from webfountain.policy.tables import PolitenessTable
from webfountain.records import Fetched, SiteLease, SiteRecord


def ant_of(active_sites, politeness=None):
    return Ant(
        politeness=politeness or PolitenessTable(),
        schedule=NoRecrawl,
        now=lambda: 0.0,
        rng=random.Random(1),
        metrics=Metrics(),
        active_sites=active_sites,
        hand=1,
    )


def lease_of(name):
    return SiteLease(name, 1, 1e9, SiteRecord(name, pages=(0,) * 6, due=0.0, first_seen=0.0))


def test_leases_are_ordered_for_a_site_once_its_host_is_resolved():
    ant = ant_of(2)
    ant.admit([lease_of("http://10.0.0.1"), lease_of("http://one.example")])
    assert [order.lease.site for order in ant.orders(0.0)] == ["http://10.0.0.1"]
    assert ant.unresolved() == ["one.example"]
    ant.resolved("one.example", ["203.0.113.9"])
    assert [order.lease.site for order in ant.orders(0.0)] == ["http://one.example"]
    assert ant.orders(0.0) == []


def test_the_order_in_which_fresh_sites_are_named_decides_no_turn():
    """They are named by a set, whose order differs from process to process."""
    names = [f"http://10.0.0.{host}" for host in range(1, 5)]
    found = []
    for named in (names, names[::-1]):
        ant = ant_of(4)
        for site in ant.admit([lease_of(name) for name in names]):
            ant.deal(site, [], [], full=False)
        assert ant.orders(0.0) == []
        for site in ant.sites.values():
            site.robots_ok = True
        ant.freshen(named)
        found.append([order.lease.site for order in ant.orders(0.0)])
    assert found == [names, names]


def busy_ant_of(names):
    """Sites with pages to ask at will; an answer that took a second shuts a site for ten."""
    ant = ant_of(len(names), PolitenessTable(min_delay=1.0, delay_factor=10.0))
    for site in ant.admit([lease_of(name) for name in names]):
        site.robots_ok = True
        ant.deal(site, [ant.errand(site, "page", f"{site.site}/{page}") for page in range(9)], [], full=True)
    return ant


@pytest.mark.parametrize(
    ("capacity", "period_s", "most"),
    [(None, 86_400.0, LARGEST_HAND), (10, 86_400.0, 1), (500, 86_400.0, 25), (10**6, 86_400.0, LARGEST_HAND),
     (100, 1.0, 20)],
)  # fmt: skip
def test_a_hand_holds_no_more_than_a_twentieth_of_a_period_but_a_fifth_of_a_second(capacity, period_s, most):
    assert largest_hand(capacity, period_s) == most


SEVEN = [f"http://10.0.0.{host}" for host in range(1, 8)]


def test_a_site_in_a_hurry_is_asked_before_six_that_are_ready():
    ant = busy_ant_of(SEVEN)
    assert [ant.next(1.0).site for _ in range(2)] == SEVEN[:2]
    site = ant.sites[SEVEN[5]]
    for page in ("now", "also"):
        site.immediate.load([ant.errand(site, "page", f"{site.site}/{page}")])
        ant.hurry(site)
    fetch = ant.next(1.0)
    assert fetch.url == f"{SEVEN[5]}/now"
    assert ant.next(1.0).site == SEVEN[2]
    ant.landed(Fetched(fetch, 2.0, 0.1, 200))
    assert ant.next(2.5).site == SEVEN[3], "politeness holds for immediate URLs too"
    assert ant.next(3.0).url == f"{SEVEN[5]}/also"
    assert [ant.next(3.0).site for _ in range(2)] == [SEVEN[4], SEVEN[6]]


@pytest.mark.parametrize("name", [SEVEN[0], f"{SEVEN[0]}:8080"])
def test_a_site_that_must_wait_is_asked_first_as_soon_as_its_gate_and_its_addresss_open(name):
    ant = busy_ant_of([*SEVEN, f"{SEVEN[0]}:8080"])
    fetch = ant.next(1.0)
    assert fetch.site == SEVEN[0]
    site = ant.sites[name]
    site.immediate.load([ant.errand(site, "page", f"{name}/now")])
    ant.hurry(site)
    assert ant.next(1.0).site == SEVEN[1]
    ant.landed(Fetched(fetch, 2.0, 1.0, 200))
    assert [ant.next(11.9).site for _ in range(2)] == SEVEN[2:4]
    assert ant.next(12.0).url == f"{name}/now"
    assert ant.next(12.0).site == SEVEN[4]


def test_sites_that_left_are_not_remembered_until_their_pages_are_due():
    ant = ant_of(1)
    (stays,) = ant.admit([lease_of("http://10.9.9.9")])
    ant.due_again(stays, 5.0)
    for number in range(5000):
        (site,) = ant.admit([lease_of(f"http://10.0.{number >> 8}.{number & 255}")])
        ant.due_again(site, 1e9 + number)
        ant.leave(site, inf)
    assert len(ant._timers) < 1100
    assert 5.0 <= ant.wake_at() < 5.1


def test_a_site_that_asks_for_an_hour_gets_it_also_when_the_process_is_killed():
    def answer(fetch, at):
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else (503, {"retry-after": "3600"}, b"", 0.1)

    drive = Drive(collection_of(["http://one.example/", "http://one.example/two"]), answer)
    drive.run(seconds=60)
    assert [kind for _, kind, _ in drive.log] == ["robots", "page"]
    kept = drive.store.site("http://one.example").state  # what a new process would find, had this one been killed
    assert kept.failures == 1
    assert kept.next_at > drive.log[1][0] + 3600
    drive.run(seconds=2 * 86_400)
    pages = sorted(at for at, kind, _ in drive.log if kind == "page")
    assert pages[1] - pages[0] > 3600
