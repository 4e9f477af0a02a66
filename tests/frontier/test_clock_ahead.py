"""A crawl whose clock was ahead, and is right again, asks its pages when they are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.store.embedded.opening import open_embedded

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import Fetch
    from webfountain.store.embedded.store import EmbeddedStore

NOW, DAY = 1_000_000.0, 86_400.0
PAGES = 25


def web(fetch: Fetch, at: float) -> Answer:
    """A site of some pages that change every hour."""
    if fetch.kind != "page":
        return 404, {}, b"", 0.1
    links = "".join(f'<a href="/{i}">{i}</a>' for i in range(PAGES))
    return 200, {"content-type": "text/html"}, f"<p>{int(at // 3600)} {links}</p>".encode(), 0.1


def opened(folder: Path, collection: Collection, at: float) -> EmbeddedStore:
    cycle = collection.cycle
    return open_embedded(
        folder, collection="test", period_s=cycle.period_s, fastest_s=cycle.fastest_s, read_only=False, at=at
    )


@pytest.mark.parametrize("plan", ["by buckets", "by urgency"])
@pytest.mark.parametrize("end", ["closed", "killed"])
def test_nothing_that_a_clock_that_was_ahead_put_off_waits_for_that_time(tmp_path: Path, plan: str, end: str) -> None:
    """What was learned of a site beside its state kept the times of such a run: nothing was asked until then."""
    rest = "" if plan == "by buckets" else "capacity_pages_per_period = 20\nperiods = 2"
    collection = collection_of(["http://a.example/"], period="1h", rest=rest)
    ahead = Drive(collection, web, store=opened(tmp_path, collection, NOW + DAY), clock=ManualClock(NOW + DAY))
    ahead.run(seconds=3 * 3600.0)
    assert len(ahead.asked()) > PAGES
    if end == "closed":
        ahead.frontier.close()
    else:
        ahead.store.close()
    now = Drive(collection, web, store=opened(tmp_path, collection, NOW), clock=ManualClock(NOW))
    now.run(seconds=2 * 3600.0)
    assert len(now.asked()) >= 10
    now.frontier.close()
