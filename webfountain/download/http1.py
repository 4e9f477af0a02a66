"""Reading one HTTP/1.1 response from bytes as they come: head, framing, content coding, limits.

No sockets, no clock. The lowest part of the downloader (`connection` feeds it). It reads what browsers
read (bare line feeds, folded and nonsensical header lines, interim responses) and refuses what could hold a crawler:
heads without end, contradicting lengths, chunks of a byte each. A refusal is a `BadResponse` with a word of
`records.Fetched.error`. The syntax is RFC 9112; where llhttp reads otherwise is listed, with the reasons, in
tests/download/test_against_httptools.py. A connection whose response was oddly framed is never reused.

Undoing a response's content coding while it streams, within a bound: no bomb is ever unpacked. For whoever wants a
body (`Fetcher`). A coded body is whole, or it is refused with a word: gzip of several members and zstd of several
frames are read to the last, and what ends within one is "cut". How the bytes were split into packets makes no
difference. Every step asks its decompressor for no more output than `_STEP`, so memory is bounded by the limit and not
by what a server packed; the work grows with the bytes, in and out.
"""

from __future__ import annotations

import re
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import brotli
from isal import isal_zlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "ACCEPT_ENCODING",
    "BOMB_BYTES",
    "BOMB_RATIO",
    "MAX_HEAD_BYTES",
    "MAX_HEAD_LINES",
    "MAX_MEMBERS",
    "BadResponse",
    "Body",
    "ErrorWord",
    "ResponseReader",
]

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
    "lapsed",
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


ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
BOMB_RATIO: Final = 250
"""Bytes out per byte in beyond which `BOMB_BYTES` of output are a bomb; text reaches 20, generated tables 100."""
BOMB_BYTES: Final = 1_048_576
_BLOCK: Final = BOMB_BYTES // BOMB_RATIO
"""Bytes in after which the ratio is looked at: at the same places however the packets were cut, so that one body is not
whole today and a bomb tomorrow."""
MAX_MEMBERS: Final = 10_000
"""Members of a gzip stream, frames of a zstd stream, that may be small; beyond them each must bring `_MEMBER_BYTES`
on the mean. An empty one is 9 to 20 bytes and costs up to 20 µs; writers of blocks (bgzip, pzstd) put 64 kB in each."""
_MEMBER_BYTES: Final = 1_024
_MAX_CODINGS: Final = 3
_STEP: Final = 262_144
_FIRST_PIECE: Final = 512
"""Bytes of input that a later member is given first, doubled while it takes them: a decompressor copies what it was
given beyond its end, so that giving each of many members the whole packet would be quadratic."""
_ZEROS = re.compile(rb"\0*")

_BROKEN: Final[tuple[type[Exception], ...]] = (isal_zlib.error, brotli.error)  # type: ignore[assignment]


