"""Keep the leased URLs of a site (its hand), and choose the next one to fetch.

A hand has four first-in, first-out queues (Edwards 2001 section 3, Figure 1, third tier). Immediate URLs come first,
and robots.txt and sitemaps come second. Between its queues of never-crawled and of known pages, the hand chooses at
random, by weights. If the site's domain has used up its share of fetches (`domain_shares`), only immediate URLs and
files are fetched. The hand returns nothing while the site's gate is shut (`politeness`) or `MAX_UNREAD` of its bodies
are unread. A hand starts small, so that a slow site holds few leases, and doubles its maximum size after each refill
that found due pages.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.store.lanes import class_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.sites.domain_shares import DomainShare
    from webfountain.frontier.sites.politeness import Gate
    from webfountain.records import Fetch, LeaseId, PageRecord

__all__ = ["LARGEST_HAND", "MAX_UNREAD", "Hand", "largest_hand"]

LARGEST_HAND: Final = 64
MAX_UNREAD: Final = 2
"""If this many bodies of a site are unread, the site's next fetch waits, so that slow pages do not fill the memory."""
_HAND_S: Final = 0.2
"""A full hand has at least as many URLs as the crawl may fetch in this time, in seconds."""


class Hand:
    """The leased pages and the needed files of one site, from which the next fetch is chosen. Each fetch uses a slot of
    the site's `gate`.

    `weights` gets the record of the first never-crawled page, and returns the weights of the never-crawled and of the
    recrawl queue. `chance` returns the chance that a never-crawled URL has a page.
    """

    __slots__ = (
        "_chance",
        "_domain",
        "_gate",
        "_largest",
        "_least",
        "_never",
        "_recrawl",
        "_rng",
        "_size",
        "_smallest",
        "_unread",
        "_weights",
        "files",
        "held",
        "is_short",
        "urgent",
    )

    def __init__(
        self,
        gate: Gate,
        weights: Callable[[PageRecord], Sequence[float]],
        chance: Callable[[PageRecord], float],
        rng: random.Random,
        *,
        size: int,
        largest: int,
        domain: DomainShare | None = None,
    ) -> None:
        """`domain` is the site's registered domain; None if domains are not limited."""
        self._gate = gate
        self._unread = 0
        self._weights = weights
        self._chance = chance
        self._rng = rng
        self._domain = domain
        self._size = self._smallest = size
        self._largest = largest
        self._least = inf  # lower bound of the importance of the never-crawled pages in it
        self.urgent: deque[Fetch] = deque()
        """Immediate URLs, and the request for robots.txt if immediate URLs wait for it."""
        self.files: deque[Fetch] = deque()
        """Requests for robots.txt and sitemaps."""
        self._never: deque[Fetch] = deque()
        self._recrawl: deque[Fetch] = deque()
        self.held: list[Fetch] = []
        """Immediate URLs that wait for robots.txt or an address."""
        self.is_short = True
        """True if the last request for leases returned fewer known pages than the hand could take."""

    # ---------------------------------------------------------------- as a sequencer

    def times(self) -> tuple[float, float]:
        if self._unread >= MAX_UNREAD or not (self.urgent or self.files or self._offers_pages()):
            return inf, inf
        opens_at = self._gate.opens_at
        return opens_at, opens_at if self.urgent else inf

    def worth(self) -> float:
        if self.urgent or self.files:
            return inf
        if not self._offers_pages():
            return -inf
        return max(_importance_class(queue[0]) for queue in (self._never, self._recrawl) if queue)

    def next(self, at: float) -> Fetch | None:
        if self.times()[0] > at:
            return None
        self._gate.take()
        queue = self.urgent or self.files or self._never or self._recrawl
        if queue is self._never and self._recrawl:  # A queue of weight 0 is drawn only while the other one is empty.
            weights = self._weights(_record(self._never[0]))
            [queue] = self._rng.choices((self._never, self._recrawl), weights if any(weights) else (1.0, 1.0))
        return queue.popleft()

    def _offers_pages(self) -> bool:
        return bool(self._never or self._recrawl) and (self._domain is None or self._domain.is_open)

    def add_unread(self, change: int) -> None:
        """Change the number of unread bodies of the site by `change`, 1 or -1."""
        self._unread += change

    # ---------------------------------------------------------------- its size

    def pages(self) -> int:
        """Return the number of pages in the never-crawled and the recrawl queue."""
        return len(self._never) + len(self._recrawl)

    def backlog(self) -> int:
        """Return the number of fetches in the hand, without the URLs in `held`."""
        return len(self.urgent) + len(self.files) + self.pages()

    def runs_low(self) -> bool:
        """Return whether more pages should be leased."""
        return len(self._never) + len(self._recrawl) <= self._size // 4

    def is_deep(self) -> bool:
        """Return whether the hand can grow no further."""
        return self._size == self._largest

    def room(self) -> tuple[int, int]:
        """Return how many more never-crawled pages, and how many more known pages, may be leased."""
        return self._size - len(self._never), self._size - len(self._recrawl)

    def deal(self, never: Iterable[Fetch], recrawl: Iterable[Fetch], *, full: bool) -> None:
        """Add leased pages. If `full` is True, because the store may have more due pages, the maximum size of the hand
        doubles.
        """
        room = self._size
        if full:
            self._size = min(2 * self._size, self._largest)
        never = list(never)
        held = self._least if self._never else inf
        self._least = min(held, min(map(_importance, never), default=inf))
        self._never.extend(never)
        _put_probable_first(self._never, self._chance)
        self._recrawl.extend(recrawl)
        self.is_short = len(self._recrawl) < room

    # ---------------------------------------------------------------- files

    def add_file(self, file: Fetch) -> None:
        """Add the request for a file."""
        self.files.append(file)

    def add_robots(self, robots: Fetch) -> None:
        """Add the request for robots.txt. If immediate URLs wait for robots.txt, the request for robots.txt comes
        before all others.
        """
        self.held += self._take_urgent()
        (self.urgent if self.held else self.files).append(robots)

    def hasten_files(self) -> None:
        """Move an unsent request for robots.txt to the front of all requests."""
        waiting = _emptied(self.files)
        self.urgent.extend(fetch for fetch in waiting if fetch.kind == "robots")
        self.files.extend(fetch for fetch in waiting if fetch.kind != "robots")

    # --------------------------------------------------- immediate URLs

    def add_urgent(self, urgent: Fetch) -> None:
        """Add an immediate URL that may be requested."""
        self.urgent.append(urgent)

    def hold(self, urgent: Iterable[Fetch]) -> None:
        """Add immediate URLs that must wait for robots.txt or an address."""
        self.held += urgent

    def take_held(self) -> list[Fetch]:
        """Remove and return the immediate URLs that waited. The caller must check the returned URLs against policy and
        robots.txt again.
        """
        held, self.held = self.held, []
        return held

    # ------------------------------------------------------------ giving back

    def take_pages(self) -> list[Fetch]:
        """Remove and return all leased pages except those in `held`."""
        return self._take_urgent() + _emptied(self._never) + _emptied(self._recrawl)

    def take_files(self) -> list[Fetch]:
        """Remove and return the requests for files."""
        return _emptied(self.files) + [fetch for fetch in _emptied(self.urgent) if fetch.lease is None]

    def flush_pages(self) -> list[LeaseId]:
        """Remove all pages except immediate ones, and return their leases."""
        return _leases(_emptied(self._never) + _emptied(self._recrawl))

    def flush_recrawl(self) -> list[LeaseId]:
        """Remove the known pages, and return their leases."""
        return _leases(_emptied(self._recrawl))

    def flush_outranked(self, importance: float) -> list[LeaseId]:
        """Remove the never-crawled pages that are less important than a new page, and return their leases.

        If any pages were removed, the hand shrinks to its smallest size, so that later new pages wait for fewer leased
        pages.
        """
        if importance <= self._least:
            return []
        ready = _emptied(self._never)
        outranked = [fetch for fetch in ready if _importance(fetch) < importance]
        self._never.extend(fetch for fetch in ready if _importance(fetch) >= importance)
        self._least = importance
        if outranked:
            self._size = self._smallest
        return _leases(outranked)

    def flush(self) -> list[LeaseId]:
        """Remove all pages, and return their leases."""
        return _leases(self._take_urgent() + self.take_held() + _emptied(self._never) + _emptied(self._recrawl))

    def _take_urgent(self) -> list[Fetch]:
        """Remove and return the immediate URLs, but leave a request for robots.txt in the queue."""
        if not self.urgent:
            return []
        ready = _emptied(self.urgent)
        self.urgent.extend(fetch for fetch in ready if fetch.lease is None)
        return [fetch for fetch in ready if fetch.lease is not None]


