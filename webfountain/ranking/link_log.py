"""The link log: the links of each fetched page, in Parquet files that other programs can read.

A writer appends one row for each fetched page. Once per time period, or after many rows, the writer writes its rows as
a *segment*. Rows that are in no segment yet are in the writer's journal (`link_journal`). Compaction merges the
segments into *shards*. Each site belongs to one shard. A shard has only the newest row of each page. For each shard, a
file of *names* gives the URL of each fingerprint.

The *manifest* lists the current shards and the segments that were merged into them. Readers read the current shards and
all segments that the manifest does not list. A reader sees each row once, even during a compaction or after a kill. A
file that a compaction replaced is kept until the next compaction, because a reader may still have it open.

Fingerprints are 8-byte xxh3 hashes of canonical URLs and of sites. Links that the crawl does not follow are logged with
a flag, because the crawl may follow them after an edit of the policy file.
"""

from __future__ import annotations

__all__ = ["LinkLog", "LinkLogReader", "compact", "fingerprint", "surt"]

import secrets
from array import array
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from webfountain.core.key_rows import KeyRows, keys_of
from webfountain.ranking.link_files import NAME, ROW, LogFiles, Manifest, shard_name
from webfountain.ranking.link_journal import UNFOLLOWED, JournalRow, LinkJournal, left_behind
from webfountain.ranking.log_completeness import incomplete_until, open_log
from webfountain.ranking.segment_register import SegmentRegister, close_register, damaged_registers, drop_old_registers
from webfountain.records import Link
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt


ROWS: Final = 20_000
"""Maximum number of pages in a segment."""

_KEY, _SITE = attrgetter("key"), attrgetter("site")
_KNOWN_NAMES: Final = 1_000_000
"""Maximum number of fingerprints in a writer's cache of the URLs that the log already contains."""


def fingerprint(url: str) -> int:
    """Return the 8-byte xxh3 hash of a canonical URL or of a site, as an int."""
    return xxh3_64_intdigest(url.encode())


def surt(site: str) -> str:
    """Return a site with its host name reversed, such as ``org,example,www:8080)``, for sorting by domain."""
    parts = urlsplit(site)
    port = f":{parts.port}" if parts.port else ""
    return f"{','.join(reversed((parts.hostname or '').split('.')))}{port})"


