"""Compare URL caches: ``python -m tests.benchmarks.bench_urlcache [--rates ANTS]``.

Printed are the look-ups per CPU second of each cache of 50,000 entries, in batches of 4096, on the links of a
breadth-first crawl of cnr-2000, and those of a plain dict. With ``--rates``, the miss rates at 2^5 to 2^22 entries are
printed, for the full trace (1) or for the links between a number of ants, with the knee. Most of the cost is one dict
look-up per link.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webfountain.core.url_cache import LruCache
from webfountain.lab.simulate.cache_misses import crawl_trace, simulate_urlcache
from webfountain.lab.simulate.crawl_order import load_graph
from webfountain.lab.simulate.url_caches import ClockCache, RandomCache

if TYPE_CHECKING:
    from webfountain.lab.simulate.url_caches import UrlCache

GRAPH = Path(__file__).resolve().parents[3] / "shared" / "data" / "graph" / "cnr-2000.npz"
START = 217_849
ENTRIES = 50_000
BATCH = 4096


def main() -> None:
    """Print a line for each cache, or a table with --rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, metavar="ANTS", help="miss rates at all sizes, some minutes")
    ants = parser.parse_args().rates
    if ants is not None:
        _rates(ants)
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
    print("| entries |", " | ".join(rates), "|")
    for size in map(str, sizes):
        print(f"| {int(size):,} |", " | ".join(f"{rates[name][size]:.4f}" for name in rates), "|")
        assert rates["infinite"][size] == found["distinct"] / found["requests"]
        assert all(rates["min"][size] <= rates[name][size] for name in ("lru", "clock", "random"))
    apart = {size: abs(rates["clock"][str(size)] / rates["lru"][str(size)] - 1) for size in sizes}
    print(f"clock and lru differ by at most {max(apart.values()):.1%}; by more than 5 % at:", end=" ")
    print(", ".join(str(size) for size in sizes if apart[size] > 0.05) or "no size")
    print(f"knee of lru: {_knee(sizes, list(rates['lru'].values())):,} entries")


def _knee(sizes: list[int], rates: list[float]) -> int:
    """Return the first size from which no doubling saves one look-up of a hundred."""
    steps = [before - after for before, after in itertools.pairwise(rates)]
    return sizes[max((place + 1 for place, spared in enumerate(steps) if spared >= 0.01), default=0)]


if __name__ == "__main__":
    main()
