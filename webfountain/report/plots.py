"""Figures 2, 4, 5 and 6 of Cho 2000 from an `Evolution`, and the look that all figures share; PNG and SVG.

matplotlib is an optional extra and is imported when a figure is drawn. Only `Figure` objects are used, never
pyplot: no window, no global state. Numbers are made in `evolution`, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webfountain.report.evolution import Evolution, PoissonCheck

__all__ = ["COLOURS", "draw_evolution", "figure", "save"]

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#666666")
"""Okabe and Ito's, told apart by colour-blind eyes and in grey."""
_GROUPS: Final = 6
"""Figures show the largest groups only; the tables have all."""
_INK: Final = "#333333"


def draw_evolution(evolution: Evolution, folder: Path) -> list[Path]:
    """Write the four figures as PNG and SVG into `folder`; the paths written.

    Raises
    ------
    InputError
        when matplotlib is not installed or the folder cannot be written.
    """
    drawn = {
        "cho-figure-2-change-interval": _change_intervals(evolution),
        "cho-figure-4-lifespan": _lifespans(evolution),
        "cho-figure-5-unchanged": _unchanged(evolution),
        "cho-figure-6-poisson": _poisson(evolution),
    }
    return [path for name, each in drawn.items() for path in save(each, folder, name)]


def figure(title: str, panels: int) -> tuple[Any, list[Any]]:
    """A figure with `panels` axes side by side in the common look."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  an optional extra, 0.4 s
    except ImportError:
        raise InputError("figures need matplotlib, which is not installed: pip install 'webfountain[plots]'") from None
    drawn = Figure(figsize=(5.6 * panels, 4.2), dpi=150, layout="constrained")
    drawn.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    axes = list(drawn.subplots(1, panels, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color("#999999")
        each.tick_params(colors=_INK, labelsize=9)
        each.grid(axis="y", color="#e5e5e5", linewidth=0.8)
        each.set_axisbelow(True)
    return drawn, axes


def save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes for the same figure; InputError when `folder` is not writable."""
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise InputError(f"--plots {folder}: cannot write there: {error.strerror}") from None
    return paths


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
    both = {"method 1: as seen": evolution.all.lifespan_seen, "method 2: doubled": evolution.all.lifespan_doubled}
    _bars(left, both, "visible lifespan")
    left.set_title(f"{evolution.all.pages:,} pages", fontsize=10)
    for each in right:
        _bars(each, groups, "visible lifespan, method 1")
    return drawn


def _unchanged(evolution: Evolution) -> Any:
    groups = {name: group.unchanged for name, group in _largest(evolution).items() if group.unchanged}
    title = "Pages neither changed nor gone since the first day (Cho 2000, Figure 5)"
    drawn, (left, *right) = figure(title, 2 if groups else 1)
    _decay(left, {"all": evolution.all.unchanged})
    left.set_title(f"{evolution.all.at_start:,} pages of the first day", fontsize=10)
    half = evolution.all.half_changed_days
    if half is not None:
        left.annotate(f"half after {half} days", (half, 0.5), (8, 8), textcoords="offset points", color=_INK)
        left.plot([half], [0.5], "o", color=COLOURS[0])
    for each in right:
        _decay(each, groups)
    return drawn


def _poisson(evolution: Evolution) -> Any:
    checks = evolution.all.poisson
    drawn, axes = figure("Intervals between changes against a Poisson process (Cho 2000, Figure 6)", len(checks))
    for each, check in zip(axes, checks, strict=True):
        _intervals(each, check)
    return drawn


def _largest(evolution: Evolution) -> dict[str, Any]:
    """The groups to draw: none when there is only one, which would repeat the left panel."""
    return dict(list(evolution.groups.items())[:_GROUPS]) if len(evolution.groups) > 1 else {}


def _bars(each: Any, series: Mapping[str, Mapping[str, float]], label: str) -> None:
    """Grouped bars: one group per class, one bar per series; up to two series have values above the bars."""
    classes = list(next(iter(series.values())))
    at, width = np.arange(len(classes)), 0.8 / len(series)
    for number, (name, shares) in enumerate(series.items()):
        place = at - 0.4 + width * (number + 0.5)
        bars = each.bar(place, list(shares.values()), width * 0.92, color=COLOURS[number % len(COLOURS)], label=name)
        if len(series) <= 2:
            each.bar_label(bars, fmt=lambda share: f"{share:.0%}" if share >= 0.01 else "", fontsize=8, color=_INK)
    each.set_xticks(at, classes)
    each.set_xlabel(label, color=_INK)
    _percent(each, "share of the pages")
    each.margins(y=0.12)
    if len(series) > 1:
        each.legend(frameon=False, fontsize=9)


def _decay(each: Any, series: Mapping[str, Sequence[float]]) -> None:
    """Step curves over days with the line of one half."""
    for number, (name, shares) in enumerate(series.items()):
        each.step(range(len(shares)), shares, where="post", color=COLOURS[number % len(COLOURS)], label=name, lw=1.8)
    each.axhline(0.5, color="#999999", linewidth=0.8, linestyle="--")
    each.set_xlabel("days since the first day", color=_INK)
    each.set_xlim(left=0)
    _percent(each, "share unchanged and there")
    each.set_ylim(0, 1.03)
    if len(series) > 1:
        each.legend(frameon=False, fontsize=9)


def _percent(each: Any, label: str) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    each.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    each.set_ylabel(label, color=_INK)


def _intervals(each: Any, check: PoissonCheck) -> None:
    """Share of the intervals of each length on a log axis, and the straight line that a Poisson process gives."""
    each.set_xlabel("interval between two changes, days", color=_INK)
    each.set_ylabel("share of the intervals", color=_INK)
    if check.mean_found is None or check.over_dispersion is None or check.distance is None:
        text = f"mean interval near {check.mean:.0f} days:\nno page with enough changes"
        each.text(0.5, 0.5, text, transform=each.transAxes, ha="center", va="center", color=_INK)
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
