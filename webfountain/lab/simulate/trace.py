"""Change traces: the days on which the pages of a real site were added, changed and deleted.

A trace is two parquet files, events (page, t, kind, resemblance) and pages (page, path, url). `load_trace` keeps the
pages and changes that count, and converts times to days since the start.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from webfountain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["ADDED", "DELETED", "MODIFIED", "ChangeTrace", "Flags", "Pages", "Sitemap", "load_trace", "start_of"]

ADDED, MODIFIED, DELETED = 0, 1, 2
_KINDS = {"A": ADDED, "M": MODIFIED, "D": DELETED}
_DAY = 86400
_EVENT_COLUMNS = ("page", "t", "kind", "resemblance")
_PAGE_COLUMNS = ("page", "path", "url")
_LISTED = 0.5


@dataclass(frozen=True, slots=True)
class ChangeTrace:
    """The life of n pages over a window of days, as events in order of time."""

    urls: list[str]
    """(n,) URL path on the server, or the path in the repository if the page is not served."""
    alive: npt.NDArray[np.bool_]
    """(n,) True if the page exists at the start of the window."""
    born: npt.NDArray[np.int64]
    """(n,) day of the first ADDED event; 0 without such an event, or if the page is alive at the start."""
    day: npt.NDArray[np.int64]
    """(e,) day of each event, 0..days-1, non-decreasing."""
    page: npt.NDArray[np.int64]
    """(e,) page of each event, 0..n-1."""
    kind: npt.NDArray[np.int8]
    """(e,) ADDED, MODIFIED or DELETED."""
    days: int
    """Length of the traced time, in days."""


def start_of(date: str) -> int:
    """Return the Unix seconds of 00:00 UTC of an ISO date. Raise InputError if the text is not a date."""
    try:
        at = datetime.datetime.combine(datetime.date.fromisoformat(date), datetime.time(), datetime.UTC)
    except ValueError as error:
        raise InputError(f"--start: {date!r} is not a date; give YYYY-MM-DD") from error
    return int(at.timestamp())


def load_trace(
    events: Path,
    pages: Path,
    *,
    start: str,
    days: int,
    served: bool = False,
    min_change: float = 0.0,
    exclude: str | None = None,
) -> ChangeTrace:
    """Read a trace, and cut out `days` days from 00:00 UTC of `start`.

    Parameters
    ----------
    served : keep only pages with a url
    min_change : ignore modifications with a resemblance above 1 - `min_change`; one with an unknown resemblance counts
    exclude : regular expression; pages are left out if it matches their url (or their path, if they have no url)

    Raises InputError; the message names the file, column or argument that cannot be used.
    """
    pattern = _pattern(exclude)
    if not 0 <= min_change <= 1:
        raise InputError(f"--min-change: {min_change} is not within 0..1")
    if days < 1:
        raise InputError(f"--days: {days} is below 1")
    seconds = start_of(start)
    page = _columns(pages, _PAGE_COLUMNS)
    urls, keep = _kept_pages(page, served=served, pattern=pattern)
    if not urls:
        raise InputError(f"{pages}: no page is left" + (f" after --exclude {exclude!r}" if exclude else ""))
    event = _columns(events, _EVENT_COLUMNS)
    index = np.full(int(max(page["page"].max(), event["page"].max(initial=0))) + 1, -1, dtype=np.int64)
    index[page["page"][keep]] = np.arange(len(urls))
    strange = set(event["kind"]) - set(_KINDS)
    if strange:
        raise InputError(f"{events}: kind {sorted(map(str, strange))[0]!r} is not one of A, M, D")
    kind = np.array([_KINDS[name] for name in event["kind"]], dtype=np.int8)
    row, at = index[event["page"]], event["t"].astype(np.int64)
    # A null resemblance is NaN here; NaN is never above a threshold, so the change counts.
    counts = (row >= 0) & ~((kind == MODIFIED) & (event["resemblance"] > np.float32(1 - min_change)))
    order = np.flatnonzero(counts)[np.argsort(at[counts], kind="stable")]
    return _window(urls, row[order], (at[order] - seconds) // _DAY, kind[order], days)


def _pattern(exclude: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(exclude) if exclude else None
    except re.error as error:
        raise InputError(f"--exclude: {exclude!r} is not a regular expression: {error}") from error


def _columns(file: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the named columns as numpy arrays, text columns as lists of str or None."""
    import pyarrow as pa  # noqa: PLC0415  (start-up time of the command line)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        present = pq.read_schema(file).names
        table = pq.read_table(file, columns=[name for name in names if name in present])
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{file}: cannot be read as parquet: {str(error).splitlines()[0]}") from error
    missing = [name for name in names if name not in present]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; a trace needs {', '.join(names)}")
    numeric = ("page", "t", "resemblance")
    try:
        return {name: table[name].to_numpy() if name in numeric else table[name].to_pylist() for name in names}
    except pa.ArrowException as error:
        raise InputError(f"{file}: {error}") from error


