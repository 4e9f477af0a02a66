"""The active list orders for those whose place is known and forgets what left it."""

from __future__ import annotations

import random
from math import inf

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.ant import Ant
from webfountain.frontier.schedule import NoRecrawl
from webfountain.metrics import Metrics
from webfountain.policy.tables import PolitenessTable
from webfountain.records import SiteRecord


def ant_of(active_sites):
    return Ant(
        politeness=PolitenessTable(),
        schedule=NoRecrawl,
        now=lambda: 0.0,
        rng=random.Random(1),
        metrics=Metrics(),
        active_sites=active_sites,
        hand=1,
    )


def record_of(name):
    return SiteRecord(name, pages=(0,) * 6, due=0.0, first_seen=0.0)


def test_leases_are_ordered_for_a_site_once_its_host_is_resolved():
    ant = ant_of(2)
    ant.admit([record_of("http://10.0.0.1"), record_of("http://one.example")])
    assert [order.site for order in ant.orders(0.0)] == ["http://10.0.0.1"]
    assert ant.unresolved() == ["one.example"]
    ant.resolved("one.example", ["203.0.113.9"])
    assert [order.site for order in ant.orders(0.0)] == ["http://one.example"]
    assert ant.orders(0.0) == []


def test_sites_that_left_are_not_remembered_until_their_pages_are_due():
    ant = ant_of(1)
    (stays,) = ant.admit([record_of("http://10.9.9.9")])
    ant.due_again(stays, 5.0)
    for number in range(5000):
        (site,) = ant.admit([record_of(f"http://10.0.{number >> 8}.{number & 255}")])
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
