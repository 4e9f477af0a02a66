"""Rows that a link log lacks: every page has its row again after its next visit, also where it did not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.duplicates.copied_sites import page, text
from tests.frontier.drive import Answer, Drive, collection_of
from tests.ranking.rankers import WithShards
from webfountain.clock import ManualClock
from webfountain.ranking.link_files import COMPLETE_SINCE, DamagedFile, LogFiles
from webfountain.ranking.link_importance import live_importance
from webfountain.ranking.link_log import LinkLog, LinkLogReader, fingerprint
from webfountain.ranking.log_completeness import (
    GRACE_S,
    complete_since,
    damaged_files,
    incomplete_until,
    open_log,
)
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

HOME = "http://a.example/"
PAGES = 16
HOUR = 3600.0
START = 1_000_000.0
RANKED = '[ranking]\nevery = "30s"\n[policies.default]\nrevisit = { max_interval = "1h" }\n'
PLAIN = '[policies.default]\nrevisit = { max_interval = "1h" }\n'
ALL = {fingerprint(f"{HOME}{number or ''}") for number in range(PAGES)}


class Web:
    """Pages that never change, but for the first; half have a validator. `read` are the URLs of whole answers."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.1
        number = int(fetch.url.rpartition("/")[2] or 0)
        if fetch.etag is not None:
            return 304, {}, b"", 0.1
        self.read.append(fetch.url)
        links = [f"{HOME}{number * 5 + step}" for step in range(1, 6) if number * 5 + step < PAGES]
        headers = {"content-type": "text/html"} | ({"etag": '"1"'} if number % 2 else {})
        return 200, headers, page(text(number or int(at // HOUR), words=30), *links).encode(), 0.1


def crawl(folder: Path, web: Web, *, begin: float, seconds: float, rest: str = RANKED) -> None:
    store = open_store(f"rocksdb://{folder}", collection="test", period_s=HOUR)
    collection = collection_of([HOME], rest=rest, min_delay="100ms")
    clock = ManualClock(begin)
    importance = live_importance(collection, folder, writer="ant", at=begin, ranker=WithShards())
    drive = Drive(collection, web, store=store, clock=clock, importance=importance)
    drive.run(seconds=seconds)
    drive.frontier.close()


def rows(folder: Path) -> set[int]:
    log = LinkLogReader(str(folder / "links"))
    return {source for table in log.rows() for source in table["source"].to_pylist()}


def test_unchanged_pages_are_logged_again_after_files_were_damaged(tmp_path: Path) -> None:
    """The damage is found by the next ranking, which a changed page causes. Each page is read once, and then asked for
    with its validator again.
    """
    web = Web()
    crawl(tmp_path, web, begin=START, seconds=600.0)
    assert rows(tmp_path) >= ALL
    for path in (tmp_path / "links").glob("segments/links-*"):
        path.write_bytes(b"no such thing")
    crawl(tmp_path, web, begin=START + HOUR, seconds=3 * HOUR)
    assert rows(tmp_path) >= ALL
    whole = len(web.read)
    crawl(tmp_path, web, begin=START + 5 * HOUR, seconds=HOUR)
    assert all(int(url.rpartition("/")[2] or 0) % 2 == 0 for url in web.read[whole:])


def test_pages_of_a_damaged_journal_are_logged_again(tmp_path: Path) -> None:
    web = Web()
    crawl(tmp_path, web, begin=START, seconds=600.0, rest=PLAIN)
    journal = tmp_path / "link-journal"
    journal.mkdir()
    (journal / "dead.rows").write_bytes(b"no such thing")
    open_log(LogFiles(str(tmp_path / "links")), at=0.0)
    crawl(tmp_path, web, begin=START + HOUR, seconds=2 * HOUR)
    assert rows(tmp_path) >= ALL


def test_pages_of_a_crawl_that_ranked_nothing_are_logged_at_their_next_visit(tmp_path: Path) -> None:
    web = Web()
    crawl(tmp_path, web, begin=START, seconds=600.0, rest=PLAIN)
    crawl(tmp_path, web, begin=START + HOUR, seconds=2 * HOUR)
    assert rows(tmp_path) >= ALL


def test_an_undamaged_log_asks_for_no_page_without_its_validator(tmp_path: Path) -> None:
    web = Web()
    crawl(tmp_path, web, begin=START, seconds=600.0)
    crawl(tmp_path, web, begin=START + HOUR, seconds=2 * HOUR)
    assert sum(int(url.rpartition("/")[2] or 0) % 2 for url in web.read) == PAGES // 2


@pytest.mark.parametrize("content", ["", "soon", "nan", "inf", "\0", "é"])
def test_garbage_in_place_of_the_time_is_said_and_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    (tmp_path / COMPLETE_SINCE).write_text(content, encoding="latin-1")
    files = LogFiles(str(tmp_path))
    with pytest.raises(DamagedFile):
        complete_since(files)
    [line] = damaged_files(str(tmp_path))
    assert COMPLETE_SINCE in line
    assert open_log(files, at=5.0) == 5.0
    assert damaged_files(str(tmp_path)) == []
    assert complete_since(files) == 5.0
    assert len(caplog.messages) == 1


def test_a_deleted_time_is_said_where_the_log_has_had_a_writer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was taken for a new log without a word, and `check` found nothing."""
    log = LinkLog(str(tmp_path), writer="ant", at=5.0)
    assert not caplog.messages
    (tmp_path / COMPLETE_SINCE).unlink()
    assert open_log(LogFiles(str(tmp_path)), at=9.0) == 9.0
    [said] = caplog.messages
    assert "complete-since: damaged: it is missing" in said
    log.close()


def test_lost_rows_reach_the_fetches_that_are_under_way(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path))
    assert open_log(files, at=5.0) == 5.0
    assert open_log(files, at=9.0) == 5.0
    assert incomplete_until(files, at=9.0) == 9.0 + GRACE_S
    assert open_log(files, at=10.0) == 9.0 + GRACE_S
