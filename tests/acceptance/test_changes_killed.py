"""The change log of whole crawls that are killed: what the records tell is in it once, and is read once."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import Crawl, policy, records
from tests.store.test_changes_killed import kill, resumed_reader
from webfountain.lab.demo.process import DemoServer
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from webfountain.records import Change, PageRecord

LONGEST_S = 10
"""Between two visits to a page."""
CHANGES = ("changed", "minor")


class Follower:
    """A consumer of the log: it stores each entry with its cursor, is killed, and goes on from the last it stored."""

    def __init__(self, store: Path) -> None:
        self._store, self.taken = store, store.with_name("taken.jsonl")
        self._reader: subprocess.Popen[bytes] | None = None

    def go_on(self) -> None:
        """From the last cursor that was stored whole."""
        self.kill()
        self._reader = resumed_reader(self._store, self.taken)

    def kill(self) -> None:
        """SIGKILL, perhaps within a line."""
        if self._reader is not None:
            kill(self._reader)
            self._reader = None

    def wait_for(self, entries: int, *, seconds: float) -> list[int]:
        """The sequence numbers in the order they were taken, once there are so many."""
        end = time.monotonic() + seconds
        while self.taken.read_bytes().count(b"\n") < entries and time.monotonic() < end:
            time.sleep(0.05)
        return [row["sequence"] for row in map(json.loads, self.taken.read_bytes().splitlines()) if "sequence" in row]


def entries_of(store: Path) -> list[Change]:
    """The whole log."""
    opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    try:
        return [entry for _, entry in opened.changes.after(None, 10**9)]
    finally:
        opened.close()


def check_page(record: PageRecord | None, printed: list[Change]) -> bool:
    """What the log tells of one page follows from copy to copy to what its record says; False where it has left."""
    for before, entry in zip([None, *printed], printed, strict=False):
        if before is not None and entry.before is not None:
            assert entry.before == before.digest or before.digest is None, (entry.url, before, entry)
    if {entry.verdict for entry in printed} > {"new", *CHANGES}:
        return False
    assert record is not None
    assert printed[0].verdict == "new", record.url
    assert all(entry.verdict in CHANGES for entry in printed[1:]), record.url
    assert sum(entry.verdict == "changed" for entry in printed) == record.changes, record.url
    assert printed[-1].digest == record.digest, record.url
    return True


def check_log(store: Path) -> list[Change]:
    """Every change that a record tells is an entry, once, and no entry tells of anything else."""
    entries = entries_of(store)
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    printed: dict[str, list[Change]] = defaultdict(list)
    for entry in entries:
        printed[entry.url].append(entry)
    known = {record.url: record for record in records(store)}
    held = {record.url for record in known.values() if record.state == "crawled" and record.duplicate_of is None}
    assert held <= printed.keys()
    stayed = sum(check_page(known.get(url), entries) for url, entries in printed.items())
    assert stayed > 0.9 * len(held)
    return entries


def crawl_and_kill(
    folder: Path, *, pages: int, kills: int, seed: int, last_life: int = 0, longest_s: int = LONGEST_S
) -> tuple[int, int]:
    """Entries in the log, and changes among them, after a crawl of changing pages that was killed so often.

    A short one needs more fetches in its `last_life` than there are pages, that many are seen again once they changed.
    """
    chance = random.Random(seed)
    store = folder / "store"
    follower = Follower(store)
    with DemoServer(seed=seed, sites=8, pages=pages, period=2.0, births=0, deaths=0, latency=0.001) as server:
        revisit = {"min_interval": "100ms", "max_interval": f"{longest_s}s"}
        collection = policy(folder, server.urls, cycle={"period": "2s"}, policies__default={"revisit": revisit})
        for life in range(kills):
            served = int(server.stats()["served"])
            with Crawl(collection, store) as crawl:
                most = chance.randrange(pages // 4, pages)
                while crawl.process.poll() is None and server.stats()["served"] < served + most:
                    time.sleep(0.01)
                    if chance.random() < 0.02 and life:
                        follower.go_on()
                assert crawl.process.poll() is None, crawl.errors.read_text()
                time.sleep(chance.uniform(0.0, 0.05))
                crawl.kill()
            if chance.random() < 0.5 or not life:
                follower.go_on()
        with Crawl(collection, store, f"--max-pages={last_life or pages}") as last:
            assert last.wait(180) == 0, last.errors.read_text()
    entries = check_log(store)
    follower.go_on()
    seen = follower.wait_for(len(entries), seconds=60)
    follower.kill()
    assert seen == list(range(1, len(entries) + 1))
    return len(entries), sum(entry.verdict in CHANGES for entry in entries)


def test_what_a_killed_crawl_found_changed_is_in_the_log_once_and_is_read_once(tmp_path: Path) -> None:
    entries, changes = crawl_and_kill(tmp_path, pages=80, kills=1, seed=3, last_life=400, longest_s=1)
    assert entries > 60
    assert changes > 0


@pytest.mark.soak
def test_twenty_kills_of_a_crawl_of_2000_changing_pages_lose_and_repeat_no_change(tmp_path: Path) -> None:
    entries, changes = crawl_and_kill(tmp_path, pages=2000, kills=20, seed=4)
    print(f"20 kills, {entries} entries, {changes} changes among them")
    assert changes > 2000
