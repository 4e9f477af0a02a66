"""``crawl --serve`` serves the collection while it is crawled, and ends with the crawl, however that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.crawls import policy
from webfountain.lab.demo.process import DemoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "webfountain serves at "


@pytest.fixture(scope="module")
def web() -> Iterator[DemoServer]:
    with DemoServer(seed=3, sites=2, pages=20, period=0, latency=0.002) as server:
        yield server


def ask(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=120) as response:
        return json.loads(response.read())


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_service_lives_as_long_as_the_crawl(web: DemoServer, tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "webfountain", "crawl", str(policy(tmp_path, web.urls))]
    command += [
        f"--store=rocksdb://{tmp_path}/store",
        "--serve=127.0.0.1:0",
        "--log-format=json",
        "-s",
        "LOG_LEVEL=INFO",
    ]
    errors = (tmp_path / "errors").open("w+")
    with errors, subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors) as crawl:
        line = wait_for(lambda: next((x for x in read(errors.name) if x.startswith(PREFIX)), None))
        address = line.removeprefix(PREFIX).split("/login")[0]
        wait_for(lambda: known(f"{address}/v1/collections/store/status") >= 20)
        found = wait_for(lambda: ask(f"{address}/v1/collections/store/live")["items"])
        assert found[0]["pid"] == crawl.pid
        crawl.send_signal(end)
        crawl.wait(30)
        wait_for(lambda: not answers(address))
        logged = [json.loads(x) for x in read(errors.name) if not x.startswith(PREFIX)]
        assert {each["level"] for each in logged} >= {"info"}


def read(file: str) -> list[str]:
    return Path(file).read_text().splitlines()


def known(address: str) -> int:
    try:
        return int(ask(address)["known"])
    except OSError:
        return 0  # the crawl has not made its store yet


def answers(address: str) -> bool:
    try:
        ask(f"{address}/healthz")
    except OSError:
        return False
    return True


def wait_for(found: Any) -> Any:
    until = time.monotonic() + 240
    while not (value := found()):
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)
    return value


def test_a_crawl_goes_on_where_the_service_cannot_be_started(web: DemoServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "webfountain", "crawl", str(policy(tmp_path, web.urls)), "--max-seconds=0.5"]
    command += [f"--store=rocksdb://{tmp_path}/store", f"--serve={tmp_path}/no/such/socket"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert f"the crawl continues without a service: listen {tmp_path}/no/such/socket: " in done.stderr
