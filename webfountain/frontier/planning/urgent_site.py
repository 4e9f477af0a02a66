"""One active site: which of its pages are worth a fetch now, at a price, and when the next one will be.

Place in the walk (DESIGN 4): settled visits -> `core.site_urgency` -> **here** -> lane ADVANCED of the site's recrawl
queue. It begins with the histories of the site's pages, learns from each settled visit, and goes to rest as bytes that
are kept with the site. Times are UTC seconds, urgencies and prices seconds of obsolete time. Used in the worker thread.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.importance import importance_by_depth
from webfountain.core.site_urgency import SiteUrgency
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from webfountain.core.signals import Signals
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.records import PageRecord

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["Terms", "UrgentSite"]

OUTRANKS: Final = 2.0
"""A page that is so many times as urgent as one that waits goes before it."""
STRANGE: Final = 1.5
"""Factor by which the interval between visits may move before the steps are cut anew."""
STEPS: Final = 36
"""Steps between two visits to a page, where visits are that frequent."""
_KEY_BYTES: Final = len(fingerprint("http://a.example/"))


class Terms(NamedTuple):
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


class UrgentSite:
    """Pages are numbered as they come; `begun` or `decode` makes one."""

    def __init__(self, urgencies: SiteUrgency, keys: list[bytes], fetched: Array, terms: Terms) -> None:
        self._urgencies = urgencies
        self._terms, self._step_s = terms, terms.step_s
        self._keys = keys
        self._number = {key: page for page, key in enumerate(keys)}
        self._fetched = fetched  # UTC s; inf of a page that is no candidate: its tries fail, it is gone or refused
        self._waits: dict[int, float] = {}  # pages made due and not fetched yet, and when, oldest first
        self._met: dict[bytes, PageRecord] = {}  # first copies since pages were added last
        self._observed: list[tuple[int, int, bool]] = []  # page, step, changed: to be learned from
        self.news = 0
        """Visits and refusals since it was encoded last."""

    @classmethod
    def begun(cls, records: Iterable[PageRecord], terms: Terms, *, at: float) -> UrgentSite:
        """From the crawled pages of a site as they stand in the store, with their histories."""
        pages = [record for record in records if record.request is None and record.last_crawled is not None]
        evidence = np.array([_evidence(record) for record in pages]).reshape(-1, 2)
        urgencies = SiteUrgency.resumed(
            [_path(record.url) for record in pages],
            since=np.array([_step(record.last_crawled or 0.0, terms.step_s) for record in pages], dtype=np.int64),
            events=evidence[:, 0],
            watched=evidence[:, 1] / terms.step_s,
            importance=np.array([_weight(record, terms) for record in pages]),
            signals=terms.beliefs,
            step=_step(at, terms.step_s),
        )
        fetched = np.array([_candidate_since(record) for record in pages], dtype=np.float64)
        return cls(urgencies, [fingerprint(record.url) for record in pages], fetched, terms)

    def __len__(self) -> int:
        return len(self._keys)

    def demand(self, at: float, price: float) -> int:
        """How many pages are worth the price now, those that wait already among them."""
        pages = np.flatnonzero(self._fetched <= at - self._terms.shortest)
        urgency = self._urgencies.urgency(pages, step=self._step(at))
        return int(np.count_nonzero(urgency >= price / self._step_s))

    def _step(self, at: float) -> int:
        return _step(at, self._step_s)

    def fits(self, terms: Terms) -> bool:
        """Whether its steps still fit the interval between visits; else it should begin anew."""
        return 1 / STRANGE < self._terms.interval / terms.interval < STRANGE

    def observe(self, visit: Visit) -> None:
        """A page was fetched and settled."""
        self.news += 1
        key = fingerprint(visit.record.url)
        if visit.record.state != "crawled" or visit.kind == "failed":
            self.drop(key)
            return
        at, page = visit.fetched.at, self._number.get(key)
        if page is None:
            self._met[key] = visit.record
        elif self._fetched[page] != at:  # else its record was read with this visit in it
            self._waits.pop(page, None)
            self._fetched[page] = at
            self._observed.append((page, self._step(at), visit.kind == "changed"))

    def drop(self, key: bytes) -> None:
        """A page is no candidate until it is fetched well again."""
        self.news += 1
        self._met.pop(key, None)
        page = self._number.get(key)
        if page is not None:
            self._fetched[page] = inf
            self._waits.pop(page, None)

    def due(self, at: float, price: float, *, most: int) -> list[bytes]:
        """At most `most` pages that are worth the price, the most urgent first; they count as waiting from now on."""
        pages, _ = self._worth(at, price, most=most)
        return self._send(pages, at)

    def outranking(self, at: float, price: float, *, most: int) -> list[bytes]:
        """Pages that should go before those of this site that wait: a release that has just come to light.

        The first is `OUTRANKS` times as urgent as the least urgent that waits, the second as the next, and so on.
        """
        waiting = np.array(list(self._waits), dtype=np.int64)
        pages, urgency = self._worth(at, price, most=min(most, len(waiting)))
        others = np.sort(self._urgencies.urgency(waiting, step=self._step(at)))[: len(pages)]
        return self._send(pages[urgency > OUTRANKS * others], at)

    def _worth(self, at: float, price: float, *, most: int) -> tuple[Ints, Array]:
        """Pages that are worth the price and do not wait yet, the most urgent first, and their urgencies, steps."""
        self._learn(at)
        free = self._free(self._fetched <= at - self._terms.shortest)
        return self._urgencies.due(free, price / self._step_s, step=self._step(at), most=most)

    def _send(self, pages: Ints, at: float) -> list[bytes]:
        self._waits.update(dict.fromkeys(pages.tolist(), at))
        return [self._keys[page] for page in pages.tolist()]

    def next_at(self, at: float, price: float) -> float:
        """When the next page will be worth the price if nothing is found meanwhile; inf: none will."""
        self._learn(at)
        pages = self._free(np.isfinite(self._fetched))
        steps = self._urgencies.steps_until(pages, price / self._step_s, step=self._step(at))
        soonest = float(self._fetched[pages].min(initial=inf)) + self._terms.shortest
        return max(at + steps * self._step_s, soonest)

    def _free(self, may_be_fetched: npt.NDArray[np.bool_]) -> Ints:
        """Those pages that do not wait already."""
        may_be_fetched[list(self._waits)] = False
        return np.flatnonzero(may_be_fetched)

    def _learn(self, at: float) -> None:
        """Take in what was observed, step by step. A page that waited for a whole interval is not to be had."""
        for page, since in list(self._waits.items()):
            if since >= at - self._terms.interval:
                break
            self.drop(self._keys[page])
        if self._met:
            self._add_met()
        for step in sorted({step for _, step, _ in self._observed}):
            pages: dict[int, bool] = {}  # each once: a change found is not undone by a second fetch
            for page, of, changed in self._observed:
                if of == step:
                    pages[page] = changed or pages.get(page, False)
            self._urgencies.observe(np.array(list(pages), dtype=np.int64), np.array(list(pages.values())), step=step)
        self._observed.clear()

    def _add_met(self) -> None:
        """Pages that were fetched for the first time."""
        records = [record for key, record in self._met.items() if key not in self._number]
        pages = self._urgencies.add(
            [_path(record.url) for record in records],
            since=np.array([self._step(record.last_crawled or 0.0) for record in records], dtype=np.int64),
            importance=np.array([_weight(record, self._terms) for record in records]),
        )
        keys = [fingerprint(record.url) for record in records]
        self._keys += keys
        self._number.update(zip(keys, pages.tolist(), strict=True))
        fetched = [_candidate_since(record) for record in records]
        self._fetched = np.concatenate([self._fetched, np.array(fetched, dtype=np.float64)])
        self._met.clear()

    def encode(self, at: float) -> bytes:
        """To go on from later (`decode`): about 40 bytes a page. What waits is asked for again then."""
        self._learn(at)
        self.news = 0
        own = [self._terms.interval, b"".join(self._keys), self._fetched.tobytes(), self._urgencies.encode()]
        return msgspec.msgpack.encode(own)

    @classmethod
    def decode(cls, data: bytes, terms: Terms) -> UrgentSite | None:
        """The site that `encode` wrote; None where it was cut for another interval, or cannot be read."""
        try:
            interval, keys, fetched, urgencies = msgspec.msgpack.decode(data)
            own = terms._replace(interval=interval)
            known = SiteUrgency.decode(urgencies, signals=own.beliefs)
        except (ValueError, TypeError):
            return None
        numbers = range(0, len(keys), _KEY_BYTES)
        times = np.frombuffer(fetched, dtype=np.float64).copy()
        site = cls(known, [keys[begin : begin + _KEY_BYTES] for begin in numbers], times, own)
        return site if site.fits(terms) and len(site) == len(known) == len(times) else None


def _step(at: float, step_s: float) -> int:
    # The step that `at` is in counts as over: what is found now happened by now.
    return int(at // step_s) + 1


def _weight(record: PageRecord, terms: Terms) -> float:
    if not terms.weighed:
        return 1.0
    return record.importance or float(importance_by_depth([_path(record.url)])[0])


def _candidate_since(record: PageRecord) -> float:
    """Since when a page is a candidate: not while its tries fail."""
    return inf if record.failures or record.last_crawled is None else record.last_crawled


def _path(url: str) -> str:
    return urlsplit(url).path


def _evidence(record: PageRecord) -> tuple[float, float]:
    """Changes found by a page's last checks, and seconds in which none was overlooked: half of those that found one."""
    checks = decode(record.history)
    return sum(check.changed for check in checks), sum(check.interval / (1 + check.changed) for check in checks)
