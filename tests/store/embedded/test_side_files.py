"""An embedded store that lost the end of its write-ahead log: its change log goes on under another name."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.store.stores import SITE, active, lease, links, make_store, outcome
from webfountain.errors import InputError
from webfountain.records import SiteState
from webfountain.store.answers import ParkRequest
from webfountain.store.embedded.side_files import LOG_END

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore


def crawl(store: FrontierStore, n: int, at: float) -> None:
    """Settle `n` pages more."""
    site = active(store)
    for one in lease(store, site, n):
        store.queues.settle([outcome(one, at)], at=at)
    store.sites.park([ParkRequest(site, at, SiteState())], at=at)


def copied(folder: Path, into: Path) -> Path:
    """The folder as a process that is killed now would leave it."""
    shutil.copytree(folder, into)
    return into


def cut(folder: Path, share: float) -> None:
    """Lose the end of the write-ahead log, as a power cut does."""
    log = max(folder.glob("db/*.log"), key=lambda file: file.stat().st_size)
    with log.open("rb+") as file:
        file.truncate(int(share * log.stat().st_size))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_cursor_is_refused_for_good_once_entries_behind_it_were_lost(
    tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    """It was refused while the log was shorter, then taken, and entries were passed over."""
    store = make_store("embedded", tmp_path / "a")
    store.queues.discover(links(*range(90)), at=1.0)
    store.close()
    store = make_store("embedded", tmp_path / "a")
    crawl(store, 30, at=2.0)
    cursor = store.changes.end()
    killed = copied(tmp_path / "a", tmp_path / "b")
    store.close()
    cut(killed, share)
    with caplog.at_level(logging.WARNING):
        store = make_store("embedded", killed)
    [said] = [message for message in caplog.messages if "entries of the change log and their steps are lost" in message]
    assert "read the whole list first" in said
    for at in (3.0, 4.0, 5.0):
        with pytest.raises(InputError, match="read the whole list first"):
            store.changes.after(cursor, 9)
        crawl(store, 40, at=at)
    assert store.census.statistics().pages["crawled"] == 90
    urls = [change.url for _, change in store.changes.after(None, 999)]
    assert len(urls) == len(set(urls)) == 90
    good = store.changes.end()
    store.close()
    caplog.clear()
    store = make_store("embedded", killed)
    assert store.changes.after(good, 9) == []
    assert not caplog.messages, "said once"
    store.close()


def test_a_kill_that_lost_nothing_leaves_the_log_its_name(tmp_path: Path) -> None:
    store = make_store("embedded", tmp_path / "a")
    store.queues.discover(links(*range(9)), at=1.0)
    crawl(store, 5, at=2.0)
    cursor = store.changes.end()
    killed = copied(tmp_path / "a", tmp_path / "b")
    store.close()
    store = make_store("embedded", killed)
    assert store.changes.after(cursor, 9) == []
    crawl(store, 4, at=3.0)
    assert len(store.changes.after(cursor, 9)) == 4
    store.close()


def test_a_cursor_of_a_folder_that_was_brought_back_whole_is_refused_for_good(tmp_path: Path) -> None:
    """Nothing in the folder tells that it is an old one: the cursor does."""
    store = make_store("embedded", tmp_path / "a")
    store.queues.discover(links(*range(30)), at=1.0)
    crawl(store, 5, at=2.0)
    early = store.changes.end()
    old = copied(tmp_path / "a", tmp_path / "b")
    crawl(store, 5, at=3.0)
    cursor = store.changes.end()
    store.close()
    store = make_store("embedded", old)
    crawl(store, 20, at=4.0)
    with pytest.raises(InputError, match="read the whole list first"):
        store.changes.after(cursor, 9)
    assert len(store.changes.after(early, 99)) == 20, "what was read before it still holds"
    assert {change.site for _, change in store.changes.after(early, 99)} == {SITE}
    store.close()


@pytest.mark.parametrize("garbage", [b"\xff" * 8, b"garbage!", b"\0\0\0", b"\0" * 7 + b"\5" + b"more"])
def test_a_damaged_note_of_the_end_is_said_in_one_line_and_the_log_goes_on_under_another_name(
    tmp_path: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store("embedded", tmp_path)
    store.queues.discover(links(*range(9)), at=1.0)
    crawl(store, 5, at=2.0)
    cursor = store.changes.end()
    store.close()
    (tmp_path / LOG_END).write_bytes(garbage)
    with caplog.at_level(logging.WARNING):
        store = make_store("embedded", tmp_path)
    (line,) = caplog.messages
    assert f"{tmp_path}: {LOG_END} is damaged" in line
    with pytest.raises(InputError, match="read the whole list first"):
        store.changes.after(cursor, 9)
    store.close()
    caplog.clear()
    make_store("embedded", tmp_path).close()
    assert not caplog.messages, "said once"
