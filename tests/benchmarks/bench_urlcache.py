"""URL caches: ``python -m tests.benchmarks.bench_urlcache [--rates]``.

Look-ups a CPU second of each cache of 50,000 entries, in batches of 4096, on the links of a breadth-first crawl of
cnr-2000, beside a plain dict that never forgets; with ``--rates`` the miss rates at 2^5 .. 2^22, full trace and between
16 ants, and the checks of issue 10. The dominating cost is one dict look-up a link.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webfountain.core.url_cache import ClockCache, InfiniteCache, LruCache, RandomCache
from webfountain.simulate.ordering import load_graph
from webfountain.simulate.urlcache import crawl_trace, simulate_urlcache

if TYPE_CHECKING:
    from webfountain.core.url_cache import UrlCache

GRAPH = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph" / "cnr-2000.npz"
START = 217_849
ENTRIES = 50_000
BATCH = 4096


def main() -> None:
    """A line for each cache; with --rates a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", action="store_true", help="miss rates at all sizes, some minutes")
    if parser.parse_args().rates:
        _rates(1)
        _rates(16)
        return
    trace = crawl_trace(load_graph(GRAPH), START, "breadth-first")[1]
    urls = [(page * 0x9E3779B97F4A7C15) % 2**64 for page in trace.tolist()]
    batches = [urls[begin : begin + BATCH] for begin in range(0, len(urls), BATCH)]
    held: dict[int, None] = {}
    begin = time.process_time()
    for batch in batches:
        for url in batch:
            if url not in held:
                held[url] = None
    print(f"dict: {len(urls) / (time.process_time() - begin) / 1e6:.1f} million a second")
    caches: dict[str, UrlCache] = {
        "lru": LruCache(ENTRIES),
        "clock": ClockCache(ENTRIES),
        "random": RandomCache(ENTRIES, random.Random(1)),
        "infinite": InfiniteCache(),
    }
    for name, cache in caches.items():
        begin = time.process_time()
        missed = sum(len(cache.missing(batch)) for batch in batches)
        seconds = time.process_time() - begin
        print(f"{name}: {len(urls) / seconds / 1e6:.1f} million a second (goal 3), miss rate {missed / len(urls):.4f}")


def _rates(ants: int) -> None:
    sizes = [2**power for power in range(5, 23)]
    found = simulate_urlcache(GRAPH, start=START, sizes=sizes, policies=["all"], ants=ants)
    rates = found["policies"]
    print(f"{ants} ants: {found['requests']:,} links, {found['distinct']:,} distinct")
    for size in map(str, sizes):
        print(size, *(f"{name} {rates[name][size]:.4f}" for name in rates))
        assert all(rates["min"][size] <= rates[name][size] for name in ("lru", "clock", "random"))
    worst = max(abs(rates["clock"][str(size)] / rates["lru"][str(size)] - 1) for size in sizes)
    print(f"clock and lru differ by at most {worst:.1%}")


if __name__ == "__main__":
    main()
