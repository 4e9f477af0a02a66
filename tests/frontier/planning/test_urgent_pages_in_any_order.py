"""Urgent pages, whatever happens in whatever order: none is promised twice, too soon, or below the price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.frontier.town import DAY, NOW, WindowShelf, crawled, lease_of, visit_of
from webfountain.core.signals import Signals
from webfountain.frontier.planning import site_windows
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.records import OutcomeKind, PageRecord, SiteLease, State

SIZES = {f"http://s{pages}.example": pages for pages in (1, 3, 12, 25)}
SITES = st.sampled_from(list(SIZES))
PRICES = st.sampled_from([0.0, 100.0, 2_000.0, 20_000.0])
SHORTEST = DAY / 10
CAPACITY = 40.0


def urgent_pages(shelf: WindowShelf | None) -> UrgentPages:
    urgent = UrgentPages(
        signals=Signals(),
        period=DAY,
        capacity=CAPACITY,
        shortest=SHORTEST,
        windows=None if shelf is None else shelf.store,
    )
    urgent.pace.divide(sum(SIZES.values()), len(SIZES))
    return urgent


class Asking(RuleBasedStateMachine):
    """Sites become active and rest, pages are fetched or not, time passes, and sites are asked what is due."""

    shelf: WindowShelf | None = None

    @initialize()
    def begin(self) -> None:
        self.urgent = urgent_pages(self.shelf)
        self.at = NOW
        self.last = {f"{site}/{'ab'[page % 2]}/{page}": NOW - DAY * (1 + page / n)
                     for site, n in SIZES.items() for page in range(n)}  # fmt: skip
        self.barred: set[str] = set()  # not fetched well of late
        self.waits: set[str] = set()
        self.kept: dict[str, bytes] = {}

    def keep(self, learned: list[tuple[SiteLease, bytes]]) -> None:
        self.kept |= {lease.site: data for lease, data in learned}
        if self.shelf is not None:
            self.shelf.settle([], at=self.at, parts=self.urgent.kept.take_windows())

    def records(self, site: str) -> list[PageRecord]:
        pages = [url for url in self.last if site_of(url) == site]
        return [crawled(url, at=self.last[url], failures=int(url in self.barred)) for url in pages]

    @rule(site=SITES)
    def activate(self, site: str) -> None:
        lease = lease_of(site)
        if self.urgent.wants(lease):
            self.urgent.admit(lease, self.kept.get(site, b""), lambda: self.records(site), at=self.at)
            self.waits = {url for url in self.waits if site_of(url) != site}
        assert site in self.urgent

    @rule(site=SITES)
    def park(self, site: str) -> None:
        learned = self.urgent.leave(site)
        self.keep([] if learned is None else [(lease_of(site), learned)])
        assert site not in self.urgent

    @rule(data=st.data(), kind=st.sampled_from(["same", "changed", "minor", "failed", "gone", "refused"]))
    def fetch(self, data: st.DataObject, kind: OutcomeKind) -> None:
        url = data.draw(st.sampled_from(sorted(self.waits) or list(self.last)))
        if site_of(url) not in self.urgent:
            return
        self.at += 1.0
        well = kind not in ("failed", "gone", "refused")
        (self.barred.discard if well else self.barred.add)(url)
        if kind == "refused":
            self.urgent.refuse(site_of(url), fingerprint(url))
        else:
            state: State = "gone" if kind == "gone" else "crawled"
            self.keep(self.urgent.observe([visit_of(url, kind, at=self.at, state=state)]))
            self.last[url] = self.at if kind != "failed" else self.last[url]
        self.waits.discard(url)

    @rule(site=SITES)
    def meet(self, site: str) -> None:
        if site in self.urgent:
            self.at += 1.0
            url = f"{site}/a/{len(self.last)}"
            self.last[url] = self.at
            self.keep(self.urgent.observe([visit_of(url, "new", at=self.at)]))

    @rule(hours=st.integers(1, 30))
    def rest(self, hours: int) -> None:
        self.at += hours * 3600.0

    @rule(site=SITES, price=PRICES, most=st.integers(0, 20), release=st.booleans())
    def ask(self, site: str, price: float, most: int, release: bool) -> None:
        if site not in self.urgent:
            return
        self.at += 1.0
        named = {fingerprint(url): url for url in self.last}
        if release:
            keys = self.urgent.outranking([site], price, at=self.at).get(site, [])
        else:
            self.keep(self.urgent.turn([site], price, self.records, at=self.at))
            keys = self.urgent.due({site: most}, price, at=self.at).get(site, [])
            assert len(keys) <= most
        for key in keys:
            url = named[key]
            assert site_of(url) == site
            assert url not in self.waits, "due once until it is fetched"
            assert url not in self.barred
            assert self.last[url] <= self.at - SHORTEST
            self.waits.add(url)
        assert self.urgent.next_at([site], price, self.at)[site] >= self.at


TestAsking = Asking.TestCase
TestAsking.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


class AskingWindows(Asking):
    """The same of sites most of which are too large to be in memory as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf = WindowShelf()

    @rule(site=SITES)
    def kill(self, site: str) -> None:
        """Another process goes on with what was kept."""
        if site in self.urgent:
            self.urgent.leave(site)
            self.urgent.kept.take_windows()
        self.urgent = urgent_pages(self.shelf)
        self.waits.clear()


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_windows, "WINDOW", 6)
    monkeypatch.setattr(site_windows, "AWAY", 10)


TestAskingWindows = AskingWindows.TestCase
TestAskingWindows.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
