"""Ants whose server goes back in time again and again: in the end every page is known, right and told once."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import pytest

from tests.frontier.cluster.test_membership import BEAT, SITES, Ants
from tests.frontier.drive import Answer, collection_of
from tests.servers.set_backs import WAYS, TimeMachine
from tests.store.invariants import check_valid
from webfountain.errors import StoreError
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.set_backs import Way
    from webfountain.records import Fetch, PageRecord

DELAY_S = 0.2
STALL_S = 30.0
ANTS = 4


def body_of(url: str, pages: int) -> bytes | None:
    """A page that links two pages below it, of a tree over all sites: so links are found until the end."""
    site, _, path = url.rpartition("/")
    number = int(path[1:] or 0) * len(SITES) + SITES.index(site)
    below = [child for child in (2 * number + 1, 2 * number + 2) if child < pages]
    links = [f'<a href="{SITES[child % len(SITES)]}/p{child // len(SITES)}">{child}</a>' for child in below]
    return f"<title>{number}</title><p>page {number} {''.join(links)}".encode() if number < pages else None


class SetBacks:
    """A crawl of `pages` by four ants on one server, and what befalls that."""

    def __init__(self, machine: TimeMachine, pages: int, seed: int) -> None:
        self.machine, self.pages = machine, pages
        self._rng = random.Random(seed)
        collection = collection_of([f"{SITES[0]}/p0"], collection='scope = "any"', min_delay="200ms", delay_factor=0)
        self.ants = Ants(collection, self._web, ANTS, server=f"{machine.url}?shards=8")

    def _web(self, fetch: Fetch, _: float) -> Answer:
        body = None if fetch.url.endswith("robots.txt") else body_of(fetch.url, self.pages)
        seconds = self._rng.uniform(0.02, 0.3)
        return (404, {}, b"", 0.05) if body is None else (200, {"Content-Type": "text/html"}, body, seconds)

    def crawled(self) -> int:
        return self.ants.all[0].store.census.statistics().pages["crawled"]

    def run_on(self, requests: int) -> None:
        """Until so many requests more went out."""
        end = len(self.ants.requests()) + requests
        self.ants.run(until=lambda: len(self.ants.requests()) >= end or self.crawled() == self.pages)

    def go_back(self) -> None:
        """Remember, go on for about a second of the crawl, and lose that."""
        self.machine.remember()
        self.run_on(self._rng.randint(1, 60))
        self.machine.go_back()

    def finish(self) -> None:
        self.ants.run(until=lambda: self.crawled() == self.pages)

    def records(self) -> Iterator[tuple[str, bytes, PageRecord]]:
        store = self.ants.all[0].store
        for number in range(self.pages):
            url = f"{SITES[number % len(SITES)]}/p{number // len(SITES)}"
            site, key = url.rpartition("/")[0], fingerprint(url)
            record = store.pages.get(site, key)
            assert record is not None, f"{url} is not known"
            yield url, key, record

    def check(self) -> None:
        """All that must hold in the end."""
        store = self.ants.all[0].store
        assert store.census.statistics().pages["crawled"] == sum(store.census.statistics().pages.values()) == self.pages
        for url, _, record in self.records():
            body = body_of(url, self.pages)
            assert body is not None
            assert record.url == url, "a record under another page's key"
            assert record.digest == hashlib.sha1(body).hexdigest()
        news = Counter(change.url for _, change in store.changes.after(None, 10**6) if change.verdict == "new")
        assert len(news) == self.pages
        assert set(news.values()) == {1}
        times = [at for at, _, _ in self.ants.requests()]
        assert max(later - earlier for earlier, later in pairwise(times)) < STALL_S
        self.check_delays()
        check_valid(store)

    def check_delays(self) -> None:
        """No site was asked by two ants within its delay, from request to request."""
        last: dict[str, tuple[float, str]] = {}
        for at, site, ant in self.ants.requests():
            before, its = last.get(site, (0.0, ant))
            assert its == ant or at - before > DELAY_S - 1e-6, f"{site}: {its}, {at - before:.3f} s later {ant}"
            last[site] = (at, ant)

    def close(self) -> None:
        for drive in self.ants.all:
            drive.frontier.close()


@pytest.mark.untraced
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_goes_back_loses_no_page(way: Way) -> None:
    with TimeMachine(way) as machine:
        crawl = SetBacks(machine, 150, seed=1)
        for _ in range(3):
            crawl.run_on(20)
            crawl.go_back()
        crawl.finish()
        crawl.check()
        crawl.close()


class PartMachine(TimeMachine):
    """A server of which some shards go back alone, as a cluster's do when one node fails over: links lead to them from
    pages of others, which are settled."""

    def __init__(self) -> None:
        super().__init__("snapshot")
        self._kept: dict[bytes | str, bytes] = {}

    def remember(self) -> None:
        with self.client() as client:
            found = {key: client.dump(key) for key in client.keys("*:[0-3]}*")}
        self._kept = {key: value for key, value in found.items() if value is not None}

    def go_back(self) -> None:
        with self.client() as client:
            client.delete(*client.keys("*:[0-3]}*"))
            for key, value in self._kept.items():
                client.restore(key, 0, value)


@pytest.mark.untraced
def test_shards_that_go_back_alone_lose_no_page() -> None:
    with PartMachine() as machine:
        crawl = SetBacks(machine, 150, seed=2)
        for _ in range(4):
            crawl.run_on(20)
            crawl.go_back()
        crawl.finish()
        crawl.check()
        crawl.close()


@pytest.mark.untraced
@pytest.mark.parametrize("way", WAYS)
def test_ants_that_died_with_their_server_leave_nothing_undone(way: Way) -> None:
    """Nobody is left who knows of the lost time: what was brought back is whole, and the next ants go on from there."""
    with TimeMachine(way) as machine:
        crawl = SetBacks(machine, 100, seed=3)
        crawl.run_on(40)
        crawl.go_back()
        crawl.ants.stopped.update(crawl.ants.all)
        for _ in range(2):
            crawl.ants.join()
        crawl.finish()
        crawl.check()
        crawl.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(int(os.environ.get("CHAOS_SEEDS", "1"))))
@pytest.mark.parametrize("way", [*WAYS, "some shards"])
def test_twenty_set_backs_of_2400_pages(
    way: Way | Literal["some shards"], seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with PartMachine() if way == "some shards" else TimeMachine(way) as machine:
        crawl = SetBacks(machine, 2400, seed)
        for _ in range(20):
            crawl.run_on(80)
            crawl.go_back()
        crawl.finish()
        crawl.check()
        times = [at for at, _, _ in crawl.ants.requests()]
        with capsys.disabled():
            asked = sum(crawl.ants.asked().values())
            print(f"\n{way}: {asked} asked, longest pause {max(b - a for a, b in pairwise(times)):.1f} s (beat {BEAT})")
        crawl.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(int(os.environ.get("CHAOS_SEEDS", "20"))))
@pytest.mark.parametrize("way", ["snapshot", "failover"])
def test_two_losses_in_a_row_beside_paused_ants_and_one_that_joins(way: Way, seed: int) -> None:
    """Those that are paused go on as they were between two losses, and who joins knows of neither."""
    rng = random.Random(seed)
    with TimeMachine(way) as machine:
        crawl = SetBacks(machine, 150, seed)
        ants = crawl.ants
        for turn in range(4):
            crawl.run_on(20)
            crawl.go_back()
            paused = set(ants.all if turn == 1 else rng.sample(ants.all, rng.randint(1, len(ants.all) - 1)))
            if turn == 1:
                ants.join()
            ants.stopped |= paused
            ants.run(rng.uniform(0.0, 2.0))
            if way == "failover":
                machine.remember()
            machine.go_back()
            ants.run(rng.uniform(0.0, 1.0))
            ants.stopped -= paused
        crawl.finish()
        crawl.check()
        crawl.close()


def test_ants_of_a_server_that_was_emptied_end_with_one_line() -> None:
    with TimeMachine("snapshot") as machine:
        crawl = SetBacks(machine, 60, seed=1)
        crawl.run_on(20)
        with machine.client() as client:
            client.flushall()
        with pytest.raises(StoreError, match="the store is gone, because its server was emptied") as caught:
            crawl.run_on(60)
        assert "\n" not in str(caught.value)
