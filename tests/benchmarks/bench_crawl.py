"""Measure pages per CPU second of plain Scrapy, Scrapy with JOBDIR, and webfountain with all features, on one generated
web.

``python -m tests.benchmarks.bench_crawl [--plain SHORT LONG] [--ours SHORT LONG] [--json]``

The web has 50 sites and 20,000 pages of 20 KB with 60 links each, which do not change. The CPU time of a page is the
slope between a short and a long run of the whole process, so it does not include the start. Our run counts only if
`cat` returns the pages of the server. A last run measures the time by stage (`stages`). Most of Scrapy's cost is the
Request object per link, and most of our cost is Scrapy's engine.

``--recrawl [S]``: 2,000 sites of six changing pages are crawled with a budget of `RECRAWLED` fetches per period of 20
s. The CPU of a fetch is measured for S seconds (30 by default) after every page was crawled. For each fetch a site is
activated, asked and parked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.acceptance.crawls import ROOT, Crawl, copies, policy, records
from tests.acceptance.test_hour import family
from webfountain import settings as door
from webfountain.lab.demo.process import DemoServer

if TYPE_CHECKING:
    from collections.abc import Mapping

GOAL = 5.0
"""Least ratio of pages per CPU second to the JOBDIR run."""
OBSERVED = 500
SITES, PERIOD_S, RECRAWLED = 2_000, 20, 4_000
RECRAWL_GOAL_MS = 1.8
WEB = {"sites": 50, "pages": 20_000, "body_bytes": 20_000, "links": 60, "period": 0}


class Cost(NamedTuple):
    """The costs of a run: pages that the server served, CPU seconds, memory, and its folder."""

    pages: int
    cpu_s: float
    rss_mb: float


def main() -> int:
    """Print the comparison. Return 1 if the goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", type=int, nargs=2, default=(1_000, 4_000), metavar="PAGES")
    parser.add_argument("--ours", type=int, nargs=2, default=(2_000, 12_000), metavar="PAGES")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--recrawl", type=float, nargs="?", const=30.0, metavar="SECONDS")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    try:
        if chosen.recrawl:
            return recrawl(folder, chosen.recrawl)
        found = measure(folder, chosen.plain, chosen.ours)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(found, indent=1)) if chosen.json else _print(found)
    return int(found["times_jobdir"] < GOAL or found["peak_rss_mb"] > 250 or found["startup_cpu_s"] > 1.0)


def measure(folder: Path, plain: tuple[int, int], ours: tuple[int, int]) -> dict[str, Any]:
    """Return the costs of all runs, each with its own server with empty caches."""
    scrapy = [_scrapy(folder, pages) for pages in plain]
    jobdir = [_scrapy(folder, pages, jobdir=folder / f"job-{pages}") for pages in plain]
    our = [fountain(folder, pages) for pages in ours]
    stages = _stages(folder, ours[0])
    report = json.loads((folder / f"ours-{ours[1]}.json").read_bytes())
    costs = {"scrapy": _slope(*scrapy), "jobdir": _slope(*jobdir), "webfountain": _slope(*our)}
    return {
        "ms_per_page": costs,
        "pages_per_cpu_s": {name: 1000 / each for name, each in costs.items()},
        "times_jobdir": costs["jobdir"] / costs["webfountain"],
        "times_scrapy": costs["scrapy"] / costs["webfountain"],
        "startup_cpu_s": report["startup_cpu_seconds"],
        "peak_rss_mb": our[1].rss_mb,
        "rss_mb": {"scrapy": scrapy[1].rss_mb, "jobdir": jobdir[1].rss_mb, "webfountain": our[1].rss_mb},
        "pages": {"scrapy": scrapy[1].pages, "jobdir": jobdir[1].pages, "webfountain": our[1].pages},
        "stages_us": stages,
    }


def recrawl(folder: Path, seconds: float) -> int:
    """Print what a fetch costs if many small sites are fetched again and again. Return 1 if the goal is missed."""
    cycle = {"period": f"{PERIOD_S}s", "capacity_pages_per_period": RECRAWLED}
    with DemoServer(sites=SITES, pages=6 * SITES, period=PERIOD_S) as server:
        collection = policy(folder, server.urls, cycle=cycle)
        with Crawl(collection, folder / "recrawl", "-s", "LOG_LEVEL=WARNING") as crawl:
            while server.stats()["served"] < 10 * SITES:  # its pages, robots.txt, sitemap, some of it again
                time.sleep(1.0)
            marks = []
            for until_s in (PERIOD_S, seconds):
                time.sleep(until_s)
                marks.append((sum(map(cpu_s, family(crawl.process.pid))), served_by(server)))
            crawl.terminate()
            assert crawl.wait(60) == 0, crawl.errors.read_text()
    report = crawl.report()
    (cpu, fetches), (cpu_later, later) = marks
    cost = 1000 * (cpu_later - cpu) / (later - fetches)
    print(
        f"{SITES:,} sites of 6 pages: {cost:.2f} ms of CPU a fetch (goal {RECRAWL_GOAL_MS}), {later - fetches:,} in "
        f"{seconds:.0f} s (budget {RECRAWLED * seconds / PERIOD_S:,.0f}); in all {report['pages_fetched']:,} fetches, "
        f"{report['changed']:,} changed, {1000 * report['cpu_seconds'] / report['pages_fetched']:.2f} ms each"
    )
    return int(cost > RECRAWL_GOAL_MS)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, including the children that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _slope(short: Cost, long: Cost) -> float:
    """CPU milliseconds of one more page."""
    return 1000 * (long.cpu_s - short.cpu_s) / (long.pages - short.pages)


