"""A page's copy over its whole life: written, repeated, lost and written again, and the folder's size meanwhile."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked
from tests.repository.captures import records
from webfountain.clock import ManualClock
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import ForgetNote, NowNote
from webfountain.policy.tables import RepositoryTable
from webfountain.policy.units import Size
from webfountain.records import Copy, Fetch, Link
from webfountain.repository.repository import Repository
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


HOME, PAGE = "http://one.example/", "http://one.example/a"
DAY = 86_400.0


class Web:
    """Two pages that never change; conditional requests are answered with 304 where `validators` are given."""

    def __init__(self, *, validators: bool) -> None:
        self.headers = {"content-type": "text/html"} | ({"etag": '"1"'} if validators else {})
        self.conditional: list[bool] = []

    def __call__(self, fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        if fetch.url == PAGE:
            self.conditional.append(fetch.etag is not None)
        if fetch.etag is not None:
            return 304, self.headers, b"", 0.01
        return 200, self.headers, linked("a") if fetch.url == HOME else b"<p>a page", 0.01


def copy_of(drive: Drive, url: str) -> Copy:
    record = drive.store.pages.get(site_of(url), fingerprint(url))
    assert record is not None
    assert record.copy is not None
    return record.copy


def lose_file(folder: Path) -> None:
    for path in folder.glob("webfountain-*"):
        path.unlink()


def lose_tail(folder: Path) -> None:
    (path,) = folder.glob("*.warc.gz")
    os.truncate(path, path.stat().st_size - 400)


@pytest.mark.parametrize("lose", [lose_file, lose_tail])
@pytest.mark.parametrize("validators", [True, False], ids=["304", "200"])
def test_a_copy_that_is_gone_is_fetched_unconditionally_and_written_again(
    tmp_path: Path, validators: bool, lose: Callable[[Path], None]
) -> None:
    web, clock = Web(validators=validators), ManualClock(1_000_000.0)
    collection = collection_of([HOME], rest='fastest = "1h"')
    repository = Repository(tmp_path, clock=clock)
    drive = Drive(collection, web, repository=repository, clock=clock)
    drive.run(seconds=60)
    before = copy_of(drive, PAGE)
    repository.close()
    lose(tmp_path)
    repository = Repository(tmp_path, clock=clock, given_out=max(drive.store.pages.copies()))
    again = Drive(collection, web, store=drive.store, repository=repository, clock=clock)
    clock.advance(200 * DAY)
    again.run(seconds=60)
    assert web.conditional == [False, False], "the second fetch knew that there is no copy"
    assert again.outcomes["same"] >= 1
    after = copy_of(again, PAGE)
    assert after.file > before.file
    assert repository.read(after, PAGE).body == b"<p>a page"
    assert again.metrics.get("repository/healed") >= 1
    record = again.store.pages.get(site_of(PAGE), fingerprint(PAGE))
    assert record is not None
    assert record.copied == record.last_crawled, "a revisit record names the copy by its time"
    clock.advance(400 * DAY)
    again.run(seconds=60)
    assert web.conditional == [False, False, validators], "and the third that there is one"
    repository.close()


def test_an_immediate_page_whose_copy_is_gone_heals_too(tmp_path: Path) -> None:
    web, clock = Web(validators=True), ManualClock(1_000_000.0)
    repository = Repository(tmp_path / "repository", clock=clock)
    drive = Drive(collection_of([HOME]), web, repository=repository, clock=clock)
    drive.run(seconds=60)
    lose_file(tmp_path / "repository")
    repository.close()
    repository = Repository(tmp_path / "repository", clock=clock, given_out=1)
    again = Drive(drive.collection, web, store=drive.store, repository=repository, clock=clock)
    inbox = Inbox(tmp_path / "inbox")
    inbox.put(NowNote((PAGE,)))
    inbox.deliver(again.store, repository, at=clock.now())
    again.run(seconds=60)
    assert repository.read(copy_of(again, PAGE), PAGE).body == b"<p>a page"
    repository.close()


@pytest.mark.untraced
def test_the_folder_stays_within_its_bound_between_two_periods(tmp_path: Path) -> None:
    """2 MB became 25 MB within seconds while the bound was looked at once a period."""
    bound = 400_000

    def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        body = linked(*(f"p{number}" for number in range(40))) + os.urandom(3000).hex().encode()
        return (200, {"content-type": "text/html"}, body, 0.001) if fetch.kind == "page" else (404, {}, b"", 0.001)

    clock = ManualClock(1_000_000.0)
    repository = Repository(tmp_path, clock=clock, rules=RepositoryTable(max_bytes=Size(bound)))
    collection = collection_of([HOME], min_delay="10ms", rest='fastest = "1s"', period="1d")
    drive = Drive(collection, answer, repository=repository, clock=clock)
    sizes: list[int] = []
    drive.run(seconds=5)
    known = [Link(record.url, site, fingerprint(record.url)) for site, record in drive.store.pages.records()]
    for _ in range(24):
        drive.store.queues.immediate(known, at=clock.now())
        drive.run(seconds=5)
        sizes.append(repository.bytes_on_disk())
    assert drive.outcomes["changed"] * 3000 > 5 * bound, drive.outcomes
    assert max(sizes) <= bound
    repository.close()


@pytest.mark.parametrize(("keep_answers", "kinds"), [(False, []), (True, [200, 301, 404, 404])])
def test_answers_that_are_no_copy_are_recorded_where_the_collection_says_so(
    tmp_path: Path, keep_answers: bool, kinds: list[int]
) -> None:
    """robots.txt, a sitemap, a redirect and a page that is gone; none of them is the page's copy."""

    def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        path = fetch.url.removeprefix(HOME)
        if path == "robots.txt":
            return 200, {}, b"Sitemap: http://one.example/sitemap.xml", 0.01
        if path == "moved":
            return 301, {"location": HOME}, b"", 0.01
        found = path == ""
        return 200 if found else 404, {"content-type": "text/html"}, linked("moved", "gone") if found else b"no", 0.01

    clock = ManualClock(1_000_000.0)
    repository = Repository(tmp_path, clock=clock, rules=RepositoryTable(answers=keep_answers))
    drive = Drive(collection_of([HOME]), answer, repository=repository, clock=clock)
    drive.run(seconds=120)
    repository.close()
    found = [record for record, _ in records(tmp_path) if record.rec_type == "response"]
    others = [record for record in found if record.rec_headers["WARC-Target-URI"] != HOME]
    assert sorted(int(record.http_headers.get_statuscode()) for record in others) == kinds
    assert [record.url for _, record in drive.store.pages.records() if record.copy is not None] == [HOME]
    assert not repository._unsettled


