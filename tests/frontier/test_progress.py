"""The budget is spent evenly, and what limits the rate is said in words, of a running crawl and to `status`."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.progress import TokenBucket, published_limit

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOME = "http://home.example"


@given(st.integers(1, 500), st.lists(st.floats(0, 40), max_size=200))
def test_no_stretch_of_time_sees_more_than_its_share_and_a_little_burst(capacity: int, waits: list[float]) -> None:
    pace, now, taken = TokenBucket(capacity, 1000.0, start=0.0), 0.0, []
    for wait in waits:
        now = max(now + wait * 0.1, pace.open_at())
        pace.take(now)
        taken.append(now)
        now += wait * 10 if wait > 39 else 0.0
    burst = max(0.02 * capacity, 1.0)
    for i, begin in enumerate(taken):
        for j in range(i, len(taken), 7):
            assert j - i <= (taken[j] - begin) * capacity / 1000.0 + burst + 1e-6


def test_a_stall_of_seconds_is_made_up_for_in_a_short_period_and_a_long_one_is_not() -> None:
    """On a busy machine crawls with periods of 20 s lost 3 % of their budget."""
    for stall, made_up in ((4.0, 6), (15.0, 6)):
        pace, now, n = TokenBucket(30, 20.0, start=0.0), 0.0, 0
        while (now := max(now, pace.open_at())) < 10.0:
            pace.take(now)
        now += stall
        while pace.open_at() <= now:
            pace.take(now)
            n += 1
        assert made_up - 1 <= n <= made_up + 1, (stall, n)


def test_a_budget_asked_for_without_pause_is_spent_whole() -> None:
    pace, now, n = TokenBucket(50, 100.0, start=0.0), 0.0, 0
    while (now := max(now, pace.open_at())) < 1000.0:
        pace.take(now)
        n += 1
    assert 499 <= n <= 501


def test_without_a_capacity_politeness_alone_decides() -> None:
    pace = TokenBucket(None, 100.0, start=5.0)
    pace.take(7.0)
    assert pace.open_at() == -inf


def web(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    links = "".join(f"<a href='/{number}'>x</a>" for number in range(50))
    return 200, {"content-type": "text/html"}, links.encode(), 0.01


def limits(drive: Drive, *, seconds: float) -> set[str]:
    """What was said in so many seconds."""
    end, found = drive.clock.now() + seconds, set()
    while drive.clock.now() < end:
        drive.run(seconds=0.2)
        found.add(drive.frontier.progress.limit(drive.frontier.now()))
    return found


def test_a_crawl_says_that_politeness_a_budget_or_nothing_due_limits_it() -> None:
    polite = Drive(collection_of([f"{HOME}/"]), web)
    assert any(words.startswith("politeness") for words in limits(polite, seconds=20.0))
    published = published_limit(polite.store.board)
    assert published is not None
    assert published.words
    rest = "capacity_pages_per_period = 10\n"
    budget = Drive(collection_of([f"{HOME}/"], min_delay="1ms", delay_factor=0, rest=rest), web)
    assert "the budget (cycle.capacity_pages_per_period)" in limits(budget, seconds=20.0)
    idle = Drive(collection_of([f"{HOME}/"], collection="limits.depth = 0"), web)
    limits(idle, seconds=20.0)
    assert idle.frontier.progress.limit(idle.frontier.now()) == "nothing is due"


def test_what_limits_a_crawl_is_published_soon_after_its_start() -> None:
    """For ten seconds, `status` said of each new crawl that nothing is due."""
    drive = Drive(collection_of([f"{HOME}/"]), web)
    limits(drive, seconds=4.0)
    published = published_limit(drive.store.board)
    assert published is not None
    assert published.words.startswith("politeness")


def test_a_crawl_says_that_it_waits_for_robots_txt() -> None:
    def slow(fetch: Fetch, at: float) -> Answer:
        return (404, {}, b"", 30.0) if fetch.kind == "robots" else web(fetch, at)

    drive = Drive(collection_of([f"{HOME}/"]), slow)
    assert "it waits for robots.txt and addresses" in limits(drive, seconds=5.0)
