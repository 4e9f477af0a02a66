"""Measure a policy edit on a running crawl of 10^6 known URLs: the requests after the edit, and the time until the
tombstones.

``python -m tests.benchmarks.bench_policy_edit [SIZE]``

The store has 200 sites. A quarter of the URLs is held, and the edit denies half of the URLs. The frontier crawls the
store under a manual clock, and adopts the edited file in the middle. Printed are the denied pages that were requested
after the edit (none may be), the seconds and CPU seconds until every denied held page has its tombstone, and the
longest batch of the worker before and after the edit. Most of the cost is a lease, a settle and a log entry for each
page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import TYPE_CHECKING

import msgspec

from tests.frontier.drive import Drive, collection_of
from webfountain.records import Link, Outcome
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.frontier.drive import Answer
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

SITES = 200
BATCH = 1000
START = 1_000_000.0
DENY = "[policies.default]\ndeny = ['/drop/']\n"


def collection(rest: str = "") -> Collection:
    """Return the collection, with the home pages as seeds and one request per second to each site."""
    return collection_of([f"{site(n)}/" for n in range(SITES)], delay_factor=0, rest=rest)


def site(number: int) -> str:
    return f"http://s{number}.example"


def links(number: int, many: int) -> Iterator[Link]:
    """Yield links to a site's pages, of which every second page will be denied."""
    home = site(number)
    for page in range(many):
        url = f"{home}/{'drop' if page % 2 else 'keep'}/{page}"
        yield Link(url, home, fingerprint(url), depth=1, source=f"{home}/")


def fill(store: FrontierStore, size: int) -> None:
    """Make `size` URLs known, and a quarter of them held."""
    each = size // SITES
    for number in range(SITES):
        waiting = list(links(number, each))
        for begin in range(0, each, BATCH):
            store.queues.discover(waiting[begin : begin + BATCH], at=START - 86_400.0)
    for lease in store.sites.activate(SITES, owner="bench", until=START, at=START - 80_000.0):
        (dealt,) = store.queues.lease([Refill(lease, never_crawled=each // 4)])
        assert dealt is not None
        ends = []
        for one in dealt.never_crawled:
            record = msgspec.structs.replace(
                one.record, state="crawled", last_crawled=START - 70_000.0, digest=f"{one.key.hex():0>40}", status=200
            )
            ends.append(Outcome(one.id, "new", record))
        store.queues.settle(ends, at=START - 70_000.0)
        store.sites.park([ParkRequest(lease, START, lease.record.state)], at=START - 70_000.0)


def answer(fetch: Fetch, at: float) -> Answer:
    """Return an unchanged page."""
    return (200, {"content-type": "text/html"}, b"text", 0.01) if fetch.kind == "page" else (404, {}, b"", 0.01)


def main() -> int:
    """Print one JSON document. Return 1 if a denied page was requested."""
    parser = argparse.ArgumentParser()
    parser.add_argument("size", nargs="?", type=int, default=1_000_000)
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"rocksdb://{folder}/store", collection="test", period_s=86_400.0, at=START - 86_400.0)
        begun = time.process_time()
        fill(store, size)
        print(f"{size:,} URLs filled in, {time.process_time() - begun:.0f} s of CPU", flush=True)
        drive = Drive(collection(), answer, store=store)
        drive.addresses = {f"s{n}.example": [f"203.0.{113 + n // 250}.{n % 250 + 1}"] for n in range(SITES)}
        batches = timed_batches(drive)
        drive.run(seconds=20)
        usual = max(batches)
        asked, refused = len(drive.asked()), store.census.statistics().pages["refused"]
        held = sum("/drop/" in record.url for _, record in store.pages.records(state="crawled"))
        batches.clear()
        drive.frontier.work.adopt(collection(DENY))
        at, cpu = drive.clock.now(), time.process_time()
        drive.run(steps=10_000_000, until=lambda: store.census.statistics().pages["refused"] - refused >= held)
        found = {
            "urls": size,
            "held_and_denied": held,
            "denied_asked_after": sum("/drop/" in url for url in drive.asked()[asked:]),
            "asked_meanwhile": len(drive.asked()) - asked,
            "crawl_seconds": drive.clock.now() - at,
            "cpu_seconds": time.process_time() - cpu,
            "longest_batch_s": max(batches),
            "longest_batch_before_s": usual,
        }
        drive.frontier.close()
    print(json.dumps(found, indent=2))
    return int(found["denied_asked_after"] > 0)


def timed_batches(drive: Drive) -> list[float]:
    """Return a list to which each batch of the worker adds its CPU seconds."""
    spent: list[float] = []
    run = drive.frontier.worker.run

    def timed(batch: object) -> object:
        begun = time.process_time()
        result = run(batch)  # type: ignore[arg-type]
        spent.append(time.process_time() - begun)
        return result

    drive.frontier.worker.run = timed  # type: ignore[method-assign, assignment]
    return spent


if __name__ == "__main__":
    raise SystemExit(main())
