"""The owner of an active site, and the new URLs that decide when the site is due again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from webfountain.store.answers import Refill

__all__ = ["SiteHolder"]


@dataclass(slots=True)
class SiteHolder:
    """The owner of a site, its token and deadline, and whether new URLs have arrived that the owner has not
    received."""

    owner: str
    token: int
    until: float
    fresh: float = math.inf
    """Time of the first new URL after the last refill that took all due never-crawled URLs; inf if there is none."""
    hurried: bool = False
    """True if an immediate URL arrived after the last refill that took all immediate URLs."""
    overtaken: bool = False
    """True if a leased URL became immediate and the owner does not know it yet."""

    def note_new(self, at: float) -> None:
        self.fresh = min(self.fresh, at)

    def note_refill(self, refill: Refill, *, immediate: int, never_crawled: int) -> bool:
        """Record how many URLs a refill got. Return `LeaseBatch.overtaken`."""
        self.hurried = self.hurried and immediate >= refill.immediate
        overtaken = self.overtaken and refill.immediate > 0
        self.overtaken = self.overtaken and not overtaken
        self.fresh = self.fresh if never_crawled >= refill.never_crawled else math.inf
        return overtaken

    def due_again(self, due: float, *, returned: float) -> float:
        """Return when a site is due again after its ant has parked it with the due time `due`. `returned` is the time
        at which leased URLs returned to the queues, or inf if none did."""
        return AT_ONCE if self.hurried else min(due, self.fresh, returned)
