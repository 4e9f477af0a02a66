"""Undoing a response's content coding while it streams, within a bound: no bomb is ever unpacked.

Between `http1` (frames) and the download handler (responses). Every step asks its decompressor for no more
output than may still be taken, so memory is bounded by the limit and not by what a server packed.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, Protocol

import brotli  # type: ignore[import-untyped]
from isal import isal_zlib

from webfountain.download.http1 import BadResponse

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ACCEPT_ENCODING", "BOMB_BYTES", "BOMB_RATIO", "Body", "coder"]

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
BOMB_RATIO: Final = 250
"""Bytes out per byte in beyond which `BOMB_BYTES` of output are a bomb; text reaches 20, generated tables 100."""
BOMB_BYTES: Final = 1_048_576
_MAX_CODINGS: Final = 3
_STEP: Final = 262_144


_BROKEN: Final[tuple[type[Exception], ...]] = (isal_zlib.error, brotli.error)  # type: ignore[assignment]


class Coder(Protocol):
    """One decompressor of one stream."""

    def step(self, data: bytes) -> bytes:
        """Take `data` in, give at most a step's output; what is left comes out with empty `data`."""
        ...

    def ended(self) -> bool:
        """Whether the stream's own end was seen."""
        ...


class _Zlib:
    """gzip (also of several members) and deflate (with and without the zlib wrapper)."""

    __slots__ = ("_bits", "_left", "_more", "_object", "_started")

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._object = isal_zlib.decompressobj(bits)
        self._left = b""
        self._more = False
        self._started = False

    def step(self, data: bytes) -> bytes:
        data = self._left + data if self._left else data
        if not (data or self._more):
            return b""
        if not self._started:
            self._start(data)
        out: bytes = self._object.decompress(data, _STEP)
        # All input may be taken in while output still waits inside.
        self._more = len(out) >= _STEP and not self._object.eof
        self._left = self._object.unconsumed_tail
        if self._object.eof:
            self._next_member(self._object.unused_data)
        return out

    def ended(self) -> bool:
        return self._object.eof or not self._started

    def _start(self, data: bytes) -> None:
        """Servers disagree whether "deflate" has the zlib wrapper; its first byte tells."""
        self._started = True
        if self._bits == zlib.MAX_WBITS and data[0] & 0x0F != 8:
            self._object = isal_zlib.decompressobj(-zlib.MAX_WBITS)

    def _next_member(self, rest: bytes) -> None:
        """A gzip stream may have several members; anything else after the end is padding."""
        self._left = b""
        if rest[:2] == b"\x1f\x8b":
            self._object = isal_zlib.decompressobj(self._bits)
            self._left = rest


class _Brotli:
    __slots__ = ("_object", "_started")

    def __init__(self) -> None:
        self._object = brotli.Decompressor()
        self._started = False

    def step(self, data: bytes) -> bytes:
        if self._object.is_finished():
            return b""
        self._started = self._started or bool(data)
        out: bytes = self._object.process(data, output_buffer_limit=_STEP)
        return out

    def ended(self) -> bool:
        return self._object.is_finished() or not self._started


class _Zstd:
    __slots__ = ("_error", "_object", "_started")

    def __init__(self) -> None:
        from backports import zstd  # noqa: PLC0415 (rare on the web; 15 ms of start-up)

        # 8 MB is the window that RFC 9659 allows on the web; without the bound a frame may ask for 2 GB.
        self._object = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
        self._error = zstd.ZstdError
        self._started = False

    def step(self, data: bytes) -> bytes:
        if self._object.eof or not (data or self._started):
            return b""
        self._started = True
        try:
            return self._object.decompress(data, _STEP)
        except self._error as error:
            raise BadResponse("bad-response") from error

    def ended(self) -> bool:
        return self._object.eof or not self._started


_CODERS: Final[dict[str, Callable[[], Coder]]] = {
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "x-gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "br": _Brotli,
    "zstd": _Zstd,
}


def coder(name: str) -> Coder | None:
    """A decompressor for a coding's name; None for identity and for words that mean nothing."""
    make = _CODERS.get(name.strip().lower())
    return make() if make else None


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
        names = encoding.split(",")
        if len(names) > _MAX_CODINGS:
            raise BadResponse("bad-response")
        # The codings are listed in the order of application: the last comes off first.
        return [made for made in map(coder, reversed(names)) if made is not None]

    def take(self, data: bytes) -> None:
        """Add raw bytes. Raises BadResponse: too-large, bomb, bad-response."""
        self.taken += len(data)
        if not self._coders:
            self._add(data)
            return
        try:
            self._decode(data, 0)
        except _BROKEN as error:
            raise BadResponse("bad-response") from error

    def end(self) -> bytes:
        """The whole body. Raises BadResponse("cut") when a coding's own end is missing."""
        if not self.full and not all(made.ended() for made in self._coders):
            raise BadResponse("cut")
        return self._pieces[0] if len(self._pieces) == 1 else self.partial()

    def partial(self) -> bytes:
        """What came, complete or not."""
        return b"".join(self._pieces)

    def _decode(self, data: bytes, depth: int) -> None:
        """Push `data` through coder `depth` and on; ends when a step brings nothing more."""
        if depth == len(self._coders):
            self._add(data)
            return
        made = self._coders[depth]
        out = made.step(data)
        while out and not self.full:
            self._decode(out, depth + 1)
            out = made.step(b"")

    def _add(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > BOMB_BYTES and self.size > BOMB_RATIO * self.taken:
            raise BadResponse("bomb")
        if self.size > self.limit:
            if not self._truncate:
                raise BadResponse("bomb" if self.size > BOMB_RATIO / 5 * self.taken else "too-large")
            data = data[: len(data) - (self.size - self.limit)]
            self.size, self.full = self.limit, True
        self._pieces.append(data)
