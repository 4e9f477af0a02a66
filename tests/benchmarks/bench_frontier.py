"""Measure what a link and a lease cost the embedded store at 10^5, 10^6 and, with --full, 10^7 known URLs.

``python -m tests.benchmarks.bench_frontier [--full] [SIZE ...]``

Rates are per CPU second of the whole process, including RocksDB's flushes and compactions, which have ended before and
after each part.

Links come in batches of 16 pages with 60 links each, from pages of 1000 active sites. Of the links, 85 % lead to the
page's own site, by a Zipf law, and the others to any site. Building the links is not measured. New links are measured
while the number of known URLs doubles, or at 10^7 while it grows by half. At 10^7 one compaction merges what 2.7 * 10^6
links wrote, so the measured links include one or two compactions. At 10^6 hardly any compaction is due. A fill includes
all costs from the first link. Most of the cost is RocksDB's put and the compactions (new links), its get (known links),
and msgpack of the record (lease and settle).
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from webfountain.duplicates.url_dedup import DuplicateEliminator
from webfountain.records import Link, Outcome
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.contract import FrontierStore

PAGES_PER_SITE = 1000
LINKS_PER_PAGE = 60
PAGES_PER_BATCH = 16
NEW_OF_MIXED = PAGES_PER_BATCH * LINKS_PER_PAGE // 10
OWN_SITE = 0.85
ACTIVE_SITES = 1000
MIXED = 2_000_000
QUIET_S = 0.5
HAND = 20


class Links:
    """A seeded stream of links over `size` URLs on sites of PAGES_PER_SITE pages."""

    def __init__(self, size: int) -> None:
        self.rng = np.random.default_rng(20260101)
        self.sites = max(1, size // PAGES_PER_SITE)
        self.active = self.rng.permutation(self.sites)[:ACTIVE_SITES]
        ranks = np.arange(1, PAGES_PER_SITE + 1)
        self.zipf = np.cumsum(1 / ranks) / np.sum(1 / ranks)

    def known(self) -> list[Link]:
        """Return a batch of links to known URLs: links to the own sites by a Zipf law, the others to any site."""
        n = PAGES_PER_BATCH * LINKS_PER_PAGE
        own = np.repeat(self.rng.choice(self.active, size=PAGES_PER_BATCH), LINKS_PER_PAGE)
        site = np.where(self.rng.random(n) < OWN_SITE, own, self.rng.integers(self.sites, size=n))
        page = np.searchsorted(self.zipf, self.rng.random(n))
        return [link(int(s), int(p)) for s, p in zip(site, page, strict=True)]

    def mixed(self, fresh: list[Link]) -> list[Link]:
        """Return the new links with nine known links for each."""
        batch = self.known()
        for index, one in zip(range(0, len(batch), 10), fresh, strict=False):
            batch[index] = one
        return batch


def quiet_cpu() -> float:
    """Return the CPU seconds of the process, after flushes and compactions have ended."""
    while True:
        before = time.process_time()
        time.sleep(QUIET_S)
        if time.process_time() - before < QUIET_S / 50:
            return time.process_time()


def window(size: int) -> int:
    """Return how many new links are measured at a size."""
    return min(max(200_000, size), 5_000_000)


def link(site: int, page: int) -> Link:
    """Return the link to a page, with a site name and URL of realistic length."""
    name = f"https://www.site-{site:07d}.example"
    url = f"{name}/section-{page % 37}/some-article-title-{page:06d}.html"
    return Link(url, name, fingerprint(url), 3, "default", 1 / (1 + page), name)


def fresh_batches(links: Links, count: int, *, size: int, first_page: int) -> Iterator[list[Link]]:
    """Return batches of new links: 85 % in runs on the sites of the batch's pages, the others on any site."""
    used: dict[int, int] = {}
    for _ in range(-(-count // size)):
        own = np.repeat(links.rng.choice(links.active, size=PAGES_PER_BATCH), -(-size // PAGES_PER_BATCH))[:size]
        site = np.where(links.rng.random(size) < OWN_SITE, own, links.rng.integers(links.sites, size=size))
        batch = []
        for s in site.tolist():
            used[s] = used.get(s, first_page - 1) + 1
            batch.append(link(s, used[s]))
        yield batch


class Building:
    """CPU seconds for building links, which are subtracted."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self.seconds -= time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.thread_time()


def fill(store: FrontierStore, links: Links, size: int) -> dict[str, float]:
    """Make the store's first `size` URLs known, as a crawl does, in rounds over its sites."""
    before, building, done = quiet_cpu(), Building(), 0
    order = links.rng.permutation(links.sites)
    for low in range(0, PAGES_PER_SITE, LINKS_PER_PAGE):
        pages = range(low, min(low + LINKS_PER_PAGE, PAGES_PER_SITE))
        for start in range(0, links.sites, PAGES_PER_BATCH):
            with building:
                batch = [link(int(s), p) for s in order[start : start + PAGES_PER_BATCH] for p in pages]
            done += store.queues.discover(batch, at=1.0).new
    cpu = quiet_cpu() - before - building.seconds
    assert done == links.sites * PAGES_PER_SITE
    return {"fill_links_per_cpu_s": done / cpu}


def measure_new(store: FrontierStore, links: Links, size: int) -> dict[str, float]:
    """Measure new links."""
    count = window(size)
    batches = fresh_batches(links, count, size=PAGES_PER_BATCH * LINKS_PER_PAGE, first_page=PAGES_PER_SITE)
    before, thread, building, seen, new = quiet_cpu(), time.thread_time(), Building(), 0, 0
    while True:
        with building:
            batch = next(batches, [])
        if not batch:
            break
        new += store.queues.discover(batch, at=2.0).new
        seen += len(batch)
    own = time.thread_time() - thread - building.seconds
    cpu = quiet_cpu() - before - building.seconds
    assert new == seen >= count
    return {"new_links_per_cpu_s": new / cpu, "new_links_own_thread_share": own / cpu}


def measure_mixed(store: FrontierStore, links: Links, size: int) -> dict[str, float]:
    """Measure links of which nine of ten are known, through the duplicate eliminator."""
    due = DuplicateEliminator(store)
    fresh = fresh_batches(links, min(MIXED, 10 * size) // 10, size=NEW_OF_MIXED, first_page=10**6)
    before, building, seen, new = quiet_cpu(), Building(), 0, 0
    while True:
        with building:
            batch = links.mixed(next(fresh, []))
        found = len(due.discover(batch, at=3.0))
        if not found:
            break
        assert found == NEW_OF_MIXED
        new += found
        seen += len(batch)
    cpu = quiet_cpu() - before - building.seconds
    assert new == seen // 10
    return {
        "mixed_links_per_cpu_s": seen / cpu,
        "mixed_answered_by_cache": due.counts["duplicates/by_cache"] / seen,
    }


def measure_lease(store: FrontierStore, links: Links, size: int) -> dict[str, float]:
    """Measure these steps: activate sites, lease and settle a hand of each, lease and settle due pages, park."""
    horizon = [float("inf")] * 258
    sites = min(links.sites, ACTIVE_SITES)
    before, done = quiet_cpu(), 0
    found = store.sites.activate(sites, owner="a", until=1e9, at=10.0)
    for site in found:
        recrawl = Refill(site, recrawl=HAND, horizon=horizon)
        for queue in ("never-crawled", "never-crawled", "never-crawled", "recrawl"):
            refill = Refill(site, never_crawled=HAND) if queue == "never-crawled" else recrawl
            (dealt,) = store.queues.lease([refill])
            assert dealt is not None
            leases = dealt.never_crawled + dealt.recrawl
            outcomes = [
                Outcome(
                    one.id,
                    "new",
                    msgspec.structs.replace(
                        one.record,
                        state="crawled",
                        last_crawled=11.0 + number,
                        status=200,
                        digest="da39a3ee5e6b4b0d3255bfef95601890afd80709",
                        etag='"5f3c-1a2b3c4d"',
                        bucket=(number * 7) % 40,
                        copied=11.0,
                    ),
                    0.2,
                )
                for number, one in enumerate(leases)
            ]
            done += store.queues.settle(outcomes, at=11.0).applied
    store.sites.park([ParkRequest(site, 1e6, site.record.state) for site in found], at=12.0)
    cpu = quiet_cpu() - before
    assert done == 4 * HAND * len(found)
    return {"lease_settle_per_cpu_s": done / cpu}


def run(size: int) -> dict[str, float]:
    """Return all measurements on one store, in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    try:
        store = open_store(f"rocksdb://{folder}", collection="bench", period_s=86400)
        links = Links(size)
        start = time.perf_counter()
        result: dict[str, float] = {"known": size, **fill(store, links, size)}
        for measure in (measure_new, measure_mixed, measure_lease):
            result |= measure(store, links, size)
        result["seconds"] = time.perf_counter() - start
        known = sum(store.census.statistics().pages.values())
        store.close()
        result["disk_bytes_per_url"] = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / known
        result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return result
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Print one JSON object a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=float, default=[1e5, 1e6])
    parser.add_argument("--full", action="store_true", help="also 10^7 URLs: ten minutes and 2 GB of disk")
    chosen = parser.parse_args()
    for size in [*chosen.sizes, *([1e7] if chosen.full else [])]:
        result = {name: float(f"{value:.4g}") for name, value in run(int(size)).items()}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
