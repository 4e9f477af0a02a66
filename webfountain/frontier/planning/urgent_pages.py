"""What makes known pages due by their urgency: the active sites, each of which decides with its own pages at hand.

Place in the walk (DESIGN 4): settled visits -> the `UrgentSite` of their site; a site that is active is asked which of
its pages are worth the price of a fetch (`core.price`, which the loop adjusts) -> lane ADVANCED of its recrawl queue.
A site that has none waits, or is parked, until one is. Nothing is sorted over all sites; memory is for the active ones
alone, and what a site has learned is kept with it meanwhile, in the form in which it is reckoned with. Times are UTC
seconds, urgencies and prices seconds of obsolete time. The worker thread owns it; the loop is handed what it needs with
a batch's result.

What it costs: the sites of a batch are reckoned together (`core.site_urgency`), for most sites are small; a site only
when it is asked and a page of it may be worth the price by now. Each reckoning says before what time that is not so,
for a few prices (`RUNGS`), so that asking in between, for the price may have fallen, costs a look at these. Time is
counted in steps (a thirty-sixth of the time between two visits; each site has its own phase, so that not all come at
once). What is found is learned when the site is asked next and nothing of it waits; while something does now and then,
sooner when a change was found (`PAUSE`), for then others may outrank what waits.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import nlargest
from itertools import chain
from math import floor, inf, log
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
import numpy as np

from webfountain.core.activity import Signals
from webfountain.core.change_rate import decode
from webfountain.core.forecast import Believed, BelievedTotal, CycleForecast, Outlook, Published, published
from webfountain.core.rank import importance_by_depth
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.frontier.planning.plan import bounds_of
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy.files import Collection
    from webfountain.records import PageRecord, SiteLease

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["PAUSE", "UrgencyTerms", "UrgentPages", "UrgentSite", "urgent_pages_of"]

FEWEST_CHOICES: Final = 2
"""Choices between two visits to a page, at least: with a budget that is larger there is no choice to make."""
EARLY: Final = 0.8
"""A site comes back when a page reaches this share of the price, once: the price may have fallen meanwhile."""
RUNGS: Final = (1.0, EARLY, 0.5, 0.3, 0.15, 0.05)
"""Of the price at which a site is reckoned: for each it is kept when a page may be worth that."""
PAUSE: Final = 0.25
"""Share of a step, or a check if that is longer, for which changes of a site are not learned from anew while pages of
it wait: they come one by one, and each lesson costs what all its pages cost."""
RELEASE: Final = 64
"""Pages of a site, at most, that go before what waits in one batch."""
OUTRANKS: Final = 2.0
"""A page that is so many times as urgent as one that waits goes before it."""
KEEP: Final = 0.002
"""Share of a site's pages whose visits may not have been kept with it yet: with up to 500 pages each visit is."""
SAMPLE: Final = 500
"""Sites whose pages that are worth the price are counted, at each check: with fewer, chance moved the price."""
WAKES: Final = 0.5
LEAST_WAKES: Final = 6000.0
"""Times that sites are asked although no page of theirs should be worth the price, for each fetch, and in a period at
least: the price may have fallen."""
RESTED: Final = 200_000
"""Pages, in all, of sites that left and are kept in memory all the same: many come back within their step, or sooner
than they were to, for the price has fallen."""
RECALLED: Final = 2.0
"""Checks' worth of fetches below which pages of sites that rest are called."""
STRANGE: Final = 1.5
"""Factor by which the interval between visits may move before the steps are cut anew."""
STEPS: Final = 36
"""Steps between two visits to a page, where visits are that frequent."""
COVERED: Final = 0.5
"""Share of the crawled pages that must have been reckoned before anything is said of all."""
_KEY_BYTES: Final = len(fingerprint("http://a.example/"))
_SEARCHED: Final = 4000
"""Bytes of keys that are searched for one; of more a table is made."""
_DAY_S: Final = 86_400.0


def urgent_pages_of(collection: Collection, *, recrawl: bool) -> UrgentPages | None:
    """What ranks the pages of a collection; None where nothing is to be ranked: no budget, another strategy."""
    cycle, signals = collection.cycle, collection.signals
    if not recrawl or cycle.capacity_pages_per_period is None or cycle.strategy != "fountain":
        return None
    return UrgentPages(
        signals=Signals(
            siblings=signals.siblings,
            sections=signals.sections,
            history=signals.history,
            forgetting=signals.forgetting,
            weekdays=signals.weekdays,
        ),
        period=cycle.period_s,
        capacity=float(cycle.capacity_pages_per_period),
        periods=cycle.periods,
        shortest=bounds_of(collection).shortest,
        rests={name: float(table.revisit.min_interval) for name, table in collection.policies.items()},
        weighed=signals.importance,
    )


