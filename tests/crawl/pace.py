"""How slow this machine is just now: for bounds in seconds that another process's work must not break."""

from __future__ import annotations

import time

__all__ = ["slowness"]

SAMPLE_S = 0.2
MOST = 3.0
"""More patience would make a test run of minutes out of a short jam."""


def slowness() -> float:
    """How many times as long as on a core of its own work takes at the moment, from 1 to MOST."""
    began, cpu = time.monotonic(), time.thread_time()
    while time.thread_time() - cpu < SAMPLE_S:
        sum(range(1000))
    return min(max(1.0, (time.monotonic() - began) / SAMPLE_S), MOST)
