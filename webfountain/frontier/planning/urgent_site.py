"""One active site's urgent pages: what each is worth, which of them wait, what is kept with the site meanwhile.

A site is begun from its records, or decoded from what was kept with it. It is told of visits, reckoned with others of
like terms (`frontier.planning.urgent_pages`), and answers which of its pages are worth a price and before when no
other is. Times are UTC seconds, urgencies and prices seconds of obsolete time.

A site of more than `WINDOW` pages is held in *windows* by ranges of their keys (`Windows`), of which one is at hand:
that one's pages are in memory, of the others but what came of their pages since. Each is kept alone, and has a turn as
long as the others' once in the time in which a page becomes noticeably more urgent (`cycle_s`). Keys are
spread evenly, so that each window is a sample of the site: with equal turns one price divides the budget among them as
it would among all pages. What is known of sections, and what a release among siblings tells, is the whole site's: it
goes on from window to window. A page's own evidence is its window's; a release that one window found is heard of by
the pages of another at their next turn.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import chain
from math import ceil, floor, inf, log, log2
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
import numpy as np

from webfountain.core.change_rate import decode
from webfountain.core.forecast import Believed  # noqa: TC001  (msgspec reads it)
from webfountain.core.rank import importance_by_depth
from webfountain.core.site_urgency import Past, SiteUrgency
from webfountain.errors import StoreError
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.records import PageRecord
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from webfountain.core.activity import Signals
    from webfountain.frontier.pages.examiner import Visit

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["EARLY", "RUNGS", "STRANGE", "WINDOW", "UrgencyTerms", "UrgentSite", "Windows"]

EARLY: Final = 0.8
"""A site comes back when a page reaches this share of the price, once: the price may have fallen meanwhile."""
RUNGS: Final = (1.0, EARLY, 0.5, 0.3, 0.15, 0.05)
"""Of the price at which a site is reckoned: for each it is kept when a page may be worth that."""
STRANGE: Final = 1.5
"""Factor by which the interval between visits may move before the steps are cut anew."""
STEPS: Final = 36
"""Steps between two visits to a page, where visits are that frequent."""
WINDOW: Final = 50_000
"""Pages of a site that are in memory and reckoned at once, at most: some 15 MB with what is needed in between. The
smaller, the more often all else is read for few fetches: a window gives about a thirty-sixth of its pages in a turn."""
FULL: Final = 0.8
"""Share of that with which windows begin: a site grows."""
LEAD: Final = 0.25
"""Share of a cycle by which windows that have nothing more go on before it is time: how much each has differs by
chance, and where the price had to follow that from turn to turn up to 5 of 100 fetches were left unmade. A half gained
nothing more."""
AWAY: Final = 20_000
"""Visits to pages of windows that are not at hand, at most, before the window with most of them has its turn."""
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
        "name",
        "news",
        "observed",
        "reaches",
        "rests_until",
        "terms",
        "urgencies",
        "waits",
        "windows",
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
        observed: Mapping[int, tuple[int, bool]] | None = None,
    ) -> None:
        """`kept` and `stored` are what `encode` wrote, as bytes and read; `believed`: what the forecast holds of it."""
        self.urgencies = urgencies
        self.terms = terms
        self._step_s = terms.step_s
        self.name = name
        self._phase = _phase(name)
        self.windows: Windows | None = None
        """Of a very large site: these pages are those of the window at hand."""
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
        self.observed: dict[int, tuple[int, bool]] = dict(observed or {})
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
        put: Callable[[int, bytes], object] | None = None,
    ) -> UrgentSite:
        """From the crawled pages of a site as they stand in the store, with their histories.

        Of more than `WINDOW` it has windows, which `put` keeps.

        Raises
        ------
        StoreError
            when the folder for temporary files has no room for 56 bytes a page of these.
        """
        some = _pasts(name, records, terms, inf if put is None else WINDOW)
        first, second = next(some), next(some, None)
        if put is not None and second is not None and second.keys:
            pasts = chain([first, second], some)
            try:
                return cls._begun_in_windows(name, pasts, terms, at=at, believed=believed, put=put)
            except OSError as error:
                raise StoreError(f"{name}: its windows need room in {gettempdir()}: {error}") from error
        urgencies = SiteUrgency.resumed(
            first.paths,
            since=first.since,
            events=first.events,
            watched=first.watched,
            importance=first.importance,
            signals=terms.beliefs,
            step=_step(at, terms, _phase(name)),
        )
        return cls(name, urgencies, first.keys, first.fetched, terms, believed=believed)

    @classmethod
    def _begun_in_windows(
        cls,
        name: str,
        some: Iterable[_Past],
        terms: UrgencyTerms,
        *,
        at: float,
        believed: Believed | None,
        put: Callable[[int, bytes], object],
    ) -> UrgentSite:
        """All pages are read once, whatever their order: until each window can be begun they lie in a scratch file."""
        past, pages = Past(signals=terms.beliefs), 0
        begins: list[Ints] = []
        with TemporaryFile(prefix="webfountain-") as scratch:
            for each in some:
                rows = np.zeros(len(each.since), dtype=_ROW)
                rows["key"] = np.frombuffer(each.keys, dtype=">u8")
                rows["section"] = past.add(each.paths, since=each.since, events=each.events, watched=each.watched)
                for column in ("since", "events", "watched", "importance", "fetched"):
                    rows[column] = getattr(each, column)
                rows = rows[np.argsort(rows["key"])]
                scratch.write(rows.tobytes())
                classes = np.arange(1, 1 << _CLASSES, dtype=np.uint64) << np.uint64(64 - _CLASSES)
                begins.append(pages + np.concatenate([[0], np.searchsorted(rows["key"], classes), [len(rows)]]))
                pages += len(rows)
            depth = min(max(1, ceil(log2(pages / (FULL * WINDOW)))), _CLASSES)
            windows = Windows.begun(depth, terms, at)
            for number in [*windows.others[::-1], windows.hand]:  # what is made last stays
                low = (number - (1 << depth)) << (_CLASSES - depth)
                high = low + (1 << (_CLASSES - depth))
                found = []
                for begin in begins:
                    scratch.seek(int(begin[low]) * _ROW.itemsize)
                    found.append(scratch.read(int(begin[high] - begin[low]) * _ROW.itemsize))
                rows = np.frombuffer(b"".join(found), dtype=_ROW)
                urgencies = past.site(
                    rows["section"],
                    since=rows["since"].copy(),
                    events=rows["events"],
                    watched=rows["watched"],
                    importance=rows["importance"],
                    step=_step(at, terms, _phase(name)),
                )
                is_hand = number == windows.hand
                site = cls(
                    name,
                    urgencies,
                    rows["key"].tobytes(),
                    rows["fetched"].copy(),
                    terms,
                    believed=believed if is_hand else None,
                )
                put(number, site.encode())
        site.join(windows, None)
        return site

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
        self.receive(fingerprint(visit.record.url), visit.record, visit.kind, visit.fetched.at)

    def receive(self, key: bytes, record: PageRecord | None, kind: str, at: float) -> None:
        """What came of a page, at once or since its window was at hand; without a record it is no candidate."""
        self.news += 1
        if record is None or record.state != "crawled" or kind == "failed":
            self.drop(key)
            return
        if self.windows is not None and self.windows.put_off(key, record, kind, at):
            return
        page, since = self.number(key), _candidate_since(record, self.terms)
        if page is None:
            self.met[key] = record
        elif self.candidate_since[page] != since:  # else its record was read with this visit in it
            self.waits.pop(page, None)
            self._came_back(page, since)
            # A change found is not undone by a second fetch.
            _, changed = self.observed.get(page, (0, False))
            self.observed[page] = self.step(at), changed or kind == "changed"

    def drop(self, key: bytes) -> None:
        """A page is no candidate until it is fetched well again."""
        self.news += 1
        if self.windows is not None and self.windows.put_off(key, None, "failed", 0.0):
            return
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
            return self.waiting
        worth = self.worth >= price
        worth[np.fromiter(self.waits, dtype=np.int64)] = True
        if self.terms.shortest:
            worth &= self.candidate_since <= at - self.terms.shortest
        return int(np.count_nonzero(worth)) + self.waiting - len(self.waits)

    @property
    def waiting(self) -> int:
        """How many pages wait."""
        return len(self.waits) if self.windows is None else len(self.waits) + len(self.windows.waits)

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
            return due if self.windows is None else min(due, self.windows.early_at(self.terms))
        rests = at < self.rests_until
        due = self.reaches_at(price, -inf if rests else at)  # what passed while it rests is not over
        if due is None:
            due = self.begin_of(self._worth_step + 1) if rests else self.next_step_at(at)
        if self._has_grown or any(new for _, new in self.observed.values()):
            due = min(due, self.rests_until)
        due = max(due, self.rests_until)
        return due if self.windows is None else min(due, self.windows.early_at(self.terms))

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
        if self.windows is not None:
            self.windows.waits.clear()
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

    # --------------------------------------------------------------- windows

    def keep(self) -> tuple[bytes, list[tuple[int, bytes]]]:
        """What is to be kept with the site to go on from, and in the same step its windows by their numbers."""
        if self.windows is None:
            return self.encode(), []
        part = self.encode()
        self.windows.is_kept()
        return self.head(), [(self.windows.hand, part)]

    def head(self) -> bytes:
        """What is to be kept with the site beside its windows."""
        assert self.windows is not None
        self.kept = self.windows.encode(self.believed)
        return self.kept

    def beliefs(self) -> list[Believed]:
        """What the collection's forecast holds of it, of each of its windows if it has some."""
        if self.windows is None:
            return [] if self.believed is None else [self.believed]
        return self.windows.beliefs(self.believed)

    def may_turn(self, price: float, at: float, pause: float) -> bool:
        """Whether another window should have its turn: it is time, this one has nothing more, or too much is away."""
        windows = self.windows
        if windows is None or len(self) > WINDOW:
            return len(self) > WINDOW
        if at >= max(windows.turn_at, windows.taken_at + windows.turn_s(self.terms)) or windows.is_full():
            return True
        return at >= windows.early_at(self.terms) and price > self.most and not self.is_stale(price, at, pause)

    def turn(
        self, terms: UrgencyTerms, part_of: Callable[[int], bytes | None], at: float
    ) -> tuple[UrgentSite | None, bytes, list[tuple[int, bytes]]]:
        """Another window comes to hand, and this one, if it grew too large, becomes two.

        The site from then on, None where it must be begun anew; what is to be kept with it, and its windows that are.
        """
        windows = self.windows or Windows.begun(0, terms, at)
        left, parts = windows.hand, [(windows.hand, self)]
        while len(parts[0][1]) > WINDOW and parts[0][0] < _MOST:
            parts = [half for number, site in parts for half in site.halves(number)]
        kept = [(number, site.encode()) for number, site in parts]
        waits = {self.key(page): since for page, since in self.waits.items()}
        hand = windows.turn({number: site.believed for number, site in parts}, waits, terms, at)
        part = dict(kept).get(hand)
        turned = UrgentSite.at_hand(self.name, windows, part or part_of(hand), terms, self.urgencies)
        if len(parts) > 1:
            kept.append((left, b""))
        return turned, b"" if turned is None else turned.head(), kept

    def halves(self, number: int) -> list[tuple[int, UrgentSite]]:
        """A window in two, by their numbers; what is believed of it goes with the first until they are reckoned."""
        keys = np.frombuffer(self._keys, dtype=">u8")
        upper = (keys >> np.uint64(64 - number.bit_length())) & np.uint64(1) == 1
        return [(2 * number, self._some(~upper, self.believed)), (2 * number + 1, self._some(upper, None))]

    def _some(self, pages: Flags, believed: Believed | None) -> UrgentSite:
        keys = np.frombuffer(self._keys, dtype=np.uint64)[pages].tobytes()
        numbers = np.cumsum(pages) - 1
        observed = {int(numbers[page]): found for page, found in self.observed.items() if pages[page]}
        return UrgentSite(
            self.name,
            self.urgencies.some(pages),
            keys,
            self.candidate_since[pages],
            self.terms,
            believed=believed,
            observed=observed,
        )

    @classmethod
    def at_hand(
        cls, name: str, windows: Windows, part: bytes | None, terms: UrgencyTerms, newest: SiteUrgency | None
    ) -> UrgentSite | None:
        """The site with the window at hand of which this was kept; None where it cannot be read.

        `newest` knows what was learned last of its sections.
        """
        site = cls.decode(name, part, terms)[0] if part else None
        if site is not None:
            site.join(windows, newest)
        return site

    def join(self, windows: Windows, newest: SiteUrgency | None) -> None:
        """These pages are those at hand of a site's windows; `newest` knows what was learned last of its sections."""
        if newest is not None:
            self.urgencies.follow(newest)
            self._encoded = None
        self.windows, self.believed = windows, windows.believed.get(windows.hand, self.believed)
        for key, since in windows.waits_at_hand():
            page = self.number(key)
            if page is not None:
                self.waits[page] = since
        for away in windows.away.get(windows.hand, ()):
            self.receive(away.key, away.record, away.kind, away.at)
        self.take_in()
        self._worth_step, self.reaches, self.news = -1, (), 0  # others may have learned what concerns it

    @classmethod
    def resume(
        cls, name: str, windows: Windows, terms: UrgencyTerms, part_of: Callable[[int], bytes | None]
    ) -> UrgentSite | None:
        """The site of which these windows were kept; None where what they hold cannot be read."""
        newest = None
        if windows.newest != windows.hand:
            newest = cls.decode(name, part_of(windows.newest) or b"", terms)[0]
            if newest is None:
                return None
        part = part_of(windows.hand)
        site = cls.at_hand(name, windows, part, terms, None if newest is None else newest.urgencies)
        if site is not None:
            site.head()
        return site

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