class Coder(Protocol):
    """One content coding of one body."""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Take in all of `data` step by step, each giving `_STEP` bytes at most. Raises BadResponse, `_BROKEN`."""
        ...

    def ended(self) -> bool:
        """Whether what came so far is whole: nothing, or up to the end of a stream."""
        ...


class _Members:
    """What gzip, deflate and zstd share: members one after the other, each read by a decompressor of its own.

    Invariant: `_member` is None exactly between two members, where `_begin` decides what the next byte means.
    """

    __slots__ = ("_count", "_given", "_member")

    def __init__(self) -> None:
        self._member: Any = None
        self._count = 0
        self._given = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        at = 0
        size = len(data) if self._member is not None or not self._count else _FIRST_PIECE
        while at < len(data):
            if self._member is None:
                at = self._begin(data, at)
                continue
            piece: bytes | None = data[at : at + size]
            at, size = at + size, 2 * size
            while piece is not None:
                out: bytes = self._member.decompress(piece, _STEP)
                self._given += len(out)
                yield out
                piece = self._waiting(out)
            if self._member.eof:
                at = min(at, len(data)) - len(self._member.unused_data)
                self._member, size = None, _FIRST_PIECE

    def ended(self) -> bool:
        return self._member is None

    def _begin(self, data: bytes, at: int) -> int:
        """Make a `_member` for the bytes from `at` on, or pass over them; returns where to go on."""
        raise NotImplementedError

    def _waiting(self, out: bytes) -> bytes | None:
        """What to give the decompressor after `out` before anything new; None when it has nothing left to say."""
        raise NotImplementedError

    def _counted(self, member: Any) -> Any:
        self._count += 1
        if self._count > MAX_MEMBERS + self._given // _MEMBER_BYTES:
            raise BadResponse("bomb")
        return member


class _Deflate(_Members):
    """deflate, with and without the zlib wrapper; what follows its end is passed over, as browsers do."""

    __slots__ = ()

    def _begin(self, data: bytes, at: int) -> int:
        if self._count:
            return len(data)
        # Servers disagree whether "deflate" has the zlib wrapper; its first byte tells.
        bits = zlib.MAX_WBITS if data[at] & 0x0F == 8 else -zlib.MAX_WBITS
        self._member = self._counted(isal_zlib.decompressobj(bits))
        return at

    def _waiting(self, out: bytes) -> bytes | None:
        if self._member.eof:
            return None
        # All input may be taken in while output still waits inside.
        tail: bytes = self._member.unconsumed_tail
        return tail if tail or len(out) >= _STEP else None


class _Gzip(_Deflate):
    """gzip: members, zeros between and after them (tape blocks), then whatever; browsers ignore the rest, too."""

    __slots__ = ("_padding",)

    def __init__(self) -> None:
        super().__init__()
        self._padding = False

    def _begin(self, data: bytes, at: int) -> int:
        if self._count:
            found = _ZEROS.match(data, at)
            at = found.end() if found else at
            self._padding = self._padding or (at < len(data) and data[at] != 0x1F)
        if self._padding or at == len(data):
            return len(data)
        self._member = self._counted(isal_zlib.decompressobj(16 + zlib.MAX_WBITS))
        return at


class _Zstd(_Members):
    """zstd: frames, skippable ones among them; anything else after a frame is an error (RFC 8878 section 3)."""

    __slots__ = ("_zstd",)

    def __init__(self) -> None:
        super().__init__()
        # Imported here: it is rare on the web, and 15 ms of start-up.
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415

        self._zstd = zstd

    def decode(self, data: bytes) -> Iterator[bytes]:
        try:
            yield from super().decode(data)
        except self._zstd.ZstdError as error:
            raise BadResponse("bad-response") from error

    def _begin(self, data: bytes, at: int) -> int:
        # 8 MB is the window that RFC 9659 allows on the web; without the bound a frame may ask for 2 GB.
        options = {int(self._zstd.DecompressionParameter.window_log_max): 23}
        self._member = self._counted(self._zstd.ZstdDecompressor(options=options))
        return at

    def _waiting(self, out: bytes) -> bytes | None:
        return None if self._member.eof or self._member.needs_input else b""


class _Brotli:
    """brotli: one stream. Its decompressor gives no output where bytes follow the end, so they are an error."""

    __slots__ = ("_object", "_started")

    def __init__(self) -> None:
        self._object = brotli.Decompressor()
        self._started = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._started = True
        if self._object.is_finished():
            raise BadResponse("bad-response")
        out: bytes = self._object.process(data, output_buffer_limit=_STEP)
        yield out
        # All input may be taken in while output still waits inside.
        while (out or not self._object.can_accept_more_data()) and not self._object.is_finished():
            out = self._object.process(b"", output_buffer_limit=_STEP)
            yield out

    def ended(self) -> bool:
        return self._object.is_finished() or not self._started


_CODERS: Final[dict[str, Callable[[], Coder]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


class Body:
    """The body of one response as it comes: decoded, counted, bounded by `limit` bytes.

    With `truncate` a body beyond the limit ends there and is taken as it is (robots.txt, RFC 9309 section 2.5).
    """

    __slots__ = ("_coders", "_pieces", "_truncate", "full", "limit", "size", "taken")

    def __init__(self, encoding: str, *, limit: int, truncate: bool = False) -> None:
        self._coders = self._chain(encoding) if encoding else []
        self._pieces: list[bytes] = []
        self._truncate = truncate
        self.limit = limit
        self.size = 0
        self.taken = 0
        self.full = False

    @staticmethod
    def _chain(encoding: str) -> list[Coder]:
        # The codings are listed in the order of application: the last comes off first.
        names = [name.strip(" \t").lower() for name in reversed(encoding.split(","))]
        if len(names) > _MAX_CODINGS:
            raise BadResponse("bad-response")
        return [_CODERS[name]() for name in names if name in _CODERS]  # identity, and words that mean nothing

    def take(self, data: bytes) -> None:
        """Add raw bytes. Raises BadResponse: too-large, bomb, bad-response."""
        if not self._coders:
            self.taken += len(data)
            self._add(data)
            return
        try:
            while data and not self.full:
                block = data[: _BLOCK - self.taken % _BLOCK]
                self.taken += len(block)
                self._decode(block, 0)
                data = data[len(block) :]
        except _BROKEN as error:
            raise BadResponse("bad-response") from error

    def end(self) -> bytes:
        """The whole body. Raises BadResponse: "cut" when a coding's own end is missing, "bomb"."""
        if not self.full and not all(made.ended() for made in self._coders):
            raise BadResponse("cut")
        if not self.full and self.size > BOMB_BYTES and self.size > BOMB_RATIO * self.taken:
            raise BadResponse("bomb")
        return self._pieces[0] if len(self._pieces) == 1 else self.partial()

    def partial(self) -> bytes:
        """What came, complete or not."""
        return b"".join(self._pieces)

    def _decode(self, data: bytes, depth: int) -> None:
        """Push `data` through the coder `depth` and those after it."""
        if depth == len(self._coders):
            self._add(data)
            return
        for out in self._coders[depth].decode(data) if data else ():
            self._decode(out, depth + 1)
            if self.full:
                return

    def _add(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > BOMB_BYTES and self.size > BOMB_RATIO * (self.taken + -self.taken % _BLOCK):
            raise BadResponse("bomb")
        if self.size > self.limit:
            if not self._truncate:
                raise BadResponse("bomb" if self.size > BOMB_RATIO / 5 * self.taken else "too-large")
            data = data[: len(data) - (self.size - self.limit)]
            self.size, self.full = self.limit, True
        self._pieces.append(data)
