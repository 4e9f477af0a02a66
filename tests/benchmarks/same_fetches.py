"""Print the fetches of a seeded crawl under a manual clock: ``python -m tests.benchmarks.same_fetches [--plain]``.

To be run on two commits and compared with ``diff``: it runs on every commit that has `tests.frontier.drive`, with the
checkout first in PYTHONPATH. A web of 10 sites at 8 addresses and 300 pages, of which each changes at its own rate, is
crawled for 6 periods with a budget of half its pages a period; with ``--plain`` once, without a budget; with
``--ranked`` by PageRank and backlinks, ranked in this process, five times as many pages with a budget of a quarter. The
digest at the end is of the order in which pages were fetched.
"""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.frontier.drive import Drive, collection_of
from tests.ranking.rankers import AtOnce
from webfountain.ranking.link_importance import live_importance

if TYPE_CHECKING:
    from webfountain.records import Fetch

SITES = 10
PAGES = 30
PERIOD_S = 300.0
PERIODS = 6
Answer = tuple[int, dict[str, str], bytes, float]


class ChangingWeb:
    """Pages with a text that is a function of their rate and of time."""

    def __init__(self, pages: int) -> None:
        rng = random.Random(8)
        hosts = [f"site{n}.example" for n in range(SITES)]
        self.addresses = {host: [f"203.0.113.{n % 8}"] for n, host in enumerate(hosts)}
        self.urls = [f"https://{host}/{n}" for host in hosts for n in range(pages)]
        self._every = {url: PERIOD_S * 2.0 ** rng.uniform(-1.0, 6.0) for url in self.urls}
        self._links = {url: rng.sample(self.urls, 4) for url in self.urls}

    def answer(self, fetch: Fetch, at: float) -> Answer:
        """Return a page with its version in every sentence, so that each change counts."""
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
    is_plain, is_ranked = "--plain" in sys.argv, "--ranked" in sys.argv
    pages = 5 * PAGES if is_ranked else PAGES  # of each site
    web = ChangingWeb(pages)
    budget = "" if is_plain else f"capacity_pages_per_period = {len(web.urls) // (4 if is_ranked else 2)}\nperiods = 4"
    score = '\n[policies.default.score]\npagerank = 0.8\nbacklinks = 0.2\n[ranking]\nevery = "60s"' if is_ranked else ""
    collection = collection_of(
        web.urls[::pages], collection='scope = "any"', period=f"{PERIOD_S:.0f}s", rest=budget + score
    )
    folder = tempfile.TemporaryDirectory()
    importance = live_importance(collection, Path(folder.name), writer="ant", at=0.0, ranker=AtOnce())
    drive = Drive(collection, web.answer, recrawl=not is_plain, importance=importance)
    drive.addresses = web.addresses
    drive.run(seconds=PERIODS * PERIOD_S, steps=2_000_000)
    for at, kind, url in drive.log:
        print(f"{at:.3f} {kind} {url}")
    order = [url for _, kind, url in drive.log if kind == "page"]
    print(len(order), hashlib.sha1("\n".join(order).encode(), usedforsecurity=False).hexdigest(), dict(drive.outcomes))


if __name__ == "__main__":
    main()
