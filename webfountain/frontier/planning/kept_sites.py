"""Restore the urgencies of active sites from the store's saved data, or compute them from the site's page records.

If the site is still in memory, and no other ant has saved newer data, the object in memory is used. If no saved data
can be used, `begin_site` makes the site from the records of its crawled pages.

Each window of a very large site is saved separately (`take_windows`), before the next window is loaded. The next window
starts with the change rates learned so far for the site's sections. When a very large site becomes active for the first
time, its pages are read once, and sorted into windows in a temporary file.
"""

from __future__ import annotations

from array import array
from functools import partial
from itertools import chain
from math import ceil, inf, log, log2
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.forecast import Belief
from webfountain.core.site_urgency import Past, SiteUrgency
from webfountain.errors import StoreError
from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.page_numbers import PageNumbers
from webfountain.frontier.planning.site_ranking import SiteRanking
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgency_terms import SiteSteps
from webfountain.frontier.planning.urgent_site import UrgentSite, resume_site
from webfountain.urls import fingerprint, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from webfountain.frontier.planning.collection_forecast import CollectionForecast
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms
    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.contract import FrontierStore

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = [
    "KeptSites",
    "begin_site",
    "halves",
    "is_turn",
]

_MOST: Final = 1 << 32
"""A window with a number of 2^32 or more is not split."""
FULL: Final = 0.8
"""Maximum size of a new window, as a share of `WINDOW`, so that the window can grow."""
_CLASSES: Final = 12
"""Number of leading bits of a page key by which the temporary file is indexed."""
_ROW: Final = np.dtype(
    [
        ("key", ">u8"), ("section", "<i8"), ("since", "<i8"), ("events", "<f8"), ("observed_time", "<f8"),
        ("importance", "<f8"), ("fetched", "<f8"), ("logs", "<f8"), ("quiet", "<f8"),
    ]
)  # fmt: skip


