"""The keys by which an index of duplicates finds its records.

A *run* is a memory-mapped file of sorted keys, each with a record number. The keys of new pages are in memory
(`RecentKeys`) until those of about ten thousand pages become a run. A thread merges runs of similar length, so that few
runs remain. The file `INDEX` names the current runs, and is replaced atomically. If `INDEX` or a run is lost, all runs
are built again from the records (`index`).
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from webfountain.private_files import is_cut, replaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]
    Numbers = npt.NDArray[np.uint32]

__all__ = [
    "ENTRY_BYTES",
    "RATIO",
    "IndexState",
    "KeyRuns",
    "RecentKeys",
    "Run",
    "find_in",
    "map_run",
    "map_runs",
    "read_state",
    "sorted_run",
]

logger = logging.getLogger(__name__)

ENTRY_BYTES: Final = 12
MOST_OF_A_KEY: Final = 16
"""Maximum number of records per key that a look-up finds."""
RATIO: Final = 4
"""A run is merged into the previous run unless the previous run is at least this many times as long."""
_MERGED_AT_ONCE: Final = 1 << 18
"""Number of entries that a merge holds in memory at once."""


class IndexState(msgspec.Struct, frozen=True):
    """The current runs, oldest first, the number of their records, and the number of runs ever written."""

    runs: tuple[str, ...] = ()
    records: int = 0
    written: int = 0


class Run(NamedTuple):
    """Sorted keys with record numbers, in a mapped file or in memory (`path` is None)."""

    name: str
    keys: Keys
    numbers: Numbers
    path: Path | None = None

    def is_cut(self) -> bool:
        """Return whether the file has become shorter since it was mapped."""
        return self.path is not None and is_cut(self.path, ENTRY_BYTES * len(self.keys))


class KeyRuns:
    """The runs of one index. Not thread-safe. Every method raises OSError if the disk reports an error."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = IndexState()
        self._runs: list[Run] = []
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="webfountain-merge")
        self._merge: Future[str] | None = None
        self._merging: tuple[Run, ...] = ()
        self._stop = threading.Event()

    @property
    def records(self) -> int:
        """Return the number of records, counted from the first, whose keys are stored in runs."""
        return self._state.records

    def load(self, *, records: int, most_entries: float) -> None:
        """Map the runs on disk, or none if they are damaged or too large, and remove run files that `INDEX` does not
        list.
        """
        try:
            state = read_state(self._folder)
        except FileNotFoundError:
            state = IndexState()
        except (ValueError, msgspec.MsgspecError):
            logger.warning("%s: INDEX is damaged; the runs are rebuilt", self._folder)
            state = IndexState()
        sizes = [_size_of(self._folder / name) for name in state.runs]
        is_whole = all(size > 0 and size % ENTRY_BYTES == 0 for size in sizes) and state.records <= records
        if not is_whole or sum(sizes) > ENTRY_BYTES * most_entries:
            state = IndexState(written=state.written)
        self._state, self._runs = state, map_runs(self._folder, state, self._runs)
        self._remove_strays()

    def are_cut(self) -> bool:
        """Return whether the file of a run became shorter; if so, all runs must be rebuilt."""
        return any(run.is_cut() for run in self._runs)

    def find(self, keys: Keys) -> Iterator[tuple[int, int]]:
        """Yield pairs of a position in `keys` and the number of a record with that key."""
        return find_in(self._runs, keys)

    def write(self, keys: Keys, numbers: Numbers, *, records: int) -> None:
        """Write keys to a new run, then start a merge."""
        run = sorted_run(f"run-{self._state.written:012d}", keys, numbers)
        with replaced(self._folder / run.name, durable=True) as file:
            file.write(run.keys.tobytes())
            file.write(run.numbers.tobytes())
        self._publish(IndexState((*self._state.runs, run.name), records, self._state.written + 1))
        self._begin_merge()

    def take_merge(self) -> None:
        """If a merge has finished, use its result in place of the merged runs."""
        if self._merge is None or not self._merge.done():
            return
        done, self._merge = self._merge, None
        name = done.result()
        merged = [run.name for run in self._merging]
        at = self._state.runs.index(merged[0])
        runs = (*self._state.runs[:at], name, *self._state.runs[at + len(merged) :])
        self._publish(msgspec.structs.replace(self._state, runs=runs))
        self._merging = ()
        for each in merged:
            (self._folder / each).unlink()

    def wait(self) -> None:
        if self._merge is not None:
            self._merge.exception()

    def clear(self) -> None:
        """Drop all runs and remove their files."""
        self.wait()
        (self._folder / "INDEX").unlink(missing_ok=True)
        self._runs, self._merge, self._merging = [], None, ()
        self._state = IndexState(written=self._state.written)
        self._remove_strays()

    def close(self) -> None:
        self._stop.set()
        self._merger.shutdown(wait=True)

    def _begin_merge(self) -> None:
        self.take_merge()
        first, length = len(self._runs) - 1, len(self._runs[-1].keys)
        while first and len(self._runs[first - 1].keys) < RATIO * length:
            first -= 1
            length += len(self._runs[first].keys)
        if self._merge is None and first < len(self._runs) - 1:
            self._merging = tuple(self._runs[first:])
            name = f"run-{self._state.written:012d}"
            self._state = msgspec.structs.replace(self._state, written=self._state.written + 1)
            self._merge = self._merger.submit(_merged, self._folder / name, self._merging, self._stop)

    def _publish(self, state: IndexState) -> None:
        with replaced(self._folder / "INDEX", durable=True) as file:
            file.write(msgspec.json.encode(state))
        self._state, self._runs = state, map_runs(self._folder, state, self._runs)

    def _remove_strays(self) -> None:
        for stray in set(self._folder.glob("run-*")) - {self._folder / name for name in self._state.runs}:
            stray.unlink()


