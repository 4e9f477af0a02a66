"""The embedded store outlives its process, keeps others out, says whose it is, and is read while it is written."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.invariants import check_valid
from tests.store.stores import PERIOD_S, SITE, active, crawled, lease, link, links, numbers, outcome, recrawl_due
from webfountain.core.buckets import bucket_of, interval_of
from webfountain.core.change_rate import Prior, Totals, append, estimate_interval
from webfountain.errors import StoreBound, StoreError, StoreHeld, StoreVersion
from webfountain.records import Outcome, SiteState
from webfountain.store.answers import ParkRequest
from webfountain.store.contract import PLAN
from webfountain.store.embedded.disk import CACHE_BYTES, WriteBatch, open_reading, open_writing
from webfountain.store.embedded.keys import META
from webfountain.store.embedded.opening import open_embedded
from webfountain.store.lanes import AT_ONCE
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.store import EmbeddedStore


def opened(folder: Path, *, read_only: bool = False, collection: str | None = "tests") -> EmbeddedStore:
    return open_embedded(folder, collection=collection, period_s=PERIOD_S, read_only=read_only)


WRITER = textwrap.dedent("""
    import sys
    from tests.store.stores import PERIOD_S, crawled, link, outcome
    from webfountain.records import SiteState
    from webfountain.store.opening import open_store
    from webfountain.store.answers import ParkRequest, Refill

    store = open_store(f"rocksdb://{sys.argv[1]}", collection="tests", period_s=PERIOD_S)
    held = None
    start = int(sys.argv[2])
    for step in range(start, start + 100_000):
        site = f"https://site-{step % 7}.example"
        store.queues.discover([link(3 * step + n, site=site) for n in range(3)], at=float(step))
        held = next(iter(store.sites.activate(1, owner="ant", until=1e9, at=1e8)), held)
        (dealt,) = store.queues.lease([Refill(held, never_crawled=2)])
        leases = dealt.never_crawled
        if leases:
            store.queues.settle([outcome(leases[0], float(step))], at=float(step))
        print(step, leases[0].record.url if leases else "-", flush=True)
        if step % 5 == 0:
            store.sites.park([ParkRequest(held, float(step), SiteState())], at=float(step))
""")


def killed_writer(folder: Path, start: int, delay_s: float) -> list[tuple[int, str]]:
    """Run the writer until it is killed at a random moment; what it had acknowledged."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(start)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        head = process.stdout.readline()
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        lines = (head + process.stdout.read()).decode().splitlines(keepends=True)
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [(int(step), url) for step, url in whole]


def check_acknowledged(folder: Path, acknowledged: list[tuple[int, str]]) -> None:
    store = opened(folder)
    check_valid(store)
    states = {record.url: record.state for _, record in store.pages.records()}
    for step, settled in acknowledged:
        urls = [f"https://site-{step % 7}.example/{3 * step + n}" for n in range(3)]
        assert states.keys() >= set(urls), f"step {step} was acknowledged and its links are gone"
        assert settled == "-" or states[settled] == "crawled"
    counts = store.census.statistics()
    assert counts.leased == counts.active_sites == 0
    sites = store.sites.activate(99, owner="ant", until=1e9, at=1e9)
    waiting = sum(len(lease(store, site, 10**6)) for site in sites)
    assert waiting == counts.pages["never-crawled"], "a URL that was leased has not come back"
    store.close()


def kill_and_check(folder: Path, kills: int) -> None:
    chance = random.Random(20260101)
    acknowledged: list[tuple[int, str]] = []
    for _ in range(kills):
        start = acknowledged[-1][0] + 2 if acknowledged else 0
        acknowledged += killed_writer(folder, start, chance.uniform(0.0, 0.2))
        check_acknowledged(folder, acknowledged)


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 2)


@pytest.mark.soak
def test_twenty_killed_processes_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 20)


