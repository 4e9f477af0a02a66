"""A collection on a server is read as one in a folder is, with the processes that crawl it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import webfountain
from tests.api.crawled import SITES, answer
from tests.frontier.drive import Drive, collection_of
from tests.store.stores import server_url
from webfountain.clock import ManualClock
from webfountain.errors import InputError
from webfountain.frontier.inbox.inboxes import FeedInbox
from webfountain.history.publishing import ClaimPlace
from webfountain.history.recorder import Recorder
from webfountain.repository.repository import Repository
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.shared_contract import Feed


def test_a_collection_on_a_server_is_read(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}&shards=4"
    rules = collection_of([f"{site}/" for site in SITES], min_delay="10ms", delay_factor=0, period="5m")
    store = open_store(url, collection="test", period_s=300.0, fastest_s=rules.cycle.fastest_s)
    drive = Drive(rules, answer, store=store, repository=Repository(tmp_path / "copies"))
    drive.run(seconds=20)
    recorder = Recorder(drive.frontier, drive.metrics, now=drive.clock.now)
    assert store.claims is not None
    ClaimPlace(store.claims).put(recorder.snapshot())
    assert recorder.record(store) is not None
    with webfountain.open(url, repository=tmp_path / "copies") as collection:
        assert collection.status().known == sum(store.census.statistics().pages.values()) > 20
        assert [each.owner for each in collection.live()] == ["test"]
        assert sum(each.fetches for each in collection.history(since=0)) > 20
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            part, cursor = collection.pages(SITES[0], after=cursor, limit=7)
            found += [page.url for page in part]
        assert len(found) == len(set(found)) == sum(collection.sites(limit=1)[0].pages.values())
        assert "words of a page" in collection.text(f"{SITES[0]}/3")
        first = collection.changes(reader="index", limit=5)
        first[-1].done()
        assert collection.changes(reader="index", limit=1)[0].cursor != first[0].cursor
        assert collection.now([f"{SITES[0]}/new"]).accepted == [f"{SITES[0]}/new"]
        feed = store.feed()
        assert feed is not None
        assert feed.waiting() == 1
    drive.frontier.close()


def test_notes_to_block_and_to_drain_reach_the_right_process(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix={tmp_path.name}&shards=4"
    rules = collection_of([f"{site}/" for site in SITES], min_delay="10ms", delay_factor=0, period="5m")
    clock = ManualClock(time.time())  # the server compares with its own clock who lives

    def ant(name: str) -> Drive:
        store = open_store(url, collection="test", period_s=300.0, fastest_s=rules.cycle.fastest_s)
        return Drive(rules, answer, store=store, inbox=FeedInbox(present(store.feed())), clock=clock, owner=name)

    def run(seconds: float) -> None:
        end = clock.now() + seconds
        while clock.now() < end:
            for each in (first, second):
                heart = each.frontier.heart
                if heart is not None and (beat := heart.beat()) is not None:
                    heart.apply(beat())
                while each.step():
                    pass
            clock.set(clock.now() + 0.25)

    first, second = ant("first"), ant("second")
    run(20)
    with webfountain.open(url, repository=tmp_path) as collection:
        collection.block(f"{SITES[0]}/")
        with pytest.raises(InputError, match="first, second"):
            collection.drain("third")
        collection.drain("second")
        run(20)
        assert [each.prefix for each in collection.blocks()] == [f"{SITES[0]}/"]
        assert (
            collection.now([f"{SITES[0]}/2"]).refused[0].why
            == "it is blocked (`webfountain unblock` removes the block)"
        )
        assert collection.now([f"{SITES[1]}/2"]).accepted
        begin = len(first.log), len(second.log)
        run(400)
        asked = [url for _, _, url in first.log[begin[0] :]]
        assert not any(url.startswith(SITES[0]) for url in asked)
        assert f"{SITES[1]}/2" in asked, "the other goes on with the sites of who left"
        assert len(second.log) == begin[1]
        assert (first.frontier.finish_reason(), second.frontier.finish_reason()) == (None, "drained")
        second.frontier.close()
        collection.unblock(SITES[0])
        run(60)
        assert any(url.startswith(SITES[0]) for _, _, url in first.log[begin[0] :])
        assert collection.blocks() == []
    first.frontier.close()


def present(feed: Feed | None) -> Feed:
    assert feed is not None
    return feed
