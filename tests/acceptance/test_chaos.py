"""Chaos: ants are killed and stopped, their server is killed, at random moments: no page is lost, nobody is harmed."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.acceptance.crawls import ROOT, policy
from tests.acceptance.test_ants import Crawl, opened, processes, until
from tests.servers.town import Town, Visit
from webfountain.config import FountainConfig
from webfountain.frontier.cluster.term import LEASE_BEATS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.records import State

DELAY = 0.25
HAIR_S = 0.02
"""The delay runs from when the ant has an answer; the town's clock is read a moment before and after."""
HAND = FountainConfig().hand
"""URLs of a site that an ant has leased at once, at most: what it had asked and not settled is among them."""


class Fault(NamedTuple):
    """What befell somebody: monotonic seconds of its begin, and of the end of the leases that were held meanwhile."""

    kind: str
    at: float
    end: float


class Outcome(NamedTuple):
    """What a chaos run showed."""

    known: dict[State, int]
    """Pages by state at the end."""
    news: Counter[str]
    """How often the change log says that each page is new."""
    visits: list[Visit]
    """Of pages, in order."""
    overlaps: list[tuple[Visit, Visit]]
    """Pairs of requests at one address that were in service at once."""
    hasty: list[tuple[Visit, Visit]]
    """Pairs at one address whose delay was not kept."""
    faults: list[Fault]
    seconds: float

    def repeats(self) -> dict[Fault | None, Counter[tuple[str, int]]]:
        """Fault -> how many pages of each site (address, port) were asked again after it, having been asked before it.

        Each time that a page is asked again is counted with the last fault since it was asked before; None: there was
        none.
        """
        found: dict[Fault | None, Counter[tuple[str, int]]] = {}
        last: dict[str, Visit] = {}
        for visit in self.visits:
            before = last.get(visit.url)
            if before is not None:
                between = [fault for fault in self.faults if fault.at < visit.start and fault.end > before.start]
                found.setdefault(max(between, key=_begin, default=None), Counter())[visit.address, visit.port] += 1
            last[visit.url] = visit
        return found

    def count(self, kind: str) -> int:
        """How often such a fault befell somebody."""
        return sum(fault.kind == kind for fault in self.faults)


_LOGGED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def _begin(fault: Fault) -> float:
    return fault.at


def breaches(visits: Sequence[Visit]) -> tuple[list[tuple[Visit, Visit]], list[tuple[Visit, Visit]]]:
    """Pairs at one address in service at once, and pairs that followed each other too soon."""
    last: dict[str, Visit] = {}
    overlaps, hasty = [], []
    for visit in sorted(visits, key=lambda visit: visit.start):
        before = last.get(visit.address)
        if before is not None and visit.start < before.end:
            overlaps.append((before, visit))
        elif before is not None and visit.start - before.end < DELAY - HAIR_S:
            hasty.append((before, visit))
        last[visit.address] = visit if before is None or visit.end >= before.end else before
    return overlaps, hasty


class Chaos:
    """A crawl by `ants`, one of which started it, and what befalls it."""

    def __init__(self, town: Town, folder: Path, *, ants: int, beat_s: float, seed: int = 0) -> None:
        self._town, self._folder, self._beat_s = town, folder, beat_s
        self._rng = random.Random(seed)
        self._collection = policy(
            folder.parent,
            town.urls,
            politeness={"min_delay": f"{int(1000 * DELAY)}ms", "delay_factor": 0},
            discovery={"sitemaps": False},
        )
        self.faults: list[Fault] = []
        self._joined: list[subprocess.Popen[bytes]] = []
        self.crawl = Crawl(
            self._collection, folder, f"--ants={ants}", "--until-idle", f"-sWEBFOUNTAIN_HEARTBEAT_SECONDS={beat_s}"
        )

    def ants(self) -> list[int]:
        """The processes of ants that live."""
        living = [ant.pid for ant in self._joined if ant.poll() is None]
        return processes(self.crawl.process.pid, "--repository") + living

    def join(self) -> None:
        """One more ant, by the same command and the store's URL."""
        command = [sys.executable, "-m", "webfountain", "crawl", str(self._collection), "--until-idle", "--json"]
        command += [f"--store=valkey://{self._folder}", f"-sWEBFOUNTAIN_HEARTBEAT_SECONDS={self._beat_s}"]
        with self._folder.with_suffix(".joined").open("ab") as errors:
            self._joined.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors))

    def fault(self, kind: str) -> None:
        """Let something happen to somebody."""
        ants = self.ants()
        if self.crawl.process.poll() is not None or not ants:
            return
        victim, at = self._rng.choice(ants), time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            if kind == "kill":
                os.kill(victim, signal.SIGKILL)
                self.join()
            elif kind == "stop":
                os.kill(victim, signal.SIGSTOP)
                time.sleep(3.0 * self._beat_s)
                os.kill(victim, signal.SIGCONT)
            else:
                for server in processes(self.crawl.process.pid, "valkey-server"):
                    os.kill(server, signal.SIGKILL)
        self.faults.append(Fault(kind, at, time.monotonic() + LEASE_BEATS * self._beat_s))

    def end(self, seconds: float) -> Outcome:
        """Wait until all is done; what came of it."""
        began = time.monotonic()
        self.crawl.process.wait(seconds)
        for ant in self._joined:
            ant.wait(seconds)
        with opened(self._folder) as store:
            news = Counter(change.url for _, change in store.changes.after(None, 10**6) if change.verdict == "new")
            known = dict(store.census.statistics().pages)
            leased = store.census.statistics().leased
        assert leased == 0
        asked = [visit for visit in self._town.visits if not visit.path.endswith(".txt")]
        overlaps, hasty = breaches(self._town.visits)
        asked.sort(key=lambda visit: visit.start)
        return Outcome(known, news, asked, overlaps, hasty, self.faults + self._stalls(), time.monotonic() - began)

    def _stalls(self) -> list[Fault]:
        """When a busy machine kept an ant from its heartbeat, and it cut what was under way: its log says so."""
        stalls, offset = [], time.monotonic() - time.time()
        for file in (self.crawl.errors, self._folder.with_suffix(".joined")):
            for line in file.read_text().splitlines() if file.exists() else ():
                if "believe that this one is dead" in line and (found := _LOGGED.search(line)):
                    logged = datetime.fromisoformat(found[0]).timestamp() + offset
                    stalls.append(Fault("stall", logged - 1.0, logged + 1.0 + LEASE_BEATS * self._beat_s))
        return stalls

    def __enter__(self) -> Chaos:
        return self

    def __exit__(self, *_: object) -> None:
        self.crawl.__exit__()
        for ant in self._joined:
            if ant.poll() is None:
                ant.kill()
            ant.wait()


