"""Measure what an entry of the change log and a poll cost, at 10^6 known URLs, or what the log costs in a whole crawl.

``python -m tests.benchmarks.bench_changes [SIZE]`` or ``--crawl [--pages N] [--rounds N]``

CPU time of the whole process is measured. The cost of an entry is the time of settling changed pages, minus the time of
settling as many unchanged pages. A poll is made by a second opening for reading, on a store without steps and right
after a step. Most of the cost of an entry is RocksDB's put and msgpack. Most of the cost of a poll is reading the
writer's new files.

With ``--crawl``, whole crawls of the web of `bench_crawl` run in turns with the log and without (`LogRemover`). The
figure is the median of the ratios of CPU time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.benchmarks.bench_crawl import fountain
from tests.benchmarks.bench_frontier import Links, fill
from webfountain import settings as door
from webfountain.records import Outcome, OutcomeKind
from webfountain.store.answers import Refill
from webfountain.store.embedded.change_log import LocalChangeLog
from webfountain.store.lanes import LANES
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore

SITES = 200
HAND = 200
ROUNDS = 4
POLLS = 200
ALWAYS = [float("inf")] * LANES


def settle_all(store: FrontierStore, sites: Sequence[SiteLease], kind: OutcomeKind, at: float) -> tuple[float, int]:
    """Return CPU seconds and number of pages of fetching a hand of each site with one outcome."""
    spent, pages = 0.0, 0
    for site in sites:
        never_crawled, recrawl = (HAND, 0) if kind == "new" else (0, HAND)
        (dealt,) = store.queues.lease([Refill(site, never_crawled=never_crawled, recrawl=recrawl, horizon=ALWAYS)])
        assert dealt is not None
        outcomes = []
        for one in dealt.never_crawled + dealt.recrawl:
            digest = one.record.digest if kind == "same" else f"{at:040.3f}"
            record = msgspec.structs.replace(
                one.record, state="crawled", last_crawled=at, copied=at, digest=digest, bucket=7
            )
            outcomes.append(Outcome(one.id, kind, record, 0.2, title="The title of some page", resemblance=0.7))
        before = time.process_time()
        pages += store.queues.settle(outcomes, at=at).applied
        spent += time.process_time() - before
    return spent, pages


class LogRemover:
    """A Scrapy extension by which a crawl makes and writes no entries of the change log."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build the extension, before the store is opened."""
        LocalChangeLog.note_outcome = lambda *_, **__: None  # type: ignore[method-assign]
        return cls()


def crawls(pages: int, rounds: int) -> dict[str, float]:
    """Return the CPU milliseconds of a page with the log and without, and the median ratio."""
    extensions = {**door.EXTENSIONS, f"{__package__}.bench_changes.Unlogged": 1}
    without = ("-s", f"EXTENSIONS={json.dumps(extensions)}")
    spent: list[tuple[float, float]] = []
    for number in range(rounds):
        pair = {}
        for options in ((), without) if number % 2 else (without, ()):
            folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
            try:
                cost = fountain(folder, pages, *options)
            finally:
                shutil.rmtree(folder)
            pair[options == ()] = 1000 * cost.cpu_s / cost.pages
        spent.append((pair[True], pair[False]))
    return {
        "pages": pages,
        "rounds": rounds,
        "ms_with": statistics.median(logged for logged, _ in spent),
        "ms_without": statistics.median(bare for _, bare in spent),
        "ratio": statistics.median(logged / bare for logged, bare in spent),
        "least_ratio": min(logged / bare for logged, bare in spent),
        "greatest_ratio": max(logged / bare for logged, bare in spent),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=float, default=1e6)
    parser.add_argument("--crawl", action="store_true", help="whole crawls with and without the log, in turns")
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    if chosen.crawl:
        print(json.dumps({name: float(f"{value:.4g}") for name, value in crawls(chosen.pages, chosen.rounds).items()}))
    else:
        in_store(int(chosen.size))


def in_store(size: int) -> None:
    """Measure entries and polls at `size` known URLs."""
    folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    try:
        store = open_store(f"rocksdb://{folder}", collection="bench", period_s=86400)
        fill(store, Links(size), size)
        sites = store.sites.activate(SITES, owner="a", until=1e9, at=10.0)
        settle_all(store, sites, "new", 11.0)
        spent: dict[OutcomeKind, float] = {"same": 0.0, "changed": 0.0}
        pages = 0
        for number in range(2 * ROUNDS):
            kind: OutcomeKind = "changed" if number % 2 else "same"
            seconds, pages = settle_all(store, sites, kind, 12.0 + number)
            spent[kind] += seconds
        reader = open_store(f"rocksdb://{folder}", collection=None, period_s=None, read_only=True)
        end = reader.changes.end()
        before = time.process_time()
        for _ in range(POLLS):
            assert reader.changes.after(end, 1000) == []
        empty = (time.process_time() - before) / POLLS
        before = time.process_time()
        found = reader.changes.after(None, 20_000)
        entry = (time.process_time() - before - empty) / len(found)
        assert len(found) == 20_000
        busy, taken = 0.0, 0
        for number in range(POLLS // 4):
            end = reader.changes.end()
            settle_all(store, sites[:1], "changed", 100.0 + number)
            before = time.process_time()
            taken += len(reader.changes.after(end, 1000))
            busy += time.process_time() - before
        assert taken == POLLS // 4 * HAND
        result = {
            "known": size,
            "entry_us": 1e6 * (spent["changed"] - spent["same"]) / (ROUNDS * pages),
            "settle_us": 1e6 * spent["same"] / (ROUNDS * pages),
            "poll_ms": 1e3 * empty,
            "polled_entry_us": 1e6 * entry,
            "busy_poll_ms": 1e3 * (busy - taken * entry) / (POLLS // 4),
        }
        print(json.dumps({name: float(f"{value:.4g}") for name, value in result.items()}))
        reader.close()
        store.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
