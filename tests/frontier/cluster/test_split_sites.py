"""A very large site among several ants, over a real server with a manual clock: its politeness holds through all that
happens to who has it and to who borrows of it, and no page is lost."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.frontier.cluster.test_membership import BEAT, Ants
from tests.frontier.drive import collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from tests.store.stores import server_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.frontier.drive import Answer, Drive
    from webfountain.records import Fetch

SITE = "http://s0.example"
MANY = 400
SLOTS = 8
DELAY = 2.0
PAGES = {"": linked(*[f"p{number}" for number in range(MANY)])} | {f"p{number}": b"x" for number in range(MANY)}


class Split(Ants):
    """Ants on a server, of which the first has its core full and the others have time."""

    def __init__(self, folder: Path, *, slots: int = SLOTS, **values: Any) -> None:
        self.refused_at: list[tuple[float, str]] = []
        self.refusing = False
        collection = collection_of(
            [f"{SITE}/"], min_delay=f"{DELAY}s", delay_factor=0, politeness=f"concurrency = {slots}", **values
        )
        web = site_of_pages(PAGES, seconds=0.05, extra=self._refuse)
        super().__init__(collection, web, 0, server=f"{server_url()}?prefix={folder.name}&shards=2")

    def _refuse(self, fetch: Fetch, path: str, at: float) -> Answer | None:
        if not self.refusing or path in ("", "robots.txt"):
            return None
        self.refusing = False
        self.refused_at.append((at, path))
        return 429, {"retry-after": "100"}, b"", 0.05

    def several(self, n: int = 2) -> None:
        """So many ants, and until each of them fetches."""
        for i in range(n):
            self.join(cpu=(lambda: 0.9 * self.clock.now()) if i == 0 else (lambda: 0.0))
            self.run(until=lambda: len(self.all[0].log) > 2)
        self.run(60.0, until=lambda: all(len(drive.log) > 20 for drive in self.all))
        assert all(drive.asked() for drive in self.all), "each of them fetches"

    def fetch_all(self, seconds: float = 1200.0) -> None:
        """Until every page was fetched."""
        store = self.living[0].store
        self.run(seconds, until=lambda: not store.census.statistics().pages["never-crawled"])
        pages = store.census.statistics().pages
        assert (pages["crawled"], pages["failed"]) == (MANY + 1 - len(self.refused_at), len(self.refused_at))

    def check_polite(self, slots: int = SLOTS) -> None:
        """Each slot waits out its delay: of one more request than there are slots the last comes a delay later."""
        times = [at for at, _, _ in self.requests()]
        assert all(last - first >= DELAY - 1e-6 for first, last in zip(times, times[slots:], strict=False))

    def ends(self) -> None:
        """All leave."""
        for drive in self.living:
            drive.frontier.close()


@pytest.fixture
def ants(tmp_path: Path) -> Iterator[Split]:
    with ExitStack() as stack:
        split = Split(tmp_path)
        stack.callback(split.ends)
        yield split


def counted(drive: Drive, name: str) -> float:
    return drive.metrics.get(name)


def test_ants_share_a_site_and_its_politeness(ants: Split) -> None:
    ants.several(3)
    ants.fetch_all()
    ants.check_polite()
    assert set(ants.asked().values()) == {1}
    by_ant = Counter({drive.frontier.owner: len(drive.asked()) for drive in ants.all})
    assert min(by_ant.values()) > MANY / 8, "each had its part of the slots"
    times = [at for at, _, _ in ants.requests()]
    assert times[-1] - times[20] < 1.5 * MANY / SLOTS * (DELAY + 0.05), "the slots were in use"
    assert [drive.asked("robots") for drive in ants.all[1:]] == [[], []], "who borrows asks for no file"


def test_a_borrower_dies_and_its_pages_and_slots_come_back(ants: Split) -> None:
    ants.several()
    holder, dead = ants.all
    ants.run(until=lambda: dead.flying)
    ants.stopped.add(dead)
    ants.fetch_all()
    ants.check_polite()
    assert all(many <= 2 for many in ants.asked().values())
    assert sum(many == 2 for many in ants.asked().values()) <= SLOTS, "what was under way, or not settled"
    assert len(holder.asked()) + len(dead.asked()) >= MANY


def test_the_holder_dies_and_the_borrower_stops_before_anybody_takes_the_site_over(ants: Split) -> None:
    ants.several(3)
    holder = ants.all[0]
    ants.run(3.0)
    ants.stopped.add(holder)
    died = ants.clock.now()
    assert ants.living[0].store.claims is not None
    [ends, _] = [claim.until for claim in ants.living[0].store.claims.claims("loan")]
    ants.fetch_all()
    assert [at for at, _, _ in ants.requests() if ends - 0.2 * BEAT <= at < ends + DELAY] == []
    ants.check_polite()
    assert sum(counted(heir, "ant/sites_activated") for heir in ants.living) == 1
    assert all(many <= 2 for many in ants.asked().values())
    assert sum(many == 2 for many in ants.asked().values()) <= 2 * SLOTS
    waits = [at for at, _, _ in ants.requests() if at > died]
    assert max(b - a for a, b in pairwise(waits)) <= 3 * BEAT + DELAY


def test_a_borrower_that_was_stopped_sends_nothing_when_it_wakes(ants: Split) -> None:
    ants.several()
    sleeper = ants.all[1]
    ants.run(until=lambda: sleeper.flying)
    ants.stopped.add(sleeper)
    ants.run(12 * BEAT)
    ants.stopped.clear()
    assert not sleeper.frontier.may_send()
    assert sleeper.frontier.next() is None
    ants.fetch_all()
    ants.check_polite()
    assert all(many <= 2 for many in ants.asked().values())


def test_a_refusal_that_a_borrower_sees_stops_all_and_nobody_borrows_for_a_while(ants: Split) -> None:
    ants.several()
    holder, borrower = ants.all
    ants.run(until=lambda: not ants.all[1].flying)
    plain = borrower.answer
    ants.refusing = True
    holder.answer = lambda fetch, at: (200, {"content-type": "text/html"}, b"x", 0.05)
    ants.run(until=lambda: ants.refused_at)
    [(refused_at, _)] = ants.refused_at
    holder.answer = plain
    taken = counted(borrower, "ant/loans_taken")
    ants.run(refused_at + 100.0 - ants.clock.now())
    after = [(at, ant) for at, _, ant in ants.requests() if at > refused_at + 0.05]
    assert sum(ant == borrower.frontier.owner for _, ant in after) == 0, "it gives its slots back at once"
    assert len(after) <= SLOTS, "the holder goes on until it has read the letter"
    assert all(at <= refused_at + 1.0 for at, _ in after)
    ants.run(50.0)
    assert counted(borrower, "ant/loans_taken") == taken, "not before it was well for a minute"
    ants.fetch_all()
    ants.check_polite()
    assert counted(borrower, "ant/loans_taken") > taken


def test_a_refusal_that_the_holder_sees_ends_all_loans_within_a_heartbeat(ants: Split) -> None:
    ants.several()
    holder, borrower = ants.all
    plain = holder.answer
    borrower.answer = lambda fetch, at: (200, {"content-type": "text/html"}, b"x", 0.05)
    ants.refusing = True
    ants.run(until=lambda: ants.refused_at)
    [(refused_at, _)] = ants.refused_at
    borrower.answer = plain
    ants.run(refused_at + 90.0 - ants.clock.now())
    after = [at for at, _, _ in ants.requests() if at > refused_at + 0.05]
    assert all(at <= refused_at + BEAT for at in after)
    assert set(ants.asked().values()) == {1}


@pytest.mark.parametrize("leaver", [0, 1])
def test_an_ant_leaves_in_good_order_and_the_others_go_on(ants: Split, leaver: int) -> None:
    ants.several(3)
    leaves = ants.all[leaver]
    ants.run(until=lambda: not leaves.flying)
    leaves.frontier.close()
    ants.stopped.add(leaves)
    ants.fetch_all()
    ants.check_polite()
    assert all(many <= 2 for many in ants.asked().values())


@pytest.mark.parametrize("values", [{"slots": 1}, {"rest": "capacity_pages_per_period = 1_000_000"}])
def test_nothing_is_lent_of_one_slot_or_where_a_budget_rules(tmp_path: Path, values: dict[str, Any]) -> None:
    ants = Split(tmp_path, **values)
    for i in range(2):
        ants.join(cpu=(lambda: 0.9 * ants.clock.now()) if i == 0 else (lambda: 0.0))
        ants.run(until=lambda: len(ants.all[0].log) > 2)
    ants.run(30.0)
    assert len(ants.all[0].log) > 8
    assert ants.all[1].log == []
    ants.ends()


def test_nothing_is_lent_while_the_core_has_time_and_the_slots_are_in_use(tmp_path: Path) -> None:
    ants = Split(tmp_path)
    for _ in range(2):
        ants.join(cpu=lambda: 0.0)
        ants.run(until=lambda: len(ants.all[0].log) > 2)
    ants.run(60.0)
    assert len(ants.all[0].log) > 100
    assert ants.all[1].log == []
    ants.ends()
