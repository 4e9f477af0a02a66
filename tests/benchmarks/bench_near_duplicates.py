"""Near-duplicates: ``python -m tests.benchmarks.bench_near_duplicates [--pages N]``, 10^5 unless given.

CPU a page of the index (look-up, insertion, runs written and merged, in all threads) over the last tenth of N drawn
pages, of which one in ten is a near-duplicate, in batches as a live crawl has them; and beside it that of a sketch of a
text of 1,300 words. The dominating cost is looking up ten keys in each run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from webfountain.core.resemblance import SKETCH_BYTES, sketch
from webfountain.ranking.duplicate_index import DuplicateIndex, IndexedPage

WORDS = 1300


def main() -> None:
    """Two lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=50)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    texts = [" ".join(f"word{number}" for number in rng.integers(0, 20_000, WORDS)) for _ in range(200)]
    sketch(texts[0])
    start = time.process_time()
    for text in texts:
        sketch(text)
    print(f"sketch of {WORDS} words: {(time.process_time() - start) / len(texts) * 1e3:.3f} ms")
    with tempfile.TemporaryDirectory() as folder:
        index = DuplicateIndex(Path(folder))
        spent, counted, found = 0.0, 0, 0
        first = rng.integers(0, 256, (1000, SKETCH_BYTES), dtype=np.uint8)
        for begin in range(0, options.pages, options.batch):
            drawn = rng.integers(0, 256, (options.batch, SKETCH_BYTES), dtype=np.uint8)
            if begin < len(first):
                drawn = first[begin : begin + options.batch]
            else:
                copies = first[rng.integers(0, len(first), options.batch // 10)]
                same = rng.random(copies.shape) < 0.97
                drawn[: len(copies)] = np.where(same, copies, drawn[: len(copies)])
            pages = [
                IndexedPage(f"http://a.example/{begin + k}", f"{begin + k:016x}", row.tobytes())
                for k, row in enumerate(drawn)
            ]
            start = time.process_time()
            for probe in index.probe(pages):
                if index.nearest(probe):
                    found += begin >= 0.9 * options.pages
                else:
                    index.keep(probe)
            if begin >= 0.9 * options.pages:
                spent, counted = spent + time.process_time() - start, counted + options.batch
        each = spent / counted * 1e3
        print(f"{options.pages:,} pages: {each:.3f} ms a page (goal .15), {found / counted:.1%} found (10 %)")
        index.close()


if __name__ == "__main__":
    main()
