"""An hour of recrawling 2,000 sites whose pages change: memory, open files and the store's size stay where they were.

What grows with the web may grow in the first ten minutes; after that nothing does. ``WEBFOUNTAIN_SOAK_MINUTES`` makes
the hour shorter, for whoever mends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.crawls import Crawl, policy
from webfountain.lab.demo.process import DemoServer

MINUTES = int(os.environ.get("WEBFOUNTAIN_SOAK_MINUTES", "60"))
SETTLED = MINUTES // 6
"""The minute after which nothing may grow: the tenth of sixty."""
SITES, PAGES = 2000, 20_000
PERIOD_S = 300
PAGES_A_SECOND = 70
"""A modest rate, about a tenth of a core: the hour is meant to run beside other work."""
LOG_ENTRIES = 10_000
"""Bound of the change log, reached within the first minutes: a log that still fills would hide what else grows."""
MEGABYTE = 1_000_000


class Minute(NamedTuple):
    """What was seen of a crawl in a minute: the most of each, and the least size of the store."""

    rss_bytes: int
    files: int
    store_bytes: int
    least_store_bytes: int
    repository_bytes: int
    crawled: int


def family(pid: int) -> list[int]:
    """A process and its children, its readers: those of all its threads, each of which starts its own."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [grown for child in task.read_text().split() for grown in family(int(child))]
    return found


def rss_bytes(pid: int) -> int:
    """Resident memory of one process, 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder that is being written."""
    found = 0
    for file in folder.rglob("*"):
        try:
            found += file.stat().st_size * file.is_file()
        except OSError:
            continue
    return found


def observed_time(crawl: Crawl, store: Path, server: DemoServer) -> Minute:
    """One minute of a running crawl."""
    end = time.monotonic() + 60
    rss = files = 0
    sizes: list[int] = []
    while time.monotonic() < end:
        assert crawl.process.poll() is None, crawl.errors.read_text()
        rss = max(rss, sum(map(rss_bytes, family(crawl.process.pid))))
        files = max(files, len(os.listdir(f"/proc/{crawl.process.pid}/fd")))
        sizes.append(size_of(store) - size_of(store / "repository"))
        time.sleep(1)
    repository = size_of(store / "repository")
    return Minute(rss, files, max(sizes), min(sizes), repository, int(server.stats()["served"]))


@pytest.mark.soak
def test_an_hour_of_recrawling_2000_sites_takes_no_more_memory_files_or_disk_than_ten_minutes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with DemoServer(sites=SITES, pages=PAGES, period=PERIOD_S) as server:
        collection = policy(
            tmp_path,
            server.urls,
            cycle={"period": f"{PERIOD_S}s", "capacity_pages_per_period": PAGES_A_SECOND * PERIOD_S},
            policies__default={"revisit": {"min_interval": "30s", "max_interval": "15m"}},
            repository={"max_bytes": "400MB"},
            changes={"max_entries": LOG_ENTRIES},
        )
        minutes = []
        with Crawl(collection, store, "-s", "LOG_LEVEL=WARNING") as crawl:
            for number in range(1, MINUTES + 1):
                minutes.append(observed_time(crawl, store, server))
                print(json.dumps({"minute": number, **minutes[-1]._asdict()}), flush=True)
            crawl.terminate()
            assert crawl.wait(60) == 0, crawl.errors.read_text()
        report = crawl.report()
        print(json.dumps(report))
        then, later = minutes[SETTLED - 1], minutes[SETTLED:]
        assert max(minute.rss_bytes for minute in later) <= 1.15 * then.rss_bytes
        # Connections that rest come and go by the hundred: their most is what must not grow.
        assert max(minute.files for minute in later) <= max(minute.files for minute in minutes[:SETTLED]) + 20
        assert max(minute.repository_bytes for minute in later) <= 400 * MEGABYTE
        # While the database merges its files, the store holds them twice: its least size is what it needs. It grows
        # by the pages that die and stay known: an hour adds 9,000 to the 20,000 that live.
        needed = min(minute.least_store_bytes for minute in later[:SETTLED])
        assert min(minute.least_store_bytes for minute in later[-SETTLED:]) <= 1.3 * needed
        assert max(minute.store_bytes for minute in later) <= 4 * needed
        assert report["pages_fetched"] >= 0.5 * PAGES_A_SECOND * 60 * MINUTES
        assert report["changed"] > 0
