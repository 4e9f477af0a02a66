"""A site's hand, and the share of its domain: what is leased and held ready, and how much of it may go out.

The hand holds the leased URLs and the files to ask of a site in the queues of Figure 1.
Edwards 2001, third tier: never-crawled and recrawl joined by a weight; robots.txt and sitemaps before both, immediate
URLs before all. The hand grows while it is used up whole, so that a fast site needs few refills and a slow one holds
few leases. What may be asked, and when, is the site's to say (`site`).

The share says how much of a period's fetches one registered domain may have, and what becomes of the rest when few
others want it. A focused crawl narrows to few domains, the large and fast ones (Krugler in Policies 2006): so a domain
has at most `limits.domain_share` of the fetches that were made so far in the period, and of a few ahead, at every
moment of it. One that has had its share waits until the others have had theirs: that keeps many domains busy, and
costs O(log domains) a fetch. Seen from the ring it is a site that has nothing to give (`Capped`); robots.txt, sitemaps
and immediate URLs are not held back, but counted.

Where most of the domains that have something to fetch are *blocked* (they had their share, or asked to be left alone)
and few are *busy* (asked, or to be asked within seconds), the shares hold back more than they divide: then the rest
of the period is reassigned, and each may have twice as much, again and again until enough are busy.

Ants that share a store tell each other with their heartbeats what they have fetched (`Spent`), so that a share is one
of what all fetch, and a domain whose sites several ants have gets one share. Between two heartbeats each may spend what
is left; what an ant had fetched that died is forgotten. Each reassigns by the domains that it finds busy and blocked.

Source: Białecki, Krugler, *Per-page crawling policy*, 2006: caps as a percentage, and the ratio of blocked to busy.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from webfountain.frontier.sites.sequencer import Fifo, FirstOf, Immediate, Valued, WeightedRandom
from webfountain.store.contract import class_of
from webfountain.store.rules import period_of
from webfountain.urls import host_of, registered_domain

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.sites.sequencer import Sequencer
    from webfountain.metrics import Metrics
    from webfountain.records import Fetch, LeaseId

__all__ = ["LARGEST_HAND", "SHARES", "Capped", "DomainShares", "Hand", "SharesSeen", "Spent", "largest_hand"]

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

    def __init__(
        self,
        weights: Callable[[], Sequence[float]],
        rng: random.Random,
        *,
        size: int,
        largest: int,
        domain: DomainShare | None = None,
    ) -> None:
        """`domain`: that which the site is of, where domains have shares."""
        self._size = self._smallest = size
        self._largest = largest
        self._never: Valued[Fetch] = Valued(_importance_class)
        self._recrawl: Valued[Fetch] = Valued(_importance_class)
        self.files: Fifo[Fetch] = Fifo()
        """robots.txt and sitemaps."""
        self.urgent: Immediate[Fetch] = Immediate()
        """Immediate URLs, and the robots.txt that they wait for."""
        self.held: list[Fetch] = []
        """Immediate URLs that wait for robots.txt or an address."""
        self.is_short = True
        """The store had fewer known pages due than there was room for, when last asked."""
        joined: Sequencer[Fetch] = WeightedRandom((self._never, self._recrawl), weights, rng)
        if domain is not None:
            joined = Capped(joined, domain)
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

    def is_deep(self) -> bool:
        """Whether it has grown as far as it may: the store always had more."""
        return self._size == self._largest

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

    def add_robots(self, robots: Fetch) -> None:
        """A robots.txt is to be asked, before all others where immediate URLs wait: its rules decide of them."""
        self.held += self._take_urgent()
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


def _importance_class(fetch: Fetch) -> float:
    """What a leased page is worth, the greater the more: pages of one class of importance are worth the same."""
    return 0.0 if fetch.lease is None else -float(class_of(fetch.lease.record.importance))


def _leases(fetches: Iterable[Fetch]) -> list[LeaseId]:
    return [fetch.lease.id for fetch in fetches if fetch.lease is not None]


logger = logging.getLogger(__name__)
T = TypeVar("T")

SHARES: Final = "shares"
"""Name of the published value that tells what was seen last."""
CHECKS_PER_PERIOD: Final = 1000
BLOCKED_PER_BUSY: Final = 4.0
"""Blocked domains for each busy one, above which the rest of the period is reassigned."""
_AHEAD: Final = 0.02
"""Share of a period's capacity that is counted as made ahead of it."""
_TOLD: Final = 256
"""Domains whose fetches one ant tells the others, those with most of them."""
_DOMAINS: Final = 100_000
"""Domains that are remembered; those that had little and have no active site go first."""
_REST: Final = 0.02
"""Share of a period after which a site that gave its place away because of its domain comes back."""


