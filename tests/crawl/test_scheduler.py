"""The scheduler's hot path at 10,000 active sites, in a real crawl through a download handler without I/O."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITES = 10_000
SCRIPT = """
import json, statistics, sys, time
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy.utils.project import get_project_settings
from webfountain.crawl.scheduler import FountainScheduler

TIMES = []

class NoIo:
    lazy = True
    @classmethod
    def from_crawler(cls, crawler):
        return cls()
    async def download_request(self, request):
        if request.url.endswith("/robots.txt"):
            return Response(request.url, status=404)
        body = b"".join(b"<a href=%d>x</a>" % n for n in range(3))
        return Response(request.url, headers={"Content-Type": "text/html"}, body=body)
    async def close(self):
        pass

class Timed(FountainScheduler):
    def next_request(self):
        start = time.thread_time_ns()
        request = super().next_request()
        spent = time.thread_time_ns() - start
        if self.frontier.statistics().active_sites >= 9_500:
            TIMES.append((spent / 1000, request is not None))
        return request
    def has_pending_requests(self):
        start = time.thread_time_ns()
        answer = super().has_pending_requests()
        PENDING.append((time.thread_time_ns() - start) / 1000)
        return answer

PENDING = []
settings = get_project_settings()
settings.setdict({
    "SCHEDULER": Timed, "DOWNLOAD_HANDLERS": {"http": NoIo}, "LOG_LEVEL": "WARNING",
    "WEBFOUNTAIN_STORE": "memory:", "WEBFOUNTAIN_REPOSITORY": "copies", "WEBFOUNTAIN_ACTIVE_SITES": 10_000,
    "WEBFOUNTAIN_MAX_SECONDS": 70, "WEBFOUNTAIN_MAX_PAGES": 14_000, "WEBFOUNTAIN_REPORT": "report.json",
}, priority="cmdline")
process = AsyncCrawlerProcess(settings)
process.crawl("fountain", collection="c.toml")
process.start()
times = sorted(spent for spent, _ in TIMES)
print(json.dumps({"calls": len(times), "requests": sum(found for _, found in TIMES),
                  "median": statistics.median(times), "p99": times[int(len(times) * 0.99)],
                  "pending": statistics.median(PENDING or [0])}))
"""
POLICY = """
[collection]
name = "many"
seeds_file = "seeds.txt"
[politeness]
min_delay = "2s"
delay_factor = 0
[network]
allow_private = true
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("many")
    (folder / "c.toml").write_text(POLICY)
    (folder / "seeds.txt").write_text("".join(f"http://10.0.{n // 250}.{n % 250 + 1}/\n" for n in range(SITES)))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]) | {"report": json.loads((folder / "report.json").read_text())}


def test_next_request_takes_below_50_us_at_the_median_and_1_ms_at_the_99th_percentile(measured: dict[str, Any]) -> None:
    assert measured["requests"] > 2000
    assert measured["median"] < 50
    assert measured["p99"] < 1000


def test_has_pending_requests_does_not_look_at_the_sites(measured: dict[str, Any]) -> None:
    assert measured["pending"] < 50


def test_a_crawl_through_another_download_handler_lands_every_fetch(measured: dict[str, Any]) -> None:
    report = measured["report"]
    assert report["pages_fetched"] >= SITES
    assert report["failed"] == 0