def test_a_second_writer_learns_who_holds_the_store_and_what_to_do(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(StoreHeld) as held:
        opened(tmp_path)
    line = str(held.value)
    assert f"by this process {os.getpid()} on {socket.gethostname()} since 2" in line
    assert "stop that crawl" in line
    assert "\n" not in line
    store.close()
    opened(tmp_path).close()


def test_a_holder_that_died_does_not_hold(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "holder").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    opened(tmp_path).close()
    assert not (tmp_path / "holder").exists()


def test_a_holder_note_that_cannot_be_read_still_gives_a_clear_line(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / "holder").write_text("{")
    with pytest.raises(StoreHeld, match="held by another process; stop"):
        opened(tmp_path)
    store.close()


def test_a_reopened_store_has_the_block_cache_and_the_filters_of_a_new_one(tmp_path: Path) -> None:
    """rocksdict gives its options only to the column families that it creates, unless they are named."""
    for number in range(2):
        opened(tmp_path).close()
        written = sorted((tmp_path / "db").glob("OPTIONS-*"))[-1].read_text()
        assert "filter_policy=bloomfilter" in written, f"opening {number + 1}"
    for disk in (open_writing(tmp_path), open_reading(tmp_path)):
        assert disk._db.property_value("rocksdb.block-cache-capacity") == str(CACHE_BYTES)
        disk.close()


def test_another_collection_is_refused_and_the_store_stays_usable(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for read_only in (False, True):
        with pytest.raises(StoreBound, match="holds the collection 'tests', not 'other'") as bound:
            opened(tmp_path, collection="other", read_only=read_only)
    assert bound.value.exit_status == 2
    opened(tmp_path).close()


@pytest.mark.parametrize("meta", [msgspec.msgpack.encode([99, "tests"]), b"\xc1", b"", msgspec.msgpack.encode({})])
def test_another_format_is_refused(tmp_path: Path, meta: bytes) -> None:
    opened(tmp_path).close()
    disk = open_writing(tmp_path)
    batch = WriteBatch(raw_mode=True)
    batch.put(META, meta)
    disk.write(batch)
    disk.close()
    with pytest.raises(StoreVersion, match="this version reads format 2"):
        opened(tmp_path)


def test_a_store_gives_its_own_collection_to_a_caller_without_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.discover(links(1), at=1.0)
    store.close()
    again = open_store(f"rocksdb://{tmp_path}", collection=None, period_s=None)
    assert again.pages.forget(SITE, link(1).key, at=2.0) == 1
    again.close()


def test_another_period_drops_the_census_rows_and_keeps_the_pages(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.discover([link(1, source="")], at=1.0)
    assert store.census.rows(since=0)
    store.close()
    again = open_store(f"rocksdb://{tmp_path}", collection="tests", period_s=2 * PERIOD_S)
    assert again.census.rows(since=0) == []
    assert again.pages.get(SITE, link(1).key) is not None
    again.close()


def test_a_bucket_may_have_more_pages_than_eight_bytes_hold_the_times_of(tmp_path: Path) -> None:
    late = 5e15  # seconds: two such times are as much as those of ten million pages today
    store = opened(tmp_path)
    store.queues.discover(links(1, 2), at=1.0)
    (site,) = store.sites.activate(1, owner="ant", until=9.0, at=1.0)
    store.queues.settle([outcome(one, late) for one in lease(store, site, 2)], at=2.0)
    before = store.census.buckets()
    store.close()
    again = opened(tmp_path)
    assert [each.pages for each in before.values()] == [2]
    assert again.census.buckets() == before
    again.close()


def test_a_reader_follows_a_store_that_is_being_written(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.discover(links(1), at=1.0)
    reader = opened(tmp_path, read_only=True, collection=None)
    assert reader.census.statistics().pages["never-crawled"] == 1
    store.queues.discover(links(2, 3), at=2.0)
    (site,) = store.sites.activate(1, owner="ant", until=9.0, at=2.0)
    store.queues.settle([outcome(one, 3.0) for one in lease(store, site, 1)], at=3.0)
    store.queues.immediate(links(2), at=3.0)
    counts = reader.census.statistics()
    assert (counts.pages["never-crawled"], counts.pages["crawled"]) == (2, 1)
    assert (counts.active_sites, counts.immediate) == (1, 1)
    assert reader.census.buckets() == store.census.buckets()
    assert reader.sites.after("", 9) == store.sites.after("", 9)
    assert list(reader.pages.records()) == list(store.pages.records())
    assert reader.sites.next_due() is None
    lease(store, site, 9, queue="immediate")
    lease(store, site, 9)
    store.queues.settle([], at=3.0, learned=[(site, b"x")])
    store.sites.park([ParkRequest(site, 4.0, SiteState())], at=5.0)
    assert reader.sites.next_due() == 4.0
    store.queues.discover(links(9), at=3.0)
    assert reader.sites.next_due() == 3.0
    assert reader.pages.get(SITE, link(1).key) == store.pages.get(SITE, link(1).key)
    reader.close()
    reader.close()
    store.close()
    store.close()


def test_a_reader_that_polls_sees_each_step_at_once_also_where_the_writer_begins_a_new_log(tmp_path: Path) -> None:
    disk = open_writing(tmp_path)
    reader = open_reading(tmp_path)
    for step in range(40):
        reader.refresh()  # nothing is new
        batch = WriteBatch(raw_mode=True)
        batch.put(b"k%d" % step, b"v")
        disk.write(batch)
        if step % 7 == 3:
            disk._db.flush()
        reader.refresh()
        assert reader.get(b"k%d" % step) == b"v"
    reader.close()
    disk.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    opened(tmp_path).close()
    reader = opened(tmp_path, read_only=True)
    with pytest.raises(StoreError, match="opened for reading only"):
        reader.queues.discover(links(1), at=1.0)
    reader.close()


def test_there_is_nothing_to_read_where_no_store_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        opened(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_gives_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot open the store for writing") as failed:
        opened(tmp_path / "file" / "store")
    assert "\n" not in str(failed.value)
    assert str(tmp_path) in str(failed.value)


FULL_DISK = textwrap.dedent("""
    import resource, sys
    from tests.store.stores import PERIOD_S, SITE, link, outcome
    from webfountain.errors import StoreError
    from webfountain.records import SiteState
    from webfountain.store.opening import open_store
    from webfountain.store.answers import ParkRequest, Refill

    def refused(step):
        try:
            step()
        except StoreError:
            return
        raise AssertionError("a step was taken on a full disk")

    store = open_store(f"rocksdb://{sys.argv[1]}", collection="tests", period_s=PERIOD_S)
    store.queues.discover([link(1_000_000, importance=9.0)], at=1.0)
    (site,) = store.sites.activate(1, owner="ant", until=9.0, at=1.0)
    (dealt,) = store.queues.lease([Refill(site, never_crawled=1)])
    (one,) = dealt.never_crawled
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    taken = 1
    try:
        for step in range(10_000):
            store.queues.discover([link(100 * step + n) for n in range(100)], at=1.0)
            taken += 100
    except StoreError as error:
        assert store.census.statistics().pages["never-crawled"] == taken, "the counts include the step that failed"
        before = store.census.statistics(), store.sites.get(SITE), store.census.buckets(), store.census.rows(since=0)
        refused(lambda: store.queues.settle([outcome(one, 2.0)], at=2.0))
        refused(lambda: store.sites.park([ParkRequest(site, 4.0, SiteState())], at=2.0))
        refused(lambda: store.pages.forget(SITE, at=2.0))
        refused(lambda: store.queues.immediate([link(7_000_000)], at=2.0))
        after = store.census.statistics(), store.sites.get(SITE), store.census.buckets(), store.census.rows(since=0)
        assert before == after, "a step that was refused changed a count"
        print(taken, error)
    store.close()
""")


def test_a_full_disk_fails_the_step_with_one_line_and_keeps_the_steps_before(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True, timeout=240
    )
    taken, _, line = done.stdout.strip().partition(" ")
    assert line.startswith(f"{tmp_path}: cannot write (")
    assert "\n" not in line
    store = opened(tmp_path)
    assert store.census.statistics().pages["never-crawled"] == int(taken) > 0
    check_valid(store)
    store.close()


def test_a_disk_that_is_gone_gives_one_clear_line(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.steps.disk._db.close()
    for step in (
        lambda: store.queues.discover(links(1), at=1.0),
        lambda: store.pages.get(SITE, b"x"),
        lambda: list(store.pages.records()),
    ):
        with pytest.raises(StoreError, match="cannot read the store"):
            step()


def test_a_lease_walks_over_settled_entries_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.discover(links(*range(3000)), at=1.0)
    (site,) = store.sites.activate(1, owner="ant", until=9.0, at=1.0)
    while leases := lease(store, site, 500):
        store.queues.settle([outcome(one, 2.0, bucket=one.id.number % 3) for one in leases], at=2.0)
    assert store.census.statistics().pages["crawled"] == 3000
    store.queues.discover([link(5000, importance=9.0)], at=3.0)
    (one,) = lease(store, site, 500)
    assert one.record.url == f"{SITE}/5000"
    assert [lane for lane, _ in recrawl_due(store, site)] == [0, 1, 2]
    leased = lease(store, site, 4000, queue="recrawl")
    assert len(leased) == 3000
    assert recrawl_due(store, site) == []
    store.close()


def test_a_token_of_before_a_restart_settles_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.discover(links(1), at=1.0)
    before = active(store)
    (old,) = lease(store, before, 1)
    store.close()
    store = opened(tmp_path)
    (new,) = lease(store, active(store), 1)
    assert store.sites.renew([before], until=99.0) == []
    assert store.queues.settle([outcome(old, 2.0)], at=2.0).lost == 1
    assert store.queues.settle([outcome(new, 2.0)], at=2.0).applied == 1
    store.close()


def test_the_immediate_queue_and_the_active_sites_survive_a_restart(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.queues.immediate(links(3, 1, 2), at=1.0)
    first, _ = lease(store, active(store), 2, queue="immediate")
    store.queues.settle([outcome(first, 6.0)], at=6.0)
    store.close()
    store = opened(tmp_path)
    assert (store.census.statistics().immediate, store.census.statistics().active_sites) == (2, 0)
    assert store.sites.next_due() == AT_ONCE
    urls = [one.record.url for one in lease(store, active(store), 9, queue="immediate")]
    assert urls == [f"{SITE}/1", f"{SITE}/2"]
    assert store.census.period_s == PERIOD_S
    check_valid(store)
    store.close()


def damage(folder: Path) -> None:
    """Flip one bit in the middle of the largest table."""
    table = max((folder / "db").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 3] ^= 1
    table.write_bytes(data)


@pytest.mark.parametrize("reopened", [open_writing, open_reading])
def test_a_damaged_block_fails_the_scan_that_meets_it(tmp_path: Path, reopened: Callable[[Path], Disk]) -> None:
    """RocksDB's iterator is at its end there, as if it had read all."""
    disk = open_writing(tmp_path)
    batch = WriteBatch(raw_mode=True)
    for number in range(3000):
        batch.put(b"P%05d" % number, bytes(100))
    disk.write(batch)
    disk.close()
    damage(tmp_path)
    disk = reopened(tmp_path)
    with pytest.raises(StoreError, match=r"cannot read the store \(Corruption") as failed:
        list(disk.scan(b"P", b"Q"))
    assert "\n" not in str(failed.value)
    disk.close()


def test_all_files_and_folders_of_a_store_are_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    store = opened(folder)
    store.queues.discover(links(*range(100)), at=1.0)
    modes(folder)
    store.close()
    store = opened(folder)
    assert modes(folder) == {"file": {0o600}, "folder": {0o700}}
    store.close()
    assert modes(folder) == {"file": {0o600}, "folder": {0o700}}
    assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_files_that_were_open_to_others_are_closed_to_them(tmp_path: Path) -> None:
    opened(tmp_path / "store").close()
    for path in (tmp_path / "store" / "db").iterdir():
        path.chmod(0o644)
    (tmp_path / "store" / "db").chmod(0o755)
    store = opened(tmp_path / "store")
    assert modes(tmp_path / "store" / "db") == {"file": {0o600}, "folder": {0o700}}
    store.close()


def modes(folder: Path) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {"file": set(), "folder": set()}
    for path in (folder, *folder.rglob("*")):
        found["folder" if path.is_dir() else "file"].add(path.stat().st_mode & 0o777)
    return found


def test_a_folder_with_lock_in_its_name_is_not_held_by_anybody(tmp_path: Path) -> None:
    folder = tmp_path / "lock" / "blocks"
    (folder / "db" / "LOCK").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot open the store for writing") as failed:
        opened(folder)
    assert not isinstance(failed.value, StoreHeld)


HOLDER = textwrap.dedent("""
    import sys
    from tests.store.stores import PERIOD_S
    from webfountain.store.opening import open_store

    store = open_store(f"rocksdb://{sys.argv[1]}", collection="tests", period_s=PERIOD_S)
    print("open", flush=True)
    sys.stdin.read()
    store.close()
""")


def test_a_store_that_another_process_writes_is_held(tmp_path: Path) -> None:
    run = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreHeld, match=f"held by process {process.pid} on"):
            opened(tmp_path)
        process.stdin.close()


def test_a_store_is_read_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a read-only file system, which a test cannot make: there `os.access` says so."""
    store = opened(tmp_path)
    store.queues.discover(links(1), at=1.0)
    store.close()
    store = opened(tmp_path)
    store.queues.discover(links(2), at=1.0)  # in the log only
    options = tmp_path / "db" / "rocksdict-config.json"
    before = options.stat()
    monkeypatch.setattr(os, "access", lambda *_: False)
    reader = opened(tmp_path, read_only=True)
    assert [record.url for _, record in reader.pages.records()] == [f"{SITE}/1", f"{SITE}/2"]
    assert options.stat().st_mtime_ns == before.st_mtime_ns
    assert reader.census.statistics().pages["never-crawled"] == 2
    reader.close()
    store.close()


def test_a_small_store_stays_small_while_its_pages_are_written_again_and_again(tmp_path: Path) -> None:
    disk = open_writing(tmp_path)
    live, written = 1_000_000, 0
    while written < 150 * live:
        batch = WriteBatch(raw_mode=True)
        for number in range(1000):
            batch.put(b"P%05d" % number, os.urandom(1000))
        disk.write(batch)
        written += live
        assert shrinks_below(35 * live, tmp_path), "of the log at most 17, and four tables of the same pages"
    disk.close()


def test_a_store_that_grows_by_new_urls_is_neither_flushed_nor_merged_for_its_size(tmp_path: Path) -> None:
    disk = open_writing(tmp_path)
    for number in range(30):
        batch = WriteBatch(raw_mode=True)
        for page in range(1000):
            batch.put(b"P%02d%03d" % (number, page), bytes(1000))
        disk.expect_new(batch.size_in_bytes())
        disk.write(batch)
    assert not list((tmp_path / "db").glob("*.sst"))
    disk.close()


def test_lanes_that_a_lease_has_not_come_to_are_found_by_the_next(tmp_path: Path) -> None:
    stores = [opened(tmp_path), open_store("memory:", collection="tests", period_s=PERIOD_S)]
    leased: list[list[int]] = []
    for store in stores:
        store.queues.discover([link(number, importance=2.0**-number) for number in (1, 3, 3, 5, 7)], at=1.0)
        site = active(store)
        found = numbers(lease(store, site, 2))
        # Into lanes before, at, between and behind those that were read.
        store.queues.discover([link(10 + n, importance=2.0**-n) for n in (0, 3, 4, 9)], at=2.0)
        for n in (1, 2, 9):
            found += numbers(lease(store, site, n))
        leased.append(found)
        store.close()
    assert leased[0] == leased[1]
    assert sorted(leased[0]) == [1, 3, 5, 7, 10, 13, 14, 19]


def shrinks_below(size: int, folder: Path, *, within_s: float = 240.0) -> bool:
    """While files are merged the old ones are there beside the new one: on a busy machine that takes a while."""
    deadline = time.monotonic() + within_s
    while bytes_of(folder) >= size:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def bytes_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it was merged into another meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def test_both_zeros_of_an_importance_are_one(tmp_path: Path) -> None:
    """The race of the stores found two records of one page that differ in the sign of nothing."""
    stores = [opened(tmp_path), open_store("memory:", collection="tests", period_s=PERIOD_S)]
    for store in stores:
        store.queues.discover([link(1, importance=-0.0), link(2, importance=0.0)], at=1.0)
        assert {str(record.importance) for _, record in store.pages.records()} == {"0.0"}
        store.close()


def test_bucket_bytes_are_made_anew_from_the_histories_when_their_unit_changes(tmp_path: Path) -> None:
    def at_unit(fastest_s: float | None) -> EmbeddedStore:
        return open_embedded(tmp_path, collection="tests", period_s=96.0, fastest_s=fastest_s, read_only=False)

    store = at_unit(None)
    assert store.census.fastest_s == 1.0
    store.queues.discover(links(1, 2, 3), at=1.0)
    history = b""
    for _ in range(20):
        history = append(history, 50.0, changed=False)
    for one, past in zip(lease(store, active(store), 2), (b"", history), strict=True):
        record = msgspec.structs.replace(
            crawled(one.record, 1100.0, bucket=100), history=past, checks=len(past), first_seen=100.0
        )
        store.queues.settle([Outcome(one.id, "new", record)], at=1100.0)
    store.board.put_value(PLAN, b"in the old unit")
    store.close()
    store = at_unit(4.0)
    assert store.census.fastest_s == 4.0
    believed, learned = (store.pages.get(SITE, link(number).key) for number in (1, 2))
    assert believed is not None
    assert learned is not None
    assert believed.bucket == bucket_of(interval_of(100, 1.0), 4.0)
    prior = Prior(interval_of(100, 1.0))
    assert learned.bucket == bucket_of(estimate_interval(history, totals=Totals(20, 0, 1000.0), prior=prior), 4.0)
    assert learned.bucket > believed.bucket
    assert store.board.value(PLAN) is None
    assert [lane for lane, _ in recrawl_due(store, active(store))] == [believed.bucket, learned.bucket]
    check_valid(store)
    store.close()
    again = at_unit(None)
    assert again.census.fastest_s == 4.0
    assert again.pages.get(SITE, link(2).key) == learned
    again.close()
