"""Discover links: pass them through the duplicate URL eliminator into the store.

Place in the walk: it receives the links of visits before these are settled, URLs of sitemaps, and requests of other
projects.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.topics import HOT
from webfountain.frontier.worker.item_by_item import act_on
from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Link, Outcome

__all__ = ["Discovery"]

MAX_LINKS: Final = 5000
"""Largest number of links discovered in one step of the store. Such a step takes some tens of milliseconds."""
_NAMES: Final = ("duplicates/new", "duplicates/by_cache", "duplicates/by_store", "policy/reassigned")


class Discovery(Stage):
    """Discovers links, and stores the requests that a batch offers."""

    def __init__(self, due: DuplicateEliminator) -> None:
        self._due = due
        self._counted = (0, 0, 0, 0)

    def discover(self, links: Sequence[Link], result: BatchResult) -> list[Link]:
        """Add links to the store. Return the new ones."""
        new: list[Link] = []
        for first in range(0, len(links), MAX_LINKS):
            new += self._due.discover(links[first : first + MAX_LINKS], at=result.batch.at)
        result.new_pages.update(link.site for link in new)
        result.hot.update(link.site for link in new if link.scores and link.importance >= HOT)
        return new

    def under_policy(self, lease: Lease, outcome: Outcome) -> Outcome:
        """Return an outcome with the current policy of its page, because a link found while the page was leased may
        have changed it.
        """
        record = self._due.overtaken(lease, outcome.record)
        return outcome if record is outcome.record else msgspec.structs.replace(outcome, record=record)

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        if batch.offers:
            act_on(batch.offers, partial(self._offer, result), result)

    def adopt(self, collection: Collection) -> None:
        self._due.adopt(collection)

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Count what the eliminator found since the last batch."""
        found = self._due.statistics()
        now = (found.new, found.duplicates_by_cache, found.duplicates_by_store, found.reassigned)
        before, self._counted = self._counted, now
        result.counts.update({name: n - m for name, n, m in zip(_NAMES, now, before, strict=True)})

    def _offer(self, result: BatchResult, links: Sequence[Link]) -> None:
        known = self._due.offer(links, at=result.batch.at)
        result.known += known
        if len(known) < len(links):
            result.new_pages.update(link.site for link in links)
