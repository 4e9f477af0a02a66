"""False changes of the generated webs under several rules. ``python -m tests.benchmarks.bench_false_changes``

The second web has kinds of noise that the learner's author did not write.
"""

from __future__ import annotations

from tests.lab import other_noise
from tests.lab.test_false_changes import BY_HAND, EXACT, MAIN
from webfountain.lab.false_changes import NoisyWeb, measure

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
    for title, web in (("NoisyWeb", NoisyWeb), ("OtherNoise", other_noise.OtherNoise)):
        print(f"{title}\n")
        print("| rules | reported | false | missed outside noise | of 5 words or more | inside | extra visits |")
        print("|---|---|---|---|---|---|---|")
        for name, rules in RULES.items():
            own = rules.replace(BY_HAND, other_noise.BY_HAND) if web is other_noise.OtherNoise else rules
            found = [measure(own, web(seed)) for seed in SEEDS]
            sums = {field: sum(getattr(each, field) for each in found) for field in found[0]._fields}
            print(
                f"| {name} | {sums['reported']} | {sums['false']} ({sums['false'] / sums['reported']:.1%}) |"
                f" {sums['missed']} | {sums['missed_long']} | {sums['missed_inside']} |"
                f" {sums['extra'] / sums['visits']:.1%} |"
            )


if __name__ == "__main__":
    main()
