"""The shared store beyond the contract: many shards, a cluster, faults of the server, what a URL costs."""

from __future__ import annotations

import json
import logging
import math
import random
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.servers.valkey import SERVERS, cluster, single
from tests.store.invariants import check_valid
from tests.store.stores import ALWAYS, active, crawled, lease, link, outcome, server_url
from webfountain.cli import command_of
from webfountain.clock import ManualClock
from webfountain.commands import changes, texts
from webfountain.commands import pages as commands_pages
from webfountain.commands import status as commands_status
from webfountain.errors import CursorLost, InputError, StoreBound, StoreError, StoreVersion
from webfountain.frontier.cluster.ant_notes import AntNote
from webfountain.frontier.inbox.inboxes import FeedInbox
from webfountain.frontier.inbox.notes import DeliveryResult, ForgetNote
from webfountain.records import Link, Outcome, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.change_log import is_cursor
from webfountain.store.lanes import AT_ONCE, LANES
from webfountain.store.locations import without_password
from webfountain.store.opening import open_store
from webfountain.store.shared.connection import connect
from webfountain.store.shared.due_times import ALL_AGAIN_S, DueTimes
from webfountain.store.shared.layout import store_keys
from webfountain.store.shared.opening import FORMAT
from webfountain.store.shared.scripts import Shards
from webfountain.store.transfer_rows import ChangeEntry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click import Command

    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import FeedForm

SITES = [f"https://s{number}.example" for number in range(40)]


def links_of(sites: list[str], pages: int) -> list[Link]:
    return [link(number, site=site) for site in sites for number in range(pages)]


def opened(url: str) -> FrontierStore:
    return open_store(url, collection="tests", period_s=10.0)


@pytest.fixture(scope="module")
def cluster_url() -> Iterator[str]:
    with cluster() as url:
        yield url


