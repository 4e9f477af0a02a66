"""A server that is away for a quarter of an hour: the ants wait for it, and go on where they were."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import policy
from tests.acceptance.test_ants import until
from tests.acceptance.test_chaos import breaches
from tests.acceptance.test_set_backs import TreeTown, Troop, opened
from tests.servers.set_backs import TimeMachine
from tests.store.invariants import check_valid

if TYPE_CHECKING:
    from pathlib import Path

OUTAGE_S = float(os.environ.get("OUTAGE_S", "900"))


@pytest.mark.soak
def test_ants_go_on_after_their_server_was_away_for_a_quarter_of_an_hour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    addresses = [f"127.0.33.{number}" for number in range(1, 9)]
    with TimeMachine("cut file") as machine, TreeTown(addresses, 1, 150) as town:
        assert isinstance(town, TreeTown)
        politeness = {"min_delay": "250ms", "delay_factor": 0}
        collection = policy(tmp_path, town.urls, politeness=politeness, discovery={"sitemaps": False})
        with Troop(collection, f"{machine.url}?shards=16", tmp_path, 4) as troop:
            until(lambda: len(town.visits) > 400, 240.0)
            machine.kill()
            machine.remember()
            died = time.monotonic()
            time.sleep(OUTAGE_S)
            asked = [visit.start for visit in town.visits if visit.start > died]
            assert not any(ant.poll() is not None for ant in troop.ants), troop.said()
            machine.come_back()
            back = time.monotonic()
            assert set(troop.wait(600.0)) == {0}, troop.said()
            said = troop.said()
        with opened(machine) as store:
            states = Counter(record.state for _, record in store.pages.records())
            news = Counter(change.url for _, change in store.changes.after(None, 10**6) if change.verdict == "new")
            check_valid(store)
        overlaps, hasty = breaches(town.visits)
        first = min(visit.start for visit in town.visits if visit.start > back)
        with capsys.disabled():
            print(f"\naway {back - died:.0f} s; last request {max(asked, default=died) - died:.1f} s after it died, ")
            print(f"first {first - back:.1f} s after it was back; {len(town.visits)} asked, {len(overlaps)} overlaps, ")
            print(f"{len(hasty)} short gaps; {said.count('does not answer')} and {said.count('answers again')} lines")
        assert states == {"crawled": 150 * len(town.urls)}
        assert set(news.values()) == {1}
        assert not overlaps
        assert "Traceback" not in said
        assert said.count("does not answer") == said.count("answers again") == 4, said
