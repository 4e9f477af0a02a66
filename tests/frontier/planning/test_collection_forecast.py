"""Pages that fail are no fresh ones, whether they were held before or never."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.planning.collection_forecast import failing_pages
from webfountain.report.status import status

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOME, DAY = "http://home.example", 86_400.0


class Web:
    """A home page and forty others, which answer 500 once `broken`."""

    broken = False

    def __call__(self, fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        if self.broken and fetch.url != f"{HOME}/":
            return 500, {}, b"", 0.01
        links = "".join(f"<a href='/{number}'>x</a>" for number in range(40))
        return 200, {"content-type": "text/html"}, f"{fetch.url} {links}".encode(), 0.01


def freshness(drive: Drive) -> float:
    found = status(drive.store, at=drive.clock.now())
    share: float = found["freshness"]
    assert found["failing"] == failing_pages(drive.store.board)
    estimate = drive.frontier.worker.fresh_share(drive.frontier.progress.stored, drive.clock.now())
    assert estimate is not None
    assert abs(estimate - share) < 1e-9, "the display and status say the same"
    return share


def test_held_pages_that_fail_are_not_counted_as_fresh_and_are_again_when_they_answer() -> None:
    web = Web()
    collection = collection_of([f"{HOME}/"], rest="[policies.default]\nrevisit = { max_interval = '2h' }\n")
    drive = Drive(collection, web)
    drive.run(seconds=3600.0)
    assert drive.outcomes["new"] == 41
    assert freshness(drive) > 0.9
    web.broken = True
    drive.run(seconds=4 * 3600.0)
    assert failing_pages(drive.store.board) == 40
    assert freshness(drive) < 0.05
    web.broken = False
    drive.run(seconds=3 * DAY)
    assert failing_pages(drive.store.board) == 0
    assert freshness(drive) > 0.8
    drive.check_valid()


def test_pages_that_never_answered_are_known_and_not_fresh() -> None:
    web = Web()
    web.broken = True
    drive = Drive(collection_of([f"{HOME}/"]), web)
    drive.run(seconds=3600.0)
    assert failing_pages(drive.store.board) == 0, "nothing of them is held"
    assert freshness(drive) < 0.05
