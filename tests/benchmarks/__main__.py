"""Run all benchmarks in turn, as `make bench` does: ``python -m tests.benchmarks [NAME ...]``, names without
``bench_``.

Each benchmark is a module with its own options. Here it runs with the options of the acceptance figures.
"""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = {
    "crawl": [],
    "fetch": [],
    "frontier": ["--full"],
    "optimizer": [],
    "changes": [],
    "policy_edit": [],
    "live": [],
    "revisit": [],
    "planning": [],
    "rank": [],
    "link_log": ["--full"],
    "near_duplicates": ["--pages", "1000000"],
    "extras": [],
    "ordering": [],
    "urlcache": ["--rates"],
    "scheduler": [],
    "startup": [],
    "robots": [],
}


def main() -> int:
    """Return the worst exit status."""
    worst = 0
    for name in sys.argv[1:] or BENCHMARKS:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}", *BENCHMARKS.get(name, [])]
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