@pytest.mark.parametrize(
    ("table", "kept"),
    [("", False), ('keep = "all"', True), ('keep = "all"\nanswers = false', False), ("answers = true", True)],
)
def test_an_archive_records_all_answers_unless_set_otherwise(table: str, kept: bool) -> None:
    assert collection_of([HOME], rest=f"[repository]\n{table}").repository.keep_answers is kept


def test_a_page_that_is_forgotten_during_its_fetch_leaves_no_copy(tmp_path: Path) -> None:
    clock, inbox = ManualClock(1_000_000.0), Inbox(tmp_path / "inbox")

    def web(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        body, seconds = (b"<p>a secret", 600.0) if fetch.url == PAGE else (linked("a"), 0.01)
        return (200 if fetch.kind == "page" else 404), {"content-type": "text/html"}, body, seconds

    repository = Repository(tmp_path / "copies", clock=clock)
    drive = Drive(collection_of([HOME]), web, repository=repository, clock=clock, inbox=inbox)
    drive.run(until=lambda: PAGE in drive.asked())
    inbox.put(ForgetNote(site_of(PAGE), PAGE))
    drive.run(seconds=3600)
    assert drive.outcomes["new"] == 2, "the fetch has ended"
    assert drive.store.pages.get(site_of(PAGE), fingerprint(PAGE)) is None
    repository.close()
    kept = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "copies").glob("*.warc.gz"))
    assert b"one.example" in kept
    assert b"a secret" not in kept
