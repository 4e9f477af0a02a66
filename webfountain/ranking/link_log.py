"""The link log: what each fetched page links to, one row a page, in Parquet files that any engine reads.

A writer appends rows and, once a period or when enough have come, writes them as a *segment*. Compaction merges the
segments into *shards* by the source's site, sorted by site and page, where the newest row of a page replaces the
older ones; the *names* beside a shard give the URL of each fingerprint of its sites, in SURT order.

The manifest is replaced in one step and names the shards in force and the segments that they contain. What is live is
the manifest's shards and every segment that it does not name, so a reader sees each row once, before, during and after
a compaction, also one that is killed. Files that no manifest needs any longer stay until the next compaction, for
readers that have just begun.

Fingerprints are xxh3 of the canonical URL (of the site for sites), 8 bytes. It knows no ranking and judges no link:
what an author takes back or the crawl does not follow is logged with a flag that says so, for it is a link of the web,
and another collection, or an edited policy, may think otherwise. Whoever ranks decides what counts.
"""

from __future__ import annotations

__all__ = ["LinkLog", "LinkLogReader", "compact", "fingerprint", "surt"]

import fcntl
import io
import json
import os
import secrets
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from webfountain.errors import RepositoryError
from webfountain.ranking import UNFOLLOWED
from webfountain.records import Link
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import fsspec
    import numpy.typing as npt


ROWS: Final = 20_000
"""Pages after which a segment is written though its period has not ended."""

_KNOWN_NAMES: Final = 1_000_000
"""Fingerprints whose name a writer remembers to have written; 60 bytes each."""

_MANIFEST: Final = "manifest.json"
_ROW: Final = pa.schema(
    [
        ("source", pa.uint64()),
        ("site", pa.uint64()),
        ("time", pa.float64()),
        ("sequence", pa.uint64()),
        ("targets", pa.list_(pa.uint64())),
        ("target_sites", pa.list_(pa.uint64())),
        ("flags", pa.list_(pa.uint8())),
        ("anchors", pa.list_(pa.string())),
    ]
)
_NAME: Final = pa.schema([("fingerprint", pa.uint64()), ("site", pa.uint64()), ("url", pa.string())])


def fingerprint(url: str) -> int:
    """8 bytes of a canonical URL or of a site, as an int."""
    return xxh3_64_intdigest(url.encode())


def surt(site: str) -> str:
    """A site with its host's labels turned round (``org,example,www:8080)``), so that a domain stays together.

    A URL's path follows as it is; the scheme is left out, for both schemes of a host belong together.
    """
    parts = urlsplit(site)
    port = f":{parts.port}" if parts.port else ""
    return f"{','.join(reversed((parts.hostname or '').split('.')))}{port})"


class Manifest(msgspec.Struct, frozen=True):
    """What the shards in force are, and which segments they contain."""

    generation: int = 0
    shards: int = 16
    rows: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    contained: tuple[str, ...] = ()


class LinkLog:
    """A writer of segments; a folder may have many writers, each with a name of its own.

    `sequence` counts the rows of this opening and orders rows of one page and time. Not for several threads.
    """

    def __init__(self, url: str, *, writer: str, period: float = 86_400.0, rows: int = ROWS) -> None:
        """`url` is a folder or an fsspec URL; `period` in seconds of the rows' own times."""
        self._files = _Files(url)
        self._period, self._rows = period, rows
        # A name is never used again: the manifest may still call an older file of that name contained.
        self._writer = f"{writer}-{secrets.token_hex(4)}"
        self._sequence = 0
        self._named: set[bytes] = set()
        self._sites = _Sites()
        self._current = 0
        self._clear()

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
        """A page was fetched `at` and has these links; the row is durable after `flush`.

        Parameters
        ----------
        url : canonical
        links : with the fingerprints of their URLs as keys
        flags : one byte a link, of those of `webfountain.ranking`; empty: all FOLLOWED
        anchors : one text a link, where a policy asks for them

        Raises RepositoryError when a segment that is full or of an earlier period cannot be written.
        """
        period = int(at // self._period)
        if self._time and (period != self._current or len(self._time) >= self._rows):
            self.flush()
        self._current = period
        # Bytes are joined, and made numbers a segment at a time: an object a link would cost as much as all the rest.
        sites, named = self._sites, self._named
        targets = [link.key for link in links]
        source = xxh3_64_digest(url.encode())
        if not named.issuperset(targets):
            self._name([link for link, key in zip(links, targets, strict=True) if key not in named])
        if source not in named:
            self._name([Link(url, site, source)])
        self._source.append(source)
        self._site.append(sites[site])
        self._time.append(at)
        self._targets.append(b"".join(targets))
        self._target_sites.append(b"".join([sites[link.site] for link in links]))
        self._flags += flags or bytes(len(targets))
        self._ends.append(self._ends[-1] + len(targets))
        self._anchors.append(anchors)

    def flush(self) -> None:
        """Write what was appended as one segment, and the names that are new; nothing when nothing was appended."""
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
            schema=_ROW,
        )
        stem = f"{self._current:08d}-{self._writer}-{self._sequence:016d}.parquet"
        if self._names:
            names = [
                _uint64([link.key for link in self._names]),
                _uint64([self._sites[link.site] for link in self._names]),
                pa.array([link.url for link in self._names]),
            ]
            # Names first: whoever reads a row finds its names.
            self._files.write_table(f"segments/names-{stem}", pa.table(names, schema=_NAME))
        self._files.write_table(f"segments/links-{stem}", table)
        self._sequence += count
        self._clear()

    def _name(self, links: Sequence[Link]) -> None:
        if len(self._named) + len(links) > _KNOWN_NAMES:
            self._named.clear()
        self._named.update([link.key for link in links])
        self._names += links

    def _clear(self) -> None:
        # After a segment, for names wait for theirs.
        if len(self._sites) >= _KNOWN_NAMES:
            self._sites = _Sites()
        self._source, self._site, self._time = list[bytes](), list[bytes](), array("d")
        self._targets, self._target_sites = list[bytes](), list[bytes]()
        self._flags, self._ends = bytearray(), [0]
        self._anchors: list[Sequence[str] | None] = []
        self._names = list[Link]()