def check(outcome: Outcome, pages: int) -> None:
    """What must hold after any chaos."""
    assert outcome.known["crawled"] == pages, outcome.known
    assert len(outcome.news) == pages
    assert set(outcome.news.values()) == {1}, "each change is told once"
    breached = len(outcome.overlaps) + len(outcome.hasty)
    assert breached <= outcome.count("stop"), "but one request for each stop, that was on its way"
    repeats = outcome.repeats()
    assert None not in repeats, "nothing is asked again without a fault since"
    assert all(many <= HAND for sites in repeats.values() for many in sites.values()), "but what was in flight"


def test_a_short_chaos_loses_no_page_and_breaks_no_delay(tmp_path: Path) -> None:
    town = Town([f"127.0.9.{number}" for number in range(1, 7)], 2, 6)
    with town, Chaos(town, tmp_path / "store", ants=3, beat_s=1.0, seed=1) as chaos:
        until(lambda: len(town.visits) > 20)
        for kind in ("server", "kill", "stop"):
            chaos.fault(kind)
        outcome = chaos.end(100.0)
    check(outcome, 72)


def test_a_page_fetched_twice_is_explained_by_a_fault_between_its_fetches() -> None:
    def visit(path: str, at: float) -> Visit:
        return Visit("127.0.9.1", 80, path, at, at + 0.01)

    kill, stop = Fault("kill", 5.0, 5.0), Fault("stop", 20.0, 26.0)
    asked = [("/a", 1.0), ("/a", 6.0), ("/b", 7.0), ("/b", 8.0), ("/b", 22.0), ("/c", 30.0)]
    visits = [visit(path, at) for path, at in asked]
    outcome = Outcome({}, Counter(), visits, [], [], [kill, stop], 0.0)
    site = ("127.0.9.1", 80)
    assert outcome.repeats() == {kill: {site: 1}, None: {site: 1}, stop: {site: 1}}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(int(os.environ.get("CHAOS_SEEDS", "1"))))
def test_thirty_rounds_of_chaos(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    addresses = [f"127.0.10.{number}" for number in range(1, int(os.environ.get("CHAOS_ADDRESSES", "50")) + 1)]
    rounds = int(os.environ.get("CHAOS_ROUNDS", "30"))
    rng = random.Random(seed)
    with Town(addresses, 10, int(os.environ.get("CHAOS_PAGES", "40"))) as town:
        pages = len(town.urls) * int(os.environ.get("CHAOS_PAGES", "40"))
        with Chaos(
            town, tmp_path / "store", ants=int(os.environ.get("CHAOS_ANTS", "8")), beat_s=2.0, seed=seed
        ) as chaos:
            until(lambda: len(town.visits) > 100, 120.0)
            for _ in range(rounds):
                time.sleep(rng.uniform(0.5, 3.0))
                chaos.fault(rng.choice(["kill", "stop", "server"]))
            outcome = chaos.end(1800.0)
    with capsys.disabled():
        repeats = outcome.repeats()
        kinds = Counter(fault.kind for fault in outcome.faults)
        print(f"\n{outcome.known} {dict(kinds)} overlaps {len(outcome.overlaps)} hasty {len(outcome.hasty)}")
        print(f"{len(outcome.visits)} asked, {outcome.seconds:.0f} s after the last fault")
        for fault, sites in repeats.items():
            print(f"again after {fault}: {sites.total()} pages of {len(sites)} sites, {max(sites.values())} of one")
        for before, after in outcome.overlaps + outcome.hasty:
            print(before, after, after.start - before.end)
    check(outcome, pages)
