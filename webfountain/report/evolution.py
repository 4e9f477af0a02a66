"""How a part of the web evolves: the analysis of Cho 2000 on a change trace or on a store.

Four questions of its section 3, for all pages and for each group: how often pages change (Figure 2), how long they
live (Figure 4), when half of them have changed or vanished (Figure 5), and whether changes are a Poisson process
(Figure 6), with a goodness of fit that the paper leaves to the eye. The figures are drawn here too.

When pages appeared, changed and vanished: from a change trace or from a store, in one form for the analysis. A
`PageSpan` is one page during one visible span, in whole days of the watch, with at most one change a day: what a daily
visitor of Cho 2000 (section 2.1) would have written down. A page that vanishes and comes back is two. Nothing is
judged here.

Figures 2, 4, 5 and 6 of Cho 2000 from an `Evolution`, and the look that all figures share; PNG and SVG. matplotlib is
an optional extra and is imported when a figure is drawn. Only `Figure` objects are used, never pyplot: no window, no
global state.

Figures of virtual crawlers: hot pages found (Cho 1998), miss rates of URL caches (Broder 2003, Figures 2-5).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from webfountain.core.change_rate import decode
from webfountain.errors import InputError
from webfountain.urls import host_of, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from webfountain.records import PageRecord

__all__ = [
    "CHANGE_CLASSES",
    "COLOURS",
    "DAY",
    "LIFESPAN_CLASSES",
    "POISSON_MEANS",
    "Evolution",
    "GroupBy",
    "GroupEvolution",
    "Observation",
    "PageSpan",
    "PoissonCheck",
    "draw_evolution",
    "draw_hot_pages",
    "draw_miss_rates",
    "evolution",
    "figure",
    "observe_store",
    "observe_trace",
    "save",
]

DAY = 86_400.0
"""Seconds."""


class PageSpan(NamedTuple):
    """One visible span of one page; all times in days since the watch began."""

    site: str
    first: int
    """Day of its first sight."""
    last: int
    """Day of its last sight; `last - first` days were watched (at least 1 counts)."""
    at_start: bool
    """It was there when the watch began."""
    at_end: bool
    """It was there when the watch ended."""
    changes: int
    """Days with a change."""
    days: tuple[int, ...]
    """Those days, ascending; fewer than `changes` where a store keeps only the newest checks."""

    @property
    def watched(self) -> int:
        """Days under watch, at least 1."""
        return max(1, self.last - self.first)


class Observation(NamedTuple):
    """All spans of one watch and its length in days."""

    spans: list[PageSpan]
    days: int
    start: float
    """UTC seconds."""


def observe_trace(
    events: Path,
    pages: Path,
    *,
    start: float | None = None,
    days: int | None = None,
    min_change: float = 0.0,
    served: bool = False,
) -> Observation:
    """The spans of a change trace (data/README.md gives its columns), by default from its first to its last event.

    Parameters
    ----------
    start, days : the window watched, UTC seconds and whole days; None: all of the trace
    min_change : an M event with resemblance above 1 - min_change did not happen; 0 counts every byte
    served : leave out pages without a URL

    Raises
    ------
    InputError
        when a file is missing or has not the columns of a trace, or the window holds no event.
    """
    table = _columns(events, ("page", "t", "kind", "resemblance"))
    sites = _columns(pages, ("site", "url"))
    t, page, kind = table["t"], table["page"], table["kind"]
    if not len(t):
        raise InputError(f"{events}: no events")
    begin, end = float(t.min()) if start is None else start, float(t.max())
    if begin > end:
        raise InputError(f"{events}: no event after the start {begin:.0f} (the last is at {end:.0f})")
    length = int(np.ceil((end - begin) / DAY)) if days is None else days
    counts = t <= begin + length * DAY
    if min_change:
        counts &= (kind != "M") | ~(table["resemblance"] > 1.0 - min_change)  # an unknown one counts
    if served:
        counts &= np.array([url is not None for url in sites["url"]])[page]
    order = np.argsort(page[counts], kind="stable")
    # A change during a day is found by the visit at its end.
    day = np.ceil((t[counts][order] - begin) / DAY).astype(np.int64)
    rows = zip(page[counts][order].tolist(), kind[counts][order].tolist(), day.tolist(), strict=True)
    return Observation(list(_spans(rows, sites["site"], length)), length, begin)


def observe_store(pages: Iterable[tuple[str, PageRecord]], *, day: float = DAY) -> Observation:
    """The spans of a store's pages with a copy, each from its first sight to its last fetch.

    Change times come from the last 24 checks that a record keeps, the number of changes from its totals.

    Parameters
    ----------
    day : length of a "day", s; an accelerated crawl gives its time period

    Raises
    ------
    InputError
        when no page was ever fetched twice, so that nothing can have been seen to change.
    """
    kept = [record for _, record in pages if record.checks and record.last_crawled is not None]
    if not kept:
        raise InputError("no page of the store was checked after its first copy yet: nothing to analyse")
    begin = min(record.first_seen for record in kept)
    until = max(record.last_crawled or 0.0 for record in kept)
    length = int((until - begin) // day) + 1
    return Observation([_kept(record, begin, length, day) for record in kept], length, begin)


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Columns of a parquet file as numpy arrays."""
    import pyarrow as pa  # noqa: PLC0415  0.1 s, and most commands read no trace
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(path, columns=list(names))
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise InputError(f"{path}: no column {missing[0]!r}; a trace has {', '.join(names)}")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from None
    return {name: table[name].to_numpy() for name in names}