def largest_hand(capacity: float | None, period_s: float) -> int:
    """Return the maximum number of URLs in each queue of a hand, if the crawl has `capacity` fetches per period (None:
    unlimited).

    A hand has at most a twentieth of a period's fetches, because a new page must wait for all leased pages of its site.
    """
    if capacity is None:
        return LARGEST_HAND
    ahead = max(capacity / 20, _HAND_S * capacity / period_s)
    return int(min(LARGEST_HAND, max(1.0, ahead)))


def _importance(fetch: Fetch) -> float:
    """Return the importance of a page, or inf for a file."""
    return inf if fetch.lease is None else fetch.lease.record.importance


def _importance_class(fetch: Fetch) -> float:
    """Return a rank by importance: a page of higher rank is fetched first. Pages of similar importance have the same
    rank.
    """
    return 0.0 if fetch.lease is None else -float(class_of(fetch.lease.record.importance))


def _record(fetch: Fetch) -> PageRecord:
    assert fetch.lease is not None, "only leased pages are in the two queues"
    return fetch.lease.record


def _put_probable_first(queue: deque[Fetch], chance: Callable[[PageRecord], float]) -> None:
    """Sort never-crawled URLs of equal importance by the chance that they have a page, highest first."""
    chances = [chance(_record(fetch)) for fetch in queue]
    if min(chances, default=1.0) < 1.0:
        ready = zip(_emptied(queue), chances, strict=True)
        ordered = sorted(ready, key=lambda each: (-_importance_class(each[0]), -each[1]))
        queue.extend(fetch for fetch, _ in ordered)


def _leases(fetches: Iterable[Fetch]) -> list[LeaseId]:
    return [fetch.lease.id for fetch in fetches if fetch.lease is not None]


def _emptied(queue: deque[Fetch]) -> list[Fetch]:
    """Remove and return all fetches of a queue, in order."""
    fetches = list(queue)
    queue.clear()
    return fetches
