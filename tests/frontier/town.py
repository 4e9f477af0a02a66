"""Pages and visits of a town of sites, for the tests of urgent pages."""

from __future__ import annotations

from itertools import chain

from webfountain.core.change_rate import append
from webfountain.core.signals import Signals
from webfountain.frontier.pages.examiner import Visit
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.records import Fetch, Fetched, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.urls import fingerprint, site_of

DAY = 86_400.0
CHECK_S = DAY / 50
NOW = 100 * DAY
ONE, TWO = "http://one.example", "http://two.example"


def crawled(url, *, at=NOW - DAY, **more):
    return PageRecord(url, state="crawled", last_crawled=at, **more)


def pages_of(site, n=20, *, directory="a", at=NOW - DAY, **more):
    """Pages last fetched an hour apart, the first of them longest ago."""
    return [crawled(f"{site}/{directory}/{page}", at=at - (n - page) * 3600.0, **more) for page in range(n)]


def history(*, changed):
    """Of a page that was fetched every day."""
    return b"".join(append(b"", DAY, changed) for _ in range(12))


def visit_of(url, kind="same", *, at=NOW, state="crawled", **more):
    record = PageRecord(url, state=state, last_crawled=at, **more)
    return Visit(Fetched(Fetch(1, "page", url, site_of(url), None), at, 0.1, 200), kind, record)


def lease_of(site):
    return SiteLease(site, 1, NOW + DAY, SiteRecord(site, NOW, 0.0, (0, 0, 0, 0, 0), SiteState()))


class Crawl:
    """A town of active sites; `waiting` are the URLs that were made due, the next to be fetched first."""

    def __init__(self, *records, known=None, at=NOW, capacity=100.0, **options):
        self.urgent = UrgentPages(**({"signals": Signals(), "period": DAY, "capacity": capacity} | options))
        self.records = [*chain(*records)]
        self.sites = list(dict.fromkeys(site_of(record.url) for record in self.records))
        self.url = {fingerprint(record.url): record.url for record in self.records}
        self.waiting: list[str] = []
        self.divide(len(self.records) if known is None else known)
        for site in self.sites:
            self.admit(site, at=at)

    def divide(self, known):
        self.urgent.divide(known, len(self.sites))

    def admit(self, site, *, at=NOW, learned=b""):
        """Whether the site was taken in."""
        lease = lease_of(site)
        if not self.urgent.wants(lease):
            return False
        self.urgent.admit(lease, learned, lambda: [each for each in self.records if site_of(each.url) == site], at=at)
        return True

    def due(self, most=5, *, price=0.0, at=NOW, site=ONE):
        """URLs of a site that become due now."""
        urls = [self.url[key] for key in self.urgent.due(site, price, most=most, at=at)]
        self.waiting += urls
        return urls

    def fetch(self, *urls, kind="same", at=NOW, **more):
        """What is to be kept with the sites."""
        self.waiting = [url for url in self.waiting if url not in urls]
        return self.urgent.observe([visit_of(url, kind, at=at, **more) for url in urls], at=at)
