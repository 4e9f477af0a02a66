"""Review the known pages after an edit of the policy file.

Every page is judged when it is leased, so pages that an edited policy file refuses are not requested. Consumers must
learn soon that the policy file refuses a page with a stored copy, although the page may not be due for months. The
review judges all crawled pages again, a few with each batch. If the policy file refuses a known page, the review makes
the page due at once. A refused page is removed without a request, and the change log gets a tombstone.

Links pass on policy and trust, so an edit of seeds, trust or dampening also concerns known pages. The review gives each
page the policy and trust that its seed, or the page that links to it, would now pass on (`_Derivation`).

A ``[[switch]]`` with ``also = "discovered"`` also moves the pages that were discovered through the switched page. The
review goes through all sites in rounds. The first round moves pages discovered through the switched page, the next
round pages discovered through the moved pages, and so on. During a review, each page is checked when it is leased
(`overruled`). For ``when.discovered``, the review counts, for each page, the fetched and the switched pages that were
discovered through it. A page that leads to distrusted pages can be switched long after its own fetch.

If the schedule becomes slower, pages may be due too late for their policies, and the review makes them due earlier
(`review_stage`).

The store has the last reviewed site and a digest of the policy file, so that the next process can continue a review. If
the policy file is edited again, the review restarts.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import xxhash

from webfountain.frontier.pages.page_judge import switched
from webfountain.frontier.planning.schedule import earlier_visits
from webfountain.policy.collection_file import CollectionInForce
from webfountain.policy.judge import Origin, judge_again
from webfountain.policy.lineage import Lineage, parent_of, spreading
from webfountain.policy.provenance import Provenance
from webfountain.policy.switches import PageFacts
from webfountain.store.contract import COLLECTION
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.policy.lineage import PageName
    from webfountain.records import PageRecord, State
    from webfountain.store.contract import FrontierStore

__all__ = ["PAGES", "REVIEW", "Review", "review_of"]

REVIEW: Final = "review"
"""Name of the published value with the progress of the review."""
PAGES: Final = 1000
"""Number of pages that the review reads with one batch, in about 20 ms."""
_SITES: Final = 100
_WITNESSES: Final = 50_000
"""Maximum number of `_DiscoveredCounts` in memory, about 300 bytes each."""


class _SwitchedPage(msgspec.Struct, frozen=True, array_like=True):
    """A page that was moved to another policy, so that the pages discovered through it must be moved, too."""

    site: str
    key: bytes
    policy: str
    trust: float


class _DiscoveredCounts(msgspec.Struct):
    """Numbers of fetched pages, and of pages switched to each policy, among the pages discovered through one page."""

    fetched: int = 0
    switched: Counter[str] = msgspec.field(default_factory=Counter)


class _Progress(msgspec.Struct, frozen=True, array_like=True):
    """The progress of a review. `law` is a digest of the policy file, and `after` the last site that was reviewed.

    The current round moves pages discovered through `switched`, and the next round pages discovered through `waiting`.
    """

    law: bytes
    after: str = ""
    is_done: bool = False
    switched: tuple[_SwitchedPage, ...] = ()
    waiting: tuple[_SwitchedPage, ...] = ()
    spread: bytes = b""
    """Digest of the rules about how links pass on policies (`policy.lineage.spreading`)."""
    derives: bool = False
    """True if the policy and trust of all known pages must be computed again."""


class Review:
    """Reviews known pages, and continues where the last process stopped."""

    def __init__(self, store: FrontierStore, judge: Judge, *, pages: int = PAGES) -> None:
        self._store = store
        self._judge = judge
        self._pages = pages
        kept = store.board.value(REVIEW)
        self._progress = _Progress(b"", is_done=True) if kept is None else msgspec.msgpack.decode(kept, type=_Progress)
        self._followed = {(each.site, each.key): each for each in self._progress.switched}
        self._pending = {(each.site, each.key): each for each in self._progress.switched + self._progress.waiting}
        self._through: dict[tuple[str, bytes], _DiscoveredCounts] = {}
        self._has_put = True
        self.moved: list[tuple[str, bytes]] = []
        """The caller must empty the list `moved`."""
        self.is_waiting = False
        """True if the review can continue only after some leases have ended."""
        self._again = False  # whether another round follows this one
        self._derivation: _Derivation | None = None
        self._names: deque[str] = deque()  # the next sites
        self._site = ""  # the site that is being reviewed
        self._unread: Iterator[PageRecord] = iter(())

    def begin(self, collection: Collection) -> None:
        """Start or continue to apply a policy file to all known pages, unless this is already done."""
        seeds = _seeds_of(collection)
        law, spread = xxhash.xxh3_64_digest(collection.text.encode() + b"\0" + seeds), spreading(collection, seeds)
        is_other = self._progress.law != law
        is_new = is_other and not self._store.sites.after("", 1)
        derives = not is_new and (self._progress.derives or (is_other and self._progress.spread != spread))
        # This reads the seeds file and may fail; then the progress must not yet say that the file was adopted.
        self._derivation = _Derivation(self._store, collection, self._judge) if derives else None
        if is_other:
            waiting = self._progress.switched + self._progress.waiting
            self._progress = msgspec.structs.replace(self._progress, law=law, spread=spread, derives=derives)
            self._begin_round(waiting, is_done=is_new)
            self._keep(self._progress)

    def place_anew(self) -> None:
        """Read all crawled pages again, and make pages due earlier if they would be fetched too late. The review
        finishes a round in progress before it begins another.
        """
        self.is_waiting = False
        if not self.is_done:
            self._again = True
            return
        self._begin_round(self._progress.waiting)
        self._keep(self._progress)

    def follow(self, switched: Sequence[PageRecord]) -> None:
        """Let the review move the pages that were discovered through switched pages. The review finishes a round in
        progress before it begins another.
        """
        if not switched:
            return
        news = tuple(
            _SwitchedPage(site_of(record.url), fingerprint(record.url), record.policy, record.trust)
            for record in switched
        )
        self._pending.update(((each.site, each.key), each) for each in news)
        self._has_put, self.is_waiting = True, False
        progress = msgspec.structs.replace(self._progress, waiting=self._progress.waiting + news)
        if progress.is_done:
            self._begin_round(progress.waiting)
            progress = self._progress
        self._keep(progress)

    def note(self, fetched: Sequence[tuple[str, PageRecord]], *, at: float) -> list[PageRecord]:
        """Count pages that were fetched for the first time. `fetched` contains, for each page, its policy before the
        fetch and its new record.

        Return the new records of the pages whose counts now require another policy.
        """
        if "discovered" not in self._judge.policies.asks:
            return []
        found = []
        for policy, record in fetched:
            source = parent_of(record)
            if source is None:
                continue
            through = self._through_of(source)
            through.fetched += 1
            moved = record if record.policy != policy else None
            # A page that is switched in this way also counts against the page that led to it.
            while source is not None and moved is not None:
                self._through_of(source).switched[moved.policy] += 1
                moved = self._switched_by_what_it_led_to(source, at)
                if moved is not None:
                    found.append(moved)
                    source = parent_of(moved)
        return found

    def _through_of(self, source: tuple[str, bytes]) -> _DiscoveredCounts:
        through = self._through.pop(source, None) or _DiscoveredCounts()
        self._through[source] = through  # the newest last
        if len(self._through) > _WITNESSES:
            del self._through[next(iter(self._through))]
        return through

    def _switched_by_what_it_led_to(self, source: tuple[str, bytes], at: float) -> PageRecord | None:
        """Return the new record of a page that must change its policy because of pages discovered through it, else
        None.
        """
        site, key = source
        record = self._store.pages.get(site, key)
        if record is None or record.request is not None or record.state == "never-crawled":
            return None
        through = self._through[source]
        seen = PageFacts(followed=through.fetched, switched=through.switched)
        moved = switched(self._judge, record, seen, at=at)
        if moved is record:
            return None
        left = self._store.queues.reassign(site, [key], lambda _: moved).leased
        return None if left else moved

    def overruled(self, records: Sequence[PageRecord], *, at: float) -> dict[str, PageRecord]:
        """Return, by URL, the new records of those never-crawled pages that must get another policy."""
        if self.is_done:
            return {}
        found = {} if self._derivation is None else self._derivation.revised(records, at=at)
        moved = ((record.url, self._inherited(found.get(record.url, record), self._pending, at)) for record in records)
        return found | {url: new for url, new in moved if new is not None}

    def _begin_round(self, switched: tuple[_SwitchedPage, ...], *, is_done: bool = False) -> None:
        self._forget_place()
        if self._derivation is not None:
            self._derivation.begin_round()
        self._progress = msgspec.structs.replace(
            self._progress, after="", is_done=is_done, switched=switched, waiting=()
        )
        self._followed = {(each.site, each.key): each for each in switched}
        self._pending = dict(self._followed)

    @property
    def is_done(self) -> bool:
        """True if nothing is left to review."""
        return self._progress.is_done

    def step(self, at: float, schedule: Schedule | None = None) -> dict[str, int]:
        """Review the next pages. Return how many pages of each site were made due.

        If `schedule` is given, pages that the schedule would fetch too late for their policies are made due earlier.
        """
        due: dict[str, int] = {}
        before, left = self._progress, self._pages
        while left > 0 and not self.is_done:
            records = list(islice(self._unread, left))
            left -= max(len(records), 1)  # A site without pages takes time, too.
            if not records:
                self._next_site()
                if self.is_waiting and not self._site:
                    break
                continue
            if self._derivation is not None:
                records, put = self._derivation.derive(self._site, records, at=at)
                self.moved += [(self._site, key) for key in put]
                self._has_put = self._has_put or bool(put)
            crawled = [record for record in records if record.state == "crawled"]
            moved = self._end_refused(crawled, at)
            if schedule is not None:
                moved += self._visit_earlier(crawled, schedule, at)
            if moved:
                due[self._site] = due.get(self._site, 0) + moved
            if self._followed:
                self._follow_through(records, at)
        if self._progress is not before:
            self._keep(self._progress)
        return due

    def _end_refused(self, records: Sequence[PageRecord], at: float) -> int:
        """Make crawled pages due at once if the policy file refuses them, so that they are removed. Return how many
        pages were made due.
        """
        refused = [record for record, verdict in judge_again(self._judge, records) if verdict.reason is not None]
        if not refused:
            return 0
        return self._store.queues.advance(self._site, [fingerprint(each.url) for each in refused], due=at, at=at)

    def _visit_earlier(self, records: Sequence[PageRecord], schedule: Schedule, at: float) -> int:
        """Make pages due earlier if their policies require it. Return how many pages were made due."""
        rules = self._judge.policies.rules
        found = earlier_visits(records, lambda name: rules[name].table.revisit, schedule, at=at)
        return sum(self._store.queues.advance(self._site, keys, due=due, at=at) for due, keys in found.items())

    def _follow_through(self, records: Sequence[PageRecord], at: float) -> None:
        """Move pages that were discovered through a switched page to the policy that they inherit from it."""
        followed = self._followed
        moved = ((record.url, self._inherited(record, followed, at)) for record in records)
        found = {url: new for url, new in moved if new is not None}
        if not found:
            return
        keys = {fingerprint(url): url for url in found}
        # The store computes the records again, because a page may have been fetched since it was read.
        done = self._store.queues.reassign(self._site, list(keys), lambda record: self._inherited(record, followed, at))
        left = done.leased
        put = tuple(
            _SwitchedPage(self._site, key, found[url].policy, found[url].trust)
            for key, url in keys.items()
            if key not in left
        )
        # The links of a leased page are judged under the old policy, so its parent is handled again.
        again = tuple({name: self._followed[name] for key in left if (name := parent_of(found[keys[key]]))}.values())
        self._progress = msgspec.structs.replace(self._progress, waiting=self._progress.waiting + put + again)
        self._pending.update(((each.site, each.key), each) for each in put)
        self.moved += [(each.site, each.key) for each in put]
        self._has_put = self._has_put or bool(put)

    def _inherited(
        self, record: PageRecord, followed: Mapping[tuple[str, bytes], _SwitchedPage], at: float
    ) -> PageRecord | None:
        """Return the new record of a page if it inherits another policy or trust from a switched page, else None."""
        source = parent_of(record)
        parent = None if source is None or record.request is not None else followed.get(source)
        if parent is None:
            return None
        recorded = Provenance.decode(record.provenance)
        kind: Literal["redirect", "link"] = "redirect" if recorded.arrival == "redirect" else "link"
        origin = Origin(kind, record.depth, parent.policy, parent.trust, parent.site + "/", links=recorded.links)
        verdict = self._judge.inherited(record.url, origin)
        # Older stores do not record how many links shared the trust, so it is not raised.
        may_rise = recorded.arrival != "unrecorded" and verdict.trust > record.trust
        if verdict.rule or (verdict.policy == record.policy and verdict.trust >= record.trust and not may_rise):
            return None
        worth = self._judge.importance_of(record, verdict.trust)
        if record.state == "never-crawled":
            worth = verdict.trust if self._judge.policies.is_trusting else 0.0
        followed_now = recorded.because("followed", at=at).encode()
        return msgspec.structs.replace(
            record, policy=verdict.policy, trust=verdict.trust, importance=worth, provenance=followed_now
        )

    def _next_site(self) -> None:
        """Continue the review with the next site, or end the round after the last site."""
        if self._site:
            self._progress = msgspec.structs.replace(self._progress, after=self._site)
        if not self._names:
            self._names.extend(record.site for record in self._store.sites.after(self._progress.after, _SITES))
        if not self._names:
            waiting = self._progress.waiting
            self.is_waiting, self._has_put = not self._has_put, False
            if self._derivation is not None and self._derivation.is_settled:
                self._derivation = None
                self._progress = msgspec.structs.replace(self._progress, derives=False)
            again, self._again = self._again, False
            self._begin_round(waiting, is_done=not (waiting or again) and self._derivation is None)
            return
        self._site = self._names.popleft()
        state: State | None = None if self._followed or self._derivation is not None else "crawled"
        self._unread = (record for _, record in self._store.pages.records(site=self._site, state=state))

    def _forget_place(self) -> None:
        self._unread, self._site = iter(()), ""
        self._names.clear()

    def _keep(self, progress: _Progress) -> None:
        self._progress = progress
        self._store.board.put_value(REVIEW, msgspec.msgpack.encode(progress))


def _seeds_of(collection: Collection) -> bytes:
    """Return the content of a collection's seeds file, or b""."""
    if collection.seeds_file is not None:
        with contextlib.suppress(OSError):  # the file was removed after it was read; its seeds stay valid
            return collection.seeds_file.read_bytes()
    return b""


