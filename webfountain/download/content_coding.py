"""Decode a response's body while it is received, within limits against decompression bombs.

A body is decoded completely, including all gzip members or zstd frames, or refused with an error word. If a body ends
inside a member or frame, the error is "cut". Each step takes at most `_STEP` bytes from the decompressor, to bound the
memory.
"""

from __future__ import annotations

import re
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import brotli
import webencodings
from isal import isal_zlib

from webfountain.download.bad_response import BadResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ACCEPT_ENCODING", "BOMB_BYTES", "BOMB_RATIO", "MAX_MEMBERS", "Body", "Coder", "check_codings"]

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
BOMB_RATIO: Final = 250
"""A body of more than `BOMB_BYTES` is a bomb if it has more than this number of decoded bytes per received byte. Plain
text has compression ratios of up to 20, and generated tables of up to 100.
"""
BOMB_BYTES: Final = 1_048_576
_BLOCK: Final = BOMB_BYTES // BOMB_RATIO
"""Number of received bytes between two checks of the compression ratio."""
MAX_MEMBERS: Final = 10_000
"""Maximum number of tiny gzip members or zstd frames in a body. More members are allowed only if they have at least
`_MEMBER_BYTES` decoded bytes on average. An empty member has 9 to 20 bytes, but costs up to 20 µs. Programs that write
many members (bgzip, pzstd) put 64 kB into each member.
"""
_MEMBER_BYTES: Final = 1_024
_MAX_CODINGS: Final = 3
_STEP: Final = 262_144
_FIRST_PIECE: Final = 512
"""The decompressor of each member first gets a piece of this many bytes, and then pieces that double in size. A
decompressor copies all input after the end of its member, so large pieces with many members would take quadratic time.
"""
_ZEROS = re.compile(rb"\0*")

_BROKEN: Final[tuple[type[Exception], ...]] = (isal_zlib.error, brotli.error)  # type: ignore[assignment]

_PLAIN: Final = frozenset({"", "identity", "none", "null", "binary", "8bit", "7bit"})
"""Content-Encoding values that servers send with unencoded bodies, apart from names of charsets. A body is refused if
its coding is neither supported nor listed here.
"""


class Coder(Protocol):
    """Decoder of one content coding of one body."""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode all of `data`, and yield at most `_STEP` bytes at a time. Raise BadResponse or an error of
        `_BROKEN`.
        """
        ...

    def ended(self) -> bool:
        """Return whether the encoded body is complete."""
        ...


class _Members:
    """Common part of the decoders of gzip, deflate and zstd. Each gzip member or zstd frame has its own decompressor.

    Invariant: `_member` is None exactly while no member is being decoded.
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
        """Create the decompressor for the member at offset `at`, or skip bytes that belong to no member. Return the
        offset of the next bytes to decode.
        """
        raise NotImplementedError

    def _waiting(self, out: bytes) -> bytes | None:
        """Return the next input for a decompressor that has just returned `out`, or None if it needs new bytes."""
        raise NotImplementedError

    def _counted(self, member: Any) -> Any:
        self._count += 1
        if self._count > MAX_MEMBERS + self._given // _MEMBER_BYTES:
            raise BadResponse("bomb")
        return member


class _Deflate(_Members):
    """Decoder of deflate, with or without the zlib wrapper. As in browsers, bytes after the end of the deflate stream
    are skipped.
    """

    __slots__ = ()

    def _begin(self, data: bytes, at: int) -> int:
        if self._count:
            return len(data)
        # Some servers send "deflate" with the zlib wrapper and some without; the first byte shows which.
        bits = zlib.MAX_WBITS if data[at] & 0x0F == 8 else -zlib.MAX_WBITS
        self._member = self._counted(isal_zlib.decompressobj(bits))
        return at

    def _waiting(self, out: bytes) -> bytes | None:
        if self._member.eof:
            return None
        # The decompressor may have output left after it consumed all input.
        tail: bytes = self._member.unconsumed_tail
        return tail if tail or len(out) >= _STEP else None


class _Gzip(_Deflate):
    """Decoder of gzip. As in browsers, zeros and other bytes after the last member are ignored."""

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
    """Decoder of zstd. Skippable frames are accepted, but bytes outside any frame are an error (RFC 8878,
    section 3).
    """

    __slots__ = ("_zstd",)

    def __init__(self) -> None:
        super().__init__()
        # Imported here because few responses need it and it costs 15 ms of start-up.
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
        # RFC 9659 limits the window to 8 MB on the web; without the limit, a frame may require 2 GB.
        options = {int(self._zstd.DecompressionParameter.window_log_max): 23}
        self._member = self._counted(self._zstd.ZstdDecompressor(options=options))
        return at

    def _waiting(self, out: bytes) -> bytes | None:
        return None if self._member.eof or self._member.needs_input else b""


class _Brotli:
    """Decoder of brotli. Bytes after the end of the brotli stream are an error."""

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
        # The decompressor may have output left after it consumed all input.
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


def check_codings(encoding: str) -> None:
    """Raise BadResponse("content-coding") if a Content-Encoding header has an unknown coding."""
    names = [name.strip(" \t").lower() for name in encoding.split(",")]
    if not all(name in _CODERS or name in _PLAIN or webencodings.lookup(name) for name in names):
        raise BadResponse("content-coding")


class Body:
    """The body of one response, decoded while it is received, and limited to `limit` decoded bytes.

    If `truncate` is True, the rest of a larger body is ignored, as for robots.txt (RFC 9309, section 2.5).
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
        # The header lists codings in the order in which they were applied, so the last is removed first.
        names = [name.strip(" \t").lower() for name in reversed(encoding.split(","))]
        if len(names) > _MAX_CODINGS:
            raise BadResponse("bad-response")
        return [_CODERS[name]() for name in names if name in _CODERS]  # identity, and words without a meaning

    def take(self, data: bytes) -> None:
        """Decode received bytes, and add them to the body. Raises BadResponse "too-large", "bomb" or "bad-response"."""
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
        """Return the complete body. Raises BadResponse "cut" or "bomb"."""
        if not self.full and not all(made.ended() for made in self._coders):
            raise BadResponse("cut")
        if not self.full and self.size > BOMB_BYTES and self.size > BOMB_RATIO * self.taken:
            raise BadResponse("bomb")
        return self._pieces[0] if len(self._pieces) == 1 else self.partial()

    def partial(self) -> bytes:
        """Return the part of the body that was received so far."""
        return b"".join(self._pieces)

    def _decode(self, data: bytes, depth: int) -> None:
        """Decode `data` with the decoder at position `depth`, and then with all decoders after it."""
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
