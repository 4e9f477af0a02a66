"""Limit the share of a period's fetches that one registered domain may have.

A focused crawl tends to spend its fetches on few large and fast domains (Krugler in Policies 2006). A domain may exceed
the share `limits.domain_share` of a period's fetches by only a few fetches. A domain that has used its share waits
until other domains have had more fetches. While a domain waits, no pages of its sites are fetched (`hand`). Requests
for robots.txt, sitemaps and immediate URLs count towards a domain's share, but never wait for it.

A domain with something to fetch is *blocked* if it has used its share or must be left alone. A domain is *busy* if a
request is in flight, or due within seconds. If most domains are blocked and few are busy, each domain's share is
doubled for the rest of the period.

A domain's share is a part of the fetches of all ants, which exchange their counts at heartbeats (`FetchCounts`). Each
ant compares only the numbers of its own busy and blocked domains.

Source of the shares and of the ratio of blocked to busy domains: Białecki, Krugler, *Per-page crawling policy*, 2006.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.store.census_counting import period_of
from webfountain.urls import host_of, network_domain, registered_domain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection

__all__ = [
    "BLOCKED_PER_BUSY",
    "CHECKS_PER_PERIOD",
    "SHARES",
    "DomainShare",
    "DomainShares",
    "FetchCounts",
    "ShareSnapshot",
    "shares_of",
]

logger = logging.getLogger(__name__)

SHARES: Final = "shares"
"""Name of the published value with the last `ShareSnapshot`."""
CHECKS_PER_PERIOD: Final = 1000
BLOCKED_PER_BUSY: Final = 4.0
"""If the ratio of blocked to busy domains is higher than this, all shares are doubled."""
_AHEAD: Final = 0.02
"""A domain may exceed its share by this fraction of the crawl's fetches per period."""
_REPORTED: Final = 256
"""Maximum number of domains that one ant reports to the other ants; it reports those with the most fetches."""
_DOMAINS: Final = 100_000
"""If more domains than this are in memory, those with few fetches and no active site are removed."""
_REST: Final = 0.02
"""If a site is parked because its domain used its share, the site is due again after this part of a period."""


class ShareSnapshot(msgspec.Struct, frozen=True):
    """Numbers of busy and blocked domains at the time `at`, and the share of fetches that each domain may have."""

    at: float
    busy: int
    blocked: int
    share: float


class FetchCounts(msgspec.Struct, frozen=True, array_like=True):
    """Counts of fetches in one time period, by one ant or by all ants: the total, and the counts of the domains with
    the most fetches.
    """

    period: int
    fetches: int = 0
    domains: dict[str, int] = {}
    busy: int = 0
    blocked: int = 0

    @classmethod
    def of(cls, each: Iterable[FetchCounts]) -> FetchCounts | None:
        """Add up the ants' counts for the latest period. Return None if there are no counts."""
        reported = list(each)
        if not reported:
            return None
        latest = max(one.period for one in reported)
        reported = [one for one in reported if one.period == latest]
        domains: Counter[str] = Counter()
        for one in reported:
            domains.update(one.domains)
        return cls(
            latest,
            sum(one.fetches for one in reported),
            dict(domains),
            sum(one.busy for one in reported),
            sum(one.blocked for one in reported),
        )


class DomainShare:
    """One registered domain, with its active sites and its fetches in this period. `elsewhere` counts the fetches of
    other ants, and `is_open` is True if the domain may have more fetches.
    """

    __slots__ = ("elsewhere", "fetches", "is_open", "name", "sites")

    def __init__(self, name: str, elsewhere: int = 0) -> None:
        self.name = name
        self.fetches = 0
        self.elsewhere = elsewhere
        self.is_open = True
        self.sites: set[str] = set()


