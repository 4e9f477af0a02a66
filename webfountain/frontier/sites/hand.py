"""A site's hand: what is leased of it and held ready, and the files to ask of it, in the queues of Figure 1.

Edwards 2001, third tier: never-crawled and recrawl joined by a weight; robots.txt and sitemaps before both, immediate
URLs before all. The hand grows while it is used up whole, so that a fast site needs few refills and a slow one holds
few leases. What may be asked, and when, is the site's to say (`site`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.sites.sequencer import Fifo, FirstOf, Immediate, WeightedRandom

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.records import Fetch, LeaseId

__all__ = ["LARGEST_HAND", "Hand", "largest_hand"]

LARGEST_HAND: Final = 64
_HAND_S: Final = 0.2
"""A hand lasts so long at least, seconds."""


class Hand:
    """The leased pages and the files of one site. `weights` are those of its two queues, asked at every choice."""

    __slots__ = (
        "_largest",
        "_never",
        "_recrawl",
        "_size",
        "_smallest",
        "files",
        "held",
        "is_short",
        "sequencer",
        "urgent",
    )

    def __init__(self, weights: Callable[[], Sequence[float]], rng: random.Random, *, size: int, largest: int) -> None:
        self._size = self._smallest = size
        self._largest = largest
        self._never: Fifo[Fetch] = Fifo()
        self._recrawl: Fifo[Fetch] = Fifo()
        self.files: Fifo[Fetch] = Fifo()
        """robots.txt and sitemaps."""
        self.urgent: Immediate[Fetch] = Immediate()
        """Immediate URLs, and the robots.txt that they wait for."""
        self.held: list[Fetch] = []
        """Immediate URLs that wait for robots.txt or an address."""
        self.is_short = True
        """The store had fewer known pages due than there was room for, when last asked."""
        joined = WeightedRandom((self._never, self._recrawl), weights, rng)
        self.sequencer: FirstOf[Fetch] = FirstOf((self.urgent, self.files, joined))

    def backlog(self) -> int:
        """How many fetches are ready; those `held` are not."""
        return self.sequencer.backlog()

    def pages(self) -> int:
        """How many pages of the two queues it holds."""
        return self._never.backlog() + self._recrawl.backlog()

    def runs_low(self) -> bool:
        """Whether more should be leased."""
        return self._never.backlog() + self._recrawl.backlog() <= self._size // 4

    def room(self) -> tuple[int, int]:
        """How many never-crawled and known pages it has room for."""
        return self._size - self._never.backlog(), self._size - self._recrawl.backlog()

    def deal(self, never: Iterable[Fetch], recrawl: Iterable[Fetch], *, full: bool) -> None:
        """Take leased pages in. `full`: the store gave some, so it may have more."""
        room = self._size
        if full:
            self._size = min(2 * self._size, self._largest)
        self._never.load(never)
        self._recrawl.load(recrawl)
        self.is_short = self._recrawl.backlog() < room

    # ---------------------------------------------------------------- files

    def add_file(self, robots: Fetch) -> None:
        """A robots.txt is to be asked, before all others where immediate URLs wait for it."""
        (self.urgent if self.held else self.files).load([robots])

    def hasten_files(self) -> None:
        """Immediate URLs wait for robots.txt: if that was not asked yet, it goes before all others."""
        waiting = self.files.flush()
        self.urgent.load(fetch for fetch in waiting if fetch.kind == "robots")
        self.files.load(fetch for fetch in waiting if fetch.kind != "robots")

    # --------------------------------------------------- immediate URLs that wait

    def hold(self, urgent: Iterable[Fetch]) -> None:
        """Immediate URLs came."""
        self.held += urgent

    def hold_urgent(self) -> None:
        """Immediate URLs must wait for a robots.txt."""
        self.held += self._take_urgent()

    def take_held(self) -> list[Fetch]:
        """What was held, to be judged."""
        held, self.held = self.held, []
        return held

    # ------------------------------------------------------------ giving back

    def take_pages(self) -> list[Fetch]:
        """All leased pages that are ready, out of the hand."""
        return self._take_urgent() + self._never.flush() + self._recrawl.flush()

    def take_files(self) -> list[Fetch]:
        """The files that were not asked, out of the hand."""
        return self.files.flush() + [fetch for fetch in self.urgent.flush() if fetch.lease is None]

    def flush_pages(self) -> list[LeaseId]:
        """The leases of the two queues, out of the hand."""
        return _leases(self._never.flush() + self._recrawl.flush())

    def flush_recrawl(self) -> list[LeaseId]:
        """The leases of known pages, out of the hand."""
        return _leases(self._recrawl.flush())

    def flush_outranked(self, importance: float) -> list[LeaseId]:
        """The leases of never-crawled pages, out of the hand, if what is new goes before some of them.

        The hand is small again then: a larger one would be given back with each page that brings such news."""
        if all(fetch.lease is None or fetch.lease.record.importance >= importance for fetch in self._never):
            return []
        self._size = self._smallest
        return _leases(self._never.flush())

    def flush(self) -> list[LeaseId]:
        """All leases, out of the hand."""
        return _leases(self._take_urgent() + self.take_held() + self._never.flush() + self._recrawl.flush())

    def _take_urgent(self) -> list[Fetch]:
        """The immediate URLs, without a robots.txt among them."""
        ready = self.urgent.flush()
        self.urgent.load(fetch for fetch in ready if fetch.lease is None)
        return [fetch for fetch in ready if fetch.lease is not None]


def largest_hand(capacity: float | None, period_s: float) -> int:
    """Most pages in a hand where `capacity` are fetched a period; None: as many as politeness allows.

    What is leased ahead cannot be overtaken by what turns up: at most a twentieth of a period's fetches, but enough
    for the worker's next batch in an accelerated test.
    """
    if capacity is None:
        return LARGEST_HAND
    ahead = max(capacity / 20, _HAND_S * capacity / period_s)
    return int(min(LARGEST_HAND, max(1.0, ahead)))


def _leases(fetches: Iterable[Fetch]) -> list[LeaseId]:
    return [fetch.lease.id for fetch in fetches if fetch.lease is not None]
