"""Read one HTTP/1.1 response while it is received.

The reader follows RFC 9112, and accepts what browsers accept, such as bare line feeds and invalid header lines. The
reader refuses what could block a crawler, such as endless heads and contradictory lengths (`BadResponse`). Differences
from llhttp are in tests/download/test_against_httptools.py. A connection is never reused after a response with unusual
framing.
"""

from __future__ import annotations

import re
from typing import Final

from webfountain.download.bad_response import BadResponse

__all__ = ["MAX_CHUNK_LINE", "MAX_HEAD_BYTES", "MAX_HEAD_LINES", "MAX_INTERIM", "ResponseReader"]

MAX_HEAD_BYTES: Final = 65_536
MAX_HEAD_LINES: Final = 256
MAX_INTERIM: Final = 8
MAX_CHUNK_LINE: Final = 4_096

_STATUS_LINE = re.compile(r"HTTP/1\.\d[ \t]+([1-9]\d\d)(?:[ \t]|$)", re.ASCII)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEADER = re.compile(r"^([A-Za-z0-9!#$%&'*+.^_`|~-]++)[ \t]*+:[ \t]*+([^\n\r\0]*+)$", re.MULTILINE)
"""Pattern of a header line, with groups for name and value. A line that contains CR or NUL does not match, because its
value would look like several lines in a file. The pattern never backtracks (`*+`).
"""
_FOLD = re.compile(r"\n[ \t]++")
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?\r?", re.DOTALL)
_BLANK: Final = " \t"
r"""White space as defined by RFC 9110, section 5.6.3."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection"})
_NO_BODY: Final = frozenset({204, 304})


class ResponseReader:
    """Reader of one response. After each call of `feed`, the attributes `status`, `headers` and `complete` are current.
    `keep_alive` and `rest` are valid only when the response is complete.

    `headers` contains the headers in order, with lower-case names, and values decoded as latin-1. `length` is the
    Content-Length, or None if it is missing or the body is chunked. `feed` removes the transfer coding of the body, but
    not its content coding.
    """

    def __init__(self, *, head_only: bool = False) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.version = "HTTP/1.1"
        self.length: int | None = None
        self.complete = False
        self.keep_alive = False
        self.rest = False
        """True if bytes came after the end of the response, so that the connection cannot be used again."""
        self._head_only = head_only
        self._buffer = b""
        self._chunked = False
        self._after_data = False
        self._left: int | None = None  # bytes of the body, or of the current chunk, that are still to come
        self._interim = 0
        self._overhead = 0
        self._received = 0
        self._trailer_lines = -1

    def feed(self, data: bytes) -> bytes:
        """Read received bytes, and return those that belong to the body. Raises BadResponse if the response cannot be
        used.
        """
        if self.status is None:
            rest = self._read_head(data)
            if self.status is None:
                return b""
            data = rest
        if self.complete:
            self.rest = self.rest or bool(data)
            return b""
        return self._read_chunks(data) if self._chunked else self._read_plain(data)

    def eof(self) -> None:
        """Record that the peer closed the connection. Raise BadResponse("cut") if the response is incomplete."""
        if self.complete:
            return
        if self.status is None or self._chunked or self._left is not None:
            raise BadResponse("cut")
        self.complete = True

    def _read_head(self, data: bytes) -> bytes:
        """Parse the head if it is complete, and return the bytes after the head."""
        data = self._buffer + data if self._buffer else data
        while True:
            data = self._skip_empty_lines(data) if data[:1] in b"\r\n" else data
            if data[:7] != b"HTTP/1."[: len(data)]:
                raise BadResponse("bad-response")
            found = _HEAD_END.search(data, max(0, len(self._buffer) - 3))
            if found is None or found.end() > MAX_HEAD_BYTES:
                return self._wait_for_head(data)
            status = self._parse_head(data[: found.start()])
            data = data[found.end() :]
            self._buffer = b""
            if status >= 200:
                self.status = status
                self._frame(status)
                return data
            self._count_interim(status)
            if not data:
                return data

    def _skip_empty_lines(self, data: bytes) -> bytes:
        stripped = data.lstrip(b"\r\n")
        self._overhead += len(data) - len(stripped)
        if self._overhead > MAX_HEAD_BYTES:
            raise BadResponse("headers-too-large")
        return stripped

    def _wait_for_head(self, data: bytes) -> bytes:
        if len(data) > MAX_HEAD_BYTES or data.count(b"\n") > MAX_HEAD_LINES:
            raise BadResponse("headers-too-large")
        self._buffer = data
        return b""

    def _count_interim(self, status: int) -> None:
        """Count an interim response. Refuse status 101, and more than `MAX_INTERIM` interim responses."""
        self._interim += 1
        if status == 101 or self._interim > MAX_INTERIM:
            raise BadResponse("bad-response")
        self.headers = []

    def _parse_head(self, head: bytes) -> int:
        """Set `headers`, and return the status. As in browsers, invalid header lines are skipped."""
        first, _, rest = head.decode("latin-1").replace("\r\n", "\n").partition("\n")
        if rest.count("\n") > MAX_HEAD_LINES - 2:
            raise BadResponse("headers-too-large")
        match = _STATUS_LINE.match(first)
        if match is None:
            raise BadResponse("bad-response")
        self.version = first[:8]
        if "\n " in rest or "\n\t" in rest:
            rest = " ".join(part.rstrip(_BLANK) for part in _FOLD.split(rest))
        self.headers = [(name.lower(), value.rstrip(_BLANK)) for name, value in _HEADER.findall(rest)]
        return int(match[1])

    def _frame(self, status: int) -> None:
        """Determine where the body ends, and whether the connection may be used again (RFC 9112, sections 6.3 and
        9.3).
        """
        lengths: set[str] = set()
        codings: list[str] = []
        options: set[str] = set()
        for name, value in self.headers:
            if name not in _FRAMING:
                continue
            if name == "content-length":
                lengths.update(_words(value))
            elif name == "transfer-encoding":
                codings += _words(value.lower())
            else:
                options.update(_words(value.lower()))
        self.keep_alive = "close" not in options and (self.version != "HTTP/1.0" or "keep-alive" in options)
        if self._head_only or status in _NO_BODY:
            self.complete = True
            self.length = _length(lengths)
        elif codings:
            self._frame_coded(codings, lengths)
        elif lengths:
            self._frame_length(lengths)
        else:
            self.keep_alive = False

    def _frame_coded(self, codings: list[str], lengths: set[str]) -> None:
        if not {"chunked", "identity"}.issuperset(codings):
            raise BadResponse("bad-response")  # we do not offer any transfer coding but chunked
        # A response with both lengths may be an attempt at smuggling (section 6.1). A repeated "chunked" counts once,
        # as in browsers.
        self.keep_alive = self.keep_alive and codings == ["chunked"] and not lengths
        if codings[-1] == "chunked":
            self._chunked = True
        elif "chunked" not in codings and lengths:  # "identity" alone (RFC 2616) means the same as no header
            self._frame_length(lengths)

    def _frame_length(self, lengths: set[str]) -> None:
        self.length = self._left = _length(lengths)
        if self._left is None:
            raise BadResponse("bad-response")
        self.complete = self._left == 0

    def _read_plain(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        body = data[: self._left]
        self.rest = len(data) > self._left
        self._left -= len(body)
        self.complete = self._left == 0
        return body

    def _read_chunks(self, data: bytes) -> bytes:
        """Return the content of the chunks in `data`."""
        data = self._buffer + data if self._buffer else data
        at = 0
        out: list[bytes] = []
        while at < len(data) and not self.complete:
            if self._left is not None:
                at = self._take_chunk(data, at, out)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                break
            self._chunk_line(data[at:end])
            self._overhead += end + 1 - at
            at = end + 1
        self._buffer = data[at:] if not self.complete else b""
        self.rest = self.complete and at < len(data)
        self._check_overhead()
        return out[0] if len(out) == 1 else b"".join(out)

    def _take_chunk(self, data: bytes, at: int, out: list[bytes]) -> int:
        left = self._left or 0
        piece = data[at : at + left]
        out.append(piece)
        self._received += len(piece)
        self._left = left - len(piece) or None
        self._after_data = self._left is None
        return at + len(piece)

    def _chunk_line(self, line: bytes) -> None:
        """Process a line with a chunk size, the empty line after a chunk, or a line of the trailer."""
        empty = line in (b"", b"\r")
        if self._trailer_lines >= 0:
            self._trailer_lines += 1
            self.complete = empty
            return
        if self._after_data and empty:
            self._after_data = False
            return
        match = None if self._after_data else _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise BadResponse("bad-response")
        self._left = int(match[1], 16) or None
        if self._left is None:
            self._trailer_lines = 0

    def _check_overhead(self) -> None:
        """Refuse a response whose chunk headers and trailers are much longer than its content."""
        if self._left is None and len(self._buffer) > MAX_CHUNK_LINE:
            raise BadResponse("bad-response")
        if self._trailer_lines > MAX_HEAD_LINES:
            raise BadResponse("headers-too-large")
        if self._overhead > MAX_HEAD_BYTES + self._received:
            raise BadResponse("bad-response")


def _words(value: str) -> list[str]:
    """Return the elements of a header that is a comma-separated list."""
    if "," not in value:
        return [value] if value else []
    return [word for part in value.split(",") if (word := part.strip(_BLANK))]


def _length(lengths: set[str]) -> int | None:
    """Return the length of the body if all Content-Length headers have the same valid value, else None."""
    said = next(iter(lengths)) if len(lengths) == 1 else ""
    return int(said) if _LENGTH.fullmatch(said) else None
