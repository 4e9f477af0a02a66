"""One active site's urgent pages: what each is worth, which of them wait, what is kept with the site meanwhile.

A site is begun from its records, or decoded from what was kept with it. It is told of visits, reckoned with others of
like terms (`frontier.planning.urgent_pages`), and answers which of its pages are worth a price and before when no
other is. Times are UTC seconds, urgencies and prices seconds of obsolete time.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from math import floor, inf, log
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.forecast import Believed  # noqa: TC001  (msgspec reads it)
from webfountain.core.rank import importance_by_depth
from webfountain.core.site_urgency import SiteUrgency
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from webfountain.core.activity import Signals
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.records import PageRecord

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["EARLY", "RUNGS", "STRANGE", "UrgencyTerms", "UrgentSite"]

EARLY: Final = 0.8
"""A site comes back when a page reaches this share of the price, once: the price may have fallen meanwhile."""
RUNGS: Final = (1.0, EARLY, 0.5, 0.3, 0.15, 0.05)
"""Of the price at which a site is reckoned: for each it is kept when a page may be worth that."""
STRANGE: Final = 1.5
"""Factor by which the interval between visits may move before the steps are cut anew."""
STEPS: Final = 36
"""Steps between two visits to a page, where visits are that frequent."""
_KEY_BYTES: Final = len(fingerprint("http://a.example/"))
_SEARCHED: Final = 4000
"""Bytes of keys that are searched for one; of more those that are in order are looked up."""


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
        return _beliefs(self.signals, self.interval / self.period, self._steps)

    @property
    def _steps(self) -> float:
        return min(max(1.0, STEPS * self.period / self.interval), CHECKS_PER_PERIOD)

    def rounded(self) -> UrgencyTerms:
        """With an interval that many sites share, so that they can be reckoned together."""
        return self._replace(interval=STRANGE ** round(log(self.interval) / log(STRANGE)))


@lru_cache(64)
def _beliefs(signals: Signals, interval: float, steps: float) -> Signals:
    return signals.lasting(interval).spread(steps)


class UrgentSite:
    """One active site. Pages are numbered as they come; `begun` or `decode` makes one."""

    __slots__ = (
        "_encoded",
        "_has_grown",
        "_keys",
        "_numbered",
        "_numbers",
        "_phase",
        "_step_s",
        "_worth_step",
        "asked",
        "believed",
        "best",
        "candidate_since",
        "kept",
        "learned_at",
        "met",
        "most",
        "news",
        "observed",
        "reaches",
        "rests_until",
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
        kept: bytes = b"",
        stored: _Stored | None = None,
        believed: Believed | None = None,
    ) -> None:
        """`kept` and `stored` are what `encode` wrote, as bytes and read; `believed`: what the forecast holds of it."""
        self.urgencies = urgencies
        self.terms = terms
        self._step_s = terms.step_s
        self._phase = _phase(name)
        self._encoded = None if stored is None else stored.urgencies  # `urgencies`, while nothing is learned
        self.worth = np.zeros(0)
        """(pages,) urgency of each, s, as reckoned last."""
        self.best, self.most = inf, inf
        """What the most urgent page is worth at most, s, as reckoned last; and the most urgent that does not wait."""
        self._worth_step = -1
        self.asked = 0.0
        """The price asked for when it was reckoned last, s."""
        self.reaches: Sequence[float] = ()
        """UTC s before which no other page is worth each of `RUNGS` of that."""
        self.rests_until = -inf
        """UTC s before which it is not reckoned again, unless a change was found and pages of it wait."""
        self._has_grown = False  # pages came that were not reckoned yet; nothing is to be saved on them for now
        self._keys = keys
        self._numbers = np.zeros(0, dtype=np.int32)  # of the first pages of a large site, in the order of their keys
        self._numbered = np.zeros(0, dtype=np.uint64)  # these keys
        self.candidate_since = fetched
        """(pages,) UTC s; inf of a page that is no candidate: its tries fail, it is gone or refused."""
        self.waits: dict[int, float] = {}
        """Pages made due and not fetched yet, and when, oldest first."""
        self.met: dict[bytes, PageRecord] = {}
        """First copies since pages were added last."""
        self.observed: dict[int, tuple[int, bool]] = {}
        """Step and whether it was changed, of pages that were fetched: to be learned from."""
        self.kept = kept
        """What was encoded last."""
        self.learned_at = -inf
        """When it was learned from last."""
        self.news = 0
        """Visits and refusals since it was encoded last."""
        self.believed = believed
        """What the collection's forecast holds of it."""
        if stored is not None:
            self.believed, self.observed = stored.believed, stored.observed
            self.best = self.most = stored.most
            self.asked, self.reaches, self.rests_until = stored.asked, stored.reaches, stored.rests_until

    @classmethod
    def begun(
        cls,
        name: str,
        records: Iterable[PageRecord],
        terms: UrgencyTerms,
        *,
        at: float,
        believed: Believed | None = None,
    ) -> UrgentSite:
        """From the crawled pages of a site as they stand in the store, with their histories."""
        phase = _phase(name)
        directories: dict[str, str] = {}
        paths: list[str] = []
        keys, facts = bytearray(), array("d")
        for record in records:  # one after the other: a large site's records do not fit into memory
            if record.request is None and record.last_crawled is not None:
                directory = _path(record.url).rpartition("/")[0] + "/"
                paths.append(directories.setdefault(directory, directory))
                keys += fingerprint(record.url)
                facts.extend((
                    _step(record.last_crawled, terms, phase), *_evidence(record), _weight(record, terms),
                    _candidate_since(record, terms),
                ))  # fmt: skip
        since, events, watched, importance, fetched = np.array(facts).reshape(-1, 5).T.copy()
        urgencies = SiteUrgency.resumed(
            paths,
            since=since.astype(np.int64),
            events=events,
            watched=watched / terms.step_s,
            importance=importance,
            signals=terms.beliefs,
            step=_step(at, terms, phase),
        )
        return cls(name, urgencies, bytes(keys), fetched, terms, believed=believed)

    def __len__(self) -> int:
        return len(self.candidate_since)

    def key(self, page: int) -> bytes:
        """The key of a page."""
        return self._keys[page * _KEY_BYTES : (page + 1) * _KEY_BYTES]

    def number(self, key: bytes) -> int | None:
        """The number of a page; None when it is not known here."""
        if len(self._keys) - self._numbered.nbytes > _SEARCHED:
            keys = np.frombuffer(self._keys, dtype=np.uint64)
            self._numbers = np.argsort(keys).astype(np.int32)
            self._numbered = keys[self._numbers]
        if len(self._numbered):
            number = int(np.searchsorted(self._numbered, np.frombuffer(key, dtype=np.uint64)[0]))
            if number < len(self._numbered) and self.key(int(self._numbers[number])) == key:
                return int(self._numbers[number])
        place = self._keys.find(key, self._numbered.nbytes)
        while place % _KEY_BYTES and place >= 0:
            place = self._keys.find(key, place + 1)
        return place // _KEY_BYTES if place >= 0 else None

    def follow(self, terms: UrgencyTerms) -> bool:
        """Go on under other terms; False where its steps do not fit the interval between visits: it begins anew.

        Where visits are as rare as `STEPS` periods a step is a period whatever the interval, and only beliefs change:
        what was learned of a site of many pages is not to be had again in less than years.
        """
        if 1 / STRANGE < self.terms.interval / terms.interval < STRANGE:
            return True
        terms = terms.rounded()
        if terms.step_s != self._step_s:
            return False
        self.terms = terms
        self.urgencies.believe(terms.beliefs)
        self._worth_step, self.reaches = -1, ()
        self.news += 1
        return True

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
        elif self.candidate_since[page] != since:  # else its record was read with this visit in it
            self.waits.pop(page, None)
            self._came_back(page, since)
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
            self._came_back(page, inf)

    def _came_back(self, page: int, at: float) -> None:
        if not self.candidate_since.flags.writeable:  # it is the stored bytes
            self.candidate_since = self.candidate_since.copy()
        self.candidate_since[page] = at
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
        self._encoded = None
        if self.is_known():
            self.worth, self._has_grown = np.concatenate([self.worth, np.zeros(len(records))]), True
        else:
            self.reaches = ()
        self._keys += b"".join(fingerprint(record.url) for record in records)
        fetched = [_candidate_since(record, self.terms) for record in records]
        self.candidate_since = np.concatenate([self.candidate_since, np.array(fetched, dtype=np.float64)])

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
        return not (self.observed or self._has_grown) and self._worth_step == self.step(at) and self.is_known()

    def is_known(self) -> bool:
        """Whether it was reckoned with all its pages, if not now."""
        return len(self.worth) == len(self)

    def is_stale(self, price: float, at: float, pause: float) -> bool:
        """Whether it must be reckoned to tell which pages are worth the price."""
        if not self.reaches or (price <= self.most and not self.is_known()):
            return True
        if at < self.rests_until:
            return bool(self.observed) and self.should_learn(at, pause)
        if self.observed or self._has_grown:
            return not self.waits or self._worth_step != self.step(at) or self.should_learn(at, pause)
        if price <= self.most:
            return self._worth_step != self.step(at)
        reach = self.reaches_at(price, at)
        return (reach is None or reach <= at) and self._worth_step != self.step(at)

    def reckoned(self, worth: Array, at: float, price: float, reaches: Sequence[float], *, rests_until: float) -> None:
        """How urgent all its pages are, s; and when others than those of this price reach `RUNGS` of it."""
        self.rests_until, self._has_grown = rests_until, False
        self.worth, self._worth_step, self.best = worth, self.step(at), float(worth.max(initial=0.0))
        self.asked, self.reaches = price, reaches
        self._find_most()

    def _find_most(self) -> None:
        """After some pages began to wait, or no longer do."""
        if self.is_known():
            self.most = self.best
            if self.waits:
                self.most = float(self.worth_of_free().max(initial=0.0))

    def believe(self, new: Believed) -> Believed | None:
        """What the collection's forecast holds of it from now on; what it held before."""
        before, self.believed = self.believed, new
        return before

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
            pages = pages[self.candidate_since[pages] <= at - self.terms.shortest]
            if self.waits:
                pages = pages[~np.isin(pages, np.fromiter(self.waits, dtype=np.int64))]
        return pages, self.worth[pages]

    def demand(self, price: float, at: float) -> int:
        """How many pages are worth the price or wait."""
        if price > self.most:
            return len(self.waits)
        worth = self.worth >= price
        worth[np.fromiter(self.waits, dtype=np.int64)] = True
        if self.terms.shortest:
            worth &= self.candidate_since <= at - self.terms.shortest
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
        since = float(self.candidate_since[pages].min()) if len(pages) else inf
        return None if since == inf else since + self.terms.shortest

    def asks_at(self, price: float, at: float) -> float:
        """When it should be asked again, for a page may be worth the price, or others than was thought."""
        due = self.due_at(price)
        if due is not None:
            return due
        rests = at < self.rests_until
        due = self.reaches_at(price, -inf if rests else at)  # what passed while it rests is not over
        if due is None:
            due = self.begin_of(self._worth_step + 1) if rests else self.next_step_at(at)
        if self._has_grown or any(new for _, new in self.observed.values()):
            due = min(due, self.rests_until)
        return max(due, self.rests_until)

    def may_be_worth(self, price: float, at: float) -> bool:
        """Whether a page may be worth the price by now, or was when it was reckoned, and none is asked for.

        Of a site that is in memory.
        """
        if self.waits or not self.is_known():
            return False
        if price <= self.most:
            return True
        reach = self.reaches_at(price, at)
        return reach is not None and reach <= at and self.rests_until <= at

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
                *(self.terms.interval, self.believed, self._keys, self.candidate_since.tobytes(), self._encoded),
                *(self.observed, self.most, self.asked, self.reaches, self.rests_until),
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
        fetched = np.frombuffer(stored.candidate_since, dtype=np.float64)
        site = cls(name, known, stored.keys, fetched, own, kept=data, stored=stored)
        is_whole = site.follow(terms) and len(stored.keys) == _KEY_BYTES * len(site) == _KEY_BYTES * len(known)
        return site if is_whole else None, believed


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """What is kept with a site."""

    interval: float
    believed: Believed | None
    keys: bytes
    candidate_since: bytes
    urgencies: bytes
    observed: dict[int, tuple[int, bool]]
    most: float
    asked: float
    reaches: list[float]
    rests_until: float = -inf


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
