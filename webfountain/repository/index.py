"""The index of the records in one WARC file.

``NAME.index`` has one row of 13 bytes (offset, length, kind) per record of ``NAME.warc.gz``. After a kill, only the
bytes after the last indexed record are scanned. A missing index is rebuilt from the WARC file.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, get_args

import msgspec
from isal import isal_zlib

from webfountain.errors import RepositoryError
from webfountain.repository.warc_reader import GZIP, GzipError, parse_unpacked
from webfountain.repository.warc_writer import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["IndexRow", "RecoveredFile", "Summary", "beside", "open_private", "pack", "recover", "rows_of", "summary"]

_ROW: Final = struct.Struct("<QIB")
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_CHUNK: Final = 1 << 15


class IndexRow(msgspec.Struct, frozen=True, gc=False):
    """One record of a file: its byte range and its kind."""

    offset: int
    length: int
    kind: Kind

    @property
    def end(self) -> int:
        """Return the offset of the byte after the record."""
        return self.offset + self.length


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Number of records and of responses in one WARC file, and `copy_bytes` (bytes of responses with their
    requests)."""

    records: int
    responses: int
    copy_bytes: int


def beside(path: Path, suffix: str) -> Path:
    """Return a WARC file's path with its suffix replaced."""
    return path.with_name(path.name.partition(".")[0] + suffix)


def open_private(path: str, flags: int) -> int:
    """Open a file for the built-in `open`, which calls this function as its `opener`. Only the user can read a file
    that this function creates."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def pack(rows: Sequence[IndexRow]) -> bytes:
    return b"".join([_ROW.pack(row.offset, row.length, _KINDS.index(row.kind)) for row in rows])


def rows_of(path: Path) -> list[IndexRow]:
    """Return the complete records of a WARC file, from its index or by a scan."""
    rows = _indexed(path)
    return rows + list(_scan(path, rows[-1].end if rows else 0))


def summary(path: Path) -> Summary:
    """Count the records of a WARC file and their bytes, in 0.1 s per gigabyte."""
    rows = rows_of(path)
    copied = 0
    before: Kind = "warcinfo"
    for row in rows:
        if row.kind == "response" or (row.kind == "request" and before == "response"):
            copied += row.length
        before = row.kind
    return Summary(len(rows), sum(row.kind == "response" for row in rows), copied)


class RecoveredFile(NamedTuple):
    """Result of a recovery: the file's size, and whether records were lost."""

    size: int
    cut: bool


def recover(path: Path) -> RecoveredFile:
    """Truncate a file after its last complete record, and complete its index."""
    index = beside(path, ".index")
    data = index.read_bytes() if index.exists() else b""
    known = len(data) - len(data) % _ROW.size
    with open(path, "rb") as file:
        # After a power failure, the index may contain rows for bytes that were not written.
        while known and not _is_whole(file, _unpack(data, known)):
            known -= _ROW.size
    end = _unpack(data, known).end if known else 0
    found = list(_scan(path, end))
    end = found[-1].end if found else end
    size = path.stat().st_size
    if end < size:
        os.truncate(path, end)
    if found or known < len(data) or not index.exists():
        with open(index, "wb", opener=open_private) as file:
            file.write(data[:known] + pack(found))
    return RecoveredFile(end, cut=end < size or known < len(data) - len(data) % _ROW.size)


def _indexed(path: Path) -> list[IndexRow]:
    """Return the index rows of a WARC file, as far as they are consecutive and lie within the file."""
    # The last row is checked, because its length may be wrong.
    try:
        data = beside(path, ".index").read_bytes()
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    rows: list[IndexRow] = []
    end = 0
    for offset, length, kind in _ROW.iter_unpack(data[: len(data) - len(data) % _ROW.size]):
        if offset != end or offset + length > size or kind >= len(_KINDS):
            break
        rows.append(IndexRow(offset, length, _KINDS[kind]))
        end = offset + length
    with open(path, "rb") as file:
        while rows and not _is_whole(file, rows[-1]):
            rows.pop()
    return rows


def _unpack(data: bytes, end: int) -> IndexRow:
    """Return the row that ends at the byte `end` of an index."""
    offset, length, kind = _ROW.unpack_from(data, end - _ROW.size)
    return IndexRow(offset, length, _KINDS[kind % len(_KINDS)])


def _is_whole(file: BinaryIO, row: IndexRow) -> bool:
    return row.end <= os.fstat(file.fileno()).st_size and _member(file, row.offset) == row


def _scan(path: Path, start: int) -> Iterator[IndexRow]:
    """Yield the complete records from `start` up to the first torn record."""
    with open(path, "rb") as file:
        while (row := _member(file, start)) is not None:
            yield row
            start = row.end


def _member(file: BinaryIO, offset: int) -> IndexRow | None:
    """Return the record that begins at `offset`; None if it is truncated, damaged or missing."""
    file.seek(offset)
    unpack = isal_zlib.decompressobj(GZIP)
    parts: list[bytes] = []
    read = 0
    try:
        while not unpack.eof:
            data = file.read(_CHUNK)
            if not data:
                return None
            read += len(data)
            parts.append(unpack.decompress(data))
        record = parse_unpacked(b"".join(parts))
    except (GzipError, RepositoryError):
        return None
    kind = record.kind
    return IndexRow(offset, read - len(unpack.unused_data), kind) if kind in _KINDS else None
