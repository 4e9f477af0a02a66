"""A server that goes back in time beneath the processes of a store: they notice, and what was lost is mended."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.servers.set_backs import WAYS, TimeMachine
from tests.servers.valkey import single
from tests.store.invariants import check_valid
from tests.store.stores import active, lease, link, links, outcome
from webfountain.errors import InputError, StoreError
from webfountain.frontier.sites.site import state_of
from webfountain.policy.tables import PolitenessTable
from webfountain.policy.units import Duration
from webfountain.records import LOST_LIFE, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.set_backs import Way
    from webfountain.store.shared.store import SharedStore

SITES = [f"https://s{number}.example" for number in range(6)]


@contextlib.contextmanager
def opened(url: str) -> Iterator[SharedStore]:
    store = open_store(url, collection="tests", period_s=10.0)
    with contextlib.closing(store):
        yield store  # type: ignore[misc]


@pytest.fixture(params=WAYS)
def machine(request: pytest.FixtureRequest) -> Iterator[TimeMachine]:
    way: Way = request.param
    with TimeMachine(way) as machine:
        yield machine


def test_no_page_is_settled_under_the_lease_of_another_life(machine: TimeMachine) -> None:
    """The numbers of leases were given again, and one page was written under another's key."""
    with opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(*range(20), site=SITES[0]), at=1.0)
        site = active(store, SITES[0], until=50.0)
        machine.remember()
        old = lease(store, site, 5)
        settled = lease(store, site, 3)
        assert store.queues.settle([outcome(one, 2.0) for one in settled], at=2.0).applied == 3
        machine.go_back()
        assert store.queues.lease([Refill(site, never_crawled=5)]) == [None]
        assert store.queues.settle([outcome(one, 3.0) for one in old], at=3.0).applied == 0
        [again] = store.sites.activate(9, owner="ant", until=60.0, at=3.0)
        assert again.lost_by is not None, "so its delay is waited out"
        taken = lease(store, again, 20)
        assert len(taken) == 20
        assert not {one.id.number for one in taken} & {one.id.number for one in old + settled}
        assert store.queues.settle([outcome(one, 4.0) for one in old + settled], at=4.0).applied == 0
        assert store.queues.settle([outcome(one, 4.0) for one in taken], at=4.0).applied == 20
        for number in range(20):
            record = store.pages.get(SITES[0], link(number).key)
            assert record is not None
            assert record.url == f"{SITES[0]}/{number}"
        check_valid(store)


def test_what_a_process_made_known_or_forgot_since_is_so_again(machine: TimeMachine) -> None:
    with opened(f"{machine.url}?shards=4") as store, opened(machine.url) as other:
        for site in SITES:
            store.queues.discover(links(1, 2, site=site), at=1.0)
        other.queues.discover(links(3, site=SITES[0]), at=1.0)
        machine.remember()
        store.queues.discover([link(number, site=site) for site in SITES for number in (4, 5)], at=2.0)
        store.queues.immediate(links(6, site=SITES[1]), at=2.0)
        assert store.pages.forget(SITES[2], link(1).key, at=2.0) == 1
        store.board.put_value("plan", b"the new one")
        other.queues.discover(links(7, site=SITES[3]), at=2.0)
        machine.go_back()
        assert store.queues.discover(links(1, site=SITES[5]), at=3.0).new == 0
        assert other.queues.discover(links(1, site=SITES[5]), at=3.0).new == 0
        for site in SITES:
            assert store.pages.get(site, link(5).key) is not None
        assert store.pages.get(SITES[1], link(6).key) is not None
        assert store.pages.get(SITES[2], link(1).key) is None
        assert store.queues.discover(links(1, site=SITES[2]), at=4.0).new == 0, "it is barred still"
        assert store.pages.get(SITES[3], link(7).key) is not None, "each process mends what it did"
        assert store.board.value("plan") == b"the new one"
        check_valid(store)


def test_each_process_is_informed_once_and_of_its_own_sites(machine: TimeMachine) -> None:
    with opened(f"{machine.url}?shards=4") as store, opened(machine.url) as other:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        mine = store.sites.activate(3, owner="first", until=50.0, at=1.0)
        machine.remember()
        store.queues.discover(links(2, site=mine[0].site), at=2.0)
        other.queues.discover([link(3, site=site) for site in SITES], at=2.0)
        machine.go_back()
        assert store.lives.take_set_back() is None
        store.queues.discover(links(2, site=mine[0].site), at=3.0)
        found, theirs = store.lives.take_set_back(), None
        assert found is not None
        assert (mine[0].site, mine[0].token) in found.voided
        assert store.lives.take_set_back() is None
        other.queues.discover([link(4, site=site) for site in SITES], at=3.0)
        theirs = other.lives.take_set_back()
        assert theirs is not None
        assert theirs.voided == frozenset()
        assert store.lives.life == other.lives.life, "one new name, whoever noticed first"


