"""False changes of the generated web under several rules. ``python -m tests.benchmarks.bench_false_changes``"""

from __future__ import annotations

import time

from tests.lab.test_false_changes import BY_HAND, EXACT, MAIN
from webfountain.lab.false_changes import measure

SEEDS = range(1, 6)
RULES = {
    "defaults": "",
    "min_change = 0": EXACT,
    "main": MAIN + EXACT,
    "learn": EXACT + "learn = true\n",
    "main, learn": MAIN + EXACT + "learn = true\n",
    "by hand": EXACT + BY_HAND,
}


def main() -> None:
    print("| rules | reported | false | missed outside noise | of 5 words or more | inside | extra visits | CPU, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rules in RULES.items():
        begun = time.process_time()
        found = [measure(rules, seed=seed) for seed in SEEDS]
        cpu = 1000 * (time.process_time() - begun) / sum(each.visits for each in found)
        sums = {field: sum(getattr(each, field) for each in found) for field in found[0]._fields}
        print(
            f"| {name} | {sums['reported']} | {sums['false']} ({sums['false'] / sums['reported']:.1%}) |"
            f" {sums['missed']} | {sums['missed_long']} | {sums['missed_inside']} |"
            f" {sums['extra'] / sums['visits']:.1%} | {cpu:.2f} |"
        )


if __name__ == "__main__":
    main()
