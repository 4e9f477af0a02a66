"""The duplicate URL eliminator, in front of the store, separates new links from known ones.

Links repeat, so a cache of 50,000 recent fingerprints saves eight of ten look-ups in the store. Links that are not in
the cache are sent to the store, and stay in the cache only if the store accepts them.

If a link would give a known page another policy, the conflict rule (`conflicts`) chooses between the two policies. The
cache forgets a page when a ``[[switch]]`` moves it to another policy.

A link may show that a page is on topic, or that a page on topic is near. If a link changes the topic scores of a
waiting page, the page is queued again.

Source: Broder, Najork, Wiener, "Efficient URL caching for World Wide Web crawling", 2003, section 5: LRU, because CLOCK
is slower in Python and misses as often (`bench_urlcache`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.topics import FAR, links_from_hot
from webfountain.core.url_cache import LruCache
from webfountain.frontier.pages.conflicts import PolicyConflicts
from webfountain.records import DiscoverResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Link, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["CACHE_SIZE", "DuplicateEliminator"]

CACHE_SIZE: Final = 200_000
_SCORED: Final = ((), *itertools.product((0.0, 1.0), map(float, range(int(FAR) + 1))))


class DuplicateEliminator:
    """A cache of recent URLs in front of `store.discover`.

    The cache contains eight-byte fingerprints of site and key (`core.url_cache`).
    """

    def __init__(
        self,
        store: FrontierStore,
        *,
        size: int = CACHE_SIZE,
        collection: Collection | None = None,
        weigh: Callable[[Sequence[Link]], Sequence[Link]] | None = None,
    ) -> None:
        """Begin with an empty cache. If given, `weigh` computes the current importance of links."""
        self._store = store
        self._weigh = weigh
        self._size = size or CACHE_SIZE
        self._conflicts: PolicyConflicts | None = None
        self._recent = LruCache(size)
        self.counts = Counter({"duplicates/new": 0, "duplicates/by_cache": 0, "duplicates/by_store": 0})
        """Numbers of new links, of links that the cache knew, and of links that only the store knew, by metric."""
        if collection is not None:
            self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Replace the conflict rule by the rule of a collection."""
        self._conflicts = None
        if collection.conflict != "first":
            self._conflicts = PolicyConflicts(self._store, collection, size=self._size, counts=self.counts)
        self._recent.clear()

    def discover(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """Add the unknown links to the store in one batch. Return the new links, each once, with their importance."""
        asked, found = self._ask(links, at)
        if not found.known:
            return list(asked)
        repeated = set(found.repeated)
        return [link for nth, link in enumerate(asked) if nth not in repeated]

    def offer(self, links: Sequence[Link], *, at: float) -> list[Link]:
        """Add new links to the store, and return the links that were already known or repeat another link of the
        batch.
        """
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
        """Send the links that are not in the cache to the store. Return the sent links and the store's answer."""
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
        self.counts.update(
            {"duplicates/new": found.new, "duplicates/by_cache": by_cache, "duplicates/by_store": found.known}
        )
        return asked, found

    def forget(self, site: str, key: bytes | None = None) -> None:
        """Drop a page, or a whole site, from the cache."""
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

    def _unseen(self, links: Sequence[Link]) -> list[Link]:
        """Return the links that are not in the cache, each once, and cache them.

        If trust decides conflicts between policies, also return a cached link that has more trust than all earlier
        links to its page.
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
        """Update the topic scores of known pages from links to them."""
        of_site: dict[str, dict[bytes, Link]] = {}
        for link in links:
            of_site.setdefault(link.site, {})[link.key] = link
        for site, found in of_site.items():
            by_url = {link.url: link for link in found.values()}
            self._store.queues.reassign(site, list(found), partial(_with_link, by_url))

    def overtaken(self, lease: Lease, record: PageRecord) -> PageRecord:
        """Return a page's record at the end of its lease, with the policy of any better link that was found during the
        lease.
        """
        return record if self._conflicts is None else self._conflicts.overtaken(lease, record)


def _fingerprint(link: Link) -> int:
    """Return the fingerprint of a link for the cache, from site, key and topic scores."""
    return _cached(link.site, link.key, _scored(link.scores))


def _cached(site: str, key: bytes, scored: tuple[float, ...]) -> int:
    return hash((site, key, scored) if scored else (site, key))


def _scored(scores: tuple[float, ...]) -> tuple[float, ...]:
    """Return a link's topic scores, coarsely rounded, because each distinct value takes up a cache entry."""
    return (float(scores[0] > 0.0), links_from_hot(scores)) if scores else ()


def _with_link(links: Mapping[str, Link], record: PageRecord) -> PageRecord | None:
    """Return the record of a known page with the topic scores of a link, or None if nothing changes."""
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
