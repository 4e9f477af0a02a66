"""Charts as inline SVG, drawn on the server.

A chart has a title and a description for screen readers. The style sheet sets the colours, so that dark mode and print
can have other colours.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Series", "bars", "histogram", "lines", "strip"]

WIDTH: Final = 720
HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 26
_DAY: Final = 86400.0
_FORMS: Final = ((300.0, "%H:%M:%S"), (_DAY, "%H:%M"), (3 * _DAY, "%d %b %H:%M"), (float("inf"), "%Y-%m-%d"))
"""Formats of the times on a chart's axis: rows of (longest time span in seconds, format)."""
_INTERVALS: Final = 5
"""Maximum number of intervals between the ticks of an axis."""


class Series(NamedTuple):
    """A curve or a series of bars: one value for each time of the chart, all in one colour. None stands for an unknown
    value."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    """Lower end of the uncertainty interval of each value; empty for a chart without intervals."""
    high: Sequence[float | None] = ()


class _Plane(NamedTuple):
    """Converts times and values into coordinates of the drawing."""

    begin: float
    end: float
    ticks: Sequence[float]
    """Values of the horizontal grid lines, from the bottom to the top of the drawing."""

    def x(self, at: float) -> float:
        share = (at - self.begin) / max(self.end - self.begin, 1e-9)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def lines(title: str, times: Sequence[float], series: Sequence[Series], *, as_percent: bool = False) -> Markup:
    """Return a line chart over time, with a band for the interval of each value. Where values are unknown, the line has
    a gap."""
    known = [
        value for each in series for part in (each.values, each.low, each.high) for value in part if value is not None
    ]
    if len(times) < 2 or not known:
        return Markup("")
    ticks = _ticks(max(min(known) - 0.01, 0.0), min(max(known) + 0.01, 1.0)) if as_percent else _ticks(0.0, max(known))
    plane = _Plane(times[0], times[-1], ticks)
    parts = [_axes(plane, as_percent=as_percent)]
    for number, each in enumerate(series):
        parts += _band(plane, times, each, number)
        parts += [_stretch(run, number) for run in _runs(plane, times, each.values)]
    return _drawing(title, parts, series)


def bars(title: str, times: Sequence[float], series: Sequence[Series], *, step: float) -> Markup:
    """Return stacked bars over time."""
    totals = [sum(each.values[i] or 0 for each in series) for i in range(len(times))]
    if not times or not any(totals):
        return Markup("")
    plane = _Plane(times[0], times[-1] + step, _ticks(0.0, max(totals)))
    parts = [_axes(plane, as_percent=False)]
    width = max(round((WIDTH - _LEFT - _RIGHT) * step / (plane.end - plane.begin) * 0.86, 1), 0.6)
    for i, at in enumerate(times):
        below = 0.0
        for number, each in enumerate(series):
            value = each.values[i] or 0
            if value:
                top, bottom = plane.y(below + value), plane.y(below)
                parts.append(
                    Markup('<rect class="bar s{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                        number, plane.x(at), top, width, round(max(bottom - top, 0.5), 1)
                    )
                )
                below += value
    return _drawing(title, parts, series)


def histogram(title: str, counts: Sequence[tuple[str, int]]) -> Markup:
    """Return a chart with one bar for each name, and the number above each bar."""
    most = max((many for _, many in counts), default=0)
    if not most:
        return Markup("")
    parts, width = list[Markup](), (WIDTH - 2 * _RIGHT) / len(counts)
    for number, (name, many) in enumerate(counts):
        height = (HEIGHT - 2 * _BOTTOM - _TOP) * many / most
        middle, top = _RIGHT + (number + 0.5) * width, HEIGHT - _BOTTOM - height
        parts.append(
            Markup(
                '<rect class="bar s0" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>'
                '<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>'
            ).format(
                round(middle - width * 0.36, 1),
                round(top, 1),
                round(width * 0.72, 1),
                round(max(height, 0.5), 1),
                round(middle, 1),
                round(top - 6, 1),
                f"{many:,}",
                round(middle, 1),
                HEIGHT - 6,
                name,
            )
        )
    return _drawing(title, parts, ())


def strip(title: str, marks: Sequence[bool]) -> Markup:
    """Return a chart with one small bar for each of `marks`. A bar for True is twice as high as a bar for False."""
    parts = [
        Markup('<rect class="bar s{}" x="{}" y="{}" width="12" height="{}"/>').format(
            int(not mark), number * 16 + 2, 4 if mark else 16, 24 if mark else 12
        )
        for number, mark in enumerate(marks)
    ]
    body = Markup("").join(parts)
    width = max(len(marks) * 16 + 4, 20)
    return Markup(
        '<svg class="strip" role="img" aria-label="{}" viewBox="0 0 {} 32" width="{}" height="32">{}</svg>'
    ).format(title, width, width, body)


def _drawing(title: str, parts: Sequence[Markup], series: Sequence[Series]) -> Markup:
    key = Markup("").join(
        Markup('<li><span class="key s{}"></span>{}</li>').format(number, each.name)
        for number, each in enumerate(series)
    )
    picture = Markup('<svg class="chart" role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>').format(
        title, WIDTH, HEIGHT, Markup("").join(parts)
    )
    return picture + (Markup('<ul class="keys">{}</ul>').format(key) if len(series) > 1 else Markup(""))


def _axes(plane: _Plane, *, as_percent: bool) -> Markup:
    parts = []
    for value in plane.ticks:
        y = plane.y(value)
        label = f"{100.0 * value:.3g}%" if as_percent else _short(value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="label" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, label)
        )
    form = next(form for most, form in _FORMS if plane.end - plane.begin <= most)
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = plane.begin + share * (plane.end - plane.begin)
        label = datetime.fromtimestamp(at, UTC).strftime(form)
        parts.append(
            Markup('<text class="label" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                plane.x(at), HEIGHT - 6, anchor, label
            )
        )
    return Markup("").join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return round values that cover a range. Round values are multiples of 1, 2 or 5 times a power of ten."""
    high = max(high, low + 1e-3) if low else high or 1.0
    least = (high - low) / _INTERVALS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def _short(value: float) -> str:
    for length, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= length:
            return f"{value / length:.3g}{unit}"
    return f"{value:.3g}"


def _stretch(points: Sequence[tuple[float, float]], number: int) -> Markup:
    """Return a line through the points, or a dot for a single point."""
    if len(points) == 1:
        [(x, y)] = points
        return Markup('<circle class="dot s{}" cx="{}" cy="{}" r="3"/>').format(number, x, y)
    run = " ".join(f"{x},{y}" for x, y in points)
    return Markup('<polyline class="line s{}" points="{}"/>').format(number, run)


def _runs(plane: _Plane, times: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the points of each unbroken sequence of known values."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(times, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((plane.x(at), plane.y(value)))
    return [run for run in runs if run]


def _band(plane: _Plane, times: Sequence[float], each: Series, number: int) -> list[Markup]:
    known = [
        (at, low, high)
        for at, low, high in zip(times, each.low, each.high, strict=False)
        if low is not None and high is not None
    ]
    if len(known) < 2:
        return []
    there = [f"{plane.x(at)},{plane.y(high)}" for at, _, high in known]
    back = [f"{plane.x(at)},{plane.y(low)}" for at, low, _ in reversed(known)]
    return [Markup('<polygon class="band s{}" points="{}"/>').format(number, " ".join(there + back))]