class UrgencyTerms(NamedTuple):
    """What holds for all sites of a collection at a time."""

    signals: Signals
    """In periods."""
    period: float
    """s."""
    interval: float
    """Time between two visits to a page that the budget allows in the mean, s."""
    shortest: float
    """No page is due sooner after its last fetch, s."""
    weighed: bool
    """Whether a page's importance, or where it has none its depth, counts."""
    rests: Mapping[str, float] = {}
    """Policies whose pages are not due for longer than `shortest` after a fetch, and how long, s."""

    @property
    def step_s(self) -> float:
        """Length of a step: what happens within one is at once, s."""
        return self.period / self._steps

    @property
    def beliefs(self) -> Signals:
        """The signals in steps."""
        return self.signals.lasting(self.interval / self.period).spread(self._steps)

    @property
    def _steps(self) -> float:
        return min(max(1.0, STEPS * self.period / self.interval), CHECKS_PER_PERIOD)

    def rounded(self) -> UrgencyTerms:
        """With an interval that many sites share, so that they can be reckoned together."""
        return self._replace(interval=STRANGE ** round(log(self.interval) / log(STRANGE)))


class UrgentSite:
    """One active site. Pages are numbered as they come; `begun` or `decode` makes one."""

    __slots__ = (
        "_encoded",
        "_keys",
        "_numbers",
        "_phase",
        "_step_s",
        "_worth_step",
        "asked",
        "believed",
        "best",
        "fetched",
        "kept",
        "learned_at",
        "met",
        "most",
        "news",
        "observed",
        "reaches",
        "terms",
        "urgencies",
        "waits",
        "worth",
    )

    def __init__(
        self,
        name: str,
        urgencies: SiteUrgency,
        keys: bytes,
        fetched: Array,
        terms: UrgencyTerms,
        *,
        encoded: bytes | None = None,
    ) -> None:
        self.urgencies = urgencies
        self.terms = terms
        self._step_s = terms.step_s
        self._phase = _phase(name)
        self._encoded = encoded  # `urgencies`, while nothing is learned
        self.worth = np.zeros(0)
        """(pages,) urgency of each, s, as reckoned last."""
        self.best, self.most = inf, inf
        """What the most urgent page is worth at most, s, as reckoned last; and the most urgent that does not wait."""
        self._worth_step = -1
        self.asked = 0.0
        """The price asked for when it was reckoned last, s."""
        self.reaches: Sequence[float] = ()
        """UTC s before which no other page is worth each of `RUNGS` of that."""
        self._keys = keys
        self._numbers: dict[bytes, int] = {}
        self.fetched = fetched
        """(pages,) UTC s; inf of a page that is no candidate: its tries fail, it is gone or refused."""
        self.waits: dict[int, float] = {}
        """Pages made due and not fetched yet, and when, oldest first."""
        self.met: dict[bytes, PageRecord] = {}
        """First copies since pages were added last."""
        self.observed: dict[int, tuple[int, bool]] = {}
        """Step and whether it was changed, of pages that were fetched: to be learned from."""
        self.kept = b""
        """What was encoded last."""
        self.learned_at = -inf
        """When it was learned from last."""
        self.news = 0
        """Visits and refusals since it was encoded last."""
        self.believed: Believed | None = None
        """What the collection's forecast holds of it."""

    @classmethod
    def begun(cls, name: str, records: Iterable[PageRecord], terms: UrgencyTerms, *, at: float) -> UrgentSite:
        """From the crawled pages of a site as they stand in the store, with their histories."""
        phase = _phase(name)
        pages = [record for record in records if record.request is None and record.last_crawled is not None]
        evidence = np.array([_evidence(record) for record in pages]).reshape(-1, 2)
        urgencies = SiteUrgency.resumed(
            [_path(record.url) for record in pages],
            since=np.array([_step(record.last_crawled or 0.0, terms, phase) for record in pages], dtype=np.int64),
            events=evidence[:, 0],
            watched=evidence[:, 1] / terms.step_s,
            importance=np.array([_weight(record, terms) for record in pages]),
            signals=terms.beliefs,
            step=_step(at, terms, phase),
        )
        fetched = np.array([_candidate_since(record, terms) for record in pages], dtype=np.float64)
        return cls(name, urgencies, b"".join(fingerprint(record.url) for record in pages), fetched, terms)

    def __len__(self) -> int:
        return len(self.fetched)

    def key(self, page: int) -> bytes:
        """The key of a page."""
        return self._keys[page * _KEY_BYTES : (page + 1) * _KEY_BYTES]

    def number(self, key: bytes) -> int | None:
        """The number of a page; None when it is not known here."""
        if len(self._keys) > _SEARCHED:
            if not self._numbers:
                self._numbers = {self.key(page): page for page in range(len(self))}
            return self._numbers.get(key)
        place = self._keys.find(key)
        while place % _KEY_BYTES and place >= 0:
            place = self._keys.find(key, place + 1)
        return place // _KEY_BYTES if place >= 0 else None

    def fits(self, terms: UrgencyTerms) -> bool:
        """Whether its steps still fit the interval between visits; else it should begin anew."""
        return 1 / STRANGE < self.terms.interval / terms.interval < STRANGE

    def observe(self, visit: Visit) -> None:
        """A page was fetched and settled."""
        self.news += 1
        key = fingerprint(visit.record.url)
        if visit.record.state != "crawled" or visit.kind == "failed":
            self.drop(key)
            return
        at, page = visit.fetched.at, self.number(key)
        since = _candidate_since(visit.record, self.terms)
        if page is None:
            self.met[key] = visit.record
        elif self.fetched[page] != since:  # else its record was read with this visit in it
            self.waits.pop(page, None)
            self._fetched(page, since)
            # A change found is not undone by a second fetch.
            _, changed = self.observed.get(page, (0, False))
            self.observed[page] = self.step(at), changed or visit.kind == "changed"

    def drop(self, key: bytes) -> None:
        """A page is no candidate until it is fetched well again."""
        self.news += 1
        self.met.pop(key, None)
        page = self.number(key)
        if page is not None:
            self.waits.pop(page, None)
            self._fetched(page, inf)

    def _fetched(self, page: int, at: float) -> None:
        if not self.fetched.flags.writeable:  # it is the stored bytes
            self.fetched = self.fetched.copy()
        self.fetched[page] = at
        if page < len(self.worth):  # whatever was found, there is nothing to be saved on it for now
            self.worth[page] = 0.0

    def give_up(self, at: float) -> bool:
        """A page that waited for a whole interval is not to be had; whether there was one."""
        given_up = 0
        for page, since in list(self.waits.items()):
            if since >= at - self.terms.interval:
                break
            self.drop(self.key(page))
            given_up += 1
        return given_up > 0

    def take_in(self) -> None:
        """Pages that were fetched for the first time get numbers."""
        records = [record for key, record in self.met.items() if self.number(key) is None]
        self.met.clear()
        if not records:
            return
        self.urgencies.add(
            [_path(record.url) for record in records],
            since=np.array([self.step(record.last_crawled or 0.0) for record in records]),
            importance=np.array([_weight(record, self.terms) for record in records]),
        )
        self._encoded, self.reaches = None, ()
        self._keys += b"".join(fingerprint(record.url) for record in records)
        self._numbers.clear()
        fetched = [_candidate_since(record, self.terms) for record in records]
        self.fetched = np.concatenate([self.fetched, np.array(fetched, dtype=np.float64)])

    # ------------------------------------------------------------- questions

    def step(self, at: float) -> int:
        """The step that a time lies in, counted as over."""
        # The step that `at` is in counts as over: what is found now happened by now.
        return floor(at / self._step_s + self._phase) + 1

    def begin_of(self, step: int) -> float:
        """When a step begins, s."""
        return (step - 1 - self._phase) * self._step_s

    def next_step_at(self, at: float) -> float:
        """When the step after that of `at` begins, s."""
        return self.begin_of(self.step(at) + 1)

    def is_reckoned(self, at: float) -> bool:
        """Whether `worth` is as it would be reckoned now."""
        return not self.observed and self._worth_step == self.step(at) and self.is_known()

    def is_known(self) -> bool:
        """Whether it was reckoned with all its pages, if not now."""
        return len(self.worth) == len(self)

    def is_stale(self, price: float, at: float, pause: float) -> bool:
        """Whether it must be reckoned to tell which pages are worth the price."""
        if not self.reaches:
            return True
        if self.observed:
            return not self.waits or self._worth_step != self.step(at) or self.should_learn(at, pause)
        if price <= self.most:
            return self._worth_step != self.step(at) or not self.is_known()
        reach = self.reaches_at(price, at)
        return (reach is None or reach <= at) and self._worth_step != self.step(at)

    def reckoned(self, worth: Array, at: float, price: float, reaches: Sequence[float]) -> None:
        """How urgent all its pages are, s; and when others than those of this price reach `RUNGS` of it."""
        self.worth, self._worth_step, self.best = worth, self.step(at), float(worth.max(initial=0.0))
        self.asked, self.reaches = price, reaches
        self._find_most()

    def _find_most(self) -> None:
        """After some pages began to wait, or no longer do."""
        if self.is_known():
            self.most = self.best
            if self.waits:
                self.most = float(self.worth_of_free().max(initial=0.0))

    def learned(self, at: float) -> None:
        """What was observed of it is in its urgencies."""
        self.observed.clear()
        self.learned_at, self._encoded, self._worth_step = at, None, -1

    def should_learn(self, at: float, pause: float) -> bool:
        """Whether what was observed may turn the order of what waits, for `pause` and so long since it was learned."""
        if not self.waits or at < max(self.learned_at, next(iter(self.waits.values()))) + pause:
            return False
        return any(new for _, new in self.observed.values())

    def urgent(self, price: float, at: float) -> tuple[Ints, Array]:
        """Pages that are worth the price, may be fetched, and do not wait for it; and their urgencies, s."""
        pages = np.flatnonzero(self.worth >= price)
        if len(pages):
            pages = pages[self.fetched[pages] <= at - self.terms.shortest]
            if self.waits:
                pages = pages[~np.isin(pages, np.fromiter(self.waits, dtype=np.int64))]
        return pages, self.worth[pages]

    def demand(self, price: float, at: float) -> int:
        """How many pages are worth the price or wait."""
        if price > self.best:
            return len(self.waits)
        worth = self.worth >= price
        worth[np.fromiter(self.waits, dtype=np.int64)] = True
        if self.terms.shortest:
            worth &= self.fetched <= at - self.terms.shortest
        return int(np.count_nonzero(worth))

    def worth_of_waiting(self) -> Array:
        """Urgencies of the pages that wait, s."""
        return self.worth[np.fromiter(self.waits, dtype=np.int64)]

    def worth_of_free(self) -> Array:
        """Urgencies of the pages that may be fetched and do not wait for it, s."""
        free = self.worth > 0.0
        free[np.fromiter(self.waits, dtype=np.int64)] = False
        return self.worth[free]

    def due_at(self, price: float) -> float | None:
        """From when a page is due that is worth the price already; None where none is that does not wait."""
        if price > self.most:
            return None
        pages = np.flatnonzero(self.worth >= price)
        if self.waits:
            pages = pages[~np.isin(pages, np.fromiter(self.waits, dtype=np.int64))]
        since = float(self.fetched[pages].min()) if len(pages) else inf
        return None if since == inf else since + self.terms.shortest

    def reaches_at(self, price: float, at: float) -> float | None:
        """Before when no page that is not worth the price becomes so, if nothing is found meanwhile; inf: never.

        Or nearly so, if none is yet. None where that is not known of this price.
        """
        if not self.reaches or (self.asked < price and self.asked <= self.most):
            return None  # pages that were worth the price of then were left out
        for rung, reach in zip(RUNGS, self.reaches, strict=True):
            if rung * self.asked <= EARLY * price and reach > at:
                return reach
        return next((each for rung, each in zip(RUNGS, self.reaches, strict=True) if rung * self.asked <= price), None)

    def rest(self) -> None:
        """It is not active for a while; what waits is asked for again then."""
        if self.waits:
            self.waits.clear()
            self._find_most()

    def send(self, pages: Ints, at: float) -> list[bytes]:
        """Pages are due, and count as waiting from now on; their keys."""
        numbers = pages.tolist()
        self.waits.update(dict.fromkeys(numbers, at))
        self._find_most()
        return [self.key(page) for page in numbers]

    def encode(self) -> bytes:
        """To go on from later (`decode`): about 44 bytes a page. What waits is asked for again then."""
        self.news = 0
        if self._encoded is None:
            self._encoded = self.urgencies.encode()
        self.kept = _SITE.encode(
            [
                *(self.terms.interval, self.believed, self._keys, self.fetched.tobytes(), self._encoded),
                *(self.observed, self.most, self.asked, self.reaches),
            ]
        )
        return self.kept

    @classmethod
    def decode(cls, name: str, data: bytes, terms: UrgencyTerms) -> tuple[UrgentSite | None, Believed | None]:
        """The site that `encode` wrote, and what was believed of it.

        There is none where it was cut for another interval, or cannot be read.
        """
        believed = None
        try:
            stored = _STORED.decode(data)
            believed = stored.believed
            own = terms.rounded()._replace(interval=stored.interval)
            known = SiteUrgency.decode(stored.urgencies, signals=own.beliefs)
        except ValueError:
            return None, believed
        fetched = np.frombuffer(stored.fetched, dtype=np.float64)
        site = cls(name, known, stored.keys, fetched, own, encoded=stored.urgencies)
        site.believed, site.observed = believed, stored.observed
        site.best = site.most = stored.most
        site.asked, site.reaches = stored.asked, stored.reaches
        site.kept = data
        is_whole = site.fits(terms) and len(stored.keys) == _KEY_BYTES * len(site) == _KEY_BYTES * len(known)
        return site if is_whole else None, believed


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """What is kept with a site."""

    interval: float
    believed: Believed | None
    keys: bytes
    fetched: bytes
    urgencies: bytes
    observed: dict[int, tuple[int, bool]]
    most: float
    asked: float
    reaches: list[float]


