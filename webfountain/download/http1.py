"""Reading one HTTP/1.1 response from bytes as they come: head, framing, limits. No sockets, no clock, no decoding.

The lowest part of the downloader (`connection` feeds it, `decoding` undoes the content coding). It reads what
browsers read (bare line feeds, folded and nonsensical header lines, interim responses) and refuses what could
hold a crawler: heads without end, contradicting lengths, chunks of a byte each. A refusal is a `BadResponse`
with a word of `records.Fetched.error`. The syntax is RFC 9112; where llhttp reads otherwise is listed, with the
reasons, in tests/download/test_against_httptools.py. A connection whose response was oddly framed is never reused.
"""

from __future__ import annotations

import re
from typing import Final, Literal

__all__ = ["MAX_HEAD_BYTES", "MAX_HEAD_LINES", "BadResponse", "ErrorWord", "ResponseReader"]

MAX_HEAD_BYTES: Final = 65_536
MAX_HEAD_LINES: Final = 256
MAX_INTERIM: Final = 8
MAX_CHUNK_LINE: Final = 4_096

ErrorWord = Literal[
    "dns",
    "private-address",
    "connect",
    "timeout",
    "too-slow",
    "headers-too-large",
    "too-large",
    "bomb",
    "cut",
    "bad-response",
    "content-type",
    "network",
]

_STATUS_LINE = re.compile(r"HTTP/1\.\d[ \t]+([1-9]\d\d)(?:[ \t]|$)", re.ASCII)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEADER = re.compile(r"^([A-Za-z0-9!#$%&'*+.^_`|~-]++)[ \t]*+:[ \t]*+([^\n\r\0]*+)$", re.MULTILINE)
"""A name and a value. A CR or NUL within would forge lines where the value is written again: such a line is none.
Nothing is tried twice (`*+`), so that a head of blanks costs no more than another one."""
_FOLD = re.compile(r"\n[ \t]++")
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?\r?", re.DOTALL)
_BLANK: Final = " \t"
"""White space of RFC 9110 section 5.6.3; Python's own `strip` would also take \\xa0, \\x85, \\x0b away."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection"})
_NO_BODY: Final = frozenset({204, 304})


class BadResponse(Exception):
    """The answer cannot be taken; `word` says why. The connection must be closed."""

    def __init__(self, word: ErrorWord) -> None:
        super().__init__(word)
        self.word: ErrorWord = word


class ResponseReader:
    """One response. Feed bytes; read `status`, `headers`, `complete`; then look at `keep_alive` and `rest`.

    `headers` has lower-case names in order of arrival, values are bytes as latin-1. `length` is what Content-Length
    says, None where it says nothing or the body is chunked. `feed` returns the body bytes among what it was given,
    transfer coding removed, content coding not.
    """

    __slots__ = (
        "_after_data",
        "_buffer",
        "_chunked",
        "_head_only",
        "_interim",
        "_left",
        "_overhead",
        "_received",
        "_trailer_lines",
        "complete",
        "headers",
        "keep_alive",
        "length",
        "rest",
        "status",
        "version",
    )

    def __init__(self, *, head_only: bool = False) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.version = "HTTP/1.1"
        self.length: int | None = None
        self.complete = False
        self.keep_alive = False
        self.rest = False
        """True: bytes followed the end of the response; the connection is out of step."""
        self._head_only = head_only
        self._buffer = b""
        self._chunked = False
        self._after_data = False
        self._left: int | None = None
        self._interim = 0
        self._overhead = 0
        self._received = 0
        self._trailer_lines = -1

    def feed(self, data: bytes) -> bytes:
        """Take bytes in; give the body bytes out. Raises BadResponse."""
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
        """The peer closed. Raises BadResponse("cut") unless that is how this response ends."""
        if self.complete:
            return
        if self.status is None or self._chunked or self._left is not None:
            raise BadResponse("cut")
        self.complete = True

    def _read_head(self, data: bytes) -> bytes:
        """Parse the head when all of it is there; returns what follows it."""
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
        """100, 102, 103 are steps on the way; 101 was not asked for, and a stream of them is an attack."""
        self._interim += 1
        if status == 101 or self._interim > MAX_INTERIM:
            raise BadResponse("bad-response")
        self.headers = []

    def _parse_head(self, head: bytes) -> int:
        """Fill `headers`, return the status. Lines that are no header are skipped, as browsers do."""
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
        """Where the body ends (RFC 9112 section 6.3), and whether the connection may serve again (section 9.3)."""
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
            raise BadResponse("bad-response")  # we offer no transfer coding but chunked
        # Both lengths is how responses are smuggled (section 6.1); "chunked" said twice is meant once, as in browsers.
        self.keep_alive = self.keep_alive and codings == ["chunked"] and not lengths
        if codings[-1] == "chunked":
            self._chunked = True
        elif "chunked" not in codings and lengths:  # "identity" alone, of RFC 2616: as if nothing was said
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
        """Take the chunks out of `data`. Invariant: `_left` bytes of the current chunk (with its CRLF) are to come."""
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
        """A size, the empty line that ends a chunk's data, or a trailer."""
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
        """Framing may not outweigh what it frames: endless extensions, trailers, and chunks of a byte each."""
        if self._left is None and len(self._buffer) > MAX_CHUNK_LINE:
            raise BadResponse("bad-response")
        if self._trailer_lines > MAX_HEAD_LINES:
            raise BadResponse("headers-too-large")
        if self._overhead > MAX_HEAD_BYTES + self._received:
            raise BadResponse("bad-response")


def _words(value: str) -> list[str]:
    """The members of a list in a header."""
    if "," not in value:
        return [value] if value else []
    return [word for part in value.split(",") if (word := part.strip(_BLANK))]


def _length(lengths: set[str]) -> int | None:
    """The one length that all headers name; None when there is none, or two, or it is no number."""
    said = next(iter(lengths)) if len(lengths) == 1 else ""
    return int(said) if _LENGTH.fullmatch(said) else None
