"""Measure what the service costs: CPU milliseconds and compressed kB of each answer, a scrape, and memory.

``python -m tests.benchmarks.bench_service [--pages N] [--sites N]``; the dominating cost is reading and encoding rows.
Bounds of the project: 50 ms of CPU and 100 kB compressed at 10^6 pages on 10^4 sites, a scrape 20 ms, memory 120 MB.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import tempfile
import time
from pathlib import Path

import msgspec

from webfountain.api.opening import open_stored
from webfountain.history.archive import Archive
from webfountain.history.exposition import exposition
from webfountain.history.sample import HistorySample
from webfountain.records import Link
from webfountain.service import answers
from webfountain.service.answers import MAX_LIMIT
from webfountain.service.application import figures_of
from webfountain.service.table import OPERATIONS
from webfountain.store.opening import open_store
from webfountain.store.site_orders import SITE_ORDERS
from webfountain.urls import fingerprint

ROUNDS = 5


def fill(url: str, *, sites: int, pages: int) -> str:
    """Fill a store with never-crawled pages and a history of two days. Return the name of a site in its middle."""
    is_new = not (Path(url.removeprefix("rocksdb://")) / "db").exists()
    store = open_store(url, collection="bench" if is_new else None, period_s=3600.0 if is_new else None)
    for number in range(sites):
        home = f"https://site-{number:06}.example"
        urls = [f"{home}/some/page-{page}" for page in range(pages // sites)]
        store.queues.discover([Link(each, home, fingerprint(each)) for each in urls], at=1.0)
    archive = Archive(store.board)
    for minute in range(0, 2 * 1440, 1):
        at = 1_760_000_000 // 60 * 60 + 60.0 * minute
        archive.add(HistorySample(at, 60.0, (pages, 0, 0, 0, 0, 0), sites, 100, tuple(range(10)), {"timeout": 3}))
    store.close()
    return f"https://site-{sites // 2:06}.example"


def main() -> None:
    """Fill a store, request the answers, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"rocksdb://{Path(folder) / 'store'}"
        began = time.process_time()
        site = fill(url, sites=given.sites, pages=given.pages)
        print(f"{given.pages:,} pages on {given.sites:,} sites, filled in {time.process_time() - began:.0f} s of CPU")
        queries = {
            "site": answers.SiteQuery(site),
            "pages": answers.PagesQuery(site, limit=MAX_LIMIT),
            "page": answers.PageQuery(f"{site}/some/page-1"),
            "sites": answers.SitesQuery(after=site, limit=MAX_LIMIT),
            "links": answers.PageQuery(f"{site}/some/page-1"),
            **{name: answers.SiteQuery(site) for name in ("robots", "sections", "waiting")},
        }
        collection = open_stored(url)
        asked = [
            (each.name, each)
            for each in OPERATIONS
            if each.read and each.name not in ("copy", "text", "texts", "versions", "compare", "explain", "search")
        ]
        [sites] = [each for name, each in asked if name == "sites"]
        for order in SITE_ORDERS[1:]:
            _, cursor = collection.sorted_sites(order, limit=1000)
            queries[f"sites by {order}"] = answers.SitesQuery(sort=order, after=cursor or "", limit=MAX_LIMIT)
            asked.append((f"sites by {order}", sites))
        for name, each in asked:
            assert each.read is not None
            query = queries.get(name) or each.query()
            times, body = [], b""
            for _ in range(ROUNDS):
                began = time.process_time()
                body = msgspec.json.encode(each.read(collection, query), enc_hook=lambda value: value.item())
                packed = gzip.compress(body, 3)
                times.append(1000 * (time.process_time() - began))
            sizes = f"{len(body) / 1000:7.1f} kB, {len(packed) / 1000:.1f} compressed"
            print(f"{name:16} {min(times):6.1f} ms {sizes}")
        began = time.process_time()
        for _ in range(ROUNDS):
            exposition([figures_of(collection, "bench")])
        print(f"scrape   {1000 * (time.process_time() - began) / ROUNDS:6.1f} ms")
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"memory   {most:6.0f} MB at most, the filling included")
        collection.close()


if __name__ == "__main__":
    main()
