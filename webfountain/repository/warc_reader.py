"""Parse a WARC record: its header alone, the whole record, or the response in it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, cast

import msgspec
from isal import isal_zlib

from webfountain.errors import RepositoryError
from webfountain.records import Copy
from webfountain.urls import site_of

__all__ = [
    "BEFORE",
    "GZIP",
    "HEAD_BYTES",
    "GzipError",
    "Record",
    "StoredCopy",
    "parse_beginning",
    "parse_head",
    "parse_record",
    "parse_unpacked",
    "stored",
]

BEFORE: Final = "X-Webfountain-Before"
"""Header of a response record that names the location of the superseded copy."""
GZIP: Final = 31
"""The argument `wbits` of zlib for gzip data with a window of 32 KB."""
GzipError: Final = cast("type[Exception]", isal_zlib.error)
HEAD_BYTES: Final = 2048
"""Number of compressed bytes that nearly always contain the header of a record."""


class Record(msgspec.Struct, frozen=True):
    """A parsed record: lower-case WARC header names, and its block."""

    headers: dict[str, str]
    block: bytes

    @property
    def kind(self) -> str:
        """Return WARC-Type."""
        return self.headers.get("warc-type", "")

    @property
    def url(self) -> str:
        """Return WARC-Target-URI, or "" for a warcinfo record."""
        return self.headers.get("warc-target-uri", "")

    @property
    def page(self) -> tuple[str, bytes] | None:
        """Return (site, key) of the page in the store; None for a robots.txt or a sitemap."""
        key = self.headers.get("x-webfountain-key")
        return None if key is None else (site_of(self.url), bytes.fromhex(key))


class StoredCopy(msgspec.Struct, frozen=True):
    """A copy from a record: time of the fetch, response, and body after content decoding."""

    url: str
    at: float
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    before: Copy | None = None
    """Location of the superseded copy, if it is known."""
    size: int = 0
    """Size of the whole body, bytes. `body` may contain only the beginning of the whole body."""


def parse_head(data: bytes) -> Record:
    """Return the WARC header from the first HEAD_BYTES of a member.

    Raises
    ------
    ValueError
        if these are not the first bytes of a WARC record, or do not contain its whole header.
    """
    try:
        unpacked = isal_zlib.decompressobj(GZIP).decompress(data, 2 * HEAD_BYTES)
    except GzipError as error:
        raise ValueError(str(error)) from None
    head, end, _ = unpacked.partition(b"\r\n\r\n")
    if not end:
        raise ValueError("the header of a WARC record is cut")
    return Record(_warc_headers(head), b"")


def parse_beginning(data: bytes, most: int) -> Record:
    """Return the beginning of a record, up to `most` bytes.

    `data` is a gzip member, or the beginning of one. Raise RepositoryError if the record is damaged.
    """
    try:
        unpacked = isal_zlib.decompressobj(GZIP).decompress(data, most)
        head, _, block = unpacked.partition(b"\r\n\r\n")
        headers = _warc_headers(head)
        return Record(headers, block[: int(headers["content-length"])])
    except (GzipError, ValueError, KeyError) as error:
        raise RepositoryError(f"a record is damaged: {error}") from None


def parse_record(data: bytes) -> Record:
    """Return a whole record from its gzip member.

    Raises
    ------
    RepositoryError
        if the member is cut, damaged or no WARC record.
    """
    try:
        unpacked = isal_zlib.decompress(data, GZIP)
    except GzipError as error:
        raise RepositoryError(f"a record is damaged: {error}") from None
    return parse_unpacked(unpacked)


def parse_unpacked(data: bytes) -> Record:
    """Return a whole record from decompressed bytes. Raise RepositoryError if the record is damaged."""
    head, _, rest = data.partition(b"\r\n\r\n")
    try:
        headers = _warc_headers(head)
        length = int(headers["content-length"])
    except (ValueError, KeyError) as error:
        raise RepositoryError(f"a record is damaged: {error}") from None
    if len(rest) != length + 4:
        raise RepositoryError(f"a record is damaged: {len(rest)} bytes where {length + 4} should be")
    return Record(headers, rest[:length])


def stored(record: Record) -> StoredCopy:
    """Return the response in a response record.

    Raises
    ------
    RepositoryError
        if the record has another type, or its block is not an HTTP response.
    """
    if record.kind != "response":
        raise RepositoryError(f"a response record was expected, found {record.kind!r}")
    head, _, body = record.block.partition(b"\r\n\r\n")
    try:
        status, headers = _answer(head)
        at = datetime.fromisoformat(record.headers["warc-date"]).timestamp()
        size = int(record.headers["content-length"]) - len(record.block) + len(body)
    except (ValueError, KeyError, IndexError) as error:
        raise RepositoryError(f"the response record of {record.url} is damaged: {error}") from None
    return StoredCopy(record.url, at, status, headers, body, _before(record), size)


def _before(record: Record) -> Copy | None:
    try:
        repository, file, offset, length = map(int, record.headers[BEFORE.lower()].split())
    except (KeyError, ValueError):
        return None
    return Copy(file, offset, length, repository) if min(repository, file, offset, length) >= 0 else None


def _answer(head: bytes) -> tuple[int, tuple[tuple[str, str], ...]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return int(first.split(" ")[1]), tuple((name.lower(), value) for name, _, value in pairs)


def _warc_headers(head: bytes) -> dict[str, str]:
    first, *lines = head.decode("latin-1").split("\r\n")
    if not first.startswith("WARC/1."):
        raise ValueError(f"a WARC record begins with WARC/1., not with {first[:20]!r}")
    pairs = (line.partition(": ") for line in lines)
    return {name.lower(): value for name, _, value in pairs}
