"""Count false changes of the generated webs under several rules.

``python -m tests.benchmarks.bench_false_changes [--webs first second third] [--seeds 5]``. The second web has kinds of
noise that the learner's author did not write, the third has blocks that a server draws for each answer.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from tests.lab import drawn_noise, other_noise
from tests.lab.test_false_changes import BY_HAND, EXACT, MAIN
from webfountain.lab.false_changes import NoisyWeb, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webfountain.lab.false_changes import ChangingWeb

WEBS: Final[Mapping[str, tuple[Callable[[int], ChangingWeb], str]]] = {
    "first": (NoisyWeb, BY_HAND),
    "second": (other_noise.OtherNoise, other_noise.BY_HAND),
    "third": (drawn_noise.DrawnNoise, drawn_noise.BY_HAND),
}
RULES: Final = {
    "defaults": "",
    "min_change = 0": EXACT,
    "main": MAIN + EXACT,
    "learn": EXACT + "learn = true\n",
    "main, learn": MAIN + EXACT + "learn = true\n",
    "by hand": EXACT + BY_HAND,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--webs", nargs="+", choices=WEBS, default=list(WEBS))
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    print("| web | rules | reported | false | missed outside noise | of 5 words or more | inside | extra visits |")
    print("|---|---|---|---|---|---|---|---|")
    for title in chosen.webs:
        web, by_hand = WEBS[title]
        for name, rules in RULES.items():
            own = rules.replace(BY_HAND, by_hand)
            found = [measure(own, web(seed)) for seed in range(1, chosen.seeds + 1)]
            sums = {field: sum(getattr(each, field) for each in found) for field in found[0]._fields}
            print(
                f"| {title} | {name} | {sums['reported']} | {sums['false']} ({sums['false'] / sums['reported']:.1%}) |"
                f" {sums['missed']} | {sums['missed_long']} | {sums['missed_inside']} |"
                f" {sums['extra'] / sums['visits']:.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
