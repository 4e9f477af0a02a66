"""The index equals the collection: after the whole list, after changes, after kills, after a lost cursor."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.crawled import PAGES, SITES, crawled_store
from webfountain.api.opening import open_stored
from webfountain.api.search import INDEX_FILE
from webfountain.report.store_reading import copies, reading
from webfountain.search.follower import Follower, behind
from webfountain.search.search_index import IndexedText, SearchFilter, SearchIndex
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from webfountain.errors import RepositoryError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store that nobody writes."""
    folder = tmp_path_factory.mktemp("search") / "store"
    crawled_store(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, crawled: Path) -> Path:
    """The same, to be changed."""
    shutil.copytree(crawled, tmp_path / "store")
    return tmp_path / "store"


def held(folder: Path) -> set[str]:
    """The pages of a collection that can be searched."""
    collection = open_stored(f"rocksdb://{folder}")
    found, since = dict[str, bool](), None
    while part := collection.texts(since=since, limit=1000):
        found |= {each.url: each.text is not None for each in part}
        since = part[-1].cursor
    collection.close()
    return {url for url, is_held in found.items() if is_held}


def indexed(folder: Path) -> set[str]:
    index = SearchIndex(folder / INDEX_FILE, read_only=True)
    found = {url for url, _, _ in index.urls()}
    index.close()
    return found


def catch_up(folder: Path) -> tuple[int, int | None]:
    """How many pages were indexed, and how many changes the index lacks thereafter."""
    lost: list[RepositoryError] = []
    with reading(f"rocksdb://{folder}") as store, copies(f"rocksdb://{folder}", None) as pages:
        index = SearchIndex(folder / INDEX_FILE)
        done = Follower(store, pages, index, unreadable=lost.append).catch_up()
        lacks = behind(store, index.state().cursor)
        index.close()
    assert not lost
    return done, lacks


def test_the_index_has_every_held_page_and_follows_the_log(folder: Path) -> None:
    assert catch_up(folder)[1] == 0
    assert indexed(folder) == held(folder) == {f"{site}/{n}" for site in SITES for n in [*range(PAGES), ""] if n != 7}
    assert catch_up(folder)[0] == 0
    store = open_store(f"rocksdb://{folder}", collection=None, period_s=None)
    for number in (3, 5):
        store.pages.forget(SITES[0], fingerprint(f"{SITES[0]}/{number}"), at=2e9)
    store.close()
    collection = open_stored(f"rocksdb://{folder}")
    assert collection.search.progress().behind == 2
    catch_up(folder)
    assert collection.search.progress().behind == 0
    found = collection.search.find('"words of a page"', site=SITES[0], limit=100)
    assert {each.url for each in found.items} == {url for url in indexed(folder) if url.startswith(SITES[0])}
    assert all("words" in (each.excerpt or "") for each in found.items)
    collection.close()
    assert indexed(folder) == held(folder)


def test_a_lost_cursor_begins_anew_and_drops_what_is_gone(folder: Path) -> None:
    catch_up(folder)
    index = SearchIndex(folder / INDEX_FILE)
    cursor = index.state().cursor
    assert cursor is not None
    oldest = cursor.split("-")[0] + "-0"
    index.apply([IndexedText("http://gone.example/", "new", 1.0, "left", "over")], oldest)
    store = open_store(f"rocksdb://{folder}", collection=None, period_s=None)
    store.changes.trim(before=9e9, most=1)
    store.close()
    catch_up(folder)
    assert indexed(folder) == held(folder)
    assert index.find("over", SearchFilter()) == []
    index.close()


def kill_while_indexing(folder: Path, times: int) -> None:
    draw = random.Random(5)
    command = [sys.executable, "-m", "webfountain", "index", "--store", f"rocksdb://{folder}", "--follow"]
    for number in range(times):
        if number % 3 == 2:
            (folder / INDEX_FILE).unlink(missing_ok=True)
            for each in folder.glob(INDEX_FILE + "-*"):
                each.unlink()
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, env=dict(os.environ))
        begun = (folder / INDEX_FILE).exists()
        until = time.monotonic() + 240
        while not begun and not (folder / INDEX_FILE).exists() and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(draw.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    catch_up(folder)
    assert indexed(folder) == held(folder)


def test_after_a_kill_the_index_equals_the_collection(folder: Path) -> None:
    kill_while_indexing(folder, 2)


@pytest.mark.soak
def test_after_twenty_kills_the_index_equals_the_collection(folder: Path) -> None:
    kill_while_indexing(folder, 20)