def review_of(collection: Collection, store: FrontierStore, judge: Judge) -> Review | None:
    """Publish a policy file, and return a review that applies it. Return None if the collection has no policy file."""
    if not collection.text:
        return None
    store.board.put_value(COLLECTION, CollectionInForce.encode(collection))
    review = Review(store, judge)
    review.begin(collection)
    return review


class _Derivation:
    """A pass over the known pages that computes policy and trust under one policy file (`policy.lineage`). `is_settled`
    is False if a leased page was skipped.
    """

    def __init__(self, store: FrontierStore, collection: Collection, judge: Judge) -> None:
        self._store = store
        self._read: dict[PageName, PageRecord | None] = {}
        self._lineage = Lineage(collection, judge, self._page)
        self.is_settled = True

    def begin_round(self) -> None:
        """Begin a new pass over all sites."""
        self._lineage.clear()
        self.is_settled = True

    def derive(self, site: str, records: Sequence[PageRecord], *, at: float) -> tuple[list[PageRecord], list[bytes]]:
        """Apply the policy file to pages of a site. Return the current records of the given pages, and the keys of the
        changed records.
        """
        found = self.revised(records, at=at)
        if not found:
            return list(records), []
        keys = {fingerprint(url): url for url in found}
        lineage = self._lineage
        # The store computes the records again, because a page may have been fetched since it was read.
        done = self._store.queues.reassign(site, list(keys), lambda record: lineage.revised(record, at=at))
        self.is_settled = self.is_settled and not done.leased
        left = {keys[key] for key in done.leased}
        now = [record if record.url in left else found.get(record.url, record) for record in records]
        return now, [key for key, url in keys.items() if url not in left]

    def revised(self, records: Sequence[PageRecord], *, at: float) -> dict[str, PageRecord]:
        """Return, by URL, the new records of pages that the policy file changes."""
        self._read = {}
        self._read_parents(records)
        found = ((record.url, self._lineage.revised(record, at=at)) for record in records)
        return {url: new for url, new in found if new is not None}

    def _read_parents(self, records: Iterable[PageRecord]) -> None:
        """Read the records of all pages on the paths of links that led to the given pages."""
        while wanted := self._lineage.missing(records) - self._read.keys():
            of_site: dict[str, list[bytes]] = {}
            for site, key in wanted:
                of_site.setdefault(site, []).append(key)
            for site, keys in of_site.items():
                names = ((site, key) for key in keys)
                self._read.update(zip(names, self._store.pages.get_many(site, keys), strict=True))
            records = [record for name in wanted if (record := self._read[name]) is not None]

    def _page(self, site: str, key: bytes) -> PageRecord | None:
        name = (site, key)
        return self._read[name] if name in self._read else self._store.pages.get(site, key)
