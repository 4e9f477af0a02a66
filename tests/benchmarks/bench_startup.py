"""Measure what a start costs: ``python -m tests.benchmarks.bench_startup`` (half a minute).

The figures are medians of the CPU seconds of nine child processes, divided by yardsticks of the same run. The yardstick
of `status` is the import of click, msgspec and rocksdict. The yardstick of a crawl until its first request is the
import of Scrapy's crawler and reactor. The goal is below 3.5 for both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from webfountain.lab.demo.process import DemoServer

ROOT = Path(__file__).resolve().parents[2]
RUNS = 9
CPU = "import time; print(time.process_time())"
BARE = f"import click, msgspec, rocksdict; {CPU}"
SCRAPY = (
    "from twisted.internet import asyncioreactor; asyncioreactor.install(); "
    f"from scrapy.crawler import AsyncCrawlerProcess; import scrapy.core.engine, scrapy.core.scraper; {CPU}"
)
STATUS = "from webfountain.cli import main; main(['status', '--store', {store!r}, '--json']); " + CPU
GOALS = {"status": 3.5, "crawl": 3.5}
POLICY = """
[collection]
name = "start"
seeds = ["{seed}"]
[network]
allow_private = true
"""


def environment() -> dict[str, str]:
    """Return this process's environment, with compiled bytecode kept, as for a user."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def python(code: str, folder: Path) -> float:
    """Return the CPU seconds that a program prints as its last number."""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def crawl(folder: Path) -> float:
    """Return the CPU seconds until the first request of a crawl of five pages, including imports."""
    code = (
        "from webfountain.cli import main; "
        "main(['crawl', 'c.toml', '--store', 'rocksdb://store', '--max-seconds', '1', "
        "'--report', 'report.json', '--json', '-s', 'WEBFOUNTAIN_MAX_PAGES=1'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment(), capture_output=True, check=True)
    started: float = json.loads((folder / "report.json").read_text())["startup_cpu_seconds"]
    return started


def main() -> int:
    """Return 0 if every goal is met."""
    spent: dict[str, list[float]] = {"bare": [], "status": [], "scrapy": [], "crawl": []}
    with tempfile.TemporaryDirectory() as name, DemoServer(seed=1, sites=1, pages=5, period=0) as web:
        folder = Path(name)
        (folder / "c.toml").write_text(POLICY.format(seed=web.urls[0]))
        crawl(folder)
        for _ in range(RUNS):
            spent["bare"].append(python(BARE, folder))
            spent["status"].append(python(STATUS.format(store="rocksdb://store"), folder))
            spent["scrapy"].append(python(SCRAPY, folder))
            spent["crawl"].append(crawl(folder))
    middle = {what: statistics.median(times) for what, times in spent.items()}
    ratios = {"status": middle["status"] / middle["bare"], "crawl": middle["crawl"] / middle["scrapy"]}
    for what, ratio in ratios.items():
        print(f"{what:>8}: {middle[what]:.2f} CPU seconds, {ratio:.2f} yardsticks (goal: below {GOALS[what]})")
    return 0 if all(ratios[what] < goal for what, goal in GOALS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