class SharesSeen(msgspec.Struct, frozen=True):
    """Domains with something to fetch, as they were found `at`, and the share that each may have."""

    at: float
    busy: int
    blocked: int
    share: float

    @property
    def ratio(self) -> float:
        """Blocked domains for each busy one."""
        return self.blocked / self.busy if self.busy else inf if self.blocked else 0.0


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """Fetches of one ant, or of all, in a time period of this number: all, and those of the domains that had many."""

    period: int
    fetches: int = 0
    domains: dict[str, int] = {}
    busy: int = 0
    blocked: int = 0

    @classmethod
    def of(cls, each: Iterable[Spent]) -> Spent | None:
        """What some come to that tell of the latest period; None: there are none."""
        told = list(each)
        if not told:
            return None
        latest = max(one.period for one in told)
        told = [one for one in told if one.period == latest]
        domains: Counter[str] = Counter()
        for one in told:
            domains.update(one.domains)
        return cls(
            latest,
            sum(one.fetches for one in told),
            dict(domains),
            sum(one.busy for one in told),
            sum(one.blocked for one in told),
        )


class DomainShare:
    """Of one registered domain: its fetches in the period, here and by other ants, whether it may have more, its
    active sites."""

    __slots__ = ("elsewhere", "fetches", "is_open", "name", "sites")

    def __init__(self, name: str, elsewhere: int = 0) -> None:
        self.name = name
        self.fetches = 0
        self.elsewhere = elsewhere
        self.is_open = True
        self.sites: set[str] = set()


class Capped(Generic[T]):
    """A sequencer that has nothing to give while its domain has had its share."""

    __slots__ = ("_domain", "_inner")

    def __init__(self, inner: Sequencer[T], domain: DomainShare) -> None:
        self._inner = inner
        self._domain = domain

    def backlog(self) -> int:
        return self._inner.backlog()

    def wake_at(self) -> float:
        return self._inner.wake_at() if self._domain.is_open else inf

    def hurry_at(self) -> float:
        return self._inner.hurry_at() if self._domain.is_open else inf

    def worth(self) -> float:
        return self._inner.worth() if self._domain.is_open else -inf

    def next(self, at: float) -> T | None:
        return self._inner.next(at) if self._domain.is_open else None

    def flush(self) -> list[T]:
        return self._inner.flush()


