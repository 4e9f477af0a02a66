"""Measure what event streams cost: CPU of ``serve``, and pages per CPU second of a crawl beside it.

``python -m tests.benchmarks.bench_streams [--pairs N] [--seconds S] [--streams N]``; a pair is two crawls of generated
webs at the same time, at the same polite rate, one of them beside a service with open streams. So both meet the same
noise of the machine, and none waits for a core. With ``--streams 0`` the ratio shows the noise of the measurement.
Bounds of the project: 5 % of a core for 50 streams, and 3 % of the crawl's pages per CPU second.
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

from tests.acceptance.crawls import policy
from webfountain.lab.demo.process import DemoServer


async def follow(address: str, streams: int, seconds: float) -> int:
    """Hold streams open, and return the number of received bytes. Nothing is parsed, to save CPU."""
    host, _, port = address.removeprefix("http://").partition(":")
    request = f"GET /v1/collections/store/changes?feed=sse HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    received = 0

    async def one() -> None:
        nonlocal received
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        assert b" 200 " in await reader.readline()
        while data := await reader.read(1 << 16):
            received += len(data)

    tasks = [asyncio.create_task(one()) for _ in range(streams)]
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    assert not done, [task.exception() for task in done]
    return received


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def begin(folder: Path, web: DemoServer, seconds: float) -> subprocess.Popen[bytes]:
    """Begin a crawl that writes ``report.json`` in the folder."""
    rules = policy(folder, web.urls, cycle={"period": "20s"}, politeness={"min_delay": "400ms"})
    command = [sys.executable, "-m", "webfountain", "crawl", str(rules), f"--store=rocksdb://{folder}/store"]
    return subprocess.Popen(
        [*command, f"--report={folder}/report.json", f"--max-seconds={seconds:g}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def serve(folder: Path, seconds: float, streams: int) -> tuple[float, float]:
    """Serve a store with open streams. Return the share of a core and the memory, MB."""
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
    serving.terminate()
    serving.wait()
    return share, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def pages_per_cpu_second(folder: Path) -> float:
    """Return the pages per CPU second of an ended crawl."""
    found = json.loads((folder / "report.json").read_text())
    return float(found["pages_fetched"] / found["cpu_seconds"])


def pair(home: Path, webs: tuple[DemoServer, DemoServer], given: argparse.Namespace) -> tuple[float, float]:
    """Run both crawls. Return the ratio of the crawl beside streams to the other crawl, and the share of a core of the
    service.
    """
    folders = (home / "beside", home / "alone")
    for folder in folders:
        folder.mkdir()
    crawls = [begin(folder, web, given.seconds) for folder, web in zip(folders, webs, strict=True)]
    share, memory = serve(folders[0], given.seconds, given.streams) if given.streams else (0.0, 0.0)
    for each in crawls:
        each.wait()
    beside, alone = map(pages_per_cpu_second, folders)
    print(
        f"  {alone:.0f} pages a CPU second alone, {beside:.0f} beside {given.streams} streams, ratio "
        f"{beside / alone:.3f}; serve {100 * share:.1f} % of a core, {memory:.0f} MB",
        flush=True,
    )
    return beside / alone, share


def main() -> None:
    """Run the pairs, and print each pair and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--streams", type=int, default=50)
    given = parser.parse_args()
    ratios, shares = [], []
    form = {"seed": 5, "sites": 40, "pages": 60, "period": 20, "latency": 0.002}
    with DemoServer(**form) as one, DemoServer(**form) as other:
        for number in range(given.pairs):
            with tempfile.TemporaryDirectory() as folder:
                webs = (one, other) if number % 2 else (other, one)
                ratio, share = pair(Path(folder), webs, given)
            ratios.append(ratio)
            shares.append(share)
    low, high = min(ratios), max(ratios)
    print(
        f"median: ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}), "
        f"serve {100 * statistics.median(shares):.1f} % of a core"
    )


if __name__ == "__main__":
    main()
