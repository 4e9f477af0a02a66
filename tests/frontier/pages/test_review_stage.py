"""Slower schedules: whatever the pace does, pages were never placed by one that is much faster than the present one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.pages.review_stage import SLOWER, SlowerSchedule
from webfountain.frontier.planning.plan import Bounds
from webfountain.frontier.planning.schedule import BucketSchedule


class PacedSchedule(BucketSchedule):
    """A schedule of any pace."""

    def __init__(self, pace: float) -> None:
        super().__init__(fastest=900.0, bounds=Bounds())
        self.given = pace

    @property
    def pace(self) -> float:
        return self.given


@given(st.lists(st.one_of(st.floats(0.01, 100.0), st.floats(0.98, 1.04)), min_size=1))
def test_no_page_was_placed_by_a_schedule_that_was_much_faster_than_the_present_one(paces: list[float]) -> None:
    slower, schedule, fastest = SlowerSchedule(), PacedSchedule(1.0), 0.0
    for pace in paces:
        schedule.given = pace
        if slower.follow(schedule):
            fastest = pace
        fastest = min(fastest, pace)
        assert pace <= SLOWER * fastest


def test_another_schedule_is_slower_as_its_buckets_may_be_and_the_same_is_not() -> None:
    slower, first, second = SlowerSchedule(), PacedSchedule(1.0), PacedSchedule(0.5)
    assert [slower.follow(each) for each in (first, first, None, second, second, first)] == [
        True, False, False, True, False, True,
    ]  # fmt: skip
