"""What event streams cost: CPU of ``serve``, and the pages per CPU second of the crawl beside it.

``python -m tests.benchmarks.bench_streams [--pairs N] [--seconds S] [--streams N]``; each pair is a crawl of a
generated web beside a service with open streams, and one alone, in turn. Bounds of the project: 5 % of a core for 50
streams, and 3 % of the crawl's pages per CPU second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from tests.acceptance.crawls import policy
from webfountain.lab.demo.process import DemoServer


async def follow(address: str, streams: int, seconds: float) -> int:
    """Hold so many streams open; the number of bytes that came."""
    received = 0

    async def one(client: aiohttp.ClientSession) -> None:
        nonlocal received
        async with client.get(f"{address}/v1/collections/store/changes?feed=sse") as response:
            assert response.status == 200, response.status
            async for data in response.content.iter_any():
                received += len(data)

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as client:
        tasks = [asyncio.create_task(one(client)) for _ in range(streams)]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return received


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def crawl(folder: Path, web: DemoServer, seconds: float, streams: int) -> tuple[float, float]:
    """Pages per CPU second of a crawl, and the share of a core that the service took (0 without streams)."""
    rules = policy(folder, web.urls, cycle={"period": "20s"}, politeness={"min_delay": "20ms"})
    report = folder / "report.json"
    command = [sys.executable, "-m", "webfountain", "crawl", str(rules), f"--store=rocksdb://{folder}/store"]
    crawling = subprocess.Popen(
        [*command, f"--report={report}", f"--max-seconds={seconds:g}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    share = 0.0
    if streams:
        while not (folder / "store" / "live.json").exists():
            time.sleep(0.1)
        serving = subprocess.Popen(
            [sys.executable, "-m", "webfountain", "serve", f"--store=rocksdb://{folder}/store", "--listen=127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert serving.stdout is not None
        address = serving.stdout.readline().split("/login")[0].split()[-1]
        before, began = cpu_of(serving.pid), time.monotonic()
        asyncio.run(follow(address, streams, seconds - 6))
        share = (cpu_of(serving.pid) - before) / (time.monotonic() - began)
        pages = int(Path(f"/proc/{serving.pid}/statm").read_text().split()[1])
        print(f"  serve: {pages * os.sysconf('SC_PAGE_SIZE') / 1e6:.0f} MB", end="")
        serving.terminate()
        serving.wait()
    crawling.wait()
    found = json.loads(report.read_text())
    return found["pages_fetched"] / found["cpu_seconds"], share


def main() -> None:
    """Crawl in turn, print each pair and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--streams", type=int, default=50)
    given = parser.parse_args()
    ratios, shares = [], []
    with DemoServer(seed=5, sites=40, pages=60, period=20, latency=0.002) as web:
        for number in range(given.pairs):
            found = {}
            for streams in (given.streams, 0) if number % 2 else (0, given.streams):
                with tempfile.TemporaryDirectory() as folder:
                    found[streams], share = crawl(Path(folder), web, given.seconds, streams)
                if streams:
                    shares.append(share)
            ratios.append(found[given.streams] / found[0])
            print(
                f"  pair {number + 1}: {found[0]:.0f} pages a CPU second alone, ratio {ratios[-1]:.3f}, "
                f"serve {100 * shares[-1]:.1f} % of a core",
                flush=True,
            )
    print(f"median: ratio {statistics.median(ratios):.3f}, serve {100 * statistics.median(shares):.1f} % of a core")


if __name__ == "__main__":
    main()
