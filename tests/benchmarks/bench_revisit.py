"""Compare revisit policies on three real traces: ``python -m tests.benchmarks.bench_revisit``, about ten minutes of
CPU.

The traces are kafka (served, without /javadoc), flink (served) and druid (all), over 1096 days from 2020-01-01. The
number of fetches per day is the number of pages at the start / 30. A change counts above R = 0.05, or with R = 0 if any
byte differs. With /7 and /90 the plans are left out, which take most of the time (78 solves each; ``--no-plans`` always
leaves them out). The ratio is (policy - clairvoyant)/(best - clairvoyant), where best is the best of uniform,
nutch-adaptive and poisson-learned. The goal is 0.85 on each site and 0.7 in the geometric mean at R = 0.05, and 1 at R
= 0. After that, each signal is switched off or on, and importance, a sitemap, other start dates and the estimators are
measured.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.estimators import losses, shares
from webfountain.lab.simulate.at_a_price import ABLATIONS, IMPORTANCE, RANKING, SITEMAP
from webfountain.lab.simulate.revisit import PLANS, POLICIES, Replay, replay
from webfountain.lab.simulate.trace import ChangeTrace, load_trace

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
SITES: dict[str, dict[str, Any]] = {
    "kafka": {"served": True, "exclude": "/javadoc"},
    "flink": {"served": True},
    "druid": {},
}
RIVALS = ("uniform", "nutch-adaptive", "poisson-learned")
LEARNING = (*RIVALS, "poisson-oracle", RANKING, "fountain", "clairvoyant")
EXTRAS = (*ABLATIONS, IMPORTANCE, SITEMAP)
ORDERS = 3
OTHER_WINDOWS = (
    ("kafka", "2017-01-01"), ("flink", "2017-01-01"), ("kafka", "2018-07-01"), ("flink", "2018-07-01"),
    ("kafka", "2019-01-01"), ("flink", "2019-01-01"), ("kafka", "2021-10-01"), ("flink", "2021-10-01"),
    ("druid", "2021-10-01"),
)  # fmt: skip
"""Site and first day. Druid has too few pages before 2020."""


def main() -> None:
    """Print the tables one after the other."""
    options = _options()
    full = [name for name in POLICIES if name == "fountain" or "fountain" not in name]
    for min_change in (0.05, 0.0):
        _table(min_change, 30, [name for name in full if options.plans or name not in PLANS])
    for min_change in (0.05, 0.0):
        for part in (7, 90):
            _table(min_change, part, list(LEARNING))
    for min_change in (0.05, 0.0):
        _signals(min_change)
    for min_change in (0.05, 0.0):
        for part in (30, 90):
            _windows(min_change, part)
    for min_change in (0.05, 0.0):
        for part in (7, 30, 90):
            _in_turn(min_change, part)
    _estimators()
    print(f"CPU {time.process_time():.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--no-plans", dest="plans", action="store_false", help="without strategy-1 to -3")
    return parser.parse_args()


def trace_of(site: str, min_change: float, *, start: str = "2020-01-01", days: int = 1096) -> ChangeTrace:
    """Return the window of a site's trace."""
    files = [DATA / f"{site}-{part}.parquet" for part in ("events", "pages")]
    return load_trace(*files, start=start, days=days, min_change=min_change, **SITES[site])


def _run(trace: ChangeTrace, part: int, names: list[str] | tuple[str, ...]) -> dict[str, Replay]:
    return {name: replay(trace, max(1, round(int(trace.alive.sum()) / part)), name) for name in names}


def _reordered(trace: ChangeTrace, seed: int) -> ChangeTrace:
    """Return the trace with its pages in another order, which decides between equal pages."""
    place = np.random.default_rng(seed).permutation(len(trace.urls))
    back = np.argsort(place)
    urls = [trace.urls[page] for page in back.tolist()]
    return replace(trace, urls=urls, alive=trace.alive[back], born=trace.born[back], page=place[trace.page])


