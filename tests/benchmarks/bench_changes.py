"""What the change log costs: an entry in the step that makes it, and a poll, at 10^6 known URLs.

``python -m tests.benchmarks.bench_changes [SIZE]``

CPU of the whole process. The cost of an entry is the time of settling pages that changed less that of settling as many
that did not, on one store, in turns. A poll is made by a second opening for reading, as the command line makes it.
The dominating costs are RocksDB's put and the msgpack of an entry.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.benchmarks.bench_frontier import Links, fill
from webfountain.records import Outcome, OutcomeKind
from webfountain.store import open_store
from webfountain.store.contract import LANES, Refill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore

SITES = 200
HAND = 200
ROUNDS = 4
POLLS = 200
ALWAYS = [float("inf")] * LANES


def settle_all(store: FrontierStore, sites: Sequence[SiteLease], kind: OutcomeKind, at: float) -> tuple[float, int]:
    """CPU seconds and pages of fetching a hand of each site with one outcome."""
    spent, pages = 0.0, 0
    for site in sites:
        queue = {"never_crawled": HAND} if kind == "new" else {"recrawl": HAND}
        (dealt,) = store.lease([Refill(site, horizon=ALWAYS, **queue)])
        assert dealt is not None
        outcomes = []
        for one in dealt.never_crawled + dealt.recrawl:
            digest = one.record.digest if kind == "same" else f"{at:040.3f}"
            record = msgspec.structs.replace(
                one.record, state="crawled", last_crawled=at, copied=at, digest=digest, bucket=7
            )
            outcomes.append(Outcome(one.id, kind, record, 0.2, title="The title of some page", resemblance=0.7))
        before = time.process_time()
        pages += store.settle(outcomes, at=at).applied
        spent += time.process_time() - before
    return spent, pages


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=float, default=1e6)
    size = int(parser.parse_args().size)
    folder = Path(tempfile.mkdtemp(prefix="webfountain-bench-"))
    try:
        store = open_store(f"rocksdb://{folder}", collection="bench", period_s=86400)
        fill(store, Links(size), size)
        sites = store.activate(SITES, owner="a", until=1e9, at=10.0)
        settle_all(store, sites, "new", 11.0)
        spent: dict[OutcomeKind, float] = {"same": 0.0, "changed": 0.0}
        pages = 0
        for number in range(2 * ROUNDS):
            kind: OutcomeKind = "changed" if number % 2 else "same"
            seconds, pages = settle_all(store, sites, kind, 12.0 + number)
            spent[kind] += seconds
        reader = open_store(f"rocksdb://{folder}", collection=None, period_s=None, read_only=True)
        end = reader.changes_end()
        before = time.process_time()
        for _ in range(POLLS):
            assert reader.changes(end, 1000) == []
        empty = (time.process_time() - before) / POLLS
        before = time.process_time()
        found = reader.changes(None, 20_000)
        entry = (time.process_time() - before - empty) / len(found)
        assert len(found) == 20_000
        result = {
            "known": size,
            "entry_us": 1e6 * (spent["changed"] - spent["same"]) / (ROUNDS * pages),
            "settle_us": 1e6 * spent["same"] / (ROUNDS * pages),
            "poll_ms": 1e3 * empty,
            "polled_entry_us": 1e6 * entry,
        }
        print(json.dumps({name: float(f"{value:.4g}") for name, value in result.items()}))
        reader.close()
        store.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
