"""A crawler of one's own gets every page once, politely, through kills, with aiohttp alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import webfountain
from tests.acceptance.crawls import policy
from tests.store.stores import server_url
from webfountain import InputError
from webfountain.lab.demo.process import DemoServer, freshness, overlaps
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def web() -> Iterator[DemoServer]:
    with DemoServer(seed=3, sites=3, pages=60, period=0, latency=0.002) as server:
        yield server


def started(store: Path, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.api.own_crawler", f"rocksdb://{store}", str(file)]
    return subprocess.Popen(command, cwd=ROOT)


def check(web: DemoServer, store: Path) -> None:
    """The copy is the web, and no site was asked twice at a time."""
    opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    digests = {record.url: record.digest for _, record in opened.pages.records(state="crawled")}
    opened.close()
    assert freshness(web.truth(), digests) == 1.0
    assert overlaps(web.log()) == []


def test_the_example_crawls_the_generated_web(web: DemoServer, tmp_path: Path) -> None:
    lines = [line for line in (ROOT / "tests/api/own_crawler.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 40
    file = policy(tmp_path, web.urls)
    assert started(tmp_path / "store", file).wait(60) == 0
    check(web, tmp_path / "store")
    with webfountain.open(f"rocksdb://{tmp_path / 'store'}") as collection:
        assert collection.status().pages["never-crawled"] == 0
        assert sum(each.fetches for each in collection.history(since=0)) >= 60


@pytest.mark.soak
def test_the_example_gets_every_page_through_ten_kills(web: DemoServer, tmp_path: Path) -> None:
    file = policy(tmp_path, web.urls, politeness={"min_delay": "50ms"})
    for _ in range(10):
        crawler = started(tmp_path / "store", file)
        time.sleep(2.5)  # the crawl is to be killed wherever it stands
        crawler.kill()
        crawler.wait(10)
    assert started(tmp_path / "store", file).wait(120) == 0
    check(web, tmp_path / "store")


def test_two_processes_share_a_server_and_no_site(web: DemoServer, tmp_path: Path) -> None:
    url, file = f"{server_url()}?prefix={tmp_path.name}&shards=4", policy(tmp_path, web.urls)
    command = [sys.executable, "-m", "tests.api.own_crawler", url, str(file)]
    crawlers = [subprocess.Popen([*command, str(tmp_path / f"copies-{n}")], cwd=ROOT) for n in range(2)]
    assert [crawler.wait(240) for crawler in crawlers] == [0, 0]
    opened = open_store(url, collection=None, period_s=None)
    digests = {record.url: record.digest for _, record in opened.pages.records(state="crawled")}
    opened.close()
    assert freshness(web.truth(), digests) == 1.0
    assert overlaps(web.log()) == []


def test_a_server_needs_a_folder_for_the_copies(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="repository="):
        webfountain.open_frontier("redis://localhost", policy=tmp_path / "policy.toml")
