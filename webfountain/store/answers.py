"""The arguments and results of the steps of the store contract: frozen rows, one for each step."""

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
"""Returns the importances for a list of records, in order."""
RevisedBy = Callable[[PageRecord], PageRecord | None]
"""Returns the record that replaces another one, or None to leave the page unchanged."""
SiteOrder = Literal["name", "pages", "due", "failed", "changed"]
"""Order of a list of sites. In the order of the words: by name, most known URLs first, earliest due time first (after
the active sites), most failed URLs first, latest change first.
"""


class Refill(msgspec.Struct, frozen=True):
    """The number of URLs that a site needs from each of its queues, and the horizons, which define which URLs are due.

    `classes` is the horizon of the never-crawled queue, one time per class: the most overdue URLs go first. If it is
    None, all URLs are due, and the most important class goes first. `horizon` is the horizon of the recrawl queue, one
    time per lane; it is required if `recrawl` is not 0.
    """

    lease: SiteLease
    immediate: int = 0
    never_crawled: int = 0
    recrawl: int = 0
    classes: Sequence[float] | None = None
    horizon: Sequence[float] = ()


class LeaseBatch(msgspec.Struct, frozen=True):
    """Answer to a `Refill`: leases from each queue and, if recrawl URLs were requested, the next order of each recrawl
    lane.

    `overtaken`: a URL that is leased already has become immediate. After its release, the next refill of immediate URLs
    returns it. This is reported once, in the answer to a refill that requests immediate URLs. `withheld`: number of
    leases that the worker ended or released before the site received them. An empty answer means that the store has no
    more URLs only if `withheld` is 0.
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
        """Whether the store had nothing to lease in the queues of the refill."""
        return not (self.never_crawled or self.recrawl or self.withheld)


class ParkRequest(msgspec.Struct, frozen=True, gc=False):
    """A site that leaves an ant's active list, with the time at which it is due again (inf: when a URL is discovered)
    and the state to store.
    """

    lease: SiteLease
    due: float
    state: SiteState


class RegradeResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a `regrade`: how many never-crawled URLs were examined, how many of them changed lanes, and whether all
    are up to date.
    """

    seen: int
    moved: int
    done: bool


class ReassignResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a `reassign`: number of pages put under another policy, and the keys of the pages skipped because they
    are leased.
    """

    put: int = 0
    leased: tuple[bytes, ...] = ()


class BucketCensus(msgspec.Struct, frozen=True, gc=False):
    """The crawled pages of one bucket now: their number, and the sum of their `last_crawled`, from which the mean age
    follows.
    """

    pages: int
    sum_last_crawled: float


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot of the counts.

    `immediate` counts the URLs in immediate lanes that are not leased. `settle_lost` counts outcomes whose lease was
    lost; `fenced` counts other steps whose site lease was lost.
    """

    pages: Mapping[State, int]
    sites: int
    active_sites: int
    leased: int
    immediate: int
    settle_lost: int
    fenced: int = 0


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The owner of a name, the deadline, and the owner's note.

    If `owner` is "", the name has no owner, and no process may claim it before `until`. `lost_by` is the previous
    owner, if its claim expired and this call took the name over.
    """

    name: str
    owner: str
    until: float
    note: bytes = b""
    lost_by: str | None = None


class SetBack(msgspec.Struct, frozen=True):
    """A report that the server of a store lost its latest steps, and that the lost work of this process has been
    repaired.

    `voided`: (site, token) of the site leases that ended because of this loss. Other knowledge of a process about the
    store, such as its cache of known URLs, may be out of date.
    """

    voided: frozenset[tuple[str, int]]
