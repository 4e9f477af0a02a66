"""The servers of the tests leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.servers.valkey import single

ROOT = Path(__file__).resolve().parents[2]
DIES = """
import os, signal
from tests.servers.valkey import single
with single() as (_, client):
    print(client.info("server")["process_id"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_running(process: int) -> bool:
    """Return whether a process runs and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(process: int) -> None:
    until = time.monotonic() + 120.0
    while is_running(process):
        assert time.monotonic() < until, "the server outlives its test"
        time.sleep(0.02)


def test_a_server_ends_with_a_test_process_that_is_killed() -> None:
    """Pytest-xdist kills a worker that takes more than ten seconds to exit."""
    done = subprocess.run(
        [sys.executable, "-c", DIES], cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, check=False
    )
    wait_for_end(int(done.stdout))


def test_a_server_that_does_not_answer_ends_with_its_block() -> None:
    """An earlier version left a server running if its answer came late on a busy machine."""
    with single() as (_, client):
        process = client.info("server")["process_id"]
        os.kill(process, 19)  # SIGSTOP
    wait_for_end(process)
