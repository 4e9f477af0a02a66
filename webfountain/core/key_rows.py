"""Row numbers of 64-bit keys, looked up for many keys at once.

The hash table consists of arrays, so the misses of the processor's cache overlap for all keys of a batch. A batch of a
few keys takes about 20 µs.

The table uses multiplicative hashing and linear probing. The factor is chosen at random in each process, so nobody can
choose keys that collide.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]
    Rows = npt.NDArray[np.int32]

__all__ = ["KeyRows", "Keys", "Rows", "keys_of"]

_FEWEST_BITS: Final = 10
"""Binary logarithm of the smallest number of slots."""
_FACTOR: Final = np.uint64(secrets.randbits(64) | 1)


class KeyRows:
    """The row number of each key: 1 for the first key, 2 for the next new key, and so on. At most a third of the slots
    are used.

    The `keys` (n,) passed to the constructor must differ from each other; they get the rows 1 to n.
    """

    def __init__(self, keys: Keys | None = None) -> None:
        self._count = 0
        self._keys = np.zeros(1, dtype=np.uint64)
        self._slots = np.zeros(0, dtype=np.int32)
        self._add(np.zeros(0, dtype=np.uint64) if keys is None else keys)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Keys:
        """The (n,) keys in the order of their rows."""
        return self._keys[1 : self._count + 1]

    def find(self, keys: Keys) -> Rows:
        """Return the (k,) rows of keys; 0 for an unknown key."""
        at = self._first_slots(keys)
        rows = self._slots.take(at)
        wrong = ((self._keys.take(rows) != keys) & (rows > 0)).nonzero()[0]
        while len(wrong):
            at[wrong] = (at[wrong] + 1) & (len(self._slots) - 1)
            rows[wrong] = found = self._slots[at[wrong]]
            wrong = wrong[(self._keys[found] != keys[wrong]) & (found > 0)]
        return rows

    def rows(self, keys: Keys) -> Rows:
        """Return the (k,) rows of keys. New keys get the next rows, in the order of their first occurrence."""
        rows = self.find(keys)
        missing = (rows == 0).nonzero()[0]
        if len(missing):
            new = keys[missing]
            self._add(new[_first_places(new)])
            rows[missing] = self.find(new)
        return rows

    def _add(self, new: Keys) -> None:
        """Add keys that are unknown and differ from each other."""
        begin, self._count = self._count + 1, self._count + len(new)
        if self._count >= len(self._keys):
            grown = np.zeros(2 * self._count + 1, dtype=np.uint64)
            grown[:begin] = self._keys[:begin]
            self._keys = grown
        self._keys[begin : self._count + 1] = new
        if 3 * self._count > len(self._slots) or not len(self._slots):
            bits = max(_FEWEST_BITS, (6 * self._count).bit_length())
            self._shift = np.uint64(64 - bits)
            self._slots = np.zeros(1 << bits, dtype=np.int32)
            begin = 1
        rows = np.arange(begin, self._count + 1, dtype=np.int32)
        at = self._first_slots(self._keys[begin : self._count + 1])
        while len(rows):
            free = self._slots[at] == 0
            self._slots[at[free]] = rows[free]  # of rows with the same slot, one gets it
            left = self._slots[at] != rows
            at, rows = (at[left] + 1) & (len(self._slots) - 1), rows[left]

    def _first_slots(self, keys: Keys) -> npt.NDArray[np.int64]:
        return ((keys * _FACTOR) >> self._shift).astype(np.int64)


def keys_of(joined: bytes) -> Keys:
    """Return the (n,) keys in a bytes object of n fingerprints of 8 bytes each."""
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64)


def _first_places(keys: Keys) -> npt.NDArray[np.int64]:
    """Return the positions at which keys occur for the first time, in ascending order."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return np.sort(order[first])
