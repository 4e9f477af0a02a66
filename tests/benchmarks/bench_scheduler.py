"""Measure the scheduler's frequent calls at 10,000 active sites: ``python -m tests.benchmarks.bench_scheduler`` (a
minute).

A real crawl runs through a download handler without I/O. The CPU time of `next_request` (median and 99th percentile)
and of `has_pending_requests` is divided by a yardstick of the same process right after each call. The yardstick is a
pop and a push on a heap of 10,000 sites, the least cost of choosing the next site. The goals are a median below 60, a
99th percentile below 1500, and below 30 for `has_pending_requests`, which must not visit the sites.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITES = 10_000
GOALS = {"next_request, median": 60.0, "next_request, 99 %": 1500.0, "has_pending_requests, median": 30.0}
SCRIPT = """
import heapq, json, statistics, time
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy.utils.project import get_project_settings
from webfountain.crawl.scheduler import FountainScheduler

HEAP = [(float(n), f"http://10.0.{n // 250}.{n % 250 + 1}") for n in range(10_000)]
NEXT, PENDING, YARD = [], [], []

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

def yardstick():
    start = time.thread_time_ns()
    for _ in range(20):
        at, site = heapq.heappop(HEAP)
        heapq.heappush(HEAP, (at + 10_000.0, site))
    YARD.append((time.thread_time_ns() - start) / 20)

class Timed(FountainScheduler):
    def next_request(self):
        start = time.thread_time_ns()
        request = super().next_request()
        spent = time.thread_time_ns() - start
        if self.frontier.progress.statistics().active_sites >= 9_500:
            NEXT.append(spent)
            yardstick()
        return request
    def has_pending_requests(self):
        start = time.thread_time_ns()
        answer = super().has_pending_requests()
        PENDING.append(time.thread_time_ns() - start)
        return answer

settings = get_project_settings()
settings.setdict({
    "SCHEDULER": Timed, "DOWNLOAD_HANDLERS": {"http": NoIo}, "LOG_LEVEL": "WARNING",
    "WEBFOUNTAIN_STORE": "memory:", "WEBFOUNTAIN_REPOSITORY": "copies", "WEBFOUNTAIN_ACTIVE_SITES": 10_000,
    "WEBFOUNTAIN_MAX_SECONDS": 120, "WEBFOUNTAIN_MAX_PAGES": 14_000, "WEBFOUNTAIN_REPORT": "report.json",
}, priority="cmdline")
process = AsyncCrawlerProcess(settings)
process.crawl("fountain", collection="c.toml")
process.start()
NEXT.sort()
yard = statistics.median(YARD)
print(json.dumps({
    "yardstick, ns": yard, "calls": len(NEXT), "next_request, median": statistics.median(NEXT) / yard,
    "next_request, 99 %": NEXT[int(len(NEXT) * 0.99)] / yard,
    "has_pending_requests, median": statistics.median(PENDING or [0]) / yard,
}))
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


def measure() -> dict[str, float]:
    """Return the figures of one crawl. The figures of `GOALS` are in yardsticks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "c.toml").write_text(POLICY)
        (folder / "seeds.txt").write_text("".join(f"http://10.0.{n // 250}.{n % 250 + 1}/\n" for n in range(SITES)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Return 0 if every goal is met."""
    found = measure()
    for name, value in found.items():
        goal = GOALS.get(name)
        print(f"{name:>32}: {value:10.1f}" + (f"  (goal: below {goal:.0f})" if goal else ""))
    return 0 if all(found[name] < goal for name, goal in GOALS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
