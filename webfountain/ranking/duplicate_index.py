"""An index on disk of the pages that others may resemble: which page is a near-duplicate of which?

A page that resembles none becomes a representative and is kept; a near-duplicate is told its representative and is
not. Each representative is a record (fingerprint and sketch) at the end of one file, written before the answer is
given, so nothing is lost when the process is killed. The keys of its bands wait in a dict and go, some ten thousand
pages at a time, into sorted *runs*, which are mapped into memory and merged, so that there are few. `INDEX` names the
runs in force and the records they hold; it is replaced in one step, and records behind it are read again at opening.

Exact duplicates (equal digest) are the store's business and cost nothing here.
"""

from __future__ import annotations

__all__ = ["DuplicateIndex", "NearDuplicate"]

import os
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.near_duplicates import BANDS, SKETCH_BYTES, band_keys, sketch_resemblance, sketches
from webfountain.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]
    Numbers = npt.NDArray[np.uint32]

PAGES_A_RUN: Final = 10_000
_CANDIDATES: Final = 4
"""Pages of one band that are looked at in a run; representatives do not resemble each other, so there are few."""
_MARGIN: Final = 0.1
_RATIO: Final = 4
"""A run is merged with the one before while that is less than so many times as long."""
_RECORD: Final = np.dtype([("page", "<u8"), ("sketch", "u1", (SKETCH_BYTES,))])
_ENTRY: Final = np.dtype([("key", "<u8"), ("number", "<u4")])


class NearDuplicate(msgspec.Struct, frozen=True, gc=False):
    """The page that another resembles, by its fingerprint, and how much."""

    representative: int
    resemblance: float


class _Index(msgspec.Struct, frozen=True):
    """Runs in force, oldest first, and how many records are in them."""

    runs: tuple[str, ...] = ()
    records: int = 0