class LinkLog:
    """A writer of the link log.

    `sequence` counts the rows since the log was opened. Not thread-safe.
    """

    def __init__(
        self,
        url: str,
        *,
        writer: str,
        period: float = 86_400.0,
        rows: int = ROWS,
        journal: Path | None = None,
        at: float = 0.0,
    ) -> None:
        """Open the log at `url`, a folder or an fsspec URL.

        `at` is the current time. A segment covers at most `period` seconds.

        `journal` is the folder for the journals of all writers on this machine. If a process was killed, the rows in
        its journal are moved into a segment. Without a journal, a process that dies loses the rows that are in no
        segment yet.

        Raises RepositoryError if a file cannot be read or written.
        """
        self._files = LogFiles(url)
        self.is_new = not self._files.exists("")
        """True if the log did not exist before it was opened."""
        self.complete_since = open_log(self._files, at=at)
        """The log has a row for every page that was fetched after this time, UTC seconds."""
        self._period, self._rows = period, rows
        # A file name is never used again: the manifest may still list an older file of this name as merged.
        self._writer = f"{writer}-{secrets.token_hex(4)}"
        self._journal = None if journal is None else LinkJournal(journal, self._writer)
        self._register = SegmentRegister(
            self._files, self._writer, None if self._journal is None else self._journal.path
        )
        self._sequence = 0
        self._named = KeyRows()
        self._appended: list[_Page] = []  # their rows are still to be made
        self._sites = _Sites()
        self._current = 0
        self._clear()
        if journal is not None and self._take_over(journal):
            self.complete_since = incomplete_until(self._files, at)

    def append(
        self,
        url: str,
        site: str,
        *,
        at: float,
        links: Sequence[Link],
        flags: bytes = b"",
        anchors: Sequence[str] | None = None,
    ) -> None:
        """Append the links of a page that was fetched at the time `at`. An appended row survives a kill only after
        `commit` or `flush`.

        Parameters
        ----------
        url : canonical URL of the page
        links : their keys are the fingerprints of the linked URLs
        flags : one byte per link, of the flags in `link_journal`; empty: all FOLLOWED
        anchors : one text per link, if a policy needs them

        Raises RepositoryError if a segment cannot be written.
        """
        period, count = int(at // self._period), len(self._time) + len(self._appended)
        if count and (period != self._current or count >= self._rows):
            self.flush()
        self._current = period
        texts = None if anchors is None else list(anchors)
        self._appended.append(_Page(url, site, at, links, flags or bytes(len(links)), texts))

    def commit(self) -> None:
        """Write the appended rows to the journal. Raise RepositoryError if the disk reports an error."""
        self._take_appended()
        if self._journal is not None:
            self._journal.commit()

    def _take_appended(self) -> None:
        pages, self._appended = self._appended, []
        if not pages:
            return
        # Bytes are joined, because one object per link would double the cost.
        targets = [b"".join(map(_KEY, page.links)) for page in pages]
        sources = [xxh3_64_digest(page.url.encode()) for page in pages]
        names = self._new_names(pages, targets, sources)
        for page, joined, source, new in zip(pages, targets, sources, names, strict=True):
            linked = b"".join(map(self._sites.__getitem__, map(_SITE, page.links)))
            named = [(link.url, link.site) for link in new]
            row = JournalRow(page.url, page.site, page.at, joined, linked, page.flags, page.anchors, named)
            self._append(row, source)
            if self._journal is not None:
                self._journal.add(row)

    def _new_names(self, pages: list[_Page], targets: list[bytes], sources: list[bytes]) -> list[list[Link]]:
        """Return, by page, a `Link` for each URL that the log does not contain yet."""
        keys = keys_of(b"".join([part for both in zip(targets, sources, strict=True) for part in both]))
        if len(self._named) + len(keys) > _KNOWN_NAMES:
            self._named = KeyRows()
        known = len(self._named)
        rows = self._named.rows(keys)
        names: list[list[Link]] = [[] for _ in pages]
        ends = np.cumsum([len(page.links) + 1 for page in pages])
        new = (rows > known).nonzero()[0]
        for place, at in zip(new.tolist(), ends.searchsorted(new, "right").tolist(), strict=True):
            if rows[place] > known:  # the first place of this row
                known, page = rows[place], pages[at]
                nth = place - int(ends[at]) + len(page.links) + 1
                link = page.links[nth] if nth < len(page.links) else Link(page.url, page.site, sources[at])
                names[at].append(link)
                self._names.append(link)
        return names

    def _append(self, row: JournalRow, source: bytes) -> None:
        self._source.append(source)
        self._site.append(self._sites[row.site])
        self._time.append(row.at)
        self._targets.append(row.targets)
        self._target_sites.append(row.target_sites)
        self._flags += row.flags
        self._ends.append(self._ends[-1] + len(row.flags))
        self._anchors.append(row.anchors)

    def _take_over(self, folder: Path) -> bool:
        """Move the rows in the journals of killed processes into a segment. Return True if rows were lost because a
        journal was damaged."""
        has_lost = False
        for writer, rows, lost in left_behind(folder):
            has_lost = has_lost or lost > 0
            for row in rows:
                self._current = int(row.at // self._period)
                names = [Link(url, site, xxh3_64_digest(url.encode())) for url, site in row.names]
                self._named.rows(keys_of(b"".join(map(_KEY, names))))
                self._names += names
                self._append(row, xxh3_64_digest(row.url.encode()))
            self.flush()
            close_register(self._files, writer)
        return has_lost

    def flush(self) -> None:
        """Write the appended rows, if any, as one segment."""
        self._take_appended()
        if not self._time:
            return
        count = len(self._time)
        ends = pa.array(np.array(self._ends, dtype=np.int32))
        table = pa.table(
            [
                _uint64(self._source),
                _uint64(self._site),
                pa.array(np.frombuffer(self._time, dtype=np.float64)),
                pa.array(np.arange(self._sequence, self._sequence + count, dtype=np.uint64)),
                pa.ListArray.from_arrays(ends, _uint64(self._targets)),
                pa.ListArray.from_arrays(ends, _uint64(self._target_sites)),
                pa.ListArray.from_arrays(ends, pa.array(np.frombuffer(self._flags, dtype=np.uint8))),
                pa.array(self._anchors, type=pa.list_(pa.string())),
            ],
            schema=ROW,
        )
        stem = f"{self._current:08d}-{self._writer}-{self._sequence:016d}.parquet"
        segments = [f"segments/names-{stem}", f"segments/links-{stem}"][not self._names :]
        if self._names:
            names = [
                _uint64([link.key for link in self._names]),
                _uint64([self._sites[link.site] for link in self._names]),
                pa.array([link.url for link in self._names]),
            ]
            # Write the names first, so that whoever reads a row finds its names.
            self._files.write_table(f"segments/names-{stem}", pa.table(names, schema=NAME))
        self._files.write_table(f"segments/links-{stem}", table)
        self._register.add(segments)
        self._sequence += count
        self._clear()
        if self._journal is not None:
            self._journal.clear()

    def close(self) -> None:
        """Write the appended rows as a segment, and delete the journal."""
        try:
            self.flush()
            self._register.close()
            if self._journal is not None:
                self._journal.remove()
        finally:
            if self._journal is not None:
                self._journal.close()

    def _clear(self) -> None:
        # This comes after a segment, because names wait for their rows.
        if len(self._sites) >= _KNOWN_NAMES:
            self._sites = _Sites()
        self._source, self._site, self._time = list[bytes](), list[bytes](), array("d")
        self._targets, self._target_sites = list[bytes](), list[bytes]()
        self._flags, self._ends = bytearray(), [0]
        self._anchors: list[Sequence[str] | None] = []
        self._names = list[Link]()


class _Page(NamedTuple):
    """The arguments of one call of `append`."""

    url: str
    site: str
    at: float
    links: Sequence[Link]
    flags: bytes
    anchors: list[str] | None


class _Sites(dict[str, bytes]):
    """Cache of the fingerprints of sites."""

    def __missing__(self, site: str) -> bytes:
        made = self[site] = xxh3_64_digest(site.encode())
        return made


class LinkLogReader:
    """A reader of the link log. The reader sees only the files that existed when the reader was opened. If several
    files have a row of the same page, the reader yields all these rows."""

    def __init__(self, url: str) -> None:
        self._files = LogFiles(url)
        manifest, self.files = self._files.live("links")
        self.shards = manifest.rows
        self.name_files = self._files.live("names")[1]

    def rows(self, *, files: Sequence[str] | None = None, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of `files` as tables of at most 20,000 pages. By default, read all shards and then all
        segments. `columns` are the columns to read (default: all)."""
        for file in self.files if files is None else files:
            yield from self._files.read_batches(file, 20_000, columns=columns)

    def sources_of(self, target: int) -> dict[str, int]:
        """Return the pages that link to a target: the URL of each page, with the flags of its link.

        `target` is the fingerprint of a URL. The call reads the whole log.
        """
        found: dict[int, tuple[float, int]] = {}
        for table in self.rows():
            targets, sources = table["targets"].combine_chunks(), table["source"].to_numpy()
            times, starts = table["time"].to_numpy(), targets.offsets.to_numpy()
            hits = np.flatnonzero(targets.flatten().to_numpy() == np.uint64(target))
            flags = table["flags"].combine_chunks().flatten().to_numpy()
            at = dict(
                zip((np.searchsorted(starts, hits, side="right") - 1).tolist(), flags[hits].tolist(), strict=True)
            )
            for row in np.flatnonzero(np.isin(sources, np.array(list(found), dtype=np.uint64))).tolist():
                if times[row] >= found[int(sources[row])][0]:
                    del found[int(sources[row])]  # the page was fetched again
            found |= {int(sources[row]): (float(times[row]), flag) for row, flag in at.items()}
        urls: dict[str, int] = {}
        for table in self.names():
            prints = table["fingerprint"].to_numpy()
            rows = np.flatnonzero(np.isin(prints, np.array(list(found), dtype=np.uint64)))
            for row, url in zip(rows.tolist(), table["url"].take(rows).to_pylist(), strict=True):
                urls[url] = found[int(prints[row])][1]
        return urls

    def unfollowed(self) -> dict[str, list[str]]:
        """Return, for each page, the links that the policy file refused. The call reads the whole log."""
        found: dict[int, tuple[float, npt.NDArray[np.uint64]]] = {}
        for table in self.rows():
            targets, times = table["targets"].combine_chunks(), table["time"].to_numpy()
            starts, flags = targets.offsets.to_numpy(), table["flags"].combine_chunks().flatten().to_numpy()
            refused, flat = (flags & UNFOLLOWED) > 0, targets.flatten().to_numpy()
            for row, source in enumerate(table["source"].to_numpy().tolist()):
                if source not in found or times[row] >= found[source][0]:
                    part = slice(starts[row], starts[row + 1])
                    found[source] = float(times[row]), flat[part][refused[part]]
        kept = {source: links for source, (_, links) in found.items() if len(links)}
        if not kept:
            return {}
        wanted = np.unique(np.concatenate([np.array(list(kept), dtype=np.uint64), *kept.values()]))
        urls: dict[int, str] = {}
        for table in self.names():
            prints = table["fingerprint"].to_numpy()
            rows = np.flatnonzero(np.isin(prints, wanted))
            urls |= zip(prints[rows].tolist(), table["url"].take(rows).to_pylist(), strict=True)
        # A damaged log may have no names.
        named = {source: [urls[link] for link in links.tolist() if link in urls] for source, links in kept.items()}
        return {urls[source]: links for source, links in named.items() if source in urls}

    def names(self) -> Iterator[pa.Table]:
        """Yield tables of fingerprint, site, url. A URL may occur in several tables."""
        for file in self.name_files:
            yield from self._files.read_batches(file, 200_000)


def compact(url: str, *, shards: int | None = None, fewest: int = 1) -> int:
    """Merge all segments into the shards, and return the number of rows in the shards.

    If there are fewer than `fewest` segments, do nothing.

    Only one compaction may run at a time. For a log in a folder, a second compaction waits for the first. For a log at
    an fsspec URL, the crawls themselves must ensure that only one of them compacts the log. During a compaction, one
    shard and all rows since the last compaction are in memory. The first compaction fixes the number of shards
    (default: 16).

    Raises RepositoryError if a file is missing, or cannot be read or written; the old manifest then remains valid.
    """
    files = LogFiles(url)
    with files.lock():
        return _compacted(files, shards, fewest)


def _compacted(files: LogFiles, shards: int | None, fewest: int) -> int:
    manifest = files.manifest()
    if not manifest.generation:
        manifest = Manifest(shards=shards or manifest.shards)
        files.replace_manifest(manifest)  # from now on, shards without a manifest are damage
    for error in damaged_registers(files, manifest):
        raise error
    files.sweep(manifest)
    drop_old_registers(files, manifest)
    segments = files.segments(manifest)
    written = [each for each in segments if each.startswith("segments/links-")]
    if len(written) < fewest or not segments:
        return sum(files.count(file) for file in manifest.rows)
    generation = manifest.generation + 1
    rows = _split([files.read(each) for each in written], manifest.shards)
    names = _split([files.read(each) for each in segments if each.startswith("segments/names-")], manifest.shards)
    made: dict[str, list[str]] = {"links": [], "names": []}
    held = 0
    for shard in range(manifest.shards):
        for kind, old, new, merge in (
            ("links", manifest.rows, rows, _newest_rows),
            ("names", manifest.names, names, _sorted_names),
        ):
            earlier = [files.read(old[shard])] if old else []
            table = merge(pa.concat_tables([*earlier, *new[shard]]))
            name = shard_name(kind, generation, shard)
            files.write_table(name, table)
            made[kind].append(name)
            held += table.num_rows if kind == "links" else 0
    files.replace_manifest(
        Manifest(generation, manifest.shards, tuple(made["links"]), tuple(made["names"]), tuple(segments))
    )
    return held


def _split(tables: list[pa.Table], shards: int) -> list[list[pa.Table]]:
    """Divide the rows of tables among the shards, by the site of each row."""
    parts: list[list[pa.Table]] = [[] for _ in range(shards)]
    for table in tables:
        home = table["site"].to_numpy() % np.uint64(shards)
        for shard in range(shards):
            parts[shard].append(table.filter(pa.array(home == shard)))
    for part, schema in ((each, tables[0].schema if tables else None) for each in parts):
        if not part and schema is not None:
            part.append(schema.empty_table())
    return parts


def _newest_rows(table: pa.Table) -> pa.Table:
    """Return the latest row of each page, sorted by site and page."""
    keys = [("site", "ascending"), ("source", "ascending"), ("time", "descending"), ("sequence", "descending")]
    return _first_of_each(table.sort_by(keys), "source")


def _sorted_names(table: pa.Table) -> pa.Table:
    """Return the names sorted by domain, each fingerprint once."""
    sites, first, of = np.unique(table["site"].to_numpy(), return_index=True, return_inverse=True)
    surts = [surt(site_of(url)) for url in table["url"].take(first).to_pylist()]
    place = np.empty(len(sites), dtype=np.int32)
    place[np.array(sorted(range(len(sites)), key=surts.__getitem__), dtype=np.intp)] = np.arange(len(sites))
    ordered = table.append_column("place", pa.array(place[of]))
    ordered = ordered.sort_by([("place", "ascending"), ("url", "ascending")]).drop_columns(["place"])
    return _first_of_each(ordered, "fingerprint")


def _first_of_each(table: pa.Table, column: str) -> pa.Table:
    values = table[column].to_numpy()
    first = np.ones(len(values), dtype=np.bool_)
    first[1:] = values[1:] != values[:-1]
    return table.filter(pa.array(first))


def _uint64(fingerprints: Sequence[bytes]) -> pa.Array:
    return pa.array(np.frombuffer(b"".join(fingerprints), dtype=">u8").astype(np.uint64))
