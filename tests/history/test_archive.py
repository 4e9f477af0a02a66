"""The archive keeps minutes for two days, hours for ninety, days for ever, in bounded room, through any kill."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.stores import BACKENDS, make_store
from webfountain.history.archive import DAY_S, HOUR_S, MINUTE_S, STEPS, Archive
from webfountain.history.sample import HistorySample
from webfountain.store.opening import load_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

BEGIN = 20_000 * DAY_S
ALWAYS = {"since": 0.0, "until": float("inf")}


class Values:
    """The published values of a store, in memory; after `left` writes the process is killed."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.left = math.inf
        self.writes = 0

    def value(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put_value(self, name: str, value: bytes) -> None:
        if self.left <= 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.writes += 1
        self.values[name] = value

    def settle_value(self, name: str, value: bytes) -> bytes:
        return self.values.setdefault(name, value)

    def size(self) -> int:
        return sum(map(len, self.values.values()))


def minute(number: int, fetched: int = 1) -> HistorySample:
    return HistorySample(BEGIN + number * MINUTE_S, 60.0, (number,), 1, 1, (fetched,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_added_is_read_again_by_minute_hour_and_day(backend: str, tmp_path: Path) -> None:
    store = make_store(backend, tmp_path / "store")
    archive = Archive(store.board)
    for number in range(0, 26 * 60, 5):
        archive.add(minute(number))
    store = store if backend == "memory" else reopened(store, backend, tmp_path)
    archive = Archive(store.board)
    assert [each.at for each in archive.read("minute", since=BEGIN, until=BEGIN + 600)] == [BEGIN, BEGIN + 300]
    hours = archive.read("hour", **ALWAYS)
    assert [each.at for each in hours] == [BEGIN + hour * HOUR_S for hour in range(26)]
    assert {each.outcomes for each in hours} == {(12,)}
    days = archive.read("day", **ALWAYS)
    assert [(each.at, each.outcomes) for each in days] == [(BEGIN, (288,)), (BEGIN + DAY_S, (24,))]
    assert days[-1].pages == (26 * 60 - 5,), "a state is that of the last minute"
    store.close()


def test_the_archive_moves_with_an_export(tmp_path: Path) -> None:
    store = make_store("embedded", tmp_path / "store")
    for number in range(0, 200, 10):
        Archive(store.board).add(minute(number))
    load_store(f"rocksdb://{tmp_path}/moved", store.rows())
    moved = make_store("embedded", tmp_path / "moved")
    for step in STEPS:
        assert Archive(moved.board).read(step, **ALWAYS) == Archive(store.board).read(step, **ALWAYS) != []
    moved.close()
    store.close()


def reopened(store: FrontierStore, backend: str, tmp_path: Path) -> FrontierStore:
    store.close()
    return make_store(backend, tmp_path / "store")


@given(st.lists(st.tuples(st.integers(0, 3 * 1440), st.integers(0, 5)), max_size=60))
def test_every_fetch_is_counted_once_at_every_step(minutes: list[tuple[int, int]]) -> None:
    archive = Archive(Values())
    added: dict[int, int] = defaultdict(int)
    for number, fetched in sorted(minutes):
        archive.add(minute(number, fetched))
        added[number] += fetched
    for step, span in STEPS.items():
        expected: dict[int, int] = defaultdict(int)
        for number, many in added.items():
            expected[(BEGIN + number * MINUTE_S) // span * span] += many
        kept = {int(each.at): each.fetches for each in archive.read(step, **ALWAYS)}
        oldest = min(kept, default=0)  # minutes of three days ago are gone
        assert kept == {at: many for at, many in expected.items() if at >= oldest}


@given(st.integers(1, 2000), st.integers(0, 4), st.integers(1, 3000))
def test_a_kill_between_two_writes_loses_a_minute_at_most(number: int, left: int, gap: int) -> None:
    board = Values()
    archive = Archive(board)
    for each in range(max(0, number - 90), number + 1):
        archive.add(minute(each))
    board.left = left
    with pytest.raises(KeyboardInterrupt):
        add_all(archive, range(number + gap, number + gap + 5))
    board.left = math.inf
    archive = Archive(board)
    archive.add(minute(number + gap + 5))
    added = min(91, number + 1) + 6
    assert added - 5 <= sum(each.fetches for each in archive.read("day", **ALWAYS)) <= added


def add_all(archive: Archive, numbers: range) -> None:
    for number in numbers:
        archive.add(minute(number))


def test_two_years_of_minutes_are_bounded() -> None:
    """49 hours of minutes, 91 days of hours, and about 75 kB a year of days; one write a minute."""
    board = Values()
    archive = Archive(board)
    full = HistorySample(
        0.0, 60.0, (10**6,) * 6, 10_000, 1000, (1000,) * 10, {"timeout": 5, "dns": 3}, 500, 10**9, 100.0, 0.9, 0.8,
        0.95, 1234.5, {"politeness: sites wait for their turn or for answers": 60.0}, 10**10, 10**11, 4,
    )  # fmt: skip
    for number in [*range(0, 3 * 1440, 2), *range(3 * 1440, 730 * 1440, 360)]:
        archive.add(msgspec.structs.replace(full, at=float(BEGIN + number * MINUTE_S)))
    days = archive.read("day", **ALWAYS)
    assert len(days) == 730
    assert len(archive.read("hour", **ALWAYS)) <= 92 * 24
    assert len([name for name in board.values if name.startswith("history/day/")]) == 3
    sizes = {step: max(len(v) for k, v in board.values.items() if k.startswith(f"history/{step}/")) for step in STEPS}
    most = sizes["minute"] * 2 * 50 + 24 * 92 * 220 + sizes["day"]
    assert most < 3_000_000, "five megabytes a year are allowed"
    before = board.writes
    archive.add(msgspec.structs.replace(full, at=float(BEGIN + 730 * DAY_S + 60)))
    archive.add(msgspec.structs.replace(full, at=float(BEGIN + 730 * DAY_S + 120)))
    assert board.writes - before <= 5


def test_a_clock_that_was_set_back_adds_nothing_to_hours_that_are_over() -> None:
    archive = Archive(Values())
    archive.add(minute(300))
    archive.add(minute(100))
    assert [each.at for each in archive.read("minute", **ALWAYS)] == [BEGIN + 300 * 60]


def test_a_damaged_chunk_is_an_empty_one() -> None:
    board = Values()
    archive = Archive(board)
    archive.add(minute(1))
    board.values = dict.fromkeys(board.values, b"\x00damaged")
    assert archive.read("minute", **ALWAYS) == []
    archive.add(minute(2))
    assert len(archive.read("minute", **ALWAYS)) == 1
