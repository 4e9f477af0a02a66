"""Whether forecasts hold, on three real traces: ``python -m tests.benchmarks.bench_forecast``, two minutes of CPU.

kafka (served, without /javadoc), flink (served) and druid, R = .05 and 0, 1096 days from 2020-01-01, a fetch a day for
a thirtieth of the pages (``--part``). The policy `fountain` of `simulate revisit` with the crawler's own
`core.forecast`: it is told what fetches found and what is believed, and nothing of the truth. Over each cycle of 14
days after the first: the share foretold when it began with its 80 % interval, the share that was found when it was
over, and the truth. Goals: the truth within the interval in 70 to 95 % of the cycles; foretold and true within a factor
of two, or both below .005, in 70 %. ``--timeweb`` does it with the crawler's own frontier instead (`bench_live`'s,
under a manual clock): 99 days from each of eight places of that record.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tests.benchmarks.bench_live import DATA
from tests.benchmarks.bench_revisit import OTHER_WINDOWS, SITES, trace_of
from tests.benchmarks.live_runs import CYCLE, Setting, offline
from tests.benchmarks.live_webs import open_web
from webfountain.core.forecast import Cycle, holds, published
from webfountain.core.signals import Signals
from webfountain.lab.simulate.at_a_price import AtAPrice
from webfountain.lab.simulate.revisit import replay_at_a_price

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.lab.simulate.trace import ChangeTrace

    Pages = npt.NDArray[np.int64]

DAYS = 14
DAY = 86_400.0
PICTURED = ("flink", 0.05)
PLACES = (0, 130, 200, 260, 390, 460, 520, 600)
"""Days of timeweb's record before the first."""
LIVE_CYCLES = 7


class Foretelling(AtAPrice):
    """`fountain`, whose cycles are written down."""

    def __init__(self, trace: ChangeTrace, capacity: int) -> None:
        super().__init__(trace, capacity, signals=Signals())
        self.cycles: list[Cycle] = []
        self._until = DAYS * DAY

    def choose(self, at: float, many: int) -> Pages:
        chosen = super().choose(at, many)
        over = published(self.urgent.forecast.encode()) if at >= self._until else None
        if over is not None and over.forecast.begin >= self._until - DAYS * DAY / 2:
            self.cycles[-1:] = over.forecast.cycles[-2:]  # of the one before more is known by now
            self._until = over.forecast.begin + DAYS * DAY
        return chosen


def foretold(trace: ChangeTrace, capacity: int) -> list[tuple[Cycle, float]]:
    """Each cycle after the first, and its true share."""
    crawl = Foretelling(trace, capacity)
    days = replay_at_a_price(trace, capacity, crawl)
    ends = DAY * np.arange(1, trace.days + 1)
    found = []
    for cycle in crawl.cycles[1:]:
        within = (ends > cycle.begin) & (ends <= cycle.begin + DAYS * DAY)
        found.append((cycle, float(days.obsolete[within].sum() / days.alive[within].sum())))
    return found


def foretold_of_timeweb(min_change: float, offset: float) -> list[tuple[Cycle, float]]:
    """Each cycle after the first of a crawl from a day of the record on, and its true share."""
    web = open_web("timeweb", archive=DATA, seed=1, offset=offset)
    with tempfile.TemporaryDirectory(prefix="webfountain-forecast-") as folder:
        ran = offline(Setting("fountain", min_change, LIVE_CYCLES * CYCLE + 1, 1 / 3), web, Path(folder))
    found = []
    for begin, cycle in ran.cycles[1:]:
        looks = [look for look in ran.looks if begin < look.day <= begin + CYCLE]
        found.append((cycle, sum(look.obsolete for look in looks) / sum(look.pages for look in looks)))
    return found


def main() -> None:
    """A row for each site and R; all together at the end."""
    options = _options()
    rows: list[tuple[Cycle, float]] = []
    for min_change in (0.05, 0.0):
        for place in PLACES if options.timeweb else ():
            found = foretold_of_timeweb(min_change, place)
            tell(f"timeweb {place:3} R = {min_change:<4}", found)
            rows += found
    if not options.timeweb:
        rows = _of_traces(options)
    tell("all", rows)
    if options.out:
        told = [(each.foretold, each.shown, each.found, true) for each, true in rows]
        options.out.write_bytes(msgspec.json.encode(told))


def _of_traces(options: argparse.Namespace) -> list[tuple[Cycle, float]]:
    rows: list[tuple[Cycle, float]] = []
    windows = [(site, "2020-01-01", 1096) for site in SITES]
    if options.other:
        windows = [(site, start, 1000) for site, start in OTHER_WINDOWS]
    for min_change in (0.05, 0.0):
        for site, start, days in windows:
            trace = trace_of(site, min_change, start=start, days=min(days, options.days))
            found = foretold(trace, max(1, round(int(trace.alive.sum()) / options.part)))
            tell(f"{site:6} {start} R = {min_change:<4}", found)
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
    parser.add_argument("--out", type=Path, help="write what was foretold, shown, found and true as JSON")
    return parser.parse_args()


def tell(name: str, found: Sequence[tuple[Cycle, float]]) -> None:
    """One row: how often the truth was in the interval, near what was foretold, near what was found."""
    inside = np.mean([cycle.foretold.low <= true <= cycle.foretold.high for cycle, true in found])
    right = np.mean([holds(cycle.foretold.share, true) for cycle, true in found])
    seen = np.mean([holds(cycle.found, true) for cycle, true in found])
    means = [float(np.mean([getattr(cycle, name) for cycle, _ in found])) for name in ("found", "shown")]
    print(
        f"{name:30} {len(found):4} cycles: in the interval {inside:4.0%}, foretold right {right:4.0%}; "
        f"found right {seen:4.0%}; means: true {np.mean([true for _, true in found]):.4f}, "
        f"found {means[0]:.4f}, shown {means[1]:.4f}",
        flush=True,
    )


def plot(file: Path, found: Sequence[tuple[Cycle, float]]) -> None:
    """The fresh share of each cycle: foretold with its interval, found by the fetches, and true."""
    from matplotlib import pyplot  # an extra, needed for figures only

    days = [DAYS * (number + 1.5) for number in range(len(found))]
    figure, axis = pyplot.subplots(figsize=(9, 3.2))
    told = [cycle.foretold for cycle, _ in found]
    low, high = ([1 - getattr(each, side) for each in told] for side in ("high", "low"))
    axis.fill_between(days, low, high, step="mid", color="C0", alpha=0.2, linewidth=0, label="foretold, 4 cases of 5")
    axis.step(days, [1 - each.share for each in told], where="mid", color="C0", label="foretold as the cycle began")
    axis.plot(days, [1 - cycle.found for cycle, _ in found], ".", color="C1", label="found by its fetches")
    axis.plot(days, [1 - true for _, true in found], color="black", linewidth=1, label="true")
    axis.set(xlabel="day", ylabel="fresh share of a cycle of 14 days", ylim=(None, 1.002), xlim=(0, days[-1] + DAYS))
    axis.legend(fontsize=8, loc="lower right", ncols=2)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
