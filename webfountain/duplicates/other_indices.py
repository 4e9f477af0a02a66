"""The duplicate indices of other ants, read while their owners write them.

Runs are mapped into memory, and keys that are in no run are read from the records. A record that is being written is
found at the next look-up. Before using a match, the caller must check that the page's digest in the store still equals
`Match.digest`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.duplicates.key_runs import RATIO, Run, find_in, map_runs, read_state, sorted_run
from webfountain.duplicates.page_records import RecordFiles, keys_of_records
from webfountain.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]

__all__ = ["OtherIndices", "read_form"]

_POLLS: Final = 16
"""Number of look-ups between two searches for new indices."""
_AT_ONCE: Final = 10_000
"""Number of records whose keys are read at a time."""


class OtherIndices:
    """The indices of all other ants. An index whose format is not `form` is ignored."""

    def __init__(self, beside: Path | None, own: Path, form: str) -> None:
        """Find the indices of other ants in the folder `beside`, which is None if there is only one ant."""
        self._beside, self._own, self._form = beside, own, form
        self._polls = 0
        self._indices: dict[Path, _OtherIndex] = {}

    @property
    def is_absent(self) -> bool:
        return self._beside is None

    def refresh(self) -> Sequence[_OtherIndex]:
        """Return the current indices, always in the same order. Raise RepositoryError if the disk reports an error."""
        if self._beside is None:
            return ()
        try:
            if not self._polls % _POLLS:
                for folder in sorted({each / "duplicates" for each in self._beside.glob("ant-*")} - {self._own}):
                    if folder not in self._indices:
                        with suppress(FileNotFoundError):  # the index is about to be created
                            self._indices[folder] = _OtherIndex(folder, self._form)
            self._polls += 1
            for other in self._indices.values():
                other.refresh()
        except OSError as error:
            raise RepositoryError(f"{self._beside}: another ant's duplicates cannot be read: {error}") from error
        return self.known()

    def known(self) -> Sequence[_OtherIndex]:
        """Return the indices that the last `refresh` found."""
        return list(self._indices.values())

    def close(self) -> None:
        for other in self._indices.values():
            other.files.close()


class _OtherIndex:
    """The index of one other ant."""

    def __init__(self, folder: Path, form: str) -> None:
        self._folder, self._form = folder, form
        self.files = RecordFiles.to_read(folder)
        self._forget()

    def _forget(self) -> None:
        self._size = self._noted = 0  # number of records and notes read so far
        self._stamp = (0, 0)  # stamp of the INDEX file whose runs are mapped
        self._mapped: list[Run] = []
        self._behind: list[Run] = []  # in memory: keys of records that are in no run, longest list first

    def find(self, keys: Keys) -> Iterator[tuple[int, int]]:
        """Yield pairs of a position in `keys` and the number of a record with that key."""
        return find_in([*self._mapped, *self._behind], keys)

    def refresh(self) -> None:
        """Read what the index's owner has written since the last call."""
        size = len(self.files)
        if size < self._size:  # the index was emptied and started again
            self._forget()
        stamp = self._index_stamp()
        if stamp != self._stamp:
            self._take_runs(stamp)
        if self.files.count_noted() < self._noted:  # these keys are in runs now
            self._noted = 0
        noted = self.files.noted(self._noted)
        if size > self._size or noted:
            self._add([*sorted({number for number in noted if number < self._size}), *range(self._size, size)])
            self._size, self._noted = size, self._noted + len(noted)

    def _index_stamp(self) -> tuple[int, int]:
        try:
            found = os.stat(self._folder / "INDEX")
        except FileNotFoundError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns

    def _take_runs(self, stamp: tuple[int, int]) -> None:
        """Map the runs that `INDEX` lists now. Keep the old memory maps if `INDEX` or one of its runs cannot be
        read."""
        if read_form(self._folder) != self._form:
            return
        try:
            state = read_state(self._folder)
            runs = map_runs(self._folder, state, [run for run in self._mapped if not run.is_cut()])
        except (FileNotFoundError, ValueError, msgspec.MsgspecError):
            return
        self._mapped, self._behind, self._stamp = runs, [], stamp
        self._size, self._noted = state.records, 0

    def _add(self, numbers: Sequence[int]) -> None:
        """Read the keys of records into memory."""
        if read_form(self._folder) != self._form:
            return
        for first in range(0, len(numbers), _AT_ONCE):
            part = numbers[first : first + _AT_ONCE]
            rows = keys_of_records(self.files.read(part))
            keys = np.array([key for row in rows for key in row], dtype=np.uint64)
            of = np.repeat(np.array(part, dtype=np.uint32), [len(row) for row in rows])
            while self._behind and len(self._behind[-1].keys) < RATIO * len(keys):
                last = self._behind.pop()
                keys, of = np.concatenate([last.keys, keys]), np.concatenate([last.numbers, of])
            self._behind.append(sorted_run("", keys, of))


def read_form(folder: Path) -> str | None:
    """Return the format of the sketches in an index, or None if the index has no file `FORM`."""
    try:
        return (folder / "FORM").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
