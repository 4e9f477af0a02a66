"""How long the sites of a dead ant wait, from SIGKILL to the first request of another ant, and how long an end takes.

Dominated by the lease (two heartbeats, of which one at least is left when an ant dies), the site's delay, and the half
second between two looks at what is due. ``python -m tests.benchmarks.bench_ants``; two crawls by four ants at a
heartbeat of 5 s and of 1 s, each of which is then ended by SIGTERM. The waits are seen from the sites' servers. The
figures are wall time, for that is what the question is about; on a busy machine the others' next heartbeat comes late.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from tests.acceptance.test_ants import opened, until
from tests.acceptance.test_chaos import DELAY, Chaos
from tests.servers.town import Town
from webfountain.frontier.colony import ants_of


def measured(beat_s: float) -> tuple[list[float], float]:
    """Seconds from the kill to the next request, for each address that the dead ant had; from SIGTERM to the end."""
    town = Town([f"127.0.11.{number}" for number in range(1, 21)], 4, 60)
    with tempfile.TemporaryDirectory() as folder, town, Chaos(town, Path(folder) / "s", ants=4, beat_s=beat_s) as chaos:
        until(lambda: len({visit.address for visit in town.visits}) == 20 and len(chaos.ants()) == 4)
        time.sleep(4.0 * beat_s)  # until sites are shared out
        victim = _busiest(Path(folder) / "s")
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(4.0 * beat_s + 4.0)
        chaos.crawl.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        chaos.crawl.process.wait()
        ended_s = time.monotonic() - began
    first: dict[str, float] = {}
    for visit in town.visits:
        if visit.start > killed + 0.1:
            first.setdefault(visit.address, visit.start)
    waits = [at - killed for at in first.values() if at - killed > 4 * DELAY]
    assert len(first) == 20, "somebody asks at every address again"
    assert waits, "the ant that was killed had an address"
    return sorted(waits), ended_s


def _busiest(folder: Path) -> int:
    """The process that has the most sites: one that started late may have none yet."""
    with opened(folder) as store:
        assert store.claims is not None
        ants = ants_of(store.claims, time.time())
    return int(max(ants, key=lambda name: ants[name].sites).rsplit("-", 2)[1])


def main() -> None:
    """Print both."""
    for beat_s in (5.0, 1.0):
        waits, ended_s = measured(beat_s)
        print(
            f"heartbeat {beat_s:.0f} s: {len(waits)} addresses of the dead ant, next request after {waits[0]:.1f} s at "
            f"least, {statistics.median(waits):.1f} s (median), {waits[-1]:.1f} s at most; a signal ended all after "
            f"{ended_s:.1f} s"
        )


if __name__ == "__main__":
    main()