class DuplicateIndex:
    """An index in a folder of its own, with one writer. Not for several threads.

    Memory: some ten thousand pages' band keys (12 MB), beside what the system keeps of the mapped files.
    """

    def __init__(self, folder: Path, *, resemblance: float = 0.9, pages_a_run: int = PAGES_A_RUN) -> None:
        """`resemblance`, from which on two pages are near-duplicates. Raises RepositoryError as `add`."""
        self._folder, self._least, self._pages_a_run = folder, resemblance, pages_a_run
        self._fresh: dict[int, int] = {}
        self._mapped: npt.NDArray[np.void] = np.empty(0, dtype=_RECORD)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._index = self._load()
            for stray in set(folder.glob("run-*")) - {folder / name for name in self._index.runs}:
                stray.unlink()
            self._map()
            self._records = (folder / "records").open("ab")
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise RepositoryError(f"{folder}: the index of near-duplicates cannot be opened: {error}") from error
        self._size = self._records.tell() // _RECORD.itemsize
        self._records.truncate(self._size * _RECORD.itemsize)  # a record cut in two by a kill
        behind = np.arange(self._index.records, self._size)
        for number, keys in zip(behind.tolist(), band_keys(self._read(behind)["sketch"]).tolist(), strict=True):
            self._remember(keys, number)

    def __len__(self) -> int:
        """Representatives."""
        return self._size

    def add(
        self,
        pages: Sequence[int],
        signatures: Sequence[bytes],
        *,
        exact: Callable[[int, int], float | None] | None = None,
    ) -> list[NearDuplicate | None]:
        """For each page the representative that it resembles most, or None: then it is one from now on.

        Parameters
        ----------
        pages : fingerprints; a page that is added again is compared with others only, and kept once more when it has
            changed beyond recognition
        signatures : of `shingles.signature`, one a page
        exact : (page, representative) -> resemblance of their texts, None when one is not at hand; asked where the
            estimate is within .1 of the threshold, which it would get wrong for one pair in ten. None: never asked

        Raises RepositoryError when the disk refuses; the pages of the batch may be added again then.
        """
        drawn = sketches(signatures)
        keys = band_keys(drawn)
        try:
            earlier = self._in_runs(keys)
            answers: list[NearDuplicate | None] = []
            batch = self._size
            new: list[int] = []
            for place, page in enumerate(pages):
                fresh = {self._fresh[key] for key in keys[place].tolist() if key in self._fresh}
                candidates = np.array(sorted(fresh | earlier.get(place, set())), dtype=np.int64)
                stored = self._read(candidates[candidates < batch])
                own = [new[number - batch] for number in candidates[candidates >= batch].tolist()]
                against = np.concatenate([stored["sketch"], drawn[own]])
                names = [*stored["page"].tolist(), *(pages[each] for each in own)]
                found = sketch_resemblance(np.broadcast_to(drawn[place], against.shape), against)
                nearest = sorted(zip(found.tolist(), names, strict=True), reverse=True)
                if any(name == page and alike >= self._least for alike, name in nearest):
                    answers.append(None)
                    continue
                answers.append(self._judged(page, nearest, exact))
                if answers[-1] is not None:
                    continue
                self._remember(keys[place].tolist(), batch + len(new))
                new.append(place)
            self._append(np.array([pages[each] for each in new], dtype=np.uint64), drawn[new])
            if self._size - self._index.records >= self._pages_a_run:
                self._write_run()
        except OSError as error:
            raise RepositoryError(f"{self._folder}: near-duplicates cannot be kept: {error}") from error
        return answers

    def close(self) -> None:
        self._records.close()

    def _judged(
        self, page: int, nearest: list[tuple[float, int]], exact: Callable[[int, int], float | None] | None
    ) -> NearDuplicate | None:
        """The first of these (estimate, representative) that the page does resemble."""
        for estimate, name in nearest:
            alike = estimate
            if exact is not None and abs(estimate - self._least) <= _MARGIN and name != page:
                counted = exact(page, name)
                alike = estimate if counted is None else counted
            if alike >= self._least:
                return NearDuplicate(name, alike)
        return None

    def _remember(self, keys: list[int], number: int) -> None:
        self._fresh.update(dict.fromkeys(keys, number))

    def _in_runs(self, keys: Keys) -> dict[int, set[int]]:
        """Place in the batch -> numbers of the representatives that share a band with it."""
        found: dict[int, set[int]] = {}
        flat = keys.ravel()
        order = np.argsort(flat)  # neighbours in a run are then asked for one after the other
        asked = flat[order]
        for run in self._runs:
            at = np.searchsorted(run["key"], asked)
            for step in range(_CANDIDATES):
                places = at + step
                within = np.flatnonzero(places < len(run))
                hit = within[run["key"][places[within]] == asked[within]]
                if not len(hit):
                    break
                for place, number in zip(
                    (order[hit] // BANDS).tolist(), run["number"][places[hit]].tolist(), strict=True
                ):
                    found.setdefault(place, set()).add(number)
        return found

    def _append(self, pages: Keys, drawn: npt.NDArray[np.uint8]) -> None:
        records = np.empty(len(pages), dtype=_RECORD)
        records["page"], records["sketch"] = pages, drawn
        self._records.write(records.tobytes())
        self._records.flush()
        self._size += len(records)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
        """Records of some representatives."""
        if not len(numbers):
            return np.empty(0, dtype=_RECORD)
        if int(numbers.max()) >= len(self._mapped):
            self._mapped = np.memmap(self._folder / "records", dtype=_RECORD, mode="r")
        return np.asarray(self._mapped[numbers])

    def _write_run(self) -> None:
        """Put what is fresh into a run, merged with those before that are not much longer."""
        run = np.empty(len(self._fresh), dtype=_ENTRY)
        run["key"] = np.fromiter(self._fresh.keys(), dtype=np.uint64, count=len(run))
        run["number"] = np.fromiter(self._fresh.values(), dtype=np.uint32, count=len(run))
        kept = list(zip(self._index.runs, self._runs, strict=True))
        parts = [run]
        length = len(run)
        while kept and len(kept[-1][1]) < _RATIO * length:
            parts.append(np.asarray(kept.pop()[1]))
            length += len(parts[-1])
        merged = np.concatenate(parts)
        merged = merged[np.argsort(merged["key"], kind="stable")]
        name = f"run-{self._size:012d}"
        _write(self._folder / name, merged.tobytes())
        index = _Index((*(each for each, _ in kept), name), self._size)
        os.fsync(self._records.fileno())
        _write(self._folder / "INDEX", msgspec.json.encode(index))
        gone = set(self._index.runs) - set(index.runs)
        self._index = index
        self._fresh.clear()
        self._map()
        for each in gone:
            (self._folder / each).unlink()

    def _map(self) -> None:
        self._runs = [np.memmap(self._folder / name, dtype=_ENTRY, mode="r") for name in self._index.runs]

    def _load(self) -> _Index:
        try:
            return msgspec.json.decode((self._folder / "INDEX").read_bytes(), type=_Index)
        except FileNotFoundError:
            return _Index()


def _write(path: Path, content: bytes) -> None:
    """The whole file, or what was there before."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
