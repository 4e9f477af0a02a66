"""Phase clocks: how far the plan of each bucket has advanced.

V_i(t) is the sum of the crawled fractions x_i/b_i of bucket i up to the time t. A page of bucket i is due when V_i has
gained 1 since its last crawl (DESIGN.md section 4). A clock is stored as straight lines between knots. A page stores
only the time of its last crawl, so a new plan rewrites no queue. Before the first knot a clock runs at the change rate
of its bucket. After the last knot a clock runs at the mean speed of the last plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

__all__ = ["Phases"]


@dataclass(frozen=True, slots=True)
class Phases:
    """Immutable phase clocks.

    Attributes
    ----------
    times : (K,) UTC s, ascending, K >= 1
    values : (K, L) phase of each of L lanes at the knots; it never falls
    before, after : (L,) phase per second before the first and after the last knot
    """

    times: Array
    values: Array
    before: Array
    after: Array

    @classmethod
    def running(cls, speed: Array, *, start: float) -> Phases:
        """Return clocks that follow no plan and run at a constant `speed` (L,), in phase per second."""
        return cls(np.array([start]), np.zeros((1, speed.size)), speed, speed)

    def planned(self, increments: Array, *, start: float, period: float, keep: int = 64) -> Phases:
        """Return clocks that follow a plan: from `start` on, they gain one row of `increments` (T, L) per `period`.

        Of the knots before `start`, only the last `keep` are kept.
        """
        past = self.times < start
        begin = self.at(start)
        steps = np.vstack([begin, begin + np.cumsum(increments, axis=0)])
        times = np.concatenate([self.times[past][-keep:], start + period * np.arange(len(increments) + 1)])
        values = np.vstack([self.values[past][-keep:], steps])
        before = self.before
        if past.sum() > keep:
            before = (begin - values[0]) / (start - times[0])
        return Phases(times, values, before, increments.mean(axis=0) / period)

    def at(self, t: float) -> Array:
        """Return the (L,) phases that the clocks show at a time `t`."""
        if t <= self.times[0]:
            return np.asarray(self.values[0] - self.before * (self.times[0] - t))
        if t >= self.times[-1]:
            return np.asarray(self.values[-1] + self.after * (t - self.times[-1]))
        k = int(np.searchsorted(self.times, t, side="right"))
        share = (t - self.times[k - 1]) / (self.times[k] - self.times[k - 1])
        return np.asarray(self.values[k - 1] + share * (self.values[k] - self.values[k - 1]))

    def horizon(self, t: float, *, gain: float = 1.0) -> Array:
        """Return, for each of L lanes, the latest time at which its clock was `gain` behind its phase at `t`; -inf if
        never.
        """
        return self._latest(self.at(t) - gain)

    def due(self, lane: int, order: float, *, gain: float = 1.0) -> float:
        """Return the time at which a lane's clock will have gained `gain` since the time `order`; inf if never."""
        line, phase = self.values[:, lane], float(self.at(order)[lane]) + gain
        if phase < line[0]:
            return float(self.times[0] - (line[0] - phase) / self.before[lane])
        if phase <= line[-1]:
            return self._between(lane, phase, late=False)
        speed = float(self.after[lane])
        return float(self.times[-1] + (phase - line[-1]) / speed) if speed > 0 else np.inf

    def _latest(self, phase: Array) -> Array:
        """Return, for each of L lanes, the latest time at which its clock showed `phase`; -inf if there is none."""
        found = np.full(phase.size, -np.inf)
        first, last = self.values[0], self.values[-1]
        early = phase < first
        moving = early & (self.before > 0)
        found[moving] = self.times[0] - (first[moving] - phase[moving]) / self.before[moving]
        beyond = (phase > last) & (self.after > 0)
        found[beyond] = self.times[-1] + (phase[beyond] - last[beyond]) / self.after[beyond]
        for lane in np.flatnonzero(~early & (phase <= last)):
            found[lane] = self._between(int(lane), float(phase[lane]), late=True)
        return found

    def _between(self, lane: int, phase: float, *, late: bool) -> float:
        """Return the time at which a lane's clock shows a phase between the phases of its first and last knots. If the
        clock stood still at this phase, return the time when it stopped, or, with `late`, the time when it went on.
        """
        line = self.values[:, lane]
        k = int(np.searchsorted(line, phase, side="right" if late else "left"))
        if k == 0:
            return float(self.times[0])
        if k == len(line):
            return float(self.times[-1])
        rise = line[k] - line[k - 1]
        share = (phase - line[k - 1]) / rise if rise > 0 else 1.0
        return float(self.times[k - 1] + share * (self.times[k] - self.times[k - 1]))
