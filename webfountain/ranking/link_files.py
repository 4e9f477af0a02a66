"""Access to the files of a link log.

A log is a folder or an fsspec URL.

Reading a damaged file raises `DamagedFile`; `log_completeness` repairs damaged logs.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from webfountain.errors import RepositoryError
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import fsspec

__all__ = ["COMPLETE_SINCE", "MANIFEST", "NAME", "ROW", "DamagedFile", "LogFiles", "Manifest", "shard_name"]

MANIFEST: Final = "manifest.json"
COMPLETE_SINCE: Final = "complete-since"
_DAMAGED: Final = "damaged"
_WORDS: Final = 200
"""Maximum length of an error text in a message, characters."""
ROW: Final = pa.schema(
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
NAME: Final = pa.schema([("fingerprint", pa.uint64()), ("site", pa.uint64()), ("url", pa.string())])


def shard_name(kind: str, generation: int, shard: int) -> str:
    """Return the file name of one shard. `kind` is `links` or `names`."""
    return f"shards/{kind}-{generation:06d}-{shard:04d}.parquet"


class DamagedFile(RepositoryError):
    """A file of a log exists but cannot be read. `name` is the path of the file, relative to the log."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Manifest(msgspec.Struct, frozen=True):
    """The list of the current shards, and of the segments that were merged into them."""

    generation: int = 0
    shards: int = 16
    rows: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    contained: tuple[str, ...] = ()