def test_who_takes_a_site_waits_for_a_process_that_took_it_in_the_lost_life(machine: TimeMachine) -> None:
    """Nobody may have noticed the loss yet, not even who takes the site: it took no step that was lost."""
    with opened(f"{machine.url}?shards=4") as store, opened(machine.url) as other:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        other.sites.activate(1, owner="other", until=10.0, at=1.0)
        machine.remember()
        lost = store.sites.activate(2, owner="ant", until=10.0, at=1.0)
        assert {one.lost_by for one in lost} == {None}
        machine.go_back()
        taken = other.sites.activate(9, owner="other", until=12.0, at=3.0)
        assert {one.site for one in taken} > {one.site for one in lost}
        assert {one.lost_by for one in taken} == {LOST_LIFE}
        state = state_of(taken[0], PolitenessTable(min_delay=Duration(2.0)), 3.0)
        assert state.next_at == 14.0, "until the lease of who knows nothing would end, and the delay after that"
        other.sites.park([ParkRequest(one, 3.0, state) for one in taken], at=3.0)
        store.queues.discover(links(2, site=lost[0].site), at=4.0)
        again = store.sites.activate(9, owner="ant", until=13.0, at=4.0)
        had = {one.site for one in lost}
        assert {one.lost_by for one in again if one.site in had} == {"ant"}, "who had them gave them up"


@pytest.mark.parametrize("by_name", [False, True])
def test_who_starts_after_a_loss_that_nobody_noticed_waits_too(machine: TimeMachine, by_name: bool) -> None:
    """It took the server for the one that it had always been, and asked sites that another process still used."""
    with opened(f"{machine.url}?shards=4") as store:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        machine.remember()
        assert len(store.sites.activate(9, owner="ant", until=10.0, at=1.0)) == len(SITES)
        machine.go_back()
        with opened(machine.url) as later:
            way = later.sites.enlist(SITES, owner="new", until=12.0, at=3.0) if by_name else None
            taken = later.sites.activate(9, owner="new", until=12.0, at=3.0) if way is None else way
            assert [one.lost_by for one in taken] == [LOST_LIFE] * len(SITES)


def test_who_starts_after_two_losses_that_nobody_noticed_waits_too(machine: TimeMachine) -> None:
    """What somebody took between the two is as free as what was taken before the first."""
    with opened(f"{machine.url}?shards=4") as store, opened(machine.url) as other:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        machine.remember()
        store.sites.activate(2, owner="ant", until=10.0, at=1.0)
        machine.go_back()
        machine.remember()
        other.sites.activate(9, owner="other", until=10.0, at=1.0)
        machine.go_back()
        with opened(machine.url) as later:
            taken = later.sites.activate(9, owner="new", until=12.0, at=3.0)
            assert [one.lost_by for one in taken] == [LOST_LIFE] * len(SITES)


def test_who_waited_for_another_when_the_store_went_back_again_does_not_vouch_for_its_sites(
    machine: TimeMachine,
) -> None:
    """It gave them up and took them anew at once, but the process for which it had waited still used them."""
    with opened(f"{machine.url}?shards=1") as store, opened(machine.url) as other:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        machine.remember()
        assert len(store.sites.activate(9, owner="ant", until=10.0, at=1.0)) == len(SITES)
        for at in (2.0, 3.0):
            machine.go_back()
            machine.remember()
            taken = other.sites.activate(9, owner="other", until=at + 9.0, at=at)
            assert [one.lost_by for one in taken] == [LOST_LIFE] * len(SITES)
        other.sites.renew(taken, until=21.0)
        machine.go_back()
        taken = other.sites.activate(9, owner="other", until=22.0, at=13.0)
        assert [one.lost_by for one in taken] == ["other"] * len(SITES), "now the wait is over"


