"""A site's hand: the leased URLs that it holds ready.

The hand keeps the leased URLs and the files to fetch from a site in the queues of Figure 1 (Edwards 2001, third tier).
The never-crawled and recrawl queues are combined by weights. Of equally important never-crawled URLs, the one that most
probably has a page is first. robots.txt and sitemaps come before both queues, immediate URLs before all. The hand grows
whenever it was used up completely, so a fast site needs few refills and a slow site holds few leases. The site decides
what may be requested and when (`site`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.sites.domain_shares import CappedSequencer
from webfountain.frontier.sites.sequencers import Fifo, FirstOf, Immediate, ValueQueue, WeightedRandom
from webfountain.store.lanes import class_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.sites.domain_shares import DomainShare
    from webfountain.frontier.sites.sequencers import Sequencer
    from webfountain.records import Fetch, LeaseId, PageRecord

__all__ = ["LARGEST_HAND", "Hand", "largest_hand"]

LARGEST_HAND: Final = 64
_HAND_S: Final = 0.2
"""Shortest time that a full hand lasts, seconds."""


class Hand:
    """The leased pages and the files of one site. `weights` returns the weights of its two queues, given the first
    page of the never-crawled queue; it is called at every choice. `chance` returns the chance that a never-crawled URL
    has a page.
    """

    __slots__ = (
        "_chance",
        "_largest",
        "_least",
        "_never",
        "_recrawl",
        "_size",
        "_smallest",
        "_weights",
        "files",
        "held",
        "is_short",
        "sequencer",
        "urgent",
    )

    def __init__(
        self,
        weights: Callable[[PageRecord], Sequence[float]],
        chance: Callable[[PageRecord], float],
        rng: random.Random,
        *,
        size: int,
        largest: int,
        domain: DomainShare | None = None,
    ) -> None:
        """`domain` is the domain of the site, if domains have shares."""
        self._weights, self._chance = weights, chance
        self._size = self._smallest = size
        self._largest = largest
        self._least = inf  # lower bound of the importance of the never-crawled pages in it
        self._never: ValueQueue[Fetch] = ValueQueue(_importance_class)
        self._recrawl: ValueQueue[Fetch] = ValueQueue(_importance_class)
        self.files: Fifo[Fetch] = Fifo()
        """robots.txt and sitemaps."""
        self.urgent: Immediate[Fetch] = Immediate()
        """Immediate URLs, and the robots.txt that they wait for."""
        self.held: list[Fetch] = []
        """Immediate URLs that wait for robots.txt or an address."""
        self.is_short = True
        """True if, at the last refill, the store had fewer due known pages than the hand had room for."""
        joined: Sequencer[Fetch] = WeightedRandom((self._never, self._recrawl), self._draw_weights, rng)
        if domain is not None:
            joined = CappedSequencer(joined, domain)
        self.sequencer: FirstOf[Fetch] = FirstOf((self.urgent, self.files, joined))

    def backlog(self) -> int:
        """Return how many fetches are ready, without those in `held`."""
        return len(self.urgent.items) + len(self.files.items) + self.pages()

    def pages(self) -> int:
        """Return how many pages are in the two queues."""
        return len(self._never.items) + len(self._recrawl.items)

    def runs_low(self) -> bool:
        """Return whether more pages should be leased."""
        return len(self._never.items) + len(self._recrawl.items) <= self._size // 4

    def is_deep(self) -> bool:
        """Return whether the hand has grown to its largest size, because the store always had more."""
        return self._size == self._largest

    def room(self) -> tuple[int, int]:
        """Return how many never-crawled and known pages fit into the hand."""
        return self._size - len(self._never.items), self._size - len(self._recrawl.items)

    def deal(self, never: Iterable[Fetch], recrawl: Iterable[Fetch], *, full: bool) -> None:
        """Add leased pages. `full` is True if the store may have more, so the hand grows."""
        room = self._size
        if full:
            self._size = min(2 * self._size, self._largest)
        never = list(never)
        held = self._least if self._never.items else inf
        self._least = min(held, min(map(_importance, never), default=inf))
        self._never.load(never)
        self._put_probable_first()
        self._recrawl.load(recrawl)
        self.is_short = len(self._recrawl.items) < room

    def _put_probable_first(self) -> None:
        chances = [self._chance(_record(fetch)) for fetch in self._never.items]
        if min(chances, default=1.0) < 1.0:
            ready = zip(self._never.flush(), chances, strict=True)
            ordered = sorted(ready, key=lambda each: (-_importance_class(each[0]), -each[1]))
            self._never.load(fetch for fetch, _ in ordered)

    def _draw_weights(self) -> Sequence[float]:
        return self._weights(_record(self._never.items[0]))

    # ---------------------------------------------------------------- files

    def add_robots(self, robots: Fetch) -> None:
        """Add a robots.txt request. The robots.txt comes before all others if immediate URLs wait, because its rules
        apply to them.
        """
        self.held += self._take_urgent()
        (self.urgent if self.held else self.files).load([robots])

    def hasten_files(self) -> None:
        """Put an unsent robots.txt request before all others, because immediate URLs wait for it."""
        waiting = self.files.flush()
        self.urgent.load(fetch for fetch in waiting if fetch.kind == "robots")
        self.files.load(fetch for fetch in waiting if fetch.kind != "robots")

    # --------------------------------------------------- immediate URLs that wait

    def hold(self, urgent: Iterable[Fetch]) -> None:
        """Add immediate URLs that must wait."""
        self.held += urgent

    def take_held(self) -> list[Fetch]:
        """Return the waiting immediate URLs, which leave the hand and must be judged."""
        held, self.held = self.held, []
        return held

    # ------------------------------------------------------------ giving back

    def take_pages(self) -> list[Fetch]:
        """Remove and return all leased pages that are ready."""
        return self._take_urgent() + self._never.flush() + self._recrawl.flush()

    def take_files(self) -> list[Fetch]:
        """Remove and return the files that were not requested."""
        return self.files.flush() + [fetch for fetch in self.urgent.flush() if fetch.lease is None]

    def flush_pages(self) -> list[LeaseId]:
        """Remove the pages of the two queues and return their leases."""
        return _leases(self._never.flush() + self._recrawl.flush())

    def flush_recrawl(self) -> list[LeaseId]:
        """Remove the known pages and return their leases."""
        return _leases(self._recrawl.flush())

    def flush_outranked(self, importance: float) -> list[LeaseId]:
        """Remove the never-crawled pages that are less important than a new page, and return their leases.

        The hand then returns to its smallest size. Otherwise many pages would be given back each time a page leads to
        more important ones.
        """
        if importance <= self._least:
            return []
        ready = self._never.flush()
        outranked = [fetch for fetch in ready if _importance(fetch) < importance]
        self._never.load(fetch for fetch in ready if _importance(fetch) >= importance)
        self._least = importance
        if outranked:
            self._size = self._smallest
        return _leases(outranked)

    def flush(self) -> list[LeaseId]:
        """Remove all pages and return their leases."""
        return _leases(self._take_urgent() + self.take_held() + self._never.flush() + self._recrawl.flush())

    def _take_urgent(self) -> list[Fetch]:
        """Remove and return the immediate URLs. If a robots.txt request is among them, it stays."""
        if not self.urgent.items:
            return []
        ready = self.urgent.flush()
        self.urgent.load(fetch for fetch in ready if fetch.lease is None)
        return [fetch for fetch in ready if fetch.lease is not None]


def largest_hand(capacity: float | None, period_s: float) -> int:
    """Return the largest size of a hand for `capacity` fetches per period; None: as many as politeness allows.

    New pages cannot overtake leased ones. So a hand has at most a twentieth of a period's fetches, but enough for the
    worker's next batch in an accelerated test.
    """
    if capacity is None:
        return LARGEST_HAND
    ahead = max(capacity / 20, _HAND_S * capacity / period_s)
    return int(min(LARGEST_HAND, max(1.0, ahead)))


def _importance(fetch: Fetch) -> float:
    """Return the importance of a leased page. A fetch without a lease comes before all others."""
    return inf if fetch.lease is None else fetch.lease.record.importance


def _importance_class(fetch: Fetch) -> float:
    """Return the rank of a leased page in its queue; the greatest is first. Pages of one class of importance have the
    same rank.
    """
    return 0.0 if fetch.lease is None else -float(class_of(fetch.lease.record.importance))


def _record(fetch: Fetch) -> PageRecord:
    assert fetch.lease is not None, "only leased pages are in the two queues"
    return fetch.lease.record


def _leases(fetches: Iterable[Fetch]) -> list[LeaseId]:
    return [fetch.lease.id for fetch in fetches if fetch.lease is not None]
