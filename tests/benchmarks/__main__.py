"""Run all benchmarks in turn, as `make bench` does: ``python -m tests.benchmarks [--full] [NAME ...]``, names without
``bench_``.

Each benchmark is a module with its own options, which have defaults. With ``--full`` it runs with the options of the
acceptance figures, which takes hours. If a benchmark fails, the others still run. The last lines name those that failed
or missed a goal.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FULL = {
    "dead_links": ["--no-births"],
    "frontier": ["--full"],
    "link_log": ["--full"],
    "near_duplicates": ["--pages", "1000000"],
    "price": ["--sites", "100000", "--days", "1"],
    "rank": ["--full"],
    "urlcache": ["--rates", "1"],
}
APART = {"against": "compares this tree with another one, whose path is its argument"}
"""Benchmarks that do not run by default, and why."""


def benchmarks() -> list[str]:
    """Return the names of all benchmarks, sorted."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main(arguments: Sequence[str], *, run: Callable[[list[str]], int]) -> int:
    """Run the benchmarks with `run`, which takes a command and returns its exit status. Return the worst status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all by default")
    parser.add_argument("--full", action="store_true", help="with the options of the acceptance figures (hours)")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(benchmarks()):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(benchmarks())}")
    endings: list[tuple[str, int, float]] = []
    for name in options.names or [name for name in benchmarks() if name not in APART]:
        print(f"\n== bench_{name}", flush=True)
        begun = time.monotonic()
        command = [
            sys.executable,
            "-m",
            f"tests.benchmarks.bench_{name}",
            *(FULL.get(name, []) if options.full else []),
        ]
        endings.append((name, run(command), time.monotonic() - begun))
    print("\n== all benchmarks")
    for name, status, seconds in endings:
        print(f"{name:16} {seconds:6.0f} s  {'passed' if status == 0 else f'exit status {status}'}")
    for name, why in APART.items() if not options.names else ():
        print(f"{name:16} not run: {why}")
    return max((abs(status) for _, status, _ in endings), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], run=lambda command: subprocess.run(command, check=False).returncode))
