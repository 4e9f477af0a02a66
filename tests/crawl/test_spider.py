"""``scrapy crawl fountain``: a collection becomes items, copies and a report; a signal ends it in good order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.pace import slowness
from tests.crawl.projects import Answer, ReceivedRequest, Site
from webfountain.lab.demo.process import DemoServer, overlaps

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
[collection]
name = "spider"
seeds = {seeds}
[politeness]
min_delay = "0s"
delay_factor = 0
[network]
allow_private = true
[policies.default]
revisit = {{ min_interval = "1h" }}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"}


def start(
    folder: Path, *options: str, seeds: list[str] | None = None, small_disk: bool = False, **settings: object
) -> subprocess.Popen[str]:
    (folder / "c.toml").write_text(POLICY.format(seeds=json.dumps(seeds)) if seeds else "")
    given = {"STORE": f"rocksdb://{folder}/store", "REPORT": f"{folder}/report.json", **settings}
    arguments = [part for name, value in given.items() for part in ("-s", f"WEBFOUNTAIN_{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "fountain", "-a", "collection=c.toml", *arguments, *options]
    if small_disk:  # no file larger than 200 KB
        command = ["sh", "-c", 'ulimit -f 400; exec "$@"', "sh", *command]
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def test_a_collection_becomes_one_item_a_page_through_feeds(tmp_path: Path) -> None:
    with DemoServer(seed=3, sites=3, pages=60, period=0) as server:
        process = start(tmp_path, "-O", "items.jsonl", seeds=server.urls, UNTIL_IDLE=1, MAX_SECONDS=200)
        _, log = process.communicate(timeout=240)
        assert process.returncode == 0, log
        truth, visits = server.truth().pages, server.log()
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    new = {item["url"]: item["digest"] for item in items if item["verdict"] == "new"}
    assert new == truth
    assert len(items) == len({item["url"] for item in items})
    assert set(items[0]) >= {"url", "site", "verdict", "fetched", "status", "title", "text", "digest"}
    assert not overlaps(visits)
    report = report_of(tmp_path)
    assert (report["finish_reason"], report["new"], report["waiting"]) == ("idle", len(truth), 0)
    assert report["gone"] == sum(item["verdict"] == "gone" for item in items)
    assert report["startup_cpu_seconds"] <= report["cpu_seconds"]


def test_an_interrupt_ends_the_crawl_within_ten_seconds_and_loses_no_lease(tmp_path: Path) -> None:
    done = threading.Event()

    def stalled(_: ReceivedRequest) -> Answer:
        done.wait(30)
        return Answer("late")

    with Site(stalled) as site:
        process = start(tmp_path, seeds=[site.base + "/"])
        while not site.paths:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, log = process.communicate(timeout=240)
        done.set()
        assert process.returncode == 0, log
        assert time.monotonic() - asked < 10 * slowness()
    report = report_of(tmp_path)
    assert (report["finish_reason"], report["failed"]) == ("shutdown", 0)
    assert report["pages"]["never-crawled"] == report["waiting"] == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "c.toml: collection is missing"),
        ({"NOPE": 1}, "setting WEBFOUNTAIN_NOPE is unknown"),
        ({"STORE": "http://nowhere"}, "http://nowhere"),
        ({"STORE": "rocksdb:///dev/null/store"}, "/dev/null/store"),
        ({"REPOSITORY": "/dev/null/copies"}, "/dev/null/copies"),
    ],
)
def test_what_cannot_begin_is_one_critical_line_without_a_traceback_and_status_1(
    tmp_path: Path, given: dict[str, object], said: str
) -> None:
    seeds = ["http://127.0.0.1:9/"] if given else None  # without them the file is empty
    (tmp_path / "items.jsonl").write_text("of an earlier crawl")
    process = start(tmp_path, "-O", "items.jsonl", seeds=seeds, small_disk=False, **given)
    _, log = process.communicate(timeout=240)
    assert process.returncode == 1
    (line,) = (line for line in log.splitlines() if "CRITICAL" in line or "ERROR" in line)
    assert "CRITICAL" in line
    assert said in line
    assert "Traceback" not in log
    assert (tmp_path / "items.jsonl").read_text() == "of an earlier crawl"


def test_a_store_that_another_crawl_holds_is_one_critical_line_and_that_crawl_goes_on(tmp_path: Path) -> None:
    with Site(lambda _: Answer("here")) as site:
        first = start(tmp_path, seeds=[site.base + "/"])
        while not site.paths:
            assert first.poll() is None
            time.sleep(0.02)
        second = start(tmp_path, seeds=[site.base + "/"])
        _, log = second.communicate(timeout=240)
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=240)
    assert (first.returncode, second.returncode) == (0, 1)
    assert "Traceback" not in log
    assert sum("CRITICAL" in line or "ERROR" in line for line in log.splitlines()) == 1


SLOW_TO_OPEN = """
import asyncio
from scrapy import signals
from webfountain.crawl.session import Session

class Slow:
    @classmethod
    def from_crawler(cls, crawler):
        slow = cls()
        slow.crawler = crawler
        crawler.signals.connect(slow.spider_opened, signals.spider_opened)
        return slow
    async def spider_opened(self):
        while Session.of(self.crawler).error is None:
            await asyncio.sleep(0.001)
"""


def test_a_disk_that_fills_up_ends_the_crawl_in_order_with_one_critical_line_and_status_1(tmp_path: Path) -> None:
    large = random.Random(1).randbytes(200_000).hex()  # nothing that a WARC file could compress to less than the disk
    with Site(lambda asked: Answer(f'<a href="{asked.path}x"></a>{large}')) as site:
        process = start(tmp_path, seeds=[site.base + "/"], small_disk=True)
        _, log = process.communicate(timeout=240)
    check_failed(process.returncode, log, "cannot be written")
    assert report_of(tmp_path)["finish_reason"] == "failed"


def test_a_disk_that_is_full_before_the_engine_has_started_ends_the_crawl_no_worse(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_TO_OPEN)
    extensions = 'EXTENSIONS={"slow.Slow": 1, "webfountain.crawl.reporter.Reporter": 2}'
    seeds = [f"http://127.0.{n // 250}.{n % 250 + 1}:9/" for n in range(5000)]
    process = start(tmp_path, "-s", extensions, seeds=seeds, small_disk=True)
    _, log = process.communicate(timeout=240)
    check_failed(process.returncode, log, "cannot write")


def check_failed(status: int, log: str, said: str) -> None:
    assert status == 1
    (line,) = (line for line in log.splitlines() if "CRITICAL" in line or "ERROR" in line)
    assert "CRITICAL" in line
    assert said in line
    assert "Traceback" not in log
    assert "Spider closed (failed)" in log


def test_scrapy_lists_the_spider_without_opening_anything(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "list"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["fountain"]
    assert list(tmp_path.iterdir()) == []


def test_the_memory_that_a_crawl_reports_is_its_own_not_that_of_the_process_that_started_it() -> None:
    child = "from webfountain.crawl.reporter import peak_rss_bytes; print(peak_rss_bytes())"
    parent = f"import subprocess, sys; held = b'x' * 600_000_000; subprocess.run([sys.executable, '-c', {child!r}])"
    printed = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, check=True)
    assert 10_000_000 < int(printed.stdout) < 400_000_000
