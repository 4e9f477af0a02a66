"""Simulate the crawl's own policy with the objects and the price of the frontier, but without queues and network.
Policies that use importance or a sitemap have names of their own, because a plain trace has neither. `RANKING`, an
earlier policy without a price, is kept for comparison.
"""

from __future__ import annotations

from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.buckets import BUCKETS
from webfountain.core.change_rate import append
from webfountain.core.fetch_price import price_of_budget
from webfountain.core.signals import Signals
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.frontier.planning.plan import Forecast, Plan
from webfountain.frontier.planning.plan_follower import PlanFollower
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.visit import Visit
from webfountain.metrics import Metrics
from webfountain.policy.collection_file import parse_collection
from webfountain.records import STATES, Fetch, FetchResult, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from webfountain.lab.simulate.rivals import Fetches
    from webfountain.lab.simulate.trace import ChangeTrace, Sitemap
    from webfountain.records import OutcomeKind, State

    Pages = npt.NDArray[np.int64]
    Array = npt.NDArray[np.float64]

__all__ = [
    "ABLATIONS",
    "IMPORTANCE",
    "RANKING",
    "SITEMAP",
    "Array",
    "AtAPrice",
    "Pages",
    "UrgencyPolicy",
]

ABLATIONS = {
    "fountain": Signals(),
    "fountain-siblings": Signals(siblings=False),
    "fountain-sections": Signals(sections=False),
    "fountain-history": Signals(history=False),
    "fountain-forgetting": Signals(forgetting=False),
    "fountain-independent": Signals(independent=False),
}
"""The policy `fountain`, and variants of it that each ignore one signal."""

IMPORTANCE = "fountain+importance"
"""The policy that weighs urgency by the importance of the page."""

SITEMAP = "fountain+sitemap"
"""The policy that reads a sitemap each day, at the cost of one fetch."""

RANKING = "ranking"
"""The policy without a price: each day it ranks all pages together by urgency."""

_SITE: Final = "http://trace.example"
_POLICY: Final = """
[collection]
name = "replay"
seeds = ["{site}/"]
[politeness]
user_agent = "webfountain-replay/1.0 (+https://example.org/)"
[cycle]
period = "1d"
capacity_pages_per_period = {capacity}
strategy = "fountain"
[signals]
importance = {weighed}
"""
_NEVER_S: Final = 1e12
DAY_S: Final = 86_400.0
_LATENCY_S: Final = 0.1


