"""``scrapy crawl fountain``: a collection becomes items, copies and a report; a signal ends it in good order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.crawl.projects import Answer, Asked, Site
from webfountain.demo.process import DemoServer, overlaps

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


def start(folder: Path, *options: str, seeds: list[str] | None = None, **settings: object) -> subprocess.Popen[str]:
    (folder / "c.toml").write_text(POLICY.format(seeds=json.dumps(seeds)) if seeds else "")
    given = {"STORE": f"rocksdb://{folder}/store", "REPORT": f"{folder}/report.json", **settings}
    arguments = [part for name, value in given.items() for part in ("-s", f"WEBFOUNTAIN_{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "fountain", "-a", "collection=c.toml", *arguments, *options]
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def test_a_collection_becomes_one_item_a_page_through_feeds(tmp_path: Path) -> None:
    with DemoServer(seed=3, sites=3, pages=60, period=0) as server:
        process = start(tmp_path, "-O", "items.jsonl", seeds=server.urls, UNTIL_IDLE=1, MAX_SECONDS=40)
        _, log = process.communicate(timeout=60)
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

    def stalled(_: Asked) -> Answer:
        done.wait(30)
        return Answer("late")

    with Site(stalled) as site:
        process = start(tmp_path, seeds=[site.base + "/"])
        while not site.paths:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, log = process.communicate(timeout=30)
        done.set()
        assert process.returncode == 0, log
        assert time.monotonic() - asked < 10
    report = report_of(tmp_path)
    assert (report["finish_reason"], report["failed"]) == ("shutdown", 0)
    assert report["pages"]["never-crawled"] == report["waiting"] == 1


def test_a_broken_collection_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    process = start(tmp_path)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "c.toml" in next(line for line in log.splitlines() if "CRITICAL" in line)


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
