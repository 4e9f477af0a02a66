"""Measure near-duplicates: ``python -m tests.benchmarks.bench_near_duplicates [--pages N]``, by default 10^5.

The CPU per page of the index (look-up, insertion, writing and merging of runs) is measured over the last tenth of N
pages, of which one in ten is a near-duplicate. The CPU of a sketch of a text of 1,300 words is printed too. Most of the
cost is looking up ten keys in each run.

``--recall DATA`` prints instead how well sketches find edited versions of real texts in the folder DATA with
`timeweb/timeweb.zip`. Up to 12 % of the words are replaced, added at the front, or cut off. A pair is found if it
shares a band and the estimate is at least 0.84. Then the texts decide.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.duplicates.test_detector import real_texts
from webfountain.core.shingles import exact_resemblance
from webfountain.core.sketch import SKETCH_BYTES, band_keys, most_resemblance, sketch, sketch_rows, sketches
from webfountain.duplicates.index import DuplicateIndex, IndexedPage

WORDS = 1300
RESEMBLANCE, LEAST = 0.9, 0.84
"""Least resemblance of duplicates, and least estimate for a comparison of the texts."""


def main() -> None:
    """Print the two figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--recall", type=Path, metavar="DATA")
    options = parser.parse_args()
    if options.recall is not None:
        _recall([" ".join(text.split()) for text in real_texts(options.recall)])
        return
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


def _recall(texts: list[str]) -> None:
    """Print a line for each range of true resemblances."""
    rng = np.random.default_rng(3)
    rows = []
    for place, text in enumerate(texts):
        words, share = text.split(), float(rng.uniform(0, 0.12))
        count = int(share * len(words))
        edited = [
            [f"x{place}" if rng.random() < share / 4 else word for word in words],
            [*(f"m{number}" for number in range(count)), *words],
            words[count:],
        ]
        for each in map(" ".join, edited):
            kept, asked = sketch_rows([sketch(text) or bytes(SKETCH_BYTES)]), sketches(each)
            meets = bool((band_keys(sketch_rows(asked)) == band_keys(kept)).any())
            rows.append((exact_resemblance(text, each), float(most_resemblance(asked, kept)[0]), meets))
    true, estimated, meet = np.array(rows).T
    found = (meet > 0) & (estimated >= LEAST)
    for low, high in itertools.pairwise((0.8, 0.84, 0.88, 0.9, 0.92, 0.95, 0.98, 1.01)):
        of = (true >= low) & (true < high)
        rms = np.sqrt(np.mean((estimated - true)[of] ** 2))
        print(f"{low:.2f} to {high:.2f}: {of.sum():5} pairs, {found[of].mean():6.1%} found, rms error {rms:.3f}")
    print(f"of those of .9 and more {found[true >= RESEMBLANCE].mean():.2%} are found")


if __name__ == "__main__":
    main()
