"""Give each page of a site a number, in the order in which pages are added.

The number of a page is its index in the site's arrays. All keys are in one string of bytes, which is saved with the
site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

__all__ = ["KEY_BYTES", "PageNumbers"]

KEY_BYTES: Final = len(fingerprint("http://a.example/"))
_SEARCHED: Final = 4000
"""When the unsorted keys take more than this many bytes, all keys are sorted for fast search."""

_NO_KEYS: Final = np.zeros(0, dtype=np.uint64)
_NO_NUMBERS: Final = np.zeros(0, dtype=np.int32)


class PageNumbers:
    """The keys of a site's pages, by number."""

    __slots__ = ("_numbers", "_sorted", "keys")

    def __init__(self, keys: bytes) -> None:
        self.keys = keys
        self._sorted = _NO_KEYS  # the first keys, in order
        self._numbers = _NO_NUMBERS  # the number of each of these

    def __len__(self) -> int:
        return len(self.keys) // KEY_BYTES

    def key(self, page: int) -> bytes:
        return self.keys[page * KEY_BYTES : (page + 1) * KEY_BYTES]

    def number(self, key: bytes) -> int | None:
        """Return the number of a page, or None if the page is unknown."""
        if len(self.keys) - self._sorted.nbytes > _SEARCHED:
            keys = np.frombuffer(self.keys, dtype=np.uint64)
            self._numbers = np.argsort(keys).astype(np.int32)
            self._sorted = keys[self._numbers]
        if len(self._sorted):
            number = int(np.searchsorted(self._sorted, np.frombuffer(key, dtype=np.uint64)[0]))
            if number < len(self._sorted) and self.key(int(self._numbers[number])) == key:
                return int(self._numbers[number])
        place = self.keys.find(key, self._sorted.nbytes)
        while place % KEY_BYTES and place >= 0:
            place = self.keys.find(key, place + 1)
        return place // KEY_BYTES if place >= 0 else None

    def add(self, keys: Iterable[bytes]) -> None:
        """Add pages, with the next free numbers."""
        self.keys += b"".join(keys)

    def in_upper_half(self, window: int) -> npt.NDArray[np.bool_]:
        """Return a flag for each page: True if its key is in the upper half of window number `window` (`Windows`)."""
        keys = np.frombuffer(self.keys, dtype=">u8")
        return np.asarray((keys >> np.uint64(64 - window.bit_length())) & np.uint64(1) == 1)

    def some(self, pages: npt.NDArray[np.bool_]) -> PageNumbers:
        """Return a new numbering of only the chosen pages, in their old order."""
        return PageNumbers(np.frombuffer(self.keys, dtype=np.uint64)[pages].tobytes())
