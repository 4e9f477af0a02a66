"""The WARC/1.1 form of a fetch: which records are written of it, and how they are read back.

The WARC/1.1 form of a fetch: which records are written of it. Place in
the walk: a fetch that brought a body becomes a response record and its request record; one that repeated the known
body (same digest, or 304) a revisit record and its request. Each record is its own gzip member, so a copy is read by
one seek. `Repository` decides where the members go, `folder` puts them there.

A stored response is what other tools can replay without knowing this crawler: the body after content
decoding, Content-Length corrected, Content-Encoding and Transfer-Encoding kept under an ``X-Archive-Orig-``
name. Header texts come from strangers: whatever is no token or has control characters is mended, so that no
value can end a line early and invent a header or a record. Cookie and Authorization are not archived.

Source: ISO 28500:2017 (WARC/1.1); the revisit profiles of its section 6.7. Compression: igzip level 1, by
measurement (20 KB pages: 36 µs to 0.324 of the size; zlib level 1: 134-160 µs to 0.334).

A WARC record as it is read back: its header alone, the whole of it, the answer in a response record. `folder` finds
the bytes. No files, no clock.
"""

from __future__ import annotations

import base64
import hashlib
import http
import re
import uuid
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, cast
from urllib.parse import quote

import msgspec
from isal import isal_zlib

from webfountain.errors import RepositoryError
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Fetched

__all__ = [
    "GZIP",
    "HEAD_BYTES",
    "Capture",
    "GzipError",
    "Kind",
    "Member",
    "Record",
    "Stored",
    "WarcWriter",
    "date_of",
    "parse_head",
    "parse_record",
    "parse_unpacked",
    "stored",
    "target_uri",
]

GZIP: Final = 31
"""zlib's window bits that mean "gzip, 32 KB window"."""
GzipError: Final = cast("type[Exception]", isal_zlib.error)
"""What unpacking damaged bytes raises (its stub hides that it is an exception type)."""
HEAD_BYTES: Final = 2048
"""Compressed bytes that hold the header of any record but one with a URL of kilobytes."""


class Record(msgspec.Struct, frozen=True):
    """A record that was read: lower-case WARC header names, and its block."""

    headers: dict[str, str]
    block: bytes

    @property
    def url(self) -> str:
        """WARC-Target-URI, "" for a warcinfo record."""
        return self.headers.get("warc-target-uri", "")

    @property
    def page(self) -> tuple[str, bytes] | None:
        """(site, key) of the page in the store; None when the fetch was of no page (robots.txt, a sitemap)."""
        key = self.headers.get("x-webfountain-key")
        return None if key is None else (site_of(self.url), bytes.fromhex(key))


class Stored(msgspec.Struct, frozen=True):
    """A copy that was read back: when it was fetched, how it was answered, the body after content decoding."""

    url: str
    at: float
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def parse_head(data: bytes) -> Record:
    """The WARC header alone, from the first bytes of a member (HEAD_BYTES will do); the block is left empty.

    Raises
    ------
    ValueError
        when these are not the first bytes of a WARC record, or do not hold its whole header.
    """
    try:
        unpacked = isal_zlib.decompressobj(GZIP).decompress(data, 2 * HEAD_BYTES)
    except GzipError as error:
        raise ValueError(str(error)) from None
    head, end, _ = unpacked.partition(b"\r\n\r\n")
    if not end:
        raise ValueError("the header of a WARC record is cut")
    return Record(_warc_headers(head), b"")


def parse_record(data: bytes) -> Record:
    """A whole record from its gzip member.

    Raises
    ------
    RepositoryError
        when the member is cut, damaged or no WARC record.
    """
    try:
        unpacked = isal_zlib.decompress(data, GZIP)
    except GzipError as error:
        raise RepositoryError(f"a record is damaged: {error}") from None
    return parse_unpacked(unpacked)


def parse_unpacked(data: bytes) -> Record:
    """A whole record that was unpacked already; RepositoryError as for `parse_record`."""
    head, _, rest = data.partition(b"\r\n\r\n")
    try:
        headers = _warc_headers(head)
        length = int(headers["content-length"])
    except (ValueError, KeyError) as error:
        raise RepositoryError(f"a record is damaged: {error}") from None
    if len(rest) != length + 4:
        raise RepositoryError(f"a record is damaged: {len(rest)} bytes where {length + 4} should be")
    return Record(headers, rest[:length])


