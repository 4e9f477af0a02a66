"""Measure whether a change made the crawl slower: this tree and another tree crawl the same web in turn.

``python -m tests.benchmarks.bench_against /path/to/other/worktree [--rounds 5] [--pages 4000] [--most 1.03]
[--extras nothing|duplicates|ranking|both]`` (``git worktree add /path/to/other COMMIT`` makes one.) The CPU seconds of
whole crawl processes are compared. A short and a long crawl give the cost of a page (slope) and of a start (intercept).
The result is the median of the ratios of all rounds, which differ by a tenth on a busy machine. The exit status is 1 if
a page costs more than `most` times as much.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.acceptance.crawls import ROOT, policy
from tests.benchmarks.bench_crawl import WEB
from tests.benchmarks.bench_extras import WITH
from webfountain.lab.demo.process import DemoServer

SHORT = 500


def main() -> int:
    """Print both costs and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--most", type=float, default=1.03)
    parser.add_argument("--extras", choices=list(WITH), default="nothing", help="what is switched on in both")
    chosen = parser.parse_args()
    trees = {"ours": ROOT, "theirs": chosen.other.resolve()}
    spent: dict[tuple[str, int], list[float]] = {(name, pages): [] for name in trees for pages in (SHORT, chosen.pages)}
    folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    try:
        for number in range(chosen.rounds):
            # Who begins changes from round to round: the second finds the machine as the first left it.
            for pages in (SHORT, chosen.pages):
                for name in sorted(trees, reverse=bool(number % 2)):
                    spent[name, pages].append(crawl(folder, trees[name], pages, chosen.extras))
    finally:
        shutil.rmtree(folder)
    middle = {key: statistics.median(times) for key, times in spent.items()}
    page = {name: (middle[name, chosen.pages] - middle[name, SHORT]) / (chosen.pages - SHORT) for name in trees}
    for name, seconds in page.items():
        print(f"{name:>7}: {1e3 * seconds:.3f} ms a page, {middle[name, SHORT] - SHORT * seconds:.2f} s to start")
    rounds = range(chosen.rounds)
    wholes = [spent["ours", chosen.pages][i] / spent["theirs", chosen.pages][i] for i in rounds]
    # Rounds apart: a burst of the neighbours spoils one of them, and not the median.
    longer = {name: [spent[name, chosen.pages][i] - spent[name, SHORT][i] for i in rounds] for name in trees}
    ratios = [ours / theirs for ours, theirs in zip(longer["ours"], longer["theirs"], strict=True)]
    ratio = statistics.median(ratios)
    print(f"  ratio: {ratio:.3f} a page, {statistics.median(wholes):.3f} of whole crawls; goal: at most {chosen.most}")
    print(f"  medians of {chosen.rounds} rounds, a page {min(ratios):.3f} to {max(ratios):.3f}")
    return int(ratio > chosen.most)


def crawl(folder: Path, tree: Path, pages: int, extras: str = "nothing") -> float:
    """Return the CPU seconds of a crawl of `pages` pages by the code of a tree."""
    store = folder / "store"
    with DemoServer(**WEB) as server:
        collection = policy(folder, server.urls, **WITH[extras])
        command = [sys.executable, "-m", "webfountain", "crawl", str(collection), f"--store=rocksdb://{store}"]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        command += [f"--max-pages={pages}", "--json"]
        process = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"status {process.returncode}: {tree}"
        served = sum("robots.txt" not in visit.path and "sitemap" not in visit.path for visit in server.log())
        assert served == pages, f"{served} pages were served to {tree}, {pages} were to be crawled"
    shutil.rmtree(store)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
