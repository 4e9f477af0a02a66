"""From census to weights at 10^7 known pages, beside a loop: ``python -m tests.benchmarks.bench_planning``.

A census of 256 buckets is drawn, a plan is made from it for each strategy, as the controller does at a cycle's end:
in a thread beside the loop. The loop meanwhile reads pages (links and text of 20 kB of HTML) and yields after each;
the longest time between two of its turns is set beside that of a loop without planning. The dominating cost is the
calendars' linear programs. The first plan pays for the imports too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.buckets import BUCKETS, intervals_of
from webfountain.frontier.controller import make_plan
from webfountain.frontier.schedule import Bounds
from webfountain.frontier.work import CensusTaken
from webfountain.policy.tables import CycleTable
from webfountain.records import CensusRow
from webfountain.repository.text import text_of
from webfountain.store.base import BucketCensus

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.plan import Plan

GOAL_S = 3.0
DAY = 86_400.0
AT = 20_000 * DAY
PAGE = (
    "<html><body>" + "<p>A page with <a href='/some/where'>a link</a> and words.</p>" * 320 + "</body></html>"
).encode()


def main() -> None:
    """One line for each strategy and size."""
    asyncio.run(_measure(lambda: time.sleep(1.0), "no planning"))
    for strategy in (1, 2, 3, "fountain"):
        for pages in (10_000, 10_000_000):
            taken = census(pages)
            cycle = CycleTable(strategy=strategy, capacity_pages_per_period=pages // 14)  # type: ignore[arg-type]
            work = partial(make_plan, taken, cycle=cycle, bounds=Bounds(), clocks=None)
            asyncio.run(_measure(work, f"{strategy} {pages:.0e}"))


def census(pages: int, *, seed: int = 1) -> CensusTaken:
    """Fourteen periods of a crawl that visits every page once in 30 days or once in its own interval."""
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
            watched=float(fetches[i] * gap[i]),
        )
        for period in range(14)
        for i in range(BUCKETS)
    ]
    return CensusTaken(AT, buckets, rows, pages // 50)


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
    """Seconds between two turns of the loop while it reads pages."""
    gaps, before = [], time.monotonic()
    while not stop.is_set():
        text_of(PAGE, "text/html", "utf-8")
        await asyncio.sleep(0)
        now = time.monotonic()
        gaps.append(now - before)
        before = now
    return gaps


if __name__ == "__main__":
    main()
