"""Compare the CPU of taming and parsing hostile markup with parsing ordinary markup of the same size.

``python -m tests.benchmarks.bench_markup``. Most of the cost is the taming. Without taming, nested markup costs
thousands of times as much. The goal is a bound against quadratic growth.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from tests.formats.test_html_safety import HOSTILE
from webfountain.formats.html_safety import tame

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 5
MOST = 20.0


def cpu_s(body: bytes, *, prepare: Callable[[bytes], bytes] = bytes) -> float:
    """Return the CPU seconds of one parse, which must find the text."""
    start = time.thread_time()
    tree = LexborHTMLParser(prepare(body))
    spent = time.thread_time() - start
    assert tree.body is not None
    assert tree.body.text()
    return spent


def main() -> None:
    """Print the median ratio of each kind, and assert its bound."""
    for name, markup in sorted(HOSTILE.items()):
        body = markup.encode()
        ordinary = b"<p>text</p>" * (len(body) // 11)
        ratio = statistics.median(cpu_s(body, prepare=tame) / cpu_s(ordinary) for _ in range(RUNS))
        print(f"{name:12} {ratio:6.1f} times ordinary markup of {len(body):,} bytes (at most {MOST:.0f})")
        assert ratio < MOST


if __name__ == "__main__":
    main()
