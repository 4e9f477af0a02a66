"""An edited policy file and the pages that are held: their tombstones come, without a fetch, through any kill."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.pages.policy_review import Review
from webfountain.policy.judge import Judge

if TYPE_CHECKING:
    from tests.frontier.drive import Answer
    from webfountain.policy.collection import Collection
    from webfountain.records import Change, Fetch
    from webfountain.store.memory.store import MemoryStore

SITES = [f"http://s{number}.example" for number in range(5)]
EVERY = "".join(f"<a href='/{kind}/{number}'>x</a>" for number in range(20) for kind in ("keep", "drop"))
DENY = "[policies.default]\ndeny = ['/drop/']\n"


def web(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    body = EVERY if fetch.url.endswith("example/") else "text"
    return 200, {"content-type": "text/html"}, body.encode(), 0.01


def collection(rest: str = "") -> Collection:
    return collection_of([f"{site}/" for site in SITES], delay_factor=0, min_delay="0s", rest=rest)


def crawled(store: MemoryStore | None = None) -> Drive:
    """A crawl that has fetched every page once."""
    drive = Drive(collection(), web, store=store)
    drive.run(until=lambda: len(drive.asked()) >= 5 * 41)
    drive.run(seconds=10)
    return drive


def log(drive: Drive) -> list[Change]:
    return [entry for _, entry in drive.store.changes.after(None, 10_000)]


def test_pages_that_are_held_and_denied_now_get_a_tombstone_each_and_are_not_asked() -> None:
    drive = crawled()
    before, asked = len(log(drive)), len(drive.asked())
    drive.frontier.work.adopt(collection(DENY))
    drive.run(seconds=60)
    reported = log(drive)[before:]
    assert Counter(entry.verdict for entry in reported) == {"refused": 100}
    assert {"/drop/" in entry.url for entry in reported} == {True}
    assert not [url for url in drive.asked()[asked:] if "/drop/" in url]
    states = Counter(record.state for _, record in drive.store.pages.records() if "/keep/" in record.url)
    assert states == {"crawled": 100}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_review_that_a_kill_cut_short_is_gone_on_with_at_the_next_start(steps: int) -> None:
    store = crawled().store
    judge = Judge(collection(DENY), year=2026)
    killed = Review(store, judge, pages=20)
    killed.begin(collection(DENY))
    for _ in range(steps):
        killed.step(2_000_000.0)
    assert not killed.is_done
    drive = Drive(collection(DENY), web, store=store)
    drive.clock.set(2_000_000.0)
    drive.run(seconds=60)
    assert sum(entry.verdict == "refused" for entry in log(drive)) == 100


def test_an_edit_that_was_made_while_no_crawl_ran_is_reviewed_at_the_next_start() -> None:
    drive = Drive(collection(DENY), web, store=crawled().store)
    drive.run(seconds=60)
    assert sum(entry.verdict == "refused" for entry in log(drive)) == 100


def test_the_same_policy_file_is_reviewed_once_and_a_new_store_not_at_all() -> None:
    drive = crawled()
    judge = Judge(collection(), year=2026)
    again = Review(drive.store, judge)
    again.begin(collection())
    assert again.is_done
    again.begin(collection(DENY))
    assert not again.is_done


def test_a_step_reads_a_bounded_number_of_pages_and_a_second_edit_begins_anew() -> None:
    drive = crawled()
    judge = Judge(collection(DENY), year=2026)
    review = Review(drive.store, judge, pages=50)
    review.begin(collection(DENY))
    steps = 0
    while not review.is_done:
        assert sum(review.step(2_000_000.0).values()) <= 50
        steps += 1
    assert steps >= 205 // 50
    judge.adopt(collection("[policies.default]\ndeny = ['/keep/']\n"))
    review.begin(collection("[policies.default]\ndeny = ['/keep/']\n"))
    found: Counter[str] = Counter()
    while not review.is_done:
        found.update(review.step(2_000_000.0))
    assert found == dict.fromkeys(SITES, 20)
