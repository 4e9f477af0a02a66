"""The clock of an ant, and the server's: by whose time it goes, and what it says."""

from __future__ import annotations

import logging

import pytest

from tests.servers.valkey import single
from webfountain.clock import ManualClock
from webfountain.errors import WebfountainError
from webfountain.frontier.server_clock import ServerClock
from webfountain.store.opening import open_store


class Server:
    """A server whose clock differs from the machine's, and whose answer takes a while."""

    def __init__(self, *, ahead_s: float = 0.0, answers_in_s: float = 0.0) -> None:
        self.machine = ManualClock(1_000_000.0)
        self.ahead_s = ahead_s
        self._answers_in_s = answers_in_s
        self.clock = ServerClock(self.machine, self.time, heartbeat_s=5.0, steady=self.machine.now)

    def time(self) -> float:
        self.machine.advance(0.5 * self._answers_in_s)
        read = self.machine.now() + self.ahead_s
        self.machine.advance(0.5 * self._answers_in_s)
        return read


@pytest.mark.parametrize("ahead_s", [-3600.0, -3.0, -1.01, 1.01, 3.0, 86_400.0])
def test_an_ant_goes_by_the_server_where_the_clocks_differ_by_a_fifth_of_a_heartbeat(
    ahead_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(ahead_s=ahead_s)
    for _ in range(3):
        server.clock.compare()
    assert server.clock.now() == pytest.approx(server.time(), abs=0.02)
    [line] = [record.message for record in caplog.records]
    assert f"{abs(ahead_s):.1f} s {'behind' if ahead_s > 0 else 'ahead of'} that of the store's server" in line


@pytest.mark.parametrize(("ahead_s", "answers_in_s"), [(0.9, 0.0), (-0.9, 0.0), (0.0, 30.0), (2.0, 4.0)])
def test_small_differences_and_slow_answers_change_nothing(
    ahead_s: float, answers_in_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(ahead_s=ahead_s, answers_in_s=answers_in_s)
    server.clock.compare()
    assert server.clock.now() == server.machine.now()
    assert not caplog.records


def test_a_clock_that_is_corrected_while_the_ant_runs_never_goes_back(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.clock.compare()
    before = server.clock.now()
    server.ahead_s = -10.0
    server.clock.compare()
    assert server.clock.now() == before
    server.machine.advance(9.0)
    assert server.clock.now() == before
    server.machine.advance(2.0)
    assert server.clock.now() == before + 1.0
    assert len(caplog.records) == 1


def test_an_ant_ends_rather_than_wait_for_minutes() -> None:
    server = Server()
    server.clock.now()
    server.ahead_s = -600.0
    with pytest.raises(WebfountainError, match="set back by 600 s"):
        server.clock.compare()


def test_the_time_is_that_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    with single() as (url, client), caplog.at_level(logging.WARNING):
        store = open_store(f"{url}?shards=2", collection="tests", period_s=10.0)
        assert store.claims is not None
        reported = store.claims.time()
        seconds, _ = client.time()
        store.close()
    assert reported is not None
    assert 0.0 <= seconds + 1.0 - reported < 60.0