def stored(record: Record) -> Stored:
    """The answer in a response record.

    Raises
    ------
    RepositoryError
        when the record is of another type, or its block is no HTTP answer.
    """
    if record.headers.get("warc-type") != "response":
        raise RepositoryError(f"a response record was expected, found {record.headers.get('warc-type')!r}")
    head, _, body = record.block.partition(b"\r\n\r\n")
    try:
        status, headers = _answer(head)
        at = datetime.fromisoformat(record.headers["warc-date"]).timestamp()
    except (ValueError, KeyError, IndexError) as error:
        raise RepositoryError(f"the response record of {record.url} is damaged: {error}") from None
    return Stored(record.url, at, status, headers, body)


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


Kind = Literal["warcinfo", "response", "request", "revisit"]

_LEVEL: Final = 1
_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/"
_HTTP_ANSWER: Final = "Content-Type: application/http; msgtype=response\r\n"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"})
"""Methods that other tools accept in a request record; one of another method is left out."""
_PRIVATE: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
_RENAMED: Final = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_REASONS: Final = {status.value: status.phrase for status in http.HTTPStatus}
_NAME_SIGNS: Final = r"!#$%&'*+.^_`|~0-9A-Za-z-"
_CLEAN: Final = re.compile(rf"(?:[{_NAME_SIGNS}]+: [^\x00-\x1f\x7f]*\r\n)*")
_NOT_NAME: Final = re.compile(rf"[^{_NAME_SIGNS}]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f:.]+")
_PRINTABLE: Final = re.compile(r"[!-~]+")


class Capture(msgspec.Struct, frozen=True):
    """One fetch to be written.

    `digest` is the hex SHA-1 of the body (of the known copy's body for a 304), computed when None.
    `repeats` is the time of the fetch that brought the copy which this one repeats (`PageRecord.copied`): the
    fetch becomes a revisit record. A 304 is one in any case.
    """

    fetched: Fetched
    digest: str | None = None
    repeats: float | None = None
    method: str = "GET"

    @property
    def is_revisit(self) -> bool:
        """Whether no body is written."""
        return self.repeats is not None or self.fetched.status == 304


class Member(msgspec.Struct, frozen=True, gc=False):
    """One record as the bytes of its gzip member."""

    kind: Kind
    data: bytes


class WarcWriter:
    """Turns captures into records; it holds only the counter that makes record ids unique."""

    def __init__(self, *, software: str) -> None:
        self._software = software
        random = uuid.uuid4().hex
        self._id = f"{random[:8]}-{random[8:12]}-{random[12:16]}-{random[16:20]}-"
        self._numbers = count()

    def warcinfo(self, *, filename: str, at: float) -> Member:
        """The first record of a file: what wrote it, in which format."""
        fields = (
            f"software: {_text(self._software)}\r\nformat: WARC File Format 1.1\r\n"
            "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
        ).encode()
        head = f"{self._begin(at)}WARC-Filename: {filename}\r\nContent-Type: application/warc-fields\r\n"
        return _member("warcinfo", head, fields)

    def members(self, capture: Capture) -> list[Member]:
        """The records of one capture, the response or revisit first; none when the fetch had no answer."""
        fetched = capture.fetched
        if fetched.status is None:
            return []
        answer_id = self._next_id()
        target = _target(fetched)
        head = f"WARC-Record-ID: {answer_id}\r\nWARC-Date: {date_of(fetched.at)}\r\n{target}"
        members = [_revisit(capture, head) if capture.is_revisit else _response(capture, head)]
        if capture.method in _METHODS:
            head = f"{self._begin(fetched.at)}{target}WARC-Concurrent-To: {answer_id}\r\n"
            head += "Content-Type: application/http; msgtype=request\r\n"
            members.append(_member("request", head, _request_head(capture)))
        return members

    def _begin(self, at: float) -> str:
        return f"WARC-Record-ID: {self._next_id()}\r\nWARC-Date: {date_of(at)}\r\n"

    def _next_id(self) -> str:
        return f"<urn:uuid:{self._id}{next(self._numbers):012x}>"


