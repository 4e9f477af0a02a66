"""The duplicate URL eliminator, which separates new links from known ones before they reach the store.

It runs after the host splitter and before the never-crawled queue (DESIGN.md section 3). A cache of recently seen
fingerprints saves most look-ups in the store, because links repeat (a cache of 50,000 entries answers eight in ten).
The store decides about the rest, and only URLs that it has confirmed are cached. Links themselves are not kept here.

If a page is found under a policy other than its own, the collection's conflict rule (`conflicts`) decides. The rule
`first` changes nothing and costs nothing. A page that a switch moved to another policy is dropped from the cache, so
that links to it are compared with the new policy.

If the policy has a topic, a link may show that a page is on topic, or nearer to such a page than known. Then the record
of the page is updated (`PageRecord.scores`), and a waiting page is queued with the pages on topic.

Source: Broder, Najork, Wiener, "Efficient URL caching for World Wide Web crawling", 2003, section 5: LRU, because
CLOCK is slower in Python and misses as often (`bench_urlcache`).
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.topics import FAR, links_from_hot
from webfountain.core.url_cache import LruCache, StaticCache
from webfountain.frontier.pages.conflicts import PolicyConflicts
from webfountain.records import DiscoverResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.core.url_cache import UrlCache
    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Link, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["CACHE_SIZE", "DedupStatistics", "DuplicateEliminator"]

CACHE_SIZE: Final = 200_000
_SCORED: Final = ((), *itertools.product((0.0, 1.0), map(float, range(int(FAR) + 1))))
"""All values that `_scored` can return."""


class DedupStatistics(msgspec.Struct, frozen=True, gc=False):
    """A snapshot of three counts: new URLs, links found in the cache, and links that only the store knew."""

    new: int
    duplicates_by_cache: int
    duplicates_by_store: int
    reassigned: int = 0
    """Number of known pages that a link moved to another policy."""


class DuplicateEliminator:
    """A cache of recent URLs in front of `store.discover`: LRU with `size` entries, or a given cache.

    It stores eight-byte fingerprints of site and key (`core.url_cache`).
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
        """`weigh` returns links, most of them new, with their current importance; None: links keep their importance."""
        self._store = store
        self._weigh = weigh
        self._size = size or CACHE_SIZE
        self._conflicts: PolicyConflicts | None = None
        self._recent: UrlCache = cache or (LruCache(size) if size else StaticCache(()))
        self._new = 0
        self._by_cache = 0
        self._by_store = 0
        self._reassigned = 0  # counted under the rules of earlier policies
        if collection is not None:
            self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Use the conflict rule of this collection from now on."""
        self._reassigned += 0 if self._conflicts is None else self._conflicts.settled
        is_first = collection.conflict == "first"
        self._conflicts = None if is_first else PolicyConflicts(self._store, collection, size=self._size)
        self._recent.clear()

    def discover(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """Add the unknown links to the store, in one batch. Return the new ones, each once, with their importance."""
        asked, found = self._ask(links, at)
        if not found.known:
            return list(asked)
        repeated = set(found.repeated)
        return [link for nth, link in enumerate(asked) if nth not in repeated]

    def offer(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """Do the same as `discover`, but return the links that were known before or that repeat an earlier link."""
        new = {(link.site, link.key) for link in self.discover(links, at=at)}
        known = []
        for link in links:
            name = (link.site, link.key)
            if name in new:
                new.remove(name)
            else:
                known.append(link)
        return known

    def _ask(self, links: Sequence[Link], at: float) -> tuple[Sequence[Link], DiscoverResult]:
        """Return the links that were sent to the store, and its answer."""
        asked: Sequence[Link] = self._unseen(links)
        if self._weigh is not None and asked:
            asked = self._weigh(asked)
        try:
            found = self._store.queues.discover(asked, at=at) if asked else DiscoverResult(0, 0)
        except BaseException:
            self._drop(list(map(_fingerprint, asked)))  # links that the store has not accepted are sent again
            raise
        if found.known:
            if self._conflicts is not None:
                self._conflicts.settle(asked, at=at)
            self._update_topics([link for link in asked if link.scores])
        by_cache = len(links) - len(asked)
        self._new += found.new
        self._by_cache += by_cache
        self._by_store += found.known
        return asked, found

    def forget(self, site: str, key: bytes | None = None) -> None:
        """Drop a page, or all pages of a site, from the cache, so that the store decides about it."""
        if key is None:
            self._recent.clear()  # a fingerprint does not contain its site, so all are dropped; this is rare
            return
        self._drop([_cached(site, key, scores) for scores in _SCORED])

    def _drop(self, marks: Sequence[int]) -> None:
        self._recent.drop(marks)
        if self._conflicts is not None:
            self._conflicts.forget(marks)

    def begin_anew(self) -> None:
        """Drop the whole cache, because the store may have lost the URLs."""
        self._recent.clear()
        if self._conflicts is not None:
            self._conflicts.begin_anew()

    def statistics(self) -> DedupStatistics:
        """Return the counts so far."""
        settled = 0 if self._conflicts is None else self._conflicts.settled
        return DedupStatistics(self._new, self._by_cache, self._by_store, self._reassigned + settled)

    def _unseen(self, links: Sequence[Link]) -> list[Link]:
        """Return the links that are not in the cache, without repeats, and add them to it.

        If trust decides conflicts, also return links with better trust than the cached ones.
        """
        prints = [hash((link.site, link.key)) if not link.scores else _fingerprint(link) for link in links]
        missing = self._recent.missing(prints)
        if self._conflicts is not None:
            self._conflicts.forget(missing)
            return list(self._conflicts.better(zip(prints, links, strict=True)).values())
        if not missing:
            return []
        first: dict[int, Link | None] = dict.fromkeys(missing)
        for each, link in zip(prints, links, strict=True):
            if each in first and first[each] is None:
                first[each] = link
        return [link for link in first.values() if link is not None]

    def _update_topics(self, links: Sequence[Link]) -> None:
        """Update the records of known pages that links show to be on topic, or closer to such pages than known."""
        of_site: dict[str, dict[bytes, Link]] = {}
        for link in links:
            of_site.setdefault(link.site, {})[link.key] = link
        for site, found in of_site.items():
            by_url = {link.url: link for link in found.values()}
            self._store.queues.reassign(site, list(found), partial(_with_link, by_url))

    def overtaken(self, lease: Lease, record: PageRecord) -> PageRecord:
        """Return the record with which a lease ends. It has the policy of a link that was found during the lease, if
        there is one.
        """
        return record if self._conflicts is None else self._conflicts.overtaken(lease, record)


def _fingerprint(link: Link) -> int:
    """Return the fingerprint that the cache stores for a link. It covers site, key, and the part of the link's topic
    scores that matters for a known page.
    """
    return _cached(link.site, link.key, _scored(link.scores))


def _cached(site: str, key: bytes, scored: tuple[float, ...]) -> int:
    """Return the fingerprint of a link. In nearly all cases it is the store's own key."""
    return hash((site, key, scored) if scored else (site, key))


def _scored(scores: tuple[float, ...]) -> tuple[float, ...]:
    """Return a link's scores reduced to few classes: whether its words are on topic, and its distance from a hot
    page.
    """
    return (float(scores[0] > 0.0), links_from_hot(scores)) if scores else ()


def _with_link(links: Mapping[str, Link], record: PageRecord) -> PageRecord | None:
    """Return the record of a known page updated by a link, or None if the link changes nothing."""
    link = links.get(record.url)
    if link is None or record.request is not None or record.policy != link.policy:
        return None
    waits = record.state == "never-crawled"
    similarity = record.scores[0] if record.scores else 0.0
    if waits:  # a fetched page has its own topic scores
        similarity = max(similarity, link.scores[0])
    scores = (similarity, min(links_from_hot(record.scores), links_from_hot(link.scores)))
    if scores == record.scores:
        return None
    worth = max(record.importance, link.importance) if waits else record.importance
    return msgspec.structs.replace(record, scores=scores, importance=worth)