class AtAPrice:
    """A simulated crawl, which treats all pages of the trace as one site and uses the frontier's `UrgentPages` and
    `PlanFollower`.

    The plan of the simulated crawl contains only the budget and a first price. Times are seconds since the start of the
    trace; at the start, all live pages have just been fetched.
    """

    def __init__(
        self,
        trace: ChangeTrace,
        capacity: int,
        *,
        signals: Signals,
        weighed: bool = False,
        sitemap: Sitemap | None = None,
    ) -> None:
        """Begin a crawl. If `weighed` is True, urgency is weighted by importance. If `sitemap` is given, it is read
        once a day, which costs one fetch.
        """
        self.errands = int(sitemap is not None)
        self._sitemap = sitemap
        self._read_on = -1
        capacity = max(capacity - self.errands, 1)
        text = _POLICY.format(site=_SITE, capacity=capacity, weighed=str(weighed).lower())
        collection = parse_collection(text, Path("replay.toml"))
        urgent = urgent_pages_of(collection, recrawl=True, signals=signals)
        assert urgent is not None
        self.urgent = urgent
        self.follower = PlanFollower(collection, metrics=Metrics(), start=0.0)
        urls = [f"{_SITE}/{path.lstrip('/')}" for path in trace.urls]
        self._urls, self._keys = urls, [fingerprint(url) for url in urls]
        self._page = {key: page for page, key in enumerate(self._keys)}
        alive = np.flatnonzero(trace.alive).tolist()
        self._crawled = {page: PageRecord(urls[page], state="crawled", last_crawled=0.0) for page in alive}
        self.follower.adopt(_budget(len(alive), capacity, float(collection.cycle.period_s), signals))
        self._lease = SiteLease(_SITE, 1, _NEVER_S, SiteRecord(_SITE, (0,) * len(STATES), 0.0, 0.0, SiteState()))
        # For each due page: when it became due, and its place in the order in which pages became due.
        self._due: dict[bytes, tuple[float, int]] = {}
        self._made_due = 0
        self._never_crawled = 0
        self._starved = self._changed = False
        self._learned = b""

    def choose(self, at: float, many: int) -> Pages:
        """Return at most `many` due pages, as the frontier would choose them."""
        urgent, follower = self.urgent, self.follower
        follower.check(at, starved=self._starved)
        self._starved = False
        price = follower.schedule.price
        assert price is not None
        urgent.pace.divide(len(self._crawled), 1)
        if urgent.wants(self._lease):
            urgent.admit(self._lease, self._learned, self._crawled.values, at=at)
        hand = max(many, 1)  # like a site's hand, which holds a page until the budget has room for it
        if _SITE in urgent:
            self._read_sitemap(at)
            self._make_due(price, hand, at)
        urgent.forecast.update(at, crawled=len(self._crawled), never_crawled=self._never_crawled)
        first = nsmallest(many, self._due.items(), key=lambda item: item[1])
        self._starved = len(self._due) < hand
        return np.array([self._page[key] for key, _ in first], dtype=np.int64)

    def _read_sitemap(self, at: float) -> None:
        """Read the day's sitemap, which shows only changes of earlier days."""
        day = int(at // DAY_S)
        if self._sitemap is None or day == self._read_on:
            return
        self._read_on = day
        pages = np.array([*self._crawled], dtype=np.int64)
        pages = pages[self._sitemap.listed(pages)]
        modified = self._sitemap.modified(day, pages)
        fetched_on = [int((self._crawled[page].last_crawled or 0.0) // DAY_S) for page in pages.tolist()]
        is_later = (modified >= np.array(fetched_on)).tolist()
        keys = [self._keys[page] for page in pages.tolist()]
        self.urgent.receive_dates(_SITE, dict(zip(keys, is_later, strict=True)))

    def _make_due(self, price: float, hand: int, at: float) -> None:
        urgent = self.urgent
        room = {_SITE: max(hand - len(self._due), 0)}
        changed = [_SITE] if self._changed else []
        self._changed = False
        urgent.prepare(room, changed, price, at=at)
        for keys in urgent.outranking(changed, price, at=at).values():
            self._put(keys, at - urgent.pace.terms.interval)
        for keys in urgent.due(room, price, at=at).values():
            self._put(keys, at)
        waiting = urgent.supply.demand(price, at)
        top, level = urgent.supply.best(self.follower.missing(), at)
        for keys in urgent.supply.call(price, at=at).values():
            self._put(keys, at)
        self.follower.hand_over(ranks=urgent.pace.ranks, waiting=waiting, top=top, level=level)

    def _put(self, keys: Iterable[bytes], due: float) -> None:
        for key in keys:
            self._made_due += 1
            self._due[key] = (due, self._made_due)

    def learn(self, at: float, fetches: Fetches) -> None:
        visits = [
            self._visit(at, *each)
            for each in zip(
                fetches.pages.tolist(), fetches.first.tolist(), fetches.changed.tolist(), fetches.gone.tolist(),
                strict=True,
            )
        ]  # fmt: skip
        self._never_crawled = fetches.waiting
        for _, kept in self.urgent.observe(visits):
            self._learned = kept

    def _visit(self, at: float, page: int, first: bool, changed: bool, gone: bool) -> Visit:
        self.follower.count()
        self._due.pop(self._keys[page], None)
        before = self._crawled.pop(page, None)
        kind: OutcomeKind = "gone" if gone else "new" if first else "changed" if changed else "same"
        history = b""
        if before is not None and before.last_crawled is not None and not first:
            history = append(before.history, at - before.last_crawled, changed)
        state: State = "gone" if gone else "crawled"
        record = PageRecord(self._urls[page], state=state, last_crawled=at, history=history)
        if not gone:
            self._crawled[page] = record
        self._changed |= kind == "changed"
        fetch = Fetch(1, "page", record.url, _SITE, None)
        return Visit(FetchResult(fetch, at, _LATENCY_S, 404 if gone else 200), kind, record)


def _budget(pages: int, capacity: int, period_s: float, signals: Signals) -> Plan:
    """Return a plan with a single, repeating period, a number of recrawls and a price."""
    known = np.array([float(max(pages, 1))])
    return Plan(
        start=0.0, period=period_s, strategy=3, fountain=True, weights=(0.0,), recrawl=(capacity,), fresh=(0,),
        buckets=(), pages=(), rates=(), quotas=((),), forecast=Forecast((0.0,), (0.0,), (0.0,), (0.0,)),
        objective=0.0, bound=0.0, gap=0.0, message="", seconds=0.0,
        price=price_of_budget(known, np.array([signals.prior_rate / period_s]), capacity / period_s),
        intervals=(_NEVER_S,) * BUCKETS, phases=b"",
    )  # fmt: skip


class UrgencyPolicy:
    """The policy `RANKING`, which fetches the most urgent pages first (`core.site_urgency`). A step is a day."""

    def __init__(self, urls: list[str], *, signals: Signals) -> None:
        self._urls = urls
        self._site = SiteUrgency(signals=signals)
        self._today = Sites([self._site], step=0)
        self._number = np.full(len(urls), -1, dtype=np.int64)  # in `_site`, for the pages seen so far

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        numbers = self._numbers(pages, day - tau)
        self._today = Sites([self._site], step=day)
        return self._today.urgency(numbers)

    def learn(self, day: int, fetches: Fetches) -> None:
        numbers = self._numbers(fetches.pages, day - fetches.tau)
        if len(self._site) > len(self._today.site):
            self._today = Sites([self._site], step=day)
        self._today.renew(numbers[fetches.first], step=day)
        seen = ~fetches.first & ~fetches.gone
        steps = np.full(np.count_nonzero(seen), day)
        self._today.observe(numbers[seen], fetches.changed[seen], steps)
        self._today.keep()

    def _numbers(self, pages: Pages, since: Pages) -> Pages:
        new = self._number[pages] < 0
        if new.any():
            self._number[pages[new]] = self._site.add(
                [self._urls[page] for page in pages[new].tolist()],
                since=since[new],
                importance=np.ones(np.count_nonzero(new)),
            )
        return self._number[pages]
