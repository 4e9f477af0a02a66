"""The arguments and results of the methods of the store contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from webfountain.records import PageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.records import Lease, SiteLease, SiteState, State

__all__ = [
    "BucketCensus",
    "Claim",
    "ImportanceOf",
    "LeaseBatch",
    "ParkRequest",
    "ReassignResult",
    "Refill",
    "RegradeResult",
    "RevisedBy",
    "SetBack",
    "SiteOrder",
    "Statistics",
]

ImportanceOf = Callable[[Sequence[PageRecord]], Sequence[float]]
"""Type of a function that returns the importance of each record in a list."""
RevisedBy = Callable[[PageRecord], PageRecord | None]
"""Type of a function that returns the new record of a page, or None to leave the page unchanged."""
SiteOrder = Literal["name", "pages", "due", "failed", "changed"]
"""Order of a list of sites: by name, number of known URLs, due time, number of failed URLs, or time of the last
change.
"""


class Refill(msgspec.Struct, frozen=True):
    """The number of URLs that a site needs from each of its queues, and the horizons that define which URLs are due.

    `classes` gives a time for each class of importance: a never-crawled URL is due if it was found at or before that
    time. If `classes` is None, all never-crawled URLs are due, the most important first. `horizon` gives a time for
    each lane of the recrawl queue: the entries of the lane up to this time are due. A refill of recrawl URLs (`recrawl`
    is not 0) needs a `horizon`.
    """

    lease: SiteLease
    immediate: int = 0
    never_crawled: int = 0
    recrawl: int = 0
    classes: Sequence[float] | None = None
    horizon: Sequence[float] = ()


class LeaseBatch(msgspec.Struct, frozen=True):
    """Answer to a `Refill`: the leases from each queue.

    `lanes` contains (lane, sort value of the next entry) for each recrawl lane; it is empty if no recrawl URLs were
    requested. `overtaken` is True if a leased URL has become immediate since the last refill of immediate URLs.
    `withheld` is the number of leases that the store worker ended or released before the site received them.
    """

    site: str
    immediate: list[Lease]
    never_crawled: list[Lease]
    recrawl: list[Lease]
    lanes: list[tuple[int, float]]
    overtaken: bool = False
    withheld: int = 0

    @property
    def is_empty(self) -> bool:
        """True if the store had no due URLs for the refill."""
        return not (self.never_crawled or self.recrawl or self.withheld)


class ParkRequest(msgspec.Struct, frozen=True, gc=False):
    """A site that leaves an ant's active list. `due` is the time at which the site is due again, or inf if only a new
    URL makes it due.
    """

    lease: SiteLease
    due: float
    state: SiteState


class RegradeResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a `regrade`: `seen` URLs were examined, `moved` URLs changed lanes, and `done` is True if the whole
    site is up to date."""

    seen: int
    moved: int
    done: bool


class ReassignResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a `reassign`: the number of changed pages, and the keys of pages that were skipped because they are
    leased.
    """

    put: int = 0
    leased: tuple[bytes, ...] = ()


class BucketCensus(msgspec.Struct, frozen=True, gc=False):
    """The number of crawled pages in one bucket, and the sum of their `last_crawled`."""

    pages: int
    sum_last_crawled: float


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """The counts of a store at one moment.

    `immediate` counts the unleased URLs in immediate lanes. `settle_lost` counts outcomes whose lease was lost.
    `fenced` counts steps that had no effect because their site lease was lost. Lost outcomes are counted in
    `settle_lost`, not in `fenced`.
    """

    pages: Mapping[State, int]
    sites: int
    active_sites: int
    leased: int
    immediate: int
    settle_lost: int
    fenced: int = 0


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A claim: one process owns a name until a deadline. A process can store a note with its claim.

    If `owner` is "", no process may claim the name before `until`. `lost_by` is the previous owner of an expired claim
    that was taken over.
    """

    name: str
    owner: str
    until: float
    note: bytes = b""
    lost_by: str | None = None


class SetBack(msgspec.Struct, frozen=True):
    """A report that the server of a store lost its latest steps. A process reports a set-back only after it has
    repeated its own lost steps.

    `voided` contains (site, token) of the site leases that ended because of the loss.
    """

    voided: frozenset[tuple[str, int]]