class _Together:
    """Active sites of like terms at one time: their pages are numbered one site after the other."""

    def __init__(self, sites: Mapping[str, UrgentSite], at: float) -> None:
        self.sites = list(sites.values())
        self.names = list(sites)
        self.step_s = self.sites[0].terms.step_s
        self.at = at
        steps = np.array([site.step(at) for site in self.sites], dtype=np.int64)
        self.urgencies = Sites([site.urgencies for site in self.sites], step=steps)

    def learn(self) -> float:
        """Take in what was observed; page-seconds for which what was found changed is believed to have been so."""
        begins = self.urgencies.offset.tolist()
        found = [
            (begin + page, step, changed)
            for begin, site in zip(begins, self.sites, strict=False)
            for page, (step, changed) in site.observed.items()
        ]
        pages, steps, changed = (np.array(each) for each in zip(*found, strict=True))
        told = self.urgencies.observe(pages, changed, steps)
        self.urgencies.keep()
        for site in self.sites:
            site.learned(self.at)
        return float(told.lasted.sum()) * self.step_s

    def reckon(self, price: float) -> None:
        """How urgent each page of each site is now, and before when no other is worth the price or some less.

        Only with a new step are pages more urgent.
        """
        approach = self.urgencies.approach()
        worth = approach.urgency * self.step_s
        wanted = np.isfinite(np.concatenate([site.fetched for site in self.sites]))
        begins = self.urgencies.offset.tolist()
        worth[~wanted] = 0.0
        wanted &= worth < price
        wanted[[begin + page for begin, site in zip(begins, self.sites, strict=False) for page in site.waits]] = False
        ahead = self.urgencies.steps_until(approach, wanted, np.array(RUNGS) * price / self.step_s)
        begun = np.array([site.begin_of(site.step(self.at)) for site in self.sites])
        reaches = (begun + np.maximum(np.ceil(ahead), 1.0) * self.step_s).T.tolist()
        for i, site in enumerate(self.sites):
            site.reckoned(worth[begins[i] : begins[i + 1]].copy(), self.at, price, reaches[i])

    def believed(self) -> list[Believed]:
        """What is believed of each site."""
        candidates = np.isfinite(np.concatenate([site.fetched for site in self.sites]))
        pages = np.bincount(self.urgencies.site[candidates], minlength=len(self.sites))
        rows = zip(pages.tolist(), *(each.tolist() for each in self.urgencies.reckon(candidates)), strict=True)
        return [
            Believed(self.at, count, obsolete, so_far * self.step_s, growing / self.step_s)
            for count, obsolete, so_far, growing in rows
        ]


