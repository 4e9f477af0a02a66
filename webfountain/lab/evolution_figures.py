"""Figures 2, 4, 5 and 6 of Cho 2000, drawn from an `Evolution` as PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.lab.figures import COLOURS, INK, figure, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webfountain.lab.evolution import Evolution, PoissonCheck

__all__ = ["draw_evolution"]

_GROUPS: Final = 6
"""Maximum number of groups in a figure."""


def draw_evolution(evolution: Evolution, folder: Path) -> list[Path]:
    """Write the four figures as PNG and SVG into `folder` and return their paths.

    Raises
    ------
    InputError
        when matplotlib is not installed or the folder cannot be written.
    """
    drawn = {
        "cho-figure-2-change-interval": _change_intervals(evolution),
        "cho-figure-4-lifespan": _lifespans(evolution),
        "cho-figure-5-unchanged": _draw_unchanged(evolution),
        "cho-figure-6-poisson": _draw_poisson(evolution),
    }
    return [path for name, each in drawn.items() for path in save(each, folder, name)]


def _change_intervals(evolution: Evolution) -> Any:
    groups = {name: group.change_interval for name, group in _largest(evolution).items()}
    drawn, (left, *right) = figure("How often pages change (Cho 2000, Figure 2)", 2 if groups else 1)
    _bars(left, {"all": evolution.all.change_interval}, "average change interval")
    left.set_title(f"{evolution.all.pages:,} pages", fontsize=10)
    for each in right:
        _bars(each, groups, "average change interval")
    return drawn


def _lifespans(evolution: Evolution) -> Any:
    groups = {name: group.lifespan_seen for name, group in _largest(evolution).items()}
    drawn, (left, *right) = figure("How long pages are visible (Cho 2000, Figure 4)", 2 if groups else 1)
    both = {"method 1: as observed": evolution.all.lifespan_seen, "method 2: doubled": evolution.all.lifespan_doubled}
    _bars(left, both, "visible lifespan")
    left.set_title(f"{evolution.all.pages:,} pages", fontsize=10)
    for each in right:
        _bars(each, groups, "visible lifespan, method 1")
    return drawn


def _draw_unchanged(evolution: Evolution) -> Any:
    groups = {name: group.unchanged for name, group in _largest(evolution).items() if group.unchanged}
    title = "Pages neither changed nor gone since the first day (Cho 2000, Figure 5)"
    drawn, (left, *right) = figure(title, 2 if groups else 1)
    _decay(left, {"all": evolution.all.unchanged})
    left.set_title(f"{evolution.all.at_start:,} pages of the first day", fontsize=10)
    half = evolution.all.half_changed_days
    if half is not None:
        left.annotate(f"half after {half} days", (half, 0.5), (8, 8), textcoords="offset points", color=INK)
        left.plot([half], [0.5], "o", color=COLOURS[0])
    for each in right:
        _decay(each, groups)
    return drawn


def _draw_poisson(evolution: Evolution) -> Any:
    checks = evolution.all.poisson
    drawn, axes = figure("Intervals between changes against a Poisson process (Cho 2000, Figure 6)", len(checks))
    for each, check in zip(axes, checks, strict=True):
        _intervals(each, check)
    return drawn


def _largest(evolution: Evolution) -> dict[str, Any]:
    """Return the groups to draw, or none if there is only one group."""
    return dict(list(evolution.groups.items())[:_GROUPS]) if len(evolution.groups) > 1 else {}


def _bars(each: Any, series: Mapping[str, Mapping[str, float]], label: str) -> None:
    """Draw grouped bars: a group per class, a bar per series. If there are at most two series, print the value at each
    bar.
    """
    classes = list(next(iter(series.values())))
    at, width = np.arange(len(classes)), 0.8 / len(series)
    for number, (name, shares) in enumerate(series.items()):
        place = at - 0.4 + width * (number + 0.5)
        bars = each.bar(place, list(shares.values()), width * 0.92, color=COLOURS[number % len(COLOURS)], label=name)
        if len(series) <= 2:
            each.bar_label(bars, fmt=lambda share: f"{share:.0%}" if share >= 0.01 else "", fontsize=8, color=INK)
    each.set_xticks(at, classes)
    each.set_xlabel(label, color=INK)
    _percent(each, "share of the pages")
    each.margins(y=0.12)
    if len(series) > 1:
        each.legend(frameon=False, fontsize=9)


def _decay(each: Any, series: Mapping[str, Sequence[float]]) -> None:
    """Draw step curves against days, and the line at one half."""
    for number, (name, shares) in enumerate(series.items()):
        each.step(range(len(shares)), shares, where="post", color=COLOURS[number % len(COLOURS)], label=name, lw=1.8)
    each.axhline(0.5, color="#999999", linewidth=0.8, linestyle="--")
    each.set_xlabel("days since the first day", color=INK)
    each.set_xlim(left=0)
    _percent(each, "share unchanged and there")
    each.set_ylim(0, 1.03)
    if len(series) > 1:
        each.legend(frameon=False, fontsize=9)


def _percent(each: Any, label: str) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    each.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    each.set_ylabel(label, color=INK)


def _intervals(each: Any, check: PoissonCheck) -> None:
    """Draw the share of intervals by length on a log axis, and the line of a Poisson process."""
    each.set_xlabel("interval between two changes, days", color=INK)
    each.set_ylabel("share of the intervals", color=INK)
    if check.mean_found is None or check.over_dispersion is None or check.distance is None:
        text = f"mean interval near {check.mean:.0f} days:\nno page with enough changes"
        each.text(0.5, 0.5, text, transform=each.transAxes, ha="center", va="center", color=INK)
        return
    days, seen = np.arange(1, len(check.histogram) + 1), np.array(check.histogram)
    rate = 1.0 / check.mean_found
    each.semilogy(days[seen > 0], seen[seen > 0], "o", color=COLOURS[0], markersize=4, label="seen")
    each.semilogy(days, rate * (1 - rate) ** (days - 1), color=COLOURS[5], linewidth=1.8, label="Poisson process")
    each.set_title(
        f"mean interval near {check.mean:.0f} days: {check.pages:,} pages, {check.intervals:,} intervals\n"
        f"greatest distance {check.distance:.3f}, over-dispersion {check.over_dispersion:.2f}",
        fontsize=9,
    )
    each.legend(frameon=False, fontsize=9)
