"""A signal ends a crawl within ten seconds, with status 0, though its server does not answer; a second one at once."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import PATIENT, ROOT, policy
from tests.acceptance.test_partition import wait_for
from tests.servers.partition import CuttableWay, SlowSites
from tests.servers.valkey import free_port, running

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMISED_S = 10.0
SLOW_MACHINE_S = 30.0
"""What a machine with many other processes may add to it."""


@contextlib.contextmanager
def crawling(
    folder: Path, *options: str, page_s: float, cut_first: bool = False
) -> Iterator[tuple[subprocess.Popen[bytes], CuttableWay, SlowSites]]:
    port = free_port()
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(folder / "server", port=port))
        web = stack.enter_context(SlowSites(3, page_s=page_s, pages=1_000_000))
        way = stack.enter_context(CuttableWay(port))
        if cut_first:
            way.cut()
        rules = {"min_delay": "50ms", "delay_factor": 0, "timeout": "60s"}
        command = [sys.executable, "-c", PATIENT, "crawl", str(policy(folder, web.urls, politeness=rules))]
        command += [f"--store=redis://127.0.0.1:{way.port}/0?shards=4", f"--repository={folder / 'copies'}", "--json"]
        command += ["-s", "WEBFOUNTAIN_HEARTBEAT_SECONDS=2", f"--report={folder / 'report.json'}", *options]
        with (folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            yield process, way, web
        finally:
            process.kill()
            process.wait()


def catches_sigterm(process: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Its status after SIGTERM, and after how long."""
    printed = time.monotonic()
    process.send_signal(signal.SIGTERM)
    return process.wait(90.0), time.monotonic() - printed


@pytest.mark.parametrize(("options", "page_s"), [((), 0.1), ((), 30.0), (("--ants=2",), 0.1)], ids=str)
def test_a_signal_ends_a_crawl_whose_remote_server_does_not_answer(
    tmp_path: Path, options: tuple[str, ...], page_s: float
) -> None:
    with crawling(tmp_path, *options, page_s=page_s) as (process, way, web):
        wait_for(lambda: sum(web.under_way.values()))
        way.cut()
        status, seconds = ended(process)
    assert (status, seconds < PROMISED_S + SLOW_MACHINE_S) == (0, True), (tmp_path / "stderr").read_text()
    assert json.loads((tmp_path / "report.json").read_bytes())["finish_reason"] == "shutdown"
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_a_second_signal_ends_the_crawl_without_its_server(tmp_path: Path) -> None:
    with crawling(tmp_path, page_s=30.0) as (process, way, web):
        wait_for(lambda: sum(web.under_way.values()))
        way.cut()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # two at once would be one
        _, seconds = ended(process)
    assert seconds < 3.0 + SLOW_MACHINE_S
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_a_signal_ends_a_crawl_that_waits_for_its_server_since_it_began(tmp_path: Path) -> None:
    with crawling(tmp_path, page_s=0.1, cut_first=True) as (process, _, _):
        wait_for(lambda: catches_sigterm(process.pid))
        status, seconds = ended(process)
    assert (status, seconds < PROMISED_S + SLOW_MACHINE_S) == (0, True), (tmp_path / "stderr").read_text()
