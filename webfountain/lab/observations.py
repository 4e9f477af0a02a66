"""Times at which pages appear, change and vanish, from a change trace or a store.

A `PageSpan` is one visible span of a page in whole days, with at most one change a day. A page that vanishes and comes
back has two spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from webfountain.core.change_rate import decode
from webfountain.errors import InputError
from webfountain.urls import host_of, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from webfountain.records import PageRecord

__all__ = ["DAY", "Observation", "PageSpan", "observe_store", "observe_trace"]

DAY = 86_400.0


class PageSpan(NamedTuple):
    site: str
    first: int
    """Day on which the page is first seen."""
    last: int
    """Day on which the page is last seen. The span covers `last - first` days, at least 1."""
    at_start: bool
    at_end: bool
    changes: int
    """Number of days on which the page changed."""
    days: tuple[int, ...]
    """Days on which the page changed, ascending. A store keeps only the newest checks, so some early days may be
    missing."""

    @property
    def observed_time(self) -> int:
        return max(1, self.last - self.first)


class Observation(NamedTuple):
    """All spans that were observed, and the length of the observation in days."""

    spans: list[PageSpan]
    days: int
    start: float


def observe_trace(
    events: Path,
    pages: Path,
    *,
    start: float | None = None,
    days: int | None = None,
    min_change: float = 0.0,
    served: bool = False,
) -> Observation:
    """Return the spans of a change trace.

    data/README.md describes the columns of a trace.

    Parameters
    ----------
    start, days : the observed window, UTC seconds and whole days; None: the whole trace
    min_change : ignore an M event with resemblance above 1 - min_change; with 0, every different byte counts
    served : leave out pages without a URL

    Raises
    ------
    InputError
        when a file is missing or lacks the columns of a trace, or the window contains no event.
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
        counts &= (kind != "M") | ~(table["resemblance"] > 1.0 - min_change)  # a change of unknown size counts
    if served:
        counts &= np.array([url is not None for url in sites["url"]])[page]
    order = np.argsort(page[counts], kind="stable")
    # The visit at the end of a day finds a change made during that day.
    day = np.ceil((t[counts][order] - begin) / DAY).astype(np.int64)
    rows = zip(page[counts][order].tolist(), kind[counts][order].tolist(), day.tolist(), strict=True)
    return Observation(list(_spans(rows, sites["site"], length)), length, begin)


def observe_store(pages: Iterable[tuple[str, PageRecord]], *, day: float = DAY) -> Observation:
    """Return the spans of a store's copies, each from the first to the last fetch.

    Times of changes come from the last 24 checks in a record, and the number of changes from the record's totals.

    Parameters
    ----------
    day : length of a "day", in seconds; an accelerated crawl gives its time period

    Raises
    ------
    InputError
        when no page was fetched twice, so that no change could be seen.
    """
    kept = [record for _, record in pages if record.checks and record.last_crawled is not None]
    if not kept:
        raise InputError("no page of the store has been fetched twice yet, so there is nothing to analyse")
    begin = min(record.first_seen for record in kept)
    until = max(record.last_crawled or 0.0 for record in kept)
    length = int((until - begin) // day) + 1
    return Observation([_kept(record, begin, length, day) for record in kept], length, begin)


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
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
    """Cut the events, sorted by page and time, into visible spans."""
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
    """Return the span of one record; the times of its checks are computed backwards from the last check."""
    last = record.last_crawled or 0.0
    at, found = last, list[int]()
    for check in reversed(decode(record.history)):
        if check.changed:
            found.append(int((at - begin) // day))
        at -= check.interval
    days = tuple(sorted({max(0, number) for number in found}))
    # Only the number is known of changes that are older than the history.
    changes = max(len(days), record.changes - len(found) + len(days))
    first, until = int((record.first_seen - begin) // day), int((last - begin) // day)
    there = record.state != "gone"
    site = host_of(site_of(record.url))
    return PageSpan(site, first, length if there else until, first == 0, there, changes, days)