def cycle_s(terms: UrgencyTerms) -> float:
    """In such a time each window of a site has its turn, s: in a step, or where that is shorter in `STEPS` a visit."""
    return max(terms.step_s, terms.interval / STEPS)


class _Away(msgspec.Struct, frozen=True, array_like=True):
    """What came of a page whose window was not at hand; without a record it is no candidate any more."""

    key: bytes
    record: PageRecord | None
    kind: str
    at: float


class Windows(msgspec.Struct, array_like=True):
    """The windows of a very large site, by number: 1 is all keys, 2n and 2n + 1 the lower and upper half of n's."""

    hand: int
    others: list[int]
    """Those that are not at hand, the next to have its turn first."""
    turn_at: float
    """When the next has its turn; turns that were missed are made up for, by windows that have nothing more."""
    taken_at: float
    """When this one's began."""
    newest: int
    """Which was kept with what was learned last of the site's sections."""
    away: dict[int, list[_Away]] = msgspec.field(default_factory=dict)
    """Of windows that are not at hand, or were not when they were kept, what came of their pages since."""
    believed: dict[int, Believed | None] = msgspec.field(default_factory=dict)
    """What the collection's forecast holds of each."""
    waits: dict[bytes, float] = msgspec.field(default_factory=dict)
    """Pages of others that were made due and not fetched yet, and when."""

    @classmethod
    def begun(cls, depth: int, terms: UrgencyTerms, at: float) -> Windows:
        """As many as 2^`depth`, none of which had its turn yet."""
        numbers = [*range(1 << depth, 2 << depth)]
        return cls(numbers[0], numbers[1:], at - cycle_s(terms), at, numbers[0])

    @classmethod
    def decode(cls, data: bytes) -> Windows | None:
        """What `encode` wrote; None where it cannot be read, or is of a site that has none."""
        if not data.startswith(_MARK):
            return None
        try:
            return _WINDOWS.decode(data[len(_MARK) :])
        except ValueError:
            return None

    def encode(self, believed: Believed | None) -> bytes:
        """To be kept with the site, with what is believed of the one at hand; what waits is asked for again then."""
        self.believed[self.hand] = believed
        waits, self.waits = self.waits, {}
        try:
            return _MARK + msgspec.msgpack.encode(self)
        finally:
            self.waits = waits

    @property
    def numbers(self) -> list[int]:
        """Of all."""
        return [self.hand, *self.others]

    def beliefs(self, *of_hand: Believed | None) -> list[Believed]:
        """What the collection's forecast holds of each; `of_hand` is newer than what is kept of that at hand."""
        others = [each for number, each in self.believed.items() if not of_hand or number != self.hand]
        return [each for each in (*others, *of_hand) if each is not None]

    def turn_s(self, terms: UrgencyTerms) -> float:
        """How long a turn is, s."""
        return cycle_s(terms) / (1 + len(self.others))

    def early_at(self, terms: UrgencyTerms) -> float:
        """When the next has its turn, if the one at hand has nothing more."""
        return self.turn_at - LEAD * cycle_s(terms)

    def number_of(self, key: bytes) -> int:
        """The window of a page."""
        within = int.from_bytes(key, "big") | 1 << 8 * _KEY_BYTES
        numbers = {self.hand, *self.others}
        return next(number for bits in range(8 * _KEY_BYTES, -1, -1) if (number := within >> bits) in numbers)

    def put_off(self, key: bytes, record: PageRecord | None, kind: str, at: float) -> bool:
        """Keep what came of a page until its window's turn, if that is not now; whether it is not."""
        if (number := self.number_of(key)) == self.hand:
            return False
        if record is not None:
            record = PageRecord(
                record.url, state=record.state, policy=record.policy, importance=record.importance,
                last_crawled=record.last_crawled, failures=record.failures,
            )  # fmt: skip
        self.away.setdefault(number, []).append(_Away(key, record, kind, at))
        self.waits.pop(key, None)
        return True

    def is_full(self) -> bool:
        """Whether too much came of pages of others."""
        return sum(len(found) for number, found in self.away.items() if number != self.hand) > AWAY

    def is_kept(self) -> None:
        """The one at hand is kept as it is now."""
        self.away.pop(self.hand, None)
        self.newest = self.hand

    def turn(self, left: dict[int, Believed | None], waits: dict[bytes, float], terms: UrgencyTerms, at: float) -> int:
        """The one at hand is kept, in these parts, and another comes to hand: the next, or that of which most came.

        `waits`: pages of the one at hand that were made due, and when.
        """
        self.is_kept()
        self.newest = next(iter(left))
        self.waits |= waits
        self.believed.pop(self.hand, None)
        self.believed |= left
        fullest = (
            max(self.others, key=lambda number: len(self.away.get(number, ())), default=0) if self.is_full() else 0
        )
        self.others += left
        self.hand = fullest or self.others[0]
        self.others.remove(self.hand)
        turn_s = self.turn_s(terms)
        self.turn_at = min(max(self.turn_at + turn_s, at - cycle_s(terms)), at + turn_s + LEAD * cycle_s(terms))
        self.taken_at = at
        return self.hand

    def waits_at_hand(self) -> list[tuple[bytes, float]]:
        """Pages of the one at hand that wait; they are no others' any more."""
        keys = [key for key in self.waits if self.number_of(key) == self.hand]
        return [(key, self.waits.pop(key)) for key in keys]


