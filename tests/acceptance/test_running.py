"""An operator beside a running crawl: looks, asks for a page now, starts a second one by mistake, stops it."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import ROOT, Crawl, policy, records, run
from tests.crawl.pace import slowness
from webfountain.lab.demo.process import DemoServer, overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.lab.demo.server import LoggedVisit

DELAY = 0.1
LATENCY = 0.02
"""Seconds before each answer. The delay begins when we have it, so the server sees this much more between two starts,
however busy the machine is. (The ends that it notes come late when it was kept waiting itself.)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("running")


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer(sites=3, pages=600, period=0, latency=LATENCY) as server:
        yield server


@pytest.fixture(scope="module")
def collection(server: DemoServer, folder: Path) -> Path:
    return policy(folder, server.urls, politeness={"min_delay": "100ms", "delay_factor": 1})


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    return folder / "store"


@pytest.fixture(scope="module")
def crawl(collection: Path, store: Path) -> Iterator[Crawl]:
    with Crawl(collection, store) as crawl:
        crawl.wait_for_pages(store, 10, seconds=60)
        yield crawl


def door(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A command beside the crawl."""
    command = [sys.executable, "-m", "webfountain", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=240)


def printed(*arguments: str) -> bytes:
    """What a command that must succeed prints."""
    done = door(*arguments)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_status_pages_and_sites_describe_a_running_crawl(crawl: Crawl, server: DemoServer, store: Path) -> None:
    where = f"--store=rocksdb://{store}"
    status = json.loads(printed("status", where, "--json"))
    assert status["pages"]["crawled"] >= 10
    rows = [json.loads(line) for line in printed("pages", where, "--state=crawled", "--jsonl").splitlines()]
    assert len(rows) >= status["pages"]["crawled"]
    assert {row["site"] + "/" for row in rows} == set(server.urls)
    sites = json.loads(printed("sites", where, "--json"))
    assert {site["site"] + "/" for site in sites} == set(server.urls)
    assert sum(site["pages"]["crawled"] for site in sites) >= len(rows)


def test_cat_gives_the_bytes_of_a_running_crawl(crawl: Crawl, store: Path) -> None:
    record = next(record for record in records(store) if record.state == "crawled")
    body = printed("cat", record.url, f"--store=rocksdb://{store}")
    assert hashlib.sha1(body, usedforsecurity=False).hexdigest() == record.digest


def test_a_second_crawl_on_the_store_is_refused_with_a_line_that_says_who_holds_it(
    crawl: Crawl, collection: Path, store: Path
) -> None:
    done = door("crawl", str(collection), f"--store=rocksdb://{store}")
    assert done.returncode in (1, 2)
    (line,) = done.stderr.decode().splitlines()
    assert str(crawl.process.pid) in line
    assert str(store) in line


def test_now_fetches_a_crawled_page_within_seconds_and_politely(crawl: Crawl, server: DemoServer, store: Path) -> None:
    began = int(server.stats()["served"])
    record = next(record for record in records(store) if record.state == "crawled" and record.depth == 1)
    printed("now", record.url, f"--store=rocksdb://{store}")
    end = time.monotonic() + 20
    while record.url not in {visit.site + visit.path for visit in server.log(began)}:
        assert time.monotonic() < end, f"not asked: {record.url}"
        time.sleep(0.1)
    assert not list((store / "inbox").glob("*.json"))


def test_no_site_sees_two_requests_at_once_nor_one_before_its_delay(crawl: Crawl, server: DemoServer) -> None:
    visits = server.log()
    assert overlaps(visits) == []
    hasty = too_hasty(visits)
    assert not hasty, f"{len(hasty)} of {len(visits)}: {hasty[:5]}"


def too_hasty(visits: list[LoggedVisit]) -> list[float]:
    """Times from one request to the next of a site, where they are too short."""
    starts = defaultdict(list)
    for visit in sorted(visits, key=lambda visit: visit.start):
        starts[visit.site].append(visit.start)
    gaps = [after - before for each in starts.values() for before, after in pairwise(each)]
    return [gap for gap in gaps if gap < DELAY + LATENCY - 0.001]


def test_sigterm_ends_it_within_ten_seconds_with_a_summary_and_status_0(crawl: Crawl, store: Path) -> None:
    began = time.monotonic()
    crawl.terminate()
    assert crawl.wait(30) == 0, crawl.errors.read_text()
    assert time.monotonic() - began < 10 * slowness()
    report = crawl.report()
    assert report["finish_reason"] == "shutdown"
    crawled = sum(record.state == "crawled" for record in records(store))
    assert report["new"] == report["pages"]["crawled"] == crawled


def test_a_stopped_crawl_goes_on_where_it_ended(
    crawl: Crawl, collection: Path, server: DemoServer, store: Path
) -> None:
    assert crawl.process.poll() == 0
    before = {record.url for record in records(store) if record.state == "crawled"}
    began = int(server.stats()["served"])
    report = run(collection, store, "--max-pages=20", seconds=60)
    assert report["pages_fetched"] == 20
    assert not before & {visit.site + visit.path for visit in server.log(began)}


def test_an_interrupted_crawl_of_a_silent_server_still_ends_within_ten_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        seed = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with Crawl(policy(tmp_path, [seed]), tmp_path / "store") as crawl:
            connection, _ = server.accept()
            began = time.monotonic()
            crawl.process.send_signal(signal.SIGINT)
            assert crawl.wait(30) == 0, crawl.errors.read_text()
            connection.close()
        assert time.monotonic() - began < 10 * slowness()
        assert crawl.report()["finish_reason"] == "shutdown"


def test_the_spider_yields_one_item_per_page_into_a_feed(tmp_path: Path) -> None:
    with DemoServer(sites=2, pages=40, period=0) as server:
        feed = tmp_path / "items.jsonl"
        options = ["-s", f"FEEDS={json.dumps({str(feed): {'format': 'jsonlines'}})}"]
        report = run(policy(tmp_path, server.urls), tmp_path / "store", "--until-idle", *options, seconds=60)
        items = [json.loads(line) for line in feed.read_text().splitlines()]
        pages = {item["url"]: item["digest"] for item in items if item["verdict"] == "new"}
        assert pages == server.truth().pages
        assert len(items) == report["new"] + report["gone"]


def test_a_crawl_that_loses_its_disk_ends_with_status_1_and_one_line_and_goes_on_later(tmp_path: Path) -> None:
    with DemoServer(sites=3, pages=200, period=0, latency=0.005) as server:
        collection, store = policy(tmp_path, server.urls), tmp_path / "store"
        with Crawl(collection, store) as crawl:
            crawl.wait_for_pages(store, 10, seconds=60)
            (file,) = (store / "repository").glob("*.warc.gz")
            file.rename(tmp_path / "lost")
            assert crawl.wait(20) == 1
        (line,) = crawl.errors.read_text().splitlines()
        assert str(file) in line
        (tmp_path / "lost").rename(file)
        run(collection, store, "--until-idle", seconds=60)
        assert {r.url: r.digest for r in records(store) if r.state == "crawled"} == server.truth().pages
