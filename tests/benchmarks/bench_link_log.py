"""Measure the link log and epochs: ``python -m tests.benchmarks.bench_link_log [--full]``.

Measured is the CPU of logging a page with 60 links, of a compaction, of publishing scores of 10^6 pages (``--full``
10^7), and of 10,000 look-ups. Most of the cost is a look-up of each link among the names that were written. The costs
are compared with hashing the URLs of a page in the same run, because the machine's speed varies.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from webfountain.ranking.link_log import LinkLog, compact
from webfountain.ranking.scores import EpochScores, publish_scores
from webfountain.records import Link
from webfountain.urls import fingerprint

PAGES = 20_000
LINKS = 60
BATCH = 20


def main() -> None:
    """Print the three figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="scores of 10^7 pages")
    full = parser.parse_args().full
    with tempfile.TemporaryDirectory() as folder:
        _log(folder + "/links")
        _publish(Path(folder) / "scores", 10**7 if full else 10**6)


def _log(url: str) -> None:
    rng = np.random.default_rng(1)
    sites = [f"https://site{number}.example" for number in range(100)]
    log = LinkLog(url, writer="bench")
    logged = hashed = 0.0
    for first in range(0, PAGES, BATCH):
        pages = [_drawn(rng, sites[page % 100], page) for page in range(first, first + BATCH)]
        begin = time.process_time()
        for page, site, links in pages:
            log.append(page, site, at=float(first), links=links)
        logged += time.process_time() - begin
        begin = time.process_time()
        for _, _, links in pages:
            for link in links:
                fingerprint(link.url)
        hashed += time.process_time() - begin
    begin = time.process_time()
    log.flush()
    logged += time.process_time() - begin
    begin = time.process_time()
    assert compact(url) == PAGES
    print(
        f"logged: {logged / PAGES * 1e6:.0f} us a page with {LINKS} links (goal 60), {logged / hashed:.1f} times as"
        f" long as hashing their URLs ({hashed / PAGES * 1e6:.0f} us);"
        f" compacted: {(time.process_time() - begin) / PAGES * 1e6:.0f} us a page"
    )


def _drawn(rng: np.random.Generator, site: str, page: int) -> tuple[str, str, tuple[Link, ...]]:
    """Return a page with new link objects, as the examiner makes them."""
    numbers = dict.fromkeys((rng.random(2 * LINKS) ** 2 * 1000).astype(int).tolist())
    urls = [f"{site}/page/{n}" for n in list(numbers)[:LINKS]]
    return f"{site}/page/{page}", site, tuple(Link(url, site, fingerprint(url)) for url in urls)


def _publish(folder: Path, count: int) -> None:
    rng = np.random.default_rng(1)
    keys = np.unique(rng.integers(0, 2**64 - 1, count, dtype=np.uint64))
    scores = rng.random(len(keys))
    begin, wall = time.process_time(), time.perf_counter()
    publish_scores(folder, keys, {"pagerank": scores})
    print(f"published {len(keys):,}: {time.process_time() - begin:.2f} s CPU, {time.perf_counter() - wall:.2f} s (60)")
    held = EpochScores(folder)
    asked = rng.permutation(keys)[:10_000]
    held.lookup("pagerank", asked)
    begin = time.process_time()
    assert (held.lookup("pagerank", asked) > 0).all()
    print(f"looked up: {(time.process_time() - begin) / len(asked) * 1e6:.2f} us a page in batches of {len(asked):,}")


if __name__ == "__main__":
    main()
