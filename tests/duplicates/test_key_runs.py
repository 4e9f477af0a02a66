"""Keys in sorted files: every key that was written is found, in few files."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from webfountain.duplicates.key_runs import KeyRuns

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def drawn(seed: int, many: int = 80) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, many, dtype=np.uint64)


def found(runs: KeyRuns, keys: npt.NDArray[np.uint64]) -> dict[int, set[int]]:
    """The numbers of the records that have each key, by its place."""
    numbers: dict[int, set[int]] = {}
    for place, number in runs.find(keys):
        numbers.setdefault(place, set()).add(number)
    return numbers


def test_runs_are_merged_so_that_there_are_few(tmp_path: Path) -> None:
    with closing(KeyRuns(tmp_path)) as runs:
        for turn in range(80):
            runs.write(drawn(turn), np.full(80, turn, dtype=np.uint32), records=turn + 1)
            runs.wait()
            runs.take_merge()
        assert len(list(tmp_path.glob("run-*"))) <= 6
        for turn in range(80):
            assert found(runs, drawn(turn)) == {place: {turn} for place in range(80)}


def test_a_key_of_several_records_is_found_with_each(tmp_path: Path) -> None:
    keys = drawn(1, 3)
    with closing(KeyRuns(tmp_path)) as runs:
        runs.write(np.repeat(keys, 2), np.arange(6, dtype=np.uint32), records=6)
        assert found(runs, keys) == {0: {0, 1}, 1: {2, 3}, 2: {4, 5}}
        assert found(runs, drawn(2)) == {}


@pytest.mark.parametrize(("records", "most_entries", "are_left"), [(1, 80, True), (0, 80, False), (1, 79, False)])
def test_runs_of_more_records_or_entries_than_there_may_be_are_dropped(
    tmp_path: Path, records: int, most_entries: int, are_left: bool
) -> None:
    with closing(KeyRuns(tmp_path)) as runs:
        runs.write(drawn(1), np.zeros(80, dtype=np.uint32), records=1)
    (tmp_path / "run-of-a-merge-that-was-given-up").write_bytes(b"")
    with closing(KeyRuns(tmp_path)) as runs:
        runs.load(records=records, most_entries=most_entries)
        assert runs.records == are_left
        assert bool(found(runs, drawn(1))) == are_left
        assert len(list(tmp_path.glob("run-*"))) == are_left
