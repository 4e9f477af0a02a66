"""Which known pages of all sites are most urgent now, so that the next fetches buy the most freshness.

Place in the walk (DESIGN 4): settled visits -> `core.site_urgency` of their site -> **here**, often in a period: the
most urgent pages of all sites, as many as the budget will fetch until the next choice -> lane ADVANCED of the store.
What was made due and is not fetched yet counts as spent, so that no more is promised than can be had; but where a site
cannot be asked fast enough what it still owes is others' to spend.

A site is ranked whole or not at all: with its first settled visit its pages come from the store with their histories,
so that a restart forgets little. Memory is bounded: a site for which there is no room is left to its buckets'
intervals, and so are sites of a few pages, which teach nothing of each other. The worker thread owns it; the loop is
handed `sites` with a batch's result.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.importance import importance_by_depth
from webfountain.core.signals import Signals
from webfountain.core.site_urgency import SiteUrgency
from webfountain.frontier.planning.schedule import CHOICES_PER_PERIOD, bounds_of
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy.files import Collection
    from webfountain.records import PageRecord

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["FEWEST", "Choice", "UrgentPages", "urgent_pages_of"]

FEWEST: Final = 4
"""Pages of a site that is worth ranking."""
MOST_PAGES: Final = 200_000
MOST_SITES: Final = 2_000
STEPS: Final = 36
"""Steps between two visits to a page, where visits are that frequent: what happens within a step is at once."""
FEWEST_CHOICES: Final = 2
"""Choices between two visits to a page, at least: with a budget that is larger there is no choice to make."""
SLOW: Final = 3
"""Times that long within which one of the pages that were made due should be fetched; else the site is slow."""
OUTRANKS: Final = 2.0
"""A page that is so many times as urgent as one that waits goes before it."""
_DAY_S: Final = 86_400.0
_STRANGE: Final = 1.5
"""Factor by which the interval between visits may move before the steps are cut anew."""


class Choice(NamedTuple):
    """Pages of a site to make due, and whether they go before what waits there already."""

    site: str
    keys: list[bytes]
    due: float
    before: bool


_Candidate = tuple[float, str, int]
"""Urgency, s; site; page."""


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
        shortest=bounds_of(collection).shortest,
        weighed=signals.importance,
    )


class UrgentPages:
    """All sites whose pages this process ranks."""

    def __init__(
        self,
        *,
        signals: Signals,
        period: float,
        capacity: float,
        shortest: float = 0.0,
        weighed: bool = False,
        pages: int = MOST_PAGES,
        sites: int = MOST_SITES,
    ) -> None:
        """`capacity` is fetches per `period` (s); no page is chosen within `shortest` seconds of its last fetch.

        `weighed`: urgency counts a page's importance, or where it has none its depth. `pages` and `sites` are bounds.
        """
        day = _DAY_S / period
        self._signals = replace(signals, day=day, weekdays=signals.weekdays and day >= 1.0)
        self._period = period
        self._capacity = capacity
        self._shortest = shortest
        self._weighed = weighed
        self._most_pages, self._most_sites = pages, sites
        self._pages = 0
        self._interval = 0.0  # between two visits to a page, s; 0 before the first choice
        self._sites: dict[str, _Site] = {}
        self._names: frozenset[str] = frozenset()

    def __contains__(self, site: str) -> bool:
        return site in self._sites

    @property
    def sites(self) -> frozenset[str]:
        """The sites whose pages are ranked; the same object as long as they are the same."""
        if self._names != self._sites.keys():
            self._names = frozenset(self._sites)
        return self._names

    def wants(self, site: str, pages: int) -> bool:
        """Whether a site of so many crawled pages should be admitted now."""
        if self._interval < FEWEST_CHOICES * self._period / CHOICES_PER_PERIOD or site in self._sites or pages < FEWEST:
            return False
        return len(self._sites) < self._most_sites and self._pages + pages <= self._most_pages

    def admit(self, site: str, records: Iterable[PageRecord], *, at: float) -> None:
        """Begin to rank the pages of a site, all its crawled pages as they stand in the store."""
        periods = self._interval / self._period
        steps = min(max(1.0, STEPS / periods), CHOICES_PER_PERIOD)  # in a period
        self._sites[site] = found = _Site(
            [record for record in records if record.request is None and record.last_crawled is not None],
            signals=self._signals.lasting(periods).spread(steps),
            step_s=self._period / steps,
            interval=self._interval,
            weighed=self._weighed,
            at=at,
        )
        self._pages += len(found)

    def observe(self, visits: Sequence[Visit]) -> None:
        """Pages were fetched and settled; those of sites that are not ranked are passed over."""
        for visit in visits:
            site = self._sites.get(visit.fetch.site)
            if site is not None:
                site.observe(visit)

    def refuse(self, site: str, key: bytes) -> None:
        """A page may not be fetched."""
        if site in self._sites:
            self._sites[site].drop(key)

    def choose(self, wanted: float, *, at: float, known: int, ahead_s: float) -> list[Choice]:
        """Pages to make due now.

        Parameters
        ----------
        wanted : pages that should wait to be fetched after this choice
        known : crawled pages of the store; those that are not ranked spend their share of the fetches
        ahead_s : time in which so many fetches will be made, s
        """
        self._interval = max(known, 1) / self._capacity * self._period
        self._settle_in()
        self._leave_strange()
        many = ceil(wanted * min(1.0, self._pages / max(known, 1)))
        # Few fetches a period take longer than from choice to choice: a site whose pages wait their turn is not slow.
        slow_s = SLOW * max(ahead_s, wanted / self._capacity * self._period)
        free: list[_Candidate] = []
        owed: list[_Candidate] = []
        for name, site in self._sites.items():
            if not site.is_slow(at, slow_s=slow_s):
                owed += [(urgency, name, page) for urgency, page in site.waiting(at)]
                free += [(urgency, name, page) for urgency, page in site.best(many, at=at, shortest=self._shortest)]
        best, owed = heapq.nlargest(many, free), heapq.nlargest(many, owed)
        room = many - len(owed)
        # A release that has just come to light does not wait until all is fetched that was urgent before it.
        outranked = zip(best[room:], reversed(owed), strict=False)
        before = [candidate for candidate, other in outranked if candidate[0] > OUTRANKS * other[0]]
        choices = self._chosen(before, due=at - self._interval, at=at, before=True)
        return choices + self._chosen(best[:room], due=at, at=at, before=False)

    def _chosen(self, candidates: Iterable[_Candidate], *, due: float, at: float, before: bool) -> list[Choice]:
        keys: dict[str, list[bytes]] = {}
        for _, name, page in candidates:
            keys.setdefault(name, []).append(self._sites[name].send(page, at))
        return [Choice(name, of_site, due, before) for name, of_site in keys.items()]

    def _settle_in(self) -> None:
        """Take in what was observed since the last choice; sites that outgrew their room are let go."""
        grown: list[str] = []
        for name, site in self._sites.items():
            before = len(site)
            site.settle_in()
            self._pages += len(site) - before
            if len(site) > before:
                grown.append(name)
        while self._pages > self._most_pages:
            self._leave(grown.pop())

    def _leave_strange(self) -> None:
        """Sites whose steps no longer fit the interval between visits come again with their next visit."""
        strange = [
            name
            for name, site in self._sites.items()
            if not 1 / _STRANGE < site.interval / self._interval < _STRANGE or len(site) < FEWEST
        ]
        for name in strange:
            self._leave(name)

    def _leave(self, name: str) -> None:
        self._pages -= len(self._sites.pop(name))


class _Site:
    """A ranked site: the keys of its pages, when each was fetched, and which were made due and still wait."""

    def __init__(
        self,
        records: Sequence[PageRecord],
        *,
        signals: Signals,
        step_s: float,
        interval: float,
        weighed: bool,
        at: float,
    ) -> None:
        self.interval = interval
        self._step_s = step_s
        self._weighed = weighed
        self._keys = [fingerprint(record.url) for record in records]
        self._number = {key: page for page, key in enumerate(self._keys)}
        self._fetched = np.array([_free_since(record) for record in records], dtype=np.float64)
        evidence = np.array([_evidence(record) for record in records]).reshape(-1, 2)
        self._urgencies = SiteUrgency.resumed(
            [_path(record.url) for record in records],
            since=np.array([self._step(record.last_crawled or 0.0) for record in records], dtype=np.int64),
            events=evidence[:, 0],
            watched=evidence[:, 1] / step_s,
            importance=np.array([self._weight(record) for record in records]),
            signals=signals,
            step=self._step(at),
        )
        self._waits: dict[int, float] = {}  # pages made due, and when, oldest first
        self._served = at  # when one of them was fetched last
        self._met: dict[bytes, PageRecord] = {}  # first copies since the last choice
        self._observed: list[tuple[int, int, bool]] = []  # page, step, changed

    def __len__(self) -> int:
        return len(self._number)

    def _step(self, at: float) -> int:
        # The step that `at` is in counts as over: what is found now happened by now.
        return int(at // self._step_s) + 1

    def _weight(self, record: PageRecord) -> float:
        if not self._weighed:
            return 1.0
        return record.importance or float(importance_by_depth([_path(record.url)])[0])

    def observe(self, visit: Visit) -> None:
        """A page was fetched. What it tells is taken in by the next choice, with all others."""
        key = fingerprint(visit.record.url)
        if visit.record.state != "crawled" or visit.kind == "failed":
            self.drop(key)
            return
        at, page = visit.fetched.at, self._number.get(key)
        if page is None:
            self._met[key] = visit.record
        elif self._fetched[page] != at:  # else the store told of it
            if self._waits.pop(page, None) is not None:
                self._served = at
            self._fetched[page] = at
            self._observed.append((page, self._step(at), visit.kind == "changed"))

    def _add_met(self) -> None:
        """Pages that were fetched for the first time."""
        records = [record for key, record in self._met.items() if key not in self._number]
        pages = self._urgencies.add(
            [_path(record.url) for record in records],
            since=np.array([self._step(record.last_crawled or 0.0) for record in records], dtype=np.int64),
            importance=np.array([self._weight(record) for record in records]),
        )
        keys = [fingerprint(record.url) for record in records]
        self._keys += keys
        self._number.update(zip(keys, pages.tolist(), strict=True))
        fetched = [_free_since(record) for record in records]
        self._fetched = np.concatenate([self._fetched, np.array(fetched, dtype=np.float64)])
        self._met.clear()

    def drop(self, key: bytes) -> None:
        """A page is no candidate until it is fetched well again."""
        self._met.pop(key, None)
        page = self._number.get(key)
        if page is not None:
            self._fetched[page] = np.inf
            self._waits.pop(page, None)

    def settle_in(self) -> None:
        """Learn from all that was observed since the last choice, step by step."""
        if self._met:
            self._add_met()
        for step in sorted({step for _, step, _ in self._observed}):
            pages: dict[int, bool] = {}  # each once: a change found is not undone by a second fetch
            for page, at, changed in self._observed:
                if at == step:
                    pages[page] = changed or pages.get(page, False)
            self._urgencies.observe(np.array(list(pages), dtype=np.int64), np.array(list(pages.values())), step=step)
        self._observed.clear()

    def is_slow(self, at: float, *, slow_s: float) -> bool:
        """Whether pages wait and none of them was fetched for long: what the site owes is for others to spend."""
        for page, since in list(self._waits.items()):
            if since < at - self.interval:  # it is not there; or was outranked for long, and is still due
                self.drop(self._keys[page])
        begun = next(iter(self._waits.values()), at)
        return max(begun, self._served) < at - slow_s

    def waiting(self, at: float) -> list[tuple[float, int]]:
        """Urgency, s, and page of those that were made due and not fetched yet."""
        pages = np.array(list(self._waits), dtype=np.int64)
        return list(zip(self._urgency(pages, at), pages.tolist(), strict=True))

    def best(self, many: int, *, at: float, shortest: float) -> list[tuple[float, int]]:
        """Urgency, s, and page of the most urgent, at most `many`."""
        free = self._fetched <= at - shortest
        free[list(self._waits)] = False
        pages = np.flatnonzero(free)
        urgency = np.array(self._urgency(pages, at))
        if many < len(pages):
            chosen = np.argpartition(urgency, len(pages) - many)[len(pages) - many :]
            pages, urgency = pages[chosen], urgency[chosen]
        return list(zip(urgency.tolist(), pages.tolist(), strict=True))

    def _urgency(self, pages: Ints, at: float) -> list[float]:
        urgency: list[float] = (self._urgencies.urgency(pages, step=self._step(at)) * self._step_s).tolist()
        return urgency

    def send(self, page: int, at: float) -> bytes:
        """A page is made due; its key."""
        self._waits[page] = at
        return self._keys[page]


def _free_since(record: PageRecord) -> float:
    """Since when a page is a candidate: not while its tries fail."""
    return np.inf if record.failures or record.last_crawled is None else record.last_crawled


def _path(url: str) -> str:
    return urlsplit(url).path


def _evidence(record: PageRecord) -> tuple[float, float]:
    """Changes found by a page's last checks, and seconds in which none was overlooked: half of those that found one."""
    checks = decode(record.history)
    return sum(check.changed for check in checks), sum(check.interval / (1 + check.changed) for check in checks)
