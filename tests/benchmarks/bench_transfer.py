"""Measure the transfer of a million URLs from an embedded store to a server and back, through files.

``python -m tests.benchmarks.bench_transfer [--urls N] [--sites N] [--form jsonl|parquet] [--json]``

Half the URLs were crawled, with a history and a copy each. A way is an export and an import, each a process of
`webfountain`; the goal is 60 s a way for 10^6 URLs. The file that comes back must be the one that went out. The
dominating cost is a record taken apart and put together again, in Python.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.servers.valkey import single
from webfountain.core.change_rate import append
from webfountain.records import Copy, Link, Outcome
from webfountain.store.answers import Refill
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    import redis

GOAL_S = 60.0
AT = 1.75e9


def main() -> int:
    """Print seconds and CPU of each part. Return 1 if the goal is missed or something was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--form", choices=["jsonl", "parquet"], default="parquet")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wf-"))
    try:
        with single() as (url, client):
            found = measure(folder, url, client, chosen.urls, chosen.sites, chosen.form)
    finally:
        shutil.rmtree(folder)
    if chosen.json:
        print(json.dumps(found, indent=1))
    else:
        for name, (seconds, cpu, server) in found.items():
            print(f"{name:32}{seconds:8.1f} s{cpu:8.1f} s CPU{server:8.1f} s CPU of the server")
    ways = [
        found["export embedded"][0] + found["import shared"][0],
        found["export shared"][0] + found["import embedded"][0],
    ]
    return int(max(ways) > GOAL_S * max(1.0, chosen.urls / 1e6))


def measure(
    folder: Path, server: str, client: redis.Redis, urls: int, sites: int, form: str
) -> dict[str, tuple[float, float, float]]:
    """Return the seconds, CPU seconds and CPU seconds of the server of each part. Assert that the last file equals the
    first.
    """
    first, second = f"rocksdb://{folder}/first", f"rocksdb://{folder}/second"
    _fill(first, urls, sites)
    files = [folder / f"{number}.{form}" for number in range(3)]
    found = {
        "export embedded": _run("export", files[0], first, client),
        "import shared": _run("import", files[0], server, client),
        "export shared": _run("export", files[1], server, client),
        "import embedded": _run("import", files[1], second, client),
    }
    _run("export", files[2], second, client)
    assert filecmp.cmp(files[0], files[2], shallow=False), "what came back is not what went out"
    return found


def _fill(url: str, urls: int, sites: int) -> None:
    store = open_store(url, collection="bench", period_s=86_400.0)
    names = [f"https://site{number:05d}.example.org" for number in range(sites)]
    for start in range(0, urls, 10_000):
        some = range(start, min(start + 10_000, urls))
        links = [
            Link(f"{names[n % sites]}/docs/page-{n:09d}-xxxxx.html", names[n % sites], n.to_bytes(8, "little"), n % 9)
            for n in some
        ]
        store.queues.discover(links, at=AT + start)
    homes = store.sites.activate(sites, owner="bench", until=math.inf, at=AT + urls)
    for home in homes:
        [dealt] = store.queues.lease([Refill(home, 0, urls // sites // 2)])
        assert dealt is not None
        outcomes = []
        for number, lease in enumerate(dealt.never_crawled):
            record = msgspec.structs.replace(
                lease.record,
                state="crawled",
                bucket=number % 256,
                last_crawled=AT + number * 0.37,
                history=append(b"", 86_400.0, False) * 8,
                checks=8,
                digest=f"{number:040x}",
                status=200,
                copy=Copy(number % 40, number * 5_000, 5_000),
            )
            outcomes.append(Outcome(lease.id, "new", record, 0.1))
        store.queues.settle(outcomes, at=AT + 1e6)
    store.close()


def _cpu(client: redis.Redis) -> float:
    used: dict[str, float] = client.info("cpu")
    return used["used_cpu_user"] + used["used_cpu_sys"]


def _run(command: str, file: Path, store: str, client: redis.Redis) -> tuple[float, float, float]:
    begin, before = time.monotonic(), _cpu(client)
    process = subprocess.Popen(
        [sys.executable, "-m", "webfountain", command, str(file), "--store", store], stdout=sys.stderr
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    print(f"{command} {store.partition(':')[0]}: {usage.ru_maxrss / 1024:.0f} MB at most", file=sys.stderr)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, _cpu(client) - before


if __name__ == "__main__":
    sys.exit(main())
