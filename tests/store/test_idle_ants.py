"""Commands beside ants that are alive but have nothing to do: notes go to them, and what is said of that is so."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.repository.captures import Crawl, capture, records, url_of
from tests.servers.valkey import cluster
from tests.store.stores import SITE, links, server_url
from webfountain.cli import main
from webfountain.frontier.inbox.inboxes import FeedInbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.repository.repository import Repository
from webfountain.store.opening import open_store
from webfountain.store.shared_contract import has_ants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.frontier.inbox.notes import DeliveryResult
    from webfountain.store.contract import FrontierStore


@pytest.fixture(scope="module")
def clustered() -> Iterator[str]:
    with cluster() as server:
        yield server


@pytest.fixture(params=["single", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    server = request.getfixturevalue("clustered") if request.param == "cluster" else server_url()
    return f"{server}?prefix=idle-{tmp_path.name}&shards=2"


@contextlib.contextmanager
def idle_ant(store: FrontierStore, repository: Repository | None = None) -> Iterator[list[DeliveryResult]]:
    """An ant that is alive, has no site, and reads its notes."""
    assert store.claims is not None
    feed, over, done = store.feed(), threading.Event(), []
    assert feed is not None
    store.claims.claim(["ant/one"], owner="one", until=4e9, at=time.time())

    def run() -> None:
        while not over.wait(0.02):
            done.append(FeedInbox(feed).deliver(store, repository, at=time.time()))

    ant = threading.Thread(target=run)
    ant.start()
    try:
        yield done
    finally:
        over.set()
        ant.join()
        store.claims.drop({"ant/one": 0.0}, owner="one", at=time.time())


def fetch(store: Any, repository: Repository, url: str, body: bytes) -> None:
    """A page whose copy is in the repository, on a site that is parked again."""
    crawl = Crawl()
    crawl.store = store
    crawl.settle([url], repository.write([capture(url, body)]))


def test_an_idle_ant_counts_and_one_that_is_gone_does_not(url: str) -> None:
    with contextlib.closing(open_store(url, collection="tests", period_s=10.0)) as store:
        assert store.census.statistics().active_sites == 0
        assert has_ants(store.claims, at=time.time())  # one that has just opened the store, this process
    with contextlib.closing(open_store(url, collection=None, period_s=None)) as store:
        assert not has_ants(store.claims, at=time.time())
        with idle_ant(store):
            assert has_ants(store.claims, at=time.time())
            assert not has_ants(store.claims, at=4e9)
        assert not has_ants(store.claims, at=time.time())


def test_now_beside_an_idle_ant_says_that_it_was_taken(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(open_store(url, collection="tests", period_s=10.0)) as store:
        with idle_ant(store) as done:
            assert main(["now", f"{SITE}/1", "--store", url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["taken"] is True
        assert sum(each.immediate for each in done) == 1
    assert main(["now", f"{SITE}/2", "--store", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["taken"] is False


def test_forget_beside_an_idle_ant_erases_its_copies(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ant holds its folder: only it can erase there, and the note was for nobody."""
    place = tmp_path / "copies" / "ant-1"
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(contextlib.closing(open_store(url, collection="tests", period_s=10.0)))
        repository = stack.enter_context(contextlib.closing(Repository(place, number=1)))
        fetch(store, repository, url_of(1), b"<p>an address of a person</p>")
        with idle_ant(store, repository) as done:
            command = ["forget", url_of(1), "--store", url, "--repository", str(tmp_path / "copies"), "--json"]
            assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["taken"] is True
        assert sum(each.erased for each in done) > 0
    assert not any(b"an address of a person" in content for _, content in records(place))


def test_copies_in_a_folder_that_is_held_by_nobody_known_are_left_to_the_next_ant(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An ant that ends has let go of its name and still holds its folder: the note is not done."""
    place = tmp_path / "copies" / "ant-1"
    with contextlib.closing(open_store(url, collection="tests", period_s=10.0)) as store:
        store.queues.discover(links(1), at=1.0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(Repository(place, number=1)))
        store = stack.enter_context(contextlib.closing(open_store(url, collection=None, period_s=None)))
        command = ["forget", f"{SITE}/1", "--store", url, "--repository", str(tmp_path / "copies"), "--json"]
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["taken"] is False
        feed = store.feed()
        assert feed is not None
        [note] = FeedInbox(feed).waiting(time.time())
        assert not isinstance(note.note, NowNote)
