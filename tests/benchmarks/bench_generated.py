"""Compare revisit policies on generated webs: ``python -m tests.benchmarks.bench_generated [--parts 7,30,90] [--kinds
…]``.

Each web has 600 pages and one kind of change, for two years (`lab.simulate.generated_webs`). The number of fetches per
day is pages / part. The rivals visit all pages in turn, or are GREEDY with empirical-Bayes rates. No policy can be
better than `bound`. Printed are the obsolete shares, and the ratio of fountain to the better rival. For independent
pages, the gap between visits in turn and `poisson-oracle` is printed as well, and how much of this gap fountain
and GREEDY close. A row takes some fourteen seconds of CPU per part.

``--dates`` prints instead what a sitemap with dates of all pages gains: the obsolete share of fountain with the
sitemap, divided by the share without, for `QUALITIES` of dates. The sitemap is read once a day in place of a page.
"""

from __future__ import annotations

import argparse
import time

from webfountain.core.signals import Signals
from webfountain.lab.simulate.at_a_price import AtAPrice
from webfountain.lab.simulate.bound import least_obsolete_share
from webfountain.lab.simulate.generated_webs import KINDS, generated_web
from webfountain.lab.simulate.revisit import replay, replay_at_a_price
from webfountain.lab.simulate.trace import Sitemap

QUALITIES = ((1.0, 1.0), (0.8, 0.8), (0.5, 0.8), (0.8, 0.3), (0.2, 0.5), (0.02, 0.1))
"""Precision and recall of a sitemap's dates. The last dates mean nothing."""
NAMES = ("uniform", "greedy-bayes", "poisson-oracle", "fountain-independent", "fountain", "clairvoyant")


def main() -> None:
    """Print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parts", default="7,30,90", help="fetches a day are pages over these")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of webs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dates", action="store_true", help="what dates of sitemaps gain instead")
    options = parser.parse_args()
    for part in map(int, options.parts.split(",")):
        if options.dates:
            _dates(options.kinds.split(","), part, options.seed)
            continue
        print(f"\n| /{part} | {' | '.join(NAMES)} | bound | over the better rival | gap closed, GREEDY's |")
        print("|---" * (len(NAMES) + 4) + "|")
        for kind in options.kinds.split(","):
            print(_row(kind, part, options.seed), flush=True)
    print(f"CPU {time.process_time():.0f} s")


def _row(kind: str, part: int, seed: int) -> str:
    trace = generated_web(kind, seed=seed)
    fetches = max(1, round(int(trace.alive.sum()) / part))
    replays = {name: replay(trace, fetches, name) for name in NAMES}
    share = {name: one.obsolete_share for name, one in replays.items()}
    bound = least_obsolete_share(trace, fetches, float(replays["uniform"].alive.sum()))
    better = min(share["uniform"], share["greedy-bayes"])
    gap = share["uniform"] - share["poisson-oracle"]
    closed = [(share["uniform"] - share[name]) / gap for name in ("fountain", "greedy-bayes")]
    cells = [f"{share[name]:.4f}" for name in NAMES]
    return (
        f"| {kind} | {' | '.join(cells)} | {bound:.4f} | {share['fountain'] / better:.3f} | "
        f"{closed[0]:.2f}, {closed[1]:.2f} |"
    )


def _dates(kinds: list[str], part: int, seed: int) -> None:
    heads = [f"{precision}, {recall}" for precision, recall in QUALITIES]
    print(f"\n| /{part}; precision, recall | without dates | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 2) + "|")
    for kind in kinds:
        trace = generated_web(kind, seed=seed)
        fetches = max(1, round(int(trace.alive.sum()) / part))
        without = replay(trace, fetches, "fountain").obsolete_share
        cells = []
        for precision, recall in QUALITIES:
            sitemap = Sitemap(trace, seed=seed, listed=1.0, precision=precision, recall=recall)
            crawl = AtAPrice(trace, fetches, signals=Signals(), sitemap=sitemap)
            cells.append(f"{replay_at_a_price(trace, fetches, crawl).obsolete_share / without:.3f}")
        print(f"| {kind} | {without:.4f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
