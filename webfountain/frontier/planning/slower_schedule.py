"""Detect that the schedule became slower: then pages whose policy has narrower bounds need an explicit due time.

A page stays in the lane of its bucket if the lane comes due within the bounds of the page's policy; otherwise it has
an explicit time (`within_policy`). This is decided at its visit, by the schedule at that time. A later plan or a
higher price may make the lane slower than the longest interval of the policy, and the page would be late once. So the
pages are read again whenever the schedule became slower (`Review.place_anew`).

Place in the walk: a batch's schedule -> **here** -> the stage of the policy review. It is used in the worker thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webfountain.frontier.planning.schedule import Schedule

__all__ = ["SLOWER", "SlowerSchedule"]

SLOWER: Final = 1.02
"""Factor on the intervals above which pages are read again. A page may be late by this share of an interval."""


class SlowerSchedule:
    """Compares each schedule with the fastest one that decided about pages."""

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._fastest = 0.0

    def follow(self, schedule: Schedule | None) -> bool:
        """Follow a schedule from now on. Return whether pages must be read again because of it.

        The first schedule counts as slower, because an earlier process decided by a schedule that is not known.
        """
        if schedule is None:
            return False
        pace, is_other = schedule.pace, schedule is not self._schedule
        if is_other or pace > SLOWER * self._fastest:
            self._schedule, self._fastest = schedule, pace
            return True
        self._fastest = min(self._fastest, pace)
        return False
