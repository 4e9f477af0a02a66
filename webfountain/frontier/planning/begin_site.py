"""Begin a site: compute its state from the records of its crawled pages, which include their histories of visits.

This is done if no data were saved with the site, or if the saved steps no longer fit. A site with more than `WINDOW`
pages begins with windows. Its pages are read once, in any order. They are collected in a scratch file, by ranges of
their keys, until each window can be made.
"""

from __future__ import annotations

from array import array
from itertools import chain
from math import ceil, inf, log, log2
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.site_urgency import Past, SiteUrgency
from webfountain.errors import StoreError
from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.page_numbers import PageNumbers
from webfountain.frontier.planning.site_ranking import SiteRanking
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgency_terms import SiteSteps
from webfountain.frontier.planning.urgent_site import UrgentSite
from webfountain.urls import fingerprint, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from webfountain.core.forecast import Belief
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms
    from webfountain.records import PageRecord

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["FULL", "begin_site"]

FULL: Final = 0.8
"""A new window has at most this share of `WINDOW` pages, which leaves room for the site to grow."""
_CLASSES: Final = 12
"""Number of leading bits of a key that the index of the scratch file uses. So a site begins with at most 2^12 windows.
"""
_ROW: Final = np.dtype(
    [
        ("key", ">u8"), ("section", "<i8"), ("since", "<i8"), ("events", "<f8"), ("observed_time", "<f8"),
        ("importance", "<f8"), ("fetched", "<f8"), ("logs", "<f8"), ("quiet", "<f8"),
    ]
)  # fmt: skip


class _Pages(NamedTuple):
    """Some pages of a site as read from the store; one element per page."""

    paths: list[str]
    keys: bytes
    since: Ints
    """Step of the last fetch."""
    events: Array
    """Number of changes that the last checks found."""
    observed_time: Array
    """Number of steps during which every change would have been found."""
    importance: Array
    fetched: Array
    """`candidate_since` of `UrgencyTerms`, UTC seconds."""
    logs: Array
    """Sum of the logarithms of the steps before checks that found a change."""
    quiet: Array
    """Sum of the steps before the checks that found no change."""


def begin_site(
    name: str,
    records: Iterable[PageRecord],
    terms: UrgencyTerms,
    *,
    at: float,
    believed: Belief | None = None,
    put: Callable[[int, bytes], object] | None = None,
) -> UrgentSite:
    """Return a new site with these pages.

    A site with more than `WINDOW` pages has windows, which `put` stores. Without `put`, the whole site is in memory.

    Raises
    ------
    StoreError
        if the folder for temporary files has no room for 72 bytes per page.
    """
    steps = SiteSteps.of(name, terms)
    some = _in_slices(records, terms, steps, inf if put is None else site_windows.WINDOW)
    first, second = next(some), next(some, None)
    if put is not None and second is not None and second.keys:
        try:
            return _begin_in_windows(chain([first, second], some), terms, steps, at=at, believed=believed, put=put)
        except OSError as error:
            raise StoreError(f"{name}: no room for its pages in {gettempdir()}: {error}") from error
    urgencies = SiteUrgency.resumed(
        first.paths,
        since=first.since,
        events=first.events,
        observed_time=first.observed_time,
        importance=first.importance,
        signals=terms.beliefs,
        step=steps.step(at),
        alone=np.stack([first.events, first.logs, first.quiet]),
    )
    return UrgentSite(urgencies, PageNumbers(first.keys), SiteRanking(steps, first.fetched), terms, believed=believed)


def _in_slices(records: Iterable[PageRecord], terms: UrgencyTerms, steps: SiteSteps, most: float) -> Iterator[_Pages]:
    """Yield all pages in slices; at least one slice, which may be empty."""
    records, is_over = iter(records), False
    while not is_over:
        directories: dict[str, str] = {}
        paths: list[str] = []
        keys, facts = bytearray(), array("d")
        for record in records:  # slice by slice, because a large site's records do not fit into memory
            if record.request is None and record.last_crawled is not None:
                directory = path_of(record.url).rpartition("/")[0] + "/"
                paths.append(directories.setdefault(directory, directory))
                keys += fingerprint(record.url)
                facts.extend((
                    steps.step(record.last_crawled), *_evidence(record, terms.step_s), terms.weight(record),
                    terms.candidate_since(record),
                ))  # fmt: skip
                if len(paths) >= most:
                    break
        else:
            is_over = True
        since, events, observed_time, logs, quiet, importance, fetched = np.array(facts).reshape(-1, 7).T.copy()
        yield _Pages(
            paths, bytes(keys), since.astype(np.int64), events, observed_time, importance, fetched, logs, quiet
        )