@pytest.mark.parametrize("way", ["snapshot", "cut file"])
def test_a_life_that_ended_does_not_come_back_with_the_state_that_it_had(way: Way) -> None:
    with TimeMachine(way) as machine, opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        machine.remember()
        lives = [store.lives.life]
        for at in (2.0, 3.0, 4.0):
            store.queues.discover(links(2, site=SITES[0]), at=at)
            cursor = store.changes.end()
            machine.go_back()
            store.sites.renew([], until=at)
            lives.append(store.lives.life)
            assert store.lives.current() == store.lives.life
            with pytest.raises(InputError, match="read the whole list first"):
                store.changes.after(cursor, 9)
        assert len(set(lives)) == 4


def test_sites_of_a_new_store_and_of_a_crawl_started_again_on_its_own_server_are_not_waited_for(tmp_path: Path) -> None:
    for at in (1.0, 2.0):
        store = open_store(f"valkey://{tmp_path}", collection="tests", period_s=10.0)
        with contextlib.closing(store):
            store.queues.discover([link(1, site=site) for site in SITES], at=at)
            taken = store.sites.activate(9, owner="ant", until=at + 9.0, at=at)
            assert [one.lost_by for one in taken] == [None] * len(SITES)
            store.sites.park([ParkRequest(one, at, SiteState()) for one in taken], at=at)


def test_a_user_who_may_not_read_the_servers_name_is_refused_in_one_line() -> None:
    with single() as (url, client), opened(f"{url}?shards=2") as store:
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        client.acl_setuser("default", enabled=True, commands=["-info"])
        try:
            with pytest.raises(StoreError, match="may not call INFO") as caught:
                store.sites.activate(1, owner="ant", until=9.0, at=1.0)
            assert "\n" not in str(caught.value)
            with pytest.raises(StoreError, match="may not call INFO"), opened(url):
                pass
        finally:
            client.acl_setuser("default", enabled=True, commands=["+info"])


def test_what_a_process_had_to_the_end_of_a_lost_life_and_gave_up_waits_out_its_delay_alone(
    machine: TimeMachine,
) -> None:
    with opened(f"{machine.url}?shards=1") as store:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        [known] = store.sites.activate(1, owner="ant", until=10.0, at=1.0)
        machine.remember()
        [new] = store.sites.activate(1, owner="ant", until=10.0, at=1.0)
        machine.go_back()
        store.queues.discover(links(2, site=SITES[0]), at=2.0)
        taken = {one.site: one.lost_by for one in store.sites.activate(9, owner="ant", until=12.0, at=3.0)}
        assert taken == {site: "ant" if site in (known.site, new.site) else LOST_LIFE for site in SITES}
        check_valid(store)


def test_a_process_stops_before_others_can_take_the_sites_that_it_gives_up(machine: TimeMachine) -> None:
    with opened(f"{machine.url}?shards=1") as store, opened(machine.url) as other:
        store.queues.discover([link(1, site=site) for site in SITES], at=1.0)
        store.sites.activate(9, owner="ant", until=50.0, at=1.0)
        free: list[int] = []
        store.lives.before_loss(lambda: free.append(len(other.sites.activate(9, owner="other", until=60.0, at=3.0))))
        machine.remember()
        store.queues.discover(links(2, site=SITES[0]), at=2.0)
        machine.go_back()
        store.queues.discover(links(2, site=SITES[0]), at=3.0)
        assert free == [0]
        assert len(other.sites.activate(9, owner="other", until=60.0, at=3.0)) == len(SITES)


def test_a_restart_that_lost_nothing_changes_nothing() -> None:
    with TimeMachine("cut file") as machine, opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(*range(9), site=SITES[0]), at=1.0)
        site = active(store, SITES[0], until=50.0)
        held = lease(store, site, 4)
        life = store.lives.life
        machine.remember()
        machine.go_back()
        assert store.queues.settle([outcome(one, 2.0) for one in held], at=2.0).applied == 4
        assert store.lives.take_set_back() is None
        assert store.lives.life == life


def test_a_cursor_of_a_lost_life_is_refused_for_good(machine: TimeMachine) -> None:
    """It was refused while the log was shorter, then taken, and entries were passed over."""
    with opened(f"{machine.url}?shards=2") as store:
        store.queues.discover(links(*range(40), site=SITES[0]), at=1.0)
        site = active(store, SITES[0], until=50.0)
        store.queues.settle([outcome(one, 2.0) for one in lease(store, site, 5)], at=2.0)
        machine.remember()
        store.queues.settle([outcome(one, 3.0) for one in lease(store, site, 5)], at=3.0)
        cursor = store.changes.end()
        machine.go_back()
        store.queues.discover(links(1, site=SITES[0]), at=4.0)
        for at in (5.0, 6.0, 7.0):
            with pytest.raises(InputError, match="read the whole list first"):
                store.changes.after(cursor, 9)
            site = active(store, SITES[0], until=50.0)
            store.queues.settle([outcome(one, at) for one in lease(store, site, 5)], at=at)
            store.sites.park([], at=at)
        with opened(machine.url) as later, pytest.raises(InputError, match="read the whole list first"):
            later.changes.after(cursor, 9)
        urls = [change.url for _, change in store.changes.after(None, 99)]
        assert len(urls) == len(set(urls)), "each change once in the log of its life"


