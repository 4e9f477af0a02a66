"""Measure what a hostile robots.txt costs: the extraction of our rules in a separate process, then reading and asking
the rules.

``python -m tests.benchmarks.bench_robots`` (some seconds). Dominated by splitting 500 KiB into lines. The yardstick is
Protego's reading of an ordinary file of 2,000 rules in the same run; goals are that the loop's share, reading what was
taken out and asking it for sixteen URLs, is below three times that.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from protego import Protego

from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, binding_part

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 5
MOST = 3.0
ORDINARY = "User-agent: *\n" + "".join(f"Disallow: /folder/{number}\n" for number in range(2000))
HEAD = b"User-agent: *\n"
HOSTILE = {
    "agents": b"".join(b"User-agent: b%d\n" % n for n in range(15_000)) + HEAD + b"Disallow: /a\n" * 19_000,
    "rules": HEAD + b"".join(b"Disallow: /%x\n" % n for n in range(40_000)),
    "ends": HEAD + b"".join(b"Disallow: /*%xz$\n" % n for n in range(30_000)),
    "asterisks": HEAD + b"Disallow: /" + b"a*" * 250_000,
    "long": HEAD + b"".join(b"Disallow: /%d*%s\n" % (n, b"%C3%A9" * 600) for n in range(130)),
}
URLS = [f"http://h.example/{number}{'ab/' * 600}" for number in range(16)]


def cpu_s(act: Callable[[], object]) -> float:
    """Return the median CPU seconds."""
    times = []
    for _ in range(RUNS):
        start = time.thread_time()
        act()
        times.append(time.thread_time() - start)
    return statistics.median(times)


def main() -> int:
    """Return 0 if no file costs the loop too much."""
    yardstick = cpu_s(lambda: Protego.parse(ORDINARY))
    worst = 0.0
    for name, body in HOSTILE.items():
        part = binding_part(body[:MAX_ROBOTS_BYTES], "bot")
        apart = cpu_s(lambda body=body: binding_part(body[:MAX_ROBOTS_BYTES], "bot"))  # type: ignore[misc]
        read = cpu_s(lambda part=part: RobotsRules.parse(part, "bot"))  # type: ignore[misc]
        rules = RobotsRules.parse(part, "bot")
        rules.allowed(URLS[0])
        ask = cpu_s(lambda rules=rules: [rules.allowed(url) for url in URLS])  # type: ignore[misc]
        worst = max(worst, (read + ask) / yardstick)
        print(
            f"{name:>10}: apart {1e3 * apart:6.1f} ms, {len(part):6} bytes left; the loop {1e3 * read:5.1f} ms to "
            f"read, {1e3 * ask:5.1f} ms for 16 URLs, {(read + ask) / yardstick:.2f} yardsticks (goal: below {MOST})"
        )
    return int(worst >= MOST)


if __name__ == "__main__":
    sys.exit(main())
