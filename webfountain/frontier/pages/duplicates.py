"""The duplicate URL eliminator: of the links on their way to the store, which does it know?

After the host splitter and before the never-crawled queue (DESIGN.md section 3). A cache of recently seen
fingerprints spares the store most look-ups, since links repeat (eight of ten within 50,000 entries); the
store decides the rest. Only what the store has answered for is cached. It keeps no link.

A page that is found under another policy than its own is the collection's conflict rule's to decide (Policies 2006):
`first` leaves it as it is and costs nothing; by the others a link that brings more trust, or less, puts the known page
under its own policy and trust (`store.reassign`). Seeds keep the policy that they were given, and fetched pages one
that a `[[switch]]` can have given them: what a page shows counts for more than who links it. What a switch took with it
is forgotten here, so that links to it count again.

Under a policy with a topic a link may say more of a known page than those before it did: that it is on topic, or nearer
to a page that is. Then the page is told so, and where it waits it goes to those that are (`PageRecord.scores`).

Source: Broder, Najork, Wiener, "Efficient URL caching for World Wide Web crawling", 2003, section 5: LRU, for in Python
CLOCK is the slower of the two and misses as much (`bench_urlcache`).

The duplicate detector: of the pages that were fetched, which repeat another page, on whatever site? Place in the walk
(DESIGN.md section 3): in the worker thread, once the copies are written and before links are discovered. Equal bodies
are duplicates whatever they hold; of others the texts decide: the index names those whose sketches are alike, and
where an estimate may be on the wrong side of the threshold the two texts are compared. A page that repeats none is a
representative from then on, and is in the index before it is settled; one that does has a pointer to it in its
record, is fetched seldom, and its links are not followed again.

What a page calls its canonical form (``rel=canonical``) is believed where the texts agree: then that one is the
representative, also when it is fetched later. A pointer holds as long as its page stands: it is looked at whenever
the duplicate is fetched. A page that the index does not know (it was lost, or switched on later) is taken in at its
next fetch, from its copy. A site of which half of the pages repeat those of one other site is a *mirror* of it: pages
that are known there are not asked for here.

Of many ants each has an index of its own and reads those of the others that lie beside it. What another's says of a
page may be older than the page: only one whose digest in the store is that of the index is named. Two ants that
fetch a page and its duplicate in the same moment see neither, and keep both; so pages that did not change are looked
up again when they are fetched, and of two such the one with the lesser fingerprint stays. Two that point to each other
at once cannot be, for only the greater moves then.

Source: Edwards 2001, section 2 (duplicate detectors); Cho, Shivakumar, Garcia-Molina, *Finding replicated web
collections*, 2000.
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.resemblance import FAR, exact_resemblance, is_mirror, links_from_hot, sketch
from webfountain.core.url_cache import LruCache, StaticCache
from webfountain.frontier.pages.examiner import Judged
from webfountain.ranking.duplicate_index import IndexedPage, Match, digest_number, number_of
from webfountain.records import Discovered, Outcome
from webfountain.store.rules import is_held, taken_over
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.core.url_cache import UrlCache
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.policy import ConflictRule
    from webfountain.policy.files import Collection
    from webfountain.ranking.duplicate_index import DuplicateIndex, Probe
    from webfountain.records import Lease, Link, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["CACHE_SIZE", "DuplicateDetector", "DuplicateEliminator", "Eliminated"]

CACHE_SIZE: Final = 200_000
_MOST_OVERTAKEN: Final = 10_000
"""Leased pages that another policy waits for; each ends within minutes."""


class Eliminated(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot: URLs that were new, links that the cache knew, links that only the store knew."""

    new: int
    duplicates_by_cache: int
    duplicates_by_store: int
    reassigned: int = 0
    """Known pages that were put under the policy of another link."""