class _Sites(dict[str, bytes]):
    """Fingerprints of sites, made when they are asked for first."""

    def __missing__(self, site: str) -> bytes:
        made = self[site] = xxh3_64_digest(site.encode())
        return made


class LinkLogReader:
    """What is live at the moment of opening; older rows of a page are left out only where they are compacted."""

    def __init__(self, url: str) -> None:
        self._files = _Files(url)
        manifest, self.files = self._files.live("links")
        self.shards = manifest.rows
        self.name_files = self._files.live("names")[1]

    def rows(self, *, files: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Tables of rows of these of the live `files`, all unless given, shards first; at most 20,000 pages each."""
        for file in self.files if files is None else files:
            yield from self._files.read_batches(file, 20_000)

    def sources_of(self, target: int) -> dict[str, int]:
        """URLs of the pages that link a page, by its fingerprint, when they were fetched last; the flags of each link.

        All of the log is read.
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
                    del found[int(sources[row])]  # it was fetched again
            found |= {int(sources[row]): (float(times[row]), flag) for row, flag in at.items()}
        urls: dict[str, int] = {}
        for table in self.names():
            prints = table["fingerprint"].to_numpy()
            rows = np.flatnonzero(np.isin(prints, np.array(list(found), dtype=np.uint64)))
            for row, url in zip(rows.tolist(), table["url"].take(rows).to_pylist(), strict=True):
                urls[url] = found[int(prints[row])][1]
        return urls

    def unfollowed(self) -> dict[str, list[str]]:
        """URL of each page that had links which were refused when it was fetched last, and their URLs.

        All of the log is read; what is told is held in memory.
        """
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
        return {urls[source]: [urls[link] for link in links.tolist()] for source, links in kept.items()}

    def names(self) -> Iterator[pa.Table]:
        """Tables of fingerprint, site, url; a name may come twice where it is not compacted."""
        for file in self.name_files:
            yield from self._files.read_batches(file, 200_000)


def compact(url: str, *, shards: int | None = None) -> int:
    """Merge all live segments into the shards, one after the other; the number of rows that are held now.

    One compaction at a time: in a folder the second waits for the first; elsewhere it is for the callers to see to
    that, where several crawls share a log. Memory is needed for what came since the last one, and one shard. `shards`
    is fixed by the first compaction (16 unless given).

    Raises RepositoryError when a file cannot be read or written; what was in force stays in force.
    """
    files = _Files(url)
    with files.lock():
        return _compacted(files, shards)


def _compacted(files: _Files, shards: int | None) -> int:
    manifest = files.manifest()
    if not manifest.generation:
        manifest = Manifest(shards=shards or manifest.shards)
    files.sweep(manifest)
    segments = files.segments(manifest)
    if not segments:
        return sum(files.count(file) for file in manifest.rows)
    generation = manifest.generation + 1
    rows = _split([files.read(each) for each in segments if each.startswith("segments/links-")], manifest.shards)
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
            name = f"shards/{kind}-{generation:06d}-{shard:04d}.parquet"
            files.write_table(name, table)
            made[kind].append(name)
            held += table.num_rows if kind == "links" else 0
    files.replace_manifest(
        Manifest(generation, manifest.shards, tuple(made["links"]), tuple(made["names"]), tuple(segments))
    )
    return held


def _split(tables: list[pa.Table], shards: int) -> list[list[pa.Table]]:
    """The rows of each shard; a site's shard is the remainder of its fingerprint."""
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
    """By site and page, of each page the row of the latest time."""
    keys = [("site", "ascending"), ("source", "ascending"), ("time", "descending"), ("sequence", "descending")]
    return _first_of_each(table.sort_by(keys), "source")


def _sorted_names(table: pa.Table) -> pa.Table:
    """In SURT order, each fingerprint once."""
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
    """Of fingerprints as digests, some of them joined."""
    return pa.array(np.frombuffer(b"".join(fingerprints), dtype=">u8").astype(np.uint64))


class _Files:
    """The files of a log: names are relative to its root, with / between folders."""

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415  (0.1 s, needed by those who log links only)

        self._fs: fsspec.AbstractFileSystem
        self._fs, root = fsspec.url_to_fs(url)
        self._root = root.rstrip("/")
        self._local = "file" in self._fs.protocol

    @contextmanager
    def lock(self) -> Iterator[None]:
        """No other process compacts, where that can be had; a killed one's lock is gone with it."""
        if not self._local:
            yield
            return
        try:
            self._fs.makedirs(self._root, exist_ok=True)
            lock = os.open(self._path("LOCK"), os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as error:
            raise RepositoryError(f"{self._path('LOCK')}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def manifest(self) -> Manifest:
        """The one in force; an empty one before the first compaction."""
        try:
            return msgspec.json.decode(self._fs.cat_file(self._path(_MANIFEST)), type=Manifest)
        except FileNotFoundError:
            return Manifest()
        except (OSError, msgspec.MsgspecError) as error:
            raise RepositoryError(f"{self._path(_MANIFEST)}: {error}") from error

    def replace_manifest(self, manifest: Manifest) -> None:
        self._write(_MANIFEST, json.dumps(msgspec.to_builtins(manifest), indent=1).encode())

    def live(self, kind: str) -> tuple[Manifest, list[str]]:
        """(manifest, its shards and the segments it does not contain) of `links` or `names`."""
        # The listing first: a segment that is compacted in between is then in the manifest, and read there.
        present = self._listed("segments")
        manifest = self.manifest()
        contained = set(manifest.contained)
        fresh = [each for each in present if each.startswith(f"segments/{kind}-") and each not in contained]
        return manifest, [*(manifest.rows if kind == "links" else manifest.names), *fresh]

    def segments(self, manifest: Manifest) -> list[str]:
        contained = set(manifest.contained)
        return [each for each in self._listed("segments") if each not in contained]

    def sweep(self, manifest: Manifest) -> None:
        """Delete what a killed or the last compaction left: shards not in force, segments that are in the shards."""
        kept = {*manifest.rows, *manifest.names}
        gone = [each for each in self._listed("shards") if each not in kept]
        gone += [each for each in self._listed("segments") if each in set(manifest.contained)]
        for each in gone:
            self._fs.rm_file(self._path(each))

    def read(self, name: str) -> pa.Table:
        try:
            with self._fs.open(self._path(name), "rb") as file:
                return pq.read_table(io.BytesIO(file.read()))
        except (OSError, pa.ArrowInvalid) as error:
            raise RepositoryError(f"{self._path(name)}: {error}") from error

    def read_batches(self, name: str, batch: int) -> Iterator[pa.Table]:
        try:
            with self._fs.open(self._path(name), "rb") as file:
                for each in pq.ParquetFile(file).iter_batches(batch_size=batch):
                    yield pa.Table.from_batches([each])
        except (OSError, pa.ArrowInvalid) as error:
            raise RepositoryError(f"{self._path(name)}: {error}") from error

    def count(self, name: str) -> int:
        with self._fs.open(self._path(name), "rb") as file:
            return int(pq.ParquetFile(file).metadata.num_rows)

    def write_table(self, name: str, table: pa.Table) -> None:
        made = io.BytesIO()
        # Fingerprints are random: only sites repeat within a column, only the order's columns are worth bounds.
        pq.write_table(
            table,
            made,
            compression="zstd",
            use_dictionary=["site", "target_sites.list.element"],
            write_statistics=["site", "source", "time"],
        )
        self._write(name, made.getvalue())

    def _write(self, name: str, content: bytes) -> None:
        """A file is there as a whole or not at all: a rename in a folder, one object elsewhere."""
        path = self._path(name)
        try:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            if not self._local:
                self._fs.pipe_file(path, content)
                return
            new = f"{path}.new"
            with open(new, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except OSError as error:
            raise RepositoryError(f"{path}: {error}") from error

    def _listed(self, folder: str) -> list[str]:
        try:
            found = self._fs.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(f"{folder}/{each.rpartition('/')[2]}" for each in found if each.endswith(".parquet"))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