def _evidence(record: PageRecord, step_s: float) -> tuple[float, float, float, float]:
    """Return the evidence of a page's last checks.

    It has four parts: the number of changes found; the observed steps (steps before a check that found a change count
    half); and `logs` and `quiet` as in `_Pages`."""
    found, observed_time, logs, quiet = 0.0, 0.0, 0.0, 0.0
    for check in decode(record.history):
        steps = check.interval / step_s
        if check.changed:
            found, observed_time, logs = found + 1.0, observed_time + steps / 2, logs + log(max(steps, 1e-9))
        else:
            observed_time, quiet = observed_time + steps, quiet + steps
    return found, observed_time, logs, quiet


class _ScratchPages:
    """Pages in a scratch file, slice by slice, each slice in the order of its keys."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._pages = 0
        self._begins: list[Ints] = []  # for each slice, the first row of each class of keys, and the end

    def __len__(self) -> int:
        return self._pages

    def add(self, pages: _Pages, section: Ints) -> None:
        """Write a slice."""
        rows = np.zeros(len(pages.since), dtype=_ROW)
        rows["key"], rows["section"] = np.frombuffer(pages.keys, dtype=">u8"), section
        for column in ("since", "events", "observed_time", "importance", "fetched", "logs", "quiet"):
            rows[column] = getattr(pages, column)
        rows = rows[np.argsort(rows["key"])]
        self._file.write(rows.tobytes())
        classes = np.arange(1, 1 << _CLASSES, dtype=np.uint64) << np.uint64(64 - _CLASSES)
        self._begins.append(self._pages + np.concatenate([[0], np.searchsorted(rows["key"], classes), [len(rows)]]))
        self._pages += len(rows)

    def of_window(self, number: int, depth: int) -> npt.NDArray[np.void]:
        """Read the rows of one of 2^`depth` windows."""
        low = (number - (1 << depth)) << (_CLASSES - depth)
        high = low + (1 << (_CLASSES - depth))
        found = []
        for begin in self._begins:
            self._file.seek(int(begin[low]) * _ROW.itemsize)
            found.append(self._file.read(int(begin[high] - begin[low]) * _ROW.itemsize))
        return np.frombuffer(b"".join(found), dtype=_ROW)


def _begin_in_windows(
    some: Iterable[_Pages],
    terms: UrgencyTerms,
    steps: SiteSteps,
    *,
    at: float,
    believed: Belief | None,
    put: Callable[[int, bytes], object],
) -> UrgentSite:
    past = Past(signals=terms.beliefs)
    with TemporaryFile(prefix="webfountain-") as file:
        scratch = _ScratchPages(file)
        for each in some:
            section = past.add(each.paths, since=each.since, events=each.events, observed_time=each.observed_time)
            scratch.add(each, section)
        depth = min(max(1, ceil(log2(len(scratch) / (FULL * site_windows.WINDOW)))), _CLASSES)
        windows = Windows.begun(depth, terms, at)
        for number in [*windows.others[::-1], windows.hand]:  # the window made last stays in memory
            rows = scratch.of_window(number, depth)
            urgencies = past.site(
                rows["section"],
                since=rows["since"].copy(),
                events=rows["events"],
                observed_time=rows["observed_time"],
                importance=rows["importance"],
                step=steps.step(at),
                alone=np.stack([rows["events"], rows["logs"], rows["quiet"]]),
            )
            pages, ranking = PageNumbers(rows["key"].tobytes()), SiteRanking(steps, rows["fetched"].copy())
            known = believed if number == windows.hand else None
            site = UrgentSite(urgencies, pages, ranking, terms, believed=known)
            put(number, site.encode())
    site.join(windows, None)
    return site