def _spans(rows: Iterator[tuple[int, str, int]], sites: npt.NDArray[Any], length: int) -> Iterator[PageSpan]:
    """Cut the events, sorted by page and time, into visible spans clipped to days 0..length."""
    born, current, days = 0, -1, list[int]()
    alive = False
    for page, kind, day in rows:
        if page != current:
            if alive:
                yield _span(sites[current], born, length, length, days)
            current, alive = page, False
        if kind == "A" and not alive:
            born, days, alive = day, [], True
        elif kind == "D":
            if alive and day >= 0:
                yield _span(sites[page], born, day, length, days)
            alive = False
        elif day > 0 and alive and (not days or days[-1] != day):
            days.append(day)
    if alive:
        yield _span(sites[current], born, length, length, days)


def _span(site: str, born: int, died: int, length: int, days: list[int]) -> PageSpan:
    return PageSpan(site, max(0, born), died, born <= 0, died >= length, len(days), tuple(days))


def _kept(record: PageRecord, begin: float, length: int, day: float) -> PageSpan:
    """One record as a span: the times of its checks are counted back from the last one."""
    last = record.last_crawled or 0.0
    at, found = last, list[int]()
    for check in reversed(decode(record.history)):
        if check.changed:
            found.append(int((at - begin) // day))
        at -= check.interval
    days = tuple(sorted({max(0, number) for number in found}))
    # Changes older than the history are known by number only.
    changes = max(len(days), record.changes - len(found) + len(days))
    first, until = int((record.first_seen - begin) // day), int((last - begin) // day)
    there = record.state != "gone"
    site = host_of(site_of(record.url))
    return PageSpan(site, first, length if there else until, first == 0, there, changes, days)


GroupBy = Literal["site", "tld"]

CHANGE_CLASSES: Final = (("<= 1 day", 1.0), ("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Figure 2's classes of the average change interval and their upper ends in days; a fifth is beyond."""
LIFESPAN_CLASSES: Final = (("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Figure 4's classes of the visible lifespan; a fourth is beyond."""
POISSON_MEANS: Final = (10.0, 20.0)
"""Days: the mean intervals whose pages Figure 6 shows."""
POISSON_BAND: Final = 0.2
"""Pages with a mean interval within this share of 10 or 20 days count as near it (the paper prints no band)."""
POISSON_CHANGES: Final = 5
"""Pages with fewer changes are left out of it: they tell no mean."""
_BEYOND = "> 4 months"


class PoissonCheck(msgspec.Struct, frozen=True):
    """Intervals between the changes of pages near one mean, against the law that a Poisson process gives them.

    A daily visitor of a Poisson process sees whole-day intervals with P(k) = q (1-q)^(k-1), q = 1/mean: the
    exponential, rounded up. `distance` is Kolmogorov's, the greatest gap between both distribution functions,
    `critical` its 5 % point for independent intervals; `over_dispersion` is the variance of the intervals over that
    of the law: 1 for a Poisson process, more for bursts, less for regular changes.
    """

    mean: float
    """Days asked for."""
    pages: int
    intervals: int
    mean_found: float | None = None
    distance: float | None = None
    critical: float | None = None
    over_dispersion: float | None = None
    histogram: tuple[float, ...] = ()
    """Share of the intervals of 1, 2, … days (Figure 6), to four times the mean."""


class GroupEvolution(msgspec.Struct, frozen=True):
    """The four answers for one group of pages."""

    pages: int
    """Visible spans; a page that came back counts again."""
    changes: int
    never_changed: int
    change_interval: dict[str, float]
    """Figure 2: share of the pages by average change interval; pages that never changed are in the last class."""
    lifespan_seen: dict[str, float]
    """Figure 4, method 1: the time a page was seen."""
    lifespan_doubled: dict[str, float]
    """Figure 4, method 2: twice that for pages that touch the start or the end of the watch."""
    at_start: int
    """Pages of Figure 5: those there on the first day."""
    half_changed_days: int | None
    """Days until half of those had changed or vanished; None: more than half stayed as they were."""
    unchanged: tuple[float, ...]
    """Figure 5: share of those unchanged and there after 0, 1, … days."""
    poisson: tuple[PoissonCheck, ...]


class Evolution(msgspec.Struct, frozen=True):
    """The whole analysis."""

    start: float
    """UTC seconds."""
    days: int
    all: GroupEvolution
    groups: dict[str, GroupEvolution]
    """By name, the largest first."""


def evolution(watch: Observation, *, group_by: GroupBy = "site") -> Evolution:
    """Answer the four questions over all pages and in groups.

    Source: Cho 2000, sections 3.1-3.4.
    """
    groups: dict[str, list[PageSpan]] = {}
    for span in watch.spans:
        groups.setdefault(_group(span.site, group_by), []).append(span)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    return Evolution(
        watch.start,
        watch.days,
        _answers(watch.spans, watch.days),
        {name: _answers(groups[name], watch.days) for name in largest},
    )


def _group(site: str, group_by: GroupBy) -> str:
    """A site by itself or by the last label of its host."""
    return site if group_by == "site" else "." + site.rpartition(".")[2]


def _answers(spans: Sequence[PageSpan], days: int) -> GroupEvolution:
    intervals = [span.watched / span.changes if span.changes else math.inf for span in spans]
    doubled = [span.watched * (2 if span.at_start or span.at_end else 1) for span in spans]
    unchanged = _unchanged(spans, days)
    half = next((day for day, share in enumerate(unchanged) if share <= 0.5), None)
    return GroupEvolution(
        pages=len(spans),
        changes=sum(span.changes for span in spans),
        never_changed=sum(not span.changes for span in spans),
        change_interval=_shares(intervals, CHANGE_CLASSES),
        lifespan_seen=_shares([span.watched for span in spans], LIFESPAN_CLASSES),
        lifespan_doubled=_shares(doubled, LIFESPAN_CLASSES),
        at_start=sum(span.at_start for span in spans),
        half_changed_days=half,
        unchanged=unchanged,
        poisson=tuple(_poisson(spans, mean) for mean in POISSON_MEANS),
    )


def _shares(values: Sequence[float], classes: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """Share of the values in each class; a class goes to its upper end inclusive."""
    names = [name for name, _ in classes] + [_BEYOND]
    at = np.searchsorted([end for _, end in classes], values, side="left")
    counts = Counter(at.tolist())
    return {name: counts[number] / max(1, len(values)) for number, name in enumerate(names)}


def _unchanged(spans: Sequence[PageSpan], days: int) -> tuple[float, ...]:
    """Share of the pages of day 0 that neither changed nor vanished within 0, 1, …, `days` days."""
    there = [span for span in spans if span.at_start]
    if not there:
        return ()
    never = days + 1
    ended = Counter(min(next(iter(span.days), never), never if span.at_end else span.last) for span in there)
    lost = np.cumsum([ended[day] for day in range(days + 1)])
    return tuple((1.0 - lost / len(there)).tolist())


def _poisson(spans: Sequence[PageSpan], mean: float) -> PoissonCheck:
    """The intervals of pages whose mean lies within POISSON_BAND of `mean` days.

    Every page of the band brings all its intervals, so pages with many changes weigh more: as in Figure 6.
    """
    often = [span for span in spans if span.changes >= POISSON_CHANGES]
    near = [span for span in often if abs(span.watched / span.changes - mean) <= POISSON_BAND * mean]
    gaps = np.concatenate([np.diff(span.days) for span in near]) if near else np.empty(0)
    if len(gaps) < 2 or (found := float(gaps.mean())) <= 1.0:
        return PoissonCheck(mean, len(near), len(gaps))
    longest = int(gaps.max())
    seen = np.bincount(gaps.astype(np.int64), minlength=longest + 1)[1:] / len(gaps)
    law = 1.0 - (1.0 - 1.0 / found) ** np.arange(1, longest + 1)
    return PoissonCheck(
        mean,
        len(near),
        len(gaps),
        mean_found=found,
        distance=float(np.abs(np.cumsum(seen) - law).max()),
        critical=1.358 / math.sqrt(len(gaps)),
        over_dispersion=float(gaps.var(ddof=1) / (found * found - found)),
        histogram=tuple(seen[: int(4 * mean)].tolist()),
    )


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
        "cho-figure-5-unchanged": _draw_unchanged(evolution),
        "cho-figure-6-poisson": _draw_poisson(evolution),
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


def _draw_unchanged(evolution: Evolution) -> Any:
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


def _draw_poisson(evolution: Evolution) -> Any:
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


_POINTS = 400


def draw_hot_pages(curves: Mapping[str, npt.NDArray[np.float64]], folder: Path, model: str) -> list[Path]:
    """One curve per ordering: share of hot pages over the share of the crawl; the paths written.

    Raises InputError when matplotlib is not installed or the folder cannot be written.
    """
    drawn, (axes,) = figure(f"Hot pages found, {model}", 1)
    for (name, curve), colour in zip(curves.items(), COLOURS * 2, strict=False):
        at = np.unique(np.linspace(0, len(curve) - 1, _POINTS).astype(np.int64))
        axes.plot((at + 1) / len(curve), curve[at], label=name, color=colour)
    axes.set_xlabel("share of the crawl")
    axes.set_ylabel("share of the hot pages")
    axes.legend(frameon=False)
    return save(drawn, folder, f"ordering-{model}")


def draw_miss_rates(rates: Mapping[str, Mapping[str, float]], folder: Path) -> list[Path]:
    """Miss rate over cache size, and beside it that relative to MIN where MIN is among the policies; the paths written.

    Raises InputError when matplotlib is not installed or the folder cannot be written.
    """
    least = rates.get("min")
    drawn, panels = figure("Miss rates of URL caches", 2 if least else 1)
    for (name, by_size), colour in zip(rates.items(), COLOURS, strict=False):
        sizes = [int(size) for size in by_size]
        panels[0].plot(sizes, list(by_size.values()), label=name, color=colour, marker=".")
        if least:
            panels[1].plot(sizes, [by_size[size] / least[size] for size in by_size], color=colour, marker=".")
    panels[0].set_ylabel("miss rate")
    panels[-1].set_ylabel("miss rate over that of MIN" if least else "miss rate")
    for each in panels:
        each.set_xscale("log", base=2)
        each.set_xlabel("entries")
    panels[0].legend(frameon=False)
    return save(drawn, folder, "urlcache")
