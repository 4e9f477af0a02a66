"""Clocks: time that never runs backwards, and time that moves when told."""

from __future__ import annotations

import time

import pytest

from webfountain.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_tells_utc_seconds_and_never_runs_backwards() -> None:
    clock: Clock = SystemClock()
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(time.time(), abs=5)


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(10.0)
    assert clock.now() == clock.now() == 10.0
    assert clock.advance(2.5) == clock.now() == 12.5
    clock.set(20.0)
    assert clock.now() == 20.0


def test_a_manual_clock_does_not_go_back() -> None:
    clock = ManualClock(10.0)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.set(9.0)
    assert clock.now() == 10.0
