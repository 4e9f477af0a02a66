"""Whether forecasts hold, on three real traces: ``python -m tests.benchmarks.bench_forecast``, two minutes of CPU.

kafka (served, without /javadoc), flink (served) and druid, R = .05 and 0, 1096 days from 2020-01-01, a fetch a day for
a thirtieth of the pages (``--part``). The policy `fountain` of `simulate revisit` with the crawler's own
`core.forecast`: at each day's end it is told what that day's fetches found and what is believed, and nothing of the
truth. Over each cycle of 14 days after the first: the share foretold when it began with its 80 % interval, the share
that was found when it was over, and the truth. Goals: the truth within the interval in 70 to 95 % of the cycles;
foretold and true within a factor of two, or both below .005, in 70 %. Of timeweb there is no such table yet.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.benchmarks.bench_revisit import OTHER_WINDOWS, SITES, trace_of
from webfountain.core.forecast import Cycle, CycleForecast, holds
from webfountain.simulate.revisit import replay_learner, signals_of
from webfountain.simulate.rivals import UrgencyPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.simulate.rivals import ChangeTrace, Fetches

DAYS = 14
PICTURED = ("flink", 0.05)


class Foretelling(UrgencyPolicy):
    """`fountain`, which keeps a forecast; a second is a day."""

    def __init__(self, trace: ChangeTrace, capacity: int) -> None:
        super().__init__(trace.urls, signals=signals_of("fountain", trace, capacity))
        self.forecast = CycleForecast.begun(float(DAYS), at=0.0)
        self.cycles: list[Cycle] = []
        self._crawled = trace.alive.copy()

    def learn(self, day: int, fetches: Fetches) -> None:
        if day == 0:
            self._look(0, 0)
        super().learn(day, fetches)
        assert self.found is not None
        self._crawled[fetches.pages] = ~fetches.gone
        self.forecast.visit(float(self.found.lasted.sum()))
        self._look(day + 1, fetches.waiting)

    def _look(self, day: int, waiting: int) -> None:
        pages = np.flatnonzero(self._crawled)
        self._numbers(pages, np.zeros(len(pages), dtype=np.int64))
        believed = self.reckon(day, pages)
        obsolete, so_far = float(believed.obsolete[0]), float(believed.so_far[0])
        known = len(pages) + waiting
        begin = self.forecast.begin
        self.forecast.look(float(day), obsolete=obsolete, so_far=so_far, missing=waiting, known=known)
        if self.forecast.begin > begin:
            self.cycles.append(self.forecast.cycles[-1])


def foretold(trace: ChangeTrace, capacity: int) -> list[tuple[Cycle, float]]:
    """Each cycle after the first, and its true share."""
    learner = Foretelling(trace, capacity)
    days = replay_learner(trace, capacity, learner)
    truth = _by_cycle(days.obsolete) / _by_cycle(days.alive)
    return list(zip(learner.cycles[1:], truth.tolist()[1:], strict=True))


def main() -> None:
    """A row for each site and R; all together at the end."""
    options = _options()
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
    tell("all", rows)
    if options.out:
        shares = [[cycle.foretold.share, cycle.shown, cycle.found, true] for cycle, true in rows]
        options.out.write_text(json.dumps(shares))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", type=int, default=30, help="pages over fetches a day")
    parser.add_argument("--days", type=int, default=1096, help="length of the windows at most")
    parser.add_argument("--other", action="store_true", help="the other start dates instead")
    parser.add_argument("--plot", type=Path, help="draw flink at R = .05 over time")
    parser.add_argument("--out", type=Path, help="write the shares foretold, shown, found and true as JSON")
    return parser.parse_args()


def _by_cycle(daily: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    cycles = len(daily) // DAYS
    return np.asarray(daily[: cycles * DAYS].reshape(cycles, DAYS).sum(axis=1), dtype=np.float64)


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
