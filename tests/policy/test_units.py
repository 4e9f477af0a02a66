"""Durations and sizes: what is written is what is meant, and what is spelled reads back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webfountain.policy.units import Duration, PositiveDuration, Size, spell_duration, spell_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("1s", 1), ("1.5h", 5400), ("15m", 900), ("180d", 15_552_000), ("2w", 1_209_600), (" 3 s ", 3)],
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert Duration.parse(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "1", "1 year", "1S", "-1s", "1e3s", "1_000s", "\u0661s", "1s1s", 5, None, 1.5]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="allowed: a number with ms"):
        Duration.parse(text)


def test_some_durations_may_not_be_0() -> None:
    assert Duration.parse("0s") == 0.0
    with pytest.raises(ValueError, match="longer than 0"):
        PositiveDuration.parse("0ms")


def test_sizes_are_in_powers_of_1000() -> None:
    assert [Size.parse(text) for text in ("1kB", "1.5MB", "2GB", "1TB")] == [1000, 1_500_000, 2 * 10**9, 10**12]


@pytest.mark.parametrize("text", ["10", "10B", "1KB", "1kb", "1MiB", "0GB", "-1MB", 10])
def test_anything_else_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="allowed: a number with kB"):
        Size.parse(text)


@given(st.integers(0, 10**9))
def test_a_spelled_duration_reads_back(milliseconds: int) -> None:
    assert Duration.parse(spell_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.integers(1, 10**14))
@example(4047)
def test_a_spelled_size_reads_back(size: int) -> None:
    assert Size.parse(spell_size(size)) == pytest.approx(size)
