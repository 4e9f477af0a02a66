"""Choose the policy of a page if links under several policies lead to it.

The policy of the link with the most trust is used, or of the link with the least trust if `conflict.rule` says so.
Trust decides between links under the same policy, too (Policies 2006: "special care … if the same page is discovered
from pages with different policies"). Seeds keep their own policy. A fetched page keeps a policy to which a
``[[switch]]`` moved it.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.store.codec import taken_over

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.records import Lease, Link, PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["PolicyConflicts"]

_MOVED: Final = "policy/reassigned"
_MOST_LEASED: Final = 10_000
"""Maximum number of leased pages whose better links are kept until their leases end."""


class PolicyConflicts:
    """Chooses policies by trust. For up to `size` pages, the trust of the best link so far is in memory. `counts`
    counts the pages that were moved to the policy of a better link.
    """

    def __init__(self, store: FrontierStore, collection: Collection, *, size: int, counts: Counter[str]) -> None:
        self._store = store
        self._most = collection.conflict == "most-trusted"
        self._switched = frozenset(rule.to for rule in collection.tables.switch)
        self._by_trust = collection.is_trusting and not collection.is_ranking
        self._size = size
        self._best: OrderedDict[int, float] = OrderedDict()
        self._waiting: dict[tuple[str, bytes], tuple[Link, float]] = {}  # leased pages: the best link, and its time
        self._counts = counts

    def better(self, links: Iterable[tuple[int, Link]]) -> dict[int, Link]:
        """Return, by fingerprint, each link that takes precedence by trust over all earlier links to the same page."""
        found: dict[int, Link] = {}
        for mark, link in links:
            best = self._best.get(mark)
            if best is None or self._is_better(link.trust, best):
                self._best[mark] = link.trust
                self._best.move_to_end(mark)
                found[mark] = link
        while len(self._best) > self._size:
            self._best.popitem(last=False)
        return found

    def forget(self, marks: Iterable[int]) -> None:
        """For some pages, forget the best link so far: the next link to such a page counts as better."""
        for mark in marks:
            self._best.pop(mark, None)

    def begin_anew(self) -> None:
        """Forget all links, because the store's server lost data."""
        self._best.clear()
        self._waiting.clear()

    def settle(self, links: Sequence[Link], *, at: float) -> None:
        """Move known pages to the policies of better links."""
        of_site: dict[str, dict[str, Link]] = {}
        for link in sorted(
            links, key=lambda link: link.trust, reverse=not self._most
        ):  # if several links lead to a page, the last one counts
            of_site.setdefault(link.site, {})[link.url] = link
        for site, found in of_site.items():
            keys = {link.key: link for link in found.values()}
            done = self._store.queues.reassign(site, list(keys), partial(self._revised, found, at))
            self._counts[_MOVED] += done.put
            for key in done.leased:
                self._wait(site, keys[key], at)
        while len(self._waiting) > _MOST_LEASED:
            self._waiting.pop(next(iter(self._waiting)))

    def overtaken(self, lease: Lease, record: PageRecord) -> PageRecord:
        """Return the record to settle; if a better link was found during the lease, the record gets the policy of this
        link.
        """
        link, at = self._waiting.pop((lease.site, lease.key), (None, 0.0))
        if link is None or (new := self._revised({link.url: link}, at, record)) is None:
            return record
        self._counts[_MOVED] += 1
        return new

    def _wait(self, site: str, link: Link, at: float) -> None:
        before = self._waiting.get((site, link.key))
        if before is None or self._is_better(link.trust, before[0].trust):
            self._waiting[site, link.key] = link, at

    def _revised(self, links: dict[str, Link], at: float, record: PageRecord) -> PageRecord | None:
        """Return the record of a page with the policy of a better link, or None if the page keeps its policy."""
        link = links.get(record.url)
        if link is None or not self._is_open(record) or not self._is_better(link.trust, record.trust):
            return None
        new = taken_over(record, link, at=at)
        return msgspec.structs.replace(new, importance=link.trust) if self._by_trust else new

    def _is_better(self, trust: float, before: float) -> bool:
        return trust > before if self._most else trust < before

    def _is_open(self, record: PageRecord) -> bool:
        """Return whether a link may change a page's policy."""
        is_seed = not record.depth and not record.source
        was_switched = record.state != "never-crawled" and record.policy in self._switched
        return record.request is None and not is_seed and not was_switched
