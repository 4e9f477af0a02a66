"""No page waits longer than until it is due, whatever was changed: plan, price, policy file, clock, or a restart."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.plans import hand_made
from tests.store.stores import server_url
from webfountain.clock import ManualClock
from webfountain.core.buckets import BUCKETS, intervals_of
from webfountain.core.phases import Phases
from webfountain.store.lanes import recrawl_place
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

PERIOD_S = 3600.0
SITES, PAGES = 3, 4
SLACK_S = 0.05 * PERIOD_S + SITES * PAGES
"""A horizon is used for a fiftieth of a period, a lane whose page was not dealt is looked at after another one."""
START = 1_000_000_000.0
PHASES = (Phase.explicit, Phase.generate)
"""A history that fails takes minutes to be made smaller."""
BOUNDS = (60.0, 300.0, 3600.0, 30_000.0)
"""Longest intervals between two visits, s, of the two policies."""


def web(fetch: Fetch, at: float) -> Answer:
    """Sites of some pages that never change; half of them are switched to a policy of their own."""
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    path = fetch.url.split("/", 3)[3]
    links = "".join(f'<a href="/{number}">x</a>' for number in range(1, PAGES))
    return 200, {"content-type": "text/html"}, (links if not path else "own" if path == "1" else "x").encode(), 0.01


def collection(longest: tuple[float, float]) -> Collection:
    """With a budget that limits nothing, so that plans are followed and no page is chosen by its urgency."""
    default, own = longest
    rest = f"""
capacity_pages_per_period = 1000000
[policies.default]
revisit = {{ max_interval = "{default}s" }}
[policies.own]
revisit = {{ max_interval = "{own}s" }}
[[switch]]
when = {{ text = "own" }}
to = "own"
"""
    seeds = [f"http://s{number}.example/" for number in range(SITES)]
    return collection_of(
        seeds, min_delay="100ms", delay_factor=0, period=f"{PERIOD_S}s", politeness="per_ip = false", rest=rest
    )


class Crawl:
    """A crawl to which things happen, on a store of one kind."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.folder = Path(tempfile.mkdtemp(prefix="wf-due-"))
        self.clock = ManualClock(START)
        self.longest = (BOUNDS[-1], BOUNDS[-1])
        self.kept: FrontierStore | None = None
        self.drive = self._begun()

    def _begun(self) -> Drive:
        used = collection(self.longest)
        return Drive(used, web, store=self._opened(used), clock=self.clock, heartbeat_seconds=30.0)

    def _opened(self, used: Collection) -> FrontierStore:
        if self.backend == "memory":
            self.kept = self.kept or MemoryStore(period_s=PERIOD_S, fastest_s=used.cycle.fastest_s)
            return self.kept
        url = f"rocksdb://{self.folder}"
        if self.backend == "shared":
            url = f"{server_url()}?prefix={self.folder.name}&shards=2"
        return open_store(
            url, collection="test", period_s=PERIOD_S, fastest_s=used.cycle.fastest_s, at=self.clock.now()
        )

    def plan(self, kind: str, factor: float) -> None:
        """A plan is made: intervals are so many times those of the buckets."""
        fastest = self.drive.collection.cycle.fastest_s
        intervals = tuple(float(factor * each) for each in intervals_of(list(range(BUCKETS)), fastest))
        phases = Phases.running(1.0 / (factor * intervals_of(list(range(BUCKETS)), fastest)), start=self.clock.now())
        made = hand_made(phases, intervals=intervals, start=self.clock.now(), period=PERIOD_S)
        self.drive.frontier.planner.adopt_plan(_replaced(made, fountain=kind == "fountain"))

    def price(self, factor: float) -> None:
        """The price of the controller is another one."""
        follower = self.drive.frontier.planner.follower
        if follower.schedule.price is not None:
            follower.obey(None, factor * follower.schedule.price)

    def edit(self, longest: tuple[float, float]) -> None:
        """The policy file is edited while the crawl runs."""
        self.longest = longest
        self.drive.frontier.work.adopt(collection(longest))

    def restart(self, longest: tuple[float, float]) -> None:
        """The crawl ends in good order, and goes on with an edited policy file."""
        self.longest = longest
        self._end()
        self.drive = self._begun()

    def kill(self, longest: tuple[float, float]) -> None:
        """The crawl is killed, and goes on with an edited policy file."""
        if self.backend == "embedded":
            self.longest = longest
            self.drive.store.close()
            self.drive = self._begun()

    def correct_clock(self, ahead: float) -> None:
        """The clock was ahead, and is right at the next start."""
        if self.backend == "embedded":
            self._end()
            self.clock = ManualClock(self.clock.now() - ahead)
            self.drive = self._begun()

    def _end(self) -> None:
        self.drive.frontier.close()

    def run(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            heart = self.drive.frontier.heart
            if heart is not None and (beat := heart.beat()) is not None:
                heart.apply(beat())
            self.drive.run(seconds=min(end, end if heart is None else heart.next_at()) - self.clock.now())

    def waiting(self) -> dict[str, float]:
        """Of each page that is due for longer than the slack, how long, s."""
        at, schedule = self.clock.now(), self.drive.frontier.planner.follower.schedule
        found = {}
        for _, record in self.drive.store.pages.records(state="crawled"):
            due = schedule.due(*recrawl_place(record))
            longest = self.longest[record.policy == "own"]
            assert record.last_crawled is not None
            late = at - min(due, record.last_crawled + longest)
            if late > SLACK_S:
                found[record.url] = late
        return found

    def end(self) -> None:
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)


