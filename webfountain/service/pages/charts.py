"""Charts as inline SVG, drawn on the server.

A chart has a title and a description for screen readers, and the template shows its numbers in a table. Colours are
classes of the style sheet, so a chart is right in dark mode and in print.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Series", "bars", "histogram", "lines", "strip"]

WIDTH: Final = 720
HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 10, 24
_DAY: Final = 86400.0


class Series(NamedTuple):
    """Values in one colour, at the times of the chart. None: not known."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    """Lower end of an interval around each value, if known."""
    high: Sequence[float | None] = ()


class _Plane(NamedTuple):
    """Maps times and values to the drawing."""

    begin: float
    end: float
    bottom: float
    top: float

    def x(self, at: float) -> float:
        share = (at - self.begin) / max(self.end - self.begin, 1e-9)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / max(self.top - self.bottom, 1e-9)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def lines(title: str, times: Sequence[float], series: Sequence[Series], *, as_percent: bool = False) -> Markup:
    """Return lines over time, each with its interval if it has one. Where a value is unknown, there is a gap."""
    known = [
        value for each in series for part in (each.values, each.low, each.high) for value in part if value is not None
    ]
    if len(times) < 2 or not known:
        return Markup("")
    bottom, top = (max(0.0, min(known) - 0.02), min(1.0, max(known) + 0.02)) if as_percent else (0.0, max(known) * 1.05)
    plane = _Plane(times[0], times[-1], bottom, top or 1.0)
    parts = [_axes(plane, as_percent=as_percent)]
    for number, each in enumerate(series):
        parts += _band(plane, times, each, number)
        parts += [
            Markup('<polyline class="line s{}" points="{}"/>').format(number, run)
            for run in _runs(plane, times, each.values)
        ]
    return _drawing(title, parts, series)


def bars(title: str, times: Sequence[float], series: Sequence[Series], *, step: float) -> Markup:
    """Return stacked bars over time."""
    totals = [sum(each.values[i] or 0 for each in series) for i in range(len(times))]
    if not times or not any(totals):
        return Markup("")
    plane = _Plane(times[0], times[-1] + step, 0.0, max(totals) * 1.05)
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
    """Return one bar for each name, with its number above."""
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
    """Return a strip of marks, oldest first; a mark that is set is high."""
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
    for share in (0.0, 0.5, 1.0):
        value = plane.bottom + share * (plane.top - plane.bottom)
        y = plane.y(value)
        label = f"{value:.0%}" if as_percent else _short(value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="label" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, label)
        )
    form = (
        "%Y-%m-%d"
        if plane.end - plane.begin > 3 * _DAY
        else "%H:%M"
        if plane.end - plane.begin < _DAY
        else "%d %b %H:%M"
    )
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = plane.begin + share * (plane.end - plane.begin)
        label = datetime.fromtimestamp(at, UTC).strftime(form)
        parts.append(
            Markup('<text class="label" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                plane.x(at), HEIGHT - 6, anchor, label
            )
        )
    return Markup("").join(parts)


def _short(value: float) -> str:
    for length, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= length:
            return f"{value / length:.1f}{unit}"
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _runs(plane: _Plane, times: Sequence[float], values: Sequence[float | None]) -> list[str]:
    """Return the points of each stretch of known values."""
    runs: list[list[str]] = [[]]
    for at, value in zip(times, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{plane.x(at)},{plane.y(value)}")
    return [" ".join(run * 2 if len(run) == 1 else run) for run in runs if run]


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