class DuplicateEliminator:
    """A cache of recent URLs in front of `store.discover`: LRU with `size` of them, or any that is given.

    It holds eight-byte fingerprints of site and key (`core.url_cache`).
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        size: int = CACHE_SIZE,
        cache: UrlCache | None = None,
        collection: Collection | None = None,
        weigh: Callable[[Sequence[Link]], Sequence[Link]] | None = None,
    ) -> None:
        """`weigh` gives links, most of them new, the importance that they have now; None: it is as they carry it."""
        self._store = store
        self._weigh = weigh
        self._conflict: ConflictRule = "first"
        self._policies: tuple[str, ...] = ()
        self._switched: frozenset[str] = frozenset()
        self._recent: UrlCache = cache or (LruCache(size) if size else StaticCache(()))
        self._new = 0
        self._by_cache = 0
        self._by_store = 0
        self._reassigned = 0
        self._overtaken: dict[tuple[str, bytes], Link] = {}  # leased pages and the links that have more right to them
        if collection is not None:
            self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Settle conflicts by this collection's rule from now on."""
        self._conflict = collection.conflict
        self._policies = tuple(collection.policies)
        self._switched = frozenset(rule.to for rule in collection.tables.switch)
        self._recent.clear()

    def discover(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """Make the unknown of these links known to the store, in one batch; the new ones, each once, weighed."""
        asked, found = self._ask(links, at)
        if not found.known:
            return list(asked)
        repeated = set(found.repeated)
        return [link for nth, link in enumerate(asked) if nth not in repeated]

    def offer(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """As `discover`; those of the links that were known before, or came earlier among them."""
        new = {(link.site, link.key) for link in self.discover(links, at=at)}
        known = []
        for link in links:
            name = (link.site, link.key)
            if name in new:
                new.remove(name)
            else:
                known.append(link)
        return known

    def _ask(self, links: Sequence[Link], at: float) -> tuple[Sequence[Link], Discovered]:
        """The links that the store was asked, and what it said of them."""
        asked: Sequence[Link] = self._unseen(links)
        if self._weigh is not None and asked:
            asked = self._weigh(asked)
        try:
            found = self._store.discover(asked, at=at) if asked else Discovered(0, 0)
        except BaseException:
            self._recent.drop(map(self._fingerprint, asked))  # what the store has not taken is asked again
            raise
        if found.known:
            if self._conflict != "first":
                self._reassigned += self._settle_conflicts(asked)
            self._tell_topics([link for link in asked if link.scores])
        by_cache = len(links) - len(asked)
        self._new += found.new
        self._by_cache += by_cache
        self._by_store += found.known
        return asked, found

    def forget(self, site: str, key: bytes | None = None) -> None:
        """Drop a page, or all of a site, so that the store alone answers for it."""
        if key is None:
            self._recent.clear()  # a fingerprint does not tell its site; forgetting is rare
            return
        policies = ("",) if self._conflict == "first" else self._policies
        scored = itertools.product(_SCORED, policies)
        self._recent.drop([_cached(site, key, policy, scores) for scores, policy in scored])

    def statistics(self) -> Eliminated:
        """The counts so far."""
        return Eliminated(self._new, self._by_cache, self._by_store, self._reassigned)

    def _unseen(self, links: Sequence[Link]) -> list[Link]:
        """The links that the cache does not know, each once; it knows them from now on."""
        if self._conflict == "first":
            prints = [hash((link.site, link.key)) if not link.scores else self._fingerprint(link) for link in links]
        else:
            prints = list(map(self._fingerprint, links))
        missing = self._recent.missing(prints)
        if not missing:
            return []
        first: dict[int, Link | None] = dict.fromkeys(missing)
        for each, link in zip(prints, links, strict=True):
            if each in first and first[each] is None:
                first[each] = link
        return [link for link in first.values() if link is not None]

    def _fingerprint(self, link: Link) -> int:
        """What is cached of a link: site and key, and of policy and topic what may matter of a page that is known."""
        policy = "" if self._conflict == "first" else link.policy
        return _cached(link.site, link.key, policy, _scored(link.scores))

    def _tell_topics(self, links: Sequence[Link]) -> None:
        """Known pages that links promise to be on topic, or nearer to such pages, than was known."""
        of_site: dict[str, dict[bytes, Link]] = {}
        for link in links:
            of_site.setdefault(link.site, {})[link.key] = link
        for site, found in of_site.items():
            by_url = {link.url: link for link in found.values()}
            self._store.reassign(site, list(found), partial(_told, by_url))

    def _settle_conflicts(self, links: Sequence[Link]) -> int:
        """Put known pages under the policies of links that have more right to them; how many."""
        most = self._conflict == "most-trusted"
        of_site: dict[str, dict[str, Link]] = {}
        for link in sorted(links, key=lambda link: link.trust, reverse=not most):  # the last one of a page counts
            of_site.setdefault(link.site, {})[link.url] = link

        def put(found: dict[str, Link], record: PageRecord) -> PageRecord | None:
            link = found.get(record.url)
            if link is None or record.policy == link.policy or not self._is_open(record):
                return None
            better = link.trust > record.trust if most else link.trust < record.trust
            return taken_over(record, link) if better else None

        many = 0
        for site, found in of_site.items():
            keys = {link.key: link for link in found.values()}
            done = self._store.reassign(site, list(keys), partial(put, found))
            many += done.put
            self._overtaken.update(((site, key), keys[key]) for key in done.leased)
        while len(self._overtaken) > _MOST_OVERTAKEN:
            self._overtaken.pop(next(iter(self._overtaken)))
        return many

    def _is_open(self, record: PageRecord) -> bool:
        """Whether a link may decide about a page's policy."""
        is_seed = not record.depth and not record.source
        was_switched = record.state != "never-crawled" and record.policy in self._switched
        return record.request is None and not is_seed and not was_switched

    def overtaken(self, lease: Lease, record: PageRecord) -> PageRecord:
        """The record with which a lease ends: under the policy of a link that was found while it was out."""
        link = self._overtaken.pop((lease.site, lease.key), None) if self._overtaken else None
        if link is None or not self._is_open(record):
            return record
        self._reassigned += 1
        return taken_over(record, link)


def _cached(site: str, key: bytes, policy: str, scored: tuple[float, ...]) -> int:
    """The fingerprint of a link. The store's own name where there is no more to it, as nearly everywhere."""
    if scored:
        return hash((site, key, policy, scored))
    return hash((site, key, policy) if policy else (site, key))


def _scored(scores: tuple[float, ...]) -> tuple[float, ...]:
    """What a link's scores say, in few classes: whether its words are of the topic, how far a hot page is."""
    return (float(scores[0] > 0.0), links_from_hot(scores)) if scores else ()


_SCORED: Final = ((), *itertools.product((0.0, 1.0), map(float, range(int(FAR) + 1))))
"""All that `_scored` gives."""


def _told(links: Mapping[str, Link], record: PageRecord) -> PageRecord | None:
    """The record of a known page with what a link says of it; None: that is nothing new."""
    link = links.get(record.url)
    if link is None or record.request is not None or record.policy != link.policy:
        return None
    waits = record.state == "never-crawled"
    similarity = record.scores[0] if record.scores else 0.0
    if waits:  # a fetched page has said itself what it is about
        similarity = max(similarity, link.scores[0])
    scores = (similarity, min(links_from_hot(record.scores), links_from_hot(link.scores)))
    if scores == record.scores:
        return None
    worth = max(record.importance, link.importance) if waits else record.importance
    return msgspec.structs.replace(record, scores=scores, importance=worth)


MIRROR: Final = "mirror"
"""The error of a page that was not asked because the site that its own is a mirror of has it."""
MARGIN: Final = 0.06
"""An estimate this near to the threshold is checked with the texts: two standard errors."""
_COMPARED: Final = 2
"""Pairs of texts that are compared for one page."""
_SITES: Final = 20_000
"""Sites whose duplicates are counted; the longest unseen are forgotten."""
_READ: Final = frozenset({"new", "changed", "minor"})
_UNREAD: Final = frozenset({"same", "not_modified"})


class _Counted:
    """Of one site: first copies that were judged, those that repeat a page, and how many one of each other site."""

    __slots__ = ("judged", "originals", "repeats")

    def __init__(self) -> None:
        self.judged = 0
        self.repeats = 0
        self.originals: Counter[str] = Counter()


class DuplicateDetector:
    """One process's. Used by the worker thread; `share_of` by any.

    Parameters
    ----------
    text_of : the visible text of a page's stored copy, None when there is none to be had
    resemblance : from which on two texts are near-duplicates
    revisit_s : seconds after which a duplicate is fetched again
    """

    def __init__(
        self,
        index: DuplicateIndex,
        *,
        store: FrontierStore,
        text_of: Callable[[PageRecord], str | None],
        resemblance: float,
        revisit_s: float,
    ) -> None:
        self._index = index
        self._store = store
        self._text_of = text_of
        self._least = resemblance
        self._revisit_s = revisit_s
        self._sites: dict[str, _Counted] = {}
        self._texts: dict[str, str] = {}  # of the batch, whose copies no record names yet
        self._standing: dict[str, int | None] = {}  # of the batch: digests of pages that are held once it is settled
        self.counts: Counter[str] = Counter()
        """What was found since the caller took it."""

    # ------------------------------------------------------------ the question

    def judge(self, visits: Sequence[Visit]) -> tuple[list[Judged], list[str]]:
        """Of each visit what is to be settled and followed; and the URLs that should be fetched again now.

        Those are representatives that name as their canonical form a page that has come since.
        """
        self._texts.clear()
        self._standing.clear()
        judged = [Judged(_without_pointer(visit), visit.reading.links) for visit in visits]
        asked: list[tuple[int, IndexedPage]] = []
        unread = [visit.record.url for visit in visits if visit.kind in _UNREAD and visit.record.duplicate_of is None]
        known = dict(zip(unread, self._index.known(unread), strict=True))
        for place, visit in enumerate(visits):
            page = self._page(visit, known)
            if isinstance(page, IndexedPage):
                asked.append((place, page))
            elif page:
                judged[place] = self._repeats(visit, page)
        outranked: list[str] = []
        for (place, _), probe in zip(asked, self._index.probe([page for _, page in asked]), strict=True):
            visit = visits[place]
            match = self._choose(probe)
            if match is not None and not self._index.is_alone and visit.kind in _UNREAD and _stays(probe.page, match):
                match = None
            if match is not None and match.names == number_of(probe.page.url):
                self.counts["duplicates/canonical"] += 1
                outranked.append(match.url)
                match = None
            self._count(visit, match)
            if match is None:
                self._index.keep(probe)
            else:
                judged[place] = self._repeats(visit, match.url, canonical=probe.page.canonical)
            self._standing[probe.page.url] = digest_number(probe.page.digest) if match is None else None
        return judged, outranked

    def mirrors(self, site: str) -> str | None:
        """The site that this one is a mirror of, as far as this process has seen its pages; None: of none."""
        counted = self._sites.get(site)
        if counted is None or not counted.originals:
            return None
        original, pages = counted.originals.most_common(1)[0]
        return original if is_mirror(pages, counted.judged) else None

    def unasked(self, lease: Lease, *, at: float) -> Outcome | None:
        """The end of a new page of a mirror whose counterpart on the original is held; None: it is to be asked."""
        record = lease.record
        if record.error == MIRROR and record.duplicate_of is not None:
            original: str | None = site_of(record.duplicate_of)
        else:
            original = self.mirrors(lease.site) if record.state == "never-crawled" else None
        if original is None:
            return None
        url = original + record.url[len(lease.site) :]
        counterpart = self._store.page(original, fingerprint(url))
        if counterpart is None or not is_held(counterpart):
            return None
        self.counts["duplicates/mirrored"] += 1
        due = at + self._revisit_s
        refused = msgspec.structs.replace(
            record, state="refused", error=MIRROR, failures=record.failures + 1, due=due, duplicate_of=url
        )
        return Outcome(lease.id, "refused", refused)

    def share_of(self, site: str) -> float:
        """Share of a site's pages that repeat others, 0.0 where none was judged lately."""
        counted = self._sites.get(site)
        return counted.repeats / counted.judged if counted is not None and counted.judged else 0.0

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    # ---------------------------------------------------------------- private

    def _page(self, visit: Visit, known: Mapping[str, tuple[IndexedPage, int] | None]) -> IndexedPage | str | None:
        """What is to be looked up of a visit; or the URL that it still repeats; None: nothing, it is as it was."""
        record = visit.record
        if visit.kind in _READ:
            return self._read(record, visit.reading.text, canonical=visit.reading.canonical)
        if visit.kind not in _UNREAD or record.digest is None:
            return None
        if record.duplicate_of is not None and self._stands(record.duplicate_of):
            return record.duplicate_of
        found = known.get(record.url)
        if found is not None:
            return self._kept(*found, record)
        text = self._text_of(visit.fetch.lease.record if visit.fetch.lease is not None else record)
        if text is None:
            return None
        self.counts["duplicates/taken_in"] += 1
        return self._read(record, text)

    def _kept(self, page: IndexedPage, names: int, record: PageRecord) -> IndexedPage | None:
        """A representative that did not change, where it may repeat what came since: what it names, another ant's."""
        canonical = self._index.url_of(names) if names else None
        if canonical is None and self._index.is_alone:
            return None
        return msgspec.structs.replace(page, digest=record.digest, canonical=canonical)

    def _read(self, record: PageRecord, text: str, *, canonical: str | None = None) -> IndexedPage:
        """A page as it is looked up; one without a word is like no other, for else all of those were alike."""
        assert record.digest is not None
        if not text.strip():
            return IndexedPage(record.url, f"{number_of(record.url):016x}")
        self._texts[record.url] = text
        return IndexedPage(record.url, record.digest, sketch(text), None if canonical == record.url else canonical)

    def _choose(self, probe: Probe) -> Match | None:
        """The representative of a page: what it calls canonical where that resembles it, else what is most alike."""
        page, compared = probe.page, 0
        chosen: Match | None = None
        for match in self._index.nearest(probe, least=self._least - MARGIN):
            is_named = match.url == page.canonical
            if (chosen is not None and not is_named) or self._digest(match.url) != match.digest:
                continue
            near = not match.is_exact and abs(match.resemblance - self._least) < MARGIN and compared < _COMPARED
            compared += near
            if (self._compared(page.url, match) if near else match.resemblance) < self._least:
                continue
            chosen = match
            if is_named or page.canonical is None:
                break
        if page.canonical is not None:
            if chosen is not None and chosen.url == page.canonical:
                self.counts["duplicates/canonical"] += 1
            elif self._stands(page.canonical):
                self.counts["duplicates/canonical_refused"] += 1
        return chosen

    def _compared(self, url: str, match: Match) -> float:
        """The resemblance of two texts, where both are to be had; else the estimate."""
        text, other = self._text(url), self._text(match.url)
        if text is None or other is None:
            return match.resemblance
        self.counts["duplicates/compared"] += 1
        return exact_resemblance(text, other)

    def _text(self, url: str) -> str | None:
        if url not in self._texts:
            record = self._store.page(site_of(url), fingerprint(url))
            text = None if record is None else self._text_of(record)
            if text is None:
                return None
            self._texts[url] = text
        return self._texts[url]

    def _stands(self, url: str) -> bool:
        """Whether a page is held, and so may be named as the representative of others."""
        return self._digest(url) is not None

    def _digest(self, url: str) -> int | None:
        """What is kept of the digest of a page that is held; None of one that is not."""
        if url not in self._standing:
            record = self._store.page(site_of(url), fingerprint(url))
            digest = None if record is None or not is_held(record) else record.digest
            self._standing[url] = None if digest is None else digest_number(digest)
        return self._standing[url]

    def _repeats(self, visit: Visit, url: str, *, canonical: str | None = None) -> Judged:
        """A duplicate: its record, and of its links the one to what it calls its canonical form."""
        due = visit.fetched.at + self._revisit_s
        record = msgspec.structs.replace(visit.record, duplicate_of=url, due=due)
        return Judged(record, [link for link in visit.reading.links if link.url == canonical])

    def _count(self, visit: Visit, match: Match | None) -> None:
        site = visit.fetch.site
        counted = self._sites.pop(site, None) or _Counted()
        self._sites[site] = counted
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        if match is not None and visit.record.duplicate_of != match.url:
            self.counts["duplicates/exact" if match.is_exact else "duplicates/near"] += 1
        if visit.kind == "new":
            counted.judged += 1
            if match is not None:
                counted.repeats += 1
                counted.originals[site_of(match.url)] += site_of(match.url) != site


def _stays(page: IndexedPage, match: Match) -> bool:
    """Whether of two pages that repeat each other this one stays what it is, for both were kept by different ants."""
    return match.url != page.canonical and number_of(page.url) < number_of(match.url)


def _without_pointer(visit: Visit) -> PageRecord:
    """A visit's record, which repeats none until it is found to; one that failed tells nothing."""
    record = visit.record
    if record.duplicate_of is None or visit.kind == "failed":
        return record
    return msgspec.structs.replace(record, duplicate_of=None)
