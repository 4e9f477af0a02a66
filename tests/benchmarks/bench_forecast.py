"""Measure how good forecasts are, on three real traces: ``python -m tests.benchmarks.bench_forecast``, two minutes of
CPU.

The traces are kafka (served, without /javadoc), flink (served) and druid, with R = 0.05 and 0, over 1096 days from
2020-01-01. Each day a thirtieth of the pages is fetched (``--part``), by the policy `fountain` of `simulate revisit`
with the crawler's `core.forecast`.

For each cycle of 14 days after the first, the forecast at its begin is compared with the true obsolete share. The
scores are the continuous ranked probability score (CRPS), the absolute error of the median, the coverage of the 80 %
interval, and the interval score. For true shares of at least 0.005, the share of medians within a factor of two is
printed too, beside a forecaster who knows all changes (`informed_share`). There are three references: the mean of the
past cycles, the last cycle, and the best constant of each row. The first two are computed from what the crawl found
(*found*), and from the truth. The goal is a CRPS and an error 15 % below the best reference, and a coverage of 75 to 85
%.

With ``--timeweb``, the crawler's frontier runs under a manual clock instead (`bench_live`), for 99 days from each of
eight days of that record.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from tests.benchmarks.bench_live import DATA
from tests.benchmarks.bench_revisit import OTHER_WINDOWS, SITES, trace_of
from tests.benchmarks.live_runs import CYCLE, Setting, offline
from tests.benchmarks.live_webs import open_web
from webfountain.core.next_share import Outlook, crps
from webfountain.core.signals import Signals
from webfountain.lab.simulate.at_a_price import AtAPrice
from webfountain.lab.simulate.revisit import replay_at_a_price

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.lab.simulate.revisit import Replay
    from webfountain.lab.simulate.trace import ChangeTrace

    Pages = npt.NDArray[np.int64]

DAYS = 14
NOTABLE = 0.005
DAY = 86_400.0
PICTURED = ("flink", 0.05)
PLACES = (0, 130, 200, 260, 390, 460, 520, 600)
"""First days, in timeweb's record."""
LIVE_CYCLES = 7


class Row(NamedTuple):
    """A cycle after the first: the forecast, what was known about earlier cycles, and the true shares."""

    points: list[float]
    outlook: Outlook
    before: list[float]
    """Shares of the earlier cycles as the crawl found them, newest last."""
    true_before: list[float]
    found: float
    true: float
    informed: float | None = None
    """Result of `informed_share`, or None if not computed."""


class Begin(NamedTuple):
    """The state at the begin of a cycle."""

    at: float
    points: list[float]
    outlook: Outlook
    before: list[float]


class Foretelling(AtAPrice):
    """`fountain`, with a record of the forecast at the begin of each cycle."""

    def __init__(self, trace: ChangeTrace, capacity: int) -> None:
        super().__init__(trace, capacity, signals=Signals())
        self.begins: dict[float, Begin] = {}
        self.found: dict[float, float] = {}

    def choose(self, at: float, many: int) -> Pages:
        chosen = super().choose(at, many)
        saved = self.urgent.forecast.saved
        forecast = None if saved is None else saved.forecast
        if forecast is not None and forecast.begin not in self.begins:
            shares = [cycle.found for cycle in forecast.cycles]
            self.begins[forecast.begin] = Begin(forecast.begin, forecast.points, forecast.foretold, shares)
            self.found |= {cycle.begin: cycle.found for cycle in forecast.cycles}
        return chosen


def foretold(trace: ChangeTrace, capacity: int) -> list[Row]:
    """Return the complete cycles after the first."""
    crawl = Foretelling(trace, capacity)
    days = replay_at_a_price(trace, capacity, crawl)
    ends = DAY * np.arange(1, trace.days + 1)
    shares: list[float] = []
    rows = []
    for begin in crawl.begins.values():
        within = (ends > begin.at) & (ends <= begin.at + DAYS * DAY)
        if within.sum() < DAYS or not begin.points or begin.at not in crawl.found:
            continue
        true = float(days.obsolete[within].sum() / days.alive[within].sum())
        if begin.before:
            informed = informed_share(days, within)
            rows.append(
                Row(begin.points, begin.outlook, begin.before, shares[:], crawl.found[begin.at], true, informed)
            )
        shares.append(true)
    return rows


def informed_share(days: Replay, within: npt.NDArray[np.bool_]) -> float:
    """Return the forecast for a cycle by a forecaster who knows how many pages become obsolete on each day.

    How soon the crawl finds obsolete pages is taken from all earlier days.
    """
    before = np.concatenate([[0], days.obsolete[:-1]])
    came = days.obsolete - before + days.found  # pages that disappear while obsolete are few
    first = int(np.flatnonzero(within)[0])
    found_part = days.found[:first].sum() / max(before[:first].sum(), 1)
    stands, total = float(before[first]), 0.0
    for day in np.flatnonzero(within).tolist():
        stands = max(stands * (1.0 - found_part) + came[day], 0.0)
        total += stands
    return total / float(days.alive[within].sum())


