"""Walks over all that is held, some pages with each batch, in the worker thread, beside the walk of a URL.

The review: after an edit of the policy file, the pages that are held and are not to be held any more get their end.
What an edit refuses is not asked from the next request on, for
every page is judged when it is leased. But a page that is held is leased when it comes due, in months perhaps, and its
consumers must hear of the edit before. So the review reads the crawled pages of one site after the other, a bounded
number with each batch, judges them again, and has those due at once that are refused now: leased with the next refill
of their site they end unasked, as refused, with their tombstone in the change log.

It is the review, too, that follows a page which a ``[[switch]]`` with ``also = "discovered"`` put under another policy:
round after round through the sites, the pages that were discovered through it are put under the policy that it passes
on, then those that were discovered through these, until no page is left. What is leased meanwhile is looked at then
(`overruled`). And it counts what became of the pages that were discovered through each, where a rule asks for that
(``when.discovered``): a page that proves to lead to what is distrusted is switched long after its fetch.

How far it came is kept in the store by site, with the edit that it is for. So a crawl that was killed goes on where it
was, an edit made while no crawl ran is reviewed at the next start, and a second edit begins anew. To review a page
twice changes nothing.

The replacement, in a collection of a fixed size: which page makes room for which. The refinement decision of Cho 2000:
where the collection is full, the least important of its pages is replaced by a more important known one. The paper's
*AllUrls* is the store, its *CollUrls* the recrawl queues of the sites, its *Collection* the repository; its
*RankingModule*, which scans all of them all the time, is this and the ranker, its *UpdateModule* the schedule, its
*CrawlModule* the frontier with the downloader.

A *sweep* walks over all records, some with each batch: it counts how many known pages there are in each class of
importance, and remembers the least important of those that are held. Of the classes that the best `limits.pages` known
pages fill, those are *admitted* that are better than the page that would go. Then new pages of these classes are
leased, as many as can make room, and for each of them a page is evicted (the store's `evict`: its copy goes, a
tombstone comes into the change log, its URL stays known and waits in the lane of its importance). Only who has a site
may evict its pages, so sites that hold the least important ones are made due. Classes are half a doubling wide:
within one nothing is replaced, so that pages of like importance do not take turns; and a page that waits is worth what
it would be if it were held, its rank (`worth_of_holding`, and the lanes of such a collection), not what fetching it
promises, or it would go as soon as that is kept. It stands between the active list's refills and the store.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter, deque
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import xxhash

from webfountain.policy.judge import Origin, Seen, judge_again
from webfountain.store.contract import ADVANCED, CLASSES, class_of
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Lease, LeaseId, PageRecord, SiteLease, State
    from webfountain.store.contract import Dealt, FrontierStore, Refill

__all__ = ["REVIEW", "Replacement", "Review"]

REVIEW: Final = "review"
"""Name of the published value that says how far the review came."""
PAGES: Final = 1000
"""Pages that are read with one batch: some 20 ms, as much as a batch's rest."""
_SITES: Final = 100
_WITNESSES: Final = 50_000
"""Pages of which is remembered what those came to that were discovered through them; about 300 bytes each."""
_KEY_BYTES: Final = len(fingerprint(""))


class _Switched(msgspec.Struct, frozen=True, array_like=True):
    """A page that was put under another policy, and those that were discovered through it are to follow."""

    site: str
    key: bytes
    policy: str
    trust: float


class _Through(msgspec.Struct):
    """Of the pages that were discovered through one: how many have been fetched, and been switched to which policy."""

    fetched: int = 0
    switched: Counter[str] = msgspec.field(default_factory=Counter)


class _Progress(msgspec.Struct, frozen=True, array_like=True):
    """`law` names the policy file that pages are reviewed by, `after` is the last site that is done.

    `switched` are followed by this round through the sites, `waiting` by the next.
    """

    law: bytes
    after: str = ""
    is_done: bool = False
    switched: tuple[_Switched, ...] = ()
    waiting: tuple[_Switched, ...] = ()


