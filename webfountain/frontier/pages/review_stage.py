"""Update known pages after an edit of the policy file, a switch to another policy, or a slower schedule.

If the schedule would fetch a visited page earlier or later than its policy allows, the page gets a due time of its own
(`within_policy`). If the schedule becomes slower, all pages are read again, because some may be visited too rarely for
their policies (`SlowerSchedule`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.stage import Stage
from webfountain.frontier.visit import leased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.pages.policy_review import Review
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["SLOWER", "ReviewStage", "SlowerSchedule"]

SLOWER: Final = 1.02
"""Pages are read again only if the intervals of the schedule grew by more than this factor. A page may be late by up to
2 % of its interval, because smaller slowdowns are ignored.
"""


class ReviewStage(Stage):
    """The stage that reviews known pages, a few with each batch."""

    def __init__(self, review: Review, store: FrontierStore, judge: Judge, due: DuplicateEliminator) -> None:
        self._review = review
        self._judge = judge
        self._store = store
        self._due = due
        self._slower = SlowerSchedule()

    def visited(self, visits: Sequence[Visit], at: float) -> None:
        """Pass switched pages to the review, which moves the pages that were discovered through them."""
        if not self._judge.policies.switches:
            return
        review, pairs = self._review, [(leased(visit.fetch), visit.record) for visit in visits]
        switched = [new for old, new in pairs if new.policy != old.policy]
        switched += review.note([(old.policy, new) for old, new in pairs if old.state == "never-crawled"], at=at)
        if switched:
            review.follow([record for record in switched if self._judge.reaches_back(record.policy)])

    def adopt(self, collection: Collection) -> None:
        self._review.begin(collection)

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Apply the current policy file to the next pages."""
        review = self._review
        # The controller, whose plan the other ants follow, reads the pages for all ants.
        if batch.rules and self._judge.has_bounds and self._slower.follow(batch.schedule):
            review.place_anew()
        if review.is_done:
            return
        due = review.step(batch.at, batch.schedule)
        # Links to pages that moved with their parent count again, because other pages may give them better trust.
        for site, key in review.moved:
            self._due.forget(site, key)
        review.moved.clear()
        result.new_pages.update(due)
        result.counts["policy/made_due"] += sum(due.values())
        result.unfinished |= not (review.is_done or review.is_waiting)

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Move newly leased pages to the policy that the review requires, and give their leases back."""
        overruled = self._review.overruled([lease.record for lease in dealt.never_crawled], at=at)
        if not overruled:
            return dealt
        gone = [lease for lease in dealt.never_crawled if lease.record.url in overruled]
        self._store.queues.release([lease.id for lease in gone])
        self._store.queues.reassign(dealt.site, [lease.key for lease in gone], lambda record: overruled.get(record.url))
        for lease in gone:
            self._due.forget(dealt.site, lease.key)
        left = [lease for lease in dealt.never_crawled if lease.record.url not in overruled]
        return msgspec.structs.replace(dealt, never_crawled=left)


class SlowerSchedule:
    """Compares the current schedule with the fastest earlier schedule, which may have determined the due times of
    pages.
    """

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._fastest = 0.0

    def follow(self, schedule: Schedule | None) -> bool:
        """Return whether the current schedule is slower than before, so that all pages must be read again.

        The first schedule of a process counts as slower, because an earlier process may have used a faster one.
        """
        if schedule is None:
            return False
        pace, is_other = schedule.pace, schedule is not self._schedule
        if is_other or pace > SLOWER * self._fastest:
            self._schedule, self._fastest = schedule, pace
            return True
        self._fastest = min(self._fastest, pace)
        return False
