"""A site whose pages are slow to read is asked for few of them, and less and less often."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.sites.hand import MAX_UNREAD

if TYPE_CHECKING:
    from webfountain.records import Fetch, FetchResult

SLOW, GOOD = "http://slow.example", "http://good.example"


def web(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    links = "".join(f'<a href="/{number}">x</a>' for number in range(200))
    return 200, {"content-type": "text/html"}, links.encode(), 0.01


class SlowReading(Drive):
    """What comes from the slow site takes longer to read than any page may."""

    def _land(self, fetched: FetchResult) -> None:
        if fetched.fetch.kind == "page" and fetched.fetch.site == SLOW and not fetched.fetch.url.endswith("/"):
            self.open[SLOW] -= 1
            self.frontier.landed(fetched)
            self.frontier.finish(self.frontier.examiner._examiner.unreadable(fetched, "parse-time"))
        else:
            super()._land(fetched)


def collection_of_both() -> Drive:
    return SlowReading(collection_of([f"{SLOW}/", f"{GOOD}/"], delay_factor=0, politeness="per_ip = false"), web)


def test_a_site_whose_pages_take_too_long_to_read_is_left_alone_longer_each_time() -> None:
    drive = collection_of_both()
    drive.run(seconds=300.0)
    slow = [at for at, kind, url in drive.log if kind == "page" and url.startswith(SLOW)]
    good = [at for at, kind, url in drive.log if kind == "page" and url.startswith(GOOD)]
    assert len(good) > 190
    assert len(slow) < 12
    gaps = [later - earlier for earlier, later in pairwise(slow[1:])]
    assert gaps[-1] > 3 * gaps[0]
    assert drive.metrics.get("ant/slow_pages") == len(slow) - 1


def test_a_site_is_asked_for_no_more_pages_while_some_wait_to_be_read() -> None:
    drive = Drive(collection_of([f"{GOOD}/"], delay_factor=0), web)
    drive.run(seconds=10.0)
    sites, before = drive.frontier.sites, len(drive.asked())
    readings = [sites.flights.reading(GOOD) for _ in range(MAX_UNREAD)]
    for reading in readings:
        reading.__enter__()
    drive.run(seconds=60.0)
    assert len(drive.asked()) <= before + 1
    held = len(drive.asked())
    readings.pop().__exit__(None, None, None)
    drive.run(seconds=10.0)
    assert len(drive.asked()) >= held + 9