def _in_turn(min_change: float, part: int) -> None:
    """Print the ratio of fountain to visits in turn in every window: the mean and the largest over `ORDERS` orders of
    pages.
    """
    print(
        f"\nfountain / uniform, obsolete shares, R = {min_change}, pages/{part} a day: mean of {ORDERS} orders (most)"
    )
    windows = [*((site, "2020-01-01", 1096) for site in SITES), *((*window, 1000) for window in OTHER_WINDOWS)]
    for site, start, days in windows:
        trace = trace_of(site, min_change, start=start, days=days)
        ratios = []
        for seed in range(ORDERS):
            runs = _run(_reordered(trace, seed), part, ("uniform", "fountain"))
            ratios.append(runs["fountain"].obsolete_share / runs["uniform"].obsolete_share)
        print(f"  {site:6} {start}  {np.mean(ratios):.3f} ({max(ratios):.3f})", flush=True)


def _ratio(shares: dict[str, float], name: str) -> float:
    best, bound = min(shares[rival] for rival in RIVALS), shares["clairvoyant"]
    return (shares[name] - bound) / (best - bound)


def _table(min_change: float, part: int, names: list[str]) -> None:
    print(f"\nobsolete share, R = {min_change}, pages/{part} a day (ratio in brackets)")
    shares: dict[str, dict[str, float]] = {}
    seconds = dict.fromkeys(names, 0.0)
    for site in SITES:
        trace, shares[site] = trace_of(site, min_change), {}
        for name in names:
            begun = time.process_time()
            shares[site][name] = _run(trace, part, [name])[name].obsolete_share
            seconds[name] += time.process_time() - begun
    print(f"{'':20}" + "".join(f"{site:>16}" for site in SITES) + f"{'CPU s':>9}")
    for name in names:
        cells = "".join(f"{shares[site][name]:>9.5f} ({_ratio(shares[site], name):4.2f})" for site in SITES)
        print(f"{name:20}{cells}{seconds[name]:9.1f}", flush=True)
    ratios = [_ratio(shares[site], "fountain") for site in SITES]
    _sum_up(ratios, [_ratio(shares[site], "poisson-oracle") for site in SITES])


def _sum_up(ratios: list[float], oracle: list[float]) -> None:
    """Print the ratios of fountain, and on how many rows it is better than an oracle of the true rates."""
    mean = float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-3)))))
    ahead = sum(own < other for own, other in zip(ratios, oracle, strict=True))
    print(
        f"fountain: geometric mean {mean:.2f}, worst {max(ratios):.2f}; ahead of the oracle on {ahead} of {len(ratios)}"
    )


def _signals(min_change: float) -> None:
    """Print the obsolete shares with each signal off or on, relative to fountain, for all pages and by importance."""
    print(f"\nsignals, R = {min_change}, pages/30 a day: obsolete share, and against fountain; (by importance)")
    print(f"{'':20}" + "".join(f"{site:>34}" for site in SITES))
    runs = {site: _run(trace_of(site, min_change), 30, EXTRAS) for site in SITES}
    for name in EXTRAS:
        cells = []
        for site in SITES:
            one, base = runs[site][name], runs[site]["fountain"]
            plain = f"{one.obsolete_share:.5f} {one.obsolete_share / base.obsolete_share - 1:+.0%}"
            weighted = f"({one.weighted_share:.5f} {one.weighted_share / base.weighted_share - 1:+.0%})"
            cells.append(f"{plain + ' ' + weighted:>34}")
        print(f"{name:20}" + "".join(cells), flush=True)


def _windows(min_change: float, part: int) -> None:
    print(f"\nother start dates, R = {min_change}, pages/{part} a day: ratios, 1000 days each")
    ratios, oracle = [], []
    for site, start in OTHER_WINDOWS:
        runs = _run(trace_of(site, min_change, start=start, days=1000), part, LEARNING)
        shares = {name: one.obsolete_share for name, one in runs.items()}
        ratios.append(_ratio(shares, "fountain"))
        oracle.append(_ratio(shares, "poisson-oracle"))
        print(f"  {site:6} {start}  fountain {ratios[-1]:.2f}  oracle {oracle[-1]:.2f}", flush=True)
    _sum_up(ratios, oracle)


def _estimators() -> None:
    print("\nestimators, R = 0.05, pages/30 a day: nats lost per check to come / obsolete share where it rules")
    for site in SITES:
        trace = trace_of(site, 0.05)
        lost, left = losses(trace, seed=0), shares(trace, round(int(trace.alive.sum()) / 30))
        print(f"{site:6}" + "  ".join(f"{name} {lost[name]:.4f} / {left[name]:.4f}" for name in lost), flush=True)


if __name__ == "__main__":
    main()
