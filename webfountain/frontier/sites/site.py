"""An active site: its hand of leased URLs behind the site's gate, its robots.txt, its memory between two visits.

Figure 1 of Edwards 2001, third tier: when a site becomes active its data is loaded and two queues are prepared,
never-crawled and recrawl, joined by a weight; errands (robots.txt, sitemaps) go before both and the immediate queue
before all. The site decides nothing about time: its gate does, that of its group (the sites behind its address, see
`addresses`), and the ant that owns it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.core.change_rate import Prior
from webfountain.formats.robots import RobotsRules
from webfountain.frontier.sites.ring import RoundRobin
from webfountain.frontier.sites.sequencer import Fifo, FirstOf, Gate, Immediate, Polite, WeightedRandom
from webfountain.records import Fetch, SiteLease, SiteState

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

__all__ = ["ALLOW_ALL", "LARGEST_HAND", "ActiveSite", "Group", "largest_hand"]

LARGEST_HAND = 64
_HAND_S = 0.2
"""A hand lasts so long at least, seconds."""
PRIOR_CHANGES = 2.0
"""How many changes seen the collection's belief is worth against what the site's own pages showed."""
ALLOW_ALL = RobotsRules.parse(b"", "*")


class Group:
    """Active sites behind one address, or one site alone: the second tier, whose members are sites' sequencers."""

    __slots__ = ("address", "gate", "key", "ring", "sequencer")

    def __init__(self, key: str, address: str, concurrency: int) -> None:
        self.key = key
        self.address = address
        self.ring: RoundRobin[Fetch] = RoundRobin()
        self.gate = Gate(concurrency)
        self.sequencer: Polite[Fetch] = Polite(self.ring, self.gate)


class ActiveSite:
    """One site of the active list. Created by the ant on activation, dropped when it is parked.

    Invariant: `expected` counts the fetches under way and the visits not yet settled; a site is parked only at 0.
    Invariant: while `robots_pending` no page is in a queue. Immediate ones wait in `held`, and where there are any the
    robots.txt itself, which has no lease, is in `immediate`.
    """

    __slots__ = (
        "barred",
        "changes",
        "crawl_delay",
        "dry",
        "errands",
        "expected",
        "failures",
        "fallbacks",
        "gate",
        "group",
        "hand",
        "held",
        "immediate",
        "lease",
        "never",
        "ordered",
        "recrawl",
        "recrawl_at",
        "resolving",
        "robots",
        "robots_at",
        "robots_body",
        "robots_failures",
        "robots_hops",
        "robots_ok",
        "robots_pending",
        "sequencer",
        "served",
        "short",
        "site",
        "sitemaps",
        "watched",
    )

    def __init__(
        self,
        lease: SiteLease,
        *,
        concurrency: int,
        weights: Callable[[], Sequence[float]],
        rng: random.Random,
        hand: int,
    ) -> None:
        state = lease.record.state
        self.site = lease.site
        self.lease = lease
        self.gate = Gate(concurrency, open_at=state.next_at)
        self.errands: Fifo[Fetch] = Fifo()
        self.immediate: Immediate[Fetch] = Immediate()
        self.never: Fifo[Fetch] = Fifo()
        self.recrawl: Fifo[Fetch] = Fifo()
        joined = WeightedRandom((self.never, self.recrawl), weights, rng)
        queues = FirstOf((self.immediate, self.errands, joined))
        self.sequencer: Polite[Fetch] = Polite(queues, self.gate)
        self.group: Group | None = None
        self.fallbacks: tuple[str, ...] = ()
        """Other addresses of its host, in the order in which they are tried when that of `group` does not answer."""
        self.hand = hand
        self.held: list[Fetch] = []  # immediate fetches that wait for robots.txt or DNS
        self.expected = 0
        self.served = 0
        self.ordered = False  # a lease order for this site is with the store
        self.dry = False  # the store had nothing more when last asked; new links or `recrawl_at` end that
        self.short = True  # the store had fewer due pages than the hand had room for, when last asked
        self.recrawl_at = inf
        self.resolving = False
        self.barred: str | None = None  # why each page of it ends unasked: a private address, or no answer
        self.failures = state.failures
        self.crawl_delay = state.crawl_delay
        self.robots = ALLOW_ALL
        self.robots_body = state.robots
        self.robots_at = state.robots_at
        self.robots_ok = state.robots_ok
        self.robots_failures = state.robots_failures
        self.robots_pending = False
        self.robots_hops = 0
        self.sitemaps = dict(state.sitemaps)
        self.changes = state.changes
        self.watched = state.watched

    @property
    def shut(self) -> bool:
        """No page may be asked or refused now: robots.txt cannot be had, or the host has no address."""
        return self.barred is None and (not self.robots_ok or self.group is None)

    def hungry(self) -> bool:
        """Whether the hand runs low and the store may have more."""
        if self.ordered or self.dry or self.robots_pending or self.shut:
            return False
        return self.never.backlog() + self.recrawl.backlog() <= self.hand // 4

    def idle(self) -> bool:
        """Nothing held, nothing under way, nothing ordered: the site may leave the active list."""
        return not (self.expected or self.ordered or self.robots_pending or self.resolving or self.sequencer.backlog())

    def prior(self, belief_s: float) -> Prior:
        """Mean change interval of the site's pages so far, drawn towards the belief where little was seen."""
        return Prior((self.watched + PRIOR_CHANGES * belief_s) / (self.changes + PRIOR_CHANGES))

    def remember(self, next_at: float) -> SiteState:
        """What must outlive the visit."""
        return SiteState(
            next_at=next_at,
            failures=self.failures,
            robots=self.robots_body,
            robots_at=self.robots_at,
            robots_ok=self.robots_ok,
            robots_failures=self.robots_failures,
            crawl_delay=self.crawl_delay,
            sitemaps=tuple(self.sitemaps.items()),
            changes=self.changes,
            watched=self.watched,
        )


def largest_hand(capacity: float | None, period_s: float) -> int:
    """Most pages in a hand where `capacity` are fetched a period; None: as many as politeness allows.

    What is leased ahead cannot be overtaken by what turns up: at most a twentieth of a period's fetches, but enough
    for the worker's next batch in an accelerated test.
    """
    if capacity is None:
        return LARGEST_HAND
    ahead = max(capacity / 20, _HAND_S * capacity / period_s)
    return int(min(LARGEST_HAND, max(1.0, ahead)))
