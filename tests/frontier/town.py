"""Pages and visits of a town of sites, for the tests of urgent pages."""

from __future__ import annotations

from itertools import chain

from webfountain.core.change_rate import append
from webfountain.core.signals import Signals
from webfountain.frontier.pages.examiner import Visit
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.records import Fetch, Fetched, PageRecord
from webfountain.urls import fingerprint, site_of

DAY = 86_400.0
CHOICE_S = DAY / 50
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


class Crawl:
    """A town of sites, its pages ranked; `waiting` are the URLs that were made due, the next to be fetched first."""

    def __init__(self, *records, known=None, at=NOW, capacity=100.0, **options):
        self.urgent = UrgentPages(**({"signals": Signals(), "period": DAY, "capacity": capacity} | options))
        self.records = [*chain(*records)]
        self.known = len(self.records) if known is None else known
        self.url = {(site_of(record.url), fingerprint(record.url)): record.url for record in self.records}
        self.waiting: list[str] = []
        assert self.choose(at=at) == []
        for site in dict.fromkeys(site_of(record.url) for record in self.records):
            of_site = [record for record in self.records if site_of(record.url) == site]
            if self.urgent.wants(site, len(of_site)):
                self.urgent.admit(site, of_site, at=at)

    def choose(self, wanted=5, *, at=NOW, known=None):
        """The choices made now; what they name waits."""
        choices = self.urgent.choose(wanted, at=at, known=self.known if known is None else known, ahead_s=CHOICE_S)
        for site, keys, _, before in choices:
            urls = [self.url[site, key] for key in keys]
            self.waiting = urls + self.waiting if before else self.waiting + urls
        return choices

    def chosen(self, wanted=5, **how):
        """URLs made due by a choice."""
        return [self.url[choice.site, key] for choice in self.choose(wanted, **how) for key in choice.keys]

    def fetch(self, *urls, kind="same", at=NOW, **more):
        self.urgent.observe([visit_of(url, kind, at=at, **more) for url in urls])
        self.waiting = [url for url in self.waiting if url not in urls]
