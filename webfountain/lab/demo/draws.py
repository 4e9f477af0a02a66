"""Random numbers of a generated web, each computed from the seed and a purpose."""

from __future__ import annotations

import struct
from hashlib import blake2b, shake_128
from typing import Final

__all__ = ["TO_UNIT", "Draws"]

TO_UNIT: Final = 2.0**-64


class Draws:
    def __init__(self, seed: int) -> None:
        self._key = struct.pack("<q", seed)

    def __call__(self, *which: int) -> tuple[int, ...]:
        """Return four random 64-bit numbers, which depend only on the seed and on `which`."""
        packed = struct.pack(f"<{len(which)}q", *which)
        return struct.unpack("<4Q", blake2b(packed, digest_size=32, key=self._key).digest())

    def stream(self, *which: int, size: int) -> memoryview:
        """Return `size` random 16-bit numbers, which depend only on the seed and on `which`."""
        key = self._key + struct.pack(f"<{len(which)}q", *which)
        return memoryview(shake_128(key).digest(2 * size)).cast("H")
