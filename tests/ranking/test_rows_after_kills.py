"""The link log of a crawl that is killed again and again: each settled page has its row."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.duplicates.copied_sites import page, text
from tests.frontier.drive import Answer, Drive, collection_of
from tests.ranking.rankers import WithShards
from webfountain.clock import ManualClock
from webfountain.ranking.link_importance import live_importance
from webfountain.ranking.link_log import LinkLogReader, fingerprint
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

HOME = "http://a.example/"
PAGES = 120
DAY = 86_400.0


def answer(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.1
    number = int(fetch.url.rpartition("/")[2] or 0)
    links = [f"{HOME}{number * 5 + step}" for step in range(1, 6) if number * 5 + step < PAGES]
    return 200, {"content-type": "text/html"}, page(text(number, words=30), *links).encode(), 0.1


def crawl(folder: Path, life: int, fetches: int | None) -> None:
    """One life of a crawl, that dies once it has asked for so many pages."""
    at = 1_000_000.0 + life * 600
    store = open_store(f"rocksdb://{folder}", collection="test", period_s=DAY)
    collection = collection_of([HOME], rest='[ranking]\nevery = "30s"\n', min_delay="100ms")
    clock = ManualClock(at)
    importance = live_importance(collection, folder, writer=f"ant{life}", at=at, ranker=WithShards())
    drive = Drive(collection, answer, store=store, clock=clock, importance=importance)
    drive.run(seconds=500.0, until=None if fetches is None else lambda: die(len(drive.asked()) >= fetches))
    drive.frontier.close()


def die(is_time: bool) -> None:
    if is_time:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("lives", [[7, 23, 14], pytest.param([5, 9, 13, 3] * 8, marks=pytest.mark.soak)])
def test_no_settled_page_is_without_its_row(tmp_path: Path, lives: list[int]) -> None:
    for life, fetches in enumerate(lives):
        process = multiprocessing.get_context("fork").Process(target=crawl, args=(tmp_path, life, fetches))
        process.start()
        process.join()
    crawl(tmp_path, len(lives), None)
    with closing(open_store(f"rocksdb://{tmp_path}", collection="test", period_s=DAY)) as store:
        settled = {fingerprint(record.url) for _, record in store.pages.records(state="crawled")}
    rows = {source for table in LinkLogReader(str(tmp_path / "links")).rows() for source in table["source"].to_pylist()}
    assert len(settled) == PAGES
    assert settled <= rows
