"""Measure how fresh each policy keeps two real sites over sixty days: ``python -m tests.benchmarks.bench_live``.

The pages are the versions of `timeweb`, where a virtual day is a second. A third of the pages is fetched per day, in
cycles of 14 days, of which the first two are not measured. The policies are the model's strategies 1 to 3, `fountain`,
and `uniform`, which visits every page in turn with the same capacity. ``clairvoyant`` knows every change of the record.
At least once per virtual day the store is compared with the truth. The plan's predictions for the end of the day, by
equation (2) and by the selection of oldest pages, are printed too.

By default the frontier runs under a manual clock with the web as a function, some seconds per policy and always with
the same result. ``--live`` crawls over HTTP in a separate process, one second per day. ``--web generated`` and ``--web
bursty`` use generated sites, the second with changes of whole directories at once. Most of the cost is reading pages
(parsing, shingles).
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.live_runs import POLICIES, Reading, Setting, clairvoyant, live, offline
from tests.benchmarks.live_webs import open_web

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "timeweb" / "timeweb.zip"
GOAL = 0.8


def main() -> None:
    """Print a table for each `min_change`, and the ratios."""
    options = _options()
    logging.basicConfig(level=logging.WARNING)
    found: dict[str, dict[str, list[Reading]]] = {}
    for min_change in options.min_change.split(","):
        runs = found[min_change] = {}
        for policy in options.policies.split(","):
            begun = time.process_time()
            runs[policy] = _run(policy, float(min_change), options)
            _report(policy, min_change, runs[policy], options.warm_up, time.process_time() - begun)
        _compare(min_change, runs, options.warm_up)
    if options.out:
        options.out.write_text(
            json.dumps({k: {p: [d._asdict() for d in r] for p, r in v.items()} for k, v in found.items()})
        )
    if options.plot:
        _plot(found, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--min-change", default="0,0.05")
    parser.add_argument("--web", default="timeweb", choices=("timeweb", "generated", "bursty"))
    parser.add_argument("--archive", type=Path, default=DATA)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--offset", type=float, default=0.0, help="days of the record before the first")
    parser.add_argument("--warm-up", type=int, default=28, help="days, two cycles")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--share", type=float, default=1 / 3, help="capacity a day, as a share of the pages")
    parser.add_argument("--live", action="store_true", help="real HTTP, a second a day")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    return parser.parse_args()


def _run(policy: str, min_change: float, options: argparse.Namespace) -> list[Reading]:
    web = open_web(options.web, archive=options.archive, seed=options.seed, offset=options.offset)
    setting = Setting(policy, min_change, options.warm_up + options.days, options.share, options.seed)
    with tempfile.TemporaryDirectory(prefix="webfountain-live-") as folder:
        if policy == "clairvoyant":
            return clairvoyant(setting, web)
        if options.live:
            return live(setting, options.archive, Path(folder), offset=options.offset).checks
        return offline(setting, web, Path(folder)).checks


def _report(policy: str, min_change: str, days: list[Reading], warm_up: int, cpu: float) -> None:
    """Print one row with the mean shares over the measured days."""
    late = _measured(days, warm_up)
    pages = sum(day.pages for day in late)
    cells: list[Any] = [sum(getattr(day, name) for day in late) / pages for name in ("obsolete", "missing")]
    planned = [day for day in late if day.predicted is not None]
    known = sum(day.pages for day in planned) or 1
    cells += [sum(getattr(day, name) or 0.0 for day in planned) / known for name in ("predicted", "predicted_oldest")]
    fetches = sum(day.fetches for day in late) / (late[-1].day - warm_up)
    print(
        f"{min_change:>5} {policy:>11}: obsolete {cells[0]:.4f} (of that without a copy {cells[1]:.4f}), "
        f"predicted {cells[2]:.4f} by (2), {cells[3]:.4f} oldest first; {fetches:.1f} fetches a day; {cpu:.0f} s",
        flush=True,
    )


def _measured(days: list[Reading], warm_up: int) -> list[Reading]:
    return [day for day in days if day.day > warm_up]


def _compare(min_change: str, runs: dict[str, list[Reading]], warm_up: int) -> None:
    if "uniform" not in runs:
        return
    base = sum(day.obsolete for day in _measured(runs["uniform"], warm_up))
    for policy, days in runs.items():
        if policy != "uniform":
            ratio = sum(day.obsolete for day in _measured(days, warm_up)) / base
            goal = f" (goal at most {GOAL}: {'held' if ratio <= GOAL else 'MISSED'})" if policy == "fountain" else ""
            print(f"{min_change:>5} {policy:>11} / uniform: {ratio:.3f}{goal}")


def _plot(found: dict[str, dict[str, list[Reading]]], options: argparse.Namespace) -> None:
    from matplotlib import pyplot  # an extra, needed for figures only

    figure, axes = pyplot.subplots(len(found), 1, figsize=(10, 4 * len(found)), squeeze=False)
    for axis, (min_change, runs) in zip(axes[:, 0], found.items(), strict=True):
        for number, (policy, days) in enumerate(runs.items()):
            at = [day.day for day in days]
            axis.plot(at, [day.obsolete / day.pages for day in days], color=f"C{number}", label=policy)
            for name, style in (("predicted", ":"), ("predicted_oldest", "--")):
                known = [(i, getattr(day, name) / day.pages) for i, day in zip(at, days, strict=True) if day.predicted]
                if policy != "uniform" and known:
                    axis.plot(*zip(*known, strict=True), style, color=f"C{number}", linewidth=0.8)
        axis.axvline(options.warm_up, color="grey", linewidth=0.5)
        axis.set(title=f"min_change {min_change}", xlabel="day", ylabel="obsolete share", ylim=(0, 1))
        axis.legend(title="dotted: equation (2); dashed: oldest first")
    figure.tight_layout()
    figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
