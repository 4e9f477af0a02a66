"""Measure planning at 10^7 known pages in a thread beside a loop: ``python -m tests.benchmarks.bench_planning``.

A plan is made from a census of 256 buckets for each strategy, as by the controller at the end of a cycle. The loop
meanwhile reads pages of 20 kB of HTML, and yields after each page. The longest time between two of its turns is
compared with a loop without planning. Most of the cost is the calendars' linear programs. The first plan also includes
the imports.

With ``--crawl``, plans are made during real crawls of generated sites on loopback. `heartbeat` measures the gaps
between beats of the loop and between requests, with and without planning. Printed are the medians of the runs, from the
second plan on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.acceptance.crawls import policy, run
from webfountain import settings as door
from webfountain.core.buckets import BUCKETS, intervals_of
from webfountain.formats.document import text_of
from webfountain.formats.media_type import ContentType
from webfountain.frontier.batch import CensusSnapshot
from webfountain.frontier.planning.make_plan import census_of, make_plan
from webfountain.frontier.planning.plan import Bounds
from webfountain.lab.demo.process import DemoServer
from webfountain.policy.tables import CycleTable
from webfountain.records import CensusRow
from webfountain.store.answers import BucketCensus

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from webfountain.frontier.planning.plan import Plan

    Times = npt.NDArray[np.float64]

GOAL_S = 3.0
KNOWN = 10_000_000
DAY = 86_400.0
AT = 20_000 * DAY
RUNS = 3
PERIOD_S = 1
CAPACITY = 1_000  # more than a shared machine can fetch
SECONDS = 34  # five plans after the first
WEB = {"sites": 20, "pages": 60_000, "body_bytes": 20_000, "links": 60, "period": 0}
PAGE = (
    "<html><body>" + "<p>A page with <a href='/some/where'>a link</a> and words.</p>" * 320 + "</body></html>"
).encode()


def main() -> None:
    """Print a line for each strategy and size, or with --crawl a few lines for each strategy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crawl", action="store_true", help="make the plans within real crawls")
    if parser.parse_args().crawl:
        for strategy in ("fountain", 2):
            _print(strategy, [_crawl(strategy) for _ in range(RUNS)])
        return
    asyncio.run(_measure(lambda: time.sleep(1.0), "no planning"))
    for strategy in (1, 2, 3, "fountain"):
        for pages in (10_000, KNOWN):
            taken = census(pages)
            cycle = CycleTable(strategy=strategy, capacity_pages_per_period=pages // 14)  # type: ignore[arg-type]
            work = partial(_made, taken, cycle)
            asyncio.run(_measure(work, f"{strategy} {pages:.0e}"))


def _made(taken: CensusSnapshot, cycle: CycleTable) -> Plan:
    return make_plan(census_of(taken, cycle), at=taken.at, cycle=cycle, bounds=Bounds(), clocks=None)


def census(pages: int, *, seed: int = 1) -> CensusSnapshot:
    """Return the census of fourteen periods of a crawl that visits every page once in 30 days or once in its own
    interval.
    """
    rng = np.random.default_rng(seed)
    size = 1 + (rng.dirichlet(np.full(BUCKETS, 2.0)) * pages).astype(np.int64)
    interval = intervals_of(np.arange(BUCKETS), DAY / 96)
    gap = np.minimum(interval, 30 * DAY)
    fetches = (size * DAY / gap).astype(np.int64)
    found = (fetches * -np.expm1(-gap / interval)).astype(np.int64)
    buckets = {i: BucketCensus(int(size[i]), float(size[i] * (AT - gap[i] / 2))) for i in range(BUCKETS)}
    first = int(AT // DAY) - 14
    rows = [
        CensusRow(
            period=first + period,
            bucket=i,
            fetches=int(fetches[i]),
            changes=int(found[i]),
            seconds=0.3 * float(fetches[i]),
            links=int(0.05 * fetches[i]),
            births=int(0.03 * fetches[i]),
            observed_time=float(fetches[i] * gap[i]),
        )
        for period in range(14)
        for i in range(BUCKETS)
    ]
    return CensusSnapshot(AT, buckets, rows, pages // 50)


async def _measure(work: Callable[[], Plan | None], name: str) -> None:
    stop = threading.Event()
    turns = asyncio.create_task(_turns(stop))
    wall, cpu = time.monotonic(), time.process_time()
    plan = await asyncio.to_thread(work)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    stop.set()
    gaps = await turns
    own = plan.seconds if plan is not None else 0.0
    print(
        f"{name:>16}: wall {wall:5.2f} s, of that the plan's CPU {own:5.2f} s (goal {GOAL_S}); "
        f"loop turns: median {1000 * float(np.median(gaps)):.1f} ms, longest {1000 * max(gaps):.0f} ms, {len(gaps)}",
        flush=True,
    )


async def _turns(stop: threading.Event) -> list[float]:
    """Return the seconds between two turns of the loop while it reads pages."""
    gaps, before = [], time.monotonic()
    while not stop.is_set():
        text_of(PAGE, ContentType("text/html", "utf-8"))
        await asyncio.sleep(0)
        now = time.monotonic()
        gaps.append(now - before)
        before = now
    return gaps


def _crawl(strategy: int | str) -> dict[str, Times]:
    """Return the monotonic times of a crawl's beats and requests, and (census, 10^7 planned, adopted) of its plans."""
    cycle = {"strategy": strategy, "period": f"{PERIOD_S}s", "capacity_pages_per_period": CAPACITY}
    with tempfile.TemporaryDirectory(prefix="webfountain-bench-") as name, DemoServer(**WEB) as server:
        folder = Path(name)
        file = folder / "beats.json"
        extensions = {**door.EXTENSIONS, "tests.benchmarks.heartbeat.Heartbeat": 1}
        options = [f"EXTENSIONS={json.dumps(extensions)}", f"BENCH_HEARTBEAT={file}"]
        given = [f"--max-seconds={SECONDS}", *(word for each in options for word in ("-s", each))]
        run(policy(folder, server.urls, cycle=cycle), folder / "store", *given, seconds=10 * SECONDS)
        return {key: np.array(times) for key, times in json.loads(file.read_text()).items()}


def _print(strategy: int | str, runs: list[dict[str, Times]]) -> None:
    """Print the medians of the runs."""
    found = [_figures(each) for each in runs]
    print(f"strategy {strategy}, {len(runs)} crawls")
    for name in found[0]:
        each = [figures[name] for figures in found]
        print(f"{name:>44}: {np.median(each):8.2f}  ({', '.join(f'{value:.2f}' for value in each)})", flush=True)


def _figures(run: dict[str, Times]) -> dict[str, float]:
    first, plans, requests = run["plans"][0], run["plans"][1:], run["requests"]
    late = plans[:, 2] >= requests[-1]
    end, plans = min([requests[-1], *plans[late, 0]]), plans[~late]
    assert len(plans) >= 2, f"{len(plans)} plans were made after the first"
    made = plans[:, 1] - plans[:, 0]
    found = {"plans": len(plans), "census to weights, s: median": float(np.median(made)), "longest": float(made.max())}
    found["the first, with imports"] = float(first[1] - first[0])
    spans = {"planning": float((plans[:, 2] - plans[:, 0]).sum())}
    spans["no planning"] = end - first[2] - spans["planning"]
    for name, times in (("loop", run["beats"]), ("requests", requests)):
        gaps = np.diff(times)
        within = [(times[1:] > begin) & (times[:-1] < until) for begin, _, until in plans]
        busy, counted = np.any(within, axis=0), (times[:-1] > first[2]) & (times[1:] <= end)
        for state, chosen in (("planning", busy & counted), ("no planning", ~busy & counted)):
            found[f"{name}, {state}: longest gap, ms"] = 1000 * float(gaps[chosen].max())
            found[f"{name}, {state}: 99.9 % of gaps, ms"] = 1000 * float(np.quantile(gaps[chosen], 0.999))
            if name == "requests":
                found[f"pages a second, {state}"] = chosen.sum() / spans[state]
    return found


if __name__ == "__main__":
    main()
