"""Ants as processes whose server goes back in time: no page is lost, none is told twice, nobody stands still."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import pytest

from tests.acceptance.crawls import ROOT, policy
from tests.acceptance.test_ants import until
from tests.acceptance.test_chaos import breaches
from tests.servers.set_backs import WAYS, TimeMachine
from tests.servers.town import Town
from tests.store.invariants import check_valid
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.servers.set_backs import Way
    from webfountain.store.contract import FrontierStore

STALL_S = 30.0


class TreeTown(Town):
    """Each page links two others of its site: so links are found until the end."""

    def page(self, path: str) -> tuple[str, bytes]:
        """Status and body."""
        number = int(path[2:]) if path[:2] == "/p" and path[2:].isdigit() else 0
        if number >= self._pages or path.endswith(".txt"):
            return "404 Not Found", b""
        below = [child for child in (2 * number + 1, 2 * number + 2) if child < self._pages]
        links = "".join(f'<a href="/p{child}">{child}</a>' for child in below)
        return "200 OK", f"<title>{path}</title><p>page {path} of this site {links}".encode()


class Troop:
    """Ants on the server of a time machine, each a process of its own."""

    def __init__(self, collection: Path, url: str, folder: Path, ants: int) -> None:
        self.errors = [folder / f"ant{number}.stderr" for number in range(ants)]
        self.ants = [self._start(collection, url, folder, file) for file in self.errors]

    @staticmethod
    def _start(collection: Path, url: str, folder: Path, errors: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "webfountain", "crawl", str(collection), f"--store={url}", "--until-idle"]
        command += [f"--repository={folder / 'copies'}", "--json", "-sWEBFOUNTAIN_HEARTBEAT_SECONDS=2"]
        with errors.open("wb") as file:
            return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=file)

    def wait(self, seconds: float) -> list[int]:
        """How each ended."""
        return [ant.wait(seconds) for ant in self.ants]

    def said(self) -> str:
        """What they wrote on stderr."""
        return "\n".join(file.read_text() for file in self.errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for ant in self.ants:
            if ant.poll() is None:
                ant.kill()
            ant.wait()


def opened(machine: TimeMachine) -> closing[FrontierStore]:
    return closing(open_store(f"{machine.url}?shards=16", collection=None, period_s=None))


def check(machine: TimeMachine, town: TreeTown, pages: int) -> None:
    """Every page is known, under its own key, and told once; nobody stood still."""
    with opened(machine) as store:
        records = [record for _, record in store.pages.records()]
        news = Counter(change.url for _, change in store.changes.after(None, 10**6) if change.verdict == "new")
        check_valid(store)
    assert Counter(record.state for record in records) == {"crawled": pages}
    assert len({record.url for record in records}) == pages, "no record twice"
    for record in records:
        body = town.page("/" + record.url.split("/", 3)[3])[1]
        assert record.digest == hashlib.sha1(body).hexdigest(), record.url
    assert len(news) == pages
    assert set(news.values()) == {1}
    starts = sorted(visit.start for visit in town.visits)
    assert max(later - earlier for earlier, later in pairwise(starts)) < STALL_S


def crawl(
    way: Way,
    folder: Path,
    *,
    addresses: Sequence[str],
    pages: int,
    ants: int,
    rounds: int,
    seed: int,
    delay_ms: int = 20,
) -> tuple[TreeTown, Troop]:
    """A crawl with so many set-backs, of up to a second each, to its end."""
    rng = random.Random(seed)
    with TimeMachine(way) as machine, TreeTown(addresses, 1, pages) as town:
        assert isinstance(town, TreeTown)
        politeness = {"min_delay": f"{delay_ms}ms", "delay_factor": 0}
        collection = policy(folder, town.urls, politeness=politeness, discovery={"sitemaps": False})
        with Troop(collection, f"{machine.url}?shards=16", folder, ants) as troop:
            until(lambda: len(town.visits) > 4 * len(town.urls), 120.0)
            for _ in range(rounds):
                machine.remember()
                time.sleep(rng.uniform(0.1, 1.0))
                machine.go_back()
                time.sleep(rng.uniform(0.3, 1.0))
            ends = troop.wait(600.0)
            assert set(ends) == {0}, troop.said()
            assert "Traceback" not in troop.said()
            check(machine, town, pages * len(town.urls))
    return town, troop


def test_a_short_run_of_set_backs_loses_no_page(tmp_path: Path) -> None:
    crawl(
        "failover", tmp_path, addresses=["127.0.31.1", "127.0.31.2", "127.0.31.3"], pages=60, ants=2, rounds=2, seed=1
    )


def test_ants_of_a_server_that_is_emptied_end_with_one_line_and_status_1(tmp_path: Path) -> None:
    with TimeMachine("snapshot") as machine, TreeTown(["127.0.31.9"], 1, 500) as town:
        collection = policy(tmp_path, town.urls, politeness={"min_delay": "20ms", "delay_factor": 0})
        with Troop(collection, machine.url, tmp_path, 2) as troop:
            with machine.client() as client:
                until(lambda: len(town.visits) > 20 and client.hlen("{webfountain}ants") == 2, 240.0)
                client.flushall()
            assert troop.wait(240.0) == [1, 1]
            assert "Traceback" not in troop.said()
            for file in troop.errors:
                assert file.read_text().splitlines()[-1].count("the store is gone, because its server was emptied") == 1


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(int(os.environ.get("CHAOS_SEEDS", "1"))))
@pytest.mark.parametrize("way", WAYS)
def test_twenty_rounds_of_set_backs(way: Way, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    addresses = [f"127.0.32.{number}" for number in range(1, 25)]
    town, troop = crawl(way, tmp_path, addresses=addresses, pages=100, ants=4, rounds=20, seed=seed, delay_ms=250)
    starts = sorted(visit.start for visit in town.visits)
    overlaps, hasty = breaches(town.visits)
    with capsys.disabled():
        print(f"\n{way}: {len(starts)} asked, longest pause {max(b - a for a, b in pairwise(starts)):.1f} s,")
        print(f"overlaps {len(overlaps)}, short gaps {len(hasty)}, {troop.said().count('was set back')} times noticed")
