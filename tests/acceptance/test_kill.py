"""Killed at random moments and resumed, a crawl ends with what an undisturbed one ends with (``kill -9``).

The web's time stands still, so two crawls can be compared page by page. What may be asked twice is known from the
store as the kill left it: a page that is settled there must never be asked again.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import Crawl, copies, policy, records, run
from webfountain.errors import WebfountainError
from webfountain.lab.demo.process import DemoServer

if TYPE_CHECKING:
    from webfountain.lab.demo.server import LoggedVisit

IDLE = "--until-idle"
Fact = tuple[str, str, int, int, str | None, int | None]


def facts(store: Path) -> set[Fact]:
    """What the issue compares of every known URL."""
    return {(r.url, r.state, r.checks, r.changes, r.digest, r.status) for r in records(store)}


def settled(store: Path) -> set[str]:
    """URLs that were fetched and settled by now; none where the store does not exist yet."""
    with contextlib.suppress(WebfountainError):
        return {r.url for r in records(store) if r.state not in ("never-crawled", "refused")}
    return set()


def pages_of(visits: list[LoggedVisit]) -> list[str]:
    """URLs of the visits that were no robots.txt and no sitemap."""
    return [v.site + v.path for v in visits if not v.path.startswith(("/robots.txt", "/sitemap"))]


def check_copies(store: Path) -> None:
    """Every crawled page's copy has its digest, and another tool reads every file."""
    kept = copies(store)
    for record in records(store):
        if record.state == "crawled":
            assert record.copy is not None, record.url
            body = kept.read(record.copy, record.url).body
            assert hashlib.sha1(body, usedforsecurity=False).hexdigest() == record.digest
    kept.close()
    files = sorted(str(file) for file in (store / "repository").glob("*.warc.gz"))
    warcio = Path(sys.executable).with_name("warcio")
    checked = subprocess.run([str(warcio), "check", *files], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout[-2000:] + checked.stderr[-2000:]


class KilledCrawl:
    """One crawl that is killed `kills` times, each time after a random number of further visits."""

    def __init__(self, server: DemoServer, collection: Path, store: Path, rng: random.Random, *, pages: int) -> None:
        self._server, self._collection, self._store, self._rng, self._pages = server, collection, store, rng, pages
        self.repeated = 0
        self.killed = 0
        self._visited: Counter[str] = Counter()
        self._settled: set[str] = set()

    def run(self, kills: int) -> None:
        """All lives of the crawl; the last one ends by itself."""
        for _ in range(kills):
            self._live(self._rng.randrange(self._pages // kills))
        self._live(None)

    def _live(self, most: int | None) -> None:
        began = int(self._server.stats()["served"])
        with Crawl(self._collection, self._store, IDLE) as crawl:
            if most is None:
                assert crawl.wait(180) == 0, crawl.errors.read_text()
            else:
                self._kill_after(crawl, began + most)
        time.sleep(0.05)  # what the server has on its desk when its client dies is logged a moment later
        asked = Counter(pages_of(self._server.log(began)))
        assert set(asked.values()) <= {1}, "one life asked a page twice"
        again = asked.keys() & self._settled
        assert not again, f"settled before the kill, and asked again: {sorted(again)[:5]}"
        self.repeated += len(asked.keys() & self._visited.keys())
        self._visited += asked
        self._settled = settled(self._store)

    def _kill_after(self, crawl: Crawl, served: int) -> None:
        """SIGKILL when the server has served so many, or a moment after the start where that is at once."""
        time.sleep(self._rng.uniform(0.0, 0.5))
        while crawl.process.poll() is None and self._server.stats()["served"] < served:
            time.sleep(0.01)
        time.sleep(self._rng.uniform(0.0, 0.03))
        self.killed += crawl.process.poll() is None
        crawl.kill()


def compare(folder: Path, *, runs: int, pages: int, kills: int, seed: int) -> list[KilledCrawl]:
    """One undisturbed crawl, and `runs` crawls that are killed; raises where they differ."""
    with DemoServer(seed=seed, sites=8, pages=pages, period=0, latency=0.001) as server:
        collection = policy(folder, server.urls, policies__default={"revisit": {"min_interval": "1h"}})
        run(collection, folder / "undisturbed", IDLE, seconds=300)
        expected = facts(folder / "undisturbed")
        assert sum(fact[1] == "crawled" for fact in expected) > pages * 0.9
        found = []
        for number in range(runs):
            store = folder / f"killed-{number}"
            crawl = KilledCrawl(server, collection, store, random.Random(1000 * seed + number), pages=pages)
            crawl.run(kills)
            assert facts(store) == expected
            check_copies(store)
            found.append(crawl)
        return found


def test_a_crawl_that_is_killed_and_resumed_ends_like_one_that_is_not(tmp_path: Path) -> None:
    crawls = compare(tmp_path, runs=1, pages=200, kills=3, seed=1)
    assert sum(crawl.killed for crawl in crawls) >= 2


@pytest.mark.soak
def test_twenty_crawls_of_2000_pages_survive_their_kills(tmp_path: Path) -> None:
    crawls = compare(tmp_path, runs=20, pages=2000, kills=5, seed=2)
    killed, repeated = sum(crawl.killed for crawl in crawls), sum(crawl.repeated for crawl in crawls)
    print(f"20 runs, {killed} kills, {repeated} pages asked a second time")
    assert killed >= 60