class _Past(NamedTuple):
    """Some pages of a site as they stand in the store."""

    paths: list[str]
    keys: bytes
    since: Ints
    events: Array
    watched: Array
    importance: Array
    fetched: Array


def _pasts(name: str, records: Iterable[PageRecord], terms: UrgencyTerms, most: float) -> Iterator[_Past]:
    """All pages, some at a time; at least once, though there be none."""
    phase, records = _phase(name), iter(records)
    is_over = False
    while not is_over:
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
                if len(paths) >= most:
                    break
        else:
            is_over = True
        since, events, watched, importance, fetched = np.array(facts).reshape(-1, 5).T.copy()
        yield _Past(paths, bytes(keys), since.astype(np.int64), events, watched / terms.step_s, importance, fetched)


_CLASSES: Final = 12
"""Bits of a key by which pages are found again in the scratch file: of so many a site begins with windows at most."""
_MOST: Final = 1 << 32
_MARK: Final = b"windows:"
"""Begins what is kept with a site that has windows; no msgpack array does so."""
_WINDOWS: Final = msgspec.msgpack.Decoder(Windows)
_ROW: Final = np.dtype(
    [
        ("key", ">u8"), ("section", "<i8"), ("since", "<i8"), ("events", "<f8"), ("watched", "<f8"),
        ("importance", "<f8"), ("fetched", "<f8"),
    ]
)  # fmt: skip


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
