"""The change log through kills: each change is in it exactly once; a reader that goes on misses and repeats none."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from tests.store.stores import PERIOD_S
from webfountain.store.embedded.opening import open_embedded

if TYPE_CHECKING:
    from pathlib import Path

WRITER = textwrap.dedent("""
    import sys
    import msgspec
    from tests.store.stores import ALWAYS, PERIOD_S, crawled, link
    from webfountain.records import Outcome
    from webfountain.store.opening import open_store
    from webfountain.store.answers import Refill

    store = open_store(f"rocksdb://{sys.argv[1]}", collection="tests", period_s=PERIOD_S)
    pages = int(sys.argv[2])
    store.queues.discover([link(number) for number in range(pages)], at=1.0)
    (site,) = store.sites.activate(1, owner="ant", until=1e9, at=1e8)
    print("ready", flush=True)
    at = max((record.last_crawled or 1.0 for _, record in store.pages.records()), default=1.0)
    while True:
        at += 1.0
        (dealt,) = store.queues.lease([Refill(site, never_crawled=20, recrawl=20, horizon=ALWAYS)])
        outcomes = []
        for one in dealt.never_crawled + dealt.recrawl:
            before = one.record
            known = before.last_crawled is not None
            record = msgspec.structs.replace(
                crawled(before, at), changes=before.changes + known, digest=f"{before.changes + known}"
            )
            outcomes.append(Outcome(one.id, "changed" if known else "new", record, title="T"))
        store.queues.settle(outcomes, at=at)
""")


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def resumed_reader(folder: Path, taken: Path) -> subprocess.Popen[bytes]:
    """The command line's follower, from the last cursor that its consumer has stored: the last whole line."""
    whole = taken.read_bytes() if taken.exists() else b""
    whole = whole[: whole.rfind(b"\n") + 1]
    taken.write_bytes(whole)
    since = ["--since", json.loads(whole.splitlines()[-1])["cursor"]] if whole else []
    command = [sys.executable, "-m", "webfountain", "changes", "--jsonl", "--follow", "--store", f"rocksdb://{folder}"]
    with taken.open("ab") as out:
        return subprocess.Popen([*command, *since], stdout=out)


def check_log(folder: Path, pages: int) -> int:
    """Every change that a record tells is an entry, once; how many entries there are."""
    store = open_embedded(folder, collection="tests", period_s=PERIOD_S, read_only=False)
    entries = [entry for _, entry in store.changes.after(None, 10**9)]
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    reported: dict[bytes, list[tuple[str, str | None]]] = {}
    for entry in entries:
        reported.setdefault(entry.key, []).append((entry.verdict, entry.digest))
    records = {record.url: record for _, record in store.pages.records() if record.state == "crawled"}
    assert {entry.url for entry in entries} == records.keys()
    assert len(records) <= pages
    for key, said in reported.items():
        url = next(entry.url for entry in entries if entry.key == key)
        changes = [("changed", str(number)) for number in range(1, records[url].changes + 1)]
        assert said == [("new", "0"), *changes]
    store.close()
    return len(entries)


def kill_and_check(tmp_path: Path, *, kills: int, pages: int) -> None:
    chance = random.Random(20260101)
    folder, taken = tmp_path / "store", tmp_path / "taken.jsonl"
    entries = 0
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(pages)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            reader = resumed_reader(folder, taken)
            time.sleep(chance.uniform(0.0, 0.4))
            if chance.random() < 0.5:
                kill(reader)
                reader = resumed_reader(folder, taken)
            kill(writer)
            kill(reader)
        entries = check_log(folder, pages)
    reader = resumed_reader(folder, taken)
    end = time.monotonic() + 240
    while taken.read_bytes().count(b"\n") < entries and time.monotonic() < end:
        time.sleep(0.05)
    kill(reader)
    seen = [json.loads(line)["sequence"] for line in taken.read_bytes().splitlines()]
    assert seen == list(range(1, entries + 1))


def test_each_change_is_in_the_log_once_and_read_once_through_kills(tmp_path: Path) -> None:
    kill_and_check(tmp_path, kills=2, pages=60)


@pytest.mark.soak
def test_each_change_of_two_thousand_pages_is_in_the_log_once_and_read_once_through_twenty_kills(
    tmp_path: Path,
) -> None:
    kill_and_check(tmp_path, kills=20, pages=2000)
