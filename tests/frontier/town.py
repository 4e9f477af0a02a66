"""Pages and visits of a town of sites, for the tests of urgent pages."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from webfountain.core.change_rate import append
from webfountain.core.signals import Signals
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.frontier.visit import Visit
from webfountain.records import (
    Fetch,
    FetchResult,
    OutcomeKind,
    PageRecord,
    SettleResult,
    SiteLease,
    SiteRecord,
    SiteState,
    State,
)
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.records import Outcome
    from webfountain.store.contract import FrontierStore


DAY = 86_400.0
CHECK_S = DAY / 50
NOW = 100 * DAY
ONE, TWO = "http://one.example", "http://two.example"


def crawled(url: str, *, at: float = NOW - DAY, **more: Any) -> PageRecord:
    return PageRecord(url, state="crawled", last_crawled=at, **more)


def pages_of(site: str, n: int = 20, *, directory: str = "a", at: float = NOW - DAY, **more: Any) -> list[PageRecord]:
    """Pages last fetched an hour apart, the first of them longest ago."""
    return [crawled(f"{site}/{directory}/{page}", at=at - (n - page) * 3600.0, **more) for page in range(n)]


def history(*, changed: bool) -> bytes:
    """Of a page that was fetched every day."""
    return b"".join(append(b"", DAY, changed) for _ in range(12))


def visit_of(url: str, kind: OutcomeKind = "same", *, at: float = NOW, state: State = "crawled", **more: Any) -> Visit:
    record = PageRecord(url, state=state, last_crawled=at, **more)
    return Visit(FetchResult(Fetch(1, "page", url, site_of(url), None), at, 0.1, 200), kind, record)


def lease_of(site: str) -> SiteLease:
    return SiteLease(site, 1, NOW + DAY, SiteRecord(site, (0,) * 6, NOW, 0.0, SiteState()))


class WindowShelf:
    """Parts of sites as a store keeps them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], bytes] = {}
        self.queues = self.sites = self

    @property
    def store(self) -> FrontierStore:
        """As who ranks pages holds it: a store of which nothing else is used."""
        return cast("FrontierStore", self)

    def part(self, site: str, number: int) -> bytes | None:
        return self.kept.get((site, number))

    def settle(
        self, outcomes: Sequence[Outcome], *, at: float, parts: Sequence[tuple[SiteLease, int, bytes]] = ()
    ) -> SettleResult:
        for lease, number, part in parts:
            self.kept.pop((lease.site, number), None)
            if part:
                self.kept[lease.site, number] = part
        return SettleResult(len(outcomes), 0)

    def numbers(self, site: str) -> list[int]:
        return sorted(number for name, number in self.kept if name == site)


class Crawl:
    """A town of active sites; `waiting` are the URLs that were made due, the next to be fetched first."""

    def __init__(
        self,
        *records: Iterable[PageRecord],
        known: int | None = None,
        at: float = NOW,
        capacity: float = 100.0,
        **options: Any,
    ) -> None:
        settings: dict[str, Any] = {"signals": Signals(), "period": DAY, "capacity": capacity} | options
        self.urgent = UrgentPages(**settings)
        self.records = [*chain(*records)]
        self.sites = list(dict.fromkeys(site_of(record.url) for record in self.records))
        self.url = {fingerprint(record.url): record.url for record in self.records}
        self.waiting: list[str] = []
        self.divide(len(self.records) if known is None else known)
        for site in self.sites:
            self.admit(site, at=at)

    def divide(self, known: int) -> None:
        self.urgent.pace.divide(known, len(self.sites))

    def admit(self, site: str, *, at: float = NOW, learned: bytes = b"") -> bool:
        """Whether the site was taken in."""
        lease = lease_of(site)
        if not self.urgent.wants(lease):
            return False
        self.urgent.admit(lease, learned, lambda: [each for each in self.records if site_of(each.url) == site], at=at)
        return True

    def due(self, most: int = 5, *, price: float = 0.0, at: float = NOW, site: str = ONE) -> list[str]:
        """URLs of a site that become due now."""
        urls = [self.url[key] for key in self.urgent.due({site: most}, price, at=at).get(site, [])]
        self.waiting += urls
        return urls

    def demand(self, price: float, *, at: float = NOW) -> int:
        """How many pages are worth a price, those that wait among them."""
        self.urgent.reckon(self.sites, price, at)
        return sum(self.urgent.sites.active[site].demand(price, at) for site in self.sites)

    def next_at(self, price: float, *, at: float = NOW, site: str = ONE) -> float:
        """When a site should be asked again."""
        return self.urgent.next_at([site], price, at)[site]

    def outranking(self, *, at: float = NOW, site: str = ONE) -> list[str]:
        """URLs that go before those that wait."""
        return [self.url[key] for key in self.urgent.outranking([site], 0.0, at=at).get(site, [])]

    def fetch(
        self, *urls: str, kind: OutcomeKind = "same", at: float = NOW, **more: Any
    ) -> list[tuple[SiteLease, bytes]]:
        """What is to be kept with the sites."""
        self.waiting = [url for url in self.waiting if url not in urls]
        return self.urgent.observe([visit_of(url, kind, at=at, **more) for url in urls])
