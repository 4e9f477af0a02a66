"""Look up the links from and to single pages in the link log.

A lookup reads at most `MOST_ROWS` rows, the newest first, and at most `MOST_NAMES` URLs from the files of names. A
lookup also reads the journals of running crawls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.ranking.link_files import LogFiles
from webfountain.ranking.link_journal import NOFOLLOW, UNFOLLOWED, journal_rows
from webfountain.ranking.link_log import fingerprint
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt
    import pyarrow as pa

    from webfountain.ranking.link_journal import JournalRow

    Prints = npt.NDArray[np.uint64]

__all__ = ["LinkLookup", "LoggedLink", "LoggedLinks"]

MOST_ROWS: Final = 200_000
"""Largest number of rows that one lookup reads."""
MOST_NAMES: Final = 2_000_000
"""Largest number of URLs that one lookup reads from the files of names."""
_BATCH: Final = 20_000
_COLUMNS: Final = ["source", "site", "time", "targets", "target_sites", "flags"]


class LoggedLink(NamedTuple):
    """A link from or to a page, with the page at the other end."""

    url: str
    followed: bool
    """False if the crawl does not follow the link: it is nofollow, or a rule refuses it."""


class LoggedLinks(NamedTuple):
    links: list[LoggedLink]
    complete: bool
    """False if a part of the log was not read, or if the URLs of some links were not found."""


class _Rows(NamedTuple):
    """Rows of the link log as arrays, one array for each column. The links of row i are the slice
    `ends[i]:ends[i+1]`."""

    source: Prints
    site: Prints
    time: npt.NDArray[np.float64]
    ends: npt.NDArray[np.int32]
    targets: Prints
    target_sites: Prints
    flags: npt.NDArray[np.uint8]


class _LinkEnd(NamedTuple):
    """The page at the other end of a link: fingerprints of the page and its site, and the flags of the link."""

    page: int
    site: int
    flags: int


class LinkLookup:
    """Finds the links of single pages in the log at `url` and in the journals of the folder `journal`."""

    def __init__(self, url: str, *, journal: Path | None) -> None:
        self._files = LogFiles(url)
        self._journal = journal

    def out_of(self, url: str, *, most: int) -> LoggedLinks:
        """Return the first `most` links that a page had at its last logged fetch. Raise RepositoryError for a damaged
        log."""
        page = np.uint64(fingerprint(url))
        newest, found, read = -np.inf, dict[_LinkEnd, None](), 0
        for rows in self._rows(fingerprint(site_of(url)), others=False):
            for row in np.flatnonzero((rows.source == page) & (rows.time >= newest)).tolist():
                newest = max(newest, float(rows.time[row]))
                if rows.time[row] == newest:
                    part = slice(int(rows.ends[row]), int(rows.ends[row + 1]))
                    columns = (rows.targets[part], rows.target_sites[part], rows.flags[part])
                    found = dict.fromkeys(map(_LinkEnd, *(each.tolist() for each in columns)))
            read += len(rows.source)
            if read >= MOST_ROWS:
                return self._named(list(found)[:most], complete=False)
        return self._named(list(found)[:most], complete=len(found) <= most)

    def into(self, url: str, *, most: int) -> LoggedLinks:
        """Return up to `most` pages that linked to a page at their last logged fetch. Raise RepositoryError for a
        damaged log."""
        page = np.uint64(fingerprint(url))
        hits: list[tuple[float, _LinkEnd]] = []
        sources, times = [np.zeros(0, np.uint64)], [np.zeros(0)]
        complete = True
        for rows in self._rows(fingerprint(site_of(url)), others=True):
            places = np.flatnonzero(rows.targets == page)
            for row, flags in zip(np.searchsorted(rows.ends, places, "right") - 1, rows.flags[places], strict=True):
                hits.append((float(rows.time[row]), _LinkEnd(int(rows.source[row]), int(rows.site[row]), int(flags))))
            sources.append(rows.source)
            times.append(rows.time)
            if sum(map(len, sources)) >= MOST_ROWS or len(hits) > 2 * most:
                complete = False
                break
        newest = _newest(np.concatenate(sources), np.concatenate(times), {each.page for _, each in hits})
        found = {each.page: each for at, each in hits if at >= newest[each.page]}
        return self._named(list(found.values())[:most], complete=complete and len(found) <= most)

    def _rows(self, site: int, *, others: bool) -> Iterator[_Rows]:
        """Yield the rows of all journals and segments, and of the shard that contains the site. If `others` is True,
        also yield the rows of the shards that do not contain the site."""
        if self._journal is not None:
            for journal in journal_rows(self._journal):
                yield _of_journal(journal)
        manifest, live = self._files.live("links")
        segments = live[len(manifest.rows) :]
        shards = [manifest.rows[site % manifest.shards]] if manifest.rows else []
        shards += [each for each in manifest.rows if others and each not in shards]
        for name in [*reversed(segments), *shards]:
            for table in self._files.read_batches(name, _BATCH, columns=_COLUMNS):
                yield _of_table(table)

    def _named(self, found: list[_LinkEnd], *, complete: bool) -> LoggedLinks:
        names = self._names({each.page for each in found}, {each.site for each in found})
        links = [
            LoggedLink(names[each.page], not each.flags & (NOFOLLOW | UNFOLLOWED))
            for each in found
            if each.page in names
        ]
        return LoggedLinks(links, complete and len(links) == len(found))

    def _names(self, pages: set[int], sites: set[int]) -> dict[int, str]:
        names: dict[int, str] = {}
        if self._journal is not None:
            for row in (row for journal in journal_rows(self._journal) for row in journal):
                for url in (row.url, *(url for url, _ in row.names)):
                    if (key := fingerprint(url)) in pages:
                        names[key] = url
        manifest, live = self._files.live("names")
        wanted_shards = {manifest.names[site % manifest.shards] for site in sites} if manifest.names else set()
        read = 0
        for name in [*reversed(live[len(manifest.names) :]), *sorted(wanted_shards)]:
            for table in self._files.read_batches(name, MOST_ROWS, columns=["fingerprint", "url"]):
                if len(names) == len(pages) or read >= MOST_NAMES:
                    return names
                read += len(table)
                left = np.array(list(pages - names.keys()), dtype=np.uint64)
                prints = table["fingerprint"].to_numpy()
                rows = np.flatnonzero(np.isin(prints, left))
                names |= zip(prints[rows].tolist(), table["url"].take(rows).to_pylist(), strict=True)
        return names


def _newest(sources: Prints, times: npt.NDArray[np.float64], pages: set[int]) -> dict[int, float]:
    newest = dict.fromkeys(pages, -np.inf)
    rows = np.flatnonzero(np.isin(sources, np.array(list(pages), dtype=np.uint64)))
    for page, at in zip(sources[rows].tolist(), times[rows].tolist(), strict=True):
        newest[page] = max(newest[page], at)
    return newest


def _of_table(table: pa.Table) -> _Rows:
    targets = table["targets"].combine_chunks()
    starts = targets.offsets.to_numpy()
    return _Rows(
        table["source"].to_numpy(),
        table["site"].to_numpy(),
        table["time"].to_numpy(),
        starts - starts[0],
        targets.flatten().to_numpy(),
        table["target_sites"].combine_chunks().flatten().to_numpy(),
        table["flags"].combine_chunks().flatten().to_numpy(),
    )


def _of_journal(rows: list[JournalRow]) -> _Rows:
    ends = np.cumsum([0, *(len(row.flags) for row in rows)], dtype=np.int32)
    return _Rows(
        np.array([fingerprint(row.url) for row in rows], dtype=np.uint64),
        np.array([fingerprint(row.site) for row in rows], dtype=np.uint64),
        np.array([row.at for row in rows], dtype=np.float64),
        ends,
        _prints(row.targets for row in rows),
        _prints(row.target_sites for row in rows),
        np.frombuffer(b"".join(row.flags for row in rows), dtype=np.uint8),
    )


def _prints(parts: Iterable[bytes]) -> Prints:
    return np.frombuffer(b"".join(parts), dtype=">u8").astype(np.uint64)