def _replaced(plan: Any, **fields: Any) -> Any:
    return type(plan)(**{name: getattr(plan, name) for name in plan.__struct_fields__} | fields)


longests = st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS))
changes = st.one_of(
    st.tuples(st.just("plan"), st.sampled_from(["fountain", "clocks"]), st.sampled_from([0.01, 0.1, 1.0, 10.0, 100.0])),
    st.tuples(st.just("price"), st.sampled_from([0.01, 0.5, 0.93, 2.0, 100.0])),
    st.tuples(st.sampled_from(["edit", "restart", "kill"]), longests),
    st.tuples(st.just("correct_clock"), st.sampled_from([100.0, 5000.0, 1e6])),
)


def holds(backend: str, made: list[tuple[tuple[Any, ...], float]]) -> None:
    crawl = Crawl(backend)
    try:
        crawl.run(SLACK_S)
        assert crawl.drive.store.census.statistics().pages["crawled"] == SITES * PAGES
        for (change, *arguments), rest in made:
            getattr(crawl, change)(*arguments)
            crawl.run(SLACK_S)
            assert crawl.waiting() == {}, change
            crawl.run(rest)
            assert crawl.waiting() == {}, change
    finally:
        crawl.end()


histories = st.lists(st.tuples(changes, st.sampled_from([1.0, 200.0, 4000.0])), min_size=1, max_size=4)


@pytest.mark.untraced
@settings(max_examples=40, deadline=None, phases=PHASES)
@given(histories)
def test_no_page_waits_longer_than_until_it_is_due(made: list[tuple[tuple[Any, ...], float]]) -> None:
    holds("memory", made)


@pytest.mark.untraced
@settings(max_examples=25, deadline=None, phases=PHASES)
@given(histories)
def test_no_page_waits_longer_than_until_it_is_due_on_disk(made: list[tuple[tuple[Any, ...], float]]) -> None:
    holds("embedded", made)


@pytest.mark.untraced
@settings(max_examples=5, deadline=None, phases=PHASES)
@given(histories)
def test_no_page_waits_longer_than_until_it_is_due_on_a_server(made: list[tuple[tuple[Any, ...], float]]) -> None:
    holds("shared", made)


def test_a_slower_plan_keeps_the_shorter_interval_of_a_policy() -> None:
    """A page stands in the lane of its bucket while that comes due within its policy's longest interval. A plan that
    slows the bucket down left it there, and it was late until its next visit.
    """
    holds(
        "memory",
        [
            (("plan", "clocks", 0.1), 1.0),
            (("edit", (30_000.0, 30_000.0)), 1.0),
            (("edit", (30_000.0, 3600.0)), 4000.0),
            (("plan", "fountain", 10.0), 4000.0),
        ],
    )


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["memory", "embedded", "shared"])
def test_no_page_waits_longer_than_until_it_is_due_in_many_histories(backend: str) -> None:
    @settings(max_examples=500, deadline=None, phases=PHASES)
    @given(histories)
    def run(made: list[tuple[tuple[Any, ...], float]]) -> None:
        holds(backend, made)

    run()


@pytest.mark.parametrize("backend", ["memory", "embedded", "shared"])
@pytest.mark.parametrize("change", ["edit", "restart"])
def test_an_interval_that_was_made_shorter_reaches_parked_sites(backend: str, change: str) -> None:
    """Sites stayed parked until the time of the old policy: no request in days."""
    holds(backend, [((change, (60.0, 60.0)), 100.0)])


@pytest.mark.parametrize("change", ["edit", "restart"])
def test_an_interval_of_one_policy_alone_that_was_made_shorter_reaches_its_pages(change: str) -> None:
    holds("memory", [((change, (3600.0, 30_000.0)), 100.0), ((change, (3600.0, 60.0)), 100.0)])