@pytest.fixture(params=["one server", "cluster"])
def sharded(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store of 16 shards."""
    url = server_url() if request.param == "one server" else request.getfixturevalue("cluster_url")
    return f"{url}?prefix={tmp_path.name}&shards=16"


def test_every_site_of_every_shard_is_activated_once_and_its_pages_leased_once(sharded: str) -> None:
    store = opened(sharded)
    assert store.queues.discover(links_of(SITES, 3), at=1.0).new == 120
    found = []
    while leases := store.sites.activate(7, owner="ant", until=50.0, at=2.0):
        assert len(leases) <= 7
        found += leases
    assert sorted(one.site for one in found) == sorted(SITES)
    dealt = store.queues.lease([Refill(one, 0, 10, 0) for one in found])
    got = [each for deal in dealt if deal is not None for each in deal.never_crawled]
    assert len({each.record.url for each in got}) == len(got) == 120
    assert store.queues.settle([outcome(each, 3.0) for each in got], at=3.0).applied == 120
    assert store.census.statistics().pages["crawled"] == 120
    assert store.sites.next_due() == 50.0
    assert sorted(each.site for each in store.sites.after("", 100)) == sorted(SITES)
    check_valid(store)
    store.close()


def test_two_processes_divide_the_sites_between_them(sharded: str) -> None:
    first, second = opened(sharded), opened(sharded)
    first.queues.discover(links_of(SITES, 1), at=1.0)
    ours = first.sites.activate(20, owner="first", until=50.0, at=2.0)
    theirs = second.sites.activate(100, owner="second", until=50.0, at=2.0)
    assert len(ours) == len(theirs) == 20
    assert not {one.site for one in ours} & {one.site for one in theirs}
    first.close()
    second.close()


def test_an_ant_that_was_paused_settles_nothing_of_a_site_that_another_took_over(sharded: str) -> None:
    paused, other = opened(sharded), opened(sharded)
    paused.queues.discover(links_of(SITES[:1], 2), at=1.0)
    [old] = paused.sites.activate(1, owner="paused", until=10.0, at=2.0)
    held = lease(paused, old, 2)
    [new] = other.sites.activate(1, owner="other", until=99.0, at=11.0)
    again = lease(other, new, 2)
    assert {each.key for each in again} == {each.key for each in held}
    assert paused.queues.settle([outcome(each, 12.0) for each in held], at=12.0).applied == 0
    assert paused.sites.renew([old], until=50.0) == []
    assert other.queues.settle([outcome(each, 12.0) for each in again], at=12.0).applied == 2
    paused.close()
    other.close()


def test_a_read_of_a_store_at_rest_is_one_command_however_many_shards_it_has(tmp_path: Path) -> None:
    with single() as (url, client):
        store = opened(f"{url}?shards=256")
        store.queues.discover(links_of(SITES, 1), at=1.0)
        assert len(store.sites.activate(99, owner="ant", until=50.0, at=2.0)) == 40
        assert store.sites.next_due() == 50.0
        before = client.info("stats")["total_commands_processed"]
        assert store.sites.activate(99, owner="ant", until=50.0, at=3.0) == []
        assert store.sites.next_due() == 50.0
        # This question, and that before it, are commands as well.
        assert client.info("stats")["total_commands_processed"] - before <= 2 + 2
        store.close()


def test_a_poll_for_immediate_urls_is_one_command_and_those_of_another_process_are_seen(tmp_path: Path) -> None:
    with single() as (url, client):
        store, other = opened(f"{url}?shards=256"), opened(f"{url}?shards=256")
        store.queues.discover(links_of(SITES, 1), at=1.0)
        [first, *_] = store.sites.activate(99, owner="ant", until=50.0, at=2.0)
        assert store.sites.urgent("ant") == []
        before = client.info("stats")["total_commands_processed"]
        assert store.sites.urgent("ant") == []
        assert client.info("stats")["total_commands_processed"] - before <= 1 + 2
        other.queues.immediate([link(0, site=first.site)], at=3.0)
        assert [lease.site for lease in store.sites.urgent("ant")] == [first.site]
        assert [lease.site for lease in store.sites.urgent("ant")] == [first.site], "until it is leased"
        [dealt] = store.queues.lease([Refill(first, immediate=5)])
        assert dealt is not None
        assert len(dealt.immediate) == 1
        assert store.sites.urgent("ant") == []
        store.queues.release([lease.id for lease in dealt.immediate])
        assert [lease.site for lease in store.sites.urgent("ant")] == [first.site], "what was given back is there again"
        store.close()
        other.close()


def test_what_another_process_lets_be_due_sooner_is_seen_at_the_next_poll(sharded: str) -> None:
    one, other = opened(sharded), opened(sharded)
    assert one.sites.next_due() is None
    other.queues.discover(links_of(SITES[:1], 2), at=9.0)
    assert one.sites.next_due() == 9.0
    [lease_of_one] = one.sites.activate(1, owner="one", until=50.0, at=9.0)
    assert other.sites.next_due() == 50.0
    held = lease(one, lease_of_one, 1)
    one.queues.settle([outcome(each, 10.0) for each in held], at=10.0)
    one.sites.park([ParkRequest(lease_of_one, 40.0, SiteState())], at=11.0)
    assert other.sites.next_due() == 40.0
    one.queues.advance(SITES[0], [each.key for each in held], due=12.0, at=11.0)
    assert other.sites.next_due() == 12.0
    one.sites.enlist(SITES[:1], owner="one", until=11.5, at=11.0)
    assert other.sites.next_due() == 11.5
    one.queues.immediate(links_of(SITES[1:2], 1), at=11.0)
    assert other.sites.next_due() == AT_ONCE
    one.close()
    other.close()


def test_what_nobody_reported_is_found_within_a_minute_and_at_once_when_the_server_was_set_back() -> None:
    with single() as (url, client):
        store = opened(f"{url}?shards=16")
        store.queues.discover(links_of(SITES, 1), at=9.0)
        connection, clock = connect(url), ManualClock(0.0)
        shards = Shards(connection, prefix="webfountain", count=16)
        times = DueTimes(connection, shards, key=store_keys("webfountain").bell, rng=random.Random(1), now=clock.now)
        assert min(times.first()) == 9.0
        silent = shards.key(3, "due")
        client.zadd(silent, {"https://silent.example": 4.0})
        assert min(times.first()) == 9.0
        clock.advance(ALL_AGAIN_S)
        assert min(times.first()) == 4.0
        client.zadd(silent, {"https://silent.example": 2.0})
        client.delete(store_keys("webfountain").bell)
        assert min(times.first()) == 2.0
        connection.close()
        store.close()


def test_due_times_are_read_in_either_version_of_the_protocol() -> None:
    with single() as (url, _):
        for protocol in (2, 3):
            store = open_store(
                f"{url}?prefix=p{protocol}", collection="tests", period_s=10.0, parameters={"protocol": protocol}
            )
            store.queues.discover(links_of(SITES[:1], 1), at=9.0)
            assert store.sites.next_due() == 9.0
            assert [one.site for one in store.sites.activate(9, owner="ant", until=50.0, at=9.0)] == SITES[:1]
            assert store.sites.next_due() == 50.0
            store.close()


def crawl_all(store: FrontierStore, *, at: float) -> None:
    """Fetch a page of each active site's, one site after the other, a second apart."""
    for number, home in enumerate(store.sites.activate(99, owner="ant", until=math.inf, at=1e6)):
        store.queues.settle([outcome(each, at + number) for each in lease(store, home, 1)], at=at + number)


def test_the_logs_of_all_shards_are_read_as_one_in_order_of_time(sharded: str) -> None:
    store = opened(sharded)
    store.queues.discover(links_of(SITES, 1), at=1.0)
    begin = store.changes.end()
    crawl_all(store, at=10.0)
    read, cursor = [], begin
    while found := store.changes.after(cursor, 7):
        read += [entry for _, entry in found]
        cursor = found[-1][0]
    assert [entry.at for entry in read] == [10.0 + number for number in range(40)]
    assert [entry.sequence for entry in read] == list(range(1, 41))
    assert [entry for _, entry in store.changes.after(None, 99)] == read
    assert cursor == store.changes.end()
    assert is_cursor(cursor)
    for after, entry in store.changes.after(None, 99)[::9]:
        assert [each for _, each in store.changes.after(after, 99)] == read[entry.sequence :]
        assert [each for _, each in store.changes.after(store.changes.since(entry.at), 99)] == read[
            entry.sequence - 1 :
        ]
    store.close()


def test_the_oldest_of_all_shards_go_first_and_what_reaches_behind_them_is_lost(sharded: str) -> None:
    store = opened(sharded)
    begin = store.changes.end()
    store.queues.discover(links_of(SITES, 1), at=1.0)
    crawl_all(store, at=10.0)
    every = store.changes.after(None, 99)
    assert store.changes.trim(before=15.0, most=99) == 5
    assert store.changes.trim(before=15.0, most=12) == 23
    assert store.changes.trim(before=15.0, most=12) == 0
    assert [entry for _, entry in store.changes.after(None, 99)] == [entry for _, entry in every[28:]]
    assert store.changes.after(every[27][0], 99) == every[28:]
    for lost in (begin, every[26][0]):
        with pytest.raises(CursorLost, match="no longer reaches back"):
            store.changes.after(lost, 9)
    with pytest.raises(CursorLost, match="does not reach back"):
        store.changes.since(30.0)
    store.close()


def test_a_forgotten_site_leaves_nothing_said_of_it_in_its_shard(sharded: str) -> None:
    store = opened(sharded)
    store.queues.discover(links_of(SITES, 1), at=1.0)
    crawl_all(store, at=10.0)
    store.pages.forget(SITES[3], at=60.0)
    printed = [entry for _, entry in store.changes.after(None, 99) if entry.site == SITES[3]]
    assert [entry.verdict for entry in printed] == ["new", "forgotten"]
    assert len(store.changes.after(None, 99)) == 41
    store.close()


@pytest.mark.parametrize(
    "shape", ["{log}-5", "{log}.", "{log}.AAAA", "{log}.AAA=", "00000000.{numbers}", "{log}.{ahead}"]
)
def test_a_text_that_is_no_cursor_of_the_shards_logs_is_an_input_error(shape: str, tmp_path: Path) -> None:
    store = opened(f"{server_url()}?prefix={tmp_path.name}&shards=3")
    log, _, numbers = store.changes.end().partition(".")
    text = shape.format(log=log, numbers=numbers, ahead="AAABAA")
    with pytest.raises(InputError, match="is not a cursor of this store's change log"):
        store.changes.after(text, 9)
    assert store.changes.after(store.changes.end(), 9) == []
    store.close()


def test_a_site_of_thousands_of_pages_is_served_in_order_and_listed_whole(tmp_path: Path) -> None:
    """Its tree of places has three levels then."""
    store = opened(f"{server_url()}?prefix={tmp_path.name}")
    site = SITES[0]
    every = [link(number, site=site, importance=[0.25, 1.0, 4.0][number % 3]) for number in range(6_000)]
    for start in range(0, len(every), 3000):
        store.queues.discover(every[start : start + 3000], at=1.0)
    home = active(store, site, until=math.inf)
    served = []
    while batch := lease(store, home, 997):
        served += batch
        store.queues.settle([outcome(each, 2.0 + len(served) % 7, bucket=len(served) % 5) for each in batch], at=9.0)
    assert [each.record.importance for each in served] == [4.0] * 2000 + [1.0] * 2000 + [0.25] * 2000
    assert [each.key for each in served[:2000]] == [each.key for each in every if each.importance == 4.0]
    assert len({record.url for _, record in store.pages.records(site=site)}) == 6_000
    [dealt] = store.queues.lease([Refill(home, 0, 0, 100, None, ALWAYS)])
    assert dealt is not None
    assert len(dealt.recrawl) == 100
    assert store.pages.forget(site, at=10.0) == 6_000
    assert store.census.statistics().pages["crawled"] == 0
    store.close()


def test_a_server_that_dies_and_comes_back_is_waited_for_and_nothing_acknowledged_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With ``appendfsync always`` each answered step is on the disk."""
    with single(appendonly="yes", appendfsync="always") as (url, _):
        server = SERVERS[url]
        store = opened(f"{url}?shards=4")
        store.queues.discover(links_of(SITES[:4], 5), at=1.0)
        homes = store.sites.activate(4, owner="ant", until=50.0, at=2.0)
        dealt = store.queues.lease([Refill(home, 0, 5, 0) for home in homes])
        held = [each for deal in dealt if deal is not None for each in deal.never_crawled]
        server.terminate()
        pauses: list[float] = []

        def rest(pause: float) -> None:
            pauses.append(pause)
            if len(pauses) == 2:
                server.start(timeout=240.0)

        store._connection._rest = rest  # type: ignore[attr-defined]
        with caplog.at_level(logging.WARNING):
            assert store.queues.settle([outcome(each, 3.0) for each in held], at=3.0).applied == 20
        said = [each.message for each in caplog.records if "waiting for it" in each.message]
        assert len(said) == 1
        assert any("answers again" in each.message for each in caplog.records)
        check_valid(store)
        store.close()


def test_a_server_that_stays_away_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with single() as (url, _):
        store = opened(f"{url}?shards=1")
        clock = iter(range(0, 10**6, 100))
        store._connection._now = lambda: float(next(clock))  # type: ignore[attr-defined]
        store._connection._rest = lambda _: None  # type: ignore[attr-defined]
        SERVERS[url].terminate()
        with pytest.raises(StoreError, match="unusable for 3700 s"):
            store.queues.discover(links_of(SITES[:1], 1), at=1.0)


def test_what_the_server_forgets_of_scripts_is_sent_again(tmp_path: Path) -> None:
    store = opened(f"{server_url()}?prefix={tmp_path.name}&shards=2")
    store.queues.discover(links_of(SITES[:3], 1), at=1.0)
    connect(server_url()).client.script_flush()
    assert store.queues.discover(links_of(SITES[:3], 2), at=2.0).new == 3
    store.close()


def test_a_store_of_another_format_is_refused_with_the_way_to_move_it(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}"
    opened(url).close()
    connection, key = connect(server_url()), store_keys(tmp_path.name).meta
    meta = connection.ask(key, "GET", key)
    connection.ask(key, "SET", key, meta.replace(b'"format":%d' % FORMAT, b'"format":4'))
    with pytest.raises(StoreVersion, match=f"format 4; this version reads {FORMAT}; export it with"):
        opened(url)


@pytest.mark.parametrize(
    "garbage", [b"garbage", b"", b"\xff\xfe", b"[]", b'{"format": 5}', b'{"format": "five"}', b'"text"', b"null"]
)
def test_a_key_that_describes_no_store_is_refused_in_one_line(tmp_path: Path, garbage: bytes) -> None:
    connection, key = connect(server_url()), store_keys(tmp_path.name).meta
    connection.ask(key, "SET", key, garbage)
    with pytest.raises(StoreError, match=r"meta does not describe a store \("):
        opened(f"{server_url()}?prefix={tmp_path.name}")


def test_a_database_that_the_server_has_not_is_refused_in_one_line() -> None:
    with single() as (url, _), pytest.raises(StoreError, match="DB index is out of range"):
        connect(url, parameters={"db": 99})


def test_a_store_belongs_to_one_collection_and_keeps_its_number_of_shards(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}"
    opened(f"{url}&shards=3").close()
    again = opened(url)
    assert again._shards.count == 3  # type: ignore[attr-defined]
    again.close()
    with pytest.raises(StoreBound, match="holds the collection 'tests', not 'other'"):
        open_store(url, collection="other", period_s=10.0)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ("?shard=3", "shard is not a parameter"),
        ("?shards=0", "shards=0"),
        ("?shards=x", "shards=x"),
        ("?prefix=a%7Bb", "prefix"),
    ],
)
def test_a_wrong_parameter_is_named(more: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        opened(server_url() + more)


def test_a_store_that_is_not_there_is_not_made_by_reading() -> None:
    with pytest.raises(InputError, match="there is no store there"):
        open_store(f"{server_url()}?prefix=nobody", collection=None, period_s=None)


def test_a_server_that_may_drop_keys_or_keeps_no_file_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with single(**{"maxmemory-policy": "allkeys-lru"}) as (url, _), caplog.at_level(logging.WARNING):
        opened(url).close()
    assert any("maxmemory-policy allkeys-lru" in each.message for each in caplog.records)
    assert any("append-only file" in each.message for each in caplog.records)


def test_a_full_server_is_waited_for(tmp_path: Path) -> None:
    with single() as (url, client):
        store = opened(f"{url}?shards=1")
        client.config_set("maxmemory", "1mb")
        pauses: list[float] = []

        def rest(pause: float) -> None:
            pauses.append(pause)
            client.config_set("maxmemory", "0")

        store._connection._rest = rest  # type: ignore[attr-defined]
        assert store.queues.discover(links_of(SITES[:1], 2), at=1.0).new == 2
        assert len(pauses) == 1
        store.close()


def test_a_password_is_asked_for_and_never_shown() -> None:
    assert without_password("redis://me:secret@host:1/0") == "redis://me:***@host:1/0"
    with single() as (url, client):
        client.config_set("requirepass", "secret")
        with pytest.raises(StoreError, match=r"(?i)auth"):
            opened(url)
        store = opened(url.replace("unix://", "unix://:secret@"))
        assert store.queues.discover(links_of(SITES[:1], 2), at=1.0).new == 2
        store.close()


def test_status_sites_pages_and_changes_read_a_store_on_a_server(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}&shards=4"
    store = opened(url)
    store.queues.discover(links_of(SITES, 2), at=1.0)
    crawl_all(store, at=10.0)

    def said(command: Command, *arguments: str) -> str:
        found = CliRunner().invoke(command, ["--store", url, *arguments], catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    status = json.loads(said(commands_status.status, "--json"))
    assert (status["pages"]["crawled"], status["active_sites"], status["crawling"]) == (40, 40, False)
    assert "ants    none is running" in said(commands_status.status)
    assert store.claims is not None
    for name, note in {"ant/a": AntNote(5.0, sites=3, in_flight=2), "ant/b": AntNote(5.0, idle_since=4.0)}.items():
        notes = {name: msgspec.msgpack.encode(note)}
        store.claims.claim([name], owner=name[-1], until=time.time() + 60.0, at=time.time(), notes=notes)
    store.close()
    status = json.loads(said(commands_status.status, "--json"))
    assert status["crawling"]
    assert [(ant["name"], ant["sites"]) for ant in status["ants"]] == [("a", 3), ("b", 0)]
    assert "ants    2 running with 3, 0 sites; 2 requests in flight; 1 idle" in said(commands_status.status)
    assert len(json.loads(said(commands_pages.sites, "--json"))) == 40
    assert len(said(commands_pages.pages, "--jsonl").splitlines()) == 80
    lines = said(changes.changes, "--jsonl").splitlines()
    assert len(lines) == 40
    assert len(said(changes.changes, "--jsonl", "--since", json.loads(lines[29])["cursor"]).splitlines()) == 10


def test_a_command_that_needs_a_folder_says_so_of_a_store_on_a_server(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}"
    opened(url).close()
    with pytest.raises(InputError, match="--repository"):
        CliRunner().invoke(texts.texts, ["--store", url], catch_exceptions=False)


def test_a_log_says_nothing_of_a_forgotten_page_though_its_entries_were_not_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that died between the two left titles and digests to be read."""
    url = f"{server_url()}?prefix={tmp_path.name}&shards=1"
    store = opened(url)
    store.queues.discover(links_of(SITES[:1], 2), at=1.0)
    home = active(store, SITES[0])
    held = lease(store, home, 2)
    store.queues.settle([msgspec.structs.replace(outcome(each, 2.0), title="Said") for each in held], at=2.0)
    monkeypatch.setattr(store.changes, "erase", dying)
    with pytest.raises(ZeroDivisionError):
        store.pages.forget(SITES[0], held[0].key, at=3.0)
    entries = [entry for _, entry in opened(url).changes.after(None, 9)]
    assert [(entry.verdict, entry.title) for entry in entries] == [("new", None), ("new", "Said"), ("forgotten", None)]
    assert [row.change.title for row in opened(url).rows() if isinstance(row, ChangeEntry)] == [None, "Said", None]


def dying(*_: object) -> None:
    raise ZeroDivisionError


def test_notes_to_a_crawl_lie_on_the_server_and_go_to_one_process_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webfountain.commands.notes._TAKES_AT_MOST_S", 0.1)  # nobody takes them here
    url = f"{server_url()}?prefix={tmp_path.name}&shards=4"
    store, other = opened(url), opened(url)
    store.queues.discover(links_of(SITES[:2], 2), at=1.0)

    def run(*words: str) -> dict[str, Any]:
        found = CliRunner().invoke(command_of(words[0]), [*words[1:], "--store", url, "--json"], catch_exceptions=False)
        return json.loads(found.stdout)  # type: ignore[no-any-return]

    new = f"{SITES[2]}/now"
    assert run("now", new) == {"urls": [new], "taken": False}
    first, second = (FeedInbox(each.feed()) for each in (store, other))  # type: ignore[arg-type]
    [received] = first.waiting(at=10.0)
    assert second.waiting(at=11.0) == []
    assert not second.is_empty()
    # Who took it died: after a minute it is another's.
    assert second.waiting(at=80.0) == [received]
    assert second.deliver(other, None, at=200.0) == DeliveryResult(immediate=1)
    assert first.is_empty()
    [urgent] = store.sites.activate(9, owner="ant", until=1e9, at=0.0)
    assert urgent.site == SITES[2]
    store.sites.park([ParkRequest(urgent, 1e9, SiteState())], at=3.0)
    assert run("forget", "--site", SITES[0])["records"] == 2
    assert store.sites.get(SITES[0]) is None
    first.put(ForgetNote("nonsense"))
    store.feed().put([b"no note"])  # type: ignore[union-attr]
    # Whoever has the store open is taken for an ant: the copies of what was forgotten are left to it.
    assert first.deliver(store, None, at=300.0) == DeliveryResult(barred=(ForgetNote(SITES[0]),))
    assert first.is_empty()
    assert run("check")["whole"] is True
    for each in (store, other):
        each.close()


@pytest.mark.parametrize(("form", "push"), [("list", "rpush"), ("set", "sadd"), ("zset", "zadd")])
def test_an_entry_of_a_feed_is_taken_once_in_each_form(tmp_path: Path, form: FeedForm, push: str) -> None:
    store = opened(f"{server_url()}?prefix={tmp_path.name}&shards=1")
    client = store._connection.client  # type: ignore[attr-defined]
    key = f"{tmp_path.name}:start_urls"
    getattr(client, push)(
        key, {"low": 1, "high": 9} if form == "zset" else "high", *([] if form == "zset" else ["low"])
    )
    feed = store.feed(key, form)
    assert feed is not None
    taken = feed.take(1, until=5.0, at=1.0) + feed.take(5, until=5.0, at=1.0)
    assert sorted(each.data for each in taken) == [b"high", b"low"]
    if form != "set":
        assert [each.data for each in taken] == [b"high", b"low"]
    assert feed.waiting() == 2
    feed.done(taken[:1])
    assert [each.data for each in feed.take(5, until=9.0, at=6.0)] == [taken[1].data]
    feed.done(taken)
    assert feed.waiting() == 0
    store.close()


@pytest.mark.untraced
def test_a_url_costs_at_most_what_was_promised(tmp_path: Path) -> None:
    """140 bytes never-crawled, 320 crawled with history; the whole store over its URLs, of 60 bytes on 400 sites.

    Without the change log, which is bounded by its own setting.
    """
    with single() as (url, client):
        store = opened(url)
        before = client.info("memory")["used_memory"]
        sites = [f"https://site{number:05d}.example.org" for number in range(400)]
        every = [
            Link(f"{sites[n % 400]}/docs/page-{n:09d}-xxxxx.html", sites[n % 400], n.to_bytes(8, "little"), depth=3)
            for n in range(20_000)
        ]
        assert {len(each.url) for each in every} == {60}
        for start in range(0, len(every), 5000):
            store.queues.discover(every[start : start + 5000], at=1.75e9)
        waiting = (client.info("memory")["used_memory"] - before) / len(every)
        homes = store.sites.activate(400, owner="ant", until=math.inf, at=1.75e9)
        dealt = store.queues.lease([Refill(home, 0, 100, 0, None, [math.inf] * LANES) for home in homes])
        held = [each for deal in dealt if deal is not None for each in deal.never_crawled]
        outcomes = []
        for number, each in enumerate(held):
            at = 1.76e9 + number * 0.37
            page = crawled(each.record, at, bucket=number % 256)
            known = {"history": bytes(range(30)), "checks": 24, "changes": 3, "digest": f"{number:040x}", "status": 200}
            outcomes.append(Outcome(each.id, "new", msgspec.structs.replace(page, **known)))
        store.queues.settle(outcomes, at=1.77e9)
        assert store.changes.trim(before=math.inf, most=0) == 20_000
        after = (client.info("memory")["used_memory"] - before) / len(every)
        store.close()
    assert waiting <= 140
    assert after <= 320