class Review:
    """Goes on where the store says that the last one stopped; `pages` are read a step."""

    def __init__(self, store: FrontierStore, judge: Judge, *, pages: int = PAGES) -> None:
        self._store = store
        self._judge = judge
        self._pages = pages
        kept = store.value(REVIEW)
        self._progress = _Progress(b"", is_done=True) if kept is None else msgspec.msgpack.decode(kept, type=_Progress)
        self._followed = {(each.site, each.key): each for each in self._progress.switched}
        self._pending = {(each.site, each.key): each for each in self._progress.switched + self._progress.waiting}
        self._through: dict[tuple[str, bytes], _Through] = {}
        self._has_put = True
        self.moved: list[tuple[str, bytes]] = []
        """Pages that were put under another policy since the caller took them."""
        self.is_waiting = False
        """Whether only what was leased is left to follow: it need not be looked for before something has landed."""
        self._names: deque[str] = deque()  # the next sites
        self._site = ""  # that is being read
        self._unread: Iterator[PageRecord] = iter(())

    def begin(self, collection: Collection) -> None:
        """This policy file is in force: review by it, unless that was done, or go on with it.

        What a store holds that was never reviewed is, for nobody knows by which file it was taken in.
        """
        law = _law(collection)
        if self._progress.law != law:
            waiting = self._progress.switched + self._progress.waiting
            self._begin_round(law, waiting, is_done=not self._store.sites("", 1))
            self._keep(self._progress)

    def reaches_back(self, policy: str) -> bool:
        """Whether what was discovered through a page follows it when it is switched to this policy."""
        return self._judge.reaches_back(policy)

    def follow(self, switched: Sequence[PageRecord]) -> None:
        """These pages were switched, and what was discovered through them before is to be under the policy, too.

        Kept at once; a round through the sites that is under way is finished before.
        """
        if not switched:
            return
        news = tuple(
            _Switched(site_of(record.url), fingerprint(record.url), record.policy, record.trust) for record in switched
        )
        self._pending.update(((each.site, each.key), each) for each in news)
        self._has_put, self.is_waiting = True, False
        progress = msgspec.structs.replace(self._progress, waiting=self._progress.waiting + news)
        if progress.is_done:
            self._begin_round(progress.law, progress.waiting)
            progress = self._progress
        self._keep(progress)

    def note(self, fetched: Sequence[tuple[str, PageRecord]]) -> list[PageRecord]:
        """Pages were fetched for the first time: the policy each was leased under, and its record as it is now.

        Returns the records of pages that are switched because of what was discovered through them.
        """
        if "discovered" not in self._judge.asks:
            return []
        found = []
        for policy, record in fetched:
            source = _source_of(record)
            if source is None:
                continue
            through = self._through_of(source)
            through.fetched += 1
            moved = record if record.policy != policy else None
            # A page that is switched so is a witness against the one that it was discovered through.
            while source is not None and moved is not None:
                self._through_of(source).switched[moved.policy] += 1
                moved = self._switched_by_what_it_led_to(source)
                if moved is not None:
                    found.append(moved)
                    source = _source_of(moved)
        return found

    def _through_of(self, source: tuple[str, bytes]) -> _Through:
        through = self._through.pop(source, None) or _Through()
        self._through[source] = through  # the newest last
        if len(self._through) > _WITNESSES:
            del self._through[next(iter(self._through))]
        return through

    def _switched_by_what_it_led_to(self, source: tuple[str, bytes]) -> PageRecord | None:
        """The record of a page as it is to be, now that more is known of what was discovered through it."""
        site, key = source
        record = self._store.page(site, key)
        if record is None or record.request is not None or record.state == "never-crawled":
            return None
        through = self._through[source]
        switch = self._judge.switched(record.policy, Seen(followed=through.fetched, switched=through.switched))
        if switch is None:
            return None
        trust = min(record.trust, self._judge.policy(switch.to).trust)
        moved = msgspec.structs.replace(record, policy=switch.to, trust=trust)
        left = self._store.reassign(site, [key], lambda _: moved).leased
        return None if left else moved

    def overruled(self, records: Sequence[PageRecord]) -> dict[str, PageRecord]:
        """Of never-crawled pages those that belong under another policy by now, by URL: their source was switched."""
        if self.is_done:
            return {}
        found = ((record.url, self._inherited(record, self._pending)) for record in records)
        return {url: new for url, new in found if new is not None}

    def _begin_round(self, law: bytes, switched: tuple[_Switched, ...], *, is_done: bool = False) -> None:
        self._forget_place()
        self._progress = _Progress(law, is_done=is_done, switched=switched)
        self._followed = {(each.site, each.key): each for each in switched}
        self._pending = dict(self._followed)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to review."""
        return self._progress.is_done

    def step(self, at: float) -> dict[str, int]:
        """Review some pages more: site -> how many of its pages were made due for their end."""
        due: dict[str, int] = {}
        before, left = self._progress, self._pages
        while left > 0 and not self.is_done:
            records = list(islice(self._unread, left))
            left -= max(len(records), 1)  # a site without pages is not free
            if not records:
                self._next_site()
                if self.is_waiting and not self._site:
                    break
                continue
            moved = self._end_refused([record for record in records if record.state == "crawled"], at)
            if moved:
                due[self._site] = due.get(self._site, 0) + moved
            if self._followed:
                self._follow_through(records)
        if self._progress is not before:
            self._keep(self._progress)
        return due

    def _end_refused(self, records: Sequence[PageRecord], at: float) -> int:
        """Have held pages that are refused now due for their end; how many."""
        refused = [record for record, verdict in judge_again(self._judge, records) if verdict.reason is not None]
        if not refused:
            return 0
        return self._store.advance(self._site, [fingerprint(each.url) for each in refused], due=at, at=at)

    def _follow_through(self, records: Sequence[PageRecord]) -> None:
        """Put pages that were discovered through switched ones under the policy that these pass on."""
        found = {record.url: new for record in records if (new := self._inherited(record, self._followed)) is not None}
        if not found:
            return
        keys = {fingerprint(url): url for url in found}
        # As they are now: what was read may have been fetched since.
        followed = self._followed
        left = self._store.reassign(self._site, list(keys), lambda record: self._inherited(record, followed)).leased
        put = tuple(
            _Switched(self._site, key, found[url].policy, found[url].trust)
            for key, url in keys.items()
            if key not in left
        )
        # Of what is leased its links are judged under the old policy: the page it came through is looked at again.
        again = tuple({name: self._followed[name] for key in left if (name := _source_of(found[keys[key]]))}.values())
        self._progress = msgspec.structs.replace(self._progress, waiting=self._progress.waiting + put + again)
        self._pending.update(((each.site, each.key), each) for each in put)
        self.moved += [(each.site, each.key) for each in put]
        self._has_put = self._has_put or bool(put)

    def _inherited(self, record: PageRecord, followed: Mapping[tuple[str, bytes], _Switched]) -> PageRecord | None:
        """The record of a page under the policy of a switched one that it was discovered through; None: it stays."""
        source = _source_of(record)
        parent = None if source is None or record.request is not None else followed.get(source)
        if parent is None:
            return None
        origin = Origin("link", record.depth, parent.policy, parent.trust, parent.site + "/")
        [verdict] = self._judge.judge([record.url], origin)
        if verdict.policy == record.policy and verdict.trust >= record.trust:
            return None
        worth = self._judge.importance(verdict) if record.state == "never-crawled" else record.importance
        return msgspec.structs.replace(record, policy=verdict.policy, trust=verdict.trust, importance=worth)

    def _next_site(self) -> None:
        """All that was to be read of a site is dealt with: go to the next one."""
        if self._site:
            self._progress = msgspec.structs.replace(self._progress, after=self._site)
        if not self._names:
            self._names.extend(record.site for record in self._store.sites(self._progress.after, _SITES))
        if not self._names:
            waiting = self._progress.waiting
            self.is_waiting, self._has_put = not self._has_put, False
            self._begin_round(self._progress.law, waiting, is_done=not waiting)
            return
        self._site = self._names.popleft()
        state: State | None = None if self._followed else "crawled"
        self._unread = (record for _, record in self._store.pages(site=self._site, state=state))

    def _forget_place(self) -> None:
        self._unread, self._site = iter(()), ""
        self._names.clear()

    def _keep(self, progress: _Progress) -> None:
        self._progress = progress
        self._store.put_value(REVIEW, msgspec.msgpack.encode(progress))


def _source_of(record: PageRecord) -> tuple[str, bytes] | None:
    """Site and key of the page through which one was discovered."""
    key = record.source[:_KEY_BYTES]
    return (record.source[_KEY_BYTES:].decode() or site_of(record.url), key) if key else None


def _law(collection: Collection) -> bytes:
    """Names what a policy file and its seeds say."""
    seeds = b""
    if collection.seeds_file is not None:
        with contextlib.suppress(OSError):  # it is gone since it was read; what is in force was read before
            seeds = collection.seeds_file.read_bytes()
    return xxhash.xxh3_64_digest(collection.text.encode() + b"\0" + seeds)


SWEPT: Final = 500
"""Records that a sweep looks at with each batch."""
SWEEPS_PER_PERIOD: Final = 100
CANDIDATES: Final = 10_000
"""Least important held pages that are remembered of a sweep, at most."""
_NEAR: Final = 0.9
"""The collection is swept from this share of its size on."""
_SUMMONED: Final = 64
"""Pages that are made due at once, so that their sites become active and they can go."""
_SOON: Final = 0.05
"""Share of the time between sweeps after which new pages that wait for others to go are asked for again."""
_DUPLICATE: Final = -inf
"""What a page that repeats another is worth to the collection: less than any other."""


class _Candidate(NamedTuple):
    """A held page that may go; the least important first."""

    importance: float
    site: str
    key: bytes


class Replacement:
    """Keeps to `most` pages. `weigh` gives the importances of records in their order, None: as the records have it.

    `period_s`: length of a time period. One process's; of several on one store each counts what it has leased itself.
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        most: int,
        period_s: float,
        weigh: Callable[[Sequence[PageRecord]], Sequence[float]] | None = None,
    ) -> None:
        self._store = store
        self._most = most
        self._weigh = weigh
        self._pause_s = period_s / SWEEPS_PER_PERIOD
        self._sweep: Iterator[tuple[str, PageRecord]] | None = None
        self._next_sweep = -inf
        self._known: Counter[int] = Counter()  # pages by class, of the sweep under way
        self._heap: list[tuple[float, str, bytes]] = []  # its candidates, the most important on top
        self._bar: int | None = None  # the class in which the best `most` known pages end
        self._candidates: list[_Candidate] = []  # the least important last
        self._summoned: set[bytes] = set()
        self._demand, self._demanded = 0, 0  # new pages that wait for others to go, and their worst class
        self._gone = CLASSES + 1  # the best class of which a page went since the last sweep
        self._held: dict[str, SiteLease] = {}
        self._out: dict[str, set[int]] = {}
        self.counts: Counter[str] = Counter()
        """What was done since the caller took it."""

    # ------------------------------------------------------- what goes on

    def has(self, leases: Iterable[SiteLease]) -> None:
        """Sites are active, or still are."""
        self._held.update((lease.site, lease) for lease in leases)

    def ended(self, leases: Iterable[LeaseId]) -> None:
        """URLs are no longer leased."""
        for lease in leases:
            out = self._out.get(lease.site)
            if out is not None:
                out.discard(lease.number)

    def left(self, sites: Iterable[str]) -> None:
        """Sites are no longer active, and nothing of them is leased."""
        for site in sites:
            self._held.pop(site, None)
            self._out.pop(site, None)

    # ------------------------------------------------------------- the sweep

    def sweep(self, at: float) -> None:
        """Look at some records more, if it is time."""
        if self._sweep is None:
            if at < self._next_sweep or self._store.statistics().pages["crawled"] < _NEAR * self._most:
                return
            self._sweep = iter(self._store.pages())
            self._known, self._heap = Counter(), []
        found = list(islice(self._sweep, SWEPT))
        records = [record for _, record in found if record.state in ("crawled", "never-crawled")]
        weights = [record.importance for record in records] if self._weigh is None else self._weigh(records)
        worth = dict(zip(map(id, records), weights, strict=True))
        for site, record in found:
            if id(record) in worth:
                self._look(site, record, worth[id(record)])
        if len(found) < SWEPT:
            self._take_stock(at)

    def _look(self, site: str, record: PageRecord, importance: float) -> None:
        if record.duplicate_of is not None:
            importance = _DUPLICATE
        self._known[_class(importance)] += 1
        if record.state != "crawled":
            return
        entry = (-importance, site, fingerprint(record.url))
        if len(self._heap) < CANDIDATES:
            heapq.heappush(self._heap, entry)
        elif entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    def _take_stock(self, at: float) -> None:
        """A sweep has come to its end: what it found is in force until the next has."""
        self._sweep, self._next_sweep = None, at + self._pause_s
        self._summoned.clear()
        self._demand, self._gone = 0, CLASSES + 1
        self._candidates = [_Candidate(-worth, site, key) for worth, site, key in sorted(self._heap)]
        self._bar, better = CLASSES - 1, 0
        for number in range(CLASSES):
            better += self._known[number]
            if better >= self._most:
                self._bar = number
                break

    # --------------------------------------------------------------- leasing

    def lease(self, refills: Sequence[Refill], *, at: float) -> list[Dealt | None]:
        """As the store's, but new pages only as many as there is room for, or can be made."""
        self.has(refill.lease for refill in refills)
        room = self._most - self._store.statistics().pages["crawled"] - sum(map(len, self._out.values()))
        if room < self._demand:
            room += self._evict(self._demand - room, better=self._demanded if self._demand else -1, at=at)
        first = self._lease_new(refills, room) if room > 0 else self._exchange(refills, at=at)
        for dealt in first:
            if dealt is not None and dealt.never_crawled:
                self._out.setdefault(dealt.site, set()).update(one.id.number for one in dealt.never_crawled)
        known = self._store.lease([msgspec.structs.replace(refill, never_crawled=0) for refill in refills])
        return [self._joined(*both, is_full=room <= 0, at=at) for both in zip(first, known, strict=True)]

    def _lease_new(self, refills: Sequence[Refill], room: int) -> list[Dealt | None]:
        """New pages while there is room; one site after the other where not all can have what they ask for."""
        bar = CLASSES if self._bar is None else self._bar
        classes = [inf if number <= bar and number < self._gone else -inf for number in range(CLASSES)]
        asked = [msgspec.structs.replace(refill, recrawl=0, classes=classes) for refill in refills]
        together = sum(refill.never_crawled for refill in asked) <= room
        found: list[Dealt | None] = self._store.lease(asked) if together else []
        for refill in [] if together else asked:
            share = min(refill.never_crawled, room)
            [dealt] = self._store.lease([msgspec.structs.replace(refill, never_crawled=share)])
            room -= 0 if dealt is None else len(dealt.never_crawled)
            found.append(dealt)
        self._demand = max(0, self._demand - sum(len(dealt.never_crawled) for dealt in found if dealt is not None))
        return found

    def _exchange(self, refills: Sequence[Refill], *, at: float) -> list[Dealt | None]:
        """New pages that are better than those that go for them.

        What should go may be of a site that is not active, or fetched at this moment: then the new page goes back, and
        there is a demand until a page has gone.
        """
        least = _class(self._candidates[-1].importance) if self._candidates else 0
        bar = CLASSES if self._bar is None else self._bar
        classes = [inf if number < least and number <= bar else -inf for number in range(CLASSES)]
        found = self._store.lease([msgspec.structs.replace(refill, recrawl=0, classes=classes) for refill in refills])
        new = [class_of(one.record.importance) for dealt in found if dealt is not None for one in dealt.never_crawled]
        lacking = len(new) - self._evict(len(new), better=max(new, default=0), at=at)
        self._demand, self._demanded = lacking, max(new, default=0)
        if lacking:
            self._summon(lacking, at=at)
        return self._without(found, lacking)

    def _without(self, dealt: Sequence[Dealt | None], many: int) -> list[Dealt | None]:
        """Give so many of the new pages back."""
        left: list[Dealt | None] = []
        for one in dealt:
            back = [] if one is None else one.never_crawled[:many]
            many -= len(back)
            self._store.release([lease.id for lease in back])
            left.append(
                None if one is None else msgspec.structs.replace(one, never_crawled=one.never_crawled[len(back) :])
            )
        return left

    def _evict(self, many: int, *, better: int, at: float) -> int:
        """Let the least important pages go for some of the class `better`, of sites at hand; how many went."""
        going: dict[str, list[bytes]] = {}
        kept: list[_Candidate] = []
        while self._candidates and many > 0 and _class(self._candidates[-1].importance) > better:
            one = self._candidates.pop()
            if one.site in self._held:
                going.setdefault(one.site, []).append(one.key)
                self._gone = _class(one.importance)
                many -= 1
            else:
                kept.append(one)
        self._candidates += reversed(kept)
        gone = sum(self._store.evict(self._held[site], keys, at=at) or 0 for site, keys in going.items())
        self.counts["collection/evicted"] += gone
        return gone

    def _summon(self, many: int, *, at: float) -> None:
        """Better pages wait, and those that should go are of sites that are not active: let these come due."""
        going: dict[str, list[bytes]] = {}
        for one in islice(reversed(self._candidates), min(many, _SUMMONED)):
            if one.site not in self._held and one.key not in self._summoned:
                self._summoned.add(one.key)
                going.setdefault(one.site, []).append(one.key)
        for site, keys in going.items():
            self._store.advance(site, keys, due=at, at=at)

    def _joined(self, first: Dealt | None, known: Dealt | None, *, is_full: bool, at: float) -> Dealt | None:
        """Both parts of a refill; a site that may have better pages is looked at again when others may have gone."""
        if first is None or known is None:
            return None
        again = at + (max(1.0, _SOON * self._pause_s) if self._demand else self._pause_s)
        lanes = [*known.lanes, (ADVANCED, again)] if is_full else known.lanes
        overtaken = first.overtaken or known.overtaken
        return msgspec.structs.replace(known, never_crawled=first.never_crawled, lanes=lanes, overtaken=overtaken)

    def note(self, leases: Iterable[Lease]) -> None:
        """New pages were leased otherwise: immediate ones, which nobody holds back."""
        for lease in leases:
            if lease.record.state == "never-crawled":
                self._out.setdefault(lease.site, set()).add(lease.id.number)

    def close(self) -> None:
        """Let go of the store."""
        self._sweep = None


def _class(importance: float) -> int:
    """The class of an importance; that of duplicates is behind all others."""
    return CLASSES if importance == _DUPLICATE else class_of(importance)
