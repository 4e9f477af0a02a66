"""Between loop and worker: forgetting in flight, a slow worker, restarts, turns of the active list."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from webfountain.records import Fetch

SITE = "http://one.example"
DAY = 86_400.0


def many_pages(n: int) -> dict[str, bytes]:
    return {"": linked(*[f"p{i}" for i in range(n)])} | {f"p{i}": b"x" for i in range(n)}


def test_a_page_forgotten_in_flight_stays_forgotten() -> None:
    drive = Drive(collection_of([f"{SITE}/"]), site_of_pages(many_pages(5), seconds=2.0))
    drive.run(until=lambda: len(drive.asked()) == 2)
    url = drive.asked()[-1]
    drive.store.pages.forget(SITE, fingerprint(url), at=drive.clock.now())
    drive.run(seconds=600)
    assert drive.store.pages.get(SITE, fingerprint(url)) is None
    assert drive.metrics.get("ant/settle_lost") == 1
    assert len(set(drive.asked())) == 6
    assert drive.frontier.progress.statistics().active_sites == 0


@pytest.mark.untraced
def test_sites_rotate_by_quantum_when_others_wait() -> None:
    sites = [f"http://s{i}.example" for i in range(4)]
    drive = Drive(
        collection_of([f"{site}/" for site in sites], politeness="per_ip = false", delay_factor=0),
        site_of_pages(many_pages(1500)), active_sites=2,
    )  # fmt: skip

    def asked() -> list[int]:
        counts = Counter(url.rsplit("/", 1)[0] for url in drive.asked())
        return [counts[site] for site in sites]

    drive.run(until=lambda: len(drive.log) % 100 == 0 and max(asked()) >= 1500)
    assert min(asked()) >= 900, "no site was served whole before others had a turn"


def test_a_restart_remembers_politeness_robots_and_back_off() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return (200, {}, b"User-agent: *\nCrawl-delay: 30\nDisallow: /no", 0.05)
        return (429, {"retry-after": "500"}, b"", 0.05)

    drive = Drive(collection_of([f"{SITE}/", f"{SITE}/no"]), answer)
    drive.run(until=lambda: len(drive.asked()) == 1 and not drive.flying)
    drive.step()
    refused_at = drive.clock.now()
    drive.frontier.close()
    again = Drive(drive.collection, answer, store=drive.store, clock=drive.clock, seed=2)
    again.run(seconds=2 * DAY)
    assert again.asked("robots")[:1] in ([], ["http://one.example/robots.txt"])
    first = next(at for at, _, _ in again.log)
    assert first >= refused_at + 499
    state = drive.site(SITE).state
    assert (state.crawl_delay, state.failures >= 1, state.robots is not None) == (30.0, True, True)
    assert f"{SITE}/no" not in again.asked()


def test_max_pages_and_max_seconds_end_the_crawl() -> None:
    drive = Drive(collection_of([f"{SITE}/"]), site_of_pages(many_pages(20)), max_pages=3)
    drive.run(seconds=600)
    assert len(drive.asked()) == 3
    assert drive.frontier.finish_reason() == "max_pages"
    timed = Drive(collection_of([f"{SITE}/"]), site_of_pages({}), max_seconds=50)
    assert timed.frontier.finish_reason() is None
    timed.clock.advance(50.0)
    assert timed.frontier.finish_reason() == "max_seconds"