class DomainShares:
    """The shares of one process's domains. `capacity`: fetches per period of `period_s` seconds, None: no bound."""

    def __init__(self, share: float, *, period_s: float, capacity: int | None, start: float, metrics: Metrics) -> None:
        self._asked = self._share = share
        self._period_s = period_s
        self._metrics = metrics
        self._ahead = max(1.0 / share, _AHEAD * (capacity or 0))
        self._period = period_of(start, period_s)
        self._check_at = start
        self._fetches = 0
        self._others = Spent(self._period)
        self._domains: dict[str, DomainShare] = {}
        self._shut: list[tuple[float, str]] = []  # domains that had their share, by the fetches that open them again
        self.rest_s = _REST * period_s
        """Seconds after which a site that gave its place away comes back."""
        self.seen: SharesSeen | None = None
        """What was found at the last check."""

    def enter(self, site: str) -> DomainShare:
        """A site becomes active: its domain."""
        name = registered_domain(host_of(site))
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = DomainShare(name, self._others.domains.get(name, 0))
        domain.sites.add(site)
        return domain

    def leave(self, site: str, domain: DomainShare) -> None:
        """A site is active no more."""
        domain.sites.discard(site)

    def spend(self, domain: DomainShare) -> set[str]:
        """A page of a domain is asked; the sites that may be asked again because of it."""
        self._fetches += 1
        domain.fetches += 1
        if domain.is_open and self._has_its_share(domain):
            domain.is_open = False
            heapq.heappush(self._shut, (self._opens(domain), domain.name))
        return self._open() if self._shut and self._shut[0][0] <= self._fetches else set()

    def check(self, at: float, domains: Iterable[tuple[DomainShare, bool]], *, idle: bool) -> set[str]:
        """Hold the busy domains against the blocked ones, if it is time; the sites that may be asked again.

        `domains` are those of the sites that have something to fetch, each with whether it is busy; `idle`: nothing
        at all is asked, so it is time in any case.
        """
        period = period_of(at, self._period_s)
        opened = self._begin(period) if period > self._period else set[str]()
        if at < self._check_at and not idle:
            return opened
        self._check_at = at + self._period_s / CHECKS_PER_PERIOD
        states: dict[str, bool] = {}
        capped = False
        for domain, is_busy in domains:
            states[domain.name] = states.get(domain.name, False) or is_busy
            capped = capped or not domain.is_open
        busy = sum(states.values())
        self._tell(SharesSeen(at, busy, len(states) - busy, self._share))
        if capped and len(states) - busy > BLOCKED_PER_BUSY * busy and self._share < 1.0:
            self._reassign()
            opened |= self._open()
        return opened

    def _tell(self, seen: SharesSeen) -> None:
        before, self.seen = self.seen, seen
        for name in ("busy", "blocked"):
            self._metrics.inc(f"shares/{name}", getattr(seen, name) - (0 if before is None else getattr(before, name)))

    def spent(self) -> Spent:
        """What this ant has fetched in the period; of domains those that had a quarter of their share here or more."""
        least = self._share * self._fetches / 4
        told = {one.name: one.fetches for one in self._domains.values() if one.fetches and one.fetches >= least}
        if len(told) > _TOLD:
            told = dict(sorted(told.items(), key=lambda item: -item[1])[:_TOLD])
        busy, blocked = (0, 0) if self.seen is None else (self.seen.busy, self.seen.blocked)
        return Spent(self._period, self._fetches, told, busy, blocked)

    def take_in(self, total: Spent | None, own: Spent) -> set[str]:
        """What all ants fetched, and what this one had told of that; the sites that may be asked again."""
        if total is None or total.period != self._period or own.period != self._period:
            return set()
        domains = {name: many - own.domains.get(name, 0) for name, many in total.domains.items()}
        before, self._others = (
            self._others,
            Spent(
                self._period,
                max(0, total.fetches - own.fetches),
                {name: many for name, many in domains.items() if many > 0},
                max(0, total.busy - own.busy),
                max(0, total.blocked - own.blocked),
            ),
        )
        for name in before.domains.keys() | self._others.domains.keys():
            domain = self._domains.get(name)
            if domain is not None:
                domain.elsewhere = self._others.domains.get(name, 0)
                if domain.is_open and self._has_its_share(domain):
                    domain.is_open = False
                    self._shut.append((0.0, name))
        self._order_shut()
        return self._open()

    def published(self) -> SharesSeen | None:
        """What was found last, here and by the other ants."""
        if self.seen is None:
            return None
        busy, blocked = self.seen.busy + self._others.busy, self.seen.blocked + self._others.blocked
        return msgspec.structs.replace(self.seen, busy=busy, blocked=blocked)

    def _reassign(self) -> None:
        """The rest of the period is for those that can be fetched."""
        self._share = min(1.0, 2 * self._share)
        self._metrics.inc("shares/reassigned")
        logger.info("Few domains can still be fetched: each may have %.0f %% until the period ends", 100 * self._share)
        self._order_shut()

    def _order_shut(self) -> None:
        self._shut = [(self._opens(self._domains[name]), name) for _, name in self._shut]
        heapq.heapify(self._shut)

    def _begin(self, period: int) -> set[str]:
        """A new period: all begin anew."""
        self._period, self._others = period, Spent(period)
        self._fetches, self._share = 0, self._asked
        opened = {site for _, name in self._shut for site in self._domains[name].sites}
        self._shut.clear()
        self._domains = {name: domain for name, domain in self._domains.items() if domain.sites}
        for domain in self._domains.values():
            domain.fetches, domain.elsewhere, domain.is_open = 0, 0, True
        return opened

    def _allowed(self) -> float:
        """Fetches that a domain may have had by now."""
        return self._share * (self._fetches + self._others.fetches + self._ahead)

    def _has_its_share(self, domain: DomainShare) -> bool:
        return domain.fetches + domain.elsewhere + 1 > self._allowed()

    def _opens(self, domain: DomainShare) -> float:
        """How many fetches must have been made here before a domain may have one more."""
        return (domain.fetches + domain.elsewhere + 1) / self._share - self._ahead - self._others.fetches

    def _open(self) -> set[str]:
        opened: set[str] = set()
        while self._shut and (self._shut[0][0] <= self._fetches or self._share >= 1.0):
            domain = self._domains[heapq.heappop(self._shut)[1]]
            domain.is_open = True
            opened |= domain.sites
        if len(self._domains) > _DOMAINS:
            small = self._allowed() / 2
            kept = self._domains.items()
            self._domains = {name: one for name, one in kept if one.sites or not one.is_open or one.fetches > small}
        return opened
