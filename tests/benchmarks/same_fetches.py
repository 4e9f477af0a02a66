"""The fetches of a seeded crawl on a manual clock: ``python -m tests.benchmarks.same_fetches [--plain]``, a line each.

To be run on two commits and compared with ``diff``: it runs on every commit that has `tests.frontier.drive`, with the
checkout first in PYTHONPATH. A web of 10 sites at 8 addresses and 300 pages, of which each changes at its own rate, is
crawled for 6 periods with a budget of half its pages a period; with ``--plain`` once, without a budget. The digest at
the end is of the order in which pages were fetched.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import TYPE_CHECKING

from tests.frontier.drive import Drive, collection_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

SITES = 10
PAGES = 30
PERIOD_S = 300.0
PERIODS = 6
Answer = tuple[int, dict[str, str], bytes, float]


class ChangingWeb:
    """Pages whose text is a function of their rate and of time."""

    def __init__(self) -> None:
        rng = random.Random(8)
        hosts = [f"site{n}.example" for n in range(SITES)]
        self.addresses = {host: [f"203.0.113.{n % 8}"] for n, host in enumerate(hosts)}
        self.urls = [f"https://{host}/{n}" for host in hosts for n in range(PAGES)]
        self._every = {url: PERIOD_S * 2.0 ** rng.uniform(-1.0, 6.0) for url in self.urls}
        self._links = {url: rng.sample(self.urls, 4) for url in self.urls}

    def answer(self, fetch: Fetch, at: float) -> Answer:
        """A page with its version in every sentence, so that each change counts."""
        every = self._every.get(fetch.url)
        if every is None:
            return 404, {}, b"", 0.1
        version = int(at / every)
        words = " ".join(f"word{version}x{n}" for n in range(40))
        links = "".join(f"<a href='{link}'>link</a>" for link in self._links[fetch.url])
        body = f"<html><title>{fetch.url}</title><body>{words}{links}</body></html>"
        return 200, {"Content-Type": "text/html"}, body.encode(), 0.2


def main() -> None:
    """Print the fetches and their digest."""
    web = ChangingWeb()
    budget = "" if "--plain" in sys.argv else f"capacity_pages_per_period = {len(web.urls) // 2}\nperiods = 4"
    seeds = web.urls[::PAGES]
    drive = Drive(
        collection_of(seeds, collection='scope = "any"', period=f"{PERIOD_S:.0f}s", rest=budget),
        web.answer,
        recrawl="--plain" not in sys.argv,
    )
    drive.addresses = web.addresses
    drive.run(seconds=PERIODS * PERIOD_S, steps=2_000_000)
    for at, kind, url in drive.log:
        print(f"{at:.3f} {kind} {url}")
    pages = [url for _, kind, url in drive.log if kind == "page"]
    print(len(pages), hashlib.sha1("\n".join(pages).encode(), usedforsecurity=False).hexdigest(), dict(drive.outcomes))


if __name__ == "__main__":
    main()
