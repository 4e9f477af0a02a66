"""Measure what dead links cost: ``python -m tests.benchmarks.bench_dead_links``, half a minute of CPU.

`live_webs.DeadLinks` has three dead URLs for each live page. Every tenth page disappears and returns, and one dead URL
of fifty gets a page. The frontier runs under a manual clock for 88 days, with `fountain` and with `uniform` (all pages
in turn). Printed are figures after day 28: the obsolete share, the share of fetches of missing pages (goal: at most 10
%), and the median of the days until a returned page was fetched (goal: at most as with `uniform`). With ``--release``,
thirty new pages and three hundred dead URLs are linked on day 45. Then the first fetches of these dead URLs within ten
days are printed too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from tests.benchmarks.live_runs import Setting, offline
from tests.benchmarks.live_webs import DeadLinks

WARM_UP, DAYS = 28, 60


def main() -> None:
    """Print a row for each policy and part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parts", default="3,7", help="fetches a day are live pages over these")
    parser.add_argument("--policies", default="uniform,fountain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-births", dest="births", action="store_false", help="no dead URL ever gets a page")
    parser.add_argument("--release", action="store_true", help="on day 45 the site names many new URLs")
    options = parser.parse_args()
    for part in options.parts.split(","):
        for policy in options.policies.split(","):
            _report(policy, int(part), options.seed, births=options.births, release=options.release)


def _report(policy: str, part: int, seed: int, *, births: bool, release: bool) -> None:
    web = DeadLinks(seed, births=births, release=release)
    with tempfile.TemporaryDirectory(prefix="webfountain-dead-") as folder:
        ran = offline(Setting(policy, 0.0, WARM_UP + DAYS, 1 / part, seed), web, Path(folder))
    late = [check for check in ran.checks if check.day > WARM_UP]
    share = sum(check.obsolete for check in late) / sum(check.pages for check in late)
    fetched = [(day, url) for day, url in ran.fetched if day > WARM_UP]
    dead = sum(url not in web.truth(day) for day, url in fetched)
    waits = []
    for path, (_, back) in web.absent.items():
        if WARM_UP < back < WARM_UP + DAYS - 20:
            at = [day for day, url in ran.fetched if url == web.bases[0] + path and day >= back]
            waits.append((at[0] if at else WARM_UP + DAYS) - back)
    print(
        f"/{part} {policy:9} obsolete {share:.4f}; of {len(fetched)} fetches {dead / len(fetched):.1%} found nothing; "
        f"{len(waits)} pages came back, found after {median(waits):.1f} days",
        flush=True,
    )
    if release:
        since = [(day - web.RELEASED, url) for day, url in ran.fetched if 0 <= day - web.RELEASED < 30]
        apis, guides = ({url: ago for ago, url in reversed(since) if part in url} for part in ("/api/", "/guide/"))
        print(
            f"    of the release within ten days: {sum(ago < 10 for ago in apis.values())} dead URLs; new pages after "
            f"{median(guides.values()):.1f} days, {len(guides)} of {web.GUIDES}"
        )


if __name__ == "__main__":
    main()
