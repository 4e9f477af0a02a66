"""Undoing a response's content coding while it streams, within a bound: no bomb is ever unpacked.

Between `http1` (frames) and whoever wants a body (`fetcher`). A coded body is whole, or it is refused with a word:
gzip of several members and zstd of several frames are read to the last, and what ends within one is "cut". How the
bytes were split into packets makes no difference. Every step asks its decompressor for no more output than `_STEP`,
so memory is bounded by the limit and not by what a server packed; the work grows with the bytes, in and out.
"""

from __future__ import annotations

import re
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import brotli
from isal import isal_zlib

from webfountain.download.http1 import BadResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ACCEPT_ENCODING", "BOMB_BYTES", "BOMB_RATIO", "MAX_MEMBERS", "Body"]

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
BOMB_RATIO: Final = 250
"""Bytes out per byte in beyond which `BOMB_BYTES` of output are a bomb; text reaches 20, generated tables 100."""
BOMB_BYTES: Final = 1_048_576
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
        if self.size > BOMB_BYTES and self.size > BOMB_RATIO * self.taken:
            raise BadResponse("bomb")
        if self.size > self.limit:
            if not self._truncate:
                raise BadResponse("bomb" if self.size > BOMB_RATIO / 5 * self.taken else "too-large")
            data = data[: len(data) - (self.size - self.limit)]
            self.size, self.full = self.limit, True
        self._pieces.append(data)