def foretold_of_timeweb(min_change: float, offset: float) -> list[Row]:
    """Return the cycles after the first of a crawl that begins on a day of the record."""
    web = open_web("timeweb", archive=DATA, seed=1, offset=offset)
    with tempfile.TemporaryDirectory(prefix="webfountain-forecast-") as folder:
        ran = offline(Setting("fountain", min_change, LIVE_CYCLES * CYCLE + 1, 1 / 3), web, Path(folder))
    shares: list[float] = []
    rows = []
    for number, (begin, cycle) in enumerate(ran.cycles):
        checks = [check for check in ran.checks if begin < check.day <= begin + CYCLE]
        true = sum(check.obsolete for check in checks) / sum(check.pages for check in checks)
        if number:
            before = [each.found for _, each in ran.cycles[:number]]
            rows.append(Row(ran.points[begin], cycle.foretold, before, shares[:], cycle.found, true))
        shares.append(true)
    return rows


def main() -> None:
    """Print a row for each site and R, and the sum."""
    options = _options()
    rows: list[Row] = []
    for min_change in (0.05, 0.0):
        for place in PLACES if options.timeweb else ():
            found = foretold_of_timeweb(min_change, place)
            report(f"timeweb {place:3} R = {min_change:<4}", found)
            rows += found
    if not options.timeweb:
        rows = _of_traces(options)
    report("all", rows)
    if options.out:
        options.out.write_bytes(msgspec.json.encode(rows))


def _of_traces(options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    windows = [(site, "2020-01-01", 1096) for site in SITES]
    if options.other:
        windows = [(site, start, 1000) for site, start in OTHER_WINDOWS]
    for min_change in (0.05, 0.0):
        for site, start, days in windows:
            trace = trace_of(site, min_change, start=start, days=min(days, options.days))
            found = foretold(trace, max(1, round(int(trace.alive.sum()) / options.part)))
            report(f"{site:6} {start} R = {min_change:<4}", found)
            if options.plot and (site, min_change) == PICTURED:
                plot(options.plot, found)
            rows += found
    return rows


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", type=int, default=30, help="pages over fetches a day")
    parser.add_argument("--days", type=int, default=1096, help="length of the windows at most")
    parser.add_argument("--other", action="store_true", help="the other start dates instead")
    parser.add_argument("--timeweb", action="store_true", help="a crawl of timeweb instead of the traces")
    parser.add_argument("--plot", type=Path, help="draw flink at R = .05 over time")
    parser.add_argument("--out", type=Path, help="write forecasts, shown and found shares and the truth as JSON")
    return parser.parse_args()


def report(name: str, rows: Sequence[Row]) -> None:
    """Print the scores of the forecasts and of the references."""
    true = np.array([row.true for row in rows])
    low, high = (np.array([getattr(row.outlook, side) for row in rows]) for side in ("low", "high"))
    missed = np.maximum(low - true, 0.0) + np.maximum(true - high, 0.0)
    far = [within_two(row.outlook.median, row.true) for row in rows if row.true >= NOTABLE]
    print(
        f"{name:30} {len(rows):4} cycles: CRPS {np.mean([crps(row.points, row.true) for row in rows]):.5f}, error of "
        f"the median {np.mean([abs(row.outlook.median - row.true) for row in rows]):.5f}; in the interval "
        f"{np.mean(missed == 0.0):.0%}, interval score {np.mean(high - low + 10.0 * missed):.5f}; of {len(far)} from "
        f"{NOTABLE} on within a factor of two {np.mean(far) if far else 0:.0%}; mean true {true.mean():.5f}, found "
        f"{np.mean([row.found for row in rows]):.5f}",
        flush=True,
    )
    if rows and all(row.informed is not None for row in rows):
        known = np.array([row.informed for row in rows], dtype=np.float64)
        near = [within_two(float(each), row.true) for each, row in zip(known, rows, strict=True) if row.true >= NOTABLE]
        print(
            f"{'':30}      informed forecaster: error {np.abs(known - true).mean():.5f}, within a factor of two "
            f"{np.mean(near) if near else 0:.0%}"
        )
    points = {
        "past mean, found": [float(np.mean(row.before)) for row in rows],
        "last, found": [row.before[-1] for row in rows],
        "past mean, true": [float(np.mean(row.true_before)) for row in rows],
        "last, true": [row.true_before[-1] for row in rows],
        "best constant": [float(np.median(true))] * len(rows),
    }
    errors = (f"{what} {np.abs(np.array(point) - true).mean():.5f}" for what, point in points.items())
    print(f"{'':30}      references: {'; '.join(errors)}", flush=True)


def within_two(point: float, true: float) -> bool:
    """Return whether two shares differ by at most a factor of two."""
    return max(point, true) <= 2.0 * min(point, true)


def plot(file: Path, found: Sequence[Row]) -> None:
    """Draw the fresh share of each cycle: the forecast with its interval, what the fetches found, and the truth."""
    from matplotlib import pyplot  # an extra, needed for figures only

    days = [DAYS * (number + 1.5) for number in range(len(found))]
    figure, axis = pyplot.subplots(figsize=(9, 3.2))
    reported = [row.outlook for row in found]
    low, high = ([1 - getattr(each, side) for each in reported] for side in ("high", "low"))
    axis.fill_between(days, low, high, step="mid", color="C0", alpha=0.2, linewidth=0, label="forecast, 80 % interval")
    axis.step(days, [1 - each.median for each in reported], where="mid", color="C0", label="forecast, median")
    axis.plot(days, [1 - row.found for row in found], ".", color="C1", label="found by the fetches")
    axis.plot(days, [1 - row.true for row in found], color="black", linewidth=1, label="truth")
    axis.set(xlabel="day", ylabel="fresh share in a cycle of 14 days", ylim=(None, 1.002), xlim=(0, days[-1] + DAYS))
    axis.legend(fontsize=8, loc="lower right", ncols=2)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