def read_state(folder: Path) -> IndexState:
    """Return the contents of `INDEX`. Raise FileNotFoundError if the file is missing, ValueError if the file is
    damaged."""
    return msgspec.json.decode((folder / "INDEX").read_bytes(), type=IndexState)


def map_run(path: Path) -> Run:
    entries = path.stat().st_size // ENTRY_BYTES
    keys = np.memmap(path, dtype="<u8", mode="r", shape=(entries,))
    return Run(path.name, keys, np.memmap(path, dtype="<u4", mode="r", offset=8 * entries, shape=(entries,)), path)


def map_runs(folder: Path, state: IndexState, mapped: Sequence[Run]) -> list[Run]:
    """Map the files of the runs that `state` lists, except runs that are already in `mapped`. Raise FileNotFoundError
    if a run is missing.
    """
    known = {run.name: run for run in mapped}
    return [known.get(name) or map_run(folder / name) for name in state.runs]


def sorted_run(name: str, keys: Keys, numbers: Numbers) -> Run:
    order = np.argsort(keys, kind="stable")
    return Run(name, keys[order], numbers[order])


def find_in(runs: Sequence[Run], keys: Keys) -> Iterator[tuple[int, int]]:
    """Yield pairs of a position in `keys` and the number of a record with that key, up to a limit per key.

    A run whose file became shorter is left out.
    """
    flat = keys.ravel()
    order = np.argsort(flat)  # in order, so that keys that are neighbours in a run are looked up one after the other
    asked = flat[order]
    for run in runs:
        if run.is_cut():
            continue
        at = np.searchsorted(run.keys, asked)
        places = np.arange(len(asked))
        for _ in range(MOST_OF_A_KEY):
            within = at < len(run.keys)
            at, places = at[within], places[within]
            hit = run.keys[at] == asked[places]
            at, places = at[hit], places[hit]
            if not len(at):
                break
            yield from zip(order[places].tolist(), run.numbers[at].tolist(), strict=True)
            at += 1


def _merged(path: Path, runs: Sequence[Run], stop: threading.Event) -> str:
    """Merge runs into a new file and return the name of the file.

    If `stop` is set during the merge, the merge ends early and the file is incomplete.
    """
    total = sum(len(run.keys) for run in runs)
    steps = -(-total // _MERGED_AT_ONCE)
    bounds = np.array([(step << 64) // steps for step in range(1, steps)], dtype=np.uint64)
    cuts = [[0, *np.searchsorted(run.keys, bounds).tolist(), len(run.keys)] for run in runs]
    with replaced(path, durable=True) as file:
        at = 0
        for step in range(steps):
            if stop.is_set():
                break
            if any(run.is_cut() for run in runs):
                raise OSError("a run became shorter while it was merged")
            parts = [slice(cut[step], cut[step + 1]) for cut in cuts]
            keys = np.concatenate([run.keys[part] for run, part in zip(runs, parts, strict=True)])
            numbers = np.concatenate([run.numbers[part] for run, part in zip(runs, parts, strict=True)])
            merged = sorted_run("", keys, numbers)
            file.seek(8 * at)
            file.write(merged.keys.tobytes())
            file.seek(8 * total + 4 * at)
            file.write(merged.numbers.tobytes())
            at += len(keys)
    return path.name


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class RecentKeys:
    """Keys that are not yet in a run, with their record numbers; a key takes 150 bytes.

    Keys that were written to a run stay in memory until the next look-up begins.
    """

    def __init__(self) -> None:
        self._fresh: dict[int, int | tuple[int, ...]] = {}
        self._written: dict[int, int | tuple[int, ...]] = {}  # keys that became a run since the last look-up began

    def __len__(self) -> int:
        return len(self._fresh)

    def find(self, keys: Collection[int]) -> set[int]:
        """Return the numbers of records that have any of these keys."""
        numbers = set[int]()
        for held in (self._fresh, self._written):
            if not held.keys().isdisjoint(keys):  # most keys of a page are new
                for key in keys:
                    found = held.get(key, ())
                    numbers.update((found,) if isinstance(found, int) else found)
        return numbers

    def add(self, keys: Collection[int], number: int) -> None:
        """Add the keys of a record. A key keeps at most `MOST_OF_A_KEY` records."""
        fresh = self._fresh
        if fresh.keys().isdisjoint(keys):
            fresh.update(dict.fromkeys(keys, number))
            return
        for key in keys:
            others = fresh.get(key)
            if others is None:
                fresh[key] = number
            elif isinstance(others, int):
                fresh[key] = (others, number)
            elif len(others) < MOST_OF_A_KEY:
                fresh[key] = (*others, number)

    def entries(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Return the keys that are not yet in a run, and the record number of each key."""
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
        """At the start of a look-up, drop the keys that were written to runs, where the look-up finds them."""
        self._written = {}

    def clear(self) -> None:
        self._fresh, self._written = {}, {}
