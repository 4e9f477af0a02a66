"""Clocks: time that never runs backwards, and time that moves when told."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest

from webfountain.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_returns_utc_seconds_and_never_runs_backwards() -> None:
    clock: Clock = SystemClock()
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(time.time(), abs=5)


class Machine:
    """A machine whose clock can be set: what `time` tells."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr("webfountain.clock.time", found)
    return found


def test_a_clock_that_is_set_forward_while_it_runs_is_followed_and_said_once(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """Started a day behind and corrected by NTP, or asleep for a night: times stayed wrong until a restart."""
    clock = SystemClock()
    machine.wall += 86_400.0
    assert clock.now() == 1_086_400.0
    machine.passes(5.0)
    assert clock.now() == 1_086_405.0
    assert caplog.messages == ["The machine's clock was set forward by 86400 s; the crawl uses the new time"]


def test_a_clock_that_is_set_back_a_little_stands_still_until_it_is_caught_up_with(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SystemClock()
    machine.passes(30.0)
    machine.wall -= 10.0
    times = []
    for _ in range(20):
        machine.passes(1.0)
        times.append(clock.now())
    assert times == sorted(times)
    assert times[-1] == pytest.approx(machine.wall, abs=1e-3)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("back", [61.0, 3_600.0, 86_400.0])
def test_a_clock_that_is_set_back_by_much_goes_slower_until_all_times_are_right_again(
    machine: Machine, caplog: pytest.LogCaptureFixture, back: float
) -> None:
    """It went on with the wrong time until the next start."""
    clock = SystemClock()
    machine.wall -= back
    times = [clock.now()]
    for _ in range(1000):
        machine.passes(back / 200)
        times.append(clock.now())
        assert times[-1] >= machine.wall - 2.0
    steps = [after - before for before, after in pairwise(times)]
    assert min(steps) >= 0.0
    assert max(steps) <= back / 200 + 2.0, "nothing that waits is passed over"
    assert times[400] > times[0] + back, "nothing that waits stands still"
    assert times[-1] == pytest.approx(machine.wall, abs=1e-3)
    assert [re.split(r"[.;] ", message)[0] for message in caplog.messages] == [
        f"The machine's clock was set back by {back:.0f} s",
        "The clocks of the machine and of the crawl agree again",
    ]
    assert f"for {4 * back / 3600:.1f} h until both agree; a restart" in caplog.messages[0]


def test_a_slow_clock_is_slow_however_seldom_it_is_read(machine: Machine) -> None:
    often, seldom = SystemClock(), SystemClock()
    machine.wall -= 1_000.0
    often.now(), seldom.now()
    for _ in range(300):
        machine.passes(1.0)
        often.now()
    assert seldom.now() == pytest.approx(often.now())


def test_small_differences_are_no_steps(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    machine.wall += 1.5
    assert clock.now() == 1_000_000.0
    assert not caplog.messages


def test_a_manual_clock_moves_only_when_set() -> None:
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
