"""Extra visits, seconds after a visit, on a site that has many URLs in hand and a long delay."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked
from webfountain.clock import ManualClock
from webfountain.core.noise import decode
from webfountain.repository.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

HOME, CLOCK = "http://one.example/", "http://one.example/20"
DELAY_S, DAY = 5.0, 86_400.0
RULES = (
    '[change]\nmin_change = 0\nlearn = {learn}\n[policies.default.revisit]\nmin_interval = "1d"\nmax_interval = "1d"\n'
)


def web(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    """A hundred pages; one of them shows the time."""
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    body = linked(*map(str, range(100))) if fetch.url == HOME else b"<p>a page"
    return 200, {"content-type": "text/html"}, b"<p>It is %d" % at if fetch.url == CLOCK else body, 0.01


@pytest.mark.parametrize("learn", [True, False])
def test_an_extra_visit_goes_before_the_urls_in_hand_and_keeps_the_delay(tmp_path: Path, learn: bool) -> None:
    clock = ManualClock(1_000_000.0)
    collection = collection_of([HOME], rest=RULES.format(learn=str(learn).lower()), min_delay=f"{DELAY_S:.0f}s")
    drive = Drive(collection, web, repository=Repository(tmp_path, clock=clock), clock=clock)
    drive.run(until=lambda: len(drive.asked()) == 101)
    for _ in range(2):  # one difference may be an edit; the second one orders an extra visit
        clock.advance(2 * DAY)  # so that all pages are due at once, and the hand is full
        drive.run(seconds=DAY / 2)
    times = [at for at, _, url in drive.log if url == CLOCK]
    extra = [gap for gap in map(sub, times[1:], times) if gap < DAY / 2]
    assert [gap <= 30 + 2 * DELAY_S for gap in extra] == [True] * learn
    sent = [at for at, kind, _ in drive.log if kind == "page"]
    assert min(map(sub, sent[1:], sent)) >= DELAY_S
    assert any(each.evidence.close_again for each in decode(drive.page(CLOCK).noise)) == learn
