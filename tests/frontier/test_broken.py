"""One item that breaks what nobody foresaw is a line in the log, a counted outcome, and the next item."""

from __future__ import annotations

import asyncio
import gzip
import logging
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked
from webfountain.errors import StoreError
from webfountain.formats.robots import RobotsRules
from webfountain.formats.sitemap import SMALL_SITEMAP_BYTES, SitemapFile
from webfountain.frontier.pages.sitemap_reader import SITEMAP_DEPTH, SitemapParser
from webfountain.frontier.sites.site_files import SiteRobots
from webfountain.records import (
    Copy,
    DiscoverResult,
    Fetch,
    FetchKind,
    FetchResult,
    Link,
    Outcome,
    SettleResult,
    SiteLease,
    SiteState,
)
from webfountain.repository.repository import Repository
from webfountain.store.memory.queues import MemoryQueues
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.repository.warc_writer import Capture

HOME, BAD = "http://one.example/", "http://one.example/bad"
GOOD = [f"http://one.example/{name}" for name in ("a", "b", "c")]


class BrittleRepository(Repository):
    """Breaks on the capture of one page, whatever comes with it."""

    def write(self, captures: Sequence[Capture]) -> list[Copy | None]:
        if any(capture.fetched.fetch.url == BAD for capture in captures):
            raise ValueError("year 58423 is out of range")
        return super().write(captures)


class BrittleQueues(MemoryQueues):
    """Breaks on one URL where it is discovered, or settled."""

    breaks_on: str = "discover"
    error: Exception = OverflowError("int too big to convert")

    def discover(self, links: Sequence[Link], *, at: float) -> DiscoverResult:
        if self.breaks_on == "discover" and any(link.url == BAD for link in links):
            raise self.error
        return super().discover(links, at=at)

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        if self.breaks_on == "settle" and any(each.record.url == BAD and each.kind == "new" for each in outcomes):
            raise self.error
        return super().settle(outcomes, at=at, learned=learned, parts=parts)


class BrittleStore(MemoryStore):
    queues: BrittleQueues

    def __init__(self) -> None:
        super().__init__(period_s=86_400.0)
        self.queues = BrittleQueues(self.table, self.census, self.changes)


def web(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    return 200, {"content-type": "text/html"}, linked("a", "b", "bad", "c") if fetch.url == HOME else b"<p>x", 0.01


def crawled(drive: Drive) -> dict[str, tuple[str, str | None]]:
    return {record.url: (record.state, record.error) for _, record in drive.store.pages.records()}


def check_all_but_the_bad_one(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        drive.run(seconds=600)
    states = crawled(drive)
    assert states[BAD] == ("failed", "unkept")
    assert {states[url] for url in [HOME, *GOOD]} == {("crawled", None)}
    assert drive.metrics.get("ant/broken") == 1
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.endswith(BAD)


def test_a_page_that_cannot_be_written_fails_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    repository = BrittleRepository(tmp_path)
    drive = Drive(collection_of([HOME]), web, repository=repository, until_idle=True)
    check_all_but_the_bad_one(drive, caplog)
    for record in (record for _, record in drive.store.pages.records() if record.url in GOOD):
        assert record.copy is not None
        assert repository.read(record.copy, record.url).body == b"<p>x"


def test_a_page_that_cannot_be_settled_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    store = BrittleStore()
    store.queues.breaks_on = "settle"
    check_all_but_the_bad_one(Drive(collection_of([HOME]), web, store=store, until_idle=True), caplog)


def test_a_page_whose_links_cannot_be_discovered_fails_and_its_site_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    drive = Drive(collection_of([HOME, *GOOD]), web, store=BrittleStore(), until_idle=True)
    drive.run(seconds=600)
    states = crawled(drive)
    assert states[HOME] == ("failed", "unkept")
    assert {states[url] for url in GOOD} == {("crawled", None)}


def test_a_request_that_cannot_be_taken_in_is_left_out_of_those_that_came_with_it() -> None:
    drive = Drive(collection_of([GOOD[0]]), web, store=BrittleStore(), recrawl=False, until_idle=True)
    for url in [*GOOD, BAD]:
        drive.frontier.offer(Link(url, site_of(url), fingerprint(url), SITEMAP_DEPTH))
    drive.run(seconds=600)
    assert crawled(drive) == dict.fromkeys(GOOD, ("crawled", None))
    assert drive.metrics.get("ant/broken") == 1


def test_a_site_does_not_stay_for_a_sitemap_that_could_not_be_taken_in() -> None:
    def listing(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
        files = {"robots": b"Sitemap: /map.xml", "sitemap": f"<urlset><url><loc>{BAD}</loc></url></urlset>".encode()}
        return (200, {}, files[fetch.kind], 0.01) if fetch.kind in files else (200, {}, b"<p>x", 0.01)

    drive = Drive(collection_of([GOOD[0]]), listing, store=BrittleStore())
    drive.run(seconds=600)
    assert drive.asked("sitemap")
    assert drive.metrics.get("ant/broken") == 1
    assert not drive.frontier.sites.sites.by_name


def test_what_may_take_long_in_files_is_read_before_they_land_and_not_by_whoever_needs_them() -> None:
    drive = Drive(collection_of([HOME]), web)
    rules = b"User-agent: *\nDisallow: /bad\n" + b"# much\n" * 10_000
    urls = b"<urlset><url><loc>/a</loc></url></urlset>" + b" " * SMALL_SITEMAP_BYTES
    bodies: dict[FetchKind, bytes] = {"page": b"<p>x", "robots": rules, "sitemap": urls}
    read = {
        kind: asyncio.run(drive.frontier.examiner.read_file(fetched_of(kind, body))).reading
        for kind, body in bodies.items()
    }
    assert read["page"] is None
    assert read["robots"] == b"User-agent: *\nDisallow: /bad"
    assert read["sitemap"] == SitemapFile([("/a", None)], [])
    small = fetched_of("sitemap", gzip.compress(urls.strip()))
    assert asyncio.run(drive.frontier.examiner.read_file(small)).reading is None
    # Who needs it takes what was read, whatever the body says.
    robots = SiteRobots(SiteState(), partial(RobotsRules.parse, token="test"))
    robots.answered(msgspec.structs.replace(fetched_of("robots", b""), reading=read["robots"]))
    assert not robots.allows(BAD)
    shelf = SitemapParser(drive.frontier.worker.entrance.judge)
    found = shelf.read(msgspec.structs.replace(fetched_of("sitemap", b""), reading=read["sitemap"]), site=HOME, at=1.0)
    assert [link.url for link in found.links] == [GOOD[0]]


def fetched_of(kind: FetchKind, body: bytes) -> FetchResult:
    return FetchResult(Fetch(1, kind, f"{HOME}{kind}", HOME[:-1], None), 1.0, 0.1, 200, body=body)


def test_what_the_store_says_of_itself_is_no_items_fault_and_ends_the_crawl() -> None:
    store = BrittleStore()
    store.queues.error = StoreError("No space left on device")
    drive = Drive(collection_of([HOME]), web, store=store, until_idle=True)
    with pytest.raises(StoreError, match="No space"):
        drive.run(seconds=600)