def _kept_pages(
    page: dict[str, Any], *, served: bool, pattern: re.Pattern[str] | None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    urls, rows = [], []
    for row, (path, url) in enumerate(zip(page["path"], page["url"], strict=True)):
        name = path if url is None else url
        if (url is not None or not served) and not (pattern and pattern.search(name)):
            urls.append(name)
            rows.append(row)
    return urls, np.array(rows, dtype=np.int64)


def _window(
    urls: list[str], page: npt.NDArray[np.int64], day: npt.NDArray[np.int64], kind: npt.NDArray[np.int8], days: int
) -> ChangeTrace:
    """Return the events in order of time, within days 0..days-1 since the start."""
    alive = np.zeros(len(urls), dtype=np.bool_)
    before = day < 0
    # Fancy assignment keeps the last value of a repeated index: the page's newest event before the start.
    alive[page[before]] = kind[before] != DELETED
    inside = ~before & (day < days)
    page, kind, day = page[inside], kind[inside], day[inside]
    born = np.zeros(len(urls), dtype=np.int64)
    added = (kind == ADDED)[::-1]
    born[page[::-1][added]] = day[::-1][added]
    born[alive] = 0
    return ChangeTrace(urls, alive, born, day, page, kind, days)


class Sitemap:
    """The contents of a sitemap on each day, with some dates missing or wrong."""

    def __init__(
        self, trace: ChangeTrace, *, seed: int, listed: float = _LISTED, precision: float = 1.0, recall: float = 1.0
    ) -> None:
        """`listed` is the share of pages in the sitemap.

        Parameters
        ----------
        precision : share of the dates that stand for an event; the others are of random pages and days
        recall : share of the events that have a date; new pages always have one
        """
        rng = np.random.default_rng(seed)
        self._listed = rng.random(len(trace.urls)) < listed
        dated = (rng.random(len(trace.day)) < recall) | (trace.kind != MODIFIED)
        wrong = round(np.count_nonzero(dated & self._listed[trace.page]) * (1.0 / precision - 1.0))
        pages = np.flatnonzero(self._listed)
        day = np.concatenate([trace.day[dated], rng.integers(0, trace.days, wrong)])
        page = np.concatenate([trace.page[dated], rng.choice(pages, wrong) if wrong else pages[:0]])
        order = np.argsort(day, kind="stable")
        self._day, self._page = day[order], page[order]
        self._modified = np.full(len(trace.urls), -1, dtype=np.int64)
        self._read = 0

    def listed(self, pages: Pages) -> Flags:
        return self._listed[pages]

    def modified(self, day: int, pages: Pages) -> Pages:
        """Return, for each page, the day of its latest sitemap date before `day`; -1 if there is none. Days must not
        decrease between calls.
        """
        until = int(np.searchsorted(self._day, day))
        span = slice(self._read, until)
        # Fancy assignment keeps the last value of a repeated page: its newest date.
        self._modified[self._page[span]] = self._day[span]
        self._read = until
        return self._modified[pages]