class DomainShares:
    """Limits the share of fetches that each domain of one process may have. `capacity` is the crawl's number of fetches
    per period of `period_s` seconds, or None.
    """

    def __init__(
        self,
        share: float,
        *,
        period_s: float,
        capacity: int | None,
        start: float,
        metrics: Metrics,
        domain_of: Callable[[str], str] = registered_domain,
    ) -> None:
        self._asked = self._share = share
        self._domain_of = domain_of
        self._period_s = period_s
        self._metrics = metrics
        self._ahead = max(1.0 / share, _AHEAD * (capacity or 0))
        self._period = period_of(start, period_s)
        self._check_at = start
        self._fetches = 0
        self._others = FetchCounts(self._period)
        self._domains: dict[str, DomainShare] = {}
        self._shut: list[
            tuple[float, str]
        ] = []  # domains that used their share, by the number of fetches at which they open again
        self.rest_s = _REST * period_s
        """If a site is parked because its domain used its share, the site is due again after this time, in seconds."""
        self.seen: ShareSnapshot | None = None
        """Numbers of this process's busy and blocked domains at the last check."""

    def enter(self, site: str) -> DomainShare:
        """Add a newly active site and return its domain."""
        name = self._domain_of(host_of(site))
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = DomainShare(name, self._others.domains.get(name, 0))
        domain.sites.add(site)
        return domain

    def leave(self, site: str, domain: DomainShare) -> None:
        """Remove a site that is no longer active."""
        domain.sites.discard(site)

    def spend(self, domain: DomainShare) -> set[str]:
        """Count one page request of a domain, and return the sites whose domains may now have more fetches."""
        self._fetches += 1
        domain.fetches += 1
        if domain.is_open and self._has_its_share(domain):
            domain.is_open = False
            heapq.heappush(self._shut, (self._opens(domain), domain.name))
        return self._open() if self._shut and self._shut[0][0] <= self._fetches else set()

    def check(self, at: float, domains: Iterable[tuple[DomainShare, bool]], *, idle: bool) -> set[str]:
        """Compare the numbers of busy and blocked domains if a check is due or `idle` is True. Return the sites whose
        domains may now have more fetches.

        `domains` yields (domain, is_busy) for each site that has something to fetch.
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
        self._report(ShareSnapshot(at, busy, len(states) - busy, self._share))
        if capped and len(states) - busy > BLOCKED_PER_BUSY * busy and self._share < 1.0:
            self._reassign()
            opened |= self._open()
        return opened

    def _report(self, seen: ShareSnapshot) -> None:
        before, self.seen = self.seen, seen
        for name in ("busy", "blocked"):
            self._metrics.inc(f"shares/{name}", getattr(seen, name) - (0 if before is None else getattr(before, name)))

    def spent(self) -> FetchCounts:
        """Return this ant's number of fetches in the period, in total and for domains that used at least a quarter of
        their share.
        """
        least = self._share * self._fetches / 4
        reported = {one.name: one.fetches for one in self._domains.values() if one.fetches and one.fetches >= least}
        if len(reported) > _REPORTED:
            reported = dict(sorted(reported.items(), key=lambda item: -item[1])[:_REPORTED])
        busy, blocked = (0, 0) if self.seen is None else (self.seen.busy, self.seen.blocked)
        return FetchCounts(self._period, self._fetches, reported, busy, blocked)

    def take_in(self, total: FetchCounts | None, own: FetchCounts) -> set[str]:
        """Adopt the counts of all ants, which include this ant's counts `own`. Return the sites whose domains may now
        have more fetches.
        """
        if total is None or total.period != self._period or own.period != self._period:
            return set()
        domains = {name: many - own.domains.get(name, 0) for name, many in total.domains.items()}
        before, self._others = (
            self._others,
            FetchCounts(
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

    def published(self) -> ShareSnapshot | None:
        """Return the numbers of busy and blocked domains at the last check, including those of other ants."""
        if self.seen is None:
            return None
        busy, blocked = self.seen.busy + self._others.busy, self.seen.blocked + self._others.blocked
        return msgspec.structs.replace(self.seen, busy=busy, blocked=blocked)

    def _reassign(self) -> None:
        """Double the share of each domain for the rest of the period."""
        self._share = min(1.0, 2 * self._share)
        self._metrics.inc("shares/reassigned")
        logger.info(
            "Most domains are blocked: each may now use %.0f %% of the fetches until the period ends",
            100 * self._share,
            extra={"event": "shares/reassigned"},
        )
        self._order_shut()

    def _order_shut(self) -> None:
        self._shut = [(self._opens(self._domains[name]), name) for _, name in self._shut]
        heapq.heapify(self._shut)

    def _begin(self, period: int) -> set[str]:
        """Begin a new period: reset all counts, so that every domain may have fetches again. Return the sites whose
        domains waited for the new period.
        """
        self._period, self._others = period, FetchCounts(period)
        self._fetches, self._share = 0, self._asked
        opened = {site for _, name in self._shut for site in self._domains[name].sites}
        self._shut.clear()
        self._domains = {name: domain for name, domain in self._domains.items() if domain.sites}
        for domain in self._domains.values():
            domain.fetches, domain.elsewhere, domain.is_open = 0, 0, True
        return opened

    def _allowed(self) -> float:
        """Return how many fetches a domain may have had by now in this period."""
        return self._share * (self._fetches + self._others.fetches + self._ahead)

    def _has_its_share(self, domain: DomainShare) -> bool:
        return domain.fetches + domain.elsewhere + 1 > self._allowed()

    def _opens(self, domain: DomainShare) -> float:
        """Return how many fetches this ant must have made in the period before a domain may have its next fetch."""
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


def shares_of(collection: Collection, *, start: float, metrics: Metrics) -> DomainShares | None:
    """Return the limits on the shares of domains, or None if the collection does not limit them."""
    share, cycle = collection.limits.domain_share, collection.cycle
    if share is None:
        return None
    domain_of = network_domain if collection.network.allow_private else registered_domain
    capacity = cycle.capacity_pages_per_period
    return DomainShares(
        share, period_s=cycle.period_s, capacity=capacity, start=start, metrics=metrics, domain_of=domain_of
    )
