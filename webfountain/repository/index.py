"""The records of one WARC file: its index, and the scan that makes or completes it.

Beside ``NAME.warc.gz`` lies ``NAME.index``: one row of 13 bytes per record (offset, length, kind), appended
after the record. It is the checkpoint: after a kill only what lies behind its last row is scanned, never the
whole gigabyte, and the torn last member is cut off. It can be deleted at any time: it is made anew from the
file, once. It says nothing of pages: which records are live is the store's to know.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, get_args

import msgspec
from isal import isal_zlib

from webfountain.errors import RepositoryError
from webfountain.repository.record import GZIP, GzipError, parse_unpacked
from webfountain.repository.warc import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Recovered", "Row", "Summary", "beside", "open_private", "pack", "recover", "rows_of", "summary"]

_ROW: Final = struct.Struct("<QIB")
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_CHUNK: Final = 1 << 15


class Row(msgspec.Struct, frozen=True, gc=False):
    """One record of a file: its byte range and its kind."""

    offset: int
    length: int
    kind: Kind

    @property
    def end(self) -> int:
        """Offset of the byte behind the record."""
        return self.offset + self.length


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Of one file: number of records, and of responses; `copy_bytes` of the responses with their requests."""

    records: int
    responses: int
    copy_bytes: int


def beside(path: Path, suffix: str) -> Path:
    """The file of another kind that belongs to a WARC file (or to another one beside it)."""
    return path.with_name(path.name.partition(".")[0] + suffix)


def open_private(path: str, flags: int) -> int:
    """An opener for `open`: only the user may read what is made."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def pack(rows: Sequence[Row]) -> bytes:
    """Rows in the form of the index."""
    return b"".join([_ROW.pack(row.offset, row.length, _KINDS.index(row.kind)) for row in rows])


def rows_of(path: Path) -> list[Row]:
    """The whole records of a file; scanned from its bytes where the index is absent or behind."""
    rows = _indexed(path)
    return rows + list(_scan(path, rows[-1].end if rows else 0))


def summary(path: Path) -> Summary:
    """How much of a file is copies; 0.1 s for a file of a gigabyte."""
    rows = rows_of(path)
    copied = 0
    before: Kind = "warcinfo"
    for row in rows:
        if row.kind == "response" or (row.kind == "request" and before == "response"):
            copied += row.length
        before = row.kind
    return Summary(len(rows), sum(row.kind == "response" for row in rows), copied)


class Recovered(NamedTuple):
    """What is left of a file: its size, and whether records were lost that its index names or its bytes begin."""

    size: int
    cut: bool


def recover(path: Path) -> Recovered:
    """Cut a file behind the last of its whole records and bring its index up to it."""
    index = beside(path, ".index")
    data = index.read_bytes() if index.exists() else b""
    known = len(data) - len(data) % _ROW.size
    with open(path, "rb") as file:
        # After a power cut the index may be ahead of the bytes it names.
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
    return Recovered(end, cut=end < size or known < len(data) - len(data) % _ROW.size)


def _indexed(path: Path) -> list[Row]:
    """Rows of a file's index, as far as they follow each other and lie within the file."""
    try:
        data = beside(path, ".index").read_bytes()
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    rows: list[Row] = []
    end = 0
    for offset, length, kind in _ROW.iter_unpack(data[: len(data) - len(data) % _ROW.size]):
        if offset != end or offset + length > size or kind >= len(_KINDS):
            break
        rows.append(Row(offset, length, _KINDS[kind]))
        end = offset + length
    return rows


def _unpack(data: bytes, end: int) -> Row:
    """The row of an index that ends at `end`; one of a kind that is unknown fits no record."""
    offset, length, kind = _ROW.unpack_from(data, end - _ROW.size)
    return Row(offset, length, _KINDS[kind % len(_KINDS)])


def _is_whole(file: BinaryIO, row: Row) -> bool:
    return row.end <= os.fstat(file.fileno()).st_size and _member(file, row.offset) == row


def _scan(path: Path, start: int) -> Iterator[Row]:
    """Whole records from `start` on, up to the first that is torn."""
    with open(path, "rb") as file:
        while (row := _member(file, start)) is not None:
            yield row
            start = row.end


def _member(file: BinaryIO, offset: int) -> Row | None:
    """The record that begins at `offset`; None when it is cut, damaged, or nothing is there."""
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
    kind = record.headers.get("warc-type")
    return Row(offset, read - len(unpack.unused_data), kind) if kind in _KINDS else None