def _scrapy(folder: Path, pages: int, *, jobdir: Path | None = None) -> Cost:
    with DemoServer(**WEB) as server:
        seeds = folder / "seeds.json"
        seeds.write_text(json.dumps(server.urls))
        more = [] if jobdir is None else ["--jobdir", str(jobdir)]
        cpu, rss = _cost([sys.executable, "-m", "tests.benchmarks.plain_scrapy", str(seeds), str(pages), *more])
        served = served_by(server)
    assert pages <= served < 1.25 * pages, f"{served} pages were served, {pages} were to be crawled"
    return Cost(served, cpu, rss)


def fountain(
    folder: Path, pages: int, *options: str, tables: Mapping[str, Mapping[str, object]] = MappingProxyType({})
) -> Cost:
    """Return the cost of a crawl with store, change detection and repository, after comparing the copies with the
    server's pages.
    """
    store = folder / f"store-{pages}{len(options)}"
    with DemoServer(**WEB) as server:
        collection = policy(folder, server.urls, **tables)
        command = [sys.executable, "-m", "webfountain", "crawl", str(collection), f"--store=rocksdb://{store}"]
        command += [f"--max-pages={pages}", f"--report={folder}/ours-{pages}.json", "--json", *options]
        cpu, rss = _cost(command)
        served = served_by(server)
        assert served == pages, f"{served} pages were served, {pages} were to be crawled"
        _check(store, server.truth().pages)
    return Cost(served, cpu, rss)


def _check(store: Path, truth: dict[str, str]) -> None:
    """Check for a sample of the pages that `cat` returns the page of the server."""
    kept = copies(store)
    crawled = [record for record in records(store) if record.state == "crawled"]
    for record in random.Random(1).sample(crawled, min(OBSERVED, len(crawled))):
        assert record.copy is not None
        digest = hashlib.sha1(kept.read(record.copy, record.url).body, usedforsecurity=False).hexdigest()
        assert digest == record.digest == truth[record.url], record.url
    kept.close()


def _stages(folder: Path, pages: int) -> dict[str, float]:
    """Return the microseconds of a page by stage."""
    file = folder / "stages.json"
    extensions = {**door.EXTENSIONS, "tests.benchmarks.stages.Stages": 1}
    cost = fountain(folder, pages, "-s", f"EXTENSIONS={json.dumps(extensions)}", "-s", f"BENCH_STAGES={file}")
    found = json.loads(file.read_text())
    report = json.loads((folder / f"ours-{pages}.json").read_bytes())
    stages: dict[str, float] = found["stages"]
    loop = sum(seconds for name, seconds in stages.items() if name.startswith("loop"))
    worker = sum(seconds for name, seconds in stages.items() if name.startswith("worker"))
    stages["loop: Scrapy's engine and the rest"] = found["loop"] - loop - report["startup_cpu_seconds"]
    stages["other threads (RocksDB)"] = found["process"] - found["loop"] - worker
    return {name: round(1e6 * seconds / cost.pages, 1) for name, seconds in sorted(stages.items())}


def _cost(command: list[str]) -> tuple[float, float]:
    """Return CPU seconds and peak memory, MB, of a process. Raise an error if the process fails."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"status {process.returncode}: {command}"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def served_by(server: DemoServer) -> int:
    """Return the number of pages that the server served, without robots.txt and sitemaps."""
    return sum("robots.txt" not in visit.path and "sitemap" not in visit.path for visit in server.log())


def _print(found: dict[str, Any]) -> None:
    print(f"{'':24}{'ms/page':>9}{'pages/CPU s':>13}{'peak MB':>9}{'pages':>8}")
    for name, each in found["ms_per_page"].items():
        row = f"{each:9.2f}{1000 / each:13.0f}{found['rss_mb'][name]:9.0f}{found['pages'][name]:8}"
        print(f"{name:24}{row}")
    print(f"webfountain is {found['times_jobdir']:.1f} times the JOBDIR run (goal {GOAL:.0f}); ", end="")
    print(f"start-up {found['startup_cpu_s']:.2f} s of CPU (goal 1.0)")
    print("where the microseconds of a page go (measured by wrapping, which adds some 20):")
    for name, each in found["stages_us"].items():
        print(f"    {name:36}{each:8.1f}")


if __name__ == "__main__":
    sys.exit(main())