def date_of(at: float) -> str:
    """A WARC-Date with microseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _response(capture: Capture, head: str) -> Member:
    fetched = capture.fetched
    lease = fetched.fetch.lease
    key = "" if lease is None else f"X-Webfountain-Key: {lease.key.hex()}\r\n"
    head = f"{head}WARC-Payload-Digest: {_payload_digest(capture)}\r\n{key}{_HTTP_ANSWER}"
    return _member("response", head, _answer_head(fetched, len(fetched.body)), fetched.body)


def _revisit(capture: Capture, head: str) -> Member:
    fetched = capture.fetched
    not_modified = fetched.status == 304
    head += f"WARC-Profile: {_PROFILE}{'server-not-modified' if not_modified else 'identical-payload-digest'}\r\n"
    if not not_modified or capture.digest is not None:
        head += f"WARC-Payload-Digest: {_payload_digest(capture)}\r\n"
    if capture.repeats is not None:
        head += f"WARC-Refers-To-Target-URI: {target_uri(fetched.fetch.url)}\r\n"
        head += f"WARC-Refers-To-Date: {date_of(capture.repeats)}\r\n"
    # A player shows the head that it finds here: with that of a 304 it would show nothing. Without one it takes head
    # and body of the record that is referred to (pywb 2.10); WARC/1.1 section 6.7.3 leaves it out or in.
    answer = b"" if not_modified else _answer_head(fetched, len(fetched.body))
    return _member("revisit", f"{head}{_HTTP_ANSWER}", answer)


def _member(kind: Kind, head: str, block: bytes, body: bytes = b"") -> Member:
    """One gzip member: WARC header, block (of a response its HTTP head, then the body), the closing blank lines."""
    digest = hashlib.sha1(block, usedforsecurity=False)
    digest.update(body)
    length = len(block) + len(body)
    warc = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\n{head}"
        f"WARC-Block-Digest: sha1:{_base32(digest.digest())}\r\nContent-Length: {length}\r\n\r\n"
    )
    data = b"".join((warc.encode("ascii"), block, body, b"\r\n\r\n"))
    return Member(kind, isal_zlib.compress(data, _LEVEL, GZIP))


def _target(fetched: Fetched) -> str:
    address = fetched.fetch.address
    uri = f"WARC-Target-URI: {target_uri(fetched.fetch.url)}\r\n"
    if address is None or not _ADDRESS.fullmatch(address):
        return uri
    return f"{uri}WARC-IP-Address: {address}\r\n"


def target_uri(url: str) -> str:
    """How a URL is written. A canonical one is printable ASCII already; all else is percent-encoded."""
    return url if _PRINTABLE.fullmatch(url) else quote(url, safe="!#$%&'()*+,/:;=?@[]~")


def _answer_head(fetched: Fetched, length: int) -> bytes:
    """Status line and headers; `length` is the body's in bytes."""
    headers = [_renamed(name, value) for name, value in fetched.headers]
    headers.append(("content-length", str(length)))
    status = fetched.status or 0
    reason = _REASONS.get(status, "Unknown")
    return f"HTTP/1.1 {status:03d} {reason}\r\n".encode() + _lines(headers) + b"\r\n"


def _renamed(name: str, value: str) -> tuple[str, str]:
    return (f"x-archive-orig-{name}", value) if name in _RENAMED else (name, value)


def _request_head(capture: Capture) -> bytes:
    fetched = capture.fetched
    url = target_uri(fetched.fetch.url)
    site = site_of(url)
    headers = [pair for pair in fetched.request_headers if pair[0].lower() not in _PRIVATE]
    if not any(name.lower() == "host" for name, _ in headers):
        headers.insert(0, ("host", site.partition("//")[2]))
    line = f"{capture.method} {url[len(site) :] or '/'} HTTP/1.1\r\n"
    return line.encode() + _lines(headers) + b"\r\n"


def _lines(headers: Sequence[tuple[str, str]]) -> bytes:
    """Header lines; one pass over all of them says that none is hostile, else each is mended."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers])
    # Counting the lines catches a value that holds a whole clean line of its own.
    if text.count("\n") != len(headers) or not _CLEAN.fullmatch(text):
        text = "".join([f"{_name(name)}: {_text(value)}\r\n" for name, value in headers])
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _name(name: str) -> str:
    return _NOT_NAME.sub("_", name) or "_"


def _text(value: str) -> str:
    return _CONTROL.sub(" ", value).strip()


def _payload_digest(capture: Capture) -> str:
    if capture.digest is None:
        return f"sha1:{_base32(hashlib.sha1(capture.fetched.body, usedforsecurity=False).digest())}"
    return f"sha1:{_base32(bytes.fromhex(capture.digest))}"


def _base32(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii")
