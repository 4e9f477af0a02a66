"""The keys of an index of duplicates that are not yet in a run, held in memory.

A batch may still need keys that became a run after its look-up; so these stay until the next look-up begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webfountain.duplicates.key_runs import MOST_OF_A_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

__all__ = ["RecentKeys"]


class RecentKeys:
    """Keys with the numbers of their records, mostly one number per key; 150 bytes per key."""

    def __init__(self) -> None:
        self._fresh: dict[int, int | tuple[int, ...]] = {}
        self._written: dict[int, int | tuple[int, ...]] = {}  # keys that became a run since the last look-up began

    def __len__(self) -> int:
        """Return the number of keys that are in no run."""
        return len(self._fresh)

    def at(self, key: int) -> tuple[int, ...]:
        """Return the numbers of the records with a key."""
        found = self._fresh.get(key, ())
        numbers = (found,) if isinstance(found, int) else found
        if self._written:
            found = self._written.get(key, ())
            numbers += (found,) if isinstance(found, int) else found
        return numbers

    def add(self, keys: Iterable[int], number: int) -> None:
        """Store the keys of a record. If a key has many records, only some of them are stored."""
        fresh = self._fresh
        for key in keys:
            others = fresh.get(key)
            if others is None:
                fresh[key] = number
            elif isinstance(others, int):
                fresh[key] = (others, number)
            elif len(others) < MOST_OF_A_KEY:
                fresh[key] = (*others, number)

    def entries(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Return the keys that are in no run, repeated for each record, and the record numbers."""
        pairs = [
            (key, number)
            for key, found in self._fresh.items()
            for number in ((found,) if isinstance(found, int) else found)
        ]
        keys, numbers = zip(*pairs, strict=True)
        return np.array(keys, dtype=np.uint64), np.array(numbers, dtype=np.uint32)

    def written(self) -> None:
        """Record that all keys are in a run now."""
        self._written.update(self._fresh)
        self._fresh = {}

    def begin(self) -> None:
        """Begin a look-up, which finds all keys written so far in the runs."""
        self._written = {}

    def clear(self) -> None:
        """Drop all keys."""
        self._fresh, self._written = {}, {}