class LogFiles:
    """The files of a log. File names are relative to the log, with / as separator."""

    def __init__(self, url: str) -> None:
        self._fs: fsspec.AbstractFileSystem  # or `_Disk`, which has those methods that a folder needs
        if "://" in url:
            import fsspec  # noqa: PLC0415  (a tenth of the CPU time of a ranking of few pages)

            self._fs, root = fsspec.url_to_fs(url)
            self._local = "file" in self._fs.protocol
        else:
            self._fs, root, self._local = _Disk(), os.path.abspath(os.path.expanduser(url)), True
        self._root = root.rstrip("/")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold a lock that prevents other processes from compacting, if the file system supports locks."""
        if not self._local:
            yield
            return
        try:
            self._make_folder(self._root)
            lock = os.open(self._path("LOCK"), os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as error:
            raise RepositoryError(f"{self._path('LOCK')}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def manifest(self) -> Manifest:
        """Return the current manifest, which is empty before the first compaction.

        Raises DamagedFile if the manifest cannot be read, or if there are shards without a manifest.
        """
        try:
            content = self._content(MANIFEST)
            if content is None and self.listed("shards"):
                content = self._content(MANIFEST)  # the first compaction may have begun meanwhile
                if content is None:
                    raise ValueError("it is missing")
            if content is None:
                return Manifest()
            found = msgspec.json.decode(content, type=Manifest)
            for kind, names in (("links", found.rows), ("names", found.names)):
                if names and names != tuple(shard_name(kind, found.generation, n) for n in range(found.shards)):
                    raise ValueError("it names other files than its shards")
            if bool(found.rows) != bool(found.names):
                raise ValueError("it names too few shards")
            return found
        except (ValueError, msgspec.MsgspecError) as error:
            raise self.damaged(MANIFEST, error) from error

    def replace_manifest(self, manifest: Manifest) -> None:
        self._write(MANIFEST, json.dumps(msgspec.to_builtins(manifest), indent=1).encode())

    def text(self, name: str) -> str | None:
        """Return the text of a small file, or None if the file does not exist. Raises DamagedFile, or RepositoryError
        if the disk reports an error."""
        content = self._content(name)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise self.damaged(name, error) from error

    def _content(self, name: str) -> bytes | None:
        try:
            content: bytes = self._fs.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RepositoryError(f"{self._path(name)}: {error}") from error
        return content

    def exists(self, name: str) -> bool:
        return bool(self._fs.exists(self._path(name)))

    def beside(self, path: Path) -> str | None:
        """Return the path of a file relative to the log, or None if the file is not in a sibling folder of the log."""
        path = path.absolute()
        if not self._local or path.parent.parent != Path(self._root).parent:
            return None
        return f"../{path.parent.name}/{path.name}"

    def replace_text(self, name: str, content: str) -> None:
        """Write a small file completely or not at all."""
        self._write(name, content.encode())

    def live(self, kind: str) -> tuple[Manifest, list[str]]:
        """Return the manifest, and the files that a reader of `links` or `names` must read. The files are all current
        shards, and the segments that no shard contains yet."""
        # List the segments first: if one is compacted meanwhile, it is in the manifest and is read with the shards.
        present = self.listed("segments")
        manifest = self.manifest()
        contained = set(manifest.contained)
        fresh = [each for each in present if each.startswith(f"segments/{kind}-") and each not in contained]
        return manifest, [*(manifest.rows if kind == "links" else manifest.names), *fresh]

    def segments(self, manifest: Manifest) -> list[str]:
        contained = set(manifest.contained)
        return [each for each in self.listed("segments") if each not in contained]

    def sweep(self, manifest: Manifest) -> None:
        """Delete files that no reader needs any more."""
        kept = {*manifest.rows, *manifest.names}
        gone = [each for each in self.listed("shards") if each not in kept]
        gone += [each for each in self.listed("segments") if each in set(manifest.contained)]
        for each in gone:
            self.remove(each)

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise RepositoryError(f"{self._path(name)}: {error}") from error

    def read(self, name: str) -> pa.Table:
        """Return the table in a file. Raises DamagedFile, or RepositoryError if the disk reports an error."""
        with self._reading(name) as file:
            return _known(pq.read_table(io.BytesIO(file.read()), page_checksum_verification=True), name)

    def read_batches(self, name: str, batch: int, *, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a file as tables of at most `batch` rows. Raises DamagedFile, or RepositoryError if the
        disk reports an error."""
        with self._reading(name) as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            _known(parquet.schema_arrow.empty_table(), name)  # a file without rows has no batch to check
            missing = parquet.metadata.num_rows
            # Threads would be started anew in each ranker process, which is not in a hurry.
            for each in parquet.iter_batches(batch_size=batch, columns=columns, use_threads=False):
                found = pa.Table.from_batches([each])
                missing -= len(found)
                yield _known(found, name) if columns is None else found
            if missing:  # a wrong count in the footer ends the batches early, without an error
                raise ValueError(f"its rows differ by {missing} from their count")

    def count(self, name: str) -> int:
        """Return the number of rows that the Parquet footer of a file states."""
        with self._reading(name) as file:
            return int(pq.ParquetFile(file).metadata.num_rows)

    @contextmanager
    def _reading(self, name: str) -> Iterator[Any]:
        try:
            with self._fs.open(self._path(name), "rb") as file:
                yield file
        except FileNotFoundError as error:
            raise self.damaged(name, error) from error
        except OSError as error:
            if error.errno is None:  # Arrow raises this error if the content cannot be decoded
                raise self.damaged(name, error) from error
            raise RepositoryError(f"{self._path(name)}: {error}") from error
        except (pa.ArrowException, ValueError) as error:
            raise self.damaged(name, error) from error

    def damaged(self, name: str, error: Exception) -> DamagedFile:
        words = " ".join(str(error).split())[:_WORDS]
        return DamagedFile(name, f"{self._path(name)}: damaged: {words}")

    def set_aside(self, name: str) -> None:
        """Move a damaged file to the folder `damaged`. If the file is missing, create an empty file there instead."""
        there = f"{_DAMAGED}/{name.replace('/', '-')}"
        try:
            self._make_folder(self._path(_DAMAGED))
            self._fs.mv(self._path(name), self._path(there))
        except FileNotFoundError:
            self._write(there, b"")
        except OSError as error:
            raise RepositoryError(f"{self._path(name)}: {error}") from error

    def write_table(self, name: str, table: pa.Table) -> None:
        made = io.BytesIO()
        # Fingerprints are random, so only the column of sites compresses, and only the sort columns need statistics.
        pq.write_table(
            table,
            made,
            compression="zstd",
            use_dictionary=["site", "target_sites.list.element"],
            write_statistics=["site", "source", "time"],
            write_page_checksum=True,
        )
        self._write(name, made.getvalue())

    def _write(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all."""
        path = self._path(name)
        try:
            self._make_folder(path.rpartition("/")[0])
            if not self._local:
                self._fs.pipe_file(path, content)
                return
            with replaced(Path(path), durable=True) as file:
                file.write(content)
        except OSError as error:
            raise RepositoryError(f"{path}: {error}") from error

    def _make_folder(self, path: str) -> None:
        """Create a folder that only the user can read."""
        if not self._local:
            self._fs.makedirs(path, exist_ok=True)
            return
        for each in (self._root, path):
            Path(each).mkdir(mode=0o700, parents=True, exist_ok=True)

    def aside(self) -> list[str]:
        """Return the names of the segments that were set aside as damaged."""
        found = [each.removeprefix(f"{_DAMAGED}/") for each in self.listed(_DAMAGED)]
        return [each.replace("-", "/", 1) for each in found if each.startswith("segments-")]

    def listed(self, folder: str, *, suffix: str = ".parquet") -> list[str]:
        try:
            found = self._fs.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RepositoryError(f"{self._path(folder)}: {error}") from error
        return sorted(f"{folder}/{each.rpartition('/')[2]}" for each in found if each.endswith(suffix))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


class _Disk:
    """A file system of local files, with the fsspec methods that this module calls."""

    exists = staticmethod(os.path.exists)
    mv = staticmethod(os.replace)
    open = staticmethod(open)
    rm_file = staticmethod(os.remove)

    @staticmethod
    def cat_file(path: str) -> bytes:
        return Path(path).read_bytes()

    @staticmethod
    def ls(path: str, *, detail: bool) -> list[str]:
        del detail
        return os.listdir(path)


def _known(table: pa.Table, name: str) -> pa.Table:
    """Return a table after checking that it has the columns of a link log. Raise ValueError if the columns differ."""
    if not table.schema.equals(ROW if "/links-" in name else NAME):
        raise ValueError("its columns are not those of a link log")
    return table
