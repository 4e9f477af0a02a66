"""Urgent pages, whatever happens in whatever order: a choice promises no more than it may, of pages it may promise."""

from __future__ import annotations

from math import ceil

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.frontier.town import CHOICE_S, DAY, NOW, crawled, visit_of
from webfountain.core.signals import Signals
from webfountain.frontier.planning.urgent_pages import FEWEST, SLOW, UrgentPages
from webfountain.urls import fingerprint

SIZES = {f"http://s{pages}.example": pages for pages in (3, 5, 12, 25, 40)}
SITES = st.sampled_from(list(SIZES))
SHORTEST = DAY / 10
CAPACITY = 40.0


class Watching(RuleBasedStateMachine):
    """Sites come, pages are fetched or not, time passes, and now and then the most urgent are chosen."""

    @initialize(pages=st.integers(20, 90), sites=st.integers(1, 5))
    def begin(self, pages, sites):
        self.urgent = UrgentPages(
            signals=Signals(), period=DAY, capacity=CAPACITY, shortest=SHORTEST, pages=pages, sites=sites
        )
        self.most = (pages, sites)
        self.at = NOW
        self.last = {(site, page): NOW - DAY * (1 + page / n) for site, n in SIZES.items() for page in range(n)}
        self.barred = set()  # not fetched well of late
        self.waits = {}  # page -> since when
        self.cut = {}  # site -> the interval when it came
        self.interval = 0.0

    def key(self, page):
        return fingerprint(self.url(page))

    def url(self, page):
        return f"{page[0]}/{'ab'[page[1] % 2]}/{page[1]}"

    @rule(site=SITES)
    def admit(self, site):
        pages = [page for page in self.last if page[0] == site]
        if self.urgent.wants(site, len(pages)):
            assert len(pages) >= FEWEST
            self.cut[site] = self.interval
            records = [crawled(self.url(page), at=self.last[page], failures=int(page in self.barred)) for page in pages]
            self.urgent.admit(site, records, at=self.at)
            assert site in self.urgent

    @rule(data=st.data(), kind=st.sampled_from(["same", "changed", "minor", "failed", "gone", "refused"]))
    def fetch(self, data, kind):
        page = data.draw(st.sampled_from(list(self.waits) or list(self.last)))
        self.at += 1.0
        well = kind not in ("failed", "gone", "refused")
        (self.barred.discard if well else self.barred.add)(page)
        if kind == "refused":
            self.urgent.refuse(page[0], self.key(page))
        else:
            state = "gone" if kind == "gone" else "crawled"
            at = self.at if kind != "failed" else self.last[page]
            visit = visit_of(self.url(page), kind, at=self.at, state=state)
            self.urgent.observe([visit])
            self.last[page] = at
        self.waits.pop(page, None)

    @rule(site=SITES)
    def meet(self, site):
        self.at += 1.0
        page = (site, sum(known[0] == site for known in self.last))
        self.last[page] = self.at
        self.urgent.observe([visit_of(self.url(page), "new", at=self.at)])

    @rule(hours=st.integers(1, 30))
    def rest(self, hours):
        self.at += hours * 3600.0

    @rule(wanted=st.floats(0.5, 20), factor=st.sampled_from([1.0, 1.0, 1.0, 2.0]))
    def choose(self, wanted, factor):
        self.at += 1.0
        known = round(factor * len(self.last))
        choices = self.urgent.choose(wanted, at=self.at, known=known, ahead_s=CHOICE_S)
        self.interval = known / CAPACITY * DAY
        self.cut = {site: cut for site, cut in self.cut.items() if site in self.urgent}
        self.waits = {
            page: since
            for page, since in self.waits.items()
            if page[0] in self.cut and since >= self.at - self.cut[page[0]]
        }
        first = {site: min(since for page, since in self.waits.items() if page[0] == site)
                 for site in {page[0] for page in self.waits}}  # fmt: skip
        owed = sum(first[page[0]] >= self.at - SLOW * CHOICE_S for page in self.waits)
        named = {(page[0], self.key(page)): page for page in self.last}
        plain = 0
        for site, keys, due, before in choices:
            assert site in self.urgent
            assert due < self.at if before else due == self.at
            plain += 0 if before else len(keys)
            for key in keys:
                page = named[site, key]
                assert page not in self.waits, "made due once until it is fetched, or given up"
                assert page not in self.barred
                assert self.last[page] <= self.at - SHORTEST
                self.waits[page] = self.at
        assert plain <= max(0, ceil(wanted) - owed)

    @invariant()
    def pages_are_counted_and_bounded(self):
        assert self.urgent._pages == sum(len(site) for site in self.urgent._sites.values()) <= self.most[0]
        assert len(self.urgent._sites) <= self.most[1]


TestWatching = Watching.TestCase
TestWatching.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