class KeptSites:
    """Saves and restores the data of active sites in a store."""

    def __init__(self, store: FrontierStore | None, forecast: CollectionForecast) -> None:
        """If `store` is None, sites are not divided into windows."""
        self._store = store
        self._forecast = forecast
        self._windows: list[tuple[SiteLease, int, bytes]] = []

    def open(
        self,
        lease: SiteLease,
        kept: bytes,
        held: UrgentSite | None,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        """Return a site that becomes active: from memory (`held`), from its saved data (`kept`) or from its page
        records (`records`).
        """
        if held is not None and kept and held.kept == kept and held.follow(terms):
            return held
        windows = None if self._store is None else Windows.decode(kept)
        if windows is not None or (held is not None and not held.windows.is_whole):
            return self._open_windows(lease, held, windows, records, terms, at=at)
        site, believed = resume_site(lease.site, kept, terms) if kept else (None, None)
        if site is None:
            site = self._begin(lease, records(), terms, at=at, believed=believed)
        # The saved data may be older than the forecast's.
        if held is not None and held.believed is not None:
            site.believe(held.believed)
        return site

    def _open_windows(
        self,
        lease: SiteLease,
        held: UrgentSite | None,
        windows: Windows | None,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        site = None if windows is None else self._resume(lease.site, windows, terms)
        before = held.beliefs() if held is not None else [] if windows is None else windows.beliefs()
        if site is None:
            known = [each for each in (windows, None if held is None else held.windows) if each is not None]
            return self._begin_anew(lease, before, known, records(), terms, at=at)
        if held is not None:
            self._count_anew(before, site, at)
        return site

    def _resume(self, name: str, windows: Windows, terms: UrgencyTerms) -> UrgentSite | None:
        """Restore a site that was saved in windows. Return None if a window cannot be read."""
        newest = None
        if windows.newest != windows.hand:
            newest = resume_site(name, self._read(name, windows.newest) or b"", terms)[0]
            if newest is None:
                return None
        data = self._read(name, windows.hand)
        site = _at_hand(name, windows, data, terms, None if newest is None else newest.urgencies)
        if site is not None:
            site.encode_windows()
        return site

    def _begin_anew(
        self,
        lease: SiteLease,
        before: list[Belief],
        known: Iterable[Windows],
        records: Iterable[PageRecord],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> UrgentSite:
        """Rebuild a site from the records of its pages, and delete its saved windows."""
        site = self._begin(lease, records, terms, at=at)
        numbers = {number for each in known if not each.is_whole for number in each.numbers}
        for number in numbers - set([] if site.windows.is_whole else site.windows.numbers):
            self._put(lease, number, b"", at=at)
        self._count_anew(before, site, at)
        return site

    def _count_anew(self, before: list[Belief], site: UrgentSite, at: float) -> None:
        """Replace the site's estimates of obsolete pages in the collection's forecast."""
        nothing = Belief(at, 0, 0.0, 0.0, 0.0)
        self._forecast.replace(at, [(each, nothing) for each in before] + [(None, each) for each in site.beliefs()])

    def _begin(
        self,
        lease: SiteLease,
        records: Iterable[PageRecord],
        terms: UrgencyTerms,
        *,
        at: float,
        believed: Belief | None = None,
    ) -> UrgentSite:
        put = None if self._store is None else partial(self._put, lease, at=at)
        return begin_site(lease.site, records, terms.rounded(), at=at, believed=believed, put=put)

    def _put(self, lease: SiteLease, number: int, part: bytes, *, at: float) -> None:
        if self._store is not None:
            self._store.queues.settle([], at=at, parts=[(lease, number, part)])

    def _read(self, site: str, number: int) -> bytes | None:
        return None if self._store is None else self._store.sites.part(site, number)

    def keep(self, lease: SiteLease, site: UrgentSite) -> bytes:
        """Return the data that the store must save with a site."""
        data = site.encode()
        if site.windows.is_whole:
            return data
        site.windows.keep_hand()
        self._windows.append((lease, site.windows.hand, data))
        return site.encode_windows()

    def turn(
        self,
        lease: SiteLease,
        site: UrgentSite,
        records: Callable[[], Iterable[PageRecord]],
        terms: UrgencyTerms,
        *,
        at: float,
    ) -> tuple[UrgentSite, bytes]:
        """Load another window of a site, and return the site and the data that the store must save.

        Split the current window if it has grown too large. If a saved window cannot be read, rebuild the site from
        `records`.
        """
        windows = Windows.begun(0, terms, at) if site.windows.is_whole else site.windows
        left, parts = windows.hand, [(windows.hand, site)]
        while len(parts[0][1]) > site_windows.WINDOW and parts[0][0] < _MOST:
            parts = [half for number, part in parts for half in halves(part, number)]
        kept = {number: part.encode() for number, part in parts}
        waits = {site.pages.key(page): since for page, since in site.ranking.waits.items()}
        hand = windows.turn({number: part.believed for number, part in parts}, waits, terms, at)
        data = kept.get(hand) or self._read(lease.site, hand)
        turned = _at_hand(lease.site, windows, data, terms, site.urgencies)
        if turned is None:
            turned = self._begin_anew(lease, site.windows.beliefs(), [site.windows], records(), terms, at=at)
            return turned, self.keep(lease, turned)
        if len(parts) > 1:
            kept[left] = b""  # it no longer exists
        self._windows += [(lease, number, part) for number, part in kept.items()]
        return turned, turned.encode_windows()

    def take_windows(self) -> list[tuple[SiteLease, int, bytes]]:
        """Return the windows that the store must save in the same transaction as the data from `keep` or `turn`."""
        windows, self._windows = self._windows, []
        return windows


def is_turn(site: UrgentSite, price: float, at: float, pause: float) -> bool:
    """Return whether the next window should be loaded: the current window was in memory long enough, has no urgent
    pages or is too large.
    """
    windows = site.windows
    if windows.is_whole or len(site) > site_windows.WINDOW:
        return len(site) > site_windows.WINDOW
    if windows.is_time(site.terms, at):
        return True
    return at >= windows.early_at(site.terms) and price > site.ranking.most and not site.is_stale(price, at, pause)


def halves(site: UrgentSite, number: int) -> list[tuple[int, UrgentSite]]:
    """Split a window into two halves, and return each half with its number. The first half gets the whole window's
    estimate of obsolete pages (`Belief`).
    """
    upper = site.pages.in_upper_half(number)
    return [
        (2 * number, site.some(~upper, believed=site.believed)),
        (2 * number + 1, site.some(upper, believed=None)),
    ]


def _at_hand(
    name: str, windows: Windows, data: bytes | None, terms: UrgencyTerms, newest: SiteUrgency | None
) -> UrgentSite | None:
    site = resume_site(name, data, terms)[0] if data else None
    if site is not None:
        site.join(windows, newest)
    return site


class _Pages(NamedTuple):
    """Some pages of a site, as read from the store."""

    paths: list[str]
    keys: bytes
    since: Ints
    """For each page, the number of the time step of its last fetch."""
    events: Array
    """For each page, the number of checks that found a change."""
    observed_time: Array
    """For each page, the sum of the intervals between its checks, in time steps; an interval with a change counts half.
    """
    importance: Array
    fetched: Array
    """Result of `UrgencyTerms.candidate_since` for each page, UTC seconds."""
    logs: Array
    """For each page, the sum of log(n) over the checks that found a change n steps after the previous check."""
    quiet: Array
    """For each page, the sum of the intervals in which it did not change, in time steps."""


def begin_site(
    name: str,
    records: Iterable[PageRecord],
    terms: UrgencyTerms,
    *,
    at: float,
    believed: Belief | None = None,
    put: Callable[[int, bytes], object] | None = None,
) -> UrgentSite:
    """Make a site from the records of its pages.

    If the site has more than `WINDOW` pages, it is divided into windows, and `put` stores each window.

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
    """Yield all pages in slices; the first slice may be empty."""
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
    """Summarise the last checks of a page as the values `events`, `observed_time`, `logs` and `quiet` of `_Pages`."""
    found, observed_time, logs, quiet = 0.0, 0.0, 0.0, 0.0
    for check in decode(record.history):
        steps = check.interval / step_s
        if check.changed:
            found, observed_time, logs = found + 1.0, observed_time + steps / 2, logs + log(max(steps, 1e-9))
        else:
            observed_time, quiet = observed_time + steps, quiet + steps
    return found, observed_time, logs, quiet


class _ScratchPages:
    """The pages of a very large site in a temporary file, in slices that are sorted by key."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._pages = 0
        self._begins: list[Ints] = []  # for each slice, the first row of each class of keys, and the end

    def __len__(self) -> int:
        return self._pages

    def add(self, pages: _Pages, section: Ints) -> None:
        """Write a slice of pages to the file."""
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
        """Read the pages of one window; there are 2^`depth` windows."""
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
