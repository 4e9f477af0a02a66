"""Compare the CPU of a page in a crawl with `content.text` "main", with "all", and with metadata.

``python -m tests.benchmarks.bench_content [--rounds 5] [--pages 500 2500]``.
The web is the web of `bench_crawl`. Most of the cost of "main" is cutting the page into blocks.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.benchmarks.bench_crawl import fountain

if TYPE_CHECKING:
    from collections.abc import Mapping

GOAL: Final = 1.4
FORMS: Final[dict[str, Mapping[str, Mapping[str, object]]]] = {
    "all": {},
    "main": {"content": {"text": "main"}},
    "all, metadata": {"content": {"metadata": True}},
}


def cost(pages: tuple[int, int], tables: Mapping[str, Mapping[str, object]]) -> float:
    """Return the CPU milliseconds of one more page."""
    folder = Path(tempfile.mkdtemp(prefix="bench-content-"))
    try:
        short, long = (fountain(folder, each, tables=tables) for each in pages)
    finally:
        shutil.rmtree(folder)
    return 1000 * (long.cpu_s - short.cpu_s) / (long.pages - short.pages)


def main() -> int:
    """Print the medians and their ratios. Return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, nargs=2, default=(500, 2500))
    chosen = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in FORMS}
    for _ in range(chosen.rounds):
        for name, tables in FORMS.items():
            found[name].append(cost(tuple(chosen.pages), tables))
    for name, costs in found.items():
        ratios = [mine / base for mine, base in zip(costs, found["all"], strict=True)]
        print(
            f"{name}: {median(costs):.2f} ms a page, {median(ratios):.3f} of all ({min(ratios):.3f}-{max(ratios):.3f})"
        )
    return int(median(found["main"]) > GOAL * median(found["all"]))


if __name__ == "__main__":
    raise SystemExit(main())
