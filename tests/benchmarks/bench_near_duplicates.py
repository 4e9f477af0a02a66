"""Near-duplicates: ``python -m tests.benchmarks.bench_near_duplicates [--pages N]``, 10^5 unless given.

CPU a page of the index (sketch, look-up, insertion, runs written and merged; the signature is made for change
detection anyway) over the last tenth of N drawn pages, of which one in ten is a near-duplicate. The dominating cost is
looking up twelve bands in each run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from webfountain.ranking.duplicate_index import DuplicateIndex

BATCH = 1000


def main() -> None:
    """One line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    pages = parser.parse_args().pages
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        index = DuplicateIndex(Path(folder))
        spent, counted, found = 0.0, 0, 0
        first = rng.integers(0, 1 << 24, (BATCH, 128)).astype("<u4")
        for begin in range(0, pages, BATCH):
            words = rng.integers(0, 1 << 24, (BATCH, 128)).astype("<u4")
            if begin == 0:
                words = first
            else:
                copies = rng.integers(0, BATCH, BATCH // 10)
                words[: BATCH // 10] = np.where(
                    rng.random((BATCH // 10, 128)) < 0.97, first[copies], words[: BATCH // 10]
                )
            signatures = [row.tobytes() for row in words]
            start = time.process_time()
            answers = index.add(range(begin, begin + BATCH), signatures)
            if begin >= 0.9 * pages:
                spent, counted = spent + time.process_time() - start, counted + BATCH
                found += sum(one is not None for one in answers)
        print(f"{pages:,} pages: {spent / counted * 1e3:.3f} ms a page (goal .15), {found / counted:.1%} told (10 %)")
        index.close()


if __name__ == "__main__":
    main()