class _Rested:
    """Sites that left lately, the last the newest."""

    def __init__(self) -> None:
        self._sites: dict[str, UrgentSite] = {}
        self._pages = 0

    def items(self) -> ItemsView[str, UrgentSite]:
        """Each by its name."""
        return self._sites.items()

    def put(self, name: str, site: UrgentSite) -> None:
        """A site left; the oldest are forgotten."""
        self.take(name)
        site.rest()
        self._sites[name] = site
        self._pages += len(site)
        while self._pages > RESTED:
            self.take(next(iter(self._sites)))

    def take(self, name: str) -> UrgentSite | None:
        """A site comes back; None where it is not known here."""
        found = self._sites.pop(name, None)
        if found is not None:
            self._pages -= len(found)
        return found


class UrgentPages:
    """The active sites of this process; others are passed over."""

    def __init__(
        self,
        *,
        signals: Signals,
        period: float,
        capacity: float,
        periods: int = 14,
        shortest: float = 0.0,
        weighed: bool = False,
        rests: Mapping[str, float] | None = None,
    ) -> None:
        """`capacity` is fetches per `period` (s); no page is due within `shortest` seconds of its last fetch, nor one
        of a policy within what `rests` says.

        `periods` make a cycle, of which the mean obsolete share is foretold. `weighed`: urgency counts a page's
        importance, or where it has none its depth.
        """
        day = _DAY_S / period
        signals = replace(signals, day=day, weekdays=signals.weekdays and day >= 1.0)
        self._terms = UrgencyTerms(signals, period, 0.0, shortest, weighed, rests or {})
        self._capacity = capacity
        self._demand, self._demand_at, self._sampled = 0, 0.0, 0
        self._sleep_s = 0.0  # a site is asked again after so long at most
        self._sites: dict[str, UrgentSite] = {}
        self._rested = _Rested()
        self._recalled_at = 0.0
        self._free, self._free_at = (inf, 0.0), 0.0  # what `free` answered last
        self._leases: dict[str, SiteLease] = {}
        self._cycle_s = periods * period
        self._forecast: CycleForecast | None = None
        self._standing: BelievedTotal | None = None

    def __contains__(self, site: str) -> bool:
        return site in self._sites

    @property
    def ranks(self) -> bool:
        """Whether there is a choice to make, as things stand: else pages go by their buckets' intervals."""
        return self._terms.interval >= FEWEST_CHOICES * self._terms.period / CHECKS_PER_PERIOD

    @property
    def check_s(self) -> float:
        """How often the price is held to the budget, and the forecast to what was found, s."""
        return self._terms.period / CHECKS_PER_PERIOD

    @property
    def interval(self) -> float:
        """Time between two visits to a page that the budget allows in the mean, s."""
        return self._terms.interval

    def demand(self, price: float, at: float) -> int:
        """Pages of the active sites that are worth the price, as each was reckoned last; of many sites some in turn."""
        if at >= self._demand_at:
            self._demand_at = at + self.check_s
            names = list(self._sites)
            begin = self._sampled % max(len(names), 1)
            asked = (names[begin:] + names[:begin])[:SAMPLE]
            self._sampled = begin + len(asked)
            self._reckon([name for name in asked if not self._sites[name].is_known()], price, at)
            found = sum(self._sites[name].demand(price, at) for name in asked)
            self._demand = round(found * len(names) / max(len(asked), 1))
        return self._demand

    def free(self, pages: int, at: float) -> tuple[float, float]:
        """What no page that does not wait is worth, s, and what so many of them are worth: of the sites in memory.

        The second of sites of which nothing waits, which could give them at once; 0 where there are not so many.
        """
        if at >= self._free_at:
            self._free_at = at + self.check_s
            sites = [
                site
                for site in map(itemgetter(1), chain(self._sites.items(), self._rested.items()))
                if site.is_known() and site.most > 0.0
            ]
            first = nlargest(pages, [site for site in sites if not site.waits], key=attrgetter("most"))
            worth = np.concatenate([np.zeros(0), *(site.worth_of_free() for site in first)])
            level = float(np.partition(worth, -pages)[-pages]) if 0 < pages <= len(worth) else 0.0
            self._free = max((site.most for site in sites), default=inf), level
        return self._free

    def divide(self, pages: int, sites: int) -> None:
        """The store holds so many crawled pages of so many sites: the budget is for all of them."""
        period = self._terms.period
        self._terms = self._terms._replace(interval=max(pages, 1) / self._capacity * period)
        self._sleep_s = period * max(1 / CHECKS_PER_PERIOD, sites / max(WAKES * self._capacity, LEAST_WAKES))

    def wants(self, lease: SiteLease) -> bool:
        """Whether a site should be taken in: it is not, or its steps no longer fit the interval between visits."""
        if not self.ranks:
            return False
        if lease.site in self._sites:
            self._leases[lease.site] = lease
            return not self._sites[lease.site].fits(self._terms)
        return True

    def admit(
        self, lease: SiteLease, learned: bytes, records: Callable[[], Iterable[PageRecord]], *, at: float
    ) -> None:
        """A site is active: go on from what was learned of it, or begin with its pages as the store holds them."""
        found, believed = self._rested.take(lease.site), None
        if found is None or not learned or found.kept != learned or not found.fits(self._terms):
            found, believed = UrgentSite.decode(lease.site, learned, self._terms) if learned else (None, None)
        if found is None:
            found = UrgentSite.begun(lease.site, records(), self._terms.rounded(), at=at)
            found.believed = believed
        self._sites[lease.site] = found
        self._leases[lease.site] = lease

    def leave(self, site: str) -> bytes | None:
        """A site is not active any more: what is to be kept of it, None where nothing is new."""
        found = self._sites.pop(site, None)
        self._leases.pop(site, None)
        if found is None:
            return None
        learned = found.encode() if found.news else None
        self._rested.put(site, found)
        return learned

    def recalled(self, price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of sites in memory that nobody asks for now and that are worth the price, where few others are.

        It has fallen since they were asked; sites that are not in memory come back in time (`next_at`).
        """
        room = round(RECALLED * self._capacity / CHECKS_PER_PERIOD) + 1 - self._demand
        if at < self._recalled_at or room <= 0:
            return {}
        self._recalled_at = at + self.check_s
        due: dict[str, list[bytes]] = {}
        known = chain(self._sites.items(), self._rested.items())
        called = [(name, site) for name, site in known if site.most >= price and not site.waits and site.is_known()]
        for name, site in sorted(called, key=lambda each: -each[1].most):
            pages, urgency = site.urgent(price, at)
            if len(pages):
                due[name] = site.send(pages[np.argsort(-urgency, kind="stable")[:room]], at)
                room -= len(due[name])
            if room <= 0:
                break
        return due

    def observe(self, visits: Sequence[Visit], *, at: float) -> list[tuple[SiteLease, bytes]]:
        """Pages were fetched; what is to be kept with their sites when they are settled.

        Of a large site that is now and then, for it costs what its pages cost; a crash then forgets few visits.
        """
        visited: dict[str, UrgentSite] = {}
        for visit in visits:
            site = self._sites.get(visit.fetch.site)
            if site is not None:
                site.observe(visit)
                visited[visit.fetch.site] = site
        for site in visited.values():
            if site.met:
                site.take_in()
        return [(self._leases[name], site.encode()) for name, site in visited.items() if site.news >= KEEP * len(site)]

    def _reckon(self, names: Iterable[str], price: float, at: float) -> None:
        """Of these sites those are reckoned of which a page may be worth the price; what was observed is learned."""
        pause = self._pause_s
        stale = [name for name in names if self._sites[name].is_stale(price, at, pause)]
        if not stale:
            return
        for group in self._by_terms([name for name in stale if self._sites[name].observed], at):
            self._remember(group, group.learn())
            group.reckon(price)
        for group in self._by_terms([name for name in stale if not self._sites[name].is_reckoned(at)], at):
            group.reckon(price)

    @property
    def _pause_s(self) -> float:
        return max(self.check_s, PAUSE * self._terms.step_s)

    def _remember(self, group: _Together, lasted_s: float) -> None:
        """What is believed of sites now goes into the forecast, in place of what was, and what their visits found."""
        forecast, standing = self._forecasting(group.at)
        forecast.visit(lasted_s)
        for site, new in zip(group.sites, group.believed(), strict=True):
            standing.replace(site.believed, new)
            site.believed = new

    def _by_terms(self, names: Iterable[str], at: float) -> list[_Together]:
        """Sites of like terms, as they stand now."""
        by_interval: dict[float, dict[str, UrgentSite]] = {}
        for name in names:
            site = self._sites[name]
            by_interval.setdefault(site.terms.interval, {})[name] = site
        return [_Together(sites, at) for sites in by_interval.values()]

    def _forecasting(self, at: float) -> tuple[CycleForecast, BelievedTotal]:
        if self._forecast is None or self._standing is None:
            self._forecast, self._standing = CycleForecast.begun(self._cycle_s, at=at), BelievedTotal(at)
        return self._forecast, self._standing

    def look(self, at: float, *, crawled: int, never_crawled: int) -> None:
        """Bring the forecast up to date: so many pages are known with and without a copy. Call it often in a period."""
        forecast, standing = self._forecasting(at)
        if standing.pages > COVERED * crawled:
            all_of = crawled / standing.pages
            forecast.look(
                at,
                obsolete=all_of * standing.obsolete(at),
                so_far=all_of * standing.so_far(at),
                missing=float(never_crawled),
                known=float(crawled + never_crawled),
            )

    def outlook(self) -> Outlook | None:
        """The obsolete share of the collection as last looked at; None while too little is known."""
        return None if self._forecast is None else self._forecast.now()

    def encode_forecast(self) -> bytes | None:
        """To be published and to go on from (`resume`); None before there is any."""
        if self._forecast is None or self._standing is None:
            return None
        return _SITE.encode(Published(self._forecast, self._standing))

    def resume(self, data: bytes | None) -> None:
        """Go on with the forecast that `encode_forecast` wrote; another version's, or another cycle's, is left."""
        kept = published(data)
        if kept is not None and kept.forecast.cycle_s == self._cycle_s:
            self._forecast, self._standing = kept.forecast, kept.standing

    def refuse(self, site: str, key: bytes) -> None:
        """A page may not be fetched."""
        if site in self._sites:
            self._sites[site].drop(key)

    def prepare(self, names: Iterable[str], changed: Iterable[str], price: float, *, at: float) -> None:
        """All that this batch will ask of sites at once, for a reckoning costs little more of many than of one.

        Pages of `names` may become due; on those of `changed` something was found.
        """
        pause = self._pause_s
        pressing = [name for name in changed if self._sites[name].should_learn(at, pause)]
        self._reckon(dict.fromkeys([*names, *pressing]), price, at)

    def due(self, rooms: Mapping[str, int], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of active sites that are worth the price, of each at most what it has room for, most urgent first."""
        self._reckon(rooms, price, at)
        due: dict[str, list[bytes]] = {}
        for name, room in rooms.items():
            site = self._sites[name]
            site.give_up(at)
            if not room or price > site.most:
                continue
            pages, urgency = site.urgent(price, at)
            if len(pages):
                due[name] = site.send(pages[np.argsort(-urgency, kind="stable")[:room]], at)
        return due

    def outranking(self, names: Sequence[str], price: float, *, at: float) -> dict[str, list[bytes]]:
        """Pages of active sites that should go before those that wait, for a release has come to light.

        Of each site the first is `OUTRANKS` times as urgent as the least urgent that waits, the second as the next, and
        so on. Where what came to light is not learned yet (`UrgentSite.should_learn`) there are none.
        """
        pause = self._pause_s
        self._reckon([name for name in names if self._sites[name].should_learn(at, pause)], price, at)
        due: dict[str, list[bytes]] = {}
        for name in names:
            site = self._sites[name]
            if not site.waits or not site.is_reckoned(at):
                continue
            pages, urgency = site.urgent(price, at)
            waiting = np.sort(site.worth_of_waiting())
            best = np.argsort(-urgency, kind="stable")[: min(RELEASE, len(waiting))]
            first = best[urgency[best] > OUTRANKS * waiting[: len(best)]]
            if len(first):
                due[name] = site.send(pages[first], at)
        return due

    def next_at(self, names: Sequence[str], price: float, at: float) -> dict[str, float]:
        """When sites should be asked again: a page may be worth the price, or it should be heard that it has fallen."""
        self._reckon(names, price, at)
        latest, found = at + self._sleep_s, dict[str, float]()
        for name in names:
            site = self._sites[name]
            due = site.due_at(price)
            if due is None:
                due = site.reaches_at(price, at)
            found[name] = max(min(latest, site.next_step_at(at) if due is None else due), at)
        return found


_SITE: Final = msgspec.msgpack.Encoder()
_STORED: Final = msgspec.msgpack.Decoder(_Stored)


def _step(at: float, terms: UrgencyTerms, phase: float) -> int:
    # The step that `at` is in counts as over: what is found now happened by now.
    return floor(at / terms.step_s + phase) + 1


def _phase(name: str) -> float:
    """By which part of a step the steps of a site begin sooner: else all would be more urgent at once."""
    return (crc32(name.encode()) & 1023) / 1024


def _weight(record: PageRecord, terms: UrgencyTerms) -> float:
    if not terms.weighed:
        return 1.0
    return record.importance or float(importance_by_depth([_path(record.url)])[0])


def _candidate_since(record: PageRecord, terms: UrgencyTerms) -> float:
    """`shortest` before a page may be due: its last fetch, later if its policy says so; inf while its tries fail."""
    if record.failures or record.last_crawled is None:
        return inf
    return record.last_crawled + max(0.0, terms.rests.get(record.policy, 0.0) - terms.shortest)


def _path(url: str) -> str:
    return urlsplit(url).path


def _evidence(record: PageRecord) -> tuple[float, float]:
    """Changes found by a page's last checks, and seconds in which none was overlooked: half of those that found one."""
    checks = decode(record.history)
    return sum(check.changed for check in checks), sum(check.interval / (1 + check.changed) for check in checks)
