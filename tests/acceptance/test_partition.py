"""An ant that is cut off from the server of its store: nothing that it has under way lasts longer than its leases."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import ROOT, policy
from tests.servers.partition import CuttableWay, SlowSites, overlaps
from tests.servers.valkey import free_port, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


def wait_for(what: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


class Ants:
    """Two ants with a way each to one server, and the sites that they crawl."""

    def __init__(
        self,
        folder: Path,
        sites: SlowSites,
        ways: list[CuttableWay],
        *,
        heartbeat_s: float,
        ahead_s: Sequence[float] = (0.0, 0.0),
    ) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.errors = [folder / f"ant{number}.stderr" for number in range(len(ways))]
        for number, way in enumerate(ways):
            home = folder / str(number)
            home.mkdir()
            file = policy(
                home,
                sites.urls,
                politeness={"min_delay": "100ms", "delay_factor": 0, "timeout": "60s", "user_agent": f"ant{number}"},
            )
            command = [sys.executable, "-m", "webfountain", "crawl", str(file), "--json"]
            command += [f"--store=redis://127.0.0.1:{way.port}/0?shards=4", f"--repository={home / 'copies'}"]
            command += ["-s", f"WEBFOUNTAIN_HEARTBEAT_SECONDS={heartbeat_s}", f"--report={home / 'report.json'}"]
            # What Python runs first of all: a machine whose clock is ahead.
            shift = f"import time\nwall = time.time\ntime.time = lambda: wall() + {ahead_s[number]}\n"
            (home / "sitecustomize.py").write_text(shift)
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home), str(ROOT)])}
            with self.errors[number].open("ab") as errors:
                self.processes.append(
                    subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
                )

    def __enter__(self) -> Ants:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def log(self, number: int) -> str:
        return self.errors[number].read_text()


@contextlib.contextmanager
def two_ants(
    folder: Path, *, sites: int, page_s: float, heartbeat_s: float, ahead_s: Sequence[float] = (0.0, 0.0)
) -> Iterator[tuple[Ants, SlowSites, list[CuttableWay]]]:
    port = free_port()
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(folder / "server", port=port))
        web = stack.enter_context(SlowSites(sites, page_s=0.2, pages=1_000_000))
        ways = [stack.enter_context(CuttableWay(port)) for _ in range(2)]
        ants = stack.enter_context(Ants(folder, web, ways, heartbeat_s=heartbeat_s, ahead_s=ahead_s))
        wait_for(lambda: all(web.under_way[f"ant{number}"] for number in range(2)))
        web.page_s = page_s
        wait_for(lambda: web.transfers and web.transfers[-1].ended < time.monotonic() - 1.0)  # the short ones are over
        wait_for(lambda: all(web.under_way[f"ant{number}"] for number in range(2)))
        yield ants, web, ways


def cut_in_rounds(
    web: SlowSites, ways: list[CuttableWay], *, rounds: int, away_s: Callable[[], float], whole_s: Callable[[], float]
) -> None:
    for number in range(rounds):
        ant = f"ant{number % 2}"
        wait_for(lambda ant=ant: web.under_way[ant])  # type: ignore[misc]
        ways[number % 2].cut()
        wait_for(lambda ant=ant: not web.under_way[ant])  # type: ignore[misc]
        time.sleep(away_s())
        ways[number % 2].mend()
        time.sleep(whole_s())


def test_what_an_ant_has_under_way_is_cut_before_another_asks_though_the_store_does_not_answer(tmp_path: Path) -> None:
    heartbeat_s = 1.5
    with two_ants(tmp_path, sites=6, page_s=20.0, heartbeat_s=heartbeat_s) as (ants, web, ways):
        before = len(web.transfers)
        ways[0].cut()
        cut_at = time.monotonic()
        wait_for(lambda: not web.under_way["ant0"])
        assert time.monotonic() - cut_at < 10.0, "not when the pages are there, after 20 s"
        taken = len(web.transfers)
        assert not any(transfer.whole for transfer in web.transfers[before:taken] if transfer.client == "ant0")
        wait_for(lambda: web.under_way["ant1"] == 6)
        assert ants.log(0).count("all transfers are cut") == 1
        web.page_s = 0.2
        ways[0].mend()
        wait_for(lambda: web.under_way["ant0"])
        assert [process.poll() for process in ants.processes] == [None, None]
    assert not overlaps(web.transfers, lambda transfer: transfer.site)
    assert not overlaps(web.transfers, lambda transfer: transfer.address)


def test_an_ant_whose_clock_is_ahead_takes_no_site_that_another_asks(tmp_path: Path) -> None:
    with two_ants(tmp_path, sites=6, page_s=4.0, heartbeat_s=1.5, ahead_s=(0.0, 3.0)) as (ants, web, _):
        begun = len(web.transfers)
        wait_for(lambda: len(web.transfers) > begun + 12)
        assert not ants.log(0).count("clock")
        assert ants.log(1).count("s ahead of that of the store's server; the crawl uses the server's time") == 1
    assert not overlaps(web.transfers, lambda transfer: transfer.site)


@pytest.mark.soak
def test_no_site_is_asked_by_two_ants_at_once_in_twenty_partitions(tmp_path: Path) -> None:
    rng = random.Random(4)
    with two_ants(tmp_path, sites=12, page_s=18.0, heartbeat_s=2.0) as (_, web, ways):
        cut_in_rounds(
            web, ways, rounds=20, away_s=lambda: rng.uniform(0.0, 12.0), whole_s=lambda: rng.uniform(0.0, 8.0)
        )
    assert len(web.transfers) > 100
    assert not overlaps(web.transfers, lambda transfer: transfer.site)
    assert not overlaps(web.transfers, lambda transfer: transfer.address)