def test_a_store_whose_server_was_emptied_is_gone_in_one_line() -> None:
    with single() as (url, client), opened(f"{url}?shards=2") as store:
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        client.flushall()
        for _ in range(2):
            with pytest.raises(StoreError, match="the store is gone, because its server was emptied"):
                store.queues.discover(links(2, site=SITES[0]), at=2.0)
            with pytest.raises(StoreError, match="the store is gone"):
                store.sites.renew([], until=5.0)
        assert client.keys("*life") == [], "nothing is written into an empty server"


def test_a_store_that_another_made_anew_on_an_emptied_server_is_gone_for_who_had_the_old_one() -> None:
    """It was taken for a set-back, and what the process remembered went into the new store."""
    with single() as (url, client), opened(f"{url}?shards=2") as store:
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        client.flushall()
        with opened(f"{url}?shards=2") as new:
            for _ in range(2):
                with pytest.raises(StoreError, match="the store is gone, because its server was emptied or replaced"):
                    store.queues.discover(links(2, site=SITES[0]), at=2.0)
            assert list(new.sites.names()) == []


def test_a_store_of_a_version_that_gave_it_no_name_is_checked_again_and_again() -> None:
    with single() as (url, client):
        with opened(f"{url}?shards=2"):
            pass
        [key] = client.keys("*meta")
        described = json.loads(client.get(key) or "")
        assert described.pop("id")
        client.set(key, json.dumps(described))
        with opened(url) as store:
            for until in (5.0, 6.0, 7.0):
                assert store.sites.renew([], until=until) == []


@pytest.mark.parametrize("shards", [1, 5])
def test_a_cursor_is_refused_for_good_though_no_process_saw_the_loss(machine: TimeMachine, shards: int) -> None:
    url = f"{machine.url}?shards={shards}"
    with opened(url) as store:
        store.queues.discover([link(number, site=site) for site in SITES for number in range(9)], at=1.0)
        settle_some(store, 2, at=2.0)
        early = store.changes.end()
        machine.remember()
        settle_some(store, 2, at=3.0)
        cursors = [cursor for cursor, entry in store.changes.after(None, 99) if entry.at == 3.0]
    machine.go_back()
    with opened(url) as store:
        settle_some(store, 4, at=4.0)
        assert len(store.changes.after(early, 99)) == 4 * len(SITES), "what was read before it still holds"
        assert store.changes.trim(before=0.0, most=20) > 0
        for cursor in cursors[-3:]:
            with pytest.raises(InputError, match="read the whole list first"):
                store.changes.after(cursor, 9)


def settle_some(store: SharedStore, n: int, *, at: float) -> None:
    """Fetch `n` pages of each site."""
    taken = store.sites.activate(99, owner="ant", until=1e9, at=1e8)
    for site in taken:
        store.queues.settle([outcome(one, at) for one in lease(store, site, n)], at=at)
    store.sites.park([ParkRequest(site, at, SiteState()) for site in taken], at=at)


def test_a_mark_that_a_shard_may_have_dropped_is_not_missed() -> None:
    """Shards drop the marks of processes that were silent for two hours, or those that died would pile up."""
    with single() as (url, client), opened(f"{url}?shards=1") as store:
        now = [1e9]
        store.lives._now = lambda: now[0]
        store.queues.discover(links(1, site=SITES[0]), at=1.0)
        now[0] += 3 * 3600.0
        [key] = client.keys("*}life")
        client.hset(key, mapping={f"{number:08x}": int(1e12) for number in range(100)})
        with opened(f"{url}?shards=1") as other:
            other.lives._now = lambda: now[0]
            other.queues.discover(links(2, site=SITES[0]), at=2.0)
        assert client.hlen(key) == 3, "the life, the server, and who was there last"
        assert store.queues.discover(links(3, site=SITES[0]), at=3.0).new == 1
        store.sites.renew([], until=5.0)
        assert store.lives.take_set_back() is None
